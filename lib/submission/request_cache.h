/*
 * The request cache: a lane caches the bound requests of its last calls, and an equal call takes its request from there. That
 * saves choosing an algorithm, finding the connectors and slicing, and the daemon already has a copy of the operation. Relies
 * on lib/submission/bind.h to give a request other buffers.
 */
#ifndef RONDO_LIB_SUBMISSION_REQUEST_CACHE_H
#define RONDO_LIB_SUBMISSION_REQUEST_CACHE_H

#include "lib/call/call.h"
#include "lib/connection/lane.h"

#define RONDO_REQUEST_CACHE_SIZE 8 /* entries of a lane; a power of two */

struct rondo_request;

/* A call with checked arguments whose request may be in its lane's cache. place: of rondo_request_cache_place; reachable: what
 * rondo_request_cache_reachable returned for it. */
struct rondo_known_call {
    struct rondo_request *const *place;
    const struct rondo_call *call;
    int reachable;
};

/* The call's place in the lane's cache; NULL: lane is NULL, or the place is empty, a hint that needs no lock. */
struct rondo_request *const *rondo_request_cache_place(struct rondo_host_lane *lane, const struct rondo_call *call);

/* Whether peers can access the call's buffers where they lie, as a request without windows of its own sees it. Not under the
 * queue lock, because it may take the runtime lock. */
int rondo_request_cache_reachable(const struct rondo_comm *comm, const struct rondo_call *call);

/* Finds the cached request for the call, gives it the call's buffers and leaves it in the cache. Queue lock held,
 * and the calling thread has claimed block 0. Returns NULL if there is none. */
struct rondo_request *rondo_request_cache_find(const struct rondo_known_call *call);
/* Takes a cached request out of its lane's cache. Queue lock held. */
void rondo_request_cache_remove(struct rondo_request *request);

/* Takes the cached request for a call whose arguments have been checked out of the lane's cache, with the call's buffers, ready
 * to be started. Takes the queue lock. Returns NULL if there is none, or if lane is NULL. */
struct rondo_request *rondo_request_cache_take(struct rondo_host_lane *lane, const struct rondo_call *call);
/* Puts a request that is done and not persistent into its lane's cache, and destroys the one that was in its place. Takes the
 * queue lock. Returns 1 if the cache owns the request now; 0 if the caller must destroy it. */
int rondo_request_cache_put(struct rondo_request *request);

#endif
