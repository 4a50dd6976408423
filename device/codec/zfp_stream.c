/* See device/codec/zfp_stream.h. Picks the kernels for this processor once; codes itself what is left of a stream after whole
 * groups. */
#include "device/codec/zfp_stream.h"

#include "device/reduce/reduce_kernels.h"
#include "device/codec/zfp_kernels.h"

#include <assert.h>
#include <stdatomic.h>

/* Written with the same value by every thread that finds it unset, so relaxed order will do. */
static _Atomic(const struct rondo_zfp_kernels *) chosen;

const struct rondo_zfp_kernels *rondo_zfp_kernels_at(int i)
{
    static const struct rondo_zfp_kernels *const built[] = {
        &rondo_zfp_kernels_baseline,
#ifdef RONDO_VECTOR_AVX2
        &rondo_zfp_kernels_avx2,
#endif
#ifdef RONDO_VECTOR_AVX512
        &rondo_zfp_kernels_avx512,
#endif
    };
    /* The reduce's table of the same name knows whether this machine has the instructions. */
    const struct rondo_reduce_kernels *runs = i >= 0 ? rondo_reduce_kernels_at(i) : NULL;
    for (size_t b = 0; runs != NULL && b < sizeof(built) / sizeof(*built); b++)
        if (strcmp(built[b]->name, runs->name) == 0)
            return built[b];
    return NULL;
}

void rondo_zfp_force(const struct rondo_zfp_kernels *kernels)
{
    atomic_store_explicit(&chosen, kernels, memory_order_relaxed);
}

static const struct rondo_zfp_kernels *kernels_in_use(void)
{
    const struct rondo_zfp_kernels *kernels = atomic_load_explicit(&chosen, memory_order_relaxed);
    if (kernels == NULL) {
        for (int i = 0; rondo_zfp_kernels_at(i) != NULL; i++)
            kernels = rondo_zfp_kernels_at(i);
        atomic_store_explicit(&chosen, kernels, memory_order_relaxed);
    }
    return kernels;
}

/* The groups that are not whole: at most one, padded to one by zeros, whose stream is cut to the blocks there are. A block that
 * is not full repeats its values: 1 as a a a a, 2 as a b b a, 3 as a b c a. */
#define DEFINE_REST(name, type)                                                                                                \
    static void encode_rest_##name(const struct rondo_zfp_kernels *kernels, uint64_t *stream, const type *values,              \
                                   size_t count, uint32_t rate)                                                                \
    {                                                                                                                          \
        type padded[RONDO_ZFP_GROUP * RONDO_ZFP_VALUES] = {0};                                                                 \
        uint64_t whole[RONDO_ZFP_RATE_DOUBLE];                                                                                 \
        memcpy(padded, values, count * sizeof(type));                                                                          \
        type *block = padded + count / RONDO_ZFP_VALUES * RONDO_ZFP_VALUES;                                                    \
        switch (count % RONDO_ZFP_VALUES) {                                                                                    \
        case 1:                                                                                                                \
            block[1] = block[2] = block[3] = block[0];                                                                         \
            break;                                                                                                             \
        case 2:                                                                                                                \
            block[2] = block[1];                                                                                               \
            block[3] = block[0];                                                                                               \
            break;                                                                                                             \
        case 3:                                                                                                                \
            block[3] = block[0];                                                                                               \
            break;                                                                                                             \
        default:                                                                                                               \
            break;                                                                                                             \
        }                                                                                                                      \
        kernels->encode_##name(whole, padded, 1, rate);                                                                        \
        memcpy(stream, whole, rondo_zfp_bytes(count, rate));                                                                   \
    }                                                                                                                          \
    static void decode_rest_##name(const struct rondo_zfp_kernels *kernels, type *values, const uint64_t *stream,              \
                                   size_t count, uint32_t rate)                                                                \
    {                                                                                                                          \
        type padded[RONDO_ZFP_GROUP * RONDO_ZFP_VALUES];                                                                       \
        uint64_t whole[RONDO_ZFP_RATE_DOUBLE] = {0};                                                                           \
        memcpy(whole, stream, rondo_zfp_bytes(count, rate));                                                                   \
        kernels->decode_##name(padded, whole, 1, rate);                                                                        \
        memcpy(values, padded, count * sizeof(type));                                                                          \
    }                                                                                                                          \
    static void encode_all_##name(uint64_t *stream, const type *values, size_t count, uint32_t rate)                           \
    {                                                                                                                          \
        const struct rondo_zfp_kernels *kernels = kernels_in_use();                                                            \
        size_t groups = count / (RONDO_ZFP_GROUP * RONDO_ZFP_VALUES), done = groups * RONDO_ZFP_GROUP * RONDO_ZFP_VALUES;      \
        kernels->encode_##name(stream, values, groups, rate);                                                                  \
        if (done < count)                                                                                                      \
            encode_rest_##name(kernels, stream + groups * rate, values + done, count - done, rate);                            \
    }                                                                                                                          \
    static void decode_all_##name(type *values, const uint64_t *stream, size_t count, uint32_t rate)                           \
    {                                                                                                                          \
        const struct rondo_zfp_kernels *kernels = kernels_in_use();                                                            \
        size_t groups = count / (RONDO_ZFP_GROUP * RONDO_ZFP_VALUES), done = groups * RONDO_ZFP_GROUP * RONDO_ZFP_VALUES;      \
        kernels->decode_##name(values, stream, groups, rate);                                                                  \
        if (done < count)                                                                                                      \
            decode_rest_##name(kernels, values + done, stream + groups * rate, count - done, rate);                            \
    }
#define DEFINE_ROUND(name, type)                                                                                               \
    static void round_all_##name(uint64_t *stream, type *rounded, const type *values, size_t count, uint32_t rate)             \
    {                                                                                                                          \
        const struct rondo_zfp_kernels *kernels = kernels_in_use();                                                            \
        size_t groups = count / (RONDO_ZFP_GROUP * RONDO_ZFP_VALUES), done = groups * RONDO_ZFP_GROUP * RONDO_ZFP_VALUES;      \
        kernels->round_##name(stream, rounded, values, groups, rate);                                                          \
        if (done < count) {                                                                                                    \
            encode_rest_##name(kernels, stream + groups * rate, values + done, count - done, rate);                            \
            decode_rest_##name(kernels, rounded + done, stream + groups * rate, count - done, rate);                           \
        }                                                                                                                      \
    }
DEFINE_REST(float, float)
DEFINE_REST(double, double)
DEFINE_ROUND(float, float)
DEFINE_ROUND(double, double)

void rondo_zfp_encode(void *stream, const void *values, size_t count, uint32_t rate, rondo_datatype_t type)
{
    assert(rate >= RONDO_ZFP_RATE_MIN && rate <= (type == RONDO_DOUBLE ? RONDO_ZFP_RATE_DOUBLE : RONDO_ZFP_RATE_FLOAT));
    if (type == RONDO_DOUBLE)
        encode_all_double(stream, values, count, rate);
    else
        encode_all_float(stream, values, count, rate);
}

void rondo_zfp_decode(void *values, const void *stream, size_t count, uint32_t rate, rondo_datatype_t type)
{
    assert(rate >= RONDO_ZFP_RATE_MIN && rate <= (type == RONDO_DOUBLE ? RONDO_ZFP_RATE_DOUBLE : RONDO_ZFP_RATE_FLOAT));
    if (type == RONDO_DOUBLE)
        decode_all_double(values, stream, count, rate);
    else
        decode_all_float(values, stream, count, rate);
}

void rondo_zfp_round(void *stream, void *rounded, const void *values, size_t count, uint32_t rate, rondo_datatype_t type)
{
    assert(rate >= RONDO_ZFP_RATE_MIN && rate <= (type == RONDO_DOUBLE ? RONDO_ZFP_RATE_DOUBLE : RONDO_ZFP_RATE_FLOAT));
    if (type == RONDO_DOUBLE)
        round_all_double(stream, rounded, values, count, rate);
    else
        round_all_float(stream, rounded, values, count, rate);
}
