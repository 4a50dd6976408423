/*
 * Chunks and slices: which elements of every chunk a slice of the current tile covers, and how many bytes they take of a slot.
 * Plain arithmetic, single source.
 */
#ifndef RONDO_DEVICE_ENGINE_SLICES_H
#define RONDO_DEVICE_ENGINE_SLICES_H

#include "device/move/low_latency.h"
#include "device/engine/run.h"
#include "device/engine/use.h"

/* What one slice of the current tile covers of every chunk: at most so many elements from start on. */
struct rondo_stretch {
    uint64_t start, most;
};

/* The stretch of a slice of the current tile. */
RONDO_FUNCTION struct rondo_stretch rondo_stretch_at(const struct rondo_run *run, uint64_t slice)
{
    const struct rondo_operation *operation = run->operation;
    uint64_t in_tile = slice * operation->slice;
    struct rondo_stretch stretch = {run->tile * operation->tile + in_tile,
                                    operation->tile > in_tile ? operation->tile - in_tile : 0};
    if (stretch.most > operation->slice && slice + 1 < operation->slices) /* the last slice may be longer */
        stretch.most = operation->slice;
    return stretch;
}

/* The stretch of the current slice. */
RONDO_FUNCTION struct rondo_stretch rondo_current_stretch(const struct rondo_run *run)
{
    return rondo_stretch_at(run, run->slice);
}

/* Number of elements of a chunk that the stretch covers. */
RONDO_FUNCTION uint64_t rondo_covered(struct rondo_extent chunk, struct rondo_stretch stretch)
{
    uint64_t left = stretch.start < chunk.count ? chunk.count - stretch.start : 0;
    return left < stretch.most ? left : stretch.most;
}

/* The k-th chunk that determines how much an instruction moves: all others that it touches are as long. */
RONDO_FUNCTION struct rondo_extent rondo_measured_chunk(const struct rondo_operation *operation,
                                                        const struct rondo_instruction *instruction, uint32_t k)
{
    int to_destination = (instruction->actions & RONDO_COPY) != 0;
    uint32_t buffer = to_destination ? instruction->destination_buffer : instruction->source_buffer;
    uint32_t index = to_destination ? instruction->destination_index : instruction->source_index;
    return rondo_chunk_extent(&operation->layouts[buffer], index + k);
}

/* Bytes that so many elements take of a slot. */
RONDO_FUNCTION size_t rondo_payload_bytes(const struct rondo_run *run, uint64_t count)
{
    uint32_t rate = run->operation->rate;
    return rate != 0 ? rondo_zfp_bytes(count, rate) : count * run->element_bytes;
}

/* Bytes that one slice of the instruction takes of each slot. first: the extent of its first chunk. */
RONDO_FUNCTION size_t rondo_slice_bytes(const struct rondo_run *run, const struct rondo_instruction *instruction,
                                        struct rondo_extent first, struct rondo_stretch stretch)
{
    size_t bytes = rondo_slice_op_bytes(rondo_payload_bytes(run, rondo_covered(first, stretch)));
    for (uint32_t k = 1; k < instruction->count; k++)
        bytes += rondo_slice_op_bytes(
            rondo_payload_bytes(run, rondo_covered(rondo_measured_chunk(run->operation, instruction, k), stretch)));
    return bytes;
}

/* Bytes of a slot's payload before the first chunk that the instruction takes; the chunks before it are as long. */
RONDO_FUNCTION size_t rondo_slot_skip(const struct rondo_run *run, const struct rondo_instruction *instruction,
                                      struct rondo_extent first, struct rondo_stretch stretch)
{
#if defined(__CUDACC__)
    (void) run; /* multicast connectors are the host's */
    (void) instruction;
    (void) first;
    (void) stretch;
    return 0;
#else
    return instruction->slot_chunk == 0
               ? 0
               : instruction->slot_chunk * rondo_slice_op_bytes(rondo_payload_bytes(run, rondo_covered(first, stretch)));
#endif
}

/* Bytes of a slot's payload that a slice operation of so many bytes takes: one after the other, whole lines if the slot has
 * lines. */
RONDO_FUNCTION size_t rondo_slice_op_room(const struct rondo_run *run, const struct rondo_instruction *instruction,
                                          size_t bytes)
{
    uint32_t end = instruction->actions & RONDO_RECEIVE ? instruction->receive_first : instruction->send_first;
    if (instruction->count > 1 && (instruction->actions & (RONDO_RECEIVE | RONDO_SEND)) &&
        rondo_end_of(run, end)->protocol == RONDO_PROTOCOL_LL128)
        return (bytes + RONDO_LINE_DATA - 1) / RONDO_LINE_DATA * RONDO_LINE_DATA;
    return rondo_slice_op_bytes(bytes);
}

#endif
