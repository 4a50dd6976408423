/*
 * A communicator: its members, where they are, and whether it has failed. All but the failure is constant once it is made;
 * what changes with its use is in the parts of the rooms above.
 */
#ifndef RONDO_LIB_CONTEXT_COMM_H
#define RONDO_LIB_CONTEXT_COMM_H

#include "rondo.h"
#include "lib/bootstrap/topology.h"

#include <stdint.h>

struct rondo_runtime;
struct rondo_comm_connections;
struct rondo_comm_programs;
struct rondo_comm_requests;

struct rondo_comm {
    struct rondo_comm *next;
    struct rondo_runtime *runtime;
    uint64_t id;
    int rank, size;
    int *members;                /* ranks in the world */
    int same_process, same_host; /* all members */
    int hosts_only;              /* all members are on the host device */
    int gpus_only;               /* all members are on GPUs, */
    int by_host;                 /* of one host, but what they send each other passes through its memory */
    int linked;                  /* each on its own, and every two are joined by NVLink and use it */
    int tma;                     /* and all have bulk copies (device/cuda/move_tma.h) */
    int direct_writes;           /* members reach most of each other's memory where it lies (device/engine/direct_write.h) */
    struct rondo_topology topology;
    int group;         /* members of each host, side by side and as many on all; 0: not so, or one host */
    int networked;     /* some members may reach each other over a network */
    uint32_t carriers; /* threads of a member that move what goes over it: the fewest; 0: cards move it */
    rondo_compression_t compression;
    int pins;         /* library threads that use the struct (runtime lock) */
    uint64_t *shrunk; /* hashes of the member lists that it was shrunk to (lane_lock) */
    int shrunk_count;
    uint32_t failed; /* an rondo_result_t; sticky; released after failure */
    char failure[1000];
    /* Parts that one room declares and alone touches: */
    struct rondo_comm_connections *connections; /* lib/connection/comm_connections.h */
    struct rondo_comm_programs *programs;       /* lib/connection/plan_cache.h */
    struct rondo_comm_requests *requests;       /* lib/submission/request.h */
};

/* RONDO_SUCCESS, or what the communicator has failed with; then comm->failure says why. */
static inline rondo_result_t rondo_comm_failure(const struct rondo_comm *comm)
{
    return (rondo_result_t) __atomic_load_n(&comm->failed, __ATOMIC_ACQUIRE);
}

#endif
