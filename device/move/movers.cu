/* The movers, compiled by themselves: they are most of the device's code, and change least. */
#include "device/move/movers.h"

#include "device/move/move_general.h"
#include "device/move/move_vector.h"

__device__ int rondo_cuda_work(const struct rondo_slice_op *slice_op, uint32_t thread, uint32_t threads, uint64_t polls)
{
    __builtin_assume(__isShared(slice_op));
    if (rondo_slice_op_is_coded(slice_op))
        return rondo_cuda_code(slice_op, thread, threads);
    return rondo_move_general(slice_op, thread, threads, polls);
}

__device__ int rondo_cuda_work_vector(const struct rondo_slice_op *slice_op, uint32_t thread, uint32_t threads)
{
    __builtin_assume(__isShared(slice_op));
    return rondo_move_vector(slice_op, thread, threads);
}
