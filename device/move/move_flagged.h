/*
 * Slice operations with flags, of the types and the operator that are usual: carries out what rondo_mover_choose has chosen of
 * the rows before RONDO_MOVER_RESOLVED. Inlined into the kernels, for a call costs more than a small slice operation takes.
 */
#ifndef RONDO_DEVICE_MOVE_MOVE_FLAGGED_H
#define RONDO_DEVICE_MOVE_MOVE_FLAGGED_H

#if !defined(__CUDACC__)
#error "__device__ code: nvcc alone compiles it"
#endif

#include "device/abi/slice_operation.h"
#include "device/move/move_ll.h"
#include "device/move/move_ll128.h"
#include "device/move/move_ll_small.h"
#include "device/move/mover_table.h"
#include "device/move/movers.h"

/* Loads the thread's part of this rank's own data, while slots and peers' data may be unknown. mover: the chosen row. */
RONDO_CUDA_INLINE void rondo_flagged_load_own(const struct rondo_slice_op *slice_op, enum rondo_mover mover, uint32_t thread,
                                              uint32_t threads, struct rondo_cuda_own *own)
{
    const uint32_t source = rondo_cuda_own_source(slice_op);
    if (source >= slice_op->sources || mover == RONDO_MOVER_LL128 || mover == RONDO_MOVER_RESOLVED)
        return;
    if (mover == RONDO_MOVER_LL) {
        const struct rondo_cuda_rows rows = rondo_cuda_rows_of(slice_op, thread, threads);
        rondo_cuda_read_rows(&rows, slice_op->source[source], own->packets);
    } else {
        const uint32_t mine = rondo_cuda_small_bytes(slice_op->count * slice_op->element_bytes, thread * 8);
        if (mine > 0)
            own->packets[0] = rondo_cuda_load_half(slice_op->source[source] + thread * 8, mine);
    }
}

/* What the movers of flagged data need besides the slice operation. */
struct rondo_flagged_data {
    const struct rondo_cuda_own *own; /* what rondo_flagged_load_own has loaded */
    uint8_t *progress;                /* of each warp, how much of the slice operation it has done; 0 of a new one */
};

/* Carries out a slice operation with rondo_mover_is_flagged by the chosen row; RONDO_MOVER_RESOLVED: by a row from there on. By
 * all threads of the worker group, when all addresses are known. all_lines: a constant; 1 if all flags are those of LL128. own:
 * what rondo_flagged_load_own has loaded. progress: of each warp, how much of the slice operation it has done; 0 of a new one.
 * Returns the same on all threads: 1, done; 0, data had not arrived after so many polls, and the call must be repeated. */
RONDO_CUDA_INLINE int rondo_move_flagged(const struct rondo_slice_op *slice_op, enum rondo_mover mover, int all_lines,
                                         uint32_t thread, uint32_t threads, uint64_t polls, struct rondo_flagged_data data)
{
    if (all_lines && mover == RONDO_MOVER_LL128)
        return rondo_move_ll128(slice_op, thread, threads, polls, data.progress);
    if (all_lines)
        return rondo_mover_run_other(slice_op, thread, threads, polls);
    if (mover == RONDO_MOVER_LL_SMALL)
        return rondo_move_ll_small(slice_op, thread, threads, polls, data.own);
    if (mover == RONDO_MOVER_LL)
        return rondo_move_ll(slice_op, thread, threads, polls, data.own);
    if (mover == RONDO_MOVER_LL128)
        return rondo_move_ll128_called(slice_op, thread, threads, polls, data.progress);
    return rondo_mover_run_other(slice_op, thread, threads, polls);
}

#endif
