/* The movers, compiled by themselves: they are most of the device's code, and change least. */
#include "cuda_work.h"

#include "cuda_move.h"

__device__ int rondo_cuda_work(const struct rondo_piece *piece, uint32_t thread, uint32_t threads, uint64_t polls)
{
    return rondo_cuda_carry_out(piece, thread, threads, polls);
}
