/*
 * Narrow slice operations: struct rondo_slice_op with shorter arrays. The warp interpreter (device/engine/warp_interpreter.h)
 * has one for each warp, and saves shared memory.
 */
#ifndef RONDO_DEVICE_MOVE_NARROW_H
#define RONDO_DEVICE_MOVE_NARROW_H

#if !defined(__CUDACC__)
#error "__device__ code: nvcc alone compiles it"
#endif

#include "device/abi/cuda_access.h"
#include "device/abi/slice_operation.h"

#include <stddef.h>

/*
 * Bytes of a narrow slice operation. It has the members of struct rondo_slice_op up to its arrays, which follow one after the
 * other, as there. width, a constant, is the arrays' length.
 */
#define RONDO_NARROW_BYTES(width)                                                                                              \
    (offsetof(struct rondo_slice_op, source) + (width) * (2 * sizeof(char *) + 2 * sizeof(uint32_t)))
static_assert(RONDO_NARROW_BYTES(RONDO_REDUCE_SOURCES_MAX) == sizeof(struct rondo_slice_op),
              "the arrays come last, in this order");

/* Addresses of the members of a narrow slice operation, of the r-th remote or the s-th source. */
RONDO_CUDA_INLINE char **rondo_cuda_remote_of(uint32_t width, struct rondo_slice_op *slice_op, uint32_t r)
{
    return (char **) (slice_op->source + width) + r;
}
RONDO_CUDA_INLINE uint32_t *rondo_cuda_source_flag_of(uint32_t width, struct rondo_slice_op *slice_op, uint32_t s)
{
    return (uint32_t *) (slice_op->source + 2 * width) + s;
}
RONDO_CUDA_INLINE uint32_t *rondo_cuda_remote_flag_of(uint32_t width, struct rondo_slice_op *slice_op, uint32_t r)
{
    return (uint32_t *) (slice_op->source + 2 * width) + width + r;
}
/* Values of the members of a narrow slice operation. */
RONDO_CUDA_INLINE char *rondo_cuda_remote(uint32_t width, const struct rondo_slice_op *slice_op, uint32_t r)
{
    return *rondo_cuda_remote_of(width, (struct rondo_slice_op *) slice_op, r);
}
RONDO_CUDA_INLINE uint32_t rondo_cuda_source_flag(uint32_t width, const struct rondo_slice_op *slice_op, uint32_t s)
{
    return *rondo_cuda_source_flag_of(width, (struct rondo_slice_op *) slice_op, s);
}
RONDO_CUDA_INLINE uint32_t rondo_cuda_remote_flag(uint32_t width, const struct rondo_slice_op *slice_op, uint32_t r)
{
    return *rondo_cuda_remote_flag_of(width, (struct rondo_slice_op *) slice_op, r);
}

#endif
