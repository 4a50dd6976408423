/*
 * The loops under rondo_zfp_encode and _decode: one table per instruction set, all from device/codec/zfp_kernels.c and all
 * giving the same bits. Private to device/ and its tests.
 */
#ifndef RONDO_DEVICE_CODEC_ZFP_KERNELS_H
#define RONDO_DEVICE_CODEC_ZFP_KERNELS_H

#include <stddef.h>
#include <stdint.h>

enum { RONDO_ZFP_GROUP = 16 }; /* blocks coded together: rate words of the stream exactly */

/* Streams are aligned to 8 bytes, values to their type; a group of floats is 64 values. */
struct rondo_zfp_kernels {
    const char *name;
    void (*encode_float)(uint64_t *stream, const float *values, size_t groups, uint32_t rate);
    void (*decode_float)(float *values, const uint64_t *stream, size_t groups, uint32_t rate);
    /* Encodes, and gives what a reader will decode; cheaper than decoding it. */
    void (*round_float)(uint64_t *stream, float *rounded, const float *values, size_t groups, uint32_t rate);
    void (*encode_double)(uint64_t *stream, const double *values, size_t groups, uint32_t rate);
    void (*decode_double)(double *values, const uint64_t *stream, size_t groups, uint32_t rate);
    void (*round_double)(uint64_t *stream, double *rounded, const double *values, size_t groups, uint32_t rate);
};

extern const struct rondo_zfp_kernels rondo_zfp_kernels_baseline;
#ifdef RONDO_VECTOR_AVX2
extern const struct rondo_zfp_kernels rondo_zfp_kernels_avx2;
#endif
#ifdef RONDO_VECTOR_AVX512
extern const struct rondo_zfp_kernels rondo_zfp_kernels_avx512;
#endif

/* The i-th table that this build has and this machine can run, fastest last; NULL past the end. */
const struct rondo_zfp_kernels *rondo_zfp_kernels_at(int i);
/* Makes rondo_zfp_encode and _decode use a table (NULL: the fastest again), for tests and measurements. */
void rondo_zfp_force(const struct rondo_zfp_kernels *kernels);

#endif
