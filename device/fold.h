/*
 * Reduction and copying of element vectors on the host device. The element operators themselves are single source
 * (device/operators.h), so that both devices give the same bits.
 */
#ifndef RONDO_DEVICE_FOLD_H
#define RONDO_DEVICE_FOLD_H

#include "rondo.h"
#include <stddef.h>

/*
 * dst[d][i] = src[0][i] op src[1][i] op ... , i < count, d < destinations, folded from left to right; with one source a copy.
 * average > 0: the results are then divided by it (the last step of RONDO_AVG, which otherwise sums).
 * 16- and 8-bit floats are folded in float and rounded once (nearest even; float8e4m3 and e5m2 as OCP says: e4m3 saturates to
 * NaN, e5m2 overflows to infinity).
 * Pointers are aligned to the element. A destination may be the same as a source, but must not overlap one otherwise.
 * destinations 1 to 64, sources 1 to 64. Streams large copies past the cache when streaming is not 0 (a hint).
 */
void rondo_fold(void *const *dst, int destinations, const void *const *src, int sources, size_t count, rondo_datatype_t type,
                rondo_op_t op, int average, int streaming);

#endif
