/*
 * Single copy, the part of the engine: where a primitive takes what its slots reference, and where an operation waits until its
 * own references have been read (device/engine/references.h). GPUs have none of it. By the thread that runs the engine.
 */
#ifndef RONDO_DEVICE_ENGINE_SINGLE_COPY_H
#define RONDO_DEVICE_ENGINE_SINGLE_COPY_H

#include "device/abi/platform.h"
#include "device/engine/describe.h"
#include "device/engine/run.h"
#include "device/engine/slices.h"
#include "device/engine/waits.h"
#include "device/engine/workers.h"

#if defined(__CUDACC__)

RONDO_FUNCTION int rondo_take_references(struct rondo_run *run, const struct rondo_instruction *instruction,
                                         struct rondo_extent measured, struct rondo_stretch stretch)
{
    (void) run;
    (void) instruction;
    (void) measured;
    (void) stretch;
    return 1;
}
RONDO_FUNCTION int rondo_await_readers(struct rondo_run *run)
{
    (void) run;
    return 1;
}

#else

/* Copies what the reference names to where it belongs, or, where that is not one place of this rank's memory, into the slot, as
 * if the sender had done so. If it cannot be read, refuses it and waits, within the budget, until the sender has filled the
 * slot. Returns 0 if stuck. */
RONDO_FUNCTION int rondo_take_reference(struct rondo_run *run, const struct rondo_end *end, struct rondo_reference *reference,
                                        char *place, size_t bytes)
{
    const uint64_t source = rondo_load_acquire(&reference->source);
    struct rondo_wait wait = {0, 0};
    if (source > RONDO_REFERENCE_WITHDRAWN) {
        const struct rondo_single_copy_peer *peer = &run->workers->single_copy_peers[end->peer];
        char *to = place != NULL ? place : rondo_slot(end);
        const uint64_t began = rondo_clock_ns();
        const int read = rondo_read_reference(peer, reference, source, to, bytes);
        rondo_note_receiving(end, 1, read ? rondo_clock_ns() - began : UINT64_MAX, bytes);
        if (read) {
            run->workers->in_place = place != NULL;
            if (place == NULL)
                rondo_store_relaxed(&reference->source, RONDO_REFERENCE_NONE);
            return 1;
        }
        rondo_store_relaxed(&reference->source, RONDO_REFERENCE_REFUSED);
    }
    /* Acquire: the bytes are in the slot. A reference that has been withdrawn stays so until this operation fails, too. */
    while (rondo_load_acquire(&reference->source) != RONDO_REFERENCE_NONE)
        if (!rondo_looks_again(run, end->peer + 1, &wait))
            return 0;
    return 1;
}

/* The same as rondo_take_references, of an instruction that receives through slots. */
RONDO_RARE int rondo_take_received_references(struct rondo_run *run, const struct rondo_instruction *instruction,
                                              struct rondo_extent measured, struct rondo_stretch stretch)
{
    const int alone = (instruction->actions & (RONDO_COPY | RONDO_REDUCE)) == RONDO_COPY && instruction->receive_count == 1 &&
                      instruction->count == 1 && !(instruction->flags & RONDO_FINISH);
    for (uint32_t i = 0; i < instruction->receive_count; i++) {
        const struct rondo_end *end = rondo_end_of(run, instruction->receive_first + i);
        struct rondo_reference *reference = rondo_next_reference(run->workers->single_copy_peers, end);
        char *place = alone ? rondo_local(run, instruction->destination_buffer, measured, stretch) : NULL;
        if (reference != NULL &&
            !rondo_take_reference(run, end, reference, place, rondo_covered(measured, stretch) * run->element_bytes))
            return 0;
    }
    return 1;
}

/* Takes what the instruction's slots reference; the slots of the slice have arrived. Returns 0 if stuck. */
RONDO_FUNCTION int rondo_take_references(struct rondo_run *run, const struct rondo_instruction *instruction,
                                         struct rondo_extent measured, struct rondo_stretch stretch)
{
    return !run->operation->single_copy || !(instruction->actions & RONDO_RECEIVE) || (instruction->flags & RONDO_DIRECT_IN) ||
           rondo_take_received_references(run, instruction, measured, stretch);
}

/* Waits, within the budget, until the receivers have read all that the run's slots reference. The operation may not complete
 * before. Returns 0 if stuck. */
RONDO_FUNCTION int rondo_await_readers(struct rondo_run *run)
{
    const struct rondo_end *end;
    struct rondo_wait wait = {0, 0};
    while ((end = rondo_visit_references(run->operation, run->part, run->workers->single_copy_peers, rondo_is_unread)) != NULL)
        if (!rondo_looks_again(run, end->peer + 1, &wait))
            return 0;
    return 1;
}

#endif

#endif
