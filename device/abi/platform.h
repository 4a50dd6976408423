/*
 * What the single-source engine and daemon need of the machine: memory ordering, relaxation of spins, a clock. Nothing else in
 * device/ depends on which of the two devices it is compiled for, except the movers (device/move) and the worker groups
 * (device/engine/workers.h).
 * Words are shared either with other devices, processes or the host ("system"), or between the blocks of one device
 * ("device"); on the host these are the same. Functions that say neither are for the system.
 */
#ifndef RONDO_DEVICE_ABI_PLATFORM_H
#define RONDO_DEVICE_ABI_PLATFORM_H

#include "device/abi/qualifiers.h"

#include <stdint.h>

/* Unrolls the loop that follows, whose count is a constant. */
#if defined(__CUDACC__)
#define RONDO_UNROLL _Pragma("unroll")
#else
#define RONDO_UNROLL
#endif

struct rondo_pair {
    uint64_t first, second;
};

#if defined(__CUDACC__)

/* ---- CUDA: PTX of sm_70 and later, whose memory model these names are from ---- */

#define RONDO_DEFINE_WORD(suffix, type, bits, register)                                                                        \
    RONDO_FUNCTION type rondo_load_acquire##suffix(const type *word)                                                           \
    {                                                                                                                          \
        type value;                                                                                                            \
        asm volatile("ld.acquire.sys.u" bits " %0, [%1];" : "=" register(value) : "l"(word) : "memory");                       \
        return value;                                                                                                          \
    }                                                                                                                          \
    RONDO_FUNCTION type rondo_load_acquire_device##suffix(const type *word)                                                    \
    {                                                                                                                          \
        type value;                                                                                                            \
        asm volatile("ld.acquire.gpu.u" bits " %0, [%1];" : "=" register(value) : "l"(word) : "memory");                       \
        return value;                                                                                                          \
    }                                                                                                                          \
    RONDO_FUNCTION type rondo_load_relaxed##suffix(const type *word)                                                           \
    {                                                                                                                          \
        type value;                                                                                                            \
        asm volatile("ld.relaxed.sys.u" bits " %0, [%1];" : "=" register(value) : "l"(word) : "memory");                       \
        return value;                                                                                                          \
    }                                                                                                                          \
    RONDO_FUNCTION void rondo_store_release##suffix(type *word, type value)                                                    \
    {                                                                                                                          \
        asm volatile("st.release.sys.u" bits " [%0], %1;" ::"l"(word), register(value) : "memory");                            \
    }                                                                                                                          \
    RONDO_FUNCTION void rondo_store_release_device##suffix(type *word, type value)                                             \
    {                                                                                                                          \
        asm volatile("st.release.gpu.u" bits " [%0], %1;" ::"l"(word), register(value) : "memory");                            \
    }                                                                                                                          \
    RONDO_FUNCTION void rondo_store_relaxed##suffix(type *word, type value)                                                    \
    {                                                                                                                          \
        asm volatile("st.relaxed.sys.u" bits " [%0], %1;" ::"l"(word), register(value) : "memory");                            \
    }
RONDO_DEFINE_WORD(, uint64_t, "64", "l")
RONDO_DEFINE_WORD(32, uint32_t, "32", "r")
#undef RONDO_DEFINE_WORD

/* Adds to a word of this device and returns its old value; acquire and release. */
RONDO_FUNCTION uint64_t rondo_fetch_add(uint64_t *word, uint64_t value)
{
    uint64_t old;
    asm volatile("atom.acq_rel.gpu.add.u64 %0, [%1], %2;" : "=l"(old) : "l"(word), "l"(value) : "memory");
    return old;
}
/* Sets a word of this device to desired if it is expected, and returns whether it was; acquire and release. */
RONDO_FUNCTION int rondo_exchange_if(uint64_t *word, uint64_t expected, uint64_t desired)
{
    uint64_t old;
    asm volatile("atom.acq_rel.gpu.cas.b64 %0, [%1], %2, %3;" : "=l"(old) : "l"(word), "l"(expected), "l"(desired) : "memory");
    return old == expected;
}
/* Like rondo_exchange_if, of a word that other devices may change, too: GPUs of one host, in each other's memory. Acquire. */
RONDO_FUNCTION int rondo_exchange_far_if(uint64_t *word, uint64_t expected, uint64_t desired)
{
    uint64_t old;
    asm volatile("atom.acquire.sys.cas.b64 %0, [%1], %2, %3;" : "=l"(old) : "l"(word), "l"(expected), "l"(desired) : "memory");
    return old == expected;
}
RONDO_FUNCTION uint64_t rondo_fetch_add_relaxed(uint64_t *word, uint64_t value)
{
    uint64_t old;
    asm volatile("atom.relaxed.gpu.add.u64 %0, [%1], %2;" : "=l"(old) : "l"(word), "l"(value) : "memory");
    return old;
}
/* Loads two words that lie together, aligned to both: one access, but each is a load by itself. */
RONDO_FUNCTION struct rondo_pair rondo_load_acquire_pair(const uint64_t *words)
{
    struct rondo_pair pair;
    asm volatile("ld.acquire.sys.v2.u64 {%0, %1}, [%2];" : "=l"(pair.first), "=l"(pair.second) : "l"(words) : "memory");
    return pair;
}
RONDO_FUNCTION void rondo_store_relaxed_pair(uint64_t *words, struct rondo_pair pair)
{
    asm volatile("st.relaxed.sys.v2.u64 [%0], {%1, %2};" ::"l"(words), "l"(pair.first), "l"(pair.second) : "memory");
}
/* A full fence. A GPU cannot change a word of the host's memory atomically, and needs none for fence.sc. */
RONDO_FUNCTION void rondo_fence(uint64_t *shared_word)
{
    (void) shared_word;
    asm volatile("fence.sc.sys;" ::: "memory");
}

/* Begins publishing several words, to the system or to this device: one fence, then rondo_publish_word for each. */
RONDO_FUNCTION void rondo_publish_begin(void)
{
    asm volatile("fence.acq_rel.sys;" ::: "memory");
}
RONDO_FUNCTION void rondo_publish_device_begin(void)
{
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
}
RONDO_FUNCTION void rondo_publish_word(uint64_t *word, uint64_t value)
{
    rondo_store_relaxed(word, value);
}

/* Adds to a counter; no result, so nothing is waited for. */
RONDO_FUNCTION void rondo_count(uint64_t *counter, uint64_t more)
{
    asm volatile("red.relaxed.gpu.add.u64 [%0], %1;" ::"l"(counter), "l"(more) : "memory");
}

RONDO_FUNCTION int rondo_relax(uint64_t polls, uint32_t yield_mask)
{
    (void) polls;
    (void) yield_mask;
    return 0;
}

/* Nanoseconds of a clock that all blocks of the device share. */
RONDO_FUNCTION uint64_t rondo_clock_ns(void)
{
    uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

/* Ticks of the clock that waits are measured by: cycles of the thread's multiprocessor. */
RONDO_FUNCTION uint64_t rondo_ticks(void)
{
    uint64_t now;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(now)::"memory");
    return now;
}
#define RONDO_LOOK_TICKS 500 /* that a look at memory takes, about */

#else

/* ---- the host: C11 with GCC's atomic builtins, known to the thread sanitizer ---- */

#include <sched.h>
#include <time.h>

#define RONDO_DEFINE_WORD(suffix, type)                                                                                        \
    RONDO_FUNCTION type rondo_load_acquire##suffix(const type *word)                                                           \
    {                                                                                                                          \
        return __atomic_load_n(word, __ATOMIC_ACQUIRE);                                                                        \
    }                                                                                                                          \
    RONDO_FUNCTION type rondo_load_acquire_device##suffix(const type *word)                                                    \
    {                                                                                                                          \
        return __atomic_load_n(word, __ATOMIC_ACQUIRE);                                                                        \
    }                                                                                                                          \
    RONDO_FUNCTION type rondo_load_relaxed##suffix(const type *word)                                                           \
    {                                                                                                                          \
        return __atomic_load_n(word, __ATOMIC_RELAXED);                                                                        \
    }                                                                                                                          \
    RONDO_FUNCTION void rondo_store_release##suffix(type *word, type value)                                                    \
    {                                                                                                                          \
        __atomic_store_n(word, value, __ATOMIC_RELEASE);                                                                       \
    }                                                                                                                          \
    RONDO_FUNCTION void rondo_store_release_device##suffix(type *word, type value)                                             \
    {                                                                                                                          \
        __atomic_store_n(word, value, __ATOMIC_RELEASE);                                                                       \
    }                                                                                                                          \
    RONDO_FUNCTION void rondo_store_relaxed##suffix(type *word, type value)                                                    \
    {                                                                                                                          \
        __atomic_store_n(word, value, __ATOMIC_RELAXED);                                                                       \
    }
RONDO_DEFINE_WORD(, uint64_t)
RONDO_DEFINE_WORD(32, uint32_t)
#undef RONDO_DEFINE_WORD

/* Read-modify-write operations, on words of the device's own memory only. */
RONDO_FUNCTION uint64_t rondo_fetch_add(uint64_t *word, uint64_t value)
{
    return __atomic_fetch_add(word, value, __ATOMIC_ACQ_REL);
}
RONDO_FUNCTION int rondo_exchange_if(uint64_t *word, uint64_t expected, uint64_t desired)
{
    return __atomic_compare_exchange_n(word, &expected, desired, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}
RONDO_FUNCTION int rondo_exchange_far_if(uint64_t *word, uint64_t expected, uint64_t desired)
{
    return rondo_exchange_if(word, expected, desired);
}
RONDO_FUNCTION uint64_t rondo_fetch_add_relaxed(uint64_t *word, uint64_t value)
{
    return __atomic_fetch_add(word, value, __ATOMIC_RELAXED);
}
RONDO_FUNCTION struct rondo_pair rondo_load_acquire_pair(const uint64_t *words)
{
    struct rondo_pair pair = {rondo_load_acquire(words), rondo_load_acquire(words + 1)};
    return pair;
}
RONDO_FUNCTION void rondo_store_relaxed_pair(uint64_t *words, struct rondo_pair pair)
{
    rondo_store_relaxed(words, pair.first);
    rondo_store_relaxed(words + 1, pair.second);
}
/* The fence of a handshake like Dekker's, in which both sides pass through the same word: of two such read-modify-writes one
 * comes later in the word's modification order, and it sees all that the earlier one's side wrote before (release/acquire). */
RONDO_FUNCTION void rondo_fence(uint64_t *shared_word)
{
    __atomic_fetch_add(shared_word, 0, __ATOMIC_SEQ_CST);
}

/* Release orders each word by itself. */
RONDO_FUNCTION void rondo_publish_begin(void)
{
}
RONDO_FUNCTION void rondo_publish_device_begin(void)
{
}
RONDO_FUNCTION void rondo_publish_word(uint64_t *word, uint64_t value)
{
    rondo_store_release(word, value);
}

/* Adds to a counter that has one writer, and that other threads may read at any time. */
RONDO_FUNCTION void rondo_count(uint64_t *counter, uint64_t more)
{
    rondo_store_relaxed(counter, rondo_load_relaxed(counter) + more);
}

/* Have the processor fetch a line, which another core may have, while the caller goes on. Not by __builtin_prefetch: a function
 * that does nothing else is dropped by GCC, and x86-64's own of a line to be written fetches it to be read. */
RONDO_FUNCTION void rondo_fetch_to_read(const void *line)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetcht0 (%0)" : : "r"(line));
#elif defined(__aarch64__)
    __asm__ volatile("prfm pldl1keep, [%0]" : : "r"(line));
#else
    (void) line;
#endif
}
RONDO_FUNCTION void rondo_fetch_to_write(const void *line)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetchw (%0)" : : "r"(line));
#elif defined(__aarch64__)
    __asm__ volatile("prfm pstl1keep, [%0]" : : "r"(line));
#else
    (void) line;
#endif
}

/* To be called between two polls of a wait. Yields the core now and then, and returns 1 if it has: two cores may have to
 * carry many ranks, and the rank waited for may be the one that is not running. */
RONDO_FUNCTION int rondo_relax(uint64_t polls, uint32_t yield_mask)
{
    if ((polls & yield_mask) == yield_mask) {
        sched_yield();
        return 1;
    }
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
    return 0;
}

RONDO_FUNCTION uint64_t rondo_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec;
}

/* Ticks of the clock that waits are measured by: nanoseconds. */
RONDO_FUNCTION uint64_t rondo_ticks(void)
{
    return rondo_clock_ns();
}
#define RONDO_LOOK_TICKS 28 /* that a look at memory takes, with the pause after it, about */

#endif
#endif
