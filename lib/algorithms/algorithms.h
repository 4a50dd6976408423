/*
 * The built-in algorithms: one a file, one row of the table in algorithms.c each. lib/algorithms/README.md has the steps to add
 * one. Relies on lib/program: an algorithm either composes a program in the language (rondo_compose_NAME), or builds one rank's
 * plan by hand (rondo_build_NAME, files plan_*.c). All functions may be called from any thread.
 */
#ifndef RONDO_LIB_ALGORITHMS_ALGORITHMS_H
#define RONDO_LIB_ALGORITHMS_ALGORITHMS_H

#include "lib/program/algorithm.h"

/* Returns the row of that name which implements the collective, or NULL. */
const struct rondo_algorithm *rondo_algorithm_find(const char *name, enum rondo_kind kind);
/* Returns the table and stores its number of rows. */
const struct rondo_algorithm *rondo_algorithm_table(int *count);

/*
 * Each stores the plan of shape->rank, which the caller frees with rondo_plan_free. The shape is one for which the table has
 * the algorithm: its kind is among the row's, its size fits the row's conditions. RONDO_ERR_MEMORY; *plan is then unset.
 */
rondo_result_t rondo_build_local(const struct rondo_shape *shape, struct rondo_plan **plan);
rondo_result_t rondo_build_multicast(const struct rondo_shape *shape, struct rondo_plan **plan);
rondo_result_t rondo_build_multicast_two_shot(const struct rondo_shape *shape, struct rondo_plan **plan);
rondo_result_t rondo_build_doubling(const struct rondo_shape *shape, struct rondo_plan **plan);
rondo_result_t rondo_build_direct(const struct rondo_shape *shape, struct rondo_plan **plan);
rondo_result_t rondo_build_push(const struct rondo_shape *shape, struct rondo_plan **plan);
rondo_result_t rondo_build_push_chain(const struct rondo_shape *shape, struct rondo_plan **plan);
#define RONDO_EXCHANGE_KEEPERS 4 /* blocks, of all channels, that copy what stays: enough to be done before the links are */
rondo_result_t rondo_build_exchange(const struct rondo_shape *shape, struct rondo_plan **plan);
rondo_result_t rondo_build_neighbors(const struct rondo_shape *shape, struct rondo_plan **plan);
rondo_result_t rondo_build_linear(const struct rondo_shape *shape, struct rondo_plan **plan);
rondo_result_t rondo_build_binomial(const struct rondo_shape *shape, struct rondo_plan **plan);
rondo_result_t rondo_build_bruck(const struct rondo_shape *shape, struct rondo_plan **plan);
/* Needs shape->topology with as many ranks on every host. */
rondo_result_t rondo_build_hierarchical(const struct rondo_shape *shape, struct rondo_plan **plan);
rondo_result_t rondo_build_chain(const struct rondo_shape *shape, struct rondo_plan **plan);
/* All but reduce-scatter with counts; not compressed. */
rondo_result_t rondo_build_ring(const struct rondo_shape *shape, struct rondo_plan **plan);

/*
 * Each stores the program of all ranks for the shape's kind, size, root, channels and ranks of a host; the caller destroys it
 * with rondo_program_destroy. A wrong call of the language is noted in the program (rondo_program_builder_verify tells).
 * RONDO_ERR_UNSUPPORTED: not for this number of ranks; RONDO_ERR_MEMORY; *program is then NULL or unset.
 */
rondo_result_t rondo_compose_ring(const struct rondo_shape *shape, rondo_program_t *program);
rondo_result_t rondo_compose_tree(const struct rondo_shape *shape, rondo_program_t *program);
rondo_result_t rondo_compose_doubling(const struct rondo_shape *shape, rondo_program_t *program);
rondo_result_t rondo_compose_halving(const struct rondo_shape *shape, rondo_program_t *program);
rondo_result_t rondo_compose_all_pairs(const struct rondo_shape *shape, rondo_program_t *program);
rondo_result_t rondo_compose_pairs(const struct rondo_shape *shape, rondo_program_t *program);
rondo_result_t rondo_compose_two_shot(const struct rondo_shape *shape, rondo_program_t *program);
rondo_result_t rondo_compose_hierarchical(const struct rondo_shape *shape, rondo_program_t *program);
rondo_result_t rondo_compose_two_step(const struct rondo_shape *shape, rondo_program_t *program);
rondo_result_t rondo_compose_spread(const struct rondo_shape *shape, rondo_program_t *program);
rondo_result_t rondo_compose_star(const struct rondo_shape *shape, rondo_program_t *program);

/* Change a ring's compiled plan if shape->protocol compresses: the first encodes what is complete once, the second at every
 * hop. */
void rondo_adapt_ring(const struct rondo_shape *shape, struct rondo_plan *plan);
void rondo_adapt_ring_hop(const struct rondo_shape *shape, struct rondo_plan *plan);

#endif
