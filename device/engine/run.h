/*
 * What the engine knows while it runs one program block: where it stands, and what it needs of the operation, the lane and the
 * policy.
 */
#ifndef RONDO_DEVICE_ENGINE_RUN_H
#define RONDO_DEVICE_ENGINE_RUN_H

#include "device/abi/platform.h"
#include "device/abi/structures.h"

enum rondo_outcome { RONDO_OUTCOME_STUCK, RONDO_OUTCOME_FINISHED };

/* What has been agreed upon about a part's direct write. */
enum rondo_direct_write_step {
    RONDO_DIRECT_WRITE_UNSAID,
    RONDO_DIRECT_WRITE_OFFERED, /* a receiver's: it has said where */
    RONDO_DIRECT_WRITE_BY_SLOTS /* the slots it is */
};

struct rondo_workers;

/* What a run of a program block needs to know. A local variable of one function into which all of the engine is inlined: on a
 * GPU it lives in registers (memory is hundreds of cycles away after every acquire), so nothing may keep its address. */
struct rondo_run {
    const struct rondo_operation *home; /* where the operation is kept */
    /* Where the worker group has them at hand: */
    const struct rondo_operation *operation;
    const struct rondo_part *part;
    struct rondo_end *row;         /* the part's ends, where they lie one after the other, */
    struct rondo_end *const *ends; /* or else by their addresses */
    struct rondo_context *context;
    struct rondo_workers *workers;
    uint64_t *semaphores; /* of the lane */
    uint64_t *waiting;    /* of this context */
    struct rondo_block_statistics *statistics;
    const struct rondo_policy *policy;
    const struct rondo_queues *queues;
    const uint32_t *failed;     /* of the lane: ends waits that have no budget */
    const uint64_t *interrupts; /* the host's that the block has answered; others end waits without a budget too */
    uint64_t budget;
    struct rondo_instruction unpublished; /* begun, but not told to anybody */
    int pending;                          /* there is such a one */
    uint32_t program_block;
    uint32_t fresh;     /* the operation is not what it was when the worker group had it last */
    uint32_t early;     /* what comes before the operation may not be over: nothing that changes has been looked at
                           (rondo_workers_arrive) */
    uint32_t of_daemon; /* a constant: else it is a kernel's on a stream */
    uint32_t keeps;     /* the operation may be started again next: what the worker group learns of it is kept */
    uint32_t described; /* the first slice operation has been, all but where its connectors stand */
    uint32_t over;      /* the worker group has gone ahead with it, and that was all */
    uint32_t advanced;
    /* The context's position, written back when the run ends. */
    uint64_t tile;
    uint32_t instruction, slice, slice_op;
    uint32_t direct_write; /* enum rondo_direct_write_step */
    uint32_t sent;         /* an exchange is stuck, but the peers have this rank's part of the slice operation */
    uint32_t element_bytes;
};

RONDO_FUNCTION struct rondo_end *rondo_part_end(const struct rondo_part *part, uint32_t index)
{
    return part->row != NULL ? part->row + index : part->ends[index];
}

RONDO_FUNCTION struct rondo_end *rondo_end_of(const struct rondo_run *run, uint32_t index)
{
    return run->row != NULL ? run->row + index : run->ends[index];
}

/* Whether its part lands (device/engine/direct_write.h). The other side's is its mirror image. A GPU's daemon has nothing that
 * does. */
RONDO_FUNCTION int rondo_writes_directly(const struct rondo_run *run)
{
#if defined(__CUDACC__)
    if (run->of_daemon)
        return 0;
#endif
    return run->operation->direct_writes != RONDO_DIRECT_WRITES_NOT && run->part->instruction_count == 1 &&
           run->part->end_count == 1;
}

RONDO_FUNCTION uint64_t *rondo_direct_write_word(uint64_t *head)
{
    return &((struct rondo_head *) (void *) head)->direct_write;
}

#endif
