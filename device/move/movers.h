/*
 * The movers that are compiled by themselves and called: the rows of device/move/mover_table.h from RONDO_MOVER_RESOLVED on,
 * for slice operations whose addresses are all known and that lie in shared memory. They are most of the device's code, and
 * change least. By all worker threads of a block; what is stored is not published, which takes a barrier and a release by one
 * thread.
 */
#ifndef RONDO_DEVICE_MOVE_MOVERS_H
#define RONDO_DEVICE_MOVE_MOVERS_H

#if !defined(__CUDACC__)
#error "__device__ code: nvcc alone compiles it"
#endif

#include "device/abi/slice_operation.h"

/* Carries out a slice operation of the row move_vector. 0: it is of another row, and nothing has been done. */
extern __device__ int rondo_mover_run_vector(const struct rondo_slice_op *slice_op, uint32_t thread, uint32_t threads);

/* Carries out a slice operation by one of the rows after move_vector, codec or move_general, as rondo_move_general says. */
extern __device__ int rondo_mover_run_other(const struct rondo_slice_op *slice_op, uint32_t thread, uint32_t threads,
                                            uint64_t polls);

#endif
