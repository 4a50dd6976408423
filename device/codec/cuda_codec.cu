/* See device/codec/move_codec.h. */
#include "device/codec/move_codec.h"

#include "device/codec/cuda_codec.h"

__device__ int rondo_move_codec(const struct rondo_slice_op *slice_op, uint32_t thread, uint32_t threads)
{
    return rondo_codec_run_part(slice_op, thread, threads);
}
