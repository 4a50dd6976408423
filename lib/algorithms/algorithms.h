/*
 * The built-in algorithms: one entry an algorithm, one file a family. To add one, write its function in a file of its own,
 * declare it here, and add a row to the table in algorithms.c; lib/select/select.c decides when it is used.
 */
#ifndef RONDO_LIB_ALGORITHMS_ALGORITHMS_H
#define RONDO_LIB_ALGORITHMS_ALGORITHMS_H

#include "lib/program/algorithm.h"

const struct rondo_algorithm *rondo_algorithm_find(const char *name, enum rondo_kind kind);
const struct rondo_algorithm *rondo_algorithm_table(int *count);

rondo_result_t rondo_build_local(const struct rondo_shape *shape, struct rondo_plan **plan);
rondo_result_t rondo_build_doubling(const struct rondo_shape *shape, struct rondo_plan **plan);
rondo_result_t rondo_build_direct(const struct rondo_shape *shape, struct rondo_plan **plan);
rondo_result_t rondo_build_linear(const struct rondo_shape *shape, struct rondo_plan **plan);
rondo_result_t rondo_build_hierarchical(const struct rondo_shape *shape, struct rondo_plan **plan);
rondo_result_t rondo_build_chain(const struct rondo_shape *shape, struct rondo_plan **plan);

/* The library in the language, lib/programs/traced/. */
rondo_result_t rondo_compose_ring(const struct rondo_shape *shape, struct rondo_program_builder **compose);
void rondo_adapt_ring(const struct rondo_shape *shape, struct rondo_plan *plan);
void rondo_adapt_ring_hop(const struct rondo_shape *shape, struct rondo_plan *plan);
rondo_result_t rondo_compose_tree(const struct rondo_shape *shape, struct rondo_program_builder **compose);
rondo_result_t rondo_compose_doubling(const struct rondo_shape *shape, struct rondo_program_builder **compose);
rondo_result_t rondo_compose_halving(const struct rondo_shape *shape, struct rondo_program_builder **compose);
rondo_result_t rondo_compose_all_pairs(const struct rondo_shape *shape, struct rondo_program_builder **compose);
rondo_result_t rondo_compose_pairs(const struct rondo_shape *shape, struct rondo_program_builder **compose);
rondo_result_t rondo_compose_two_shot(const struct rondo_shape *shape, struct rondo_program_builder **compose);
rondo_result_t rondo_compose_hierarchical(const struct rondo_shape *shape, struct rondo_program_builder **compose);
rondo_result_t rondo_compose_two_step(const struct rondo_shape *shape, struct rondo_program_builder **compose);
rondo_result_t rondo_compose_spread(const struct rondo_shape *shape, struct rondo_program_builder **compose);
rondo_result_t rondo_compose_star(const struct rondo_shape *shape, struct rondo_program_builder **compose);

#endif
