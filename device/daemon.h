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
            rondo_count(&block->report->statistics.context_saves, 1);
        }
        block->cache[line].value = daemon->contexts[index];
        block->cache[line].context = index;
        block->cache[line].dirty = 0;
        rondo_count(&block->report->statistics.context_loads, 1);
    }
    return &block->cache[line].value;
}

RONDO_FUNCTION void rondo_context_changed(struct rondo_block *block, uint32_t index)
{
    block->cache[index % RONDO_CONTEXT_CACHE].dirty = 1;
}

/* ---- queues ---- */

RONDO_FUNCTION int rondo_submission_waits(const struct rondo_daemon *daemon)
{
    uint64_t next = rondo_load_relaxed(&daemon->fetched);
    /* Acquire pairs with the host's release of the ticket: the rest of the entry and of the operation are visible. */
    return rondo_load_acquire(&daemon->queues->sq[next % RONDO_QUEUE_DEPTH].ticket) == next + 1;
}

/* Block 0 only: learns from the host which lanes have failed, and whether to stop. */
RONDO_FUNCTION void rondo_answer_interrupts(struct rondo_daemon *daemon, struct rondo_block *block)
{
    const struct rondo_queues *queues = daemon->queues;
    uint64_t interrupts = rondo_load_acquire(&queues->interrupts);
    if (interrupts == block->interrupts)
        return;
    uint32_t lanes = rondo_load_relaxed32(&queues->lanes_used);
    for (uint32_t lane = 0; lane < lanes; lane++) {
        uint32_t failed = rondo_load_relaxed32(&queues->failed[lane]);
        if (failed != daemon->lanes[lane].failed)
            rondo_store_release_device32(&daemon->lanes[lane].failed, failed);
    }
    rondo_store_release_device32(&daemon->stopped, rondo_load_relaxed32(&queues->stop));
    block->interrupts = interrupts;
    rondo_store_release_device(&daemon->answered, interrupts);
}

/* Block 0 only. Appends one submission to its lane and announces it to all blocks. */
RONDO_FUNCTION void rondo_fetch_one(struct rondo_daemon *daemon, struct rondo_block *block)
{
    const struct rondo_sqe sqe = daemon->queues->sq[daemon->fetched % RONDO_QUEUE_DEPTH];
    struct rondo_lane *lane = &daemon->lanes[sqe.lane];
    if (sqe.fresh != NULL)
        daemon->operations[sqe.operation] = *sqe.fresh;
    if (sqe.interrupts != block->interrupts)
        rondo_answer_interrupts(daemon, block);
    if (sqe.revives) /* a failure in the lane's life before is not this one's */
        rondo_store_release_device32(&lane->failed, rondo_load_acquire32(&daemon->queues->failed[sqe.lane]));
    rondo_store_relaxed32(&lane->priority, (uint32_t) sqe.priority);
    /* Ring entry before submitted, submitted before the news: a block that has the news finds the operation. */
    rondo_store_release_device(&lane->ring[lane->submitted % RONDO_LANE_DEPTH], (uint64_t) sqe.blocks << 32 | sqe.operation);
    rondo_store_release_device(&lane->submitted, lane->submitted + 1);
    rondo_store_release_device(&daemon->news[daemon->announced % RONDO_QUEUE_DEPTH],
                               RONDO_NEWS(daemon->announced, sqe.blocks, sqe.lane));
    rondo_store_release_device(&daemon->announced, daemon->announced + 1);
    rondo_store_relaxed(&daemon->fetched, daemon->fetched + 1);
}

/* Block 0 only. What does not fit waits. */
RONDO_FUNCTION void rondo_fetch(struct rondo_daemon *daemon, struct rondo_block *block)
{
    if (!rondo_submission_waits(daemon))
        return;
    uint64_t slowest = daemon->announced;
    for (uint32_t b = 0; b < daemon->block_count; b++) {
        uint64_t read = rondo_load_acquire_device(&daemon->reports[b].news_read);
        slowest = read < slowest ? read : slowest;
    }
    do
        rondo_fetch_one(daemon, block);
    while (daemon->announced - slowest < RONDO_QUEUE_DEPTH && rondo_submission_waits(daemon));
}

RONDO_FUNCTION void rondo_add_task(struct rondo_daemon *daemon, struct rondo_block *block, uint32_t lane,
                                   uint32_t program_block)
{
    uint32_t context = lane * daemon->lane_contexts + program_block;
    if (daemon->queued[context])
        return;
    daemon->queued[context] = 1;
    struct rondo_task task = {lane, program_block, (int32_t) rondo_load_relaxed32(&daemon->lanes[lane].priority)};
    uint32_t place = block->tasks++;
    if (daemon->policy.order == RONDO_ORDER_PRIORITY) /* FIFO inside one priority */
        for (; place > 0 && block->task_table[place - 1].priority < task.priority; place--)
            block->task_table[place] = block->task_table[place - 1];
    block->task_table[place] = task;
}

RONDO_FUNCTION void rondo_read_news(struct rondo_daemon *daemon, struct rondo_block *block)
{
    for (;;) {
        uint64_t read = block->news_read;
        /* Acquire pairs with the release in rondo_fetch_one. */
        uint64_t entry = rondo_load_acquire_device(&daemon->news[read % RONDO_QUEUE_DEPTH]);
        if ((uint32_t) (entry >> 32) != (uint32_t) (read + 1))
            return;
        block->news_read = read + 1;
        rondo_store_release_device(&block->report->news_read, read + 1);
        for (uint32_t b = block->index; b < RONDO_NEWS_BLOCKS(entry); b += daemon->block_count)
            rondo_add_task(daemon, block, RONDO_NEWS_LANE(entry), b);
        block->informed = 1;
    }
}

/* ---- tasks ---- */

enum rondo_visit { RONDO_VISIT_KEEP, RONDO_VISIT_REQUEUE, RONDO_VISIT_REMOVE };

/* This block's part of the lane's first operation is over. The last block completes the operation. */
RONDO_FUNCTION void rondo_finish_part(struct rondo_daemon *daemon, struct rondo_block *block, struct rondo_lane *lane,
                                      uint64_t number, uint32_t slot, uint32_t result)
{
    /* Acquire-release: the last one has seen the effects of all the others, and hands them on with the completion. */
    if (rondo_fetch_add(&lane->finished_parts, 1) + 1 != daemon->operations[slot].program->blocks)
        return;
    rondo_store_relaxed(&lane->finished_parts, 0); /* released with completed, before anybody can add again */
    rondo_store_release_device(&lane->completed, number + 1);
    uint64_t ticket = rondo_fetch_add(&daemon->cq_ticket, 1);
    /* The host holds back submissions so that this entry is free. Nothing of the operation may be touched after this store. */
    rondo_store_release(&daemon->queues->cq[ticket % RONDO_QUEUE_DEPTH], RONDO_CQE(slot, result, number));
    block->completions++;
}

/* Sets up the run of one program block. */
RONDO_FUNCTION void rondo_prepare_run(struct rondo_run *run, const struct rondo_daemon *daemon,
                                      const struct rondo_operation *operation, uint32_t program_block,
                                      struct rondo_context *context)
{
    const struct rondo_program *program = operation->program;
    const char *image = (const char *) program;
    uint32_t first = operation->lane * daemon->lane_contexts;
    run->operation = operation;
    run->list = (const struct rondo_program_block *) (const void *) (image + program->block_offset) + program_block;
    run->instructions =
        (const struct rondo_instruction *) (const void *) (image + program->instruction_offset) + run->list->instruction_first;
    run->dependencies = (const struct rondo_dependency *) (const void *) (image + program->dependency_offset);
    run->ends = operation->ends + run->list->end_first;
    run->context = context;
    run->semaphores = daemon->semaphores + first;
    run->waiting = daemon->waiting + first + program_block;
    run->queues = daemon->queues;
    run->failed = &daemon->lanes[operation->lane].failed;
    run->program_block = program_block;
}

RONDO_FUNCTION enum rondo_outcome rondo_run_part(struct rondo_daemon *daemon, struct rondo_block *block,
                                                 struct rondo_team *team, const struct rondo_task *task, uint32_t slot,
                                                 struct rondo_context *context, uint64_t grant)
{
    struct rondo_run run;
    rondo_prepare_run(&run, daemon, &daemon->operations[slot], task->program_block, context);
    run.team = team;
    run.statistics = &block->report->statistics;
    run.policy = &daemon->policy;
    run.interrupts = &block->interrupts;
    run.budget = grant;
    rondo_store_relaxed(&block->report->current_lane, (uint64_t) task->lane + 1);
    enum rondo_outcome outcome = rondo_engine_run(&run);
    rondo_store_relaxed(&block->report->current_lane, 0);
    if (run.advanced || outcome == RONDO_OUTCOME_FINISHED) {
        rondo_context_changed(block, task->lane * daemon->lane_contexts + task->program_block);
        block->progressed = 1;
    }
    return outcome;
}

RONDO_FUNCTION enum rondo_visit rondo_visit_task(struct rondo_daemon *daemon, struct rondo_block *block, struct rondo_task task,
                                                 struct rondo_team *team, uint64_t grant)
{
    struct rondo_lane *lane = &daemon->lanes[task.lane];
    uint32_t index = task.lane * daemon->lane_contexts + task.program_block;
    uint64_t number = rondo_load_acquire_device(&lane->completed);
    uint64_t submitted = rondo_load_acquire_device(&lane->submitted);
    if (number >= submitted)
        return RONDO_VISIT_REMOVE; /* whatever comes brings news of its own */
    struct rondo_context *context = rondo_context_load(daemon, block, index);
    if (context->operation != number + 1) { /* stored + 1, so that zeroed memory names none */
        uint64_t entry = rondo_load_acquire_device(&lane->ring[number % RONDO_LANE_DEPTH]);
        /* The entry is replaced only after the operation has completed, and whoever sees the new entry sees that too. */
        if (rondo_load_acquire_device(&lane->completed) != number)
            return RONDO_VISIT_KEEP;
        context->operation = number + 1;
        context->tile = 0;
        context->instruction = context->slice = context->piece = 0;
        context->finished = task.program_block >= (uint32_t) (entry >> 32);
        rondo_context_changed(block, index);
    }
    if (context->finished) /* waits for other blocks; a later operation of the lane brings news unless it is already there */
        return submitted == number + 1 ? RONDO_VISIT_REMOVE : RONDO_VISIT_KEEP;

    /* Ours is unfinished, so the operation cannot complete and the entry cannot change. */
    uint32_t slot = (uint32_t) rondo_load_acquire_device(&lane->ring[number % RONDO_LANE_DEPTH]);
    uint32_t failed = rondo_load_acquire_device32(&lane->failed);
    enum rondo_outcome outcome = RONDO_OUTCOME_FINISHED;
    if (!failed)
        outcome = rondo_run_part(daemon, block, team, &task, slot, context, grant);
    if (outcome == RONDO_OUTCOME_STUCK) {
        rondo_count(&block->report->statistics.preemptions, 1);
        return RONDO_VISIT_KEEP;
    }
    block->progressed = 1;
    context->finished = 1;
    rondo_context_changed(block, index);
    rondo_finish_part(daemon, block, lane, number, slot, failed);
    return submitted == number + 1 ? RONDO_VISIT_REMOVE : RONDO_VISIT_REQUEUE;
}

/* Visits every task once, the first with the largest grant. return_early: end the round after a completion, so that a host
 * thread which runs blocks while it waits can look whether its request is done. */
RONDO_FUNCTION void rondo_visit_tasks(struct rondo_daemon *daemon, struct rondo_block *block, struct rondo_team *team,
                                      int return_early)
{
    uint64_t grant = daemon->policy.initial;
    uint32_t completions = block->completions;
    for (uint32_t left = block->tasks, i = 0; left > 0; left--) {
        struct rondo_task task = block->task_table[i];
        enum rondo_visit visit = rondo_visit_task(daemon, block, task, team, grant);
        if (visit == RONDO_VISIT_KEEP) {
            i++;
        } else {
            block->tasks--;
            for (uint32_t k = i; k < block->tasks; k++)
                block->task_table[k] = block->task_table[k + 1];
            daemon->queued[task.lane * daemon->lane_contexts + task.program_block] = 0;
            if (visit == RONDO_VISIT_REQUEUE)
                rondo_add_task(daemon, block, task.lane, task.program_block);
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
    block->epoch = (uint32_t) (rondo_load_acquire_device(&daemon->consensus) >> 32);
    block->voted = 0;
    block->untimed_rounds = 0;
    block->inside = 1;
}

/* Leaves, unless a submission waits: returns 1 if the daemon is out. This look and the submitter's (host: rondo_queue_start)
 * are the two sides of the sleep/wake race: we write LEAVING, fence, look at the queue; it writes the queue, fences, looks at
 * the state. One of the two sees the other, and a submitter that sees LEAVING waits for what we make of it. */
RONDO_FUNCTION int rondo_leave(struct rondo_daemon *daemon, int must_leave)
{
    struct rondo_queues *queues = daemon->queues;
    uint64_t launch = rondo_load_acquire(&queues->launches); /* it does not change while we have not left */
    rondo_store_release(&queues->state, RONDO_STATE(launch, RONDO_DAEMON_LEAVING));
    rondo_fence(&queues->fence);
    int out = must_leave || !rondo_submission_waits(daemon);
    rondo_store_release(&queues->state, RONDO_STATE(launch, out ? RONDO_DAEMON_LEFT : RONDO_DAEMON_RUNS));
    return out;
}

/* The last vote is in: decides for all. */
RONDO_FUNCTION void rondo_decide(struct rondo_daemon *daemon, int must_leave)
{
    for (uint32_t b = 0; b < daemon->block_count && !must_leave; b++)
        if (rondo_load_acquire_device(&daemon->reports[b].news_read) != rondo_load_acquire_device(&daemon->announced))
            return; /* that block voted before the news came, and will withdraw */
    uint64_t word = rondo_load_acquire_device(&daemon->consensus);
    if ((word & RONDO_VOTES_MASK) != daemon->block_count || (word & RONDO_DECIDING) ||
        !rondo_exchange_if(&daemon->consensus, word, word | RONDO_DECIDING))
        return; /* somebody withdrew */
    int out = rondo_leave(daemon, must_leave);
    rondo_store_release_device(&daemon->consensus, ((word >> 32) + 1) << 32 | (out ? RONDO_QUIT : 0));
}

/* The epoch this block voted in may be over: what was decided. */
RONDO_FUNCTION enum rondo_verdict rondo_learn_verdict(struct rondo_daemon *daemon, struct rondo_block *block)
{
    uint64_t word = rondo_load_acquire_device(&daemon->consensus);
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
        uint64_t word = rondo_load_acquire_device(&daemon->consensus);
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
    int overstayed = now - block->entered_ns >= policy->residency_ns || rondo_load_relaxed32(&daemon->stopped);
    int wants_to_leave = overstayed || now - latest >= (block->tasks == 0 ? policy->quit_idle_ns : policy->quit_stuck_ns);

    if (!block->voted) {
        if (!wants_to_leave)
            return RONDO_DAEMON_STAYS;
        block->voted = 1;
        uint64_t word = rondo_fetch_add(&daemon->consensus, 1) + 1;
        if ((word & RONDO_VOTES_MASK) == daemon->block_count)
            rondo_decide(daemon, overstayed);
    }
    uint64_t word = rondo_load_acquire_device(&daemon->consensus);
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
    if (!rondo_leave(daemon, 0))
        return RONDO_DAEMON_STAYS;
    block->inside = 0;
    return RONDO_DAEMON_QUITS;
}

/* One round of one block. Not re-entrant: one thread (block of threads) at a time. */
RONDO_FUNCTION enum rondo_verdict rondo_daemon_round(struct rondo_daemon *daemon, struct rondo_block *block,
                                                     struct rondo_team *team, int return_early)
{
    /* FIFO empties the table before it takes more, so that all ranks tend to work on the same operations; a round in which
     * nothing moved, or a long row of busy ones, lets new ones in all the same. */
    int eager = daemon->policy.order == RONDO_ORDER_PRIORITY || block->tasks == 0 || !block->progressed;
    if (block->index == 0 && (eager || ++block->rounds_without_fetch >= 16)) {
        block->rounds_without_fetch = 0;
        rondo_fetch(daemon, block);
    }
    if (block->index == 0 && (!daemon->policy.preempt || ++block->rounds % 16 == 0))
        rondo_answer_interrupts(daemon, block);
    if (block->index != 0 && !daemon->policy.preempt)
        block->interrupts = rondo_load_acquire_device(&daemon->answered);
    block->progressed = block->informed = 0;
    rondo_read_news(daemon, block);
    if (block->voted && block->informed && rondo_withdraw(daemon, block) == RONDO_DAEMON_QUITS)
        return RONDO_DAEMON_QUITS; /* decided before the news could be told; the host starts another daemon for them */
    rondo_visit_tasks(daemon, block, team, return_early);
    return rondo_consult(daemon, block);
}

#endif
