/*
 * Lending, on the host device: what a program sends over a network of its input, while nobody writes it, or of its result need
 * not be copied into a slot. The slot then names where the bytes lie, the proxy sends them from there, and the operation is not
 * over before it has. And what becomes of the errands (errand.h) that hand_out.h gives the network. Part of engine.h.
 */
#ifndef RONDO_DEVICE_ENGINE_ZERO_COPY_H
#define RONDO_DEVICE_ENGINE_ZERO_COPY_H

#include "device/engine/receive_action.h"

/* What the instruction sends lies as it is to travel in the input, which nobody writes, or is a result, which stays. */
RONDO_FUNCTION int rondo_may_lend(const struct rondo_run *run, const struct rondo_instruction *instruction)
{
    const struct rondo_operation *operation = run->operation;
    int input = instruction->actions == RONDO_SEND && instruction->source_buffer == RONDO_INPUT;
    int result = (instruction->actions & RONDO_SEND) && (instruction->actions & RONDO_COPY) &&
                 (instruction->flags & RONDO_FINISH) && instruction->destination_buffer == RONDO_OUTPUT;
    return operation->rate == 0 && instruction->count == 1 &&
           ((input && (operation->lends & RONDO_LENDS_INPUT)) || (result && (operation->lends & RONDO_LENDS_RESULT)));
}

/* Of the piece's remotes, those that are lent their bytes need no copy. */
RONDO_FUNCTION void rondo_lend(const struct rondo_run *run, const struct rondo_use *use, struct rondo_piece *piece)
{
    int lends = rondo_may_lend(run, run->part->instructions + run->instruction);
    uint8_t copied = 0;
    for (uint32_t i = 0; i < use->sent; i++) {
        const struct rondo_end *end = rondo_end_of(run, use->send_first + i);
        int lent = lends && end->loans != NULL && !use->direct_out;
        if (end->loans != NULL && use->slot_offset == 0) {
            struct rondo_lent_slot *loan = &end->loans->slots[end->position & (end->slot_count - 1)];
            loan->source = !lent ? NULL : piece->local != NULL ? piece->local : piece->source[0];
            loan->bytes = piece->count * piece->element_bytes;
        }
        piece->remote[copied] = piece->remote[i];
        piece->remote_flags[copied] = piece->remote_flags[i];
        copied = (uint8_t) (copied + !lent);
        piece->streaming = piece->streaming && !lent;
    }
    piece->remotes = copied;
}

/* An operation is not over while the proxy may yet read its buffers. */
RONDO_FUNCTION int rondo_is_settled(const struct rondo_run *run)
{
    if (!run->operation->lends)
        return 1;
    for (uint32_t i = 0; i < run->part->instruction_count; i++) {
        const struct rondo_instruction *instruction = run->part->instructions + i;
        for (uint32_t k = 0; rondo_may_lend(run, instruction) && k < instruction->send_count; k++) {
            const struct rondo_end *end = rondo_end_of(run, instruction->send_first + k);
            /* Acquire: it has been read before we let anybody write it. */
            if (end->loans != NULL && rondo_load_acquire(&end->loans->settled) < end->position)
                return 0;
        }
    }
    return 1;
}

/* ---- errands ---- */

RONDO_FUNCTION struct rondo_errand *rondo_errand_at(const struct rondo_end *end, uint64_t position)
{
    return &end->errands[position & (end->slot_count - 1)];
}

/* The slot has arrived (by an acquire of the tail): if its errand has been done, the result is where it is to be, and only
 * those it is sent on to are left. */
RONDO_FUNCTION void rondo_take_errand(const struct rondo_run *run, const struct rondo_use *use, struct rondo_piece *piece)
{
    if (use->received != 1 || piece->local == NULL)
        return;
    const struct rondo_end *end = rondo_end_of(run, use->receive_first);
    if (!end->hands_out || use->direct_in || piece->rate != 0 ||
        rondo_load_relaxed(&rondo_errand_at(end, end->position)->state) != RONDO_ERRAND(end->position, RONDO_ERRAND_DONE))
        return;
    piece->sources = 1;
    piece->source[0] = piece->local;
    piece->average = 0;
}

/* An operation that has failed gives its buffers back: the network must not do anything with them any more. 0: it is doing
 * something right now. */
RONDO_FUNCTION int rondo_withdraw_errands(const struct rondo_part *part)
{
    for (uint32_t i = 0; i < part->end_count; i++) {
        const struct rondo_end *end = rondo_part_end(part, i);
        for (uint32_t slot = 0; end->hands_out && slot < end->slot_count; slot++) {
            uint64_t *state = &end->errands[slot].state, seen = rondo_load_acquire(state);
            if (RONDO_ERRAND_STATE(seen) == RONDO_ERRAND_TAKEN ||
                (RONDO_ERRAND_STATE(seen) == RONDO_ERRAND_OFFERED && !rondo_exchange_if(state, seen, RONDO_ERRAND_NONE)))
                return 0;
        }
    }
    return 1;
}

#endif
