/*
 * What the engine knows while it runs one program block: where it stands, and what it needs of the operation, the lane and the
 * policy.
 */
#ifndef RONDO_DEVICE_ENGINE_RUN_H
#define RONDO_DEVICE_ENGINE_RUN_H

#include "device/abi/platform.h"
#include "device/abi/structures.h"

enum rondo_outcome { RONDO_OUTCOME_STUCK, RONDO_OUTCOME_FINISHED };

/* What sender and receiver have agreed upon about a part's direct write. */
enum rondo_direct_write_step {
    RONDO_DIRECT_WRITE_UNSAID,
    RONDO_DIRECT_WRITE_OFFERED,  /* the receiver has said where */
    RONDO_DIRECT_WRITE_DECLINED, /* the receiver has said that peers cannot reach its buffer, and sends, too */
    RONDO_DIRECT_WRITE_BY_SLOTS  /* through the slots, after all */
};

struct rondo_workers;

/* The state of a run of a program block. It is a local variable of one function into which all of the engine is inlined: on
 * a GPU it lives in registers (memory is hundreds of cycles away after every acquire), so no pointer to it may be kept. */
struct rondo_run {
    const struct rondo_operation *home; /* in the operation table, or the host's copy */
    /* Where the worker group has them at hand: */
    const struct rondo_operation *operation;
    const struct rondo_part *part;
    struct rondo_end *row;         /* the part's ends in one array; NULL: see ends */
    struct rondo_end *const *ends; /* pointers to the part's ends */
    struct rondo_context *context;
    struct rondo_workers *workers;
    uint64_t *semaphores; /* of the lane */
    uint64_t *waiting;    /* of this context */
    struct rondo_block_statistics *statistics;
    const struct rondo_policy *policy;
    const struct rondo_queues *queues;
    const uint32_t *failed;     /* the lane's: not 0 ends waits that have no budget */
    const uint64_t *interrupts; /* the count of the host's interrupts that the block has answered; a newer one ends waits that
                                   have no budget */
    uint64_t budget;            /* of a wait, in ticks */
    const uint64_t *coming;     /* the word by which the block will learn of more work, while it has none but this; NULL: it has
                                   more,     or does not look */
    uint64_t come;              /* what the word was when the run began */
    struct rondo_instruction unpublished; /* executed, but not yet published */
    int pending;                          /* there is such an instruction */
    uint32_t program_block;
    /* In a table by priority: tasks of higher priority that the block looks at after each slice, and whether it has left the
     * run for one of them, or for work that it has not seen yet. */
    const struct rondo_task *higher;
    uint32_t highers;
    uint32_t ranked, yields;
    uint32_t fresh;     /* the operation has changed since the worker group loaded it */
    uint32_t early;     /* the kernel before this one in its stream may not have ended: nothing that it changes has been read
                           (rondo_workers_arrive) */
    uint32_t of_daemon; /* a constant: 1 in a daemon, 0 in a kernel on a stream */
    uint32_t keeps;     /* the operation may be started again next: the worker group keeps what it has prepared */
    uint32_t described; /* the first slice operation has been described, all but where its connectors stand */
    uint32_t over;      /* the worker group has executed the whole part ahead of the engine */
    uint32_t advanced;
    uint32_t waited; /* something was not there when it was looked for */
    /* The context's position, written back when the run ends. */
    uint64_t tile;
    uint32_t instruction, slice, slice_op;
    uint32_t direct_write; /* enum rondo_direct_write_step */
    uint32_t sent;         /* an exchange is stuck, but its data have been sent */
    uint32_t element_bytes;
};

/* Stores a word by itself. A compiler would else move it together with its neighbour, and a load of both that were stored one
 * after the other waits until these stores have left the processor's store buffer: behind a slot's line that another core has.
 */
RONDO_FUNCTION void rondo_store_apart32(uint32_t *to, uint32_t value)
{
#if defined(__CUDACC__)
    *to = value;
#else
    *(volatile uint32_t *) to = value;
#endif
}

/* Looks at memory that a budget has time for: 1 to most. */
RONDO_FUNCTION uint64_t rondo_looks_within(uint64_t budget, uint64_t most)
{
    const uint64_t looks = budget / RONDO_LOOK_TICKS;
    return looks < 1 ? 1 : looks < most ? looks : most;
}

/* A part's end by its index. */
RONDO_FUNCTION struct rondo_end *rondo_part_end(const struct rondo_part *part, uint32_t index)
{
    return part->row != NULL ? part->row + index : part->ends[index];
}

/* The run's end by its index, where the worker group has it at hand. */
RONDO_FUNCTION struct rondo_end *rondo_end_of(const struct rondo_run *run, uint32_t index)
{
    return run->row != NULL ? run->row + index : run->ends[index];
}

/* Whether the part is of the kind that device/engine/direct_write.h executes: one instruction and its end, or two. The peer's
 * part is its mirror image, so both ranks agree. A GPU's daemon executes none. */
RONDO_FUNCTION int rondo_writes_directly(const struct rondo_run *run)
{
#if defined(__CUDACC__)
    if (run->of_daemon)
        return 0;
#endif
    return run->operation->direct_writes != RONDO_DIRECT_WRITES_NOT && run->part->instruction_count <= 2 &&
           run->part->end_count == run->part->instruction_count;
}

/* The word by which a receiver says where its data belong; head: as in struct rondo_end's watched (sender) or published
 * (receiver). */
RONDO_FUNCTION uint64_t *rondo_direct_write_word(uint64_t *head)
{
    return &((struct rondo_head *) (void *) head)->direct_write;
}

#endif
