/*
 * A communicator: its members, their location, and its failure. All fields are constant after creation, except where a lock is
 * named and except the failure. The state that changes with use is in the parts that the rooms above declare.
 */
#ifndef RONDO_LIB_CONTEXT_COMM_H
#define RONDO_LIB_CONTEXT_COMM_H

#include "rondo.h"
#include "lib/bootstrap/topology.h"
#include "lib/call/graph.h"

#include <stdint.h>

struct rondo_runtime;
struct rondo_comm_connections;
struct rondo_comm_programs;
struct rondo_comm_residuals;
struct rondo_comm_requests;

/* How many communicators of the same members, in one order and with one tag, were made of a communicator. */
struct rondo_alone_count {
    uint64_t list; /* hash of members and tag */
    uint64_t made;
};

struct rondo_comm {
    struct rondo_comm *next;
    struct rondo_runtime *runtime;
    rondo_comm_t handle; /* what users have; NULL: a rendezvous, or not made completely */
    uint64_t id;
    int rank, size;
    int *members;                /* ranks in the world */
    int same_process, same_host; /* all members */
    int hosts_only;              /* all members are on the host device */
    int gpus_only;               /* all members are on GPUs */
    int multicast;               /* each member can write slots that all others read: host devices of one host */
    int by_host;                 /* GPUs of one host whose data pass through host memory */
    int shares_context;          /* members of one process share a GPU */
    int takes_turns;             /* members of several processes share a GPU, which runs the kernels of one process at a time */
    int linked;                  /* each member has its own GPU, and every two are joined by NVLink and use it */
    int tma;                     /* linked, and all GPUs have TMA copies (device/cuda/move_tma.h) */
    int direct_writes;           /* members can access most of each other's memory (device/engine/direct_write.h) */
    uint32_t single_copy;        /* enum rondo_peer_single_copy: of all members, which are of one host and several processes */
    struct rondo_topology topology;
    int group;         /* members per host, if consecutive and equal on all hosts; 0: otherwise, or one host */
    int networked;     /* some members may be connected by a network */
    uint32_t carriers; /* proxy threads per member (the minimum); 0: the adapters move data */
    rondo_compression_t compression;
    int priority;                    /* of operations on lanes that they share (device/daemon/tasks.h); atomic */
    struct rondo_graph *graph;       /* lib/call/graph.h; NULL: none */
    int pins;                        /* library threads that use the struct (runtime lock) */
    struct rondo_alone_count *alone; /* what members have made of it by themselves; lane_lock */
    int alone_count;
    uint64_t agreements;         /* how many the members have come to; the lock of lib/communicator/agreement.c */
    unsigned char *acknowledged; /* [size]: this rank has acknowledged that the rank has failed; atomic */
    uint32_t failed;             /* a rondo_result_t; sticky; stored with release after the text */
    char failure[1000];
    /* Parts, each declared and accessed by one room alone: */
    struct rondo_comm_connections *connections; /* lib/connection/comm_connections.h */
    struct rondo_comm_programs *programs;       /* lib/connection/plan_cache.h */
    struct rondo_comm_residuals *residuals;     /* lib/select/residuals.h */
    struct rondo_comm_requests *requests;       /* lib/submission/request.h */
};

/* Returns RONDO_SUCCESS, or the code with which the communicator has failed; then comm->failure is the reason. Any thread,
 * without locks: the acquire pairs with the release of rondo_comm_fail, so the text is complete. */
static inline rondo_result_t rondo_comm_failure(const struct rondo_comm *comm)
{
    return (rondo_result_t) __atomic_load_n(&comm->failed, __ATOMIC_ACQUIRE);
}

#endif
