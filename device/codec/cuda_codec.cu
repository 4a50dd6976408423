/* Pieces whose slots hold ZFP streams, compiled by themselves. */
#include "device/move/movers.h"

#include "device/codec/cuda_codec.h"

__device__ int rondo_cuda_code(const struct rondo_slice_op *slice_op, uint32_t thread, uint32_t threads)
{
    return rondo_codec_run_part(slice_op, thread, threads);
}
