/* From algorithms to plans, and what a communicator holds of the programs registered with it. Relies on the compiler and on
 * verification (lib/program/plan_set.h). */
#ifndef RONDO_LIB_PROGRAM_PROGRAM_H
#define RONDO_LIB_PROGRAM_PROGRAM_H

#include "lib/program/algorithm.h"
#include "lib/program/plan_set.h"

/* A program registered with a communicator. Never changes, and lives as long as the communicator. */
struct rondo_registered {
    struct rondo_registered *next;
    struct rondo_algorithm algorithm;
    struct rondo_program_builder *builder; /* one reference; owned */
    size_t min_bytes, max_bytes;           /* of a call that may use it */
    uint32_t block_chunks, root;
    int even;             /* all chunks must be equally long */
    int in_place;         /* it also runs in place */
    const char *protocol; /* of struct rondo_directives, as the two that follow */
    int op, in_place_only;
};

/* As rondo_compile; of a program that was read from XML, the plans of all ranks whatever `only` says. */
rondo_result_t rondo_program_compile(const struct rondo_program_builder *builder, const struct rondo_compile_options *options,
                                     int only, struct rondo_plan_set **set);
/*
 * Verifies the plans of all ranks that were compiled from the program: with two buffers, and with one. *in_place tells whether
 * they also hold with one; a program that is written for one buffer must. Errors as rondo_verify_plans.
 */
rondo_result_t rondo_program_prove(struct rondo_program_builder *builder, const struct rondo_plan_set *set,
                                   const struct rondo_verify_limits *limits, int *in_place);
/*
 * Makes the plan of shape->rank of an algorithm that composes or is registered, for so many blocks of a rank and slots of a
 * connector. check: compile all ranks' plans and verify them first. The caller frees *plan.
 */
rondo_result_t rondo_program_plan(const struct rondo_algorithm *algorithm, const struct rondo_shape *shape, uint32_t blocks,
                                  uint32_t slots, int check, struct rondo_plan **plan);

#endif
