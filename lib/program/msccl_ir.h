/*
 * A program as MSCCL's XML has it: per rank, thread blocks with one peer to send to and one to receive from, and their steps.
 * msccl.c makes it from a file; raw_play.c plays it through, which tells what every chunk holds, raw_plans.c makes plans of it.
 */
#ifndef RONDO_LIB_PROGRAM_MSCCL_IR_H
#define RONDO_LIB_PROGRAM_MSCCL_IR_H

#include "lib/program/plan_set.h"

struct rondo_raw_step {
    uint8_t actions; /* 0: it only waits */
    uint8_t source_buffer, destination_buffer;
    uint32_t source, destination, count;
    int32_t wait_block, wait_step; /* -1: none */
    int line;
};

struct rondo_raw_block {
    int32_t send, receive, channel; /* peers; -1: none */
    uint32_t step_first, steps;
    int line;
};

struct rondo_raw_rank {
    uint32_t chunks[RONDO_BUFFERS];
    uint32_t block_first, blocks;
    uint8_t copied; /* the input is copied at the start, because some step takes chunks of both kinds at once */
};

struct rondo_raw {
    struct rondo_conditions conditions;
    int in_place;              /* input and output are one, as MSCCL lays them out */
    int source_is_destination; /* reductions of what arrives take the destination for their own part, whatever the source says
                                */
    struct rondo_raw_rank *ranks;
    struct rondo_raw_block *blocks;
    size_t block_count, block_room;
    struct rondo_raw_step *steps;
    size_t step_count, step_room;
};

void rondo_raw_free(struct rondo_raw *raw);
/* The plans of all ranks. RONDO_ERR_ARGUMENT with rank, block and step if it cannot be played to its end. */
rondo_result_t rondo_raw_compile(const struct rondo_raw *raw, const char *name, const struct rondo_compile_options *options,
                                 struct rondo_plan_set **set);

#endif
