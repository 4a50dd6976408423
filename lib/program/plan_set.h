/*
 * A program as all ranks execute it: one plan a rank. The compiler makes it, verification judges it, and MSCCL's XML is written
 * from it. A set belongs to one thread.
 */
#ifndef RONDO_LIB_PROGRAM_PLAN_SET_H
#define RONDO_LIB_PROGRAM_PLAN_SET_H

#include "lib/program/plan.h"
#include "lib/call/conditions.h"

struct rondo_program_builder;

struct rondo_plan_set {
    struct rondo_conditions
        conditions;            /* of the plans' own chunks; the lists in it belong to the builder, which must outlive the set */
    struct rondo_plan **plans; /* [conditions.ranks]; NULL: not asked for */
    int even;                  /* all chunks must be equally long */
};

/* What the plans are made for. */
struct rondo_compile_options {
    uint32_t blocks; /* of a rank, at most, if the ends fit into so many; 1 to RONDO_COMPILE_BLOCKS_MAX */
    uint32_t slots;  /* of a connector, at least 1 */
    uint32_t reduce; /* peers of one primitive, at most; 0: one less than RONDO_REDUCE_SOURCES_MAX */
    enum rondo_protocol protocol;
    /* A chunk that a rank sends and then reduces with what the others send is one instruction with RONDO_EXCHANGE, which the
     * engine has where worker groups poll LL or LL128 data. Ranks need not agree. */
    int exchanges;
    /* Each direction between two ranks has a block, however many are asked for, so that it waits for nothing else; only what is
     * reduced into one chunk is joined in one block. What moves within the rank has a block, too. */
    int apart;
    int across; /* nothing that arrives goes straight to the output, which may be the memory of any input (struct rondo_shape)
                 */
    int msccl;  /* only instructions that MSCCL has */
    int plain;  /* nothing is fused and the order is that of the calls (for comparison) */
};
#define RONDO_COMPILE_SLOTS      4
#define RONDO_COMPILE_BLOCKS     64
#define RONDO_COMPILE_BLOCKS_MAX 512

/*
 * Compiles a program that was written by calls (builder->ir NULL) and that rondo_program_builder_verify has accepted. only: the
 * rank whose plan is wanted; -1: all. The caller frees *set with rondo_plan_set_free. RONDO_ERR_UNSUPPORTED if the program
 * needs more connections or instructions than blocks can hold; RONDO_ERR_ARGUMENT if it has too many chunks; RONDO_ERR_MEMORY.
 */
rondo_result_t rondo_compile(const struct rondo_program_builder *builder, const struct rondo_compile_options *options, int only,
                             struct rondo_plan_set **set);
/* Frees the set and gives up its plans. NULL: does nothing. */
void rondo_plan_set_free(struct rondo_plan_set *set);

/*
 * Replaces each plan of the set by `instances` instances of it side by side (lib/program/instances.c). The plans must have been
 * compiled as one instance, with a largest count of 1. RONDO_ERR_MEMORY: the set is then only good to be freed.
 */
rondo_result_t rondo_plans_multiply(struct rondo_plan_set *set, uint32_t instances);

/* What the plans are verified for. */
struct rondo_verify_limits {
    uint32_t slots;      /* of a connector, 1 to 1024 */
    uint32_t blocks;     /* of a rank, at most */
    uint32_t concurrent; /* blocks of a rank that run at a time, without preemption; 0: all take turns */
};
#define RONDO_VERIFY_LIMITS_DEFAULT                                                                                            \
    {                                                                                                                          \
        RONDO_COMPILE_SLOTS, RONDO_COMPILE_BLOCKS, 0                                                                           \
    }
/*
 * Proves that the plans, which may come from anywhere, do what the collective asks for: well-formed instructions, no
 * uninitialized chunk read, no race, no deadlock with these limits, every output chunk as required. shared: input and output
 * are one buffer. name stands in messages. RONDO_ERR_ARGUMENT with rank, block and step of the first thing found wrong;
 * RONDO_ERR_MEMORY.
 */
rondo_result_t rondo_verify_plans(const struct rondo_plan_set *set, const char *name, const struct rondo_verify_limits *limits,
                                  int shared);
/* The same; and sets *ordered to whether the plans keep the order of ranks, as operators that are not commutative need it: each
 * combination is of a run of ranks and, as the right operand, the run that follows. */
rondo_result_t rondo_verify_order(const struct rondo_plan_set *set, const char *name, const struct rondo_verify_limits *limits,
                                  int shared, int *ordered);

#endif
