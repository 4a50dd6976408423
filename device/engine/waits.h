/*
 * Waiting: whether the slots, the free slots and the steps of other blocks that a primitive needs are there, and for how long
 * the engine looks for them. Single source; by the thread that runs the engine.
 */
#ifndef RONDO_DEVICE_ENGINE_WAITS_H
#define RONDO_DEVICE_ENGINE_WAITS_H

#include "device/move/low_latency.h"
#include "device/engine/references.h"
#include "device/engine/run.h"
#include "device/engine/use.h"
#include "device/engine/workers.h"

/* Address of the slot that the end fills or takes next. */
RONDO_FUNCTION char *rondo_slot(const struct rondo_end *end)
{
    return rondo_slot_at(end, end->position);
}

/* Whether the next slot has arrived. bytes: of its payload. Acquire: everything that the producer wrote before it published
 * the tail is visible. */
RONDO_FUNCTION int rondo_arrived(struct rondo_end *end, size_t bytes)
{
    if (rondo_is_flagged(end))
        return RONDO_WORKERS_POLLS_LL ||
               rondo_ll_ready((const uint64_t *) (const void *) rondo_slot(end), bytes, (uint32_t) (end->position + 1));
    if (end->seen <= end->position)
        end->seen = rondo_load_acquire(rondo_tail(end, end->position, end->watched));
    return end->seen > end->position;
}

/* The head of the multicast receiver that has given back the fewest slots, and their number. NULL: the end is no multicast
 * sender's. */
RONDO_FUNCTION const struct rondo_multicast_head *rondo_slowest_head(const struct rondo_end *end, uint64_t *taken)
{
    const struct rondo_multicast_head *slowest = NULL;
#if defined(__CUDACC__)
    (void) end; /* multicast connectors are the host's */
    (void) taken;
#else
    const struct rondo_multicast_head *heads = (const struct rondo_multicast_head *) (const void *) end->watched;
    for (uint32_t i = 0; i < end->receivers; i++) {
        /* Acquire pairs with this receiver's release: its reading of the slots below comes before the sender's next stores to
         * them. That must hold of every receiver, not of the slowest alone. */
        const uint64_t count = rondo_load_acquire(&heads[i].taken);
        if (i == 0 || count < *taken) {
            slowest = &heads[i];
            *taken = count;
        }
    }
#endif
    return slowest;
}

/* The number of slots that the end's peer, or all of its receivers, have given back. Acquire pairs with the release of the
 * head: what was given back has been read. */
RONDO_FUNCTION uint64_t rondo_given_back(const struct rondo_end *end)
{
    uint64_t taken;
    return rondo_slowest_head(end, &taken) != NULL ? taken : rondo_load_acquire(end->watched);
}

/* Whether the next slot is free. */
RONDO_FUNCTION int rondo_has_room(struct rondo_end *end)
{
    if (end->position - end->seen >= end->slot_count)
        end->seen = rondo_given_back(end);
    return end->position - end->seen < end->slot_count;
}

/* The rank in the world that a sender without a free slot waits for. */
RONDO_FUNCTION int32_t rondo_awaited_receiver(const struct rondo_end *end)
{
    uint64_t taken;
    const struct rondo_multicast_head *slowest = rondo_slowest_head(end, &taken);
    return slowest != NULL ? (int32_t) slowest->peer : end->peer;
}

/* The value of a block's semaphore after it has executed a step of the current tile. */
RONDO_FUNCTION uint64_t rondo_semaphore_value(const struct rondo_run *run, uint32_t block, uint32_t step)
{
    const struct rondo_part *part = block == run->program_block ? run->part : &run->operation->parts[block];
    return run->context->operation << 32 | (uint32_t) (run->tile * part->instruction_count + step + 1);
}

/* What a primitive waits for: nothing, another block, or 1 + the rank in the world whose slot is missing. */
enum { RONDO_MISSES_NOTHING = -1, RONDO_MISSES_BLOCK = 0 };

/* What the instruction lacks for its current slice of so many bytes; see RONDO_MISSES_NOTHING. */
RONDO_FUNCTION int32_t rondo_missing(struct rondo_run *run, const struct rondo_instruction *instruction, size_t bytes)
{
    if (instruction->dependencies > 0 && run->slice == 0)
        for (uint32_t i = 0; i < instruction->dependencies; i++) {
            const struct rondo_dependency *on = run->part->dependencies + instruction->dependency_first + i;
            uint64_t wanted = rondo_semaphore_value(run, on->block, on->step);
            /* Acquire pairs with the release in rondo_interpret: the other block's stores are visible. */
            uint64_t value = rondo_load_acquire_device(run->semaphores + on->block);
            if (value >> 32 != wanted >> 32 || value < wanted)
                return RONDO_MISSES_BLOCK;
        }
    if ((instruction->actions & RONDO_RECEIVE) && !(instruction->flags & RONDO_DIRECT_IN))
        for (uint32_t i = 0; i < instruction->receive_count; i++) {
            struct rondo_end *end = rondo_end_of(run, instruction->receive_first + i);
            if (!rondo_arrived(end, bytes))
                return end->peer + 1;
        }
    if ((instruction->actions & RONDO_SEND) && !(instruction->flags & RONDO_DIRECT_OUT))
        for (uint32_t i = 0; i < instruction->send_count; i++) {
            struct rondo_end *end = rondo_end_of(run, instruction->send_first + i);
            if (!rondo_has_room(end))
                return rondo_awaited_receiver(end) + 1;
        }
    return RONDO_MISSES_NOTHING;
}

/* Notes what the context waits for, for the host's hang reports. */
RONDO_FUNCTION void rondo_report_missing(const struct rondo_run *run, int32_t missing)
{
    rondo_store_relaxed(run->waiting, (uint64_t) missing);
}

/* A wait that has begun: how often it has looked in vain, and since when. */
struct rondo_wait {
    uint64_t looks;
    uint64_t since; /* 0: the clock has not been read yet */
};

/* Reading the clock takes a host as long as a look. So a short wait does without, a long one reads it now and then, and a
 * budget of few looks is counted in looks. */
#if defined(__CUDACC__)
#define RONDO_LOOKS_UNTIMED 0
#define RONDO_LOOKS_A_CLOCK 1
#define RONDO_LOOKS_COUNTED 2
#else
#define RONDO_LOOKS_UNTIMED 4
#define RONDO_LOOKS_A_CLOCK 16 /* more than the above */
#define RONDO_LOOKS_COUNTED 16
#endif

/* Whether the block has got more work since the run began. A hint, without ordering: the next round looks for itself. */
RONDO_FUNCTION int rondo_has_more(const struct rondo_run *run)
{
    return run->coming != NULL && rondo_load_relaxed(run->coming) != run->come;
}

/* Whether the wait has to end, after a look in vain. Without preemption only the host's interrupts and the lane's failure end
 * one. */
RONDO_FUNCTION int rondo_outrun(const struct rondo_run *run, struct rondo_wait *wait)
{
    if (!run->policy->preempt)
        return rondo_load_relaxed32(run->failed) != 0 || rondo_load_relaxed(&run->queues->interrupts) != *run->interrupts;
    uint64_t waited = wait->looks * RONDO_LOOK_TICKS;
    if (run->budget >= RONDO_LOOKS_COUNTED * RONDO_LOOK_TICKS) {
        if (wait->since == 0 && wait->looks >= RONDO_LOOKS_UNTIMED)
            wait->since = rondo_ticks() - RONDO_LOOKS_UNTIMED * RONDO_LOOK_TICKS;
        if (wait->looks % RONDO_LOOKS_A_CLOCK != 0 || wait->since == 0)
            return 0;
        waited = rondo_ticks() - wait->since;
    }
    if (waited < run->budget && !rondo_has_more(run))
        return 0;
    rondo_count(&run->statistics->spin_ticks, waited);
    return 1;
}

/* The word by which the end's peer, or the slowest of its receivers, gives slots back. */
RONDO_FUNCTION const uint64_t *rondo_awaited_head(const struct rondo_end *end)
{
    uint64_t taken;
    const struct rondo_multicast_head *slowest = rondo_slowest_head(end, &taken);
    return slowest != NULL ? &slowest->taken : end->watched;
}

#if defined(__CUDACC__)

/* GPUs reference nothing. */
RONDO_FUNCTION void rondo_fill_refused(const struct rondo_run *run)
{
    (void) run;
}
RONDO_FUNCTION int rondo_may_be_refused(const struct rondo_run *run)
{
    (void) run;
    return 0;
}

#else

/* Copies the bytes of the run's refused references into their slots (device/engine/references.h). */
RONDO_FUNCTION void rondo_fill_refused(const struct rondo_run *run)
{
    rondo_visit_references(run->operation, run->part, run->workers->single_copy_peers, rondo_fill_slots);
}

/* Whether a reference of the run may yet be refused. */
RONDO_FUNCTION int rondo_may_be_refused(const struct rondo_run *run)
{
    return rondo_visit_references(run->operation, run->part, run->workers->single_copy_peers, rondo_is_unread) != NULL;
}

#endif

/* What a stuck run waits for, for the readiness check: the first of its slots that is missing, or the first receiver without
 * a free one. */
RONDO_FUNCTION struct rondo_awaited rondo_awaits(const struct rondo_run *run)
{
    const struct rondo_instruction *instruction = rondo_workers_instruction(run->workers, run, run->instruction);
    struct rondo_awaited anything = {NULL, 0, RONDO_AWAITS_ANYTHING, 0};
    if (rondo_may_be_refused(run)) /* its receivers may wait for it */
        return anything;
    if (run->tile >= run->operation->tiles || (instruction->dependencies > 0 && run->slice == 0))
        return anything;
    if ((instruction->actions & RONDO_RECEIVE) && !(instruction->flags & RONDO_DIRECT_IN))
        for (uint32_t i = 0; i < instruction->receive_count; i++) {
            const struct rondo_end *end = rondo_end_of(run, instruction->receive_first + i);
            const uint64_t *first = (const uint64_t *) (const void *) rondo_slot(end);
            if (end->protocol == RONDO_PROTOCOL_LL128) /* its first line's flag */
                first += RONDO_LINE_DATA / sizeof(*first);
            if (!rondo_is_flagged(end) && end->seen <= end->position)
                return (struct rondo_awaited){rondo_tail(end, end->position, end->watched), end->position + 1,
                                              RONDO_AWAITS_COUNT, 0};
            if (rondo_is_flagged(end) && rondo_load_relaxed(first) >> 32 != (uint32_t) (end->position + 1))
                return (struct rondo_awaited){first, (uint32_t) (end->position + 1), RONDO_AWAITS_FLAG, 0};
        }
    if ((instruction->actions & RONDO_SEND) && !(instruction->flags & RONDO_DIRECT_OUT))
        for (uint32_t i = 0; i < instruction->send_count; i++) {
            const struct rondo_end *end = rondo_end_of(run, instruction->send_first + i);
            if (rondo_writes_directly(run) && run->direct_write != RONDO_DIRECT_WRITE_BY_SLOTS)
                return (struct rondo_awaited){rondo_direct_write_word(end->watched), 1, RONDO_AWAITS_COUNT, 0};
            if (end->position - end->seen >= end->slot_count)
                return (struct rondo_awaited){rondo_awaited_head(end), end->position - end->slot_count + 1, RONDO_AWAITS_COUNT,
                                              0};
        }
    return anything;
}

/* Whether the awaited word, of which the value is given, lets the task go on. */
RONDO_FUNCTION int rondo_has_come(const struct rondo_awaited *awaited, uint64_t word)
{
    return awaited->kind == RONDO_AWAITS_FLAG    ? word >> 32 == awaited->value
           : awaited->kind == RONDO_AWAITS_COUNT ? word >= awaited->value
                                                 : 1;
}

/* Whether the block is to leave the run after a slice: for work that has come, whose priority is not known yet, or for a task
 * of higher priority that may go on. */
RONDO_FUNCTION int rondo_is_outranked(const struct rondo_run *run)
{
    if (!run->ranked)
        return 0;
    if (rondo_has_more(run))
        return 1;
    for (uint32_t i = 0; i < run->highers; i++) {
        const struct rondo_awaited *awaited = &run->higher[i].awaited;
        if (awaited->kind == RONDO_AWAITS_ANYTHING || rondo_has_come(awaited, rondo_load_relaxed(awaited->word)))
            return 1;
    }
    return 0;
}

#define RONDO_REFUSAL_LOOKS 256 /* from one look for refused references to the next */

/* After a look in vain. missing: see rondo_missing. Yields the core now and then. Returns 0 if the budget is spent. */
RONDO_FUNCTION int rondo_looks_again(struct rondo_run *run, int32_t missing, struct rondo_wait *wait)
{
    const int over = rondo_outrun(run, wait);
    run->waited = 1;
    if (over || wait->looks % RONDO_REFUSAL_LOOKS == 0)
        rondo_fill_refused(run);
    if (over || !run->policy->preempt)
        rondo_report_missing(run, missing);
    if (!over)
        rondo_relax(wait->looks, run->policy->yield_mask);
    wait->looks++;
    return !over;
}

/* Waits within the task's budget until everything the instruction needs for a slice of so many bytes is there. Returns 0 if
 * stuck. */
RONDO_FUNCTION int rondo_wait_ready(struct rondo_run *run, const struct rondo_instruction *instruction, size_t bytes)
{
    struct rondo_wait wait = {0, 0};
    for (;;) {
        const int32_t missing = rondo_missing(run, instruction, bytes);
        if (missing == RONDO_MISSES_NOTHING)
            return 1;
        if (!rondo_looks_again(run, missing, &wait))
            return 0;
    }
}

#endif
