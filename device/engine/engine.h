/*
 * The engine: interprets one program block of an operation, one primitive after the other, until it is done or a wait outruns
 * its budget. Between two primitives the context says exactly where it stands, so it can stop and come back anywhere
 * (docs/architecture.md). Single source: one thread of a block runs it, and has the pieces of work that it describes carried
 * out by the block's team (device/engine/workers_host.h, device/engine/workers_cuda.h).
 */
#ifndef RONDO_DEVICE_ENGINE_ENGINE_H
#define RONDO_DEVICE_ENGINE_ENGINE_H

#include "device/move/low_latency.h"
#include "device/abi/slice_operation.h"
#include "device/abi/platform.h"
#include "device/engine/run.h"
#include "device/abi/structures.h"
#include "device/engine/use.h"

#if defined(__CUDACC__)
#include "device/engine/workers_cuda.h"
#else
#include "device/engine/workers_host.h"
#endif

/* The part of a piece that a team may leave until the slots it fills have been told of; before those it takes are given back.
 */
#if !defined(RONDO_WORKERS_REST)
#define RONDO_WORKERS_REST(workers) ((void) (workers))
#endif

#include "device/engine/slices.h"
#include "device/engine/waits.h"

/* ---- moving ---- */

/* The stretch of a chunk of this rank's buffers. */
RONDO_FUNCTION char *rondo_local(const struct rondo_run *run, uint32_t buffer, struct rondo_extent chunk,
                                 struct rondo_stretch stretch)
{
    return run->operation->buffers[buffer] + (chunk.offset + stretch.start) * run->element_bytes;
}

RONDO_FUNCTION char *rondo_local_chunk(const struct rondo_run *run, uint32_t buffer, uint32_t index,
                                       struct rondo_stretch stretch)
{
    return rondo_local(run, buffer, rondo_chunk_extent(&run->operation->layouts[buffer], index), stretch);
}

/* Where the stretch of a chunk begins in a buffer. */
RONDO_FUNCTION uint64_t rondo_chunk_bytes(const struct rondo_run *run, uint32_t buffer, uint32_t index,
                                          struct rondo_stretch stretch)
{
    return (rondo_chunk_extent(&run->operation->layouts[buffer], index).offset + stretch.start) * run->element_bytes;
}

/* What the primitive does to the current slice of its k-th chunks, of which the measured one is given. Pieces lie one after the
 * other in a slot. */
RONDO_FUNCTION void rondo_describe(const struct rondo_run *run, const struct rondo_instruction *instruction, uint32_t k,
                                   size_t slot_offset, struct rondo_extent measured, struct rondo_stretch stretch,
                                   struct rondo_slice_op *slice_op, struct rondo_use *use)
{
    const struct rondo_operation *operation = run->operation;
    const uint8_t actions = instruction->actions, flags = instruction->flags;
    const int finishes = flags & RONDO_FINISH, receives = actions & RONDO_RECEIVE, copies = actions & RONDO_COPY;
    const uint8_t received = receives ? instruction->receive_count : 0,
                  sent = actions & RONDO_SEND ? instruction->send_count : 0;
    uint8_t sources = received, op = operation->op;
    use->receive_first = instruction->receive_first;
    use->received = received;
    use->send_first = instruction->send_first;
    use->sent = sent;
    use->direct_in = (flags & RONDO_DIRECT_IN) != 0;
    use->direct_out = (flags & RONDO_DIRECT_OUT) != 0;
    use->local_place = received;
    use->slot_offset = slot_offset;
    use->direct_write = NULL;
    /* Layouts are the same on all ranks of a program with direct ends. */
    if (receives && use->direct_in)
        use->direct_in_offset = rondo_chunk_bytes(run, RONDO_INPUT, instruction->remote_index + k, stretch);
    if (sent > 0 && use->direct_out)
        use->direct_out_offset = rondo_chunk_bytes(run, RONDO_OUTPUT, instruction->remote_index + k, stretch);
    slice_op->count = rondo_covered(measured, stretch);
    slice_op->average = finishes ? operation->average : 0;
    slice_op->type = operation->type;
    slice_op->element_bytes = (uint8_t) run->element_bytes;
    slice_op->streaming = operation->streaming;
    slice_op->local = copies ? rondo_local(run, instruction->destination_buffer, measured, stretch) : NULL;
    slice_op->exchanges = (flags & RONDO_EXCHANGE) != 0;
    if ((actions & RONDO_REDUCE) || !receives) {
        uint8_t buffer = instruction->source_buffer;
        use->local_place = instruction->local_place < received ? instruction->local_place : received;
        slice_op->source[use->local_place] = copies ? rondo_local_chunk(run, buffer, instruction->source_index + k, stretch)
                                                    : rondo_local(run, buffer, measured, stretch);
        sources++;
    }
    if ((actions & RONDO_REDUCE) && !receives)
        slice_op->source[sources++] =
            rondo_local_chunk(run, instruction->destination_buffer, instruction->destination_index + k, stretch);
    int logical = op == RONDO_LAND || op == RONDO_LOR || op == RONDO_LXOR;
    use->twice = logical && finishes && sources == 1; /* one contribution alone becomes 0 or 1 too: x or x */
    if (use->twice) {
        if (!receives)
            slice_op->source[1] = slice_op->source[0];
        sources = 2;
        op = RONDO_LOR;
    }
    slice_op->op = op;
    slice_op->sources = sources;
    slice_op->remotes = sent;
    slice_op->ll_sources = slice_op->ll_remotes = 0;
    slice_op->lines = 0;
    slice_op->sent = (uint8_t) run->sent;
    if (received > 0 && !use->direct_in && rondo_is_flagged(rondo_end_of(run, use->receive_first))) {
        slice_op->lines = rondo_end_of(run, use->receive_first)->protocol == RONDO_PROTOCOL_LL128;
        uint64_t all = rondo_low_bits(received), below = rondo_low_bits(use->local_place);
        slice_op->ll_sources = use->twice ? 3 : (all & below) | (use->local_place < received ? (all & ~below) << 1 : 0);
    }
    if (sent > 0 && !use->direct_out && rondo_is_flagged(rondo_end_of(run, use->send_first))) {
        slice_op->lines = rondo_end_of(run, use->send_first)->protocol == RONDO_PROTOCOL_LL128;
        slice_op->ll_remotes = rondo_low_bits(sent);
    }
    slice_op->rate = (uint8_t) operation->rate;
    if (operation->rate != 0) {
        use->instruction = run->instruction;
        use->chunk = k;
        use->start = stretch.start;
    }
}

/* ---- networks ---- */

#if defined(__CUDACC__)
RONDO_FUNCTION void rondo_expect(struct rondo_run *run, const struct rondo_instruction *instruction)
{
    (void) run;
    (void) instruction;
}
#else
#include "device/engine/post_receive_actions.h"
#endif

/* Tells each receiver where this rank's buffers are, or learns it from each sender. */
RONDO_FUNCTION void rondo_exchange_signals(const struct rondo_run *run, const struct rondo_instruction *instruction)
{
    const struct rondo_operation *operation = run->operation;
    if (instruction->actions & RONDO_SEND)
        for (uint32_t i = 0; i < instruction->send_count; i++) {
            struct rondo_signal *signal =
                (struct rondo_signal *) (void *) rondo_slot(rondo_end_of(run, instruction->send_first + i));
            for (int b = 0; b < 2; b++) {
                signal->window[b] = operation->windows[b][0];
                signal->offset[b] = operation->windows[b][1];
            }
        }
    if (instruction->actions & RONDO_RECEIVE)
        for (uint32_t i = 0; i < instruction->receive_count; i++) {
            struct rondo_end *end = rondo_end_of(run, instruction->receive_first + i);
            const struct rondo_signal *signal = (const struct rondo_signal *) (const void *) rondo_slot(end);
            for (int b = 0; b < 2; b++)
                end->direct[b] = end->windows[signal->window[b]] + signal->offset[b];
        }
}

/* ---- publishing ---- */

RONDO_FUNCTION void rondo_count_moved(struct rondo_run *run, const struct rondo_instruction *instruction, size_t bytes)
{
    run->advanced = 1;
    rondo_count(&run->statistics->primitives, 1);
    if ((instruction->actions & RONDO_SEND) && !(instruction->flags & RONDO_DIRECT_OUT))
        rondo_count(&run->statistics->bytes_sent, bytes * instruction->send_count);
}

/* The primitive's slots count as filled and taken from here on, though others are told later. */
RONDO_FUNCTION void rondo_commit(struct rondo_run *run, const struct rondo_instruction *instruction, size_t bytes)
{
    const struct rondo_policy *policy = run->policy;
    if ((instruction->actions & RONDO_SEND) && !(instruction->flags & RONDO_DIRECT_OUT)) {
        for (uint32_t i = 0; i < instruction->send_count; i++) {
            struct rondo_end *end = rondo_end_of(run, instruction->send_first + i);
            if (end->sizes != NULL) /* the proxy carries no more than this; published with the tail */
                rondo_store_relaxed32(end->sizes + (end->position & (end->slot_count - 1)), (uint32_t) bytes);
            end->position++;
        }
    }
    if ((instruction->actions & RONDO_RECEIVE) && !(instruction->flags & RONDO_DIRECT_IN))
        for (uint32_t i = 0; i < instruction->receive_count; i++)
            rondo_end_of(run, instruction->receive_first + i)->position++;
    run->unpublished = *instruction;
    run->pending = 1;
    rondo_count_moved(run, instruction, bytes);
    if (run->budget < policy->cap) {  /* else it was granted more, being alone */
        run->budget *= policy->boost; /* no overflow: lib/runtime/settings.c bounds cap and boost */
        run->budget = run->budget < policy->cap ? run->budget : policy->cap;
    }
    if (run->part->repeats && (instruction->actions & RONDO_SEND))
        rondo_workers_repeat_ends(run->workers, instruction->send_first, instruction->send_count);
    if (run->part->repeats && (instruction->actions & RONDO_RECEIVE))
        rondo_workers_repeat_ends(run->workers, instruction->receive_first, instruction->receive_count);
}

/* Tells the peers. Release: the payload before the tail, the end of our reading before the head. LL needs no tail (its flags
 * tell), only credits, and the values that were read through it have been used by now. */
RONDO_FUNCTION void rondo_publish(struct rondo_run *run)
{
    const struct rondo_instruction *instruction = &run->unpublished;
    if (!run->pending)
        return;
    run->pending = 0;
    int sends = (instruction->actions & RONDO_SEND) && !(instruction->flags & RONDO_DIRECT_OUT);
    int receives = (instruction->actions & RONDO_RECEIVE) && !(instruction->flags & RONDO_DIRECT_IN);
    if (sends && !rondo_is_flagged(rondo_end_of(run, instruction->send_first))) {
        rondo_publish_begin();
        for (uint32_t i = 0; i < instruction->send_count; i++) {
            struct rondo_end *end = rondo_end_of(run, instruction->send_first + i);
            rondo_publish_word(rondo_tail(end, end->position - 1, end->published), end->position);
        }
    }
    RONDO_WORKERS_REST(run->workers);
    for (uint32_t i = 0; receives && i < instruction->receive_count; i++) {
        struct rondo_end *end = rondo_end_of(run, instruction->receive_first + i);
        rondo_publish_word(end->published, end->position);
    }
}

/* Whatever has been begun is done, and told. */
RONDO_FUNCTION void rondo_settle(struct rondo_run *run)
{
    if (RONDO_WORKERS_OVERLAPS)
        rondo_workers_finish(run->workers);
    rondo_publish(run);
}

/* ---- the interpreter ---- */

RONDO_FUNCTION int rondo_receives_ll(const struct rondo_run *run, const struct rondo_instruction *instruction)
{
    return (instruction->actions & RONDO_RECEIVE) && !(instruction->flags & RONDO_DIRECT_IN) &&
           instruction->receive_count > 0 && rondo_is_flagged(rondo_end_of(run, instruction->receive_first));
}

/* What the primitive before did is told while the team works. */
RONDO_FUNCTION void rondo_begin(struct rondo_run *run, const struct rondo_instruction *instruction, uint64_t polls)
{
    rondo_workers_begin(run->workers, polls);
    rondo_publish(run);
    if (run->keeps)
        rondo_workers_keep(run->workers, instruction);
}

/* The piece's data have to be waited for by the team. It stores nothing before all are there. 0: stuck. */
RONDO_FUNCTION int rondo_begin_polling(struct rondo_run *run, const struct rondo_instruction *instruction)
{
    uint64_t most = run->policy->preempt && run->budget < 256 ? run->budget : 256, polls = most;
    rondo_begin(run, instruction, most);
    while (!rondo_workers_finish(run->workers)) {
        if (rondo_outrun(run, polls)) {
            rondo_report_missing(run, rondo_end_of(run, instruction->receive_first)->peer + 1);
            run->sent = (instruction->flags & RONDO_EXCHANGE) != 0;
            return 0;
        }
        polls += most;
        rondo_workers_repeat(run->workers);
    }
    run->sent = 0;
    rondo_workers_forget_progress(run->workers);
    return 1;
}

/* One slice of the instruction: everything it waits for is there, but for LL data where the team looks for them. The last piece
 * may go on while the next slice is prepared. 0: stuck. */
RONDO_FUNCTION int rondo_move(struct rondo_run *run, const struct rondo_instruction *instruction, struct rondo_extent measured,
                              struct rondo_stretch stretch)
{
    int polls = RONDO_WORKERS_POLLS_LL && rondo_receives_ll(run, instruction);
    size_t slot_offset = 0;
    for (uint32_t k = 0; k < instruction->count; k++) {
        if (k > 0)
            measured = rondo_measured_chunk(run->operation, instruction, k);
        size_t bytes = rondo_covered(measured, stretch) * run->element_bytes;
        if (bytes > 0 && k >= run->slice_op) {
            struct rondo_use *use = rondo_workers_use(run->workers);
            if (!run->described)
                rondo_describe(run, instruction, k, slot_offset, measured, stretch, rondo_workers_slice_op(run->workers), use);
            run->described = 0;
            rondo_workers_take_ends(run->workers, run, use);
            rondo_workers_finish(run->workers); /* the piece before */
            if (polls && !rondo_begin_polling(run, instruction)) {
                run->advanced |= run->slice_op != k;
                run->slice_op = k;
                return 0;
            }
            if (!polls)
                rondo_begin(run, instruction, 0);
        }
        slot_offset += rondo_slice_op_room(run, instruction, rondo_payload_bytes(run, rondo_covered(measured, stretch)));
    }
    run->slice_op = 0;
    return 1;
}

RONDO_FUNCTION void rondo_arrive(struct rondo_run *run)
{
    if (run->early)
        rondo_workers_arrive(run->workers, run);
    run->early = 0;
}

/* 0: stuck. */
RONDO_FUNCTION int rondo_run_signal(struct rondo_run *run, const struct rondo_instruction *instruction)
{
    if (run->tile != 0)
        return 1;
    rondo_arrive(run);
    rondo_settle(run);
    if (!rondo_wait_ready(run, instruction, sizeof(struct rondo_signal)))
        return 0;
    rondo_exchange_signals(run, instruction);
    rondo_commit(run, instruction, sizeof(struct rondo_signal));
    rondo_publish(run);
    return 1;
}

/* All slices of the instruction in the current tile. 0: stuck; slice says at which. */
RONDO_FUNCTION int rondo_run_slices(struct rondo_run *run, const struct rondo_instruction *instruction)
{
    const struct rondo_extent measured = rondo_measured_chunk(run->operation, instruction, 0);
    for (const uint32_t slices = run->operation->slices; run->slice < slices;) {
        struct rondo_stretch stretch = rondo_current_stretch(run);
        size_t bytes = rondo_slice_bytes(run, instruction, measured, stretch);
        if (bytes == 0)
            break;
        if (run->early) { /* while what comes before is ending */
            run->described = rondo_covered(measured, stretch) > 0;
            if (run->described) {
                rondo_describe(run, instruction, 0, 0, measured, stretch, rondo_workers_slice_op(run->workers),
                               rondo_workers_use(run->workers));
                if (rondo_workers_goes_ahead(run->workers, instruction)) {
                    rondo_arrive(run);
                    if (rondo_workers_finish(run->workers)) {
                        rondo_count_moved(run, instruction, bytes);
                        run->over = 1;
                        return 1;
                    }
                }
            }
            rondo_arrive(run);
        }
        if (rondo_missing(run, instruction, bytes) != RONDO_MISSES_NOTHING) {
            rondo_settle(run); /* the peers may be waiting for it */
            rondo_expect(run, instruction);
            if (!rondo_wait_ready(run, instruction, bytes))
                return 0;
        }
        if (!rondo_move(run, instruction, measured, stretch))
            return 0;
        run->slice++;
        rondo_publish(run); /* of the primitive before, if this one moved nothing */
        rondo_commit(run, instruction, bytes);
        if (!RONDO_WORKERS_OVERLAPS)
            rondo_publish(run);
    }
    run->slice = 0;
    return 1;
}

#include "device/engine/direct_write.h"

RONDO_FUNCTION enum rondo_outcome rondo_interpret(struct rondo_run *run)
{
    const uint64_t tiles = run->operation->tiles;
    const uint32_t instructions = run->part->instruction_count;
    if (rondo_writes_directly(run) && run->direct_write != RONDO_DIRECT_WRITE_BY_SLOTS) {
        const enum rondo_outcome outcome = rondo_write_directly(run);
        if (run->direct_write != RONDO_DIRECT_WRITE_BY_SLOTS)
            return outcome;
    }
    while (run->tile < tiles) {
        while (run->instruction < instructions) {
            if (!rondo_workers_has_instruction(run->workers, run->instruction)) {
                rondo_settle(run);
                rondo_workers_load_page(run->workers, run->instruction);
            }
            const struct rondo_instruction instruction = *rondo_workers_instruction(run->workers, run, run->instruction);
            int done =
                instruction.flags & RONDO_SIGNAL ? rondo_run_signal(run, &instruction) : rondo_run_slices(run, &instruction);
            if (!done)
                return RONDO_OUTCOME_STUCK;
            if (run->over)
                return RONDO_OUTCOME_FINISHED;
            if (instruction.flags & RONDO_NOTIFY) { /* release: this instruction's stores before its semaphore */
                rondo_settle(run);
                rondo_store_release_device(run->semaphores + run->program_block,
                                           rondo_semaphore_value(run, run->program_block, run->instruction));
            }
            run->instruction++;
            run->advanced = 1;
        }
        run->instruction = 0;
        run->tile++;
    }
#if !defined(__CUDACC__)
    /* Without a budget of polls: it may be this very thread that is to do the proxy's work next. */
    if (!rondo_is_settled(run))
        return RONDO_OUTCOME_STUCK;
#endif
    return RONDO_OUTCOME_FINISHED;
}

/* Runs on from the context until the block's list is done or a wait outruns the budget. */
RONDO_FUNCTION enum rondo_outcome rondo_engine_run(struct rondo_run *run)
{
    struct rondo_context *context = run->context;
    run->pending = 0;
    run->described = run->over = 0;
    run->advanced = 0;
    run->tile = context->tile;
    run->instruction = context->instruction;
    run->slice = context->slice;
    run->slice_op = context->slice_op;
    run->sent = context->sent;
    run->direct_write = context->direct_write;
    rondo_workers_load(run->workers, run);
    rondo_workers_resume(run->workers, context);
    run->element_bytes = run->operation->element_bytes;
    enum rondo_outcome outcome = rondo_interpret(run);
    if (run->over)
        return outcome;
    if (outcome == RONDO_OUTCOME_FINISHED)
        rondo_workers_ending(run->workers);
    rondo_arrive(run);
    rondo_settle(run);
    context->tile = run->tile;
    context->instruction = run->instruction;
    context->slice = run->slice;
    context->slice_op = run->slice_op;
    run->advanced |= context->sent != run->sent;
    context->sent = run->sent;
    context->direct_write = run->direct_write;
    run->advanced |= (uint32_t) rondo_workers_pause(run->workers, context);
    rondo_workers_unload(run->workers, run);
    return outcome;
}

#endif
