/*
 * The threads and the shared memory of a CUDA block: what the host launches and the kernels assume. Plain constants.
 */
#ifndef RONDO_DEVICE_ABI_CUDA_BLOCK_H
#define RONDO_DEVICE_ABI_CUDA_BLOCK_H

#include "device/abi/structures.h"

#define RONDO_CUDA_WORKERS_MAX 480 /* threads of a block's worker group, at most */
#define RONDO_CUDA_CONTROL     32  /* threads of a block that are not workers: the leader's warp */

/* A block that moves data by bulk copies (device/cuda/move_tma.h). */
#define RONDO_TMA_THREADS 384                                 /* in all */
#define RONDO_TMA_CELLS   11                                  /* of RONDO_TMA_BYTES: all the shared memory that is left */
#define RONDO_TMA_SHARED  (RONDO_TMA_CELLS * RONDO_TMA_BYTES) /* bytes of dynamic shared memory, given at the launch */

#endif
