/*
 * Tiny moves: slices that travel in tiny slots, moved where they stand. A tiny slot is a line or a few, so what a slice
 * operation costs to describe, to resolve and to pass on (device/engine/describe.h, workers.h) is many times what its data
 * cost. Only the moving is short: waiting, committing and publishing are those of all slices. The host's, by the thread that
 * runs the engine.
 */
#ifndef RONDO_DEVICE_ENGINE_TINY_MOVES_H
#define RONDO_DEVICE_ENGINE_TINY_MOVES_H

#include "device/engine/describe.h"
#include "device/engine/run.h"
#include "device/engine/slices.h"
#include "device/engine/use.h"

#if defined(__CUDACC__)

/* Tiny slots are the host's. */
RONDO_FUNCTION int rondo_move_tiny(const struct rondo_run *run, const struct rondo_instruction *instruction,
                                   struct rondo_extent measured, struct rondo_stretch stretch)
{
    (void) run;
    (void) instruction;
    (void) measured;
    (void) stretch;
    return 0;
}

#else

#include "device/reduce/reduce.h"

#include <string.h>

/* Whether the instruction sends, receives or reduces what one rank or several have sent, and no more, through tiny slots. They
 * hold the bytes themselves: no stream, no reference, no flags among the data. */
RONDO_FUNCTION int rondo_is_tiny_move(const struct rondo_operation *operation, const struct rondo_instruction *instruction)
{
    const uint8_t actions = instruction->actions;
    if (operation->protocol != RONDO_PROTOCOL_TINY && operation->protocol != RONDO_PROTOCOL_MULTICAST_TINY)
        return 0;
    if (actions == (RONDO_RECEIVE | RONDO_REDUCE | RONDO_COPY))
        return (instruction->flags & ~(RONDO_FINISH | RONDO_NOTIFY)) == 0;
    return (instruction->flags & ~RONDO_NOTIFY) == 0 &&
           (actions == RONDO_SEND || (actions == (RONDO_RECEIVE | RONDO_COPY) && instruction->receive_count == 1));
}

/* Address in the end's next slot. */
RONDO_FUNCTION char *rondo_tiny_place(const struct rondo_run *run, uint32_t end, size_t slot_offset)
{
    const struct rondo_end *at = rondo_end_of(run, end);
    return rondo_slot_at(at, at->position) + slot_offset;
}

/* Reduces count elements of this rank's chunk with what all others have sent of it, in the order of ranks. */
RONDO_FUNCTION void rondo_reduce_tiny(const struct rondo_run *run, const struct rondo_instruction *instruction, const char *own,
                                      char *local, uint64_t count, size_t slot_offset)
{
    const struct rondo_operation *operation = run->operation;
    const void *sources[RONDO_REDUCE_SOURCES_MAX];
    void *destination = local;
    const uint32_t received = instruction->receive_count,
                   place = instruction->local_place < received ? instruction->local_place : received;
    for (uint32_t i = 0; i < received; i++)
        sources[i < place ? i : i + 1] = rondo_tiny_place(run, instruction->receive_first + i, slot_offset);
    sources[place] = own;
    rondo_reduce_elements(
        &(struct rondo_reduction){.dst = &destination,
                                  .src = sources,
                                  .destinations = 1,
                                  .sources = (int) received + 1,
                                  .count = count,
                                  .type = (rondo_datatype_t) operation->type,
                                  .op = (rondo_op_t) operation->op,
                                  .user = operation->op == RONDO_BY_USER ? operation->user : NULL,
                                  .average = instruction->flags & RONDO_FINISH ? (int) operation->average : 0});
}

/* Moves one slice of the instruction if it is a tiny move; what it waits for is there. Returns 0 if it is none, and nothing has
 * been done. measured: the extent of its first chunk. */
RONDO_FUNCTION int rondo_move_tiny(const struct rondo_run *run, const struct rondo_instruction *instruction,
                                   struct rondo_extent measured, struct rondo_stretch stretch)
{
    const struct rondo_operation *operation = run->operation;
    if (!rondo_is_tiny_move(operation, instruction))
        return 0;
    size_t slot_offset = rondo_slot_skip(run, instruction, measured, stretch);
    for (uint32_t k = 0; k < instruction->count; k++) {
        if (k > 0)
            measured = rondo_measured_chunk(operation, instruction, k);
        const uint64_t count = rondo_covered(measured, stretch);
        const size_t bytes = count * run->element_bytes;
        if (bytes > 0 && instruction->actions == RONDO_SEND) {
            const char *local = rondo_local(run, instruction->source_buffer, measured, stretch);
            for (uint32_t i = 0; i < instruction->send_count; i++)
                memcpy(rondo_tiny_place(run, instruction->send_first + i, slot_offset), local, bytes);
        } else if (bytes > 0) {
            char *local = rondo_local(run, instruction->destination_buffer, measured, stretch);
            if (instruction->actions & RONDO_REDUCE)
                rondo_reduce_tiny(run, instruction,
                                  rondo_local_chunk(run, instruction->source_buffer, instruction->source_index + k, stretch),
                                  local, count, slot_offset);
            else
                memcpy(local, rondo_tiny_place(run, instruction->receive_first, slot_offset), bytes);
        }
        slot_offset += rondo_slice_op_bytes(bytes);
    }
    return 1;
}

#endif

#endif
