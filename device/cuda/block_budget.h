/*
 * The block budget: how many blocks the kernels on a GPU's streams may have, so that all of them run at once. Each kernel
 * waits for peers that may be executing another of them first, and none ends before it is done (docs/architecture.md, "Stream
 * order"). A process has one table for each GPU. Kernels on one stream run in turn, so streams share the multiprocessors; a
 * stream that is alone takes as many as it likes. Thread-safe.
 */
#ifndef RONDO_DEVICE_CUDA_BLOCK_BUDGET_H
#define RONDO_DEVICE_CUDA_BLOCK_BUDGET_H

#include "device/abi/structures.h"

struct rondo_block_budget;

/* A runtime that launches kernels on the GPU. */
struct rondo_block_budget_user {
    /* Number of the user's operations at a place that have ended and told so; wraps. */
    uint32_t (*told)(struct rondo_block_budget_user *user, uint32_t place);
    /* Number of the lane's operations that have been executed, in their order. Takes long. */
    uint64_t (*executed)(struct rondo_block_budget_user *user, uint32_t lane);
    uint32_t telling[RONDO_PLACES]; /* at each place, number of operations that tell when they are over; wraps */
    uint32_t daemon;                /* blocks of its daemon, which has to run, too; 0: not started yet */
};

/* A launch to be. */
struct rondo_block_budget_request {
    const struct rondo_stream_operation *operations;
    uint32_t count;
    uint64_t stream; /* its number: device/device.h, stream_id */
    uint32_t blocks;
    uint32_t least; /* the launch cannot be executed with fewer */
    int overlaps;   /* it may begin before the kernel ahead of it in its stream has ended */
    int tells;      /* it has to tell when it is over */
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

/* The table of a GPU with so many multiprocessors; the first call creates it. Returns NULL without memory. */
struct rondo_block_budget *rondo_block_budget_enter(int gpu, uint32_t multiprocessors);
/* Ends the user's part in the table. Nothing that the user has launched runs any more. */
void rondo_block_budget_leave(struct rondo_block_budget *budget, struct rondo_block_budget_user *user);

/* Announces that the user's daemon may run from here on. */
void rondo_block_budget_daemon(struct rondo_block_budget *budget, struct rondo_block_budget_user *user, uint32_t blocks);

/* Grants blocks to a launch. To be called before each launch, in the order of the launches of a stream. */
void rondo_block_budget_take(struct rondo_block_budget *budget, struct rondo_block_budget_user *user,
                             const struct rondo_block_budget_request *wish, struct rondo_block_budget_grant *grant);
/* Takes the grant of a launch back that did not happen. */
void rondo_block_budget_return(struct rondo_block_budget *budget, struct rondo_block_budget_user *user,
                               const struct rondo_block_budget_request *wish, const struct rondo_block_budget_grant *grant);

#endif
