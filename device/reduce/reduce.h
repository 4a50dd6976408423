/*
 * Reduction and copying of element vectors on the host device. The element operators themselves are single source
 * (device/reduce/operators.h), so that both devices give the same bits.
 */
#ifndef RONDO_DEVICE_REDUCE_REDUCE_H
#define RONDO_DEVICE_REDUCE_REDUCE_H

#include "device/abi/slice_operation.h"
#include "rondo.h"

#include <stddef.h>

/* A reduction of element vectors. */
struct rondo_reduction {
    void *const *dst;
    const void *const *src;
    int destinations, sources; /* 1 to RONDO_REDUCE_SOURCES_MAX each */
    size_t count;              /* elements */
    rondo_datatype_t type;
    rondo_op_t op;
    const struct rondo_user_operator *user; /* NULL: type and op say how to combine; else it says, and they are not looked at */
    int average;                            /* greater than 0: the results are divided by it */
    int streaming;                          /* destination 0 will not be read soon: a hint */
};

/*
 * dst[d][i] = src[0][i] op src[1][i] op ... , i < count, d < destinations, reduced from left to right by the rules of
 * device/reduce/operators.h; with one source an exact copy, whatever the operator.
 * average > 0: the results are then divided by it (the last step of RONDO_AVG, which otherwise sums).
 * 16- and 8-bit floats are reduced in float and rounded once (nearest even; float8e4m3 and e5m2 as OCP says: e4m3 saturates to
 * NaN, e5m2 overflows to infinity).
 * An operator of the user is called from right to left, which is another association of the same order, and divides nothing.
 * Destinations are aligned to the element, sources to anything. A destination may be the same as a source, but must not overlap
 * one otherwise. destinations 1 to 64, sources 1 to 64. The operator exists for the type (bitwise ones do for integers only).
 * streaming not 0: a hint that destination 0 will not be read soon. From 16 KiB, and unless it is also a source, it is then
 * stored past the cache (the other destinations are not). It pays when the caller's whole result outgrows the last cache; the
 * slices in which the caller reduces it need not. All stores are ordered before any later release by the calling thread.
 */
void rondo_reduce_elements(const struct rondo_reduction *reduction);

/*
 * The same to destinations that other cores read and write (slots, the peers' buffers): each part is reduced into local (this
 * rank's own destination, besides the others; NULL: a scratch) and copied from there. A bulk copy replaces lines that another
 * core holds without fetching them first, which plain stores do. past: the destinations are stored past the caches
 * (device/move/store_policy.h); streaming is not looked at. Stores are ordered before any later release by the calling thread.
 */
void rondo_reduce_out(const struct rondo_reduction *reduction, void *local, int past);

/* The same with one source of so many bytes, which is copied. local may be src. */
void rondo_copy_out(void *const *dst, int destinations, void *local, const void *src, size_t bytes, int past);

/* To float and back, for the types that are reduced in it (16- and 8-bit floats); rounded as rondo_reduce_elements rounds.
 * Floats are copied. */
void rondo_widen(float *dst, const void *src, size_t count, rondo_datatype_t type);
void rondo_narrow(void *dst, const float *src, size_t count, rondo_datatype_t type);

#endif
