/*
 * The loops of reduce_kernels.h, compiled once per instruction set with RONDO_VECTOR_VARIANT naming it (the Makefile has the
 * flags). Loops are plain C for the compiler to vectorize; only what it cannot express is written with intrinsics: stores past
 * the cache and the processor's own float16 conversion. Relies on -O3 and -ffp-contract=off.
 */
#include "device/reduce/reduce_kernels.h"
#include "device/reduce/host_operators.h"
#include "device/reduce/operators.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#ifndef RONDO_VECTOR_VARIANT
#define RONDO_VECTOR_VARIANT baseline
#endif

/* Stores a line past the cache at an aligned address. */
#if defined(__AVX512F__)
static inline void store_line(void *dst, const void *src)
{
    _mm512_stream_si512(dst, _mm512_loadu_si512(src));
}
#elif defined(__AVX__)
static inline void store_line(void *dst, const void *src)
{
    __m256i *to = dst;
    const __m256i_u *from = src;
    __m256i low = _mm256_loadu_si256(from), high = _mm256_loadu_si256(from + 1);
    _mm256_stream_si256(to, low);
    _mm256_stream_si256(to + 1, high);
}
#elif defined(__SSE2__)
static inline void store_line(void *dst, const void *src)
{
    __m128i *to = dst;
    const __m128i_u *from = src;
    for (int i = 0; i < 4; i++)
        _mm_stream_si128(to + i, _mm_loadu_si128(from + i));
}
#else
static inline void store_line(void *dst, const void *src)
{
    memcpy(dst, src, RONDO_REDUCE_LINE);
}
#endif

/* No release orders stores past the cache; this does. */
static void fence(void)
{
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

/* A destination may be a source, element on element, which no restrict allows; iterations are independent all the same. */
#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#pragma clang diagnostic ignored "-Wpass-failed" /* unoptimized and sanitized builds stay scalar */
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

/* Sources as they came from a network are aligned to nothing. */
#define ANYWHERE __attribute__((aligned(1)))

#define DEFINE_REDUCE(OPERATOR, operator_, accumulator, type)                                                                  \
    static void operator_##_##accumulator(void *dst, const void *a, const void *b, size_t count)                               \
    {                                                                                                                          \
        type *to = dst;                                                                                                        \
        typedef type ANYWHERE anywhere;                                                                                        \
        const anywhere *x = a, *y = b;                                                                                         \
        INDEPENDENT for (size_t i = 0; i < count; i++) to[i] = rondo_##operator_##_##accumulator(x[i], y[i]);                  \
    }
#define DEFINE_DIVIDE(accumulator, type)                                                                                       \
    static void divide_##accumulator(void *values, int divisor, size_t count)                                                  \
    {                                                                                                                          \
        type *value = values;                                                                                                  \
        for (size_t i = 0; i < count; i++)                                                                                     \
            value[i] = rondo_mean_##accumulator(value[i], divisor);                                                            \
    }
#define DEFINE_INTEGER(accumulator, type, unused, unused_too)                                                                  \
    RONDO_INTEGER_OPERATORS(DEFINE_REDUCE, accumulator, type)                                                                  \
    DEFINE_DIVIDE(accumulator, type)
#define DEFINE_FLOATING(accumulator, type, unused, unused_too)                                                                 \
    RONDO_OPERATORS(DEFINE_REDUCE, accumulator, type)                                                                          \
    DEFINE_DIVIDE(accumulator, type)
#define DEFINE_COMPLEX(name, unused, unused_too) DEFINE_REDUCE(PROD, prod, name, struct rondo_##name)
#define DEFINE_PAIR(name, unused, unused_too)    RONDO_LOCATION_OPERATORS(DEFINE_REDUCE, name, struct rondo_##name)
RONDO_INTEGER_ACCUMULATORS(DEFINE_INTEGER)
RONDO_FLOATING_ACCUMULATORS(DEFINE_FLOATING)
RONDO_COMPLEX_TYPES(DEFINE_COMPLEX)
RONDO_OPERATORS(DEFINE_REDUCE, long_double, struct rondo_long_double)
DEFINE_DIVIDE(long_double, struct rondo_long_double)
RONDO_PAIR_TYPES(DEFINE_PAIR)

#define DEFINE_CONVERSIONS(name, type)                                                                                         \
    static void widen_##name(float *restrict dst, const void *restrict src, size_t count)                                      \
    {                                                                                                                          \
        typedef type ANYWHERE anywhere;                                                                                        \
        const anywhere *from = src;                                                                                            \
        size_t i = widen_##name##_vectors(dst, from, count);                                                                   \
        for (; i < count; i++)                                                                                                 \
            dst[i] = rondo_load_##name(from[i]);                                                                               \
    }                                                                                                                          \
    static void narrow_##name(void *restrict dst, const float *restrict src, size_t count)                                     \
    {                                                                                                                          \
        type *to = dst;                                                                                                        \
        size_t i = narrow_##name##_vectors(to, src, count);                                                                    \
        for (; i < count; i++)                                                                                                 \
            to[i] = rondo_store_##name(src[i]);                                                                                \
    }

/* By the processor: the leading whole vectors of a conversion; returns how many elements that is. Its NaNs keep their payload,
 * which does not show: every NaN to be narrowed is the one NaN, made by an operator. */
#if defined(__AVX512F__)
static size_t widen_float16_vectors(float *dst, const void *src, size_t count)
{
    const char *from = src;
    size_t i = 0;
    for (; i + 16 <= count; i += 16)
        _mm512_storeu_ps(dst + i, _mm512_cvtph_ps(_mm256_loadu_si256((const void *) (from + 2 * i))));
    return i;
}
static size_t narrow_float16_vectors(uint16_t *dst, const float *src, size_t count)
{
    size_t i = 0;
    for (; i + 16 <= count; i += 16)
        _mm256_storeu_si256((void *) (dst + i), _mm512_cvtps_ph(_mm512_loadu_ps(src + i), _MM_FROUND_TO_NEAREST_INT));
    return i;
}
#elif defined(__F16C__)
static size_t widen_float16_vectors(float *dst, const void *src, size_t count)
{
    const char *from = src;
    size_t i = 0;
    for (; i + 8 <= count; i += 8)
        _mm256_storeu_ps(dst + i, _mm256_cvtph_ps(_mm_loadu_si128((const void *) (from + 2 * i))));
    return i;
}
static size_t narrow_float16_vectors(uint16_t *dst, const float *src, size_t count)
{
    size_t i = 0;
    for (; i + 8 <= count; i += 8)
        _mm_storeu_si128((void *) (dst + i), _mm256_cvtps_ph(_mm256_loadu_ps(src + i), _MM_FROUND_TO_NEAREST_INT));
    return i;
}
#else
#define widen_float16_vectors(dst, src, count)  0
#define narrow_float16_vectors(dst, src, count) 0
#endif
#define widen_bfloat16_vectors(dst, src, count)    0
#define narrow_bfloat16_vectors(dst, src, count)   0
#define widen_float8e4m3_vectors(dst, src, count)  0
#define narrow_float8e4m3_vectors(dst, src, count) 0
#define widen_float8e5m2_vectors(dst, src, count)  0
#define narrow_float8e5m2_vectors(dst, src, count) 0
RONDO_CONVERTED_TYPES(DEFINE_CONVERSIONS)

/* The hot sums. A few lines are summed before they go past the cache, which leaves the vectorizing to the compiler (it unrolls
 * shorter loops instead). */
#define DEFINE_SUMS(accumulator, type, unused, unused_too)                                                                     \
    static void sum_twice_##accumulator(void *dst0, void *dst1, const void *a, const void *b, size_t count)                    \
    {                                                                                                                          \
        type *to = dst0, *also = dst1;                                                                                         \
        typedef type ANYWHERE anywhere;                                                                                        \
        const anywhere *x = a, *y = b;                                                                                         \
        INDEPENDENT for (size_t i = 0; i < count; i++)                                                                         \
        {                                                                                                                      \
            type sum = rondo_sum_##accumulator(x[i], y[i]);                                                                    \
            to[i] = sum;                                                                                                       \
            also[i] = sum;                                                                                                     \
        }                                                                                                                      \
    }                                                                                                                          \
    static void sum_streaming_##accumulator(void *dst, const void *a, const void *b, size_t count)                             \
    {                                                                                                                          \
        enum { BUNCH = 4 * RONDO_REDUCE_LINE / sizeof(type) };                                                                 \
        type *to = dst;                                                                                                        \
        typedef type ANYWHERE anywhere;                                                                                        \
        const anywhere *x = a, *y = b;                                                                                         \
        size_t i = 0;                                                                                                          \
        for (; i + BUNCH <= count; i += BUNCH) {                                                                               \
            _Alignas(RONDO_REDUCE_LINE) type sums[BUNCH];                                                                      \
            for (size_t j = 0; j < BUNCH; j++)                                                                                 \
                sums[j] = rondo_sum_##accumulator(x[i + j], y[i + j]);                                                         \
            for (size_t j = 0; j < BUNCH; j += BUNCH / 4)                                                                      \
                store_line(to + i + j, sums + j);                                                                              \
        }                                                                                                                      \
        for (; i < count; i++)                                                                                                 \
            to[i] = rondo_sum_##accumulator(x[i], y[i]);                                                                       \
    }
RONDO_INTEGER_ACCUMULATORS(DEFINE_SUMS)
RONDO_FLOATING_ACCUMULATORS(DEFINE_SUMS)

/* Whole lines go past the cache; what stands before and after them is stored as usual. */
static void copy_streaming(void *dst, const void *src, size_t bytes)
{
    char *to = dst;
    const char *from = src;
    size_t i = (size_t) (-(uintptr_t) to % RONDO_REDUCE_LINE);
    if (i > bytes)
        i = bytes;
    memcpy(to, from, i);
    for (; i + RONDO_REDUCE_LINE <= bytes; i += RONDO_REDUCE_LINE)
        store_line(to + i, from + i);
    memcpy(to + i, from + i, bytes - i);
}

#define JOIN(a, b)     a##b
#define TABLE(variant) JOIN(rondo_reduce_kernels_, variant)
#define QUOTE(text)    #text
#define NAME(variant)  QUOTE(variant)

#define FOLD(OPERATOR, operator_, accumulator, type) [RONDO_##OPERATOR] = operator_##_##accumulator,
#define ROW(OPERATORS, accumulator)                                                                                            \
    {                                                                                                                          \
        OPERATORS(FOLD, accumulator, )[RONDO_AVG] = sum_##accumulator                                                          \
    }
#define PAIR_ROW(name)                                                                                                         \
    {                                                                                                                          \
        RONDO_LOCATION_OPERATORS(FOLD, name, )                                                                                 \
    }
/* One entry for each type that is computed as it is, and for each of the others. */
#define EACH_DIRECT(kernel)                                                                                                    \
    [RONDO_INT8] = kernel##_int8, [RONDO_UINT8] = kernel##_uint8, [RONDO_INT16] = kernel##_int16,                              \
    [RONDO_UINT16] = kernel##_uint16, [RONDO_INT32] = kernel##_int32, [RONDO_UINT32] = kernel##_uint32,                        \
    [RONDO_INT64] = kernel##_int64, [RONDO_UINT64] = kernel##_uint64, [RONDO_FLOAT] = kernel##_float,                          \
    [RONDO_DOUBLE] = kernel##_double
#define EACH_CONVERTED(kernel)                                                                                                 \
    {                                                                                                                          \
        [RONDO_FLOAT16] = kernel##_float16, [RONDO_BFLOAT16] = kernel##_bfloat16, [RONDO_FLOAT8E4M3] = kernel##_float8e4m3,    \
        [RONDO_FLOAT8E5M2] = kernel##_float8e5m2                                                                               \
    }

const struct rondo_reduce_kernels TABLE(RONDO_VECTOR_VARIANT) = {
    .name = NAME(RONDO_VECTOR_VARIANT),
    .reduce = {[RONDO_INT8] = ROW(RONDO_INTEGER_OPERATORS, int8),
               [RONDO_UINT8] = ROW(RONDO_INTEGER_OPERATORS, uint8),
               [RONDO_INT16] = ROW(RONDO_INTEGER_OPERATORS, int16),
               [RONDO_UINT16] = ROW(RONDO_INTEGER_OPERATORS, uint16),
               [RONDO_INT32] = ROW(RONDO_INTEGER_OPERATORS, int32),
               [RONDO_UINT32] = ROW(RONDO_INTEGER_OPERATORS, uint32),
               [RONDO_INT64] = ROW(RONDO_INTEGER_OPERATORS, int64),
               [RONDO_UINT64] = ROW(RONDO_INTEGER_OPERATORS, uint64),
               [RONDO_FLOAT] = ROW(RONDO_OPERATORS, float),
               [RONDO_DOUBLE] = ROW(RONDO_OPERATORS, double),
               [RONDO_COMPLEX_FLOAT] = {[RONDO_PROD] = prod_complex_float},
               [RONDO_COMPLEX_DOUBLE] = {[RONDO_PROD] = prod_complex_double},
               [RONDO_LONG_DOUBLE] = ROW(RONDO_OPERATORS, long_double),
               [RONDO_FLOAT_INT] = PAIR_ROW(float_int),
               [RONDO_DOUBLE_INT] = PAIR_ROW(double_int),
               [RONDO_LONG_INT] = PAIR_ROW(long_int),
               [RONDO_2INT] = PAIR_ROW(2int),
               [RONDO_SHORT_INT] = PAIR_ROW(short_int),
               [RONDO_LONG_DOUBLE_INT] = PAIR_ROW(long_double_int)},
    .sum_twice = {EACH_DIRECT(sum_twice)},
    .sum_streaming = {EACH_DIRECT(sum_streaming)},
    .divide = {EACH_DIRECT(divide), [RONDO_LONG_DOUBLE] = divide_long_double},
    .widen = EACH_CONVERTED(widen),
    .narrow = EACH_CONVERTED(narrow),
    .copy_streaming = copy_streaming,
    .fence = fence,
};
