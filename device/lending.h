/*
 * Lending, on the host device: what a program sends of its input over a network need not be copied into a slot when nobody
 * writes the input meanwhile. The slot then names where the bytes lie, the proxy sends them from there, and the operation is
 * not over before it has. Part of engine.h.
 */
#ifndef RONDO_DEVICE_LENDING_H
#define RONDO_DEVICE_LENDING_H

/* What the instruction sends lies in the input as it is to travel. */
RONDO_FUNCTION int rondo_may_lend(const struct rondo_run *run, const struct rondo_instruction *instruction)
{
    return run->operation->lends && run->operation->rate == 0 && instruction->actions == RONDO_SEND &&
           instruction->source_buffer == RONDO_INPUT && instruction->count == 1;
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
            loan->source = lent ? piece->source[0] : NULL;
            loan->bytes = piece->count * piece->element_bytes;
        }
        piece->remote[copied] = piece->remote[i];
        piece->remote_flags[copied] = piece->remote_flags[i];
        copied = (uint8_t) (copied + !lent);
    }
    piece->remotes = copied;
}

/* An operation is not over while the proxy may yet read its input. */
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

#endif
