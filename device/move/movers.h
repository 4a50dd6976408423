/* What a CUDA block's worker threads do for its leader. */
#ifndef RONDO_DEVICE_MOVE_MOVERS_H
#define RONDO_DEVICE_MOVE_MOVERS_H

#include "device/abi/slice_operation.h"

/* Carries out a piece, as device/move/move_general.h's rondo_move_general says. */
extern __device__ int rondo_cuda_work(const struct rondo_slice_op *slice_op, uint32_t thread, uint32_t threads, uint64_t polls);

/* The same for a large plain piece that is usual, as device/move/move_vector.h says. 0: it is not, and nothing has been done.
 */
extern __device__ int rondo_cuda_work_vector(const struct rondo_slice_op *slice_op, uint32_t thread, uint32_t threads);

/* The same for a piece of streams, as device/codec/cuda_codec.h says; rondo_cuda_work leaves it those. */
extern __device__ int rondo_cuda_code(const struct rondo_slice_op *slice_op, uint32_t thread, uint32_t threads);

#endif
