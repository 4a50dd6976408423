/*
 * An algorithm: what makes the programs of one or several collectives, and what the choice among algorithms must know of it.
 * The built-in ones are rows of the table in lib/algorithms/algorithms.c; a user's programs are registered with a communicator.
 */
#ifndef RONDO_LIB_PROGRAM_ALGORITHM_H
#define RONDO_LIB_PROGRAM_ALGORITHM_H

#include "lib/call/collective.h"
#include "lib/program/plan.h"
#include "rondo_program.h"

struct rondo_registered;

/* Whether an algorithm runs over multicast connectors, between host devices of one host, and what a slot holds: what all others
 * need, or a part for each rank. */
enum rondo_multicast_use { RONDO_MULTICAST_NOT, RONDO_MULTICAST_WHOLE, RONDO_MULTICAST_PARTS };

enum { RONDO_COMPOSED_RANKS = 64 }; /* see build_alone */

/* Builds the plan of shape->rank instruction by instruction. The caller frees *plan. */
typedef rondo_result_t rondo_plan_build_t(const struct rondo_shape *shape, struct rondo_plan **plan);

/* Exactly one of build, compose and registered is set. Sets of collectives are bits 1 << enum rondo_kind. */
struct rondo_algorithm {
    const char *name;
    uint32_t kinds; /* collectives that it implements */
    rondo_plan_build_t *build;
    /* Composes the program of all ranks in the language of rondo_program.h, for the compiler. The caller destroys *builder.
     * RONDO_ERR_UNSUPPORTED: not for this shape. */
    rondo_result_t (*compose)(const struct rondo_shape *shape, rondo_program_t *program);
    /* Builds what the compiler makes of the composed program, for shape->rank alone: instead of it where there are more than
     * RONDO_COMPOSED_RANKS ranks, because a program of all ranks takes memory in the square of their number. NULL: it is
     * composed, however many ranks there are. */
    rondo_plan_build_t *build_alone;
    /* Changes a plan of a composed program after compiling; NULL: nothing to change. */
    void (*adapt)(const struct rondo_shape *shape, struct rondo_plan *plan);
    const struct rondo_registered *registered; /* a user's */

    /* Sets of collectives, subsets of kinds: */
    uint32_t alone;                     /* for which build_alone is */
    uint32_t separate;                  /* that it does not run in place */
    uint32_t one_block;                 /* compiled to one block a channel, whose order makes them right in place */
    uint32_t powers;                    /* that need a power of two of ranks */
    uint32_t compresses;                /* of which all ranks end with the same bits though slots hold streams */
    uint32_t direct_writes;             /* whose blocks all send, or receive, one chunk by one connector
                                           (device/engine/direct_write.h) */
    uint32_t direct_writes_between_two; /* of which that holds where there are two ranks */
    uint32_t two_blocks_inside;         /* for which a rank that is neither first nor last has two blocks a channel */
    uint32_t windows;                   /* whose other ranks are shared out among rondo_peer_windows blocks a channel */

    uint32_t
        ordered; /* that combine in the order of ranks, as operators that are not commutative need it (rondo_verify_order) */

    /* Of all collectives: */
    int low_latency; /* it may run over LL connectors; for small sizes */
    int direct;      /* it reads and writes the peers' buffers */
    enum rondo_multicast_use multicast;
    int even;          /* each rank has a chunk of an all-reduce, and all must be equally long */
    int several_hosts; /* it needs several hosts with equally many ranks each, and more than one */
    int reduces_all;   /* one primitive reduces all ranks' data: at most RONDO_REDUCE_SOURCES_MAX ranks */
    int blocks_a_peer; /* it has blocks for each peer, in each channel: one for each direction, if it has no keepers */
    int keepers; /* so many blocks more, of all channels together, copy what stays in the rank; 0: blocks of the channels */
    /* Composed, and each of its instructions takes one chunk: slots may be as small as that, and on networks an instruction has
     * several of them on its way. Plans built by hand are all like that. */
    int single_chunks;
};

/* Returns among how many blocks a rank shares out all other ranks, of `size`, because a block has at most
 * RONDO_PROGRAM_ENDS_MAX ends and an instruction fewer: as a collective of this kind sends to, or receives from, each of them,
 * or both. */
int rondo_peer_windows(enum rondo_kind kind, int size);
/* Returns the number of program blocks that the algorithm takes for each channel on `size` ranks, as far as the choice of
 * channels goes. */
int rondo_algorithm_blocks(const struct rondo_algorithm *algorithm, enum rondo_kind kind, int size);
/* Returns for how many channels of it so many blocks are enough, at least 1. */
int rondo_algorithm_channels(const struct rondo_algorithm *algorithm, enum rondo_kind kind, int size, int blocks);
/* Returns what builds the plan of shape->rank by itself; NULL: it is compiled. */
static inline rondo_plan_build_t *rondo_algorithm_builder(const struct rondo_algorithm *algorithm,
                                                          const struct rondo_shape *shape)
{
    const int alone = (algorithm->alone >> shape->kind & 1) && shape->size > RONDO_COMPOSED_RANKS && !shape->across &&
                      shape->protocol != RONDO_PROTOCOL_COMPRESSED;
    return alone ? algorithm->build_alone : algorithm->build;
}
/* Whether each instruction takes one chunk. */
static inline int rondo_algorithm_single(const struct rondo_algorithm *algorithm)
{
    return algorithm->build != NULL || algorithm->single_chunks;
}

#endif
