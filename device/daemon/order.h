/*
 * Whether the ranks start their operations in one order, as a block can tell by itself, and what it does then. Single source; a
 * block's own state, so nothing here is atomic.
 *
 * Where the orders differ a long wait is lost: the peers are busy with other operations, and wait in their turn. Where they are
 * one a short wait is lost: the peers are about to come, and what the block turns to meanwhile they will not do yet. The two
 * cases differ in which tasks meet their peers first. The table is in the order of this rank's starts. In random orders more
 * than a third of the tasks meet their peers while an earlier one is still waiting, in one order few. So a contact in the order
 * of the table adds to the block's trust, and one that overtakes takes as much as several others add. A task that finds its
 * peers' data there says nothing: the ranks that come last find them in any order.
 *
 * A block with trust waits longer for the first task, and does not begin another one until nothing has advanced for a while. It
 * goes on visiting those it has begun, and begins another one in the end, so trust costs time where it is mistaken and cannot
 * stop anything. Trust is also mistaken where all others follow this rank's order, which makes them wait. So it has to be
 * gained anew now and then.
 */
#ifndef RONDO_DEVICE_DAEMON_ORDER_H
#define RONDO_DEVICE_DAEMON_ORDER_H

#include "device/abi/platform.h"
#include "device/abi/structures.h"

#define RONDO_OUTRANKING_GRANT 32   /* times what a first task is granted, for one of higher priority than the others */
#define RONDO_ORDER_TRUSTED    32   /* contacts in the table's order, for trust */
#define RONDO_ORDER_TRUST_MOST 64   /* of them count */
#define RONDO_ORDER_OVERTAKING 2    /* as many count as one overtaking */
#define RONDO_ORDER_TERM       4096 /* contacts after which trust has to be gained anew */

RONDO_FUNCTION int rondo_trusts_order(const struct rondo_policy *policy, const struct rondo_block *block)
{
    return block->order_trust >= RONDO_ORDER_TRUSTED && policy->order == RONDO_ORDER_FIFO;
}

/* What the first task of the table is granted in a round. outranks: it has a higher priority than another one. A slice of that
 * may take long, and the peers, which see the first task, too, are about to come. */
RONDO_FUNCTION uint64_t rondo_first_grant(const struct rondo_policy *policy, const struct rondo_block *block, int outranks)
{
    return outranks                            ? policy->budgets.initial * RONDO_OUTRANKING_GRANT
           : block->tasks == 1                 ? policy->budgets.alone
           : rondo_trusts_order(policy, block) ? policy->budgets.ordered
                                               : policy->budgets.initial;
}

/* Whether a round begins no further task, as long as one that has been begun is unfinished. */
RONDO_FUNCTION int rondo_holds_back(const struct rondo_policy *policy, const struct rondo_block *block)
{
    return policy->preempt && block->tasks > 1 && rondo_trusts_order(policy, block) &&
           rondo_ticks() - block->advanced_ticks < policy->budgets.hold;
}

/* After a visit: whether the task has met its peers in it, and in which order. waited: not all was there when it was looked
 * for. */
RONDO_FUNCTION void rondo_note_contact(const struct rondo_policy *policy, struct rondo_block *block, struct rondo_task *task,
                                       int finished, int advanced, int waited)
{
    const int awaited = task->contact == RONDO_CONTACT_AWAITED, before = task->contact == RONDO_CONTACT_MADE;
    if (!finished && !(advanced && awaited)) {
        if (task->contact == RONDO_CONTACT_NONE)
            task->contact = RONDO_CONTACT_AWAITED;
        return;
    }
    task->contact = RONDO_CONTACT_MADE;
    if (before)
        return;
    if (rondo_trusts_order(policy, block) && ++block->order_contacts == RONDO_ORDER_TERM)
        block->order_trust = block->order_contacts = 0;
    else if (block->overtakes)
        block->order_trust -= block->order_trust < RONDO_ORDER_OVERTAKING ? block->order_trust : RONDO_ORDER_OVERTAKING;
    else if ((awaited || waited) && block->order_trust < RONDO_ORDER_TRUST_MOST)
        block->order_trust++;
}

#endif
