/*
 * The engine: interprets one program block of an operation, one primitive after the other, until it is done or a wait outruns
 * its budget. Between two primitives the context says exactly where it stands, so it can stop and come back anywhere
 * (docs/architecture.md). Single source: one thread of a block runs it, and has the slice operations that it describes carried
 * out by the block's worker group (device/engine/workers.h).
 */
#ifndef RONDO_DEVICE_ENGINE_ENGINE_H
#define RONDO_DEVICE_ENGINE_ENGINE_H

#include "device/abi/platform.h"
#include "device/abi/slice_operation.h"
#include "device/abi/structures.h"
#include "device/engine/describe.h"
#include "device/engine/direct_write.h"
#include "device/engine/publish.h"
#include "device/engine/run.h"
#include "device/engine/short_moves.h"
#include "device/engine/single_copy.h"
#include "device/engine/slices.h"
#include "device/engine/use.h"
#include "device/engine/waits.h"
#include "device/engine/workers.h"
#if !defined(__CUDACC__)
#include "device/engine/post_receive_actions.h"
#endif

/* Posts receive actions before a wait for a network. GPUs have none. */
#if defined(__CUDACC__)
RONDO_FUNCTION void rondo_expect(struct rondo_run *run, const struct rondo_instruction *instruction)
{
    (void) run;
    (void) instruction;
}
#endif

/* Whether the instruction receives through connectors whose slots carry flags. */
RONDO_FUNCTION int rondo_receives_ll(const struct rondo_run *run, const struct rondo_instruction *instruction)
{
    return (instruction->actions & RONDO_RECEIVE) && !(instruction->flags & RONDO_DIRECT_IN) &&
           instruction->receive_count > 0 && rondo_is_flagged(rondo_end_of(run, instruction->receive_first));
}

/* Begins the slice operation that has been described, and publishes the previous primitive while the worker group works.
 * polls: how often LL data are looked for; 0: they are there. */
RONDO_FUNCTION void rondo_begin(struct rondo_run *run, const struct rondo_instruction *instruction, uint64_t polls)
{
    rondo_workers_begin(run->workers, polls);
    rondo_publish(run);
    if (run->keeps)
        rondo_workers_keep(run->workers, instruction);
}

/* Begins the slice operation and waits, within the budget, until the worker group has found its LL data, before which it
 * stores nothing. Returns 0 if stuck. */
RONDO_FUNCTION int rondo_begin_polling(struct rondo_run *run, const struct rondo_instruction *instruction)
{
    const uint64_t most = run->policy->preempt ? rondo_looks_within(run->budget, 256) : 256;
    struct rondo_wait wait = {most, rondo_ticks()};
    rondo_begin(run, instruction, most);
    while (!rondo_workers_finish(run->workers)) {
        if (rondo_outrun(run, &wait)) {
            rondo_report_missing(run, rondo_end_of(run, instruction->receive_first)->peer + 1);
            run->sent = (instruction->flags & RONDO_EXCHANGE) != 0;
            return 0;
        }
        wait.looks += most;
        rondo_workers_repeat(run->workers);
    }
    run->sent = 0;
    rondo_workers_forget_progress(run->workers);
    return 1;
}

/* Moves one slice of the instruction. Everything it waits for is there, except LL data where the worker group polls for
 * them. The last slice operation may still be under way on return. Returns 0 if stuck; run->slice_op says at which slice
 * operation. */
RONDO_FUNCTION int rondo_move(struct rondo_run *run, const struct rondo_instruction *instruction, struct rondo_extent measured,
                              struct rondo_stretch stretch)
{
    int polls = RONDO_WORKERS_POLLS_LL && rondo_receives_ll(run, instruction);
    size_t slot_offset = rondo_slot_skip(run, instruction, measured, stretch);
    for (uint32_t k = 0; k < instruction->count; k++) {
        if (k > 0)
            measured = rondo_measured_chunk(run->operation, instruction, k);
        size_t bytes = rondo_covered(measured, stretch) * run->element_bytes;
        if (bytes > 0 && k >= run->slice_op) {
            struct rondo_use *use = rondo_workers_use(run->workers);
            if (!run->described)
                rondo_describe(run, instruction, (struct rondo_slice_part){k, slot_offset, measured, stretch},
                               rondo_workers_slice_op(run->workers), use);
            run->described = 0;
            rondo_workers_take_ends(run->workers, run, use);
            rondo_workers_finish(run->workers); /* the previous slice operation */
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

/* Sends or receives the instruction's signal, in the first tile only. Returns 0 if stuck. */
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

/* Executes all slices of the instruction in the current tile. Returns 0 if stuck; run->slice says at which slice. */
RONDO_FUNCTION int rondo_run_slices(struct rondo_run *run, const struct rondo_instruction *instruction)
{
    const struct rondo_extent measured = rondo_measured_chunk(run->operation, instruction, 0);
    for (const uint32_t slices = run->operation->slices; run->slice < slices;) {
        struct rondo_stretch stretch = rondo_current_stretch(run);
        size_t bytes = rondo_slice_bytes(run, instruction, measured, stretch);
        if (bytes == 0)
            break;
        if (run->early) { /* the kernel before this one may still be ending */
            run->described = rondo_covered(measured, stretch) > 0;
            if (run->described) {
                rondo_describe(run, instruction, (struct rondo_slice_part){0, 0, measured, stretch},
                               rondo_workers_slice_op(run->workers), rondo_workers_use(run->workers));
                if (rondo_workers_run_ahead(run->workers, instruction)) {
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
        const int ahead = rondo_missing(run, instruction, bytes) == RONDO_MISSES_NOTHING;
        if (!ahead) {
            rondo_settle(run); /* peers may wait for it */
            rondo_expect(run, instruction);
            if (!rondo_wait_ready(run, instruction, bytes))
                return 0;
        }
        if (!rondo_move_short(run, instruction, measured, stretch, bytes) &&
            (!rondo_take_references(run, instruction, measured, stretch) || !rondo_move(run, instruction, measured, stretch)))
            return 0;
        run->slice++;
        rondo_publish(run); /* publishes the previous primitive if this one moved nothing */
        rondo_commit(run, instruction, bytes);
        if (!RONDO_WORKERS_OVERLAPS)
            rondo_publish(run);
        if (ahead && (instruction->actions & RONDO_RECEIVE))
            for (uint32_t i = 0; i < instruction->receive_count; i++)
                rondo_fetch_next(run->part, rondo_end_of(run, instruction->receive_first + i), 0);
        if (rondo_is_outranked(run)) { /* the context may say that all slices are done */
            run->yields = 1;
            return 0;
        }
    }
    run->slice = 0;
    return 1;
}

/* Interprets the instruction list from the run's position. Returns FINISHED or STUCK. */
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
        while (rondo_run_short(run), run->instruction < instructions) {
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
    /* Not waited for here: the calling thread may be the one that has to run the proxy next. */
    if (!rondo_is_settled(run))
        return RONDO_OUTCOME_STUCK;
#endif
    if (!rondo_await_readers(run))
        return RONDO_OUTCOME_STUCK;
    return RONDO_OUTCOME_FINISHED;
}

/* Runs the block's part of an operation from the position in run->context until it is done or a wait outruns run->budget. By
 * the thread that leads the block, with run prepared (rondo_prepare_run) and run->workers idle. On return nothing is under
 * way, the peers know of all that was moved, and the context holds the new position; run->advanced is 1 if it has moved. */
RONDO_FUNCTION enum rondo_outcome rondo_engine_run(struct rondo_run *run)
{
    struct rondo_context *context = run->context;
    run->pending = 0;
    run->described = run->over = 0;
    run->advanced = run->waited = 0;
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
    rondo_store_apart32(&context->instruction, run->instruction);
    rondo_store_apart32(&context->slice, run->slice);
    rondo_store_apart32(&context->slice_op, run->slice_op);
    run->advanced |= context->sent != run->sent;
    context->sent = run->sent;
    context->direct_write = run->direct_write;
    run->advanced |= (uint32_t) rondo_workers_pause(run->workers, context);
    rondo_workers_unload(run->workers, run);
    return outcome;
}

#endif
