/*
 * The GPU's mover of slice operations whose slots hold ZFP streams, compiled by itself and called.
 */
#ifndef RONDO_DEVICE_CODEC_MOVE_CODEC_H
#define RONDO_DEVICE_CODEC_MOVE_CODEC_H

#if !defined(__CUDACC__)
#error "__device__ code: nvcc alone compiles it"
#endif

#include "device/abi/slice_operation.h"

/* Carries out a slice operation in shared memory that rondo_slice_op_is_coded, by all worker threads of a block, to the bits
 * that rondo_codec_run gives on the host. Returns 1. What is stored is not published. */
extern __device__ int rondo_move_codec(const struct rondo_slice_op *slice_op, uint32_t thread, uint32_t threads);

#endif
