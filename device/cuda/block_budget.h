/*
 * How many blocks kernels on the streams of a GPU may have, so that all of them run at once: each waits for peers that may be
 * busy with another of them first, and none leaves before it is done (docs/architecture.md, "Stream order"). A process has one
 * table a GPU. What is on one stream runs in turn, so streams are what shares the multiprocessors; one that is alone takes what
 * it likes. Thread-safe.
 */
#ifndef RONDO_DEVICE_CUDA_BLOCK_BUDGET_H
#define RONDO_DEVICE_CUDA_BLOCK_BUDGET_H

#include "device/abi/structures.h"

struct rondo_block_budget;

/* Who launches kernels there: a runtime. */
struct rondo_block_budget_user {
    /* Of its operations at a place that tell when they are over, how many have; wraps. */
    uint32_t (*told)(struct rondo_block_budget_user *user, uint32_t place);
    /* How many of a lane's operations have been executed, as in their order. Takes long. */
    uint64_t (*executed)(struct rondo_block_budget_user *user, uint32_t lane);
    uint32_t telling[RONDO_PLACES]; /* at each place, operations that tell when they are over; wraps */
    uint32_t daemon;                /* blocks of its daemon, which wants to run, too; 0: it has not been started yet */
};

/* A launch that is to be. */
struct rondo_block_budget_request {
    const struct rondo_stream_operation *operations;
    uint32_t count;
    uint64_t stream; /* its number: device/device.h, stream_id */
    uint32_t blocks;
    uint32_t least; /* with fewer it cannot be carried out */
    int overlaps;   /* it would like to begin before the kernel ahead of it in its stream has ended */
    int tells;      /* it shall tell when it is over, in any case */
    int captured;   /* into a graph, which may be launched at any time, again and again */
};
#define RONDO_BLOCK_BUDGET_QUIET 9 /* more operations tell in any case */

struct rondo_block_budget_grant {
    uint32_t blocks;
    uint32_t place; /* RONDO_NOWHERE: none */
    uint32_t until; /* the place's count of operations that tell, when it is over */
    int tells;
    int overlaps;
};

/* The table of a GPU with so many multiprocessors, made by the first who asks for it. NULL: no memory. */
struct rondo_block_budget *rondo_block_budget_enter(int gpu, uint32_t multiprocessors);
/* Nothing that the user has launched runs any more. */
void rondo_block_budget_leave(struct rondo_block_budget *budget, struct rondo_block_budget_user *user);

/* Its daemon may run from here on. */
void rondo_block_budget_daemon(struct rondo_block_budget *budget, struct rondo_block_budget_user *user, uint32_t blocks);

/* Before each launch. */
void rondo_block_budget_take(struct rondo_block_budget *budget, struct rondo_block_budget_user *user,
                             const struct rondo_block_budget_request *wish, struct rondo_block_budget_grant *grant);
/* There was no launch. */
void rondo_block_budget_return(struct rondo_block_budget *budget, struct rondo_block_budget_user *user,
                               const struct rondo_block_budget_request *wish, const struct rondo_block_budget_grant *grant);

#endif
