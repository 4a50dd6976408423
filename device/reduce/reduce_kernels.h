/*
 * The vector kernels under rondo_reduce_elements: one table of loops per instruction set, all from reduce_kernels.c and all
 * giving the same bits. Private to device/ and its tests.
 */
#ifndef RONDO_DEVICE_REDUCE_REDUCE_KERNELS_H
#define RONDO_DEVICE_REDUCE_REDUCE_KERNELS_H

#include "rondo.h"
#include <stddef.h>

enum { RONDO_REDUCE_LINE = 64 }; /* bytes of a cache line */

/* All pointers are aligned to their elements at least. A destination may equal a source, and overlaps none otherwise. */
struct rondo_reduce_kernels {
    const char *name;
    /* dst[i] = a[i] op b[i]; NULL for types that are computed in float, where the operator does not exist, and for what
     * lib/call/elements.c has combined as elements of another type. */
    void (*reduce[RONDO_DATATYPE_COUNT][RONDO_OP_COUNT])(void *dst, const void *a, const void *b, size_t count);
    /* dst[i] = a[i] + b[i], the hot ones, NULL as above and for types that the host alone combines: to two destinations at
     * once; and past the cache, with dst aligned to RONDO_REDUCE_LINE and the caller owing a fence before it publishes the
     * result. */
    void (*sum_twice[RONDO_DATATYPE_COUNT])(void *dst0, void *dst1, const void *a, const void *b, size_t count);
    void (*sum_streaming[RONDO_DATATYPE_COUNT])(void *dst, const void *a, const void *b, size_t count);
    /* values[i] /= divisor; NULL for types that are computed in float, or have no mean. */
    void (*divide[RONDO_DATATYPE_COUNT])(void *values, int divisor, size_t count);
    /* To float and back, rounding; NULL for types that are not computed in float. A NaN to narrow is the one NaN
     * (device/abi/types.h). */
    void (*widen[RONDO_DATATYPE_COUNT])(float *dst, const void *src, size_t count);
    void (*narrow[RONDO_DATATYPE_COUNT])(void *dst, const float *src, size_t count);
    /* Copies past the cache; any alignment, no overlap. The caller owes a fence. */
    void (*copy_streaming)(void *dst, const void *src, size_t bytes);
    void (*fence)(void);
};

extern const struct rondo_reduce_kernels rondo_reduce_kernels_baseline;
#ifdef RONDO_VECTOR_AVX2
extern const struct rondo_reduce_kernels rondo_reduce_kernels_avx2;
#endif
#ifdef RONDO_VECTOR_AVX512
extern const struct rondo_reduce_kernels rondo_reduce_kernels_avx512;
#endif

/* The i-th table that this build has and this machine can run, fastest last; NULL past the end. */
const struct rondo_reduce_kernels *rondo_reduce_kernels_at(int i);
/* Makes rondo_reduce_elements use a table (NULL: the fastest again), for tests and measurements; not while another thread
 * reduces. */
void rondo_reduce_force(const struct rondo_reduce_kernels *kernels);

#endif
