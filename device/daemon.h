/*
 * The daemon: one block's loop over its task table, and the consensus by which a device's blocks quit together (DESIGN section
 * 6). Single source; a device calls rondo_daemon_enter once and rondo_daemon_round until it says quit.
 *
 * Why nothing deadlocks: every started, unfinished operation is in the task table of its blocks (or behind one that is, in its
 * lane); a round visits every task; a visit makes progress whenever what it waits for is there; nothing that one lane holds is
 * needed by another; and a daemon that quits with work left is started again by the host.
 */
#ifndef RONDO_DEVICE_DAEMON_H
#define RONDO_DEVICE_DAEMON_H

#include "engine.h"

enum rondo_verdict { RONDO_DAEMON_STAYS, RONDO_DAEMON_QUITS };

/* The consensus word: epoch << 32 | flags | votes. A decision ends the epoch. */
#define RONDO_VOTES_MASK 0xffffu
#define RONDO_DECIDING   0x40000000u /* all have voted; the last voter has its final look */
#define RONDO_QUIT       0x80000000u /* how the previous epoch ended: quit, else go on */

/* ---- contexts: a direct-mapped cache in front of device memory, written back only when they moved ---- */

RONDO_FUNCTION struct rondo_context *rondo_context_load(struct rondo_daemon *daemon, struct rondo_block *block, uint32_t index)
{
    uint32_t line = index % RONDO_CONTEXT_CACHE;
    if (block->cache[line].context != index) {
        if (block->cache[line].dirty) {
            daemon->contexts[block->cache[line].context] = block->cache[line].value;
            rondo_count(&block->statistics.context_saves, 1);
        }
        block->cache[line].value = daemon->contexts[index];
        block->cache[line].context = index;
        block->cache[line].dirty = 0;
        rondo_count(&block->statistics.context_loads, 1);
    }
    return &block->cache[line].value;
}

RONDO_FUNCTION void rondo_context_save(struct rondo_daemon *daemon, struct rondo_block *block, uint32_t index)
{
    uint32_t line = index % RONDO_CONTEXT_CACHE;
    daemon->contexts[index] = block->cache[line].value;
    block->cache[line].dirty = 0;
    rondo_count(&block->statistics.context_saves, 1);
}

/* ---- queues ---- */

RONDO_FUNCTION int rondo_submission_waits(const struct rondo_daemon *daemon)
{
    uint64_t next = rondo_load_relaxed(&daemon->fetched);
    /* Acquire pairs with the host's release of the ticket: the rest of the entry and of the operation are visible. */
    return rondo_load_acquire(&daemon->sq[next % RONDO_QUEUE_DEPTH].ticket) == next + 1;
}

/* Block 0 only. Appends waiting submissions to their lanes and announces them to all blocks. What does not fit waits. */
RONDO_FUNCTION void rondo_fetch(struct rondo_daemon *daemon)
{
    uint64_t slowest = daemon->announced;
    if (rondo_submission_waits(daemon))
        for (uint32_t b = 0; b < daemon->block_count; b++) {
            uint64_t read = rondo_load_acquire(&daemon->blocks[b].news_read);
            slowest = read < slowest ? read : slowest;
        }
    while (rondo_submission_waits(daemon) && daemon->announced - slowest < RONDO_QUEUE_DEPTH) {
        const struct rondo_sqe *sqe = &daemon->sq[daemon->fetched % RONDO_QUEUE_DEPTH];
        struct rondo_operation *operation = daemon->operations[sqe->operation];
        struct rondo_lane *lane = daemon->lanes[operation->lane];
        if (sqe->rebind) {
            operation->buffers[RONDO_INPUT] = sqe->buffers[0];
            operation->buffers[RONDO_OUTPUT] = sqe->buffers[1];
        }
        /* Ring entry before submitted, submitted before the news: a block that has the news finds the operation. */
        rondo_store_release(&lane->ring[lane->submitted % RONDO_LANE_DEPTH],
                            (uint64_t) operation->program->blocks << 32 | sqe->operation);
        rondo_store_release(&lane->submitted, lane->submitted + 1);
        rondo_store_release(&daemon->news[daemon->announced % RONDO_QUEUE_DEPTH],
                            (daemon->announced + 1) << 32 | operation->lane);
        rondo_store_release(&daemon->announced, daemon->announced + 1);
        rondo_store_relaxed(&daemon->fetched, daemon->fetched + 1);
    }
}

RONDO_FUNCTION void rondo_add_tasks(struct rondo_daemon *daemon, struct rondo_block *block, uint32_t lane_index)
{
    const struct rondo_lane *lane = daemon->lanes[lane_index];
    for (uint32_t b = block->index; b < lane->contexts; b += daemon->block_count) {
        uint32_t context = lane->context_first + b;
        if (daemon->queued[context])
            continue;
        daemon->queued[context] = 1;
        struct rondo_task task = {lane_index, b, (int32_t) rondo_load_relaxed32(&lane->priority)};
        uint32_t place = block->tasks++;
        if (daemon->policy.order == RONDO_ORDER_PRIORITY) /* FIFO inside one priority */
            for (; place > 0 && block->task_table[place - 1].priority < task.priority; place--)
                block->task_table[place] = block->task_table[place - 1];
        block->task_table[place] = task;
    }
}

RONDO_FUNCTION void rondo_read_news(struct rondo_daemon *daemon, struct rondo_block *block)
{
    for (;;) {
        uint64_t read = block->news_read;
        /* Acquire pairs with the release in rondo_fetch. */
        uint64_t entry = rondo_load_acquire(&daemon->news[read % RONDO_QUEUE_DEPTH]);
        if ((uint32_t) (entry >> 32) != (uint32_t) (read + 1))
            return;
        rondo_store_release(&block->news_read, read + 1);
        rondo_add_tasks(daemon, block, (uint32_t) entry);
        block->informed = 1;
    }
}

/* ---- tasks ---- */

enum rondo_visit { RONDO_VISIT_KEEP, RONDO_VISIT_REQUEUE, RONDO_VISIT_REMOVE };

/* This block's part of the lane's first operation is over. The last block completes the operation. */
RONDO_FUNCTION void rondo_finish_part(struct rondo_daemon *daemon, struct rondo_block *block, struct rondo_lane *lane,
                                      uint64_t number, uint32_t slot, uint32_t result)
{
    struct rondo_operation *operation = daemon->operations[slot];
    /* Acquire-release: the last one has seen the effects of all the others, and hands them on with the completion. */
    if (rondo_fetch_add(&operation->unfinished, (uint64_t) -1) != 1)
        return;
    rondo_store_release(&lane->completed, number + 1);
    uint64_t ticket = rondo_fetch_add(&daemon->cq_ticket, 1);
    /* The host holds back submissions so that this entry is free. Nothing of the operation may be touched after this store. */
    rondo_store_release(&daemon->cq[ticket % RONDO_QUEUE_DEPTH], RONDO_CQE(slot, result, number));
    block->completions++;
}

RONDO_FUNCTION enum rondo_outcome rondo_run_part(struct rondo_daemon *daemon, struct rondo_block *block,
                                                 const struct rondo_task *task, uint32_t slot, struct rondo_context *context,
                                                 uint64_t grant)
{
    const struct rondo_lane *lane = daemon->lanes[task->lane];
    const struct rondo_operation *operation = daemon->operations[slot];
    const struct rondo_program *program = operation->program;
    const char *image = (const char *) program;
    const struct rondo_program_block *list =
        (const struct rondo_program_block *) (const void *) (image + program->block_offset) + task->program_block;
    struct rondo_run run;
    run.operation = operation;
    run.list = list;
    run.instructions =
        (const struct rondo_instruction *) (const void *) (image + program->instruction_offset) + list->instruction_first;
    run.dependencies = (const struct rondo_dependency *) (const void *) (image + program->dependency_offset);
    run.ends = operation->ends + list->end_first;
    run.context = context;
    run.semaphores = daemon->semaphores + lane->context_first;
    run.waiting = daemon->waiting + lane->context_first + task->program_block;
    run.statistics = &block->statistics;
    run.policy = &daemon->policy;
    run.stop = &daemon->stop;
    run.failed = &lane->failed;
    run.budget = grant;
    run.program_block = task->program_block;
    run.advanced = 0;
    rondo_store_relaxed(&block->current_lane, (uint64_t) task->lane + 1);
    enum rondo_outcome outcome = rondo_engine_run(&run);
    rondo_store_relaxed(&block->current_lane, 0);
    if (run.advanced || outcome == RONDO_OUTCOME_FINISHED) {
        block->cache[(lane->context_first + task->program_block) % RONDO_CONTEXT_CACHE].dirty = 1;
        block->progressed = 1;
    }
    return outcome;
}

RONDO_FUNCTION enum rondo_visit rondo_visit_task(struct rondo_daemon *daemon, struct rondo_block *block, struct rondo_task task,
                                                 uint64_t grant)
{
    struct rondo_lane *lane = daemon->lanes[task.lane];
    uint32_t index = lane->context_first + task.program_block;
    uint64_t number = rondo_load_acquire(&lane->completed);
    uint64_t submitted = rondo_load_acquire(&lane->submitted);
    if (number >= submitted)
        return RONDO_VISIT_REMOVE; /* whatever comes brings news of its own */
    struct rondo_context *context = rondo_context_load(daemon, block, index);
    if (context->operation != number + 1) { /* stored + 1, so that zeroed memory names none */
        uint64_t entry = rondo_load_acquire(&lane->ring[number % RONDO_LANE_DEPTH]);
        /* The entry is replaced only after the operation has completed, and whoever sees the new entry sees that too. */
        if (rondo_load_acquire(&lane->completed) != number)
            return RONDO_VISIT_KEEP;
        context->operation = number + 1;
        context->tile = 0;
        context->instruction = context->slice = 0;
        context->finished = task.program_block >= (uint32_t) (entry >> 32);
        block->cache[index % RONDO_CONTEXT_CACHE].dirty = 1;
    }
    if (context->finished) /* waits for other blocks; a later operation of the lane brings news unless it is already there */
        return submitted == number + 1 ? RONDO_VISIT_REMOVE : RONDO_VISIT_KEEP;

    /* Ours is unfinished, so the operation cannot complete and the entry cannot change. */
    uint32_t slot = (uint32_t) rondo_load_acquire(&lane->ring[number % RONDO_LANE_DEPTH]);
    uint32_t failed = rondo_load_acquire32(&lane->failed);
    enum rondo_outcome outcome = RONDO_OUTCOME_FINISHED;
    if (!failed)
        outcome = rondo_run_part(daemon, block, &task, slot, context, grant);
    if (outcome == RONDO_OUTCOME_STUCK) {
        rondo_count(&block->statistics.preemptions, 1);
        return RONDO_VISIT_KEEP;
    }
    block->progressed = 1;
    context->finished = 1;
    block->cache[index % RONDO_CONTEXT_CACHE].dirty = 1;
    rondo_finish_part(daemon, block, lane, number, slot, failed);
    return submitted == number + 1 ? RONDO_VISIT_REMOVE : RONDO_VISIT_REQUEUE;
}

/* Visits every task once, the first with the largest grant. return_early: end the round after a completion, so that a host
 * thread which runs blocks while it waits can look whether its request is done. */
RONDO_FUNCTION void rondo_visit_tasks(struct rondo_daemon *daemon, struct rondo_block *block, int return_early)
{
    uint64_t grant = daemon->policy.initial;
    uint32_t completions = block->completions;
    for (uint32_t left = block->tasks, i = 0; left > 0; left--) {
        struct rondo_task task = block->task_table[i];
        enum rondo_visit visit = rondo_visit_task(daemon, block, task, grant);
        if (visit == RONDO_VISIT_KEEP) {
            i++;
        } else {
            block->tasks--;
            for (uint32_t k = i; k < block->tasks; k++)
                block->task_table[k] = block->task_table[k + 1];
            daemon->queued[daemon->lanes[task.lane]->context_first + task.program_block] = 0;
            if (visit == RONDO_VISIT_REQUEUE)
                rondo_add_tasks(daemon, block, task.lane);
        }
        grant = grant * daemon->policy.decay / 100;
        if (grant == 0)
            grant = 1;
        if (return_early && block->completions != completions)
            return;
    }
}

/* ---- quitting ---- */

RONDO_FUNCTION void rondo_daemon_enter(struct rondo_daemon *daemon, struct rondo_block *block)
{
    block->entered_ns = 0; /* when the clock is read first: short stays need none */
    block->epoch = (uint32_t) (rondo_load_acquire(&daemon->consensus) >> 32);
    block->voted = 0;
    block->untimed_rounds = 0;
    block->inside = 1;
}

/* The last vote is in: decides for all. The final look and the submitter's (host: submit) are the two sides of the sleep/wake
 * race: we clear alive, fence, look at the queue; it writes the queue, fences, looks at alive. One of the two sees the other.
 */
RONDO_FUNCTION void rondo_decide(struct rondo_daemon *daemon, int must_leave)
{
    for (uint32_t b = 0; b < daemon->block_count && !must_leave; b++)
        if (rondo_load_acquire(&daemon->blocks[b].news_read) != rondo_load_acquire(&daemon->announced))
            return; /* that block voted before the news came, and will withdraw */
    uint64_t word = rondo_load_acquire(&daemon->consensus);
    if ((word & RONDO_VOTES_MASK) != daemon->block_count || (word & RONDO_DECIDING) ||
        !rondo_exchange_if(&daemon->consensus, word, word | RONDO_DECIDING))
        return; /* somebody withdrew */
    rondo_store_release(&daemon->alive, 0);
    rondo_fence(&daemon->alive);
    int goes_on = !must_leave && rondo_submission_waits(daemon) && rondo_exchange_if(&daemon->alive, 0, 1);
    if (!goes_on)
        rondo_count(&daemon->quits, 1);
    rondo_store_release(&daemon->consensus, ((word >> 32) + 1) << 32 | (goes_on ? 0 : RONDO_QUIT));
}

/* The epoch this block voted in may be over: what was decided. */
RONDO_FUNCTION enum rondo_verdict rondo_learn_verdict(struct rondo_daemon *daemon, struct rondo_block *block)
{
    uint64_t word = rondo_load_acquire(&daemon->consensus);
    if ((uint32_t) (word >> 32) == block->epoch)
        return RONDO_DAEMON_STAYS;
    block->epoch = (uint32_t) (word >> 32);
    block->voted = 0;
    if (word & RONDO_QUIT) {
        block->inside = 0;
        return RONDO_DAEMON_QUITS;
    }
    block->last_news_ns = rondo_clock_ns();
    return RONDO_DAEMON_STAYS;
}

/* Takes a standing vote back, unless it has been counted already: then the verdict stands. Waits only for a decider's look. */
RONDO_FUNCTION enum rondo_verdict rondo_withdraw(struct rondo_daemon *daemon, struct rondo_block *block)
{
    for (;;) {
        uint64_t word = rondo_load_acquire(&daemon->consensus);
        if ((uint32_t) (word >> 32) != block->epoch)
            return rondo_learn_verdict(daemon, block);
        if (!(word & RONDO_DECIDING) && rondo_exchange_if(&daemon->consensus, word, word - 1)) {
            block->voted = 0;
            return RONDO_DAEMON_STAYS;
        }
    }
}

/* At the end of a round: vote, withdraw, or learn what was decided. */
RONDO_FUNCTION enum rondo_verdict rondo_consult(struct rondo_daemon *daemon, struct rondo_block *block)
{
    const struct rondo_policy *policy = &daemon->policy;
    /* The clock is not free: while there is something to do it is read now and then only. */
    if ((block->progressed || block->informed) && !block->voted && ++block->untimed_rounds % 16 != 0)
        return RONDO_DAEMON_STAYS;
    uint64_t now = rondo_clock_ns();
    if (block->entered_ns == 0)
        block->entered_ns = block->last_progress_ns = block->last_news_ns = now;
    if (block->progressed || block->untimed_rounds > 0)
        block->last_progress_ns = now;
    if (block->informed)
        block->last_news_ns = now;
    block->untimed_rounds = 0;
    uint64_t latest = block->last_news_ns > block->last_progress_ns ? block->last_news_ns : block->last_progress_ns;
    int overstayed = now - block->entered_ns >= policy->residency_ns;
    int wants_to_leave = overstayed || now - latest >= (block->tasks == 0 ? policy->quit_idle_ns : policy->quit_stuck_ns);

    if (!block->voted) {
        if (!wants_to_leave)
            return RONDO_DAEMON_STAYS;
        block->voted = 1;
        uint64_t word = rondo_fetch_add(&daemon->consensus, 1) + 1;
        if ((word & RONDO_VOTES_MASK) == daemon->block_count)
            rondo_decide(daemon, overstayed);
    }
    uint64_t word = rondo_load_acquire(&daemon->consensus);
    if ((uint32_t) (word >> 32) != block->epoch)
        return rondo_learn_verdict(daemon, block);
    return wants_to_leave ? RONDO_DAEMON_STAYS : rondo_withdraw(daemon, block);
}

/* The only block of a daemon gives up idling, because its runner has to leave: there is nobody to consult. Otherwise as
 * rondo_decide. */
RONDO_FUNCTION enum rondo_verdict rondo_daemon_retire(struct rondo_daemon *daemon, struct rondo_block *block)
{
    if (block->voted && rondo_withdraw(daemon, block) == RONDO_DAEMON_QUITS)
        return RONDO_DAEMON_QUITS;
    rondo_store_release(&daemon->alive, 0);
    rondo_fence(&daemon->alive);
    if (rondo_submission_waits(daemon) && rondo_exchange_if(&daemon->alive, 0, 1))
        return RONDO_DAEMON_STAYS;
    rondo_count(&daemon->quits, 1);
    block->inside = 0;
    return RONDO_DAEMON_QUITS;
}

/* One round of one block. Not re-entrant: one thread (block of threads) at a time. */
RONDO_FUNCTION enum rondo_verdict rondo_daemon_round(struct rondo_daemon *daemon, struct rondo_block *block, int return_early)
{
    /* FIFO empties the table before it takes more, so that all ranks tend to work on the same operations; a round in which
     * nothing moved, or a long row of busy ones, lets new ones in all the same. */
    int eager = daemon->policy.order == RONDO_ORDER_PRIORITY || block->tasks == 0 || !block->progressed;
    if (block->index == 0 && (eager || ++block->rounds_without_fetch >= 16)) {
        block->rounds_without_fetch = 0;
        rondo_fetch(daemon);
    }
    block->progressed = block->informed = 0;
    rondo_read_news(daemon, block);
    if (block->voted && block->informed && rondo_withdraw(daemon, block) == RONDO_DAEMON_QUITS)
        return RONDO_DAEMON_QUITS; /* decided before the news could be told; the host starts another daemon for them */
    rondo_visit_tasks(daemon, block, return_early);
    return rondo_consult(daemon, block);
}

#endif
