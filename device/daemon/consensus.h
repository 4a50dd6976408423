/*
 * The consensus by which a device's blocks quit together: a block with nothing to do votes, withdraws its vote when it is
 * notified of work, and the last vote decides for all, after a final look at the queue. Single source; by the thread that
 * leads a block.
 */
#ifndef RONDO_DEVICE_DAEMON_CONSENSUS_H
#define RONDO_DEVICE_DAEMON_CONSENSUS_H

#include "device/abi/platform.h"
#include "device/abi/structures.h"
#include "device/daemon/trace.h"

enum rondo_verdict { RONDO_DAEMON_STAYS, RONDO_DAEMON_QUITS };

/* The consensus word: epoch << 32 | flags | votes. A decision ends the epoch. */
#define RONDO_VOTES_MASK 0xffffu
#define RONDO_DECIDING   0x40000000u /* all have voted; the last voter looks at the queue */
#define RONDO_QUIT       0x80000000u /* how the previous epoch ended: quit, else go on */

/* Whether the queue has a submission that has not been fetched. */
RONDO_FUNCTION int rondo_submission_waits(const struct rondo_daemon *daemon)
{
    uint64_t next = rondo_load_relaxed(&daemon->exchange->fetched);
    return RONDO_SQE_IS(rondo_load_acquire(&daemon->queues->sq[next % RONDO_QUEUE_DEPTH].where), next);
}

/* Lets a block take part in the daemon. To be called once, before its first round. */
RONDO_FUNCTION void rondo_daemon_enter(const struct rondo_daemon *daemon, struct rondo_block *block)
{
    block->entered_ns = 0; /* set when the clock is read first: short stays need none */
    block->epoch = (uint32_t) (rondo_load_acquire_device(&daemon->exchange->consensus) >> 32);
    block->voted = 0;
    block->untimed_rounds = 0;
    block->inside = 1;
    rondo_trace(block, RONDO_TRACE_ENTER, 0, 0, 0);
}

/* Leaves, unless a submission waits. Returns 1 if the daemon is out. This look and the submitter's (host:
 * rondo_queue_claim_start) are the two sides of the sleep/wake race. The daemon writes LEAVING, fences, and looks at the queue;
 * the submitter writes the queue, fences, and looks at the state. One of the two sees the other, and a submitter that sees
 * LEAVING waits for the outcome. */
RONDO_FUNCTION int rondo_leave(const struct rondo_daemon *daemon, int must_leave)
{
    struct rondo_queues *queues = daemon->queues;
    uint64_t launch = rondo_load_acquire(&queues->launches); /* it does not change before this daemon has left */
    rondo_store_release(&queues->state, RONDO_STATE(launch, RONDO_DAEMON_LEAVING));
    rondo_fence(&queues->fence);
    int out = must_leave || !rondo_submission_waits(daemon);
    rondo_store_release(&queues->state, RONDO_STATE(launch, out ? RONDO_DAEMON_LEFT : RONDO_DAEMON_RUNS));
    return out;
}

/* Decides for all blocks, when the last vote is in. */
RONDO_FUNCTION void rondo_decide(const struct rondo_daemon *daemon, int must_leave)
{
    for (uint32_t b = 0; b < daemon->block_count && !must_leave; b++)
        if (rondo_load_acquire_device(&daemon->reports[b].notifications_read) !=
            rondo_load_acquire_device(&daemon->exchange->announced))
            return; /* that block voted before it was notified, and will withdraw */
    uint64_t word = rondo_load_acquire_device(&daemon->exchange->consensus);
    if ((word & RONDO_VOTES_MASK) != daemon->block_count || (word & RONDO_DECIDING) ||
        !rondo_exchange_if(&daemon->exchange->consensus, word, word | RONDO_DECIDING))
        return; /* a block withdrew its vote */
    int out = rondo_leave(daemon, must_leave);
    rondo_store_release_device(&daemon->exchange->consensus, ((word >> 32) + 1) << 32 | (out ? RONDO_QUIT : 0));
}

/* The verdict of the epoch in which this block voted, if it is over. */
RONDO_FUNCTION enum rondo_verdict rondo_learn_verdict(const struct rondo_daemon *daemon, struct rondo_block *block)
{
    uint64_t word = rondo_load_acquire_device(&daemon->exchange->consensus);
    if ((uint32_t) (word >> 32) == block->epoch)
        return RONDO_DAEMON_STAYS;
    block->epoch = (uint32_t) (word >> 32);
    block->voted = 0;
    if (word & RONDO_QUIT) {
        block->inside = 0;
        rondo_trace(block, RONDO_TRACE_QUIT, 0, 0, 0);
        return RONDO_DAEMON_QUITS;
    }
    block->last_notification_ns = rondo_clock_ns();
    return RONDO_DAEMON_STAYS;
}

/* Withdraws a standing vote, unless it has been counted: then the verdict stands. Waits only for a decider's look. */
RONDO_FUNCTION enum rondo_verdict rondo_withdraw(const struct rondo_daemon *daemon, struct rondo_block *block)
{
    for (;;) {
        uint64_t word = rondo_load_acquire_device(&daemon->exchange->consensus);
        if ((uint32_t) (word >> 32) != block->epoch)
            return rondo_learn_verdict(daemon, block);
        if (!(word & RONDO_DECIDING) && rondo_exchange_if(&daemon->exchange->consensus, word, word - 1)) {
            block->voted = 0;
            return RONDO_DAEMON_STAYS;
        }
    }
}

/* Whether the daemon has stayed longer than it may, or idle for too long. */
RONDO_FUNCTION int rondo_overstays(const struct rondo_daemon *daemon, const struct rondo_block *block, uint64_t now)
{
    return now - block->entered_ns >= daemon->policy.residency_ns || rondo_load_relaxed32(&daemon->exchange->stopped);
}

/* Votes, withdraws the vote, or learns the verdict, at the end of a round. */
RONDO_FUNCTION enum rondo_verdict rondo_consult(const struct rondo_daemon *daemon, struct rondo_block *block)
{
    const struct rondo_policy *policy = &daemon->policy;
    /* Reading the clock takes time: while there is something to do it is read only now and then. */
    if ((block->progressed || block->informed) && !block->voted && ++block->untimed_rounds % 16 != 0)
        return RONDO_DAEMON_STAYS;
    uint64_t now = rondo_clock_ns();
    if (block->entered_ns == 0) {
        block->entered_ns = block->last_progress_ns = block->last_notification_ns = now;
        rondo_trace_entered(block);
    }
    if (block->progressed || block->untimed_rounds > 0)
        block->last_progress_ns = now;
    if (block->informed)
        block->last_notification_ns = now;
    block->untimed_rounds = 0;
    uint64_t latest =
        block->last_notification_ns > block->last_progress_ns ? block->last_notification_ns : block->last_progress_ns;
    rondo_trace_idle(block, latest, now);
    int overstayed = rondo_overstays(daemon, block, now);
    int wants_to_leave = overstayed || now - latest >= (block->tasks == 0 ? policy->quit_idle_ns : policy->quit_stuck_ns);

    if (!block->voted) {
        if (!wants_to_leave)
            return RONDO_DAEMON_STAYS;
        block->voted = 1;
        uint64_t word = rondo_fetch_add(&daemon->exchange->consensus, 1) + 1;
        if ((word & RONDO_VOTES_MASK) == daemon->block_count)
            rondo_decide(daemon, overstayed);
    }
    uint64_t word = rondo_load_acquire_device(&daemon->exchange->consensus);
    if ((uint32_t) (word >> 32) != block->epoch)
        return rondo_learn_verdict(daemon, block);
    return wants_to_leave ? RONDO_DAEMON_STAYS : rondo_withdraw(daemon, block);
}

/* Gives up as the only block of a daemon, or the only one that has entered while no other is to: there is no block to
 * consult. Otherwise like rondo_decide; the epoch goes on. */
RONDO_FUNCTION enum rondo_verdict rondo_daemon_retire(const struct rondo_daemon *daemon, struct rondo_block *block,
                                                      int must_leave)
{
    if (block->voted && rondo_withdraw(daemon, block) == RONDO_DAEMON_QUITS)
        return RONDO_DAEMON_QUITS;
    if (!rondo_leave(daemon, must_leave))
        return RONDO_DAEMON_STAYS;
    block->inside = 0;
    rondo_trace(block, RONDO_TRACE_QUIT, 0, 0, 0);
    return RONDO_DAEMON_QUITS;
}

#endif
