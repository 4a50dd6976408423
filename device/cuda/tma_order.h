/*
 * The order in which move_tma (device/cuda/move_tma.h) goes through the slice operations of a part, for each of its threads.
 */
#ifndef RONDO_DEVICE_CUDA_TMA_ORDER_H
#define RONDO_DEVICE_CUDA_TMA_ORDER_H

#if !defined(__CUDACC__)
#error "__device__ code: nvcc alone compiles it"
#endif

#include "device/abi/cuda_block.h"
#include "device/abi/platform.h"
#include "device/engine/workers_cuda.h"

/* Where a thread stands. The order is the engine's, except that a last instruction that only receives alternates, slice by
 * slice, with the next tile's first instruction if that only sends: all blocks come there at about the same time, and links
 * would be idle. No peer can tell, because the order on every connector is the same. What is received late is at most a
 * tile's slices, and verification allows for that many fewer slots (RONDO_TMA_SLOTS), so no thread waits forever. */
struct rondo_tma_cursor {
    uint64_t tile_bytes, slice_bytes, end; /* bytes of a chunk */
    uint64_t tile, start, limit; /* of the tile, of the slice operation, and where the instruction's part of the tile ends */
    uint64_t other;              /* start of the instruction that alternates with this one */
    struct rondo_warp_step step; /* the instruction */
    uint32_t instruction, instructions;
    uint32_t slice_ops;   /* number of slice operations before this one */
    uint32_t weaves;      /* there are alternating instructions, */
    uint32_t turns, over; /* and they alternate now; the next tile's first instruction is finished */
};

/* Sets the cursor to its instruction, at start. */
RONDO_FUNCTION void rondo_tma_take(const struct rondo_workers *workers, struct rondo_tma_cursor *at, uint64_t start)
{
    at->step = workers->interpreter.steps[at->instruction];
    at->start = start;
    at->limit = at->step.bytes < at->tile + at->tile_bytes ? at->step.bytes : at->tile + at->tile_bytes;
}

/* A cursor at the part's beginning. */
RONDO_FUNCTION struct rondo_tma_cursor rondo_tma_begin(const struct rondo_workers *workers)
{
    const struct rondo_operation *operation = &workers->operation;
    struct rondo_tma_cursor at = {};
    at.tile_bytes = operation->tile * operation->element_bytes;
    at.slice_bytes = operation->slice * operation->element_bytes;
    at.end = operation->tiles * at.tile_bytes;
    at.instructions = workers->part.instruction_count;
    at.weaves = at.instructions > 1 && workers->interpreter.steps[at.instructions - 1].sent == 0 &&
                workers->interpreter.steps[0].received == 0;
    rondo_tma_take(workers, &at, 0);
    return at;
}

/* Changes to the instruction that alternates with this one. */
RONDO_FUNCTION void rondo_tma_change(const struct rondo_workers *workers, struct rondo_tma_cursor *at)
{
    const uint64_t start = at->other;
    at->other = at->start;
    at->tile = at->instruction == 0 ? at->tile - at->tile_bytes : at->tile + at->tile_bytes;
    at->instruction = at->instruction == 0 ? at->instructions - 1 : 0;
    rondo_tma_take(workers, at, start);
}

/* Goes on to the next instruction. Returns 0 if there is none. */
RONDO_FUNCTION int rondo_tma_advance(const struct rondo_workers *workers, struct rondo_tma_cursor *at)
{
    if (at->turns) { /* the rest of the other one */
        at->turns = 0;
        at->over = at->instruction == 0;
        rondo_tma_change(workers, at);
        return 1;
    }
    if (++at->instruction == at->instructions) {
        at->instruction = at->over;
        at->over = 0;
        at->tile += at->tile_bytes;
    }
    if (at->tile >= at->end)
        return 0;
    rondo_tma_take(workers, at, at->tile);
    at->turns = at->weaves && at->instruction + 1 == at->instructions && at->tile + at->tile_bytes < at->end;
    at->other = at->tile + at->tile_bytes;
    return 1;
}

/* Goes on to the next slice operation that moves something. Returns its bytes; 0 if there is none. */
RONDO_FUNCTION uint32_t rondo_tma_next(const struct rondo_workers *workers, struct rondo_tma_cursor *at)
{
    while (at->start >= at->limit)
        if (!rondo_tma_advance(workers, at))
            return 0;
    return (uint32_t) (at->limit - at->start < at->slice_bytes ? at->limit - at->start : at->slice_bytes);
}

/* Passes the slice operation. */
RONDO_FUNCTION void rondo_tma_pass(const struct rondo_workers *workers, struct rondo_tma_cursor *at)
{
    at->start += at->slice_bytes;
    at->slice_ops++;
    if (at->turns)
        rondo_tma_change(workers, at);
}

/* The cell that is count cells after the cell, in the ring of cells. */
RONDO_FUNCTION uint32_t rondo_tma_after(uint32_t cell, uint32_t count)
{
    return cell + count < RONDO_TMA_CELLS ? cell + count : cell + count - RONDO_TMA_CELLS;
}

#endif
