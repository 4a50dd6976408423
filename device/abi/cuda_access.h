/*
 * Memory accesses of a CUDA block's threads: 16 bytes, parts of 16 bytes, LL packets and LL128 lines, and the shifting that
 * allows 16-byte accesses where pointers are not aligned to 16.
 */
#ifndef RONDO_DEVICE_ABI_CUDA_ACCESS_H
#define RONDO_DEVICE_ABI_CUDA_ACCESS_H

#if !defined(__CUDACC__)
#error "__device__ code: nvcc alone compiles it"
#endif

#include <stddef.h>
#include <stdint.h>

#define RONDO_CUDA_INLINE static __device__ __forceinline__
#define RONDO_CUDA_CALLED static __device__ __noinline__

#define RONDO_CUDA_WARP       32u
#define RONDO_CUDA_WHOLE_WARP 0xffffffffu
#define RONDO_CUDA_VOTE       8 /* the named barrier of the workers' votes; the leader's side uses lower numbers */

/* The unit of all loops: 16 bytes in registers. */
struct rondo_cuda_vector {
    uint32_t word[4];
};

/* 16 bytes of zeros. */
RONDO_CUDA_INLINE struct rondo_cuda_vector rondo_cuda_nothing(void)
{
    struct rondo_cuda_vector v = {{0, 0, 0, 0}};
    return v;
}

/* Loads 16 aligned bytes. Volatile to the compiler, so that no load moves before the barrier behind which the data are
 * there. L1 may serve it: the leader's acquire has invalidated stale lines. Most data are read once and need no place in it. */
RONDO_CUDA_INLINE struct rondo_cuda_vector rondo_cuda_load(const char *from)
{
    struct rondo_cuda_vector v;
    asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.word[0]), "=r"(v.word[1]), "=r"(v.word[2]), "=r"(v.word[3])
                 : "l"(from)
                 : "memory");
    return v;
}

/* Loads 16 aligned bytes if wanted, else gives zeros. */
RONDO_CUDA_INLINE struct rondo_cuda_vector rondo_cuda_load_if(int wanted, const char *from)
{
    return wanted ? rondo_cuda_load(from) : rondo_cuda_nothing();
}

/* Stores 16 aligned bytes. */
RONDO_CUDA_INLINE void rondo_cuda_store(char *to, struct rondo_cuda_vector v)
{
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(v.word[0]), "r"(v.word[1]), "r"(v.word[2]),
                 "r"(v.word[3])
                 : "memory");
}

/* ---- parts of a vector ---- */

RONDO_CUDA_INLINE uint32_t rondo_cuda_load_word_if(int wanted, const char *from)
{
    uint32_t value;
    asm volatile("{ .reg .pred p; setp.ne.s32 p, %2, 0; mov.u32 %0, 0; @p ld.global.u32 %0, [%1]; }"
                 : "=r"(value)
                 : "l"(from), "r"(wanted)
                 : "memory");
    return value;
}

RONDO_CUDA_INLINE uint32_t rondo_cuda_load_byte_if(int wanted, const char *from)
{
    uint32_t value;
    asm volatile("{ .reg .pred p; setp.ne.s32 p, %2, 0; mov.u32 %0, 0; @p ld.global.u8 %0, [%1]; }"
                 : "=r"(value)
                 : "l"(from), "r"(wanted)
                 : "memory");
    return value;
}

/* Loads four bytes, of which only the first so many are read. */
RONDO_CUDA_INLINE uint32_t rondo_cuda_load_bytes(const char *from, int bytes)
{
    uint32_t value = 0;
#pragma unroll
    for (int i = 0; i < 4; i++)
        value |= rondo_cuda_load_byte_if(i < bytes, from + i) << (8 * i);
    return value;
}

/* Loads the first bytes (at most 16) at any address; the others are 0. */
RONDO_CUDA_CALLED struct rondo_cuda_vector rondo_cuda_load_part(const char *from, uint32_t bytes)
{
    struct rondo_cuda_vector v;
    uint32_t by_words = ((uintptr_t) from & 3) == 0 ? bytes & ~3u : 0;
#pragma unroll
    for (uint32_t i = 0; i < 4; i++)
        v.word[i] = rondo_cuda_load_word_if(4 * i < by_words, from + 4 * i);
#pragma unroll
    for (uint32_t i = 0; i < 4; i++)
        if (4 * i >= by_words && 4 * i < bytes)
            v.word[i] = rondo_cuda_load_bytes(from + 4 * i, (int) (bytes - 4 * i));
    return v;
}

/* Stores bytes [first, end) of the vector to the same places after to, at any address. */
RONDO_CUDA_CALLED void rondo_cuda_store_part(char *to, struct rondo_cuda_vector v, uint32_t first, uint32_t end)
{
#pragma unroll
    for (uint32_t i = 0; i < 4; i++) {
        char *at = to + 4 * i;
        if (((uintptr_t) at & 3) == 0 && first <= 4 * i && 4 * i + 4 <= end) {
            *(uint32_t *) at = v.word[i];
            continue;
        }
#pragma unroll
        for (uint32_t b = 0; b < 4; b++)
            if (first <= 4 * i + b && 4 * i + b < end)
                at[b] = (char) (v.word[i] >> (8 * b));
    }
}

/* Loads the first bytes (1 to 15) of an aligned vector, without a call. */
RONDO_CUDA_INLINE struct rondo_cuda_vector rondo_cuda_load_end(const char *from, uint32_t bytes)
{
    const uint32_t words = bytes / 4, last = rondo_cuda_load_bytes(from + 4 * words, (int) (bytes % 4));
    struct rondo_cuda_vector v;
#pragma unroll
    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t word = rondo_cuda_load_word_if(i < words, from + 4 * i);
        v.word[i] = i == words ? last : word;
    }
    return v;
}

RONDO_CUDA_INLINE void rondo_cuda_store_end(char *to, struct rondo_cuda_vector v, uint32_t bytes)
{
    uint32_t last = 0;
#pragma unroll
    for (uint32_t i = 0; i < 4; i++) {
        if (4 * i + 4 <= bytes)
            *(volatile uint32_t *) (to + 4 * i) = v.word[i];
        else if (4 * i < bytes)
            last = v.word[i];
    }
#pragma unroll 1
    for (uint32_t b = bytes & ~3u; b < bytes; b++, last >>= 8)
        *(volatile char *) (to + b) = (char) last;
}

/* ---- half vectors, the data of a packet: in the first two words ---- */

/* Loads 8 aligned bytes into the first two words. */
RONDO_CUDA_INLINE struct rondo_cuda_vector rondo_cuda_load_whole_half(const char *from)
{
    struct rondo_cuda_vector v = {{0, 0, 0, 0}};
    asm volatile("ld.global.v2.u32 {%0, %1}, [%2];" : "=r"(v.word[0]), "=r"(v.word[1]) : "l"(from) : "memory");
    return v;
}

RONDO_CUDA_INLINE void rondo_cuda_store_whole_half(char *to, struct rondo_cuda_vector v)
{
    asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(to), "r"(v.word[0]), "r"(v.word[1]) : "memory");
}

/* Loads bytes (at most 8) of a packet's data from any address. */
RONDO_CUDA_INLINE struct rondo_cuda_vector rondo_cuda_load_half(const char *from, uint32_t bytes)
{
    if (bytes == 8 && ((uintptr_t) from & 7) == 0)
        return rondo_cuda_load_whole_half(from);
    return rondo_cuda_load_part(from, bytes);
}

/* Stores bytes (at most 8) of a packet's data to any address. */
RONDO_CUDA_INLINE void rondo_cuda_store_half(char *to, struct rondo_cuda_vector v, uint32_t bytes)
{
    if (bytes == 8 && ((uintptr_t) to & 7) == 0)
        rondo_cuda_store_whole_half(to, v);
    else
        rondo_cuda_store_part(to, v, 0, bytes);
}

/* ---- packets ---- */

/*
 * A packet is two words of the LL protocol, {data, flag, data, flag}, in one access of 16 bytes. To the memory model that is
 * two accesses of 8 bytes, each of which is whole; both flags are looked at, so it does not matter that they may come apart.
 */
RONDO_CUDA_INLINE void rondo_cuda_store_packet(char *to, struct rondo_cuda_vector v, uint32_t flag)
{
    uint64_t high = (uint64_t) flag << 32;
    asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(high | v.word[0]), "l"(high | v.word[1])
                 : "memory");
}

/* Loads a packet's data into the first two words. Returns 0 if the packet has not arrived. */
RONDO_CUDA_INLINE int rondo_cuda_load_packet(struct rondo_cuda_vector *v, const char *from, uint32_t flag)
{
    uint64_t first, second;
    asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];" : "=l"(first), "=l"(second) : "l"(from) : "memory");
    v->word[0] = (uint32_t) first;
    v->word[1] = (uint32_t) second;
    return ((uint32_t) (first >> 32) == flag) & ((uint32_t) (second >> 32) == flag);
}

/* ---- lines ---- */

/*
 * Loads 16 bytes of a line of LL128 (device/move/low_latency.h). Relaxed, so that the L2 is asked.
 */
RONDO_CUDA_INLINE struct rondo_cuda_vector rondo_cuda_load_line(const char *from)
{
    struct rondo_cuda_vector v;
    asm volatile("ld.relaxed.sys.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.word[0]), "=r"(v.word[1]), "=r"(v.word[2]), "=r"(v.word[3])
                 : "l"(from)
                 : "memory");
    return v;
}

/* Stores 16 bytes of a line. */
RONDO_CUDA_INLINE void rondo_cuda_store_line(char *to, struct rondo_cuda_vector v)
{
    asm volatile("st.relaxed.sys.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(v.word[0]), "r"(v.word[1]),
                 "r"(v.word[2]), "r"(v.word[3])
                 : "memory");
}

/* The flag's part of a line. */
RONDO_CUDA_INLINE struct rondo_cuda_vector rondo_cuda_line_flag(uint32_t flag)
{
    struct rondo_cuda_vector v = {{flag, flag, flag, flag}};
    return v;
}

/* ---- shifting ---- */

/* The 16 bytes that begin so many bytes (0 to 15) after low begins, where high follows it in memory. */
RONDO_CUDA_INLINE struct rondo_cuda_vector rondo_cuda_shift(struct rondo_cuda_vector low, struct rondo_cuda_vector high,
                                                            uint32_t bytes)
{
    struct rondo_cuda_vector shifted;
    uint32_t w[8];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        w[i] = low.word[i];
        w[4 + i] = high.word[i];
    }
#pragma unroll
    for (int i = 0; i < 6; i++)
        w[i] = bytes & 8 ? w[i + 2] : w[i];
#pragma unroll
    for (int i = 0; i < 5; i++)
        w[i] = bytes & 4 ? w[i + 1] : w[i];
#pragma unroll
    for (int i = 0; i < 4; i++)
        shifted.word[i] = __funnelshift_r(w[i], w[i + 1], 8 * (bytes & 3));
    return shifted;
}

/* The vector of another lane. By the whole warp. */
RONDO_CUDA_INLINE struct rondo_cuda_vector rondo_cuda_from_lane(struct rondo_cuda_vector v, uint32_t lane)
{
#pragma unroll
    for (int i = 0; i < 4; i++)
        v.word[i] = __shfl_sync(RONDO_CUDA_WHOLE_WARP, v.word[i], (int) lane);
    return v;
}

/* ---- agreement ---- */

/* A barrier of the workers. Returns, to all, whether all say yes. */
RONDO_CUDA_INLINE int rondo_cuda_all_agree(int yes, uint32_t threads)
{
    int all;
    asm volatile("{ .reg .pred p, q; setp.ne.s32 p, %1, 0; barrier.cta.red.and.pred q, %2, %3, p; selp.s32 %0, 1, 0, q; }"
                 : "=r"(all)
                 : "r"(yes), "n"(RONDO_CUDA_VOTE), "r"(threads)
                 : "memory");
    return all;
}

#endif
