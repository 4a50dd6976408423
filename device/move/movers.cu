/* The movers, compiled by themselves: they are most of the device's code, and change least. */
#include "device/move/movers.h"

#include "device/move/move_general.h"
#include "device/move/move_vector.h"

__device__ int rondo_cuda_work(const struct rondo_piece *piece, uint32_t thread, uint32_t threads, uint64_t polls)
{
    __builtin_assume(__isShared(piece));
    if (rondo_piece_is_coded(piece))
        return rondo_cuda_code(piece, thread, threads);
    return rondo_cuda_carry_out(piece, thread, threads, polls);
}

__device__ int rondo_cuda_work_straight(const struct rondo_piece *piece, uint32_t thread, uint32_t threads)
{
    __builtin_assume(__isShared(piece));
    return rondo_straight_carry_out(piece, thread, threads);
}
