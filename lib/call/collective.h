/*
 * The collectives, and the shape of one: everything that a program for it may depend on.
 */
#ifndef RONDO_LIB_CALL_COLLECTIVE_H
#define RONDO_LIB_CALL_COLLECTIVE_H

#include "rondo.h"
#include "device/abi/structures.h"

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
/* By its name in the API; RONDO_KINDS if there is none. */
enum rondo_kind rondo_kind_find(const char *name);

/* Whether an operator is applied. */
int rondo_kind_reduces(enum rondo_kind kind);
/* Whether one rank has another part than all others, which rondo_call.root names. */
int rondo_kind_is_rooted(enum rondo_kind kind);
/* Whether it is a message between two ranks, of which rondo_call.root is the other one. */
int rondo_kind_is_p2p(enum rondo_kind kind);
/* Whether the call has arrays of counts, or more than the call says of itself. */
int rondo_kind_has_arrays(enum rondo_kind kind);

struct rondo_topology;

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

/* The chunks of the collective's buffers when every block of its arguments (a rank's part; all of an all-reduce, cut into
 * size) is cut into one piece a channel. */
void rondo_shape_chunks(const struct rondo_shape *shape, uint32_t chunks[RONDO_BUFFERS]);

#endif
