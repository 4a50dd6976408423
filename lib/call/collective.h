/*
 * The collectives: one constant table with a row a collective, from which the argument checks, the signature that ranks
 * compare, the conditions of programs, the sizes of calls, the tools and the drop-in for NCCL derive what they need; and the
 * shape of a collective, which is all that a built-in program may depend on. Relies on the public header alone. The part of a
 * row that users see is rondo_collective_t (rondo.h).
 */
#ifndef RONDO_LIB_CALL_COLLECTIVE_H
#define RONDO_LIB_CALL_COLLECTIVE_H

#include "rondo.h"
#include "device/abi/structures.h"

/* The rows. rondo_collective_describe's index. */
enum rondo_kind {
    RONDO_KIND_ALLREDUCE,
    RONDO_KIND_REDUCE,
    RONDO_KIND_BCAST,
    RONDO_KIND_REDUCE_SCATTER_BLOCK,
    RONDO_KIND_REDUCE_SCATTER,
    RONDO_KIND_ALLGATHER,
    RONDO_KIND_ALLGATHERV,
    RONDO_KIND_ALLTOALL,
    RONDO_KIND_ALLTOALLV,
    RONDO_KIND_ALLTOALLW,
    RONDO_KIND_GATHER,
    RONDO_KIND_GATHERV,
    RONDO_KIND_SCATTER,
    RONDO_KIND_SCATTERV,
    RONDO_KIND_BARRIER,
    RONDO_KIND_SCAN,
    RONDO_KIND_EXSCAN,
    RONDO_KIND_ALLTONEXT,
    RONDO_KIND_NEIGHBOR_ALLGATHER,
    RONDO_KIND_NEIGHBOR_ALLGATHERV,
    RONDO_KIND_NEIGHBOR_ALLTOALL,
    RONDO_KIND_NEIGHBOR_ALLTOALLV,
    RONDO_KIND_NEIGHBOR_ALLTOALLW,
    RONDO_KIND_SEND_TO,
    RONDO_KIND_RECEIVE_FROM,
    RONDO_KIND_CUSTOM, /* a program's own pre- and postcondition */
    RONDO_KINDS
};

/* What all ranks of a call must give alike, beside the datatype, the operator and the root (where the collective has them). */
enum rondo_agreement {
    RONDO_AGREE_COUNT,
    RONDO_AGREE_COUNTS,  /* the receive counts of all ranks */
    RONDO_AGREE_TYPE,    /* no count: each two ranks know what they exchange, or root and the other rank */
    RONDO_AGREE_KIND,    /* not even a datatype: each two ranks have their own */
    RONDO_AGREE_NOTHING, /* there are no arguments */
};

struct rondo_collective {
    rondo_collective_t rule; /* what users see */
    enum rondo_agreement agreement;
    int split;              /* built-in programs cut the one block into as many parts as there are ranks */
    const char *msccl_name; /* in MSCCL's files; NULL: they have no word for it */
};

/* The table. Its readers are inline, because every call reads its row several times. */
extern const struct rondo_collective rondo_collectives[RONDO_KINDS];

/* The row of a kind below RONDO_KINDS. */
static inline const struct rondo_collective *rondo_collective_of(enum rondo_kind kind)
{
    return &rondo_collectives[kind];
}

/* Its name in the API; "unknown" if there is no such kind. */
const char *rondo_kind_name(enum rondo_kind kind);
/* By its name in the API; RONDO_KINDS if there is none. */
enum rondo_kind rondo_kind_find(const char *name);
/* By its name in MSCCL's files, or in the API; RONDO_KINDS if such files have no word for it. */
enum rondo_kind rondo_kind_find_msccl(const char *name);

/* Whether an operator is applied. */
static inline int rondo_kind_reduces(enum rondo_kind kind)
{
    return rondo_collective_of(kind)->rule.reduces;
}
/* Whether one rank has another part than all others, which rondo_call.root names. */
static inline int rondo_kind_is_rooted(enum rondo_kind kind)
{
    return rondo_collective_of(kind)->rule.rooted;
}
/* Whether it is a message between two ranks, of which rondo_call.root is the other one. */
static inline int rondo_kind_is_p2p(enum rondo_kind kind)
{
    return rondo_collective_of(kind)->rule.point_to_point;
}
/* Whether a call has arrays of counts. */
static inline int rondo_kind_has_counts(enum rondo_kind kind)
{
    const rondo_collective_t *rule = &rondo_collective_of(kind)->rule;
    return rule->send_extent == RONDO_EXTENT_COUNTS || rule->recv_extent == RONDO_EXTENT_COUNTS;
}
/* Whether blocks are those of neighbours in the communicator's graph. */
static inline int rondo_kind_is_neighborhood(enum rondo_kind kind)
{
    return rondo_collective_of(kind)->rule.neighborhood;
}
/* Whether a rank knows but the counts of what it sends and receives itself. Then nothing that other ranks must do alike may
 * depend on them. Ranks that are not joined by any way of a graph know nothing of each other. */
static inline int rondo_kind_has_own_counts(enum rondo_kind kind)
{
    return (rondo_kind_has_counts(kind) || rondo_kind_is_neighborhood(kind)) &&
           rondo_collective_of(kind)->agreement != RONDO_AGREE_COUNTS;
}
/* Whether in place the output begins where the input does, and is as long as another block than the one there. Then no chunk of
 * one is a chunk of the other, and a program stores a tile of the output when it has read that tile of all of its input. */
static inline int rondo_kind_lies_across(enum rondo_kind kind)
{
    const rondo_collective_t *rule = &rondo_collective_of(kind)->rule;
    return rule->placement == RONDO_PLACEMENT_SEND && !rule->own_block && rule->send_extent == RONDO_EXTENT_COUNTS &&
           rule->recv_extent == RONDO_EXTENT_BLOCK;
}
/* Whether the blocks have types of their own. The call's type is of one byte then, and so are its elements. */
static inline int rondo_kind_has_types(enum rondo_kind kind)
{
    return rondo_collective_of(kind)->agreement == RONDO_AGREE_KIND;
}
/* Whether the input or the output is one block of rondo_call.count elements for each rank. */
static inline int rondo_kind_has_blocks(enum rondo_kind kind)
{
    const rondo_collective_t *rule = &rondo_collective_of(kind)->rule;
    return rule->send_extent == RONDO_EXTENT_BLOCKS || rule->recv_extent == RONDO_EXTENT_BLOCKS;
}
/* Blocks of RONDO_INPUT or RONDO_OUTPUT among so many ranks. Of a custom program: 1. */
uint32_t rondo_kind_blocks(enum rondo_kind kind, enum rondo_buffer buffer, uint32_t ranks);
/* Whether the rank is one of the ranks of a communicator of that size. */
int rondo_ranks_include(rondo_ranks_t ranks, int rank, int size, int root);

struct rondo_topology;
struct rondo_graph;

/* Everything a program may depend on. The same on all ranks but for rank (and peer). */
struct rondo_shape {
    enum rondo_kind kind;
    int rank, size;
    int root; /* or the peer of a send or receive */
    int channels;
    enum rondo_protocol protocol;
    int group; /* ranks of each host, which lie side by side and are as many on all; 0: they do not, or there is but one host */
    int across;    /* the call is in place, and rondo_kind_lies_across; ranks need not agree */
    int exchanges; /* RONDO_EXCHANGE can be used: LL on a device whose worker groups poll; ranks need not agree */
    const struct rondo_topology *topology; /* the communicator's */
    const struct rondo_graph *graph;       /* this rank's part of it; NULL: the communicator has none */
};

/* The chunks of the collective's buffers when every block of its arguments (a rank's part; all of an all-reduce, cut into
 * size parts) is cut into one chunk a channel. */
void rondo_shape_chunks(const struct rondo_shape *shape, uint32_t chunks[RONDO_BUFFERS]);

#endif
