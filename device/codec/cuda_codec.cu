/* Pieces whose slots hold ZFP streams, compiled by themselves. */
#include "device/move/movers.h"

#include "device/codec/cuda_codec.h"

__device__ int rondo_cuda_code(const struct rondo_piece *piece, uint32_t thread, uint32_t threads)
{
    return rondo_codec_carry_out_part(piece, thread, threads);
}
