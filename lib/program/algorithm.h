/*
 * An algorithm: what makes the programs of one or several collectives, and what the choice among algorithms must know of it.
 * The built-in ones are in lib/algorithms/, a user's are registered with a communicator.
 */
#ifndef RONDO_LIB_PROGRAM_ALGORITHM_H
#define RONDO_LIB_PROGRAM_ALGORITHM_H

#include "lib/call/collective.h"
#include "lib/program/plan.h"

struct rondo_program_builder;
struct rondo_registered;

struct rondo_algorithm {
    const char *name;
    uint32_t kinds; /* 1 << enum rondo_kind, of those it implements */
    rondo_result_t (*build)(const struct rondo_shape *shape, struct rondo_plan **plan); /* of one rank; or NULL, and: */
    rondo_result_t (*compose)(const struct rondo_shape *shape, struct rondo_program_builder **compose);
    void (*adapt)(const struct rondo_shape *shape, struct rondo_plan *plan); /* what is traced, after compiling; may be NULL */
    const struct rondo_registered *registered;                               /* or a user's */
    uint32_t separate;      /* of the kinds, those that it does not run in place */
    uint32_t one_block;     /* of the kinds, those compiled to one block a channel, whose order makes them right in place */
    uint32_t powers;        /* of the kinds, those that need a power of two of ranks */
    uint32_t compresses;    /* of the kinds, those of which all ranks end with the same bits though slots hold streams */
    uint32_t direct_writes; /* of the kinds, those whose blocks all send, or receive, one piece by one connector
                               (device/engine/direct_write.h); */
    uint32_t direct_writes_between_two; /* and those of which that is so where there are two ranks */
    int low_latency;                    /* it may run over LL connectors; for small sizes */
    int direct;                         /* it reads and writes the peers' buffers */
    int several_hosts;                  /* needs more than one, with equally many ranks, and more than one, each */
    int reduces_all;                    /* one primitive folds all ranks' data: at most RONDO_REDUCE_SOURCES_MAX of them */
    int blocks_a_peer;                  /* it has a block for each direction between two ranks, in each channel */
    /* Of the kinds, those for which a rank that is neither first nor last has two blocks a channel. */
    uint32_t two_blocks_inside;
    /* Traced, and each of its instructions takes one chunk: slots may be as small as that, and on networks an instruction has
     * several of them on its way. Those that are built are all like that. */
    int single_chunks;
};

/* Program blocks that it takes for each channel, as far as the choice of channels goes. */
int rondo_algorithm_blocks(const struct rondo_algorithm *algorithm, enum rondo_kind kind, int size);
static inline int rondo_algorithm_single(const struct rondo_algorithm *algorithm)
{
    return algorithm->build != NULL || algorithm->single_chunks;
}

#endif
