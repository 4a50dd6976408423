/*
 * Short moves: slices through plain slots that are no larger than a small slot, moved where they stand. What a slice operation
 * costs to describe, to resolve and to pass on (device/engine/describe.h, workers.h) is many times what a line of data costs,
 * and as much as some kilobytes. Only the moving is short: waiting, committing and publishing are those of all slices. The
 * host's, by the thread that runs the engine.
 */
#ifndef RONDO_DEVICE_ENGINE_SHORT_MOVES_H
#define RONDO_DEVICE_ENGINE_SHORT_MOVES_H

#include "device/engine/describe.h"
#include "device/engine/run.h"
#include "device/engine/slices.h"
#include "device/engine/use.h"
#include "device/engine/waits.h"
#include "device/engine/workers.h"

#if defined(__CUDACC__)

/* A GPU's threads move slices together. */
RONDO_FUNCTION int rondo_move_short(const struct rondo_run *run, const struct rondo_instruction *instruction,
                                    struct rondo_extent measured, struct rondo_stretch stretch, size_t slice_bytes)
{
    (void) run;
    (void) instruction;
    (void) measured;
    (void) stretch;
    (void) slice_bytes;
    return 0;
}

#else

#include "device/reduce/reduce.h"

#include <string.h>

#define RONDO_SHORT_MOVE_BYTES 16384 /* of a slice, at most */

/* Whether a slice of so many bytes of the instruction is a short move: it is copied within this rank, sent, or received from
 * one rank or, to be reduced, from several, and no more than one of these. */
RONDO_FUNCTION int rondo_is_short_move(const struct rondo_operation *operation, const struct rondo_instruction *instruction,
                                       size_t slice_bytes)
{
    const uint8_t actions = instruction->actions;
    if (!operation->plain_slots || slice_bytes > RONDO_SHORT_MOVE_BYTES)
        return 0;
    if (actions == (RONDO_RECEIVE | RONDO_REDUCE | RONDO_COPY))
        return (instruction->flags & ~(RONDO_FINISH | RONDO_NOTIFY)) == 0;
    return (instruction->flags & ~RONDO_NOTIFY) == 0 &&
           (actions == RONDO_SEND || actions == RONDO_COPY ||
            (actions == (RONDO_RECEIVE | RONDO_COPY) && instruction->receive_count == 1));
}

/* Copies what this rank sends into the next slots of the instruction's ends. */
RONDO_FUNCTION void rondo_send_short(const struct rondo_run *run, const struct rondo_instruction *instruction,
                                     const char *local, size_t bytes, size_t slot_offset)
{
    const int past = rondo_workers_store_past(run->workers, rondo_end_of(run, instruction->send_first), bytes);
    for (uint32_t i = 0; i < instruction->send_count; i++) {
        void *to = rondo_slot(rondo_end_of(run, instruction->send_first + i)) + slot_offset;
        if (past)
            rondo_copy_out(&to, 1, NULL, local, bytes, past);
        else
            memcpy(to, local, bytes);
    }
}

/* Reduces count elements of this rank's chunk with what all others have sent of it, in the order of ranks. */
RONDO_FUNCTION void rondo_reduce_short(const struct rondo_run *run, const struct rondo_instruction *instruction,
                                       const char *own, char *local, uint64_t count, size_t slot_offset)
{
    const struct rondo_operation *operation = run->operation;
    const void *sources[RONDO_REDUCE_SOURCES_MAX];
    void *destination = local;
    const uint32_t received = instruction->receive_count,
                   place = instruction->local_place < received ? instruction->local_place : received;
    for (uint32_t i = 0; i < received; i++)
        sources[i < place ? i : i + 1] = rondo_slot(rondo_end_of(run, instruction->receive_first + i)) + slot_offset;
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

/* Moves one slice of the instruction, of so many bytes, if it is a short move; what it waits for is there. Returns 0 if it is
 * none, and nothing has been done. measured: the extent of its first chunk. */
RONDO_FUNCTION int rondo_move_short(const struct rondo_run *run, const struct rondo_instruction *instruction,
                                    struct rondo_extent measured, struct rondo_stretch stretch, size_t slice_bytes)
{
    const struct rondo_operation *operation = run->operation;
    const uint8_t actions = instruction->actions;
    if (!rondo_is_short_move(operation, instruction, slice_bytes))
        return 0;
    size_t slot_offset = rondo_slot_skip(run, instruction, measured, stretch);
    for (uint32_t k = 0; k < instruction->count; k++) {
        if (k > 0)
            measured = rondo_measured_chunk(operation, instruction, k);
        const uint64_t count = rondo_covered(measured, stretch);
        const size_t bytes = count * run->element_bytes;
        if (bytes > 0 && actions == RONDO_SEND) {
            rondo_send_short(run, instruction, rondo_local(run, instruction->source_buffer, measured, stretch), bytes,
                             slot_offset);
        } else if (bytes > 0) {
            char *local = rondo_local(run, instruction->destination_buffer, measured, stretch);
            const char *from = actions == (RONDO_RECEIVE | RONDO_COPY)
                                   ? rondo_slot(rondo_end_of(run, instruction->receive_first)) + slot_offset
                                   : rondo_local_chunk(run, instruction->source_buffer, instruction->source_index + k, stretch);
            if (actions & RONDO_REDUCE)
                rondo_reduce_short(run, instruction, from, local, count, slot_offset);
            else if (local != from)
                memcpy(local, from, bytes);
        }
        slot_offset += rondo_slice_op_bytes(bytes);
    }
    return 1;
}

#endif

#endif
