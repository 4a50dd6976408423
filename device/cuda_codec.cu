/* Pieces whose slots hold ZFP streams, compiled by themselves. */
#include "cuda_work.h"

#include "cuda_codec.h"

__device__ int rondo_cuda_code(const struct rondo_piece *piece, uint32_t thread, uint32_t threads)
{
    return rondo_codec_carry_out_part(piece, thread, threads);
}
