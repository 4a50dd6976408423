/*
 * Folding vectors of any type in registers, by the element operators of device/reduce/operators.h. Every function here is
 * inlined with a constant type, operator and number of words, so that only one case of its switches is left.
 */
#ifndef RONDO_DEVICE_REDUCE_CUDA_ELEMENTS_H
#define RONDO_DEVICE_REDUCE_CUDA_ELEMENTS_H

#if !defined(__CUDACC__)
#error "__device__ code: nvcc alone compiles it"
#endif

#include "device/abi/cuda_access.h"
#include "device/reduce/operators.h"
#include "rondo.h"

/* Beside the operators: any of the three logical ones, and then which. */
#define RONDO_CUDA_LOGICAL RONDO_OP_COUNT

/* The accumulators of up to 16 bytes of elements: floats, one a word, for types that are reduced in float; else the elements as
 * they are stored. */
struct rondo_cuda_wide {
    uint32_t word[16];
};

#define RONDO_CUDA_CASE(OPERATOR, operator_, accumulator, type)                                                                \
    case RONDO_##OPERATOR:                                                                                                     \
        return rondo_##operator_##_##accumulator(a, b);
#define RONDO_CUDA_DEFINE_APPLY(OPERATORS, accumulator, type)                                                                  \
    RONDO_CUDA_INLINE type rondo_cuda_apply_##accumulator(int op, int which, type a, type b)                                   \
    {                                                                                                                          \
        if (op == RONDO_CUDA_LOGICAL)                                                                                          \
            return which == RONDO_LAND  ? rondo_land_##accumulator(a, b)                                                       \
                   : which == RONDO_LOR ? rondo_lor_##accumulator(a, b)                                                        \
                                        : rondo_lxor_##accumulator(a, b);                                                      \
        switch (op) {                                                                                                          \
            OPERATORS(RONDO_CUDA_CASE, accumulator, type)                                                                      \
        }                                                                                                                      \
        return a;                                                                                                              \
    }
#define RONDO_CUDA_DEFINE_INTEGER(accumulator, type, unused, unused_too)                                                       \
    RONDO_CUDA_DEFINE_APPLY(RONDO_INTEGER_OPERATORS, accumulator, type)
#define RONDO_CUDA_DEFINE_FLOATING(accumulator, type, unused, unused_too)                                                      \
    RONDO_CUDA_DEFINE_APPLY(RONDO_OPERATORS, accumulator, type)
RONDO_INTEGER_ACCUMULATORS(RONDO_CUDA_DEFINE_INTEGER)
RONDO_FLOATING_ACCUMULATORS(RONDO_CUDA_DEFINE_FLOATING)
#undef RONDO_CUDA_CASE
#undef RONDO_CUDA_DEFINE_APPLY
#undef RONDO_CUDA_DEFINE_INTEGER
#undef RONDO_CUDA_DEFINE_FLOATING

/* ---- to float and back, by instructions that give the bits of device/abi/types.h ---- */

/* Widening is exact; a NaN stays one, and its bits do not matter. */
RONDO_CUDA_INLINE float rondo_cuda_half_to_float(uint32_t half)
{
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"((uint16_t) half));
    return value;
}

/* The instruction's NaN is 0x7fff. */
RONDO_CUDA_INLINE uint32_t rondo_cuda_half_from_float(float value)
{
    uint16_t half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(value));
    return value == value ? half : RONDO_FLOAT16_NAN;
}

#if __CUDA_ARCH__ >= 890
/* Two 8-bit floats in the low 16 bits, as two halves. */
RONDO_CUDA_INLINE uint32_t rondo_cuda_halves_of_bytes(int type, uint32_t bytes)
{
    uint32_t halves;
    if (type == RONDO_FLOAT8E4M3)
        asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"((uint16_t) bytes));
    else
        asm("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(halves) : "h"((uint16_t) bytes));
    return halves;
}

/* The instructions stop at the largest finite value, whose successor is what these types overflow to. Values halfway to it
 * round to the even one of the two: 464 to 448, 61440 to infinity. The NaN of e5m2 is 0x7f to the instruction. */
RONDO_CUDA_INLINE uint32_t rondo_cuda_bytes_of_floats(int type, float low, float high)
{
    uint16_t bytes;
    if (type == RONDO_FLOAT8E4M3) {
        asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(bytes) : "f"(high), "f"(low));
        return bytes | (uint32_t) (fabsf(low) > 464) | (uint32_t) (fabsf(high) > 464) << 8;
    }
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(bytes) : "f"(high), "f"(low));
    uint32_t overflow = (uint32_t) (fabsf(low) >= 61440) | (uint32_t) (fabsf(high) >= 61440) << 8;
    uint32_t nan = (uint32_t) (low != low) | (uint32_t) (high != high) << 8;
    return bytes + overflow - nan;
}
#else
RONDO_CUDA_INLINE uint32_t rondo_cuda_halves_of_bytes(int type, uint32_t bytes)
{
    float low = rondo_float8e4m3_to_float((uint8_t) bytes), high = rondo_float8e4m3_to_float((uint8_t) (bytes >> 8));
    if (type == RONDO_FLOAT8E4M3)
        return rondo_cuda_half_from_float(low) | rondo_cuda_half_from_float(high) << 16;
    return (bytes & 0xff) << 8 | (bytes & 0xff00) << 16;
}

RONDO_CUDA_INLINE uint32_t rondo_cuda_bytes_of_floats(int type, float low, float high)
{
    if (type == RONDO_FLOAT8E4M3)
        return rondo_float8e4m3_from_float(low) | (uint32_t) rondo_float8e4m3_from_float(high) << 8;
    return rondo_float8e5m2_from_float(low) | (uint32_t) rondo_float8e5m2_from_float(high) << 8;
}
#endif

/* ---- vectors ---- */

/* Elements that a word of stored data holds, for types that are reduced in float; 0 for the others. */
RONDO_CUDA_INLINE int rondo_cuda_floats_a_word(int type)
{
    return type == RONDO_FLOAT16 || type == RONDO_BFLOAT16 ? 2 : type == RONDO_FLOAT8E4M3 || type == RONDO_FLOAT8E5M2 ? 4 : 0;
}

RONDO_CUDA_INLINE void rondo_cuda_widen(int type, int words, struct rondo_cuda_wide *wide, struct rondo_cuda_vector v)
{
#pragma unroll
    for (int i = 0; i < words; i++) {
        uint32_t word = v.word[i];
        if (type == RONDO_FLOAT16) {
            wide->word[2 * i] = rondo_float_bits(rondo_cuda_half_to_float(word));
            wide->word[2 * i + 1] = rondo_float_bits(rondo_cuda_half_to_float(word >> 16));
        } else if (type == RONDO_BFLOAT16) {
            wide->word[2 * i] = word << 16;
            wide->word[2 * i + 1] = word & 0xffff0000u;
        } else if (rondo_cuda_floats_a_word(type) == 4) {
            uint32_t low = rondo_cuda_halves_of_bytes(type, word), high = rondo_cuda_halves_of_bytes(type, word >> 16);
            wide->word[4 * i] = rondo_float_bits(rondo_cuda_half_to_float(low));
            wide->word[4 * i + 1] = rondo_float_bits(rondo_cuda_half_to_float(low >> 16));
            wide->word[4 * i + 2] = rondo_float_bits(rondo_cuda_half_to_float(high));
            wide->word[4 * i + 3] = rondo_float_bits(rondo_cuda_half_to_float(high >> 16));
        } else {
            wide->word[i] = word;
        }
    }
}

RONDO_CUDA_INLINE struct rondo_cuda_vector rondo_cuda_narrow(int type, int words, const struct rondo_cuda_wide *wide)
{
    struct rondo_cuda_vector v = {{0, 0, 0, 0}};
#pragma unroll
    for (int i = 0; i < words; i++) {
        const uint32_t *from = wide->word + rondo_cuda_floats_a_word(type) * i;
        if (type == RONDO_FLOAT16)
            v.word[i] = rondo_cuda_half_from_float(rondo_float_of_bits(from[0])) |
                        rondo_cuda_half_from_float(rondo_float_of_bits(from[1])) << 16;
        else if (type == RONDO_BFLOAT16)
            v.word[i] = rondo_bfloat16_from_float(rondo_float_of_bits(from[0])) |
                        (uint32_t) rondo_bfloat16_from_float(rondo_float_of_bits(from[1])) << 16;
        else if (rondo_cuda_floats_a_word(type) == 4)
            v.word[i] = rondo_cuda_bytes_of_floats(type, rondo_float_of_bits(from[0]), rondo_float_of_bits(from[1])) |
                        rondo_cuda_bytes_of_floats(type, rondo_float_of_bits(from[2]), rondo_float_of_bits(from[3])) << 16;
        else
            v.word[i] = wide->word[i];
    }
    return v;
}

/* Four 8-bit integers at once. */
RONDO_CUDA_INLINE uint32_t rondo_cuda_combine_bytes(int type, int op, int which, uint32_t a, uint32_t b)
{
    uint32_t result = 0;
    if (op == RONDO_SUM)
        return __vadd4(a, b);
    if (op == RONDO_MIN)
        return type == RONDO_INT8 ? __vmins4(a, b) : __vminu4(a, b);
    if (op == RONDO_MAX)
        return type == RONDO_INT8 ? __vmaxs4(a, b) : __vmaxu4(a, b);
    if (op == RONDO_CUDA_LOGICAL) {
        uint32_t x = __vsetne4(a, 0), y = __vsetne4(b, 0);
        return which == RONDO_LAND ? x & y : which == RONDO_LOR ? x | y : x ^ y;
    }
#pragma unroll
    for (int shift = 0; shift < 32; shift += 8) {
        uint8_t x = (uint8_t) (a >> shift), y = (uint8_t) (b >> shift);
        if (type == RONDO_INT8)
            x = (uint8_t) rondo_cuda_apply_int8(op, which, (int8_t) x, (int8_t) y);
        else
            x = rondo_cuda_apply_uint8(op, which, x, y);
        result |= (uint32_t) x << shift;
    }
    return result;
}

/* Two 16-bit integers at once. */
RONDO_CUDA_INLINE uint32_t rondo_cuda_combine_halves(int type, int op, int which, uint32_t a, uint32_t b)
{
    if (op == RONDO_SUM)
        return __vadd2(a, b);
    if (op == RONDO_MIN)
        return type == RONDO_INT16 ? __vmins2(a, b) : __vminu2(a, b);
    if (op == RONDO_MAX)
        return type == RONDO_INT16 ? __vmaxs2(a, b) : __vmaxu2(a, b);
    if (op == RONDO_CUDA_LOGICAL) {
        uint32_t x = __vsetne2(a, 0), y = __vsetne2(b, 0);
        return which == RONDO_LAND ? x & y : which == RONDO_LOR ? x | y : x ^ y;
    }
    uint32_t result = 0;
#pragma unroll
    for (int shift = 0; shift < 32; shift += 16) {
        uint16_t x = (uint16_t) (a >> shift), y = (uint16_t) (b >> shift);
        if (type == RONDO_INT16)
            x = (uint16_t) rondo_cuda_apply_int16(op, which, (int16_t) x, (int16_t) y);
        else
            x = rondo_cuda_apply_uint16(op, which, x, y);
        result |= (uint32_t) x << shift;
    }
    return result;
}

#define RONDO_CUDA_PAIR(words, i) ((uint64_t) (words)[(i) + 1] << 32 | (words)[i])
#define RONDO_CUDA_SET_PAIR(words, i, value)                                                                                   \
    do {                                                                                                                       \
        uint64_t pair_ = (value);                                                                                              \
        (words)[i] = (uint32_t) pair_;                                                                                         \
        (words)[(i) + 1] = (uint32_t) (pair_ >> 32);                                                                           \
    } while (0)

RONDO_CUDA_INLINE uint64_t rondo_cuda_combine_pair(int type, int op, int which, uint64_t a, uint64_t b)
{
    if (type == RONDO_INT64)
        return (uint64_t) rondo_cuda_apply_int64(op, which, (int64_t) a, (int64_t) b);
    if (type == RONDO_UINT64)
        return rondo_cuda_apply_uint64(op, which, a, b);
    return rondo_double_bits(rondo_cuda_apply_double(op, which, rondo_double_of_bits(a), rondo_double_of_bits(b)));
}

RONDO_CUDA_INLINE uint32_t rondo_cuda_combine_word(int type, int op, int which, uint32_t a, uint32_t b)
{
    if (op == RONDO_BAND || op == RONDO_BOR || op == RONDO_BXOR) /* of any type */
        return rondo_cuda_apply_uint32(op, which, a, b);
    if (type == RONDO_INT8 || type == RONDO_UINT8)
        return rondo_cuda_combine_bytes(type, op, which, a, b);
    if (type == RONDO_INT16 || type == RONDO_UINT16)
        return rondo_cuda_combine_halves(type, op, which, a, b);
    if (type == RONDO_INT32)
        return (uint32_t) rondo_cuda_apply_int32(op, which, (int32_t) a, (int32_t) b);
    if (type == RONDO_UINT32)
        return rondo_cuda_apply_uint32(op, which, a, b);
    return rondo_float_bits(rondo_cuda_apply_float(op, which, rondo_float_of_bits(a), rondo_float_of_bits(b)));
}

RONDO_CUDA_INLINE int rondo_cuda_is_pair(int type)
{
    return type == RONDO_INT64 || type == RONDO_UINT64 || type == RONDO_DOUBLE;
}

/* The words of accumulators that belong to so many words of stored data. */
RONDO_CUDA_INLINE int rondo_cuda_wide_words(int type, int words)
{
    return rondo_cuda_floats_a_word(type) ? rondo_cuda_floats_a_word(type) * words : words;
}

RONDO_CUDA_INLINE void rondo_cuda_combine(int type, int op, int which, int words, struct rondo_cuda_wide *wide,
                                          struct rondo_cuda_vector v)
{
    struct rondo_cuda_wide other;
    rondo_cuda_widen(type, words, &other, v);
#pragma unroll
    for (int i = 0; i < rondo_cuda_wide_words(type, words); i += rondo_cuda_is_pair(type) ? 2 : 1) {
        if (rondo_cuda_is_pair(type))
            RONDO_CUDA_SET_PAIR(
                wide->word, i,
                rondo_cuda_combine_pair(type, op, which, RONDO_CUDA_PAIR(wide->word, i), RONDO_CUDA_PAIR(other.word, i)));
        else
            wide->word[i] = rondo_cuda_combine_word(type, op, which, wide->word[i], other.word[i]);
    }
}

/* Called, not inlined: divisions of integers are long. */
RONDO_CUDA_CALLED uint32_t rondo_cuda_mean_bytes_signed(uint32_t sums, int divisor)
{
    uint32_t result = 0;
#pragma unroll 1
    for (int shift = 0; shift < 32; shift += 8)
        result |= (uint32_t) (uint8_t) rondo_mean_int8((int8_t) (sums >> shift), divisor) << shift;
    return result;
}
RONDO_CUDA_CALLED uint32_t rondo_cuda_mean_bytes_unsigned(uint32_t sums, int divisor)
{
    uint32_t result = 0;
#pragma unroll 1
    for (int shift = 0; shift < 32; shift += 8)
        result |= (uint32_t) rondo_mean_uint8((uint8_t) (sums >> shift), divisor) << shift;
    return result;
}

RONDO_CUDA_CALLED uint32_t rondo_cuda_mean_halves_signed(uint32_t sums, int divisor)
{
    uint32_t low = (uint16_t) rondo_mean_int16((int16_t) sums, divisor);
    return (uint32_t) (uint16_t) rondo_mean_int16((int16_t) (sums >> 16), divisor) << 16 | low;
}
RONDO_CUDA_CALLED uint32_t rondo_cuda_mean_halves_unsigned(uint32_t sums, int divisor)
{
    uint32_t low = rondo_mean_uint16((uint16_t) sums, divisor);
    return (uint32_t) rondo_mean_uint16((uint16_t) (sums >> 16), divisor) << 16 | low;
}

RONDO_CUDA_INLINE uint32_t rondo_cuda_mean_word(int type, uint32_t sum, int divisor)
{
    if (type == RONDO_INT8)
        return rondo_cuda_mean_bytes_signed(sum, divisor);
    if (type == RONDO_UINT8)
        return rondo_cuda_mean_bytes_unsigned(sum, divisor);
    if (type == RONDO_INT16)
        return rondo_cuda_mean_halves_signed(sum, divisor);
    if (type == RONDO_UINT16)
        return rondo_cuda_mean_halves_unsigned(sum, divisor);
    if (type == RONDO_INT32)
        return (uint32_t) rondo_mean_int32((int32_t) sum, divisor);
    if (type == RONDO_UINT32)
        return rondo_mean_uint32(sum, divisor);
    return rondo_float_bits(rondo_mean_float(rondo_float_of_bits(sum), divisor));
}

RONDO_CUDA_INLINE uint64_t rondo_cuda_mean_pair(int type, uint64_t sum, int divisor)
{
    if (type == RONDO_INT64)
        return (uint64_t) rondo_mean_int64((int64_t) sum, divisor);
    if (type == RONDO_UINT64)
        return rondo_mean_uint64(sum, divisor);
    return rondo_double_bits(rondo_mean_double(rondo_double_of_bits(sum), divisor));
}

RONDO_CUDA_INLINE void rondo_cuda_divide(int type, int words, struct rondo_cuda_wide *wide, int divisor)
{
#pragma unroll
    for (int i = 0; i < rondo_cuda_wide_words(type, words); i += rondo_cuda_is_pair(type) ? 2 : 1) {
        if (rondo_cuda_is_pair(type))
            RONDO_CUDA_SET_PAIR(wide->word, i, rondo_cuda_mean_pair(type, RONDO_CUDA_PAIR(wide->word, i), divisor));
        else
            wide->word[i] = rondo_cuda_mean_word(type, wide->word[i], divisor);
    }
}

#endif
