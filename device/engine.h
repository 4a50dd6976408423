/*
 * The engine: interprets one program block of an operation, one primitive after the other, until it is done or a wait outruns
 * its budget. Between two primitives the context says exactly where it stands, so it can stop and come back anywhere
 * (DESIGN sections 4 and 6). Single source; a device supplies platform.h and rondo_fold.
 */
#ifndef RONDO_DEVICE_ENGINE_H
#define RONDO_DEVICE_ENGINE_H

#include "fold.h"
#include "low_latency.h"
#include "structures.h"

#define RONDO_SOURCES_MAX     RONDO_FOLD_SOURCES_MAX
#define RONDO_STAGING_BYTES   65536 /* LL data unpacked at a time; slices are cut so that all of a primitive's sources fit */
#define RONDO_PIECE_ALIGNMENT 16    /* of the pieces of a slot */

enum rondo_outcome { RONDO_OUTCOME_STUCK, RONDO_OUTCOME_FINISHED };

/* What a run of a program block needs to know; lives on the block's stack. */
struct rondo_run {
    const struct rondo_operation *operation;
    const struct rondo_program_block *list;
    const struct rondo_instruction *instructions;
    const struct rondo_dependency *dependencies;
    struct rondo_end *const *ends;
    struct rondo_context *context;
    uint64_t *semaphores; /* of the lane */
    uint64_t *waiting;    /* of this context */
    struct rondo_block_statistics *statistics;
    const struct rondo_policy *policy;
    const uint32_t *stop, *failed; /* end waits that have no budget */
    uint64_t budget;
    uint32_t program_block;
    uint32_t advanced;
};

RONDO_FUNCTION struct rondo_extent rondo_chunk_extent(const struct rondo_layout *layout, uint32_t index)
{
    struct rondo_extent extent;
    if (layout->table != NULL)
        return layout->table[index];
    uint64_t within = index % layout->group_chunks * layout->chunk_count;
    extent.offset = index / layout->group_chunks * layout->group_count + within;
    extent.count = within >= layout->group_count                        ? 0
                   : layout->group_count - within < layout->chunk_count ? layout->group_count - within
                                                                        : layout->chunk_count;
    return extent;
}

/* The part of a chunk that one slice of the current tile covers. */
RONDO_FUNCTION struct rondo_extent rondo_slice_extent(const struct rondo_operation *operation,
                                                      const struct rondo_context *context, uint32_t buffer, uint32_t index)
{
    struct rondo_extent chunk = rondo_chunk_extent(&operation->layouts[buffer], index);
    uint64_t in_tile = context->slice * operation->slice;
    uint64_t start = context->tile * operation->tile + in_tile;
    uint64_t most = operation->tile > in_tile ? operation->tile - in_tile : 0;
    if (most > operation->slice)
        most = operation->slice;
    uint64_t left = start < chunk.count ? chunk.count - start : 0;
    struct rondo_extent slice = {chunk.offset + start, left < most ? left : most};
    return slice;
}

/* The chunk whose length decides how much an instruction moves: all others it touches are as long. */
RONDO_FUNCTION void rondo_measured_chunk(const struct rondo_instruction *instruction, uint32_t *buffer, uint32_t *index)
{
    int to_destination = (instruction->actions & RONDO_COPY) != 0;
    *buffer = to_destination ? instruction->destination_buffer : instruction->source_buffer;
    *index = to_destination ? instruction->destination_index : instruction->source_index;
}

RONDO_FUNCTION size_t rondo_piece_bytes(size_t bytes)
{
    return (bytes + RONDO_PIECE_ALIGNMENT - 1) & ~(size_t) (RONDO_PIECE_ALIGNMENT - 1);
}

/* What one slice of the instruction takes of a slot. */
RONDO_FUNCTION size_t rondo_slice_bytes(const struct rondo_run *run, const struct rondo_instruction *instruction)
{
    uint32_t buffer, index;
    size_t bytes = 0;
    rondo_measured_chunk(instruction, &buffer, &index);
    for (uint32_t k = 0; k < instruction->count; k++)
        bytes += rondo_piece_bytes(rondo_slice_extent(run->operation, run->context, buffer, index + k).count *
                                   run->operation->element_bytes);
    return bytes;
}

/* ---- waiting ---- */

/* The slot the end fills or takes next. */
RONDO_FUNCTION char *rondo_slot(const struct rondo_end *end)
{
    return end->slots + (end->position & (end->slot_count - 1)) * end->slot_bytes;
}

/* A slot has arrived. The acquire makes everything its producer wrote before publishing the tail visible. */
RONDO_FUNCTION int rondo_arrived(struct rondo_end *end, size_t bytes)
{
    if (end->protocol == RONDO_PROTOCOL_LL) {
        return rondo_ll_ready((const uint64_t *) (const void *) rondo_slot(end), bytes, (uint32_t) (end->position + 1));
    }
    if (end->seen <= end->position)
        end->seen = rondo_load_acquire(end->watched);
    return end->seen > end->position;
}

/* A slot is free. The acquire pairs with the consumer's release of head: it has finished reading before we overwrite. */
RONDO_FUNCTION int rondo_has_room(struct rondo_end *end)
{
    if (end->position - end->seen >= end->slot_count)
        end->seen = rondo_load_acquire(end->watched);
    return end->position - end->seen < end->slot_count;
}

RONDO_FUNCTION uint64_t rondo_semaphore_value(const struct rondo_run *run, uint32_t block, uint32_t step)
{
    const struct rondo_program *program = run->operation->program;
    const struct rondo_program_block *list =
        (const struct rondo_program_block *) ((const char *) program + program->block_offset) + block;
    return run->context->operation << 32 | (uint32_t) (run->context->tile * list->instructions + step + 1);
}

/* NULL when the primitive can run; else what it waits for (a connector's end, or the run itself for another block). */
RONDO_FUNCTION const void *rondo_missing(struct rondo_run *run, const struct rondo_instruction *instruction, size_t bytes)
{
    if (run->context->slice == 0)
        for (uint32_t i = 0; i < instruction->dependencies; i++) {
            const struct rondo_dependency *on = run->dependencies + instruction->dependency_first + i;
            uint64_t wanted = rondo_semaphore_value(run, on->block, on->step);
            /* Acquire pairs with the release in rondo_notify: the other block's stores are visible. */
            uint64_t value = rondo_load_acquire(run->semaphores + on->block);
            if (value >> 32 != wanted >> 32 || value < wanted)
                return run;
        }
    if ((instruction->actions & RONDO_RECEIVE) && !(instruction->flags & RONDO_DIRECT_IN))
        for (uint32_t i = 0; i < instruction->receive_count; i++)
            if (!rondo_arrived(run->ends[instruction->receive_first + i], bytes))
                return run->ends[instruction->receive_first + i];
    if ((instruction->actions & RONDO_SEND) && !(instruction->flags & RONDO_DIRECT_OUT))
        for (uint32_t i = 0; i < instruction->send_count; i++)
            if (!rondo_has_room(run->ends[instruction->send_first + i]))
                return run->ends[instruction->send_first + i];
    return NULL;
}

RONDO_FUNCTION void rondo_report_missing(const struct rondo_run *run, const void *missing)
{
    rondo_store_relaxed(run->waiting, missing == run ? 0 : (uint64_t) ((const struct rondo_end *) missing)->peer + 1);
}

/* Waits within the task's budget. 0: stuck. */
RONDO_FUNCTION int rondo_wait_ready(struct rondo_run *run, const struct rondo_instruction *instruction, size_t bytes)
{
    const void *missing = NULL;
    for (uint64_t polls = 0;; polls++) {
        missing = rondo_missing(run, instruction, bytes);
        if (missing == NULL)
            return 1;
        if (run->policy->preempt ? polls >= run->budget : rondo_load_relaxed32(run->stop) || rondo_load_relaxed32(run->failed))
            break;
        if (!run->policy->preempt)
            rondo_report_missing(run, missing);
        if (rondo_relax(polls, run->policy->yield_mask))
            polls += run->policy->yield_polls; /* it took as long as so many polls, and let others run */
    }
    rondo_report_missing(run, missing);
    return 0;
}

/* ---- moving ---- */

RONDO_FUNCTION char *rondo_local(const struct rondo_operation *operation, uint32_t buffer, uint64_t element)
{
    return operation->buffers[buffer] + element * operation->element_bytes;
}

/* The current slice of a chunk in the peer's memory. Layouts are the same on all ranks of a program with direct ends. */
RONDO_FUNCTION char *rondo_remote(const struct rondo_run *run, const struct rondo_end *end, uint32_t buffer, uint32_t index)
{
    uint64_t element = rondo_slice_extent(run->operation, run->context, buffer, index).offset;
    return end->direct[buffer] + element * run->operation->element_bytes;
}

/* Executes one slice of one instruction: everything it waits for is there. Pieces of several chunks lie one after the other in
 * a slot. */
RONDO_FUNCTION void rondo_move(struct rondo_run *run, const struct rondo_instruction *instruction)
{
    const struct rondo_operation *operation = run->operation;
    const void *sources[RONDO_SOURCES_MAX];
    void *remote[RONDO_SOURCES_MAX];
    char staged[RONDO_STAGING_BYTES] __attribute__((aligned(RONDO_CACHE_LINE)));
    size_t staged_bytes = 0, slot_offset = 0;
    uint32_t buffer, index;
    rondo_measured_chunk(instruction, &buffer, &index);

    for (uint32_t k = 0; k < instruction->count; k++) {
        struct rondo_extent piece = rondo_slice_extent(operation, run->context, buffer, index + k);
        size_t bytes = piece.count * operation->element_bytes;
        int source_count = 0, remote_count = 0, received = 0;
        if (bytes == 0)
            continue;

        if (instruction->actions & RONDO_RECEIVE)
            for (uint32_t i = 0; i < instruction->receive_count; i++) {
                const struct rondo_end *end = run->ends[instruction->receive_first + i];
                if (instruction->flags & RONDO_DIRECT_IN) {
                    sources[source_count++] = rondo_remote(run, end, RONDO_INPUT, instruction->remote_index + k);
                } else if (end->protocol == RONDO_PROTOCOL_LL) {
                    char *unpacked = staged + staged_bytes;
                    rondo_ll_load(unpacked, (const uint64_t *) (const void *) rondo_slot(end) + slot_offset / 4,
                                  rondo_piece_bytes(bytes));
                    staged_bytes += rondo_piece_bytes(bytes);
                    sources[source_count++] = unpacked;
                } else {
                    sources[source_count++] = rondo_slot(end) + slot_offset;
                }
                received++;
            }
        if ((instruction->actions & RONDO_REDUCE) || !received) {
            int place = instruction->local_place < received ? instruction->local_place : received;
            uint64_t element =
                rondo_slice_extent(operation, run->context, instruction->source_buffer, instruction->source_index + k).offset;
            for (int i = source_count; i > place; i--)
                sources[i] = sources[i - 1];
            sources[place] = rondo_local(operation, instruction->source_buffer, element);
            source_count++;
        }
        if ((instruction->actions & RONDO_REDUCE) && !received) {
            uint64_t element =
                rondo_slice_extent(operation, run->context, instruction->destination_buffer, instruction->destination_index + k)
                    .offset;
            sources[source_count++] = rondo_local(operation, instruction->destination_buffer, element);
        }

        char *local = NULL, *packed = NULL;
        if (instruction->actions & RONDO_COPY)
            local = rondo_local(operation, instruction->destination_buffer, piece.offset);
        if (instruction->actions & RONDO_SEND)
            for (uint32_t i = 0; i < instruction->send_count; i++) {
                const struct rondo_end *end = run->ends[instruction->send_first + i];
                if (instruction->flags & RONDO_DIRECT_OUT) { /* the signal came in by the peer's other end */
                    const struct rondo_end *from = run->ends[instruction->receive_first + i];
                    remote[remote_count++] = rondo_remote(run, from, RONDO_OUTPUT, instruction->remote_index + k);
                } else if (end->protocol != RONDO_PROTOCOL_LL) {
                    remote[remote_count++] = rondo_slot(end) + slot_offset;
                } else if (packed == NULL) {
                    packed = staged + staged_bytes;
                    staged_bytes += rondo_piece_bytes(bytes);
                    remote[remote_count++] = packed;
                }
            }

        int average = instruction->flags & RONDO_FINISH ? (int) operation->average : 0;
        rondo_datatype_t type = (rondo_datatype_t) operation->type;
        rondo_op_t op = (rondo_op_t) operation->op;
        int logical = op == RONDO_LAND || op == RONDO_LOR || op == RONDO_LXOR;
        if (logical && (instruction->flags & RONDO_FINISH) && source_count == 1) {
            sources[source_count++] = sources[0]; /* one contribution alone becomes 0 or 1 too: x or x */
            op = RONDO_LOR;
        }
        if (remote_count > 0)
            rondo_fold_out(local, remote, remote_count, sources, source_count, piece.count, type, op, average);
        else if (local != NULL && !(source_count == 1 && sources[0] == local && !average))
            rondo_fold((void *const *) &local, 1, sources, source_count, piece.count, type, op, average, operation->streaming);
        if (packed != NULL)
            for (uint32_t i = 0; i < instruction->send_count; i++) {
                const struct rondo_end *end = run->ends[instruction->send_first + i];
                if (end->protocol == RONDO_PROTOCOL_LL)
                    rondo_ll_store((uint64_t *) (void *) rondo_slot(end) + slot_offset / 4, packed, rondo_piece_bytes(bytes),
                                   (uint32_t) (end->position + 1));
            }
        slot_offset += rondo_piece_bytes(bytes);
        staged_bytes = 0;
    }
}

/* Tells each receiver where this rank's buffers are, or learns it from each sender. */
RONDO_FUNCTION void rondo_exchange_signals(struct rondo_run *run, const struct rondo_instruction *instruction)
{
    const struct rondo_operation *operation = run->operation;
    if (instruction->actions & RONDO_SEND)
        for (uint32_t i = 0; i < instruction->send_count; i++) {
            struct rondo_signal *signal = (struct rondo_signal *) (void *) rondo_slot(run->ends[instruction->send_first + i]);
            for (int b = 0; b < 2; b++) {
                signal->window[b] = operation->windows[b][0];
                signal->offset[b] = operation->windows[b][1];
            }
        }
    if (instruction->actions & RONDO_RECEIVE)
        for (uint32_t i = 0; i < instruction->receive_count; i++) {
            struct rondo_end *end = run->ends[instruction->receive_first + i];
            const struct rondo_signal *signal = (const struct rondo_signal *) (const void *) rondo_slot(end);
            for (int b = 0; b < 2; b++)
                end->direct[b] = end->windows[signal->window[b]] + signal->offset[b];
        }
}

/* Publishes what the primitive did. Release: the payload before the tail, the end of our reading before the head. LL needs no
 * tail (its flags tell), only credits. */
RONDO_FUNCTION void rondo_publish(struct rondo_run *run, const struct rondo_instruction *instruction, size_t bytes)
{
    if ((instruction->actions & RONDO_SEND) && !(instruction->flags & RONDO_DIRECT_OUT))
        for (uint32_t i = 0; i < instruction->send_count; i++) {
            struct rondo_end *end = run->ends[instruction->send_first + i];
            end->position++;
            if (end->protocol != RONDO_PROTOCOL_LL)
                rondo_store_release(end->published, end->position);
            rondo_count(&run->statistics->bytes_sent, bytes);
        }
    if ((instruction->actions & RONDO_RECEIVE) && !(instruction->flags & RONDO_DIRECT_IN))
        for (uint32_t i = 0; i < instruction->receive_count; i++) {
            struct rondo_end *end = run->ends[instruction->receive_first + i];
            end->position++;
            rondo_store_release(end->published, end->position);
        }
}

/* ---- the interpreter ---- */

RONDO_FUNCTION void rondo_succeeded(struct rondo_run *run)
{
    run->advanced = 1;
    run->budget = run->budget > run->policy->cap / run->policy->boost ? run->policy->cap : run->budget * run->policy->boost;
    rondo_count(&run->statistics->primitives, 1);
}

/* 0: stuck. */
RONDO_FUNCTION int rondo_run_signal(struct rondo_run *run, const struct rondo_instruction *instruction)
{
    if (run->context->tile != 0)
        return 1;
    if (!rondo_wait_ready(run, instruction, sizeof(struct rondo_signal)))
        return 0;
    rondo_exchange_signals(run, instruction);
    rondo_publish(run, instruction, sizeof(struct rondo_signal));
    rondo_succeeded(run);
    return 1;
}

/* All slices of the instruction in the current tile. 0: stuck; context->slice says at which. */
RONDO_FUNCTION int rondo_run_slices(struct rondo_run *run, const struct rondo_instruction *instruction)
{
    struct rondo_context *context = run->context;
    size_t bytes = rondo_slice_bytes(run, instruction);
    while (bytes > 0) {
        if (!rondo_wait_ready(run, instruction, bytes))
            return 0;
        rondo_move(run, instruction);
        context->slice++;
        rondo_publish(run, instruction, bytes);
        rondo_succeeded(run);
        bytes = context->slice * run->operation->slice < run->operation->tile ? rondo_slice_bytes(run, instruction) : 0;
    }
    context->slice = 0;
    return 1;
}

/* Runs on from the context until the block's list is done or a wait outruns the budget. */
RONDO_FUNCTION enum rondo_outcome rondo_engine_run(struct rondo_run *run)
{
    struct rondo_context *context = run->context;
    while (context->tile < run->operation->tiles) {
        while (context->instruction < run->list->instructions) {
            const struct rondo_instruction *instruction = run->instructions + context->instruction;
            int done =
                instruction->flags & RONDO_SIGNAL ? rondo_run_signal(run, instruction) : rondo_run_slices(run, instruction);
            if (!done)
                return RONDO_OUTCOME_STUCK;
            if (instruction->flags & RONDO_NOTIFY) /* release: this instruction's stores before its semaphore */
                rondo_store_release(run->semaphores + run->program_block,
                                    rondo_semaphore_value(run, run->program_block, context->instruction));
            context->instruction++;
            run->advanced = 1;
        }
        context->instruction = 0;
        context->tile++;
    }
    return RONDO_OUTCOME_FINISHED;
}

#endif
