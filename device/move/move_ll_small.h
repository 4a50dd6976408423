/*
 * Slice operations with LL packets, of the types and the operator that are usual, inlined into the kernels. The functions that
 * carry out all the others (device/move/move_general.h) are called, and what that costs is more than a small slice operation
 * takes.
 */
#ifndef RONDO_DEVICE_MOVE_MOVE_LL_SMALL_H
#define RONDO_DEVICE_MOVE_MOVE_LL_SMALL_H

#if !defined(__CUDACC__)
#error "__device__ code: nvcc alone compiles it"
#endif

#include "device/abi/cuda_access.h"
#include "device/reduce/cuda_elements.h"
#include "device/abi/slice_operation.h"
#include "device/move/move_ll.h"
#include "device/move/mover_table.h"

/* The packet that begins at offset: its bytes of data, 0 past the last. */
RONDO_CUDA_INLINE uint32_t rondo_cuda_small_bytes(uint64_t bytes, uint64_t offset)
{
    return offset >= bytes ? 0 : bytes - offset < 8 ? (uint32_t) (bytes - offset) : 8;
}

RONDO_CUDA_INLINE struct rondo_cuda_vector rondo_cuda_small_sum(int type, const struct rondo_cuda_vector *loaded,
                                                                uint32_t sources)
{
    struct rondo_cuda_wide wide;
    rondo_cuda_widen(type, 2, &wide, loaded[0]);
#pragma unroll
    for (uint32_t s = 1; s < RONDO_FLAGGED_SOURCES; s++)
        if (s < sources)
            rondo_cuda_combine(type, RONDO_SUM, RONDO_SUM, 2, &wide, loaded[s]);
    return rondo_cuda_narrow(type, 2, &wide);
}

/* Loads a packet of every source that is LL; 0: some are not there. */
RONDO_CUDA_INLINE int rondo_cuda_small_receive(const struct rondo_slice_op *slice_op, uint64_t offset,
                                               struct rondo_cuda_vector *loaded)
{
    const uint32_t packed = (uint32_t) slice_op->ll_sources;
    int here = 1;
#pragma unroll
    for (uint32_t s = 0; s < RONDO_FLAGGED_SOURCES; s++)
        if (packed >> s & 1)
            here &= rondo_cuda_load_packet(&loaded[s], slice_op->source[s] + 2 * offset, slice_op->source_flags[s]);
    return here;
}

/* Those that are not; an exchange sends them on. */
RONDO_CUDA_INLINE void rondo_cuda_small_read(const struct rondo_slice_op *slice_op, uint64_t offset, uint32_t bytes,
                                             int exchanges, const struct rondo_cuda_own *asked,
                                             struct rondo_cuda_vector *loaded)
{
    const uint32_t packed = (uint32_t) slice_op->ll_sources, sources = slice_op->sources, own = rondo_cuda_own_source(slice_op);
#pragma unroll
    for (uint32_t s = 0; s < RONDO_FLAGGED_SOURCES; s++)
        if (s < sources && !(packed >> s & 1)) {
            loaded[s] = s == own ? asked->packets[0] : rondo_cuda_load_half(slice_op->source[s] + offset, bytes);
            for (uint32_t r = 0; exchanges && r < slice_op->remotes; r++)
                rondo_cuda_store_packet(slice_op->remote[r] + 2 * offset, loaded[s], slice_op->remote_flags[r]);
        }
}

RONDO_CUDA_INLINE void rondo_cuda_small_deliver(const struct rondo_slice_op *slice_op, uint64_t offset, uint32_t bytes,
                                                const struct rondo_cuda_vector *loaded)
{
    const uint32_t sources = slice_op->sources;
    struct rondo_cuda_vector result = loaded[0];
    if (sources > 1)
        switch (slice_op->type) {
        case RONDO_FLOAT:
            result = rondo_cuda_small_sum(RONDO_FLOAT, loaded, sources);
            break;
        case RONDO_FLOAT16:
            result = rondo_cuda_small_sum(RONDO_FLOAT16, loaded, sources);
            break;
        case RONDO_BFLOAT16:
            result = rondo_cuda_small_sum(RONDO_BFLOAT16, loaded, sources);
            break;
        default:
            result = rondo_cuda_small_sum(RONDO_UINT32, loaded, sources);
            break;
        }
    if (slice_op->local != NULL)
        rondo_cuda_store_half(slice_op->local + offset, result, bytes);
    for (uint32_t r = 0; !slice_op->exchanges && r < slice_op->remotes; r++)
        if (slice_op->ll_remotes >> r & 1)
            rondo_cuda_store_packet(slice_op->remote[r] + 2 * offset, result, slice_op->remote_flags[r]);
        else
            rondo_cuda_store_half(slice_op->remote[r] + offset, result, bytes);
}

/* One packet a thread at most: it stays in registers. */
RONDO_CUDA_INLINE int rondo_move_ll_small(const struct rondo_slice_op *slice_op, uint32_t thread, uint32_t threads,
                                          uint64_t polls, const struct rondo_cuda_own *asked)
{
    const uint64_t bytes = slice_op->count * slice_op->element_bytes, offset = thread * 8;
    const uint32_t mine = rondo_cuda_small_bytes(bytes, offset);
    struct rondo_cuda_vector loaded[RONDO_FLAGGED_SOURCES];
    int here = 1;
    if (mine > 0) {
        rondo_cuda_small_read(slice_op, offset, mine, slice_op->exchanges, asked, loaded);
        do
            here = rondo_cuda_small_receive(slice_op, offset, loaded);
        while (!here && polls-- > 0);
    }
    /* Nothing is stored before all is there; one warp agrees faster, and is the one that answers. */
    if (slice_op->ll_sources != 0)
        here = bytes <= RONDO_CUDA_WARP * 8 ? __all_sync(RONDO_CUDA_WHOLE_WARP, here) : rondo_cuda_all_agree(here, threads);
    if (here && mine > 0)
        rondo_cuda_small_deliver(slice_op, offset, mine, loaded);
    return here;
}

#endif
