/*
 * A program as MSCCL's XML has it: per rank, thread blocks with one peer to send to and one to receive from, and their steps.
 * lib/program/msccl_read.c makes it from a file; lib/program/msccl_ir_run.c executes it, which tells what every chunk holds;
 * lib/program/msccl_ir_plans.c makes plans of it.
 */
#ifndef RONDO_LIB_PROGRAM_MSCCL_IR_H
#define RONDO_LIB_PROGRAM_MSCCL_IR_H

#include "lib/program/plan_set.h"

struct rondo_msccl_ir_step {
    uint8_t actions; /* RONDO_RECEIVE, ...; 0: it only waits */
    uint8_t source_buffer, destination_buffer;
    uint32_t source, destination, count;
    int32_t wait_block, wait_step; /* of the rank: it runs after that step; -1: none */
    int8_t notifies;               /* hasdep: another step may wait for it; -1: the file does not say */
    int line;                      /* of the file */
};

struct rondo_msccl_ir_block {
    int32_t send, receive, channel; /* peers; -1: none */
    uint32_t step_first, steps;
    int line;
};

struct rondo_msccl_ir_rank {
    uint32_t chunks[RONDO_BUFFERS];
    uint32_t block_first, blocks;
    uint8_t copied; /* the input is copied at the start, because some step takes chunks of both kinds at once */
};

struct rondo_msccl_ir {
    struct rondo_conditions conditions;
    int in_place; /* input and output are one, as MSCCL lays them out */
    /* A reduction of what arrives takes the destination for its own part, whatever the source is: files exist in both readings.
     */
    int source_is_destination;
    struct rondo_msccl_ir_rank *ranks;   /* [conditions.ranks] */
    struct rondo_msccl_ir_block *blocks; /* those of a rank side by side, as are the steps of a block */
    size_t block_count, block_room;
    struct rondo_msccl_ir_step *steps;
    size_t step_count, step_room;
};

/* Frees it. NULL: does nothing. */
void rondo_msccl_ir_free(struct rondo_msccl_ir *ir);
/* Compiles and verifies the plans of all ranks; ir stays as it is. name stands in messages. The caller frees *set.
 * RONDO_ERR_ARGUMENT with rank, block and step if the steps cannot all be executed or verification refuses the plans. */
rondo_result_t rondo_msccl_ir_compile(const struct rondo_msccl_ir *ir, const char *name,
                                      const struct rondo_compile_options *options, struct rondo_plan_set **set);

#endif
