/*
 * Zero-copy send, on the host device: what a program sends over a network from its input, while that is not written, or from
 * its result need not be copied into a slot. The slot then names where the bytes lie (a source reference), and the proxy sends
 * them from there; the operation is not complete before the proxy has settled the slot: before the bytes have arrived, as a
 * connection that breaks has them sent again, or before they have been sent and the proxy has a copy of them. Also what becomes
 * of posted receive actions. By the thread that runs the engine.
 */
#ifndef RONDO_DEVICE_ENGINE_ZERO_COPY_H
#define RONDO_DEVICE_ENGINE_ZERO_COPY_H

#include "device/abi/platform.h"
#include "device/engine/receive_action.h"
#include "device/engine/run.h"
#include "device/engine/use.h"

/* Fewer bytes of a slot are copied as soon as they are on their way: that takes less time than the message by which their
 * arrival is told. Measured between two ranks over TCP. */
#define RONDO_ZERO_COPY_BYTES 65536u

/* Whether the instruction sends an input that stays unwritten, or a result that stays as it is. */
RONDO_FUNCTION int rondo_may_send_zero_copy(const struct rondo_run *run, const struct rondo_instruction *instruction)
{
    const struct rondo_operation *operation = run->operation;
    int input = instruction->actions == RONDO_SEND && instruction->source_buffer == RONDO_INPUT;
    int result = (instruction->actions & RONDO_SEND) && (instruction->actions & RONDO_COPY) &&
                 (instruction->flags & RONDO_FINISH) && instruction->destination_buffer == RONDO_OUTPUT;
    return operation->rate == 0 && instruction->count == 1 &&
           ((input && (operation->zero_copy & RONDO_ZERO_COPY_INPUT)) ||
            (result && (operation->zero_copy & RONDO_ZERO_COPY_RESULT)));
}

/* Writes the source references of the slice operation's slots, and drops the remotes that need no copy. */
RONDO_FUNCTION void rondo_send_zero_copy(const struct rondo_run *run, const struct rondo_use *use,
                                         struct rondo_slice_op *slice_op)
{
    int zero_copy = rondo_may_send_zero_copy(run, run->part->instructions + run->instruction);
    uint8_t copied = 0;
    for (uint32_t i = 0; i < use->sent; i++) {
        const struct rondo_end *end = rondo_end_of(run, use->send_first + i);
        int lent = zero_copy && end->source_references != NULL && !use->direct_out;
        if (end->source_references != NULL && use->slot_offset == 0) {
            struct rondo_referenced_slot *offer = &end->source_references->slots[end->position & (end->slot_count - 1)];
            offer->source = !lent ? NULL : slice_op->local != NULL ? slice_op->local : slice_op->source[0];
            offer->bytes = (uint32_t) (slice_op->count * slice_op->element_bytes);
            offer->copied = offer->bytes < RONDO_ZERO_COPY_BYTES || (run->operation->zero_copy & RONDO_ZERO_COPY_COPIED);
        }
        slice_op->remote[copied] = slice_op->remote[i];
        slice_op->remote_flags[copied] = slice_op->remote_flags[i];
        copied = (uint8_t) (copied + !lent);
        slice_op->streaming = slice_op->streaming && !lent;
    }
    slice_op->remotes = copied;
}

/* The operation of a part has failed: its buffers are given back, so what a connection that breaks has lost of them is not sent
 * again. */
RONDO_FUNCTION void rondo_withdraw_source_references(const struct rondo_operation *operation, const struct rondo_part *part)
{
    for (uint32_t i = 0; operation->zero_copy && i < part->instruction_count; i++) {
        const struct rondo_instruction *instruction = part->instructions + i;
        for (uint32_t k = 0; (instruction->actions & RONDO_SEND) && k < instruction->send_count; k++) {
            const struct rondo_end *end = rondo_part_end(part, instruction->send_first + k);
            if (end->source_references != NULL)
                rondo_store_release(&end->source_references->withdrawn, 1);
        }
    }
}

/* Whether the proxy needs nothing any more that this end's source references name. */
RONDO_FUNCTION int rondo_end_is_settled(const struct rondo_end *end)
{
    /* Acquire: the proxy has finished reading, for good, before the buffer may be written. */
    uint64_t number = rondo_load_acquire(&end->source_references->settled);
    if (number + end->slot_count < end->position)
        return 0;
    for (; number < end->position; number++)
        if (end->source_references->slots[number & (end->slot_count - 1)].source != NULL)
            return 0;
    return 1;
}

/* Whether the proxy needs this operation's buffers no more. The operation may not complete before. */
RONDO_FUNCTION int rondo_is_settled(const struct rondo_run *run)
{
    if (!run->operation->zero_copy)
        return 1;
    for (uint32_t i = 0; i < run->part->instruction_count; i++) {
        const struct rondo_instruction *instruction = run->part->instructions + i;
        for (uint32_t k = 0; rondo_may_send_zero_copy(run, instruction) && k < instruction->send_count; k++) {
            const struct rondo_end *end = rondo_end_of(run, instruction->send_first + k);
            if (end->source_references != NULL && !rondo_end_is_settled(end))
                return 0;
        }
    }
    return 1;
}

/* ---- receive actions ---- */

/* The receive action of the slot at a position. */
RONDO_FUNCTION struct rondo_receive_action *rondo_receive_action_at(const struct rondo_end *end, uint64_t position)
{
    return &end->receive_actions[position & (end->slot_count - 1)];
}

/* To be called when the slot has arrived (by an acquire of the tail). If the slot's receive action has been performed, the
 * result is in place, and only the remotes are left to be served. */
RONDO_FUNCTION void rondo_take_receive_action(const struct rondo_run *run, const struct rondo_use *use,
                                              struct rondo_slice_op *slice_op)
{
    if (use->received != 1 || slice_op->local == NULL)
        return;
    const struct rondo_end *end = rondo_end_of(run, use->receive_first);
    if (!end->posts_receive_actions || use->direct_in || slice_op->rate != 0 ||
        rondo_load_relaxed(&rondo_receive_action_at(end, end->position)->state) !=
            RONDO_RECEIVE_ACTION(end->position, RONDO_RECEIVE_ACTION_DONE))
        return;
    slice_op->sources = 1;
    slice_op->source[0] = slice_op->local;
    slice_op->average = 0;
}

/* Withdraws all posted receive actions of a part whose operation has failed, before its buffers are given back. Returns 0 if
 * the network is performing one right now: the caller must try again. */
RONDO_FUNCTION int rondo_withdraw_receive_actions(const struct rondo_part *part)
{
    for (uint32_t i = 0; i < part->end_count; i++) {
        const struct rondo_end *end = rondo_part_end(part, i);
        for (uint32_t slot = 0; end->posts_receive_actions && slot < end->slot_count; slot++) {
            uint64_t *state = &end->receive_actions[slot].state, seen = rondo_load_acquire(state);
            if (RONDO_RECEIVE_ACTION_STATE(seen) == RONDO_RECEIVE_ACTION_TAKEN ||
                (RONDO_RECEIVE_ACTION_STATE(seen) == RONDO_RECEIVE_ACTION_OFFERED &&
                 !rondo_exchange_if(state, seen, RONDO_RECEIVE_ACTION_NONE)))
                return 0;
        }
    }
    return 1;
}

#endif
