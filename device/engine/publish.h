/*
 * Publishing: what an executed slice changes. Its slots count as filled and taken at once (rondo_commit); the peers are told
 * when the worker group has finished it (rondo_publish). And the signals of direct access, which say where buffers are. Single
 * source; by the thread that runs the engine.
 */
#ifndef RONDO_DEVICE_ENGINE_PUBLISH_H
#define RONDO_DEVICE_ENGINE_PUBLISH_H

#include "device/abi/platform.h"
#include "device/engine/run.h"
#include "device/engine/use.h"
#include "device/engine/waits.h"
#include "device/engine/workers.h"

/* Writes this rank's buffer addresses into the slots of all receivers, or reads each sender's from its slot. The slots are
 * there. */
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

/* Raises the budget of the run's waits, after so many primitives. One above the cap stays: the task was granted it because it
 * is alone. */
RONDO_FUNCTION void rondo_raise_budget(struct rondo_run *run, uint32_t primitives)
{
    const struct rondo_policy *policy = run->policy;
    for (; primitives > 0 && run->budget < policy->budgets.cap; primitives--) {
        run->budget *= policy->boost; /* no overflow: lib/base/environment.c bounds cap and boost */
        run->budget = run->budget < policy->budgets.cap ? run->budget : policy->budgets.cap;
    }
}

/* Counts a slot as filled. */
RONDO_FUNCTION void rondo_fill(struct rondo_end *end)
{
    end->position++;
#if !defined(__CUDACC__)
    if (rondo_has_tails_in_slots(end)) /* the next one comes from its last reader until it is stored to */
        rondo_fetch_to_write(rondo_slot(end));
#endif
}

/* After a slot that had come before it was looked for: has the next one fetched, if its sender may have filled that, too. skip:
 * bytes of the payload before what this rank takes of it. */
RONDO_FUNCTION void rondo_fetch_next(const struct rondo_part *part, const struct rondo_end *end, size_t skip)
{
#if defined(__CUDACC__)
    (void) part; /* such connectors are the host's */
    (void) end;
    (void) skip;
#else
    if (!part->only_receives || !rondo_has_tails_in_slots(end))
        return;
    rondo_fetch_to_read(rondo_tail(end, end->position, end->watched));
    if (skip > 0)
        rondo_fetch_to_read(rondo_slot(end) + skip);
#endif
}

/* Announces the last filled slot to the end's peer. */
RONDO_FUNCTION void rondo_tell_receiver(const struct rondo_end *end)
{
    rondo_publish_word(rondo_tail(end, end->position - 1, end->published), end->position);
}

/* Gives the slots that have been taken back to the end's peer. */
RONDO_FUNCTION void rondo_tell_sender(const struct rondo_end *end)
{
    if (rondo_gives_back(end))
        rondo_publish_word(end->published, end->position);
}

/* Adds the instruction to the block's statistics and notes that the run has advanced. */
RONDO_FUNCTION void rondo_count_moved(struct rondo_run *run, const struct rondo_instruction *instruction, size_t bytes)
{
    run->advanced = 1;
    rondo_count(&run->statistics->primitives, 1);
    if ((instruction->actions & RONDO_SEND) && !(instruction->flags & RONDO_DIRECT_OUT))
        rondo_count(&run->statistics->bytes_sent, bytes * instruction->send_count);
}

/* Counts the instruction's slots as filled and taken. bytes: of each slot. Peers are told by the next rondo_publish. */
RONDO_FUNCTION void rondo_commit(struct rondo_run *run, const struct rondo_instruction *instruction, size_t bytes)
{
    if ((instruction->actions & RONDO_SEND) && !(instruction->flags & RONDO_DIRECT_OUT)) {
        for (uint32_t i = 0; i < instruction->send_count; i++) {
            struct rondo_end *end = rondo_end_of(run, instruction->send_first + i);
            if (end->sizes != NULL) /* the proxy sends no more than this; published with the tail */
                rondo_store_relaxed32(end->sizes + (end->position & (end->slot_count - 1)), (uint32_t) bytes);
            rondo_fill(end);
        }
    }
    if ((instruction->actions & RONDO_RECEIVE) && !(instruction->flags & RONDO_DIRECT_IN))
        for (uint32_t i = 0; i < instruction->receive_count; i++)
            rondo_end_of(run, instruction->receive_first + i)->position++;
    run->unpublished = *instruction;
    run->pending = 1;
    rondo_count_moved(run, instruction, bytes);
    rondo_raise_budget(run, 1);
    if (run->part->repeats && (instruction->actions & RONDO_SEND))
        rondo_workers_repeat_ends(run->workers, instruction->send_first, instruction->send_count);
    if (run->part->repeats && (instruction->actions & RONDO_RECEIVE))
        rondo_workers_repeat_ends(run->workers, instruction->receive_first, instruction->receive_count);
}

/* Tells the peers of the last committed instruction. Release: the payload comes before the tail, and the end of reading
 * before the head. LL slots need no tail, for their flags announce them; they need the head, and the values read through
 * them have been used by now. */
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
        for (uint32_t i = 0; i < instruction->send_count; i++)
            rondo_tell_receiver(rondo_end_of(run, instruction->send_first + i));
    }
    rondo_workers_rest(run->workers);
    for (uint32_t i = 0; receives && i < instruction->receive_count; i++)
        rondo_tell_sender(rondo_end_of(run, instruction->receive_first + i));
}

/* Finishes what the worker group has under way, and publishes it. */
RONDO_FUNCTION void rondo_settle(struct rondo_run *run)
{
    if (RONDO_WORKERS_OVERLAPS)
        rondo_workers_finish(run->workers);
    rondo_publish(run);
}

#if defined(__CUDACC__)
/* Waits until it is the turn of an operation whose run began early. Defined by device/cuda/kernels.cu, which alone knows what
 * kernels on streams wait for. */
RONDO_FUNCTION void rondo_workers_arrive(struct rondo_workers *workers, const struct rondo_run *run);
#endif

/* Waits until it is the operation's turn, if the run began early and has not waited yet. */
RONDO_FUNCTION void rondo_arrive(struct rondo_run *run)
{
    if (run->early)
        rondo_workers_arrive(run->workers, run);
    run->early = 0;
}

#endif
