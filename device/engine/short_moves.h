/*
 * Short moves: slices through plain slots that are no larger than a small slot, moved where they stand. What a slice operation
 * costs to describe, to resolve and to pass on (device/engine/describe.h, workers.h) is many times what a line of data costs,
 * and as much as some kilobytes. Only the moving is short: waiting, committing and publishing are those of all slices. The
 * host's, by the thread that runs the engine.
 */
#ifndef RONDO_DEVICE_ENGINE_SHORT_MOVES_H
#define RONDO_DEVICE_ENGINE_SHORT_MOVES_H

#include "device/engine/describe.h"
#include "device/engine/publish.h"
#include "device/engine/run.h"
#include "device/engine/slices.h"
#include "device/engine/use.h"
#include "device/engine/waits.h"
#include "device/engine/workers.h"

#if defined(__CUDACC__)

/* A GPU's threads move slices together. */
RONDO_FUNCTION void rondo_run_short(struct rondo_run *run)
{
    (void) run;
}
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

/* Copies without a call of memcpy, which takes longer than a copy of one line, where the size is usual. */
RONDO_FUNCTION void rondo_copy_short(char *to, const char *from, size_t bytes)
{
    switch (bytes) {
    case 4:
        memcpy(to, from, 4);
        break;
    case 8:
        memcpy(to, from, 8);
        break;
    case 16:
        memcpy(to, from, 16);
        break;
    case 32:
        memcpy(to, from, 32);
        break;
    default:
        memcpy(to, from, bytes);
    }
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
            rondo_copy_short(to, local, bytes);
    }
}

/* Reduces count elements of this rank's chunk with what all others have sent of it, in the order of ranks. */
RONDO_FUNCTION void rondo_reduce_short(const struct rondo_operation *operation, const struct rondo_part *part,
                                       const struct rondo_instruction *instruction, const char *own, char *local,
                                       uint64_t count, size_t slot_offset)
{
    const void *sources[RONDO_REDUCE_SOURCES_MAX];
    void *destination = local;
    const uint32_t received = instruction->receive_count,
                   place = instruction->local_place < received ? instruction->local_place : received;
    for (uint32_t i = 0; i < received; i++)
        sources[i < place ? i : i + 1] = rondo_slot(rondo_part_end(part, instruction->receive_first + i)) + slot_offset;
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
                rondo_reduce_short(operation, run->part, instruction, from, local, count, slot_offset);
            else if (local != from)
                memcpy(local, from, bytes);
        }
        slot_offset += rondo_slice_op_bytes(bytes);
    }
    return 1;
}

/* Whether the instruction moves through one connector, or within this rank, and does nothing else: one chunk, or sends several.
 */
RONDO_FUNCTION int rondo_is_plain(const struct rondo_instruction *instruction)
{
    const uint8_t actions = instruction->actions;
    if (instruction->flags != 0 || instruction->dependencies != 0)
        return 0;
    return actions == RONDO_SEND
               ? instruction->send_count == 1
               : instruction->count == 1 &&
                     (actions == RONDO_COPY || (actions == (RONDO_RECEIVE | RONDO_COPY) && instruction->receive_count == 1));
}

/* Sends the chunks of a plain instruction, one after the other in the slot, which has room for them. */
RONDO_FUNCTION void rondo_send_plain(const struct rondo_run *run, const struct rondo_instruction *instruction,
                                     struct rondo_stretch stretch)
{
    size_t slot_offset = 0;
    for (uint32_t k = 0; k < instruction->count; k++) {
        const struct rondo_extent chunk = rondo_measured_chunk(run->operation, instruction, k);
        const size_t bytes = rondo_covered(chunk, stretch) * run->element_bytes;
        if (bytes > 0)
            rondo_send_short(run, instruction, rondo_local(run, instruction->source_buffer, chunk, stretch), bytes,
                             slot_offset);
        slot_offset += rondo_slice_op_bytes(bytes);
    }
}

#define RONDO_FETCH_AHEAD 16 /* lines that a core has under way, about */

/* Before the first of several instructions that receive: has the slots of these fetched at once. A line from another core takes
 * longer to come than the rest of a short move, and one at a time is all that the moves themselves ask for. Not where they
 * send: a receiver that looks for its slot takes the line back. */
RONDO_FUNCTION void rondo_fetch_ahead(const struct rondo_run *run, const struct rondo_instruction *instruction)
{
    const struct rondo_instruction *first = run->part->instructions, *last = first + run->part->instruction_count;
    if (instruction > first && (instruction[-1].actions & RONDO_RECEIVE))
        return;
    for (int i = 0; i < RONDO_FETCH_AHEAD && instruction + i < last && (instruction[i].actions & RONDO_RECEIVE); i++) {
        const struct rondo_end *end = rondo_end_of(run, instruction[i].receive_first);
        rondo_fetch_to_read(rondo_tail(end, end->position, end->watched));
    }
}

/* Executes instructions from the run's position on: as far as each is plain and a short move, is whole in one slice, and finds
 * what it waits for. The engine's loop executes these as well as all others, but takes several times as long for each. */
RONDO_FUNCTION void rondo_run_short(struct rondo_run *run)
{
    const struct rondo_operation *operation = run->operation;
    if (!operation->plain_slots || operation->tiles > 1 || operation->slices > 1 || run->slice > 0)
        return;
    const struct rondo_stretch stretch = rondo_current_stretch(run);
    const struct rondo_instruction *first = run->part->instructions + run->instruction, *instruction = first,
                                   *last = run->part->instructions + run->part->instruction_count;
    uint64_t sent = 0;
    uint32_t moved = 0;
    for (; instruction < last && rondo_is_plain(instruction); instruction++) {
        const struct rondo_extent measured = rondo_measured_chunk(operation, instruction, 0);
        const size_t bytes = rondo_covered(measured, stretch) * run->element_bytes,
                     slice = rondo_slice_bytes(run, instruction, measured, stretch);
        if (slice == 0)
            continue;
        if (slice > RONDO_SHORT_MOVE_BYTES)
            break;
        if (instruction->actions & RONDO_RECEIVE) {
            struct rondo_end *end = rondo_end_of(run, instruction->receive_first);
            const size_t skip = rondo_slot_skip(run, instruction, measured, stretch);
            rondo_fetch_ahead(run, instruction);
            if (skip > 0) /* not in the tail's line */
                rondo_fetch_to_read(rondo_slot(end) + skip);
            if (!rondo_arrived(end, bytes))
                break;
            rondo_copy_short(rondo_local(run, instruction->destination_buffer, measured, stretch), rondo_slot(end) + skip,
                             bytes);
            end->position++;
            rondo_fetch_next(run->part, end, skip);
            rondo_tell_sender(end);
        } else if (instruction->actions & RONDO_SEND) {
            struct rondo_end *end = rondo_end_of(run, instruction->send_first);
            if (!rondo_has_room(end))
                break;
            rondo_send_plain(run, instruction, stretch);
            rondo_fill(end);
            rondo_tell_receiver(end);
            sent += slice;
        } else {
            char *to = rondo_local(run, instruction->destination_buffer, measured, stretch);
            const char *from = rondo_local_chunk(run, instruction->source_buffer, instruction->source_index, stretch);
            if (to != from)
                memcpy(to, from, bytes);
        }
        moved++;
    }
    if (instruction == first)
        return;
    run->instruction += (uint32_t) (instruction - first);
    run->advanced = 1;
    rondo_count(&run->statistics->primitives, moved);
    rondo_count(&run->statistics->bytes_sent, sent);
    rondo_raise_budget(run, moved);
}

#endif

#endif
