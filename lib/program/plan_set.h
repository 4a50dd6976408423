/* A program as all ranks will execute it: one plan a rank. What the compiler makes, the checker judges, and XML says. */
#ifndef RONDO_LIB_PROGRAM_PLAN_SET_H
#define RONDO_LIB_PROGRAM_PLAN_SET_H

#include "lib/program/plan.h"
#include "lib/call/conditions.h"

struct rondo_program_builder;

struct rondo_plan_set {
    struct rondo_conditions conditions; /* of the plans' own chunks; the lists in it are the program's */
    struct rondo_plan **plans;          /* conditions.ranks of them */
    int even;                           /* it relies on all chunks being equally long */
};

/* What the plans are made for. */
struct rondo_compile_options {
    uint32_t blocks; /* of a rank, at most, if the ends fit into so many */
    uint32_t slots;  /* of a connector */
    uint32_t reduce; /* sources of one primitive, at most; 0: RONDO_REDUCE_SOURCES_MAX */
    enum rondo_protocol protocol;
    /* What a rank sends before it folds the same chunk with what the others send is one instruction with that: the engine has
     * RONDO_EXCHANGE where teams poll LL or LL128 data. Ranks need not agree. */
    int exchanges;
    /* A block for each direction between two ranks, whatever is free: it waits for nothing else. Only what is folded into one
     * chunk comes to one block, and what moves within the rank has one, too. */
    int apart;
    int msccl; /* only instructions that MSCCL has */
    int plain; /* nothing is fused and one order is followed (for comparison) */
};
#define RONDO_COMPILE_SLOTS      4
#define RONDO_COMPILE_BLOCKS     64
#define RONDO_COMPILE_BLOCKS_MAX 512

/* only: the rank whose plan is wanted, or -1: all. */
rondo_result_t rondo_compile(const struct rondo_program_builder *builder, const struct rondo_compile_options *options, int only,
                             struct rondo_plan_set **set);
void rondo_plan_set_free(struct rondo_plan_set *set);
/*
 * Replaces each plan of the set by `instances` instances of it side by side (lib/program/instances.c). The plans must have been
 * compiled as one instance, with a largest count of 1. RONDO_ERR_MEMORY: the set is then only good to be freed.
 */
rondo_result_t rondo_plans_multiply(struct rondo_plan_set *set, uint32_t instances);

struct rondo_verify_limits {
    uint32_t slots, blocks, concurrent;
};
#define RONDO_VERIFY_LIMITS_DEFAULT                                                                                            \
    {                                                                                                                          \
        RONDO_COMPILE_SLOTS, RONDO_COMPILE_BLOCKS, 0                                                                           \
    }
/* Proves that the plans do what the collective asks for, with two buffers or (shared) with one. */
rondo_result_t rondo_verify_plans(const struct rondo_plan_set *set, const char *name, const struct rondo_verify_limits *limits,
                                  int shared);

#endif
