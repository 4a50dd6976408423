/*
 * Direct write: the sender stores what a part of an operation receives where it belongs. It applies to parts of a single slice
 * operation that is sent (and kept) or received through one connector, and to parts that send one to a peer and receive one
 * from it, where the sender's device reaches the receiver's memory. The receiver says where (struct rondo_head), the sender
 * stores there, and an empty slot tells the receiver that the data are there. Nothing is copied twice, the receiver's device
 * moves nothing, and the part takes one step, however long it is. Only the receiver knows its buffer: if peers cannot reach it,
 * the receiver says so, and the part goes through the slots. Of two directions both do, and both ranks know, because each says
 * its word and takes the other's (test/models/exchange.pml).
 *
 * Order. The receiver alone changes the word from NONE. The sender that takes the address changes it back; so does a receiver
 * that withdraws its buffer because the operation has failed, and both do it by an exchange. Release and acquire of the word:
 * all use of the buffer before is over when the sender stores. Release and acquire of the tail: the sender's stores, and the
 * word's return to NONE, come before the receiver goes on, and so before it writes the word again. The model is
 * test/models/direct_write.pml.
 *
 * Why no part waits forever: a receiver writes the word before it waits for anything, and its part depends on no other; so a
 * sender waits only for the peer to begin the operation, as it would wait for free slots.
 */
#ifndef RONDO_DEVICE_ENGINE_DIRECT_WRITE_H
#define RONDO_DEVICE_ENGINE_DIRECT_WRITE_H

#include "device/abi/platform.h"
#include "device/engine/describe.h"
#include "device/engine/publish.h"
#include "device/engine/run.h"
#include "device/engine/slices.h"
#include "device/engine/use.h"
#include "device/engine/waits.h"
#include "device/engine/workers.h"

#define RONDO_DIRECT_WRITE_BYTES ((uint64_t) 4 << 20) /* of one slice operation, at most */

/* Waits within the budget until the receiver has written its word. Returns 0 if stuck. */
RONDO_FUNCTION int rondo_await_direct_write(struct rondo_run *run, const struct rondo_end *end)
{
    const uint64_t *word = rondo_direct_write_word(end->watched);
    struct rondo_wait wait = {0, 0};
    while (rondo_load_relaxed(word) == RONDO_DIRECT_WRITE_NONE)
        if (!rondo_looks_again(run, end->peer + 1, &wait))
            return 0;
    return 1;
}

/* Stores the whole chunk at the peer's address there, in slice operations of RONDO_DIRECT_WRITE_BYTES. The last one may
 * still be under way on return. */
RONDO_FUNCTION void rondo_store_directly(struct rondo_run *run, const struct rondo_instruction *instruction,
                                         struct rondo_extent chunk, char *there)
{
    struct rondo_stretch stretch = {0, RONDO_DIRECT_WRITE_BYTES / run->element_bytes};
    for (; stretch.start < chunk.count; stretch.start += stretch.most) {
        struct rondo_use *use = rondo_workers_use(run->workers);
        const struct rondo_slice_part part = {0, 0, chunk, stretch};
        rondo_describe(run, instruction, part, rondo_workers_slice_op(run->workers), use);
        use->direct_write = there + stretch.start * run->element_bytes;
        rondo_workers_take_ends(run->workers, run, use);
        rondo_workers_finish(run->workers); /* the previous slice operation */
        rondo_workers_begin(run->workers, 0);
    }
}

/* Takes the receiver's word from the connector to it. Returns RONDO_DIRECT_WRITE_NONE if stuck. */
RONDO_FUNCTION uint64_t rondo_take_word(struct rondo_run *run, const struct rondo_instruction *instruction)
{
    const struct rondo_end *end = rondo_end_of(run, instruction->send_first);
    uint64_t *word = rondo_direct_write_word(end->watched);
    if (!rondo_await_direct_write(run, end))
        return RONDO_DIRECT_WRITE_NONE;
    const uint64_t there = rondo_load_relaxed(word);
    /* The receiver may have withdrawn its buffer and be about to fail this rank's operation, too. Acquire: see above. */
    if (there == RONDO_DIRECT_WRITE_NONE || !rondo_exchange_far_if(word, there, RONDO_DIRECT_WRITE_NONE))
        return RONDO_DIRECT_WRITE_NONE;
    run->advanced = 1;
    return there;
}

/* The sender's side. Returns 0 if stuck, or if it goes by slots (run->direct_write is then BY_SLOTS). */
RONDO_FUNCTION int rondo_send_directly(struct rondo_run *run, const struct rondo_instruction *instruction,
                                       struct rondo_extent chunk)
{
    const uint64_t there = rondo_take_word(run, instruction);
    if (there == RONDO_DIRECT_WRITE_NONE)
        return 0;
    if (there == RONDO_DIRECT_WRITE_IN_SLOTS || run->direct_write == RONDO_DIRECT_WRITE_DECLINED) {
        run->direct_write = RONDO_DIRECT_WRITE_BY_SLOTS;
        return 0;
    }
    rondo_store_directly(run, instruction, chunk, (char *) (uintptr_t) there);
    rondo_commit(run, instruction, chunk.count * run->element_bytes);
    return 1;
}

/* Says where the chunk belongs, or that peers cannot reach the output. */
RONDO_FUNCTION void rondo_say_where(struct rondo_run *run, const struct rondo_instruction *instruction,
                                    struct rondo_extent chunk)
{
    uint64_t *word = rondo_direct_write_word(rondo_end_of(run, instruction->receive_first)->published);
    const struct rondo_stretch whole = {0, chunk.count};
    const int here = run->operation->direct_writes == RONDO_DIRECT_WRITES_HERE;
    const char *place = rondo_local(run, instruction->destination_buffer, chunk, whole);
    rondo_store_release(word, here ? (uint64_t) (uintptr_t) place : RONDO_DIRECT_WRITE_IN_SLOTS);
    run->direct_write = here ? RONDO_DIRECT_WRITE_OFFERED : RONDO_DIRECT_WRITE_DECLINED;
    run->advanced = 1;
}

/* Executes the whole part. On return run->direct_write is BY_SLOTS if a receiver refused: then nothing has been moved, and the
 * engine goes on through the slots. run->instruction: 1 if the first of two has been executed. */
RONDO_FUNCTION enum rondo_outcome rondo_write_directly(struct rondo_run *run)
{
    const uint32_t last = run->part->instruction_count - 1;
    const struct rondo_instruction first = *rondo_workers_instruction(run->workers, run, 0);
    const struct rondo_instruction second = *rondo_workers_instruction(run->workers, run, last);
    const struct rondo_extent chunk = rondo_measured_chunk(run->operation, &first, 0);
    const struct rondo_extent received = rondo_measured_chunk(run->operation, &second, 0); /* of two as long as the first */
    rondo_arrive(run);
    if (chunk.count == 0) /* the peer's chunks are empty, too */
        return RONDO_OUTCOME_FINISHED;
    if ((second.actions & RONDO_RECEIVE) && run->direct_write == RONDO_DIRECT_WRITE_UNSAID)
        rondo_say_where(run, &second, received);
    if (!(first.actions & RONDO_SEND) && run->direct_write == RONDO_DIRECT_WRITE_DECLINED) {
        run->direct_write = RONDO_DIRECT_WRITE_BY_SLOTS;
        return RONDO_OUTCOME_STUCK;
    }
    if (run->instruction == 0 && (first.actions & RONDO_SEND)) {
        if (!rondo_send_directly(run, &first, chunk))
            return RONDO_OUTCOME_STUCK;
        run->instruction = last;
    }
    if (!(second.actions & RONDO_RECEIVE))
        return RONDO_OUTCOME_FINISHED; /* rondo_engine_run finishes the last slice operation and publishes */
    rondo_settle(run);                 /* the peer may wait for it */
    if (!rondo_wait_ready(run, &second, 0))
        return RONDO_OUTCOME_STUCK;
    rondo_commit(run, &second, received.count * run->element_bytes);
    return RONDO_OUTCOME_FINISHED;
}

/* Withdraws the receiver's buffer when the operation has failed. Returns 0 if the sender is storing right now: it will
 * finish, and the caller must try again before it gives the buffer back. */
RONDO_FUNCTION int rondo_withdraw_direct_write(const struct rondo_context *context, const struct rondo_part *part)
{
    if (context->direct_write != RONDO_DIRECT_WRITE_OFFERED)
        return 1;
    const struct rondo_end *end = rondo_part_end(part, part->end_count - 1); /* the receiving one is the last */
    uint64_t *word = rondo_direct_write_word(end->published);
    const uint64_t said = rondo_load_relaxed(word);
    return (said != RONDO_DIRECT_WRITE_NONE && rondo_exchange_far_if(word, said, RONDO_DIRECT_WRITE_NONE)) ||
           rondo_load_acquire(end->watched) > end->position;
}

#endif
