/*
 * A plan is one rank's program before it is bound to buffers and connectors: the program image that the engine interprets, and
 * the list of connectors' ends that it wants. The compiler (lib/program/emit.c) and the algorithms written by hand
 * (lib/algorithms/plan_*.c) build plans; lib/submission/bind.c binds them. Relies on device/abi/structures.h for the image.
 */
#ifndef RONDO_LIB_PROGRAM_PLAN_H
#define RONDO_LIB_PROGRAM_PLAN_H

#include "rondo.h"
#include "device/abi/structures.h"

/* An end that a block of the program uses, by what the two ranks must agree on. */
struct rondo_connection {
    int32_t peer; /* rank in the communicator; of an end that sends by multicast: this rank itself */
    uint16_t channel;
    uint8_t direction; /* enum rondo_direction */
    uint8_t protocol;  /* enum rondo_protocol */
};

/* The lists of a program's image: its blocks, and the instructions and dependencies of all blocks. */
static inline const struct rondo_program_block *rondo_program_blocks(const struct rondo_program *program)
{
    return (const struct rondo_program_block *) (const void *) ((const char *) program + program->block_offset);
}

static inline const struct rondo_instruction *rondo_program_instructions(const struct rondo_program *program)
{
    return (const struct rondo_instruction *) (const void *) ((const char *) program + program->instruction_offset);
}

static inline const struct rondo_dependency *rondo_program_dependencies(const struct rondo_program *program)
{
    return (const struct rondo_dependency *) (const void *) ((const char *) program + program->dependency_offset);
}

struct rondo_plan {
    uint32_t shared;                      /* owners beside the first; atomic */
    struct rondo_program *program;        /* host copy of the image; owned */
    struct rondo_connection *connections; /* [program->ends]; owned */
    int unsliced;                         /* no slots hold payload: one tile covers all */
    uint32_t scratch_groups;              /* blocks of the call's arguments that scratch holds; 0: one */
    uint32_t largest_receive;             /* sources that one primitive receives, for LL staging */
    /* [chunks[RONDO_SCRATCH]]: the class of each scratch chunk (rondo_conditions_class), which says how long it is; owned.
     * NULL: scratch is laid out as an input. */
    uint32_t *scratch_classes;
    uint32_t block_chunks; /* of a compiled program: chunks of a block of the collective's arguments; 0: written by hand */
    int even;              /* all chunks must be equally long */
    int ordered; /* the verifier has found that the program keeps the order of ranks; 0 also if it has not been asked */
};

/* Gives up one share of the plan; the last one frees it. NULL: does nothing. Any thread may call. */
void rondo_plan_free(struct rondo_plan *plan);
/* Returns the plan with one more share, which rondo_plan_free gives up. Any thread that has a share may call. */
static inline struct rondo_plan *rondo_plan_share(struct rondo_plan *plan)
{
    __atomic_add_fetch(&plan->shared, 1, __ATOMIC_RELAXED);
    return plan;
}

/* ---- building ---- */

struct rondo_plan_builder;

/* Returns an empty builder, or NULL if memory is out: the calls below then do nothing and finish fails, so finish alone need be
 * checked. A builder belongs to one thread. */
struct rondo_plan_builder *rondo_plan_builder_create(void);
/* Begins a block; blocks are numbered from 0. Ends and instructions are added to the block that was begun last. */
void rondo_plan_builder_block(struct rondo_plan_builder *builder);
/* Adds an end to the block. Returns its index within the block. More than RONDO_PROGRAM_ENDS_MAX make finish fail. */
uint8_t rondo_plan_builder_end(struct rondo_plan_builder *builder, int peer, int channel, enum rondo_direction direction,
                               enum rondo_protocol protocol);
/* Adds a copy of an instruction to the block. Its dependencies must be 0: rondo_plan_builder_depend adds them. */
void rondo_plan_builder_add(struct rondo_plan_builder *builder, const struct rondo_instruction *instruction);
/* Adds an instruction to the block that copies a chunk of the input to the output. */
void rondo_plan_builder_keep(struct rondo_plan_builder *builder, uint32_t source, uint32_t destination);
/* The instruction that was added last waits until instruction `step` of block `block` of this rank is done; that one must have
 * RONDO_NOTIFY. */
void rondo_plan_builder_depend(struct rondo_plan_builder *builder, int block, int step);
/* Lays out the image and frees the builder, also on failure. chunks: of input, output and scratch. The caller frees *plan.
 * RONDO_ERR_MEMORY if memory was out in any call, or a block has too many ends, or the program too many waits. */
rondo_result_t rondo_plan_builder_finish(struct rondo_plan_builder *builder, const uint32_t chunks[RONDO_BUFFERS],
                                         struct rondo_plan **plan);

#endif
