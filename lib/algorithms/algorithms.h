/*
 * The algorithm library: one entry an algorithm, one file a family. To add an algorithm, write its builder, and add it to the
 * table in lib/algorithms/algorithms.c; lib/select/select.c decides when it is used.
 */
#ifndef RONDO_LIB_ALGORITHMS_ALGORITHMS_H
#define RONDO_LIB_ALGORITHMS_ALGORITHMS_H

#include "lib/program/plan.h"
#include "lib/context/topology.h"

enum rondo_kind {
    RONDO_KIND_ALLREDUCE,
    RONDO_KIND_REDUCE,
    RONDO_KIND_BCAST,
    RONDO_KIND_REDUCE_SCATTER_BLOCK,
    RONDO_KIND_ALLGATHER,
    RONDO_KIND_ALLGATHERV,
    RONDO_KIND_ALLTOALL,
    RONDO_KIND_ALLTOALLV,
    RONDO_KIND_GATHER,
    RONDO_KIND_SCATTER,
    RONDO_KIND_BARRIER,
    RONDO_KIND_SCAN,
    RONDO_KIND_EXSCAN,
    RONDO_KIND_ALLTONEXT,
    RONDO_KIND_SEND_TO,
    RONDO_KIND_RECEIVE_FROM,
    RONDO_KIND_CUSTOM, /* a program's own pre- and postcondition */
    RONDO_KINDS
};
const char *rondo_kind_name(enum rondo_kind kind);

/* Everything a program may depend on. The same on all ranks but for rank (and peer). */
struct rondo_shape {
    enum rondo_kind kind;
    int rank, size;
    int root; /* or the peer of a send or receive */
    int channels;
    enum rondo_protocol protocol;
    int group; /* ranks of each host, which lie side by side and are as many on all; 0: they do not, or there is but one host */
    int exchanges; /* RONDO_EXCHANGE can be used: LL on a device whose teams poll; ranks need not agree */
    const struct rondo_topology *topology; /* the communicator's */
};

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

const struct rondo_algorithm *rondo_algorithm_find(const char *name, enum rondo_kind kind);
const struct rondo_algorithm *rondo_algorithm_table(int *count);

/* The chunks of the collective's buffers when every block of its arguments (a rank's part; all of an all-reduce, cut into
 * size) is cut into one piece a channel. */
void rondo_shape_chunks(const struct rondo_shape *shape, uint32_t chunks[RONDO_BUFFERS]);

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
