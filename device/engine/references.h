/*
 * References: single copy between ranks of one host in several processes, on the host device. A slot then names where its bytes
 * lie in the sender's memory, and the receiver copies them from there to where they belong: by one system call if the sender is
 * another process (device/engine/process_memory.h). Nothing is stored to the slot. A sender references what stays as it is
 * until its operation ends, and the operation does not end before all of it has been read. A receiver that cannot read a source
 * refuses it, and the sender copies the bytes into the slot after all.
 *
 * Order. The sender writes the reference before the slot's tail (release, acquire), and the receiver's head comes after its
 * copy (release, acquire): what the sender's application writes after the operation comes after the copy. If the operation
 * fails, it does not wait for the head, because the receiver may have been stopped: the sender withdraws the reference, then a
 * fence, then the application may write; and the receiver copies, then a fence, then looks whether the reference still stands.
 * So a copy whose reference stands is of the right bytes, and what else has been copied is not used. A refusal may overwrite a
 * withdrawal or the reverse: both operations fail then. The model is test/models/single_copy.pml.
 *
 * Why no part waits forever: a sender fills refused slots at each of its waits, whatever it waits for, and a task that has
 * references outstanding is visited in every round.
 */
#ifndef RONDO_DEVICE_ENGINE_REFERENCES_H
#define RONDO_DEVICE_ENGINE_REFERENCES_H

#include "device/abi/platform.h"
#include "device/abi/slice_operation.h"
#include "device/abi/structures.h"
#include "device/engine/run.h"
#include "device/engine/use.h"

#if !defined(__CUDACC__)

#include "device/engine/copy_costs.h"
#include "device/engine/process_memory.h"

#include <string.h>

/* How a rank and another one exchange bytes by single copies: the same on both. */
enum rondo_single_copy_way {
    RONDO_WAY_SLOTS,   /* not at all */
    RONDO_WAY_ADDRESS, /* they are of one process, or */
    RONDO_WAY_PROCESS  /* can read each other's process */
};
struct rondo_single_copy_peer {
    enum rondo_single_copy_way way;
    struct rondo_process_identity process;
};

#define RONDO_REFUSED_SLOTS 16 /* after a slot that was refused, so many are not referenced */

/* The reference of the slot at a position: they end where the slots begin. */
RONDO_FUNCTION struct rondo_reference *rondo_reference_at(const struct rondo_end *end, uint64_t position)
{
    return (struct rondo_reference *) (void *) end->slots - end->slot_count + (position & (end->slot_count - 1));
}

/* Whether slots of the end may be referenced. peers: by rank in the world. */
RONDO_FUNCTION int rondo_is_referenced(const struct rondo_single_copy_peer *peers, const struct rondo_end *end)
{
    return peers[end->peer].way != RONDO_WAY_SLOTS && RONDO_HAS_REFERENCES(end->protocol);
}

/* ---- the sender's side ---- */

/* Whether what the instruction sends stays as it is until the operation ends. */
RONDO_FUNCTION int rondo_may_reference(const struct rondo_operation *operation, const struct rondo_instruction *instruction)
{
    const uint8_t actions = instruction->actions, use = operation->single_copy;
    const int input = actions == RONDO_SEND && instruction->source_buffer == RONDO_INPUT && (use & RONDO_SINGLE_COPY_INPUT);
    const int written = (actions & RONDO_COPY) && instruction->destination_buffer == RONDO_OUTPUT;
    const int read = actions == RONDO_SEND && instruction->source_buffer == RONDO_OUTPUT;
    return (actions & RONDO_SEND) && instruction->count == 1 && instruction->flags == (instruction->flags & RONDO_NOTIFY) &&
           (input || ((written || read) && (use & RONDO_SINGLE_COPY_OUTPUT)));
}

/* What the receiver tells the sender of its costs; head: as in struct rondo_end's watched (sender) or published (receiver). */
RONDO_FUNCTION uint64_t *rondo_told_costs(uint64_t *head, uint64_t bytes)
{
    return &((struct rondo_head *) (void *) head)->costs[rondo_cost_class(bytes)];
}

/* Whether the end's next slot, of so many bytes, is to be referenced. */
RONDO_FUNCTION int rondo_references_next(const struct rondo_operation *operation, const struct rondo_end *end, uint64_t bytes)
{
    struct rondo_reference *first = rondo_reference_at(end, 0);
    if (end->position < first->mistrusted)
        return 0;
    if (operation->single_copy & RONDO_SINGLE_COPY_ALWAYS)
        return 1;
    if (bytes < RONDO_SINGLE_COPY_BYTES)
        return 0;
    const uint64_t told = rondo_load_relaxed(rondo_told_costs(end->watched, bytes));
    const struct rondo_copy_costs costs = {first->stores[rondo_cost_class(bytes)], (uint32_t) told, (uint32_t) (told >> 32)};
    return rondo_cost_chooses_once(costs, (enum rondo_cost_rule)(operation->single_copy / RONDO_SINGLE_COPY_RULE),
                                   operation->tiles, operation->readers, first->sent++);
}

/* References the bytes of the slice operation's slots where it may, and drops the remotes that need no copy. */
RONDO_RARE void rondo_reference_sources(const struct rondo_run *run, const struct rondo_single_copy_peer *peers,
                                        const struct rondo_use *use, struct rondo_slice_op *slice_op)
{
    const struct rondo_operation *operation = run->operation;
    const uint64_t bytes = slice_op->count * slice_op->element_bytes;
    const char *source = slice_op->local != NULL ? slice_op->local : slice_op->source[0];
    uint8_t copied = 0;
    if (use->sent == 0 || !rondo_may_reference(operation, run->part->instructions + run->instruction))
        return;
    for (uint32_t i = 0; i < use->sent; i++) {
        const struct rondo_end *end = rondo_end_of(run, use->send_first + i);
        const int referenced = rondo_is_referenced(peers, end) && rondo_references_next(operation, end, bytes);
        if (referenced) { /* released with the tail */
            struct rondo_reference *reference = rondo_reference_at(end, end->position);
            reference->bytes = bytes;
            reference->address = (uint64_t) (uintptr_t) source;
            rondo_store_relaxed(&reference->source, (uint64_t) (uintptr_t) source);
            rondo_store_relaxed(&reference->number, end->position + 1);
        }
        slice_op->remote[copied] = slice_op->remote[i];
        slice_op->remote_flags[copied] = slice_op->remote_flags[i];
        copied = (uint8_t) (copied + !referenced);
    }
    slice_op->remotes = copied;
}

/* What is done with an end through which the part may have sent references. Returns 1 to stop there. */
typedef int rondo_reference_visit_t(struct rondo_end *end);

/* The same as rondo_visit_references, of an operation that may use single copies. */
RONDO_RARE const struct rondo_end *rondo_visit_all_references(const struct rondo_operation *operation,
                                                              const struct rondo_part *part,
                                                              const struct rondo_single_copy_peer *peers,
                                                              rondo_reference_visit_t *visit)
{
    for (uint32_t i = 0; i < part->instruction_count; i++) {
        const struct rondo_instruction *instruction = part->instructions + i;
        for (uint32_t k = 0; rondo_may_reference(operation, instruction) && k < instruction->send_count; k++) {
            struct rondo_end *end = rondo_part_end(part, instruction->send_first + k);
            if (rondo_is_referenced(peers, end) && visit(end))
                return end;
        }
    }
    return NULL;
}

/* Visits the part's ends through which it may have sent references. Returns the one at which visit has stopped; NULL: none. */
RONDO_FUNCTION const struct rondo_end *rondo_visit_references(const struct rondo_operation *operation,
                                                              const struct rondo_part *part,
                                                              const struct rondo_single_copy_peer *peers,
                                                              rondo_reference_visit_t *visit)
{
    return operation->single_copy ? rondo_visit_all_references(operation, part, peers, visit) : NULL;
}

/* Whether the receiver has not read all that the end's slots reference. */
RONDO_FUNCTION int rondo_is_unread(struct rondo_end *end)
{
    uint64_t last = 0;
    for (uint64_t slot = 0; slot < end->slot_count; slot++) {
        const uint64_t number = rondo_load_relaxed(&rondo_reference_at(end, slot)->number);
        last = number > last ? number : last;
    }
    if (end->seen < last) /* acquire: the receiver has copied before the buffer may be written */
        end->seen = rondo_load_acquire(end->watched);
    return end->seen < last;
}

/* Copies the bytes of the end's refused references into their slots. Release: the bytes come before the word. */
RONDO_FUNCTION int rondo_fill_slots(struct rondo_end *end)
{
    for (uint64_t slot = 0; slot < end->slot_count; slot++) {
        struct rondo_reference *reference = rondo_reference_at(end, slot);
        if (rondo_load_relaxed(&reference->source) != RONDO_REFERENCE_REFUSED)
            continue;
        const uint64_t position = reference->number - 1;
        memcpy(rondo_slot_at(end, position), (const void *) (uintptr_t) reference->address, reference->bytes);
        rondo_reference_at(end, 0)->mistrusted = position + RONDO_REFUSED_SLOTS;
        rondo_store_release(&reference->source, RONDO_REFERENCE_NONE);
    }
    return 0;
}

/* Withdraws the end's references that stand. Fence: either the receiver's look at the word (rondo_read_reference) comes later,
 * and finds it withdrawn; or its copy comes before what the application writes to its buffers afterwards. */
RONDO_FUNCTION int rondo_withdraw_slots(struct rondo_end *end)
{
    for (uint64_t slot = 0; slot < end->slot_count; slot++) {
        struct rondo_reference *reference = rondo_reference_at(end, slot);
        if (rondo_load_relaxed(&reference->source) == RONDO_REFERENCE_NONE)
            continue;
        rondo_store_relaxed(&reference->source, RONDO_REFERENCE_WITHDRAWN);
        rondo_fence(&reference->source);
    }
    return 0;
}

/* Withdraws all references of a part whose operation has failed, before its buffers are given back. Does not wait. */
RONDO_FUNCTION void rondo_withdraw_references(const struct rondo_operation *operation, const struct rondo_part *part,
                                              const struct rondo_single_copy_peer *peers)
{
    rondo_visit_references(operation, part, peers, rondo_withdraw_slots);
}

/* ---- the receiver's side ---- */

/* The reference of the end's next slot, which has arrived; NULL: its bytes are in the slot. */
RONDO_FUNCTION struct rondo_reference *rondo_next_reference(const struct rondo_single_copy_peer *peers,
                                                            const struct rondo_end *end)
{
    if (!rondo_is_referenced(peers, end))
        return NULL;
    struct rondo_reference *reference = rondo_reference_at(end, end->position);
    return rondo_load_relaxed(&reference->number) == end->position + 1 ? reference : NULL;
}

/* Notes what a copy has cost the receiver, and tells the sender if that has changed. once: a single copy. ns UINT64_MAX: it is
 * not possible. */
RONDO_FUNCTION void rondo_note_receiving(const struct rondo_end *end, int once, uint64_t ns, uint64_t bytes)
{
    if (bytes < RONDO_SINGLE_COPY_BYTES)
        return;
    uint64_t *told = rondo_told_costs(end->published, bytes), before = rondo_load_relaxed(told);
    const uint32_t was = (uint32_t) (once ? before >> 32 : before);
    const uint32_t is = ns == UINT64_MAX ? UINT32_MAX : rondo_cost_after(was, ns, bytes);
    if ((is > was ? is - was : was - is) > was / 32) /* the sender reads the line */
        rondo_store_relaxed(told, once ? (uint64_t) is << 32 | (uint32_t) before : (before >> 32 << 32) | is);
}

/* Copies the bytes of a reference. Returns 1 if they are the slot's; 0 if they cannot be read or are not the slot's any more.
 */
RONDO_FUNCTION int rondo_read_reference(const struct rondo_single_copy_peer *peer, struct rondo_reference *reference,
                                        uint64_t source, char *to, size_t bytes)
{
    const void *from = (const void *) (uintptr_t) source;
    if (peer->way == RONDO_WAY_ADDRESS)
        memcpy(to, from, bytes);
    else if (rondo_process_read(&peer->process, to, from, bytes) != 0)
        return 0;
    rondo_fence(&reference->source); /* the copy before the look: see rondo_withdraw_slots */
    return rondo_load_relaxed(&reference->source) == source;
}

#endif

#endif
