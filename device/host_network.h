/*
 * What a host block arranges with a network about its slots, beyond filling and taking them. What it sends is lent where that
 * is possible: the slot says where the bytes lie (structures.h: struct rondo_loans). What it waits for it hands out: the
 * network does what is to be done with a slot's bytes where they come in (errand.h). A part of the engine, which includes it.
 */
#ifndef RONDO_DEVICE_HOST_NETWORK_H
#define RONDO_DEVICE_HOST_NETWORK_H

#include "errand.h"

#define RONDO_CARRIED_POLLS 4 /* for what the network brings: it may be this very thread that is to do the proxy's work */

/* ---- lending ---- */

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

/* ---- handing out ---- */

RONDO_FUNCTION struct rondo_errand *rondo_errand_at(const struct rondo_end *end, uint64_t position)
{
    return &end->errands[position & (end->slot_count - 1)];
}

/* The connector that the instruction's errands are about; NULL: there can be none. A slice of it is a slot. */
RONDO_FUNCTION const struct rondo_end *rondo_errand_end(const struct rondo_run *run,
                                                        const struct rondo_instruction *instruction)
{
    const uint8_t wanted = RONDO_RECEIVE | RONDO_COPY;
    if ((instruction->actions & wanted) != wanted || instruction->receive_count != 1 || instruction->count != 1 ||
        (instruction->flags & (RONDO_DIRECT_IN | RONDO_SIGNAL)) || run->operation->rate != 0)
        return NULL;
    const struct rondo_end *end = rondo_end_of(run, instruction->receive_first);
    return end->hands_out ? end : NULL;
}

/* Hands out the instruction's slices of the tile from one on, the first of which comes in the slot at the position. Returns the
 * position after them; 0: they cannot be. */
RONDO_FUNCTION uint64_t rondo_hand_out_slices(const struct rondo_run *run, const struct rondo_instruction *instruction,
                                              uint64_t slice, uint64_t position)
{
    const struct rondo_operation *operation = run->operation;
    const struct rondo_end *end = rondo_errand_end(run, instruction);
    if (end == NULL)
        return 0;
    struct rondo_extent measured = rondo_measured_chunk(operation, instruction, 0);
    struct rondo_piece piece;
    struct rondo_use use;
    for (; slice < operation->slices && position - end->position < end->slot_count; slice++, position++) {
        struct rondo_errand *errand = rondo_errand_at(end, position);
        struct rondo_stretch stretch = rondo_stretch_at(run, slice);
        uint64_t count = rondo_covered(measured, stretch);
        if (count == 0)
            break;
        if (rondo_load_relaxed(&errand->state) >> 2 == RONDO_ERRAND(position, 0) >> 2)
            continue; /* it has been handed out */
        rondo_describe(run, instruction, 0, 0, measured, stretch, &piece, &use);
        if (use.twice)
            return 0;
        errand->to = piece.local;
        errand->own = piece.sources == 2 ? piece.source[use.local_place] : NULL;
        errand->own_first = use.local_place == 0;
        errand->count = count;
        errand->average = piece.average;
        errand->type = piece.type;
        errand->op = piece.op;
        errand->element_bytes = piece.element_bytes;
        errand->streaming = piece.streaming && piece.remotes == 0; /* what is sent on is read soon */
        rondo_store_release(&errand->state, RONDO_ERRAND(position, RONDO_ERRAND_OFFERED));
    }
    return position;
}

/* Whether the instruction that follows does nothing but keep what it receives, from the same connector, where this one neither
 * reads nor writes, so that it may be done before this one has been. */
RONDO_FUNCTION int rondo_may_overtake(const struct rondo_run *run, const struct rondo_instruction *instruction,
                                      const struct rondo_instruction *next)
{
    return next->actions == (RONDO_RECEIVE | RONDO_COPY) && next->receive_first == instruction->receive_first &&
           next->dependencies == 0 && next->destination_buffer == RONDO_OUTPUT && (run->operation->lends & RONDO_LENDS_INPUT) &&
           instruction->source_buffer == RONDO_INPUT && instruction->destination_buffer == RONDO_OUTPUT &&
           instruction->destination_index != next->destination_index;
}

/* What is to be done with the slices of the tile that have not come, before the instruction waits for the first of them. All it
 * depends on is there: slices of one instruction do not depend on each other. */
RONDO_FUNCTION void rondo_hand_out(const struct rondo_run *run, const struct rondo_instruction *instruction)
{
    if (rondo_errand_end(run, instruction) == NULL)
        return;
    uint64_t position =
        rondo_hand_out_slices(run, instruction, run->slice, rondo_end_of(run, instruction->receive_first)->position);
    const struct rondo_instruction *next = run->part->instructions + run->instruction + 1;
    if (position != 0 && run->instruction + 1 < run->part->instruction_count && rondo_may_overtake(run, instruction, next))
        rondo_hand_out_slices(run, next, 0, position);
}

/* The slot has arrived (by an acquire of the tail): if its errand has been done, the result is where it is to be, and only
 * those it is sent on to are left. */
RONDO_FUNCTION void rondo_take_errand(const struct rondo_run *run, const struct rondo_use *use, struct rondo_piece *piece)
{
    if (use->received != 1 || use->direct_in || piece->rate != 0 || piece->local == NULL)
        return;
    const struct rondo_end *end = rondo_end_of(run, use->receive_first);
    if (!end->hands_out ||
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
        const struct rondo_end *end = part->row != NULL ? part->row + i : part->ends[i];
        for (uint32_t slot = 0; end->hands_out && slot < end->slot_count; slot++) {
            uint64_t *state = &end->errands[slot].state, seen = rondo_load_acquire(state);
            if (RONDO_ERRAND_STATE(seen) == RONDO_ERRAND_TAKEN ||
                (RONDO_ERRAND_STATE(seen) == RONDO_ERRAND_OFFERED && !rondo_exchange_if(state, seen, RONDO_ERRAND_NONE)))
                return 0;
        }
    }
    return 1;
}

/* Before a wait for something that a network brings: it gets its errands, and not many polls. */
RONDO_FUNCTION void rondo_expect(struct rondo_run *run, const struct rondo_instruction *instruction)
{
    int carried = 0;
    for (uint32_t i = 0; (instruction->actions & RONDO_RECEIVE) && i < instruction->receive_count; i++)
        carried |= rondo_end_of(run, instruction->receive_first + i)->hands_out;
    for (uint32_t i = 0; (instruction->actions & RONDO_SEND) && i < instruction->send_count; i++)
        carried |= !(instruction->flags & RONDO_DIRECT_OUT) && rondo_end_of(run, instruction->send_first + i)->loans != NULL;
    if (carried && run->budget > RONDO_CARRIED_POLLS)
        run->budget = RONDO_CARRIED_POLLS;
    rondo_hand_out(run, instruction);
}

#endif
