/*
 * A plan is one rank's program before it meets buffers and connectors: the program image the engine interprets, and the list of
 * connectors' ends it wants. Algorithms (lib/programs/) build plans; lib/submission/bind.c binds them. A compiler of programs
 * will emit the same form.
 */
#ifndef RONDO_LIB_PROGRAM_PLAN_H
#define RONDO_LIB_PROGRAM_PLAN_H

#include "rondo.h"
#include "device/abi/structures.h"

/* An end that a block of the program uses, by what the two ranks must agree on. */
struct rondo_connection {
    int32_t peer; /* rank in the communicator */
    uint16_t channel;
    uint8_t direction; /* enum rondo_direction */
    uint8_t protocol;  /* enum rondo_protocol */
};

/* The lists of a program's image. */
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
    uint32_t shared;               /* others that use it, beside the one who frees it next; atomic */
    struct rondo_program *program; /* host copy of the image */
    struct rondo_connection *connections;
    int unsliced;             /* no slots carry payload: one tile covers all */
    uint32_t scratch_groups;  /* blocks of the call's arguments that scratch holds; 0: one */
    uint32_t largest_receive; /* sources that one primitive receives, for LL staging */
    /* [chunks[RONDO_SCRATCH]]: the chunk of the input and output block_chunks that each is as long as (program/conditions.h);
     * owned. NULL: scratch is laid out as an input. */
    uint32_t *scratch_classes;
    uint32_t block_chunks; /* of a compiled program: chunks of a block of the collective's arguments */
    int even;              /* it relies on all chunks being equally long */
};

/* Frees it when nobody shares it any more. */
void rondo_plan_free(struct rondo_plan *plan);
static inline struct rondo_plan *rondo_plan_share(struct rondo_plan *plan)
{
    __atomic_add_fetch(&plan->shared, 1, __ATOMIC_RELAXED); /* by one who has a share */
    return plan;
}

/* ---- building ---- */

struct rondo_plan_builder;

/* NULL without memory; then the other calls do nothing and finish fails, so that only finish need be checked. */
struct rondo_plan_builder *rondo_plan_builder_create(void);
/* Blocks are numbered from 0. Their ends and instructions are added to the block begun last. */
void rondo_plan_builder_block(struct rondo_plan_builder *builder);
/* Returns the end's index within the block. */
uint8_t rondo_plan_builder_end(struct rondo_plan_builder *builder, int peer, int channel, enum rondo_direction direction,
                               enum rondo_protocol protocol);
void rondo_plan_builder_add(struct rondo_plan_builder *builder, const struct rondo_instruction *instruction);
/* The instruction added last waits for step of block (within this rank). */
void rondo_plan_builder_depend(struct rondo_plan_builder *builder, int block, int step);
/* Lays out the image and frees the builder. chunks: of input, output and scratch. */
rondo_result_t rondo_plan_builder_finish(struct rondo_plan_builder *builder, const uint32_t chunks[RONDO_BUFFERS],
                                         struct rondo_plan **plan);

#endif
