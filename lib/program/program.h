/* From algorithms to plans, and what a communicator keeps of the programs registered with it. */
#ifndef RONDO_LIB_PROGRAM_PROGRAM_H
#define RONDO_LIB_PROGRAM_PROGRAM_H

#include "lib/program/algorithm.h"
#include "lib/program/plan_set.h"

struct rondo_comm;
struct rondo_call;

/* A program registered with a communicator. Never changes, and lives as long as it does. */
struct rondo_registered {
    struct rondo_registered *next;
    struct rondo_algorithm algorithm;
    struct rondo_program_builder *builder; /* owned */
    size_t min_bytes, max_bytes;
    uint32_t block_chunks, root;
    int even, in_place; /* all chunks must be equally long; it also runs in place */
};

/* As rondo_compile; of a program that was read, always the plans of all ranks. */
rondo_result_t rondo_program_compile(const struct rondo_program_builder *builder, const struct rondo_compile_options *options,
                                     int only, struct rondo_plan_set **set);
/* The checker's verdict on them, and whether they do in place too. */
rondo_result_t rondo_program_prove(struct rondo_program_builder *builder, const struct rondo_plan_set *set,
                                   const struct rondo_verify_limits *limits, int *in_place);
/* The plan of shape->rank of an algorithm that is a program. check: prove it first. */
rondo_result_t rondo_program_plan(const struct rondo_algorithm *algorithm, const struct rondo_shape *shape, uint32_t blocks,
                                  uint32_t slots, int check, struct rondo_plan **plan);

#endif
