/*
 * Posting receive actions, on the host device. Before a block waits for slots from a network, it tells the network what to do
 * with their bytes (device/engine/receive_action.h); the network does that when the bytes arrive. By the thread that runs the
 * engine.
 */
#ifndef RONDO_DEVICE_ENGINE_POST_RECEIVE_ACTIONS_H
#define RONDO_DEVICE_ENGINE_POST_RECEIVE_ACTIONS_H

#include "device/abi/platform.h"
#include "device/engine/describe.h"
#include "device/engine/receive_action.h"
#include "device/engine/run.h"
#include "device/engine/slices.h"
#include "device/engine/use.h"
#include "device/engine/zero_copy.h"

#define RONDO_RECEIVE_ACTION_TICKS                                                                                             \
    (4 * RONDO_LOOK_TICKS) /* budget of a wait for the network: the waiting thread may be the one that has to run the proxy */

/* The connector that the instruction's receive actions belong to; NULL if the instruction can have none. One slice of such
 * an instruction is one slot. */
RONDO_FUNCTION const struct rondo_end *rondo_receive_action_end(const struct rondo_run *run,
                                                                const struct rondo_instruction *instruction)
{
    const uint8_t wanted = RONDO_RECEIVE | RONDO_COPY;
    if ((instruction->actions & wanted) != wanted || instruction->receive_count != 1 || instruction->count != 1 ||
        (instruction->flags & (RONDO_DIRECT_IN | RONDO_SIGNAL)) || run->operation->rate != 0 ||
        run->operation->op == RONDO_BY_USER)
        return NULL;
    const struct rondo_end *end = rondo_end_of(run, instruction->receive_first);
    return end->posts_receive_actions ? end : NULL;
}

/* Posts receive actions for the instruction's slices of the current tile from one on; the first arrives in the slot at the
 * position. Returns the position after the last one; 0 if the instruction can have none. */
RONDO_RARE uint64_t rondo_post_receive_actions(const struct rondo_run *run, const struct rondo_instruction *instruction,
                                               uint64_t slice, uint64_t position)
{
    const struct rondo_operation *operation = run->operation;
    const struct rondo_end *end = rondo_receive_action_end(run, instruction);
    if (end == NULL)
        return 0;
    struct rondo_extent measured = rondo_measured_chunk(operation, instruction, 0);
    struct rondo_slice_op slice_op;
    struct rondo_use use;
    for (; slice < operation->slices && position - end->position < end->slot_count; slice++, position++) {
        struct rondo_receive_action *action = rondo_receive_action_at(end, position);
        struct rondo_stretch stretch = rondo_stretch_at(run, slice);
        uint64_t count = rondo_covered(measured, stretch);
        if (count == 0)
            break;
        if (rondo_load_relaxed(&action->state) >> 2 == RONDO_RECEIVE_ACTION(position, 0) >> 2)
            continue; /* posted earlier */
        const struct rondo_slice_part part = {0, 0, measured, stretch};
        rondo_describe(run, instruction, part, &slice_op, &use);
        if (use.twice)
            return 0;
        action->to = slice_op.local;
        action->own = slice_op.sources == 2 ? slice_op.source[use.local_place] : NULL;
        action->own_first = use.local_place == 0;
        action->count = count;
        action->average = slice_op.average;
        action->type = slice_op.type;
        action->op = slice_op.op;
        action->element_bytes = (uint8_t) slice_op.element_bytes;        /* of a built-in type */
        action->streaming = slice_op.streaming && slice_op.remotes == 0; /* what is sent on is read soon */
        rondo_store_release(&action->state, RONDO_RECEIVE_ACTION(position, RONDO_RECEIVE_ACTION_OFFERED));
    }
    return position;
}

/* Whether the next instruction only stores what it receives from the same connector, to a place that this instruction
 * neither reads nor writes. Its receive actions may then run before this instruction has. */
RONDO_FUNCTION int rondo_may_overtake(const struct rondo_run *run, const struct rondo_instruction *instruction,
                                      const struct rondo_instruction *next)
{
    return next->actions == (RONDO_RECEIVE | RONDO_COPY) && next->receive_first == instruction->receive_first &&
           next->dependencies == 0 && next->destination_buffer == RONDO_OUTPUT &&
           (run->operation->zero_copy & RONDO_ZERO_COPY_INPUT) && instruction->source_buffer == RONDO_INPUT &&
           instruction->destination_buffer == RONDO_OUTPUT && instruction->destination_index != next->destination_index;
}

/* Posts what to do with the slices of the tile that have not arrived, before the instruction waits for the first of them.
 * Slices of one instruction do not depend on each other. */
RONDO_FUNCTION void rondo_post_receive_action(const struct rondo_run *run, const struct rondo_instruction *instruction)
{
    if (rondo_receive_action_end(run, instruction) == NULL)
        return;
    uint64_t position =
        rondo_post_receive_actions(run, instruction, run->slice, rondo_end_of(run, instruction->receive_first)->position);
    const struct rondo_instruction *next = run->part->instructions + run->instruction + 1;
    if (position != 0 && run->instruction + 1 < run->part->instruction_count && rondo_may_overtake(run, instruction, next))
        rondo_post_receive_actions(run, next, 0, position);
}

/* To be called before a wait: posts receive actions and limits the budget if the wait depends on a network. */
RONDO_FUNCTION void rondo_expect(struct rondo_run *run, const struct rondo_instruction *instruction)
{
    int performed = 0;
    for (uint32_t i = 0; (instruction->actions & RONDO_RECEIVE) && i < instruction->receive_count; i++)
        performed |= rondo_end_of(run, instruction->receive_first + i)->posts_receive_actions;
    for (uint32_t i = 0; (instruction->actions & RONDO_SEND) && i < instruction->send_count; i++)
        performed |= !(instruction->flags & RONDO_DIRECT_OUT) &&
                     rondo_end_of(run, instruction->send_first + i)->source_references != NULL;
    if (performed && run->budget > RONDO_RECEIVE_ACTION_TICKS)
        run->budget = RONDO_RECEIVE_ACTION_TICKS;
    rondo_post_receive_action(run, instruction);
}

#endif
