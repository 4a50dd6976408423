/*
 * The daemon: one block's loop over what is submitted and over its task table (device/daemon/tasks.h), until a device's blocks
 * agree to quit (device/daemon/consensus.h; docs/architecture.md). Single source; a device calls rondo_daemon_enter once and
 * rondo_daemon_round until it says quit.
 *
 * Why nothing deadlocks: every started, unfinished operation is in the task table of its blocks (or behind one that is, in its
 * lane); this round or one of the next ones visits every task; a visit makes progress whenever what it waits for is there;
 * nothing that one lane holds is needed by another; and a daemon that quits with work left is started again by the host.
 */
#ifndef RONDO_DEVICE_DAEMON_DAEMON_H
#define RONDO_DEVICE_DAEMON_DAEMON_H

#include "device/daemon/consensus.h"
#include "device/engine/engine.h"
#include "device/daemon/order.h"
#include "device/daemon/tasks.h"
#include "device/daemon/trace.h"
#if !defined(__CUDACC__)
#include "device/engine/short_steps.h"
#endif

/* ---- queues ---- */

#define RONDO_HIGHER_LOOKED_AT 4 /* tasks of higher priority, after each slice of a lower one; in a block's near ones */
#define RONDO_LANES_NEAR       2 /* that begin at the block where submissions come in: theirs start soonest */

/* The block that executes the lane's first program block; the others follow, one a block. Many small operations must not all
 * be the first block's. */
RONDO_FUNCTION uint32_t rondo_first_block(const struct rondo_daemon *daemon, uint32_t lane)
{
    return lane < RONDO_LANES_NEAR ? 0 : lane * daemon->policy.spread % daemon->block_count;
}

/* Whether an operation of the lane with so many program blocks concerns others than block 0, which are notified of it. */
RONDO_FUNCTION int rondo_concerns_others(const struct rondo_daemon *daemon, uint32_t lane, uint32_t blocks)
{
    return daemon->block_count > 1 && (blocks > 1 || rondo_first_block(daemon, lane) != 0);
}

/* The first program block of the lane's operations that is this block's, if they have so many. */
RONDO_FUNCTION uint32_t rondo_own_program_block(const struct rondo_daemon *daemon, const struct rondo_block *block,
                                                uint32_t lane)
{
    return (block->index + daemon->block_count - rondo_first_block(daemon, lane)) % daemon->block_count;
}

/* Adds the tasks that a submission gives this block. The arguments are as in a notification. number: of the operation in its
 * lane, if it is the lane's first; begun: it has a context already. */
RONDO_FUNCTION void rondo_add_tasks(const struct rondo_daemon *daemon, struct rondo_block *block, uint64_t notifications,
                                    uint64_t number, int begun)
{
    struct rondo_task task = {.lane = RONDO_NOTIFICATION_LANE(notifications)};
    task.program_block = rondo_own_program_block(daemon, block, task.lane);
    const struct rondo_lane *lane = &daemon->lanes[task.lane];
    task.slot = RONDO_NOTIFICATION_SLOT(notifications);
    task.number = number;
    task.known = (notifications & RONDO_NOTIFICATION_FIRST) != 0;
    task.fresh = (notifications & RONDO_NOTIFICATION_FRESH) != 0;
    if (daemon->policy.order == RONDO_ORDER_PRIORITY)
        task.priority = (int32_t) rondo_load_relaxed32(&lane->priority);
    for (; task.program_block < RONDO_NOTIFICATION_BLOCKS(notifications); task.program_block += daemon->block_count)
        if (rondo_add_task(daemon, block, &task) && task.known && !begun)
            rondo_context_begin(daemon, block, task.lane * daemon->lane_contexts + task.program_block, number);
    block->informed = 1;
}

/* Begins the block's part of an operation at once if the operation is started again unchanged and the block has nothing else
 * to do: the worker group has kept all that it needs. The block has been told that the operation is its lane's first, but
 * has no task yet; the task is then its only one, or at least the first, and visited next. A block without a part may still
 * hold what was there before. */
RONDO_FUNCTION void rondo_begin_again(const struct rondo_daemon *daemon, const struct rondo_block *block,
                                      struct rondo_workers *workers, uint64_t notifications)
{
    const struct rondo_policy *policy = &daemon->policy;
    if (block->tasks == 0 && !block->voted && (notifications & RONDO_NOTIFICATION_FIRST) &&
        !(notifications & RONDO_NOTIFICATION_FRESH) &&
        rondo_own_program_block(daemon, block, RONDO_NOTIFICATION_LANE(notifications)) <
            RONDO_NOTIFICATION_BLOCKS(notifications) &&
        RONDO_NOTIFICATION_BLOCKS(notifications) <= daemon->block_count && policy->order == RONDO_ORDER_FIFO)
        rondo_workers_begin_again(workers, &daemon->operations[RONDO_NOTIFICATION_SLOT(notifications)], policy->budgets.alone);
}

/* Learns from the host which lanes have failed, and whether to stop. By block 0. */
RONDO_FUNCTION void rondo_answer_interrupts(const struct rondo_daemon *daemon, struct rondo_block *block)
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
    rondo_store_release_device32(&daemon->exchange->stopped, rondo_load_relaxed32(&queues->stop));
    block->interrupts = interrupts;
    rondo_store_release_device(&daemon->exchange->answered, interrupts);
}

/* Handles the rare parts of a submission. */
RONDO_FUNCTION void rondo_fetch_more(const struct rondo_daemon *daemon, struct rondo_block *block,
                                     struct rondo_workers *workers, const struct rondo_sqe *sqe, uint32_t operation,
                                     uint32_t number)
{
    struct rondo_lane *lane = &daemon->lanes[number];
    const struct rondo_operation *fresh = sqe->fresh;
    if (fresh != NULL)
        rondo_workers_copy(workers, &daemon->operations[operation], fresh, sizeof(*fresh));
    if (sqe->interrupts != block->interrupts)
        rondo_answer_interrupts(daemon, block);
    if (sqe->revives) /* a failure in the lane's earlier life is not this one's */
        rondo_store_release_device32(&lane->failed, rondo_load_acquire32(&daemon->queues->failed[number]));
    rondo_store_relaxed32(&lane->priority, (uint32_t) sqe->priority);
}

/* Fetches one submission: appends it to its lane, notifies the other blocks if it concerns them, and adds this block's
 * tasks. By block 0. more: another submission waits, which may need the worker group. */
RONDO_FUNCTION void rondo_fetch_one(const struct rondo_daemon *daemon, struct rondo_block *block, struct rondo_workers *workers,
                                    struct rondo_pair words, int more)
{
    const struct rondo_sqe *sqe = &daemon->queues->sq[block->fetched % RONDO_QUEUE_DEPTH];
    uint32_t operation = RONDO_SQE_OPERATION(words.first), blocks = RONDO_SQE_BLOCKS(words.first);
    uint32_t number = RONDO_SQE_LANE(words.second), flags = (uint32_t) words.second;
    struct rondo_lane *lane = &daemon->lanes[number];
    uint64_t submitted = lane->submitted;
    uint64_t completed = rondo_load_acquire_device(&lane->completed);
    if (flags & RONDO_SQE_MORE)
        rondo_fetch_more(daemon, block, workers, sqe, operation, number);
    rondo_store_relaxed(&lane->submitted, submitted + 1);
    /* The operation's copy and submitted are written before the ring entry, by which a block that has been busy with the
     * lane finds the operation, and before the notification, which tells the other blocks, unless the operation concerns
     * this block alone. */
    int told = rondo_concerns_others(daemon, number, blocks);
    if (told)
        rondo_publish_device_begin();
    rondo_publish_word(&lane->ring[submitted % RONDO_LANE_DEPTH], RONDO_RING(submitted, blocks, operation));
    uint64_t notifications_flags =
        (completed == submitted ? RONDO_NOTIFICATION_FIRST : 0) | (flags & RONDO_SQE_FRESH ? RONDO_NOTIFICATION_FRESH : 0);
    uint64_t notifications = RONDO_NOTIFICATION(block->notifications_read, notifications_flags, operation, blocks, number);
    if (told) {
        rondo_publish_word(&daemon->notifications[block->notifications_read % RONDO_QUEUE_DEPTH], notifications);
        block->notifications_read++;
        rondo_publish_word(&block->report->notifications_read, block->notifications_read);
        rondo_publish_word(&daemon->exchange->announced, block->notifications_read);
        rondo_workers_told(workers);
    }
    if (!more)
        rondo_begin_again(daemon, block, workers, notifications);
    rondo_add_tasks(daemon, block, notifications, completed, (flags & RONDO_SQE_BEGUN) != 0);
    rondo_trace(block, RONDO_TRACE_FETCH, number, 0, submitted);
    block->fetched++;
    rondo_store_relaxed(&daemon->exchange->fetched, block->fetched);
}

/* Number of notifications that can still be written before all blocks have read the oldest. By block 0. */
RONDO_FUNCTION uint64_t rondo_notifications_left(const struct rondo_daemon *daemon, const struct rondo_block *block)
{
    uint64_t slowest = block->notifications_read;
    for (uint32_t b = 1; b < daemon->block_count; b++) {
        uint64_t read = rondo_load_acquire_device(&daemon->reports[b].notifications_read);
        slowest = read < slowest ? read : slowest;
    }
    return RONDO_QUEUE_DEPTH - (block->notifications_read - slowest);
}

/* A submission's words are far away from a GPU (1.2 us). So the presence of a further one is asked at the same time, and a
 * block that has nothing to do looks so often before it reads the clock. */
#if defined(__CUDACC__)
#define RONDO_FETCH_HINTS   1
#define RONDO_FETCH_LOOKS   4
#define RONDO_LOOKS_ARE_FAR 1
#else
#define RONDO_FETCH_HINTS   0
#define RONDO_FETCH_LOOKS   1
#define RONDO_LOOKS_ARE_FAR 0
#endif

/* Fetches submissions. By block 0. What does not fit stays in the queue. */
RONDO_FUNCTION void rondo_fetch(const struct rondo_daemon *daemon, struct rondo_block *block, struct rondo_workers *workers)
{
    const struct rondo_sqe *sq = daemon->queues->sq;
    const int idle = block->tasks == 0, hints = RONDO_FETCH_HINTS && idle; /* a block with much to do takes all there is */
    for (int looks = idle ? RONDO_FETCH_LOOKS : 1; looks > 0;) {
        /* A hint: fetching that submission acquires it. */
        uint64_t hint = hints ? rondo_load_relaxed(&sq[(block->fetched + 1) % RONDO_QUEUE_DEPTH].what) : 0;
        /* Acquire pairs with the host's release of each: the rest of the entry and of the operation are visible. */
        struct rondo_pair words = rondo_load_acquire_pair(&sq[block->fetched % RONDO_QUEUE_DEPTH].what);
        if (!RONDO_SQE_IS(words.first, block->fetched) || !RONDO_SQE_IS(words.second, block->fetched)) {
            looks--;
            continue;
        }
        if (block->notifications_read == block->notifications_granted) /* everything that was granted is used up */
            block->notifications_granted += rondo_notifications_left(daemon, block);
        if (block->notifications_read == block->notifications_granted) {
            rondo_workers_told(workers); /* a block that has not read its own may sleep */
            return;
        }
        looks = !hints || RONDO_SQE_IS(hint, block->fetched + 1);
        rondo_fetch_one(daemon, block, workers, words, looks);
    }
}

/* Reads the notifications that block 0 has written, and adds the tasks that they give this block. */
RONDO_FUNCTION void rondo_read_notifications(const struct rondo_daemon *daemon, struct rondo_block *block,
                                             struct rondo_workers *workers)
{
    for (;;) {
        uint64_t read = block->notifications_read;
        /* Acquire pairs with the release in rondo_fetch_one. */
        uint64_t entry = rondo_load_acquire_device(&daemon->notifications[read % RONDO_QUEUE_DEPTH]);
        if (!RONDO_NOTIFICATION_IS(entry, read))
            return;
        block->notifications_read = read + 1;
        rondo_begin_again(daemon, block, workers, entry);
        /* This block may have a part of the lane's first operation or none. If it has, the operation cannot complete before
         * this look; if not, number is of no use, and task.known leads to a look. */
        uint64_t number = rondo_load_relaxed(&daemon->lanes[RONDO_NOTIFICATION_LANE(entry)].completed);
        rondo_store_release_device(&block->report->notifications_read, read + 1);
        rondo_add_tasks(daemon, block, entry, number, 0);
    }
}

/* ---- visits ---- */

enum rondo_visit { RONDO_VISIT_KEEP, RONDO_VISIT_REQUEUE, RONDO_VISIT_REMOVE };

/* Ends this block's part of the lane's first operation, with a failure or whole (result 0). The last block completes the
 * operation, and with a failure if any part had one: each counts its own in the upper half of the sum. */
RONDO_FUNCTION void rondo_finish_part(const struct rondo_daemon *daemon, struct rondo_block *block,
                                      const struct rondo_task *task, uint32_t blocks, uint32_t result)
{
    struct rondo_lane *lane = &daemon->lanes[task->lane];
    const uint64_t done = rondo_trace_now(block);
    if (blocks > 1) {
        /* Acquire-release: the last block has seen the effects of all the others, and hands them on with the completion. */
        const uint64_t more = 1 + ((uint64_t) (result != 0) << 32);
        const uint64_t parts = rondo_fetch_add(&lane->finished_parts, more) + more;
        if ((uint32_t) parts != blocks) {
            rondo_trace_done(block, RONDO_TRACE_PART, done);
            return;
        }
        if (result == 0 && parts >> 32 != 0) /* set before the other block counted, and not taken back before completed */
            result = rondo_load_relaxed32(&lane->failed);
        rondo_store_relaxed(&lane->finished_parts, 0); /* released with completed, before any block can add again */
    }
#if !defined(__CUDACC__)
    if (rondo_concerns_others(daemon, task->lane, blocks)) /* before this block's vote: see device/host/host.c */
        rondo_fetch_add_relaxed(&daemon->exchange->finished, 1);
#endif
    uint64_t ticket = rondo_fetch_add_relaxed(&daemon->exchange->cq_ticket, 1);
    rondo_publish_begin();
    rondo_publish_word(&lane->completed, task->number + 1);
    /* The host holds back submissions so that this entry is free. The operation may not be touched after this store. */
    rondo_publish_word(&daemon->queues->cq[ticket % RONDO_QUEUE_DEPTH], RONDO_CQE(task->slot, result, task->number));
    rondo_trace_done(block, RONDO_TRACE_COMPLETE, done);
    block->completions++;
}

/* The word by which the block learns of more work: of the next submission, or of the next notification. */
RONDO_FUNCTION const uint64_t *rondo_coming(const struct rondo_daemon *daemon, const struct rondo_block *block)
{
    return block->index == 0 ? &daemon->queues->sq[block->fetched % RONDO_QUEUE_DEPTH].what
                             : &daemon->notifications[block->notifications_read % RONDO_QUEUE_DEPTH];
}

/* Whether that word, with this value, says that there is more. */
RONDO_FUNCTION int rondo_tells_of_more(const struct rondo_block *block, uint64_t word)
{
    return block->index == 0 ? RONDO_SQE_IS(word, block->fetched) : RONDO_NOTIFICATION_IS(word, block->notifications_read);
}

/* Prepares the run of one program block of an operation. The operation itself is not read: the worker group loads it
 * (rondo_workers_load). */
RONDO_FUNCTION void rondo_prepare_run(struct rondo_run *run, const struct rondo_daemon *daemon, uint32_t lane,
                                      const struct rondo_operation *home, uint32_t program_block, struct rondo_context *context)
{
    uint32_t first = lane * daemon->lane_contexts;
    run->home = home;
    run->context = context;
    run->semaphores = daemon->semaphores + first;
    run->waiting = daemon->waiting + first + program_block;
    run->queues = daemon->queues;
    run->failed = &daemon->lanes[lane].failed;
    run->program_block = program_block;
    run->early = 0;
    run->coming = NULL;
    run->come = 0;
    run->higher = NULL;
    run->highers = run->ranked = run->yields = 0;
}

/* Whether the block's part of an operation that was begun again is under way, and was all. */
RONDO_FUNCTION int rondo_finish_again(struct rondo_block *block, struct rondo_workers *workers, struct rondo_context *context)
{
    struct rondo_block_statistics *statistics = &block->report->statistics;
    int64_t sent = rondo_workers_finish_again(workers, context);
    if (sent < 0)
        return 0;
    rondo_count(&statistics->primitives, 1);
    rondo_count(&statistics->bytes_sent, (uint64_t) sent);
    return 1;
}

/* Runs the task's part of the operation at home; each of its waits may take so many ticks as grant says. */
RONDO_FUNCTION enum rondo_outcome rondo_run_part(const struct rondo_daemon *daemon, struct rondo_block *block,
                                                 struct rondo_workers *workers, struct rondo_task *task,
                                                 const struct rondo_operation *home, struct rondo_context *context,
                                                 uint64_t grant)
{
    struct rondo_run run;
    rondo_prepare_run(&run, daemon, task->lane, home, task->program_block, context);
    run.fresh = task->fresh;
    run.of_daemon = 1;
    run.keeps = block->tasks == 1; /* with several tasks, another one is next */
    run.workers = workers;
    run.statistics = &block->report->statistics;
    run.policy = &daemon->policy;
    run.interrupts = &block->interrupts;
    run.budget = grant;
    if (daemon->policy.order == RONDO_ORDER_PRIORITY && daemon->policy.preempt) {
        run.ranked = 1;
        run.higher = block->near; /* the table's first */
        while (run.highers < RONDO_HIGHER_LOOKED_AT && rondo_task_at(block, run.highers)->priority > task->priority)
            run.highers++;
    }
    /* Of one task, a GPU's look at a submission takes longer than the looks between two of its clock. */
    if (run.ranked || (!RONDO_LOOKS_ARE_FAR && block->tasks <= 1)) {
        run.coming = rondo_coming(daemon, block);
        run.come = rondo_load_relaxed(run.coming);
        if (run.ranked && rondo_tells_of_more(block, run.come)) /* since the round has begun: it counts as coming yet */
            run.come = ~run.come;
    }
    enum rondo_outcome outcome = rondo_engine_run(&run);
    if (outcome == RONDO_OUTCOME_STUCK && daemon->policy.readiness_check)
        task->awaited = run.yields ? (struct rondo_awaited){NULL, 0, RONDO_AWAITS_ANYTHING, 0} : rondo_awaits(&run);
    block->yields += run.yields;
    rondo_note_contact(&daemon->policy, block, task, outcome == RONDO_OUTCOME_FINISHED, run.advanced != 0, run.waited != 0);
    task->fresh = 0;
    if (run.advanced || outcome == RONDO_OUTCOME_FINISHED) {
        rondo_context_changed(block, task->lane * daemon->lane_contexts + task->program_block);
        block->progressed = 1;
    }
    return outcome;
}

/* Finds the operation of its lane that the task stands for. Returns what to do with the task if it stays unknown. */
RONDO_FUNCTION enum rondo_visit rondo_learn_operation(const struct rondo_daemon *daemon, struct rondo_block *block,
                                                      struct rondo_task *task)
{
    const struct rondo_lane *lane = &daemon->lanes[task->lane];
    uint32_t index = task->lane * daemon->lane_contexts + task->program_block;
    uint64_t number = rondo_load_acquire_device(&lane->completed);
    uint64_t submitted = rondo_load_acquire_device(&lane->submitted);
    if (number >= submitted)
        return RONDO_VISIT_REMOVE; /* a later operation brings its own notification */
    enum rondo_visit later = submitted == number + 1 ? RONDO_VISIT_REMOVE : RONDO_VISIT_KEEP;
    struct rondo_context *context = rondo_context_load(daemon, block, index);
    if (context->operation == number + 1 && context->finished)
        return later; /* waits for other blocks; a later operation of the lane brings its notification unless it is already
                         there */
    uint64_t entry = rondo_load_acquire_device(&lane->ring[number % RONDO_LANE_DEPTH]);
    if (!RONDO_RING_IS(entry, number)) /* not yet there, or another's, because the operation has completed meanwhile */
        return RONDO_VISIT_KEEP;
    if (context->operation != number + 1)
        context = rondo_context_begin(daemon, block, index, number);
    context->finished = task->program_block >= RONDO_RING_BLOCKS(entry);
    if (context->finished)
        return later;
    task->slot = RONDO_RING_SLOT(entry);
    task->number = number;
    task->known = task->fresh = task->visited = 1;
    return RONDO_VISIT_KEEP;
}

/* Visits a task. grant: ticks that each of its waits may take. Returns what becomes of it. */
RONDO_FUNCTION enum rondo_visit rondo_visit_task(const struct rondo_daemon *daemon, struct rondo_block *block,
                                                 struct rondo_task *task, struct rondo_workers *workers, uint64_t grant)
{
    struct rondo_lane *lane = &daemon->lanes[task->lane];
    uint32_t index = task->lane * daemon->lane_contexts + task->program_block;
    if (!task->known) {
        enum rondo_visit visit = rondo_learn_operation(daemon, block, task);
        if (!task->known)
            return visit;
    }
    /* This block's part is unfinished, so the operation cannot complete and its slot cannot change. */
    struct rondo_context *context = rondo_context_load(daemon, block, index);
    const struct rondo_operation *home = &daemon->operations[task->slot];
    const int first = !task->visited;
    uint32_t failed = !first ? rondo_load_acquire_device32(&lane->failed) : 0;
    uint32_t blocks;
    enum rondo_outcome outcome = RONDO_OUTCOME_FINISHED;
    task->visited = 1;
#if !defined(__CUDACC__)
    if (failed && (!rondo_withdraw_receive_actions(&home->parts[task->program_block]) ||
                   !rondo_withdraw_direct_write(context, &home->parts[task->program_block])))
        return RONDO_VISIT_KEEP;
    if (failed) {
        rondo_withdraw_source_references(home, &home->parts[task->program_block]);
        rondo_withdraw_references(home, &home->parts[task->program_block], workers->single_copy_peers);
    }
#endif
    rondo_trace(block, RONDO_TRACE_RESUME, task->lane, task->program_block, task->number);
    if (!daemon->policy.preempt) /* this visit may be the block's last for long */
        rondo_trace_tell(block);
    if (failed) {
        blocks = home->blocks;
    } else {
        rondo_store_relaxed(&block->report->current_lane, (uint64_t) task->lane + 1);
        outcome = first && rondo_finish_again(block, workers, context)
                      ? RONDO_OUTCOME_FINISHED
                      : rondo_run_part(daemon, block, workers, task, home, context, grant);
        rondo_store_relaxed(&block->report->current_lane, 0);
        blocks = rondo_workers_operation(workers, home)->blocks;
    }
    if (outcome == RONDO_OUTCOME_STUCK) {
        rondo_count(&block->report->statistics.preemptions, 1);
        rondo_trace(block, RONDO_TRACE_PREEMPT, task->lane, task->program_block, task->number);
        return RONDO_VISIT_KEEP;
    }
    block->progressed = 1;
    context->finished = 1;
    rondo_context_changed(block, index);
    rondo_finish_part(daemon, block, task, blocks, failed);
    task->known = task->visited = 0;
    task->contact = RONDO_CONTACT_NONE;
    task->awaited.kind = RONDO_AWAITS_ANYTHING;
    return rondo_load_acquire_device(&lane->submitted) == task->number + 1 ? RONDO_VISIT_REMOVE : RONDO_VISIT_REQUEUE;
}

#if !defined(__CUDACC__)
/* Counts an operation that was executed inline, as after a submission, for the next thread that runs the block: the claim
 * hands them on. */
RONDO_FUNCTION void rondo_count_inline(struct rondo_lane *lane, uint64_t submitted, uint32_t slot)
{
    rondo_store_relaxed(&lane->ring[submitted % RONDO_LANE_DEPTH], RONDO_RING(submitted, 1, slot));
    rondo_store_relaxed(&lane->submitted, submitted + 1);
    rondo_store_relaxed(&lane->completed, submitted + 1);
}

/* Executes the short steps of an operation inline (device/engine/short_steps.h). Conditions as below. Returns 1 if it is over;
 * else *instruction is where rondo_run_inline has to go on. */
RONDO_FUNCTION int rondo_run_steps(const struct rondo_daemon *daemon, struct rondo_block *block, uint32_t number, uint32_t slot,
                                   const struct rondo_operation *operation, const struct rondo_short_steps *steps,
                                   uint32_t looks, uint32_t *instruction)
{
    const uint32_t done = rondo_short_steps_run(operation, steps, looks);
    rondo_short_steps_count(steps, done, &block->report->statistics);
    if (done < steps->count) {
        *instruction = (uint32_t) (steps->steps[done].instruction - operation->parts->instructions);
        return 0;
    }
    rondo_count_inline(&daemon->lanes[number], daemon->lanes[number].submitted, slot);
    return 1;
}

/* Inline execution: executes an operation of one block, of a lane with nothing under way, without a submission, from the
 * instruction on. By the thread that holds block 0, whether there is a daemon or not. fresh: as in struct rondo_sqe. Returns 1
 * if the operation is over; 0 if it is stuck and has to be submitted as BEGUN. */
RONDO_FUNCTION int rondo_run_inline(const struct rondo_daemon *daemon, struct rondo_block *block, struct rondo_workers *workers,
                                    uint32_t number, uint32_t slot, const struct rondo_operation *fresh, uint32_t instruction,
                                    uint64_t grant)
{
    struct rondo_lane *lane = &daemon->lanes[number];
    const uint64_t submitted = lane->submitted;
    struct rondo_task task = {.lane = number, .slot = slot, .number = submitted};
    struct rondo_operation *home = &daemon->operations[slot];
    if (fresh != NULL)
        rondo_workers_copy(workers, home, fresh, sizeof(*fresh));
    struct rondo_context *context = rondo_context_begin(daemon, block, number * daemon->lane_contexts, submitted);
    context->instruction = instruction;
    if (rondo_run_part(daemon, block, workers, &task, home, context, grant) == RONDO_OUTCOME_STUCK) {
        rondo_count(&block->report->statistics.preemptions, 1);
        return 0;
    }
    context->finished = 1;
    rondo_count_inline(lane, submitted, slot);
    return 1;
}
#endif

#define RONDO_YIELDS_A_SHARE   64 /* of them one ends no round: then all tasks are visited, the lowest too */
#define RONDO_CHECKED_TOGETHER 8  /* tasks whose readiness is checked together */

/* The readiness check: which of the next tasks from a place on are worth a visit, a bit each, because their wait may be
 * over, by itself or by failure. So a round over many preempted tasks, whose visits mean a change of context each, costs no
 * more than the loads of a few words. */
RONDO_FUNCTION uint32_t rondo_check_readiness(const struct rondo_daemon *daemon, struct rondo_block *block, uint32_t place)
{
    uint64_t words[RONDO_CHECKED_TOGETHER];
    uint32_t failed[RONDO_CHECKED_TOGETHER], worth = 0;
    if (!daemon->policy.readiness_check || !daemon->policy.preempt || block->tasks == 1)
        return UINT32_MAX;
    RONDO_UNROLL
    for (uint32_t k = 0; k < RONDO_CHECKED_TOGETHER; k++) { /* all loads before the first is needed */
        const struct rondo_task *task = rondo_task_at(block, place + k < block->tasks ? place + k : place);
        words[k] =
            rondo_load_relaxed(task->awaited.kind != RONDO_AWAITS_ANYTHING ? task->awaited.word : &daemon->lanes->completed);
        failed[k] = rondo_load_relaxed32(&daemon->lanes[task->lane].failed);
    }
    RONDO_UNROLL
    for (uint32_t k = 0; k < RONDO_CHECKED_TOGETHER; k++) {
        const struct rondo_task *task = rondo_task_at(block, place + k < block->tasks ? place + k : place);
        worth |= (uint32_t) (rondo_has_come(&task->awaited, words[k]) || failed[k] != 0) << k;
    }
    return worth;
}

/* Moves the tasks from one place on to an earlier one. */
RONDO_FUNCTION void rondo_close_gap(struct rondo_block *block, uint32_t to, uint32_t from)
{
    uint32_t gap = from - to;
    for (; gap > 0 && from < block->tasks; to++, from++)
        *rondo_task_at(block, to) = *rondo_task_at(block, from);
    block->tasks -= gap;
}

/* Visits every task once, the first with the largest grant. return_early: ends the round after a completion, so that an
 * assisting host thread can look whether its request is done. A task that stays moves up into the places of those that do
 * not, so a round moves each task once at most; a task whose lane has a further operation begins anew at the end. */
RONDO_FUNCTION void rondo_visit_tasks(const struct rondo_daemon *daemon, struct rondo_block *block,
                                      struct rondo_workers *workers, int return_early)
{
    const uint32_t tasks = block->tasks, completions = block->completions;
    uint32_t yields = block->yields, finished = completions;
#if !defined(__CUDACC__)
    if (tasks == 0)
        return;
#endif
    /* Read before a visit may complete the last operation under way: after it they may change (lib/runtime/spin.h). */
    const uint64_t decay = daemon->policy.decay;
    int outranks = daemon->policy.order == RONDO_ORDER_PRIORITY && tasks > 1 &&
                   rondo_task_at(block, 0)->priority > rondo_task_at(block, tasks - 1)->priority;
    uint64_t grant = rondo_first_grant(&daemon->policy, block, outranks);
    uint32_t worth = 0, retained = 0, again = 0, i = 0;
    const int holds_back = rondo_holds_back(&daemon->policy, block);
    int begun = 0; /* a task that has been visited, and is not over */
    block->overtakes = 0;
    int gives_way = 0; /* the round ends here, and the next one begins with the highest task */
    for (; i < tasks && !gives_way && !(return_early && block->completions != completions); i++, worth >>= 1) {
        struct rondo_task *task = rondo_task_at(block, i);
        enum rondo_visit visit = RONDO_VISIT_KEEP;
        if (i % RONDO_CHECKED_TOGETHER == 0)
            worth = rondo_check_readiness(daemon, block, i);
        if ((worth & 1) && (task->visited || !holds_back || !begun)) {
            visit = rondo_visit_task(daemon, block, task, workers, grant);
            grant = outranks ? daemon->policy.budgets.initial : grant * decay / 100;
            if (grant == 0)
                grant = 1;
            outranks = 0;
            /* By priority a thread is told of a completion at once, not when all lower tasks have been visited. */
            if (daemon->policy.order == RONDO_ORDER_PRIORITY && block->completions != finished)
                block->yields++;
            finished = block->completions;
            gives_way = block->yields != yields && block->yields % RONDO_YIELDS_A_SHARE != 0;
            yields = block->yields;
        }
        if (visit == RONDO_VISIT_REMOVE) {
            rondo_forget_task(daemon, task);
        } else if (visit == RONDO_VISIT_REQUEUE && tasks + again < RONDO_TASKS_MOST(daemon)) {
            *rondo_task_at(block, tasks + again++) = *task;
        } else {
            if (retained != i)
                *rondo_task_at(block, retained) = *task;
            retained++;
            block->overtakes |= task->contact != RONDO_CONTACT_MADE;
            begun |= task->visited;
        }
    }
    if (block->progressed) /* a task that has begun usually has sent something */
        block->advanced_ticks = rondo_ticks();
    block->tasks = tasks + again;
    rondo_close_gap(block, retained, i);
    if (daemon->policy.order == RONDO_ORDER_PRIORITY) /* the last tasks have to find their places */
        for (uint32_t place = block->tasks - again; again > 0; again--, place++)
            rondo_rise(block, place);
}

/* ---- a round ---- */

/* One round of one block: fetches, visits, and consults. Not re-entrant: one thread (block of threads) at a time. Returns
 * RONDO_DAEMON_QUITS if the daemon is over. */
RONDO_FUNCTION enum rondo_verdict rondo_daemon_round(const struct rondo_daemon *daemon, struct rondo_block *block,
                                                     struct rondo_workers *workers, int return_early)
{
    /* FIFO empties the table before it takes more, so that all ranks tend to work on the same operations; a round in which
     * nothing moved, or a long series of busy ones, lets new ones in all the same. */
    int eager = daemon->policy.order == RONDO_ORDER_PRIORITY || block->tasks == 0 || !block->progressed;
    block->progressed = block->informed = 0;
    if (block->index == 0) {
        if (eager || ++block->rounds_without_fetch >= 16) {
            block->rounds_without_fetch = 0;
            rondo_fetch(daemon, block, workers);
        }
        if (!daemon->policy.preempt || ++block->rounds % 16 == 0)
            rondo_answer_interrupts(daemon, block);
    } else {
        if (!daemon->policy.preempt)
            block->interrupts = rondo_load_acquire_device(&daemon->exchange->answered);
        rondo_read_notifications(daemon, block, workers);
    }
    if (block->voted && block->informed && rondo_withdraw(daemon, block) == RONDO_DAEMON_QUITS)
        return RONDO_DAEMON_QUITS; /* decided before the notifications could be written; the host starts another daemon for them
                                    */
    rondo_visit_tasks(daemon, block, workers, return_early);
    return rondo_consult(daemon, block);
}

#endif
