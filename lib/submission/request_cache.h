/*
 * A lane keeps the requests of its last calls as they were bound, for the next ones like them: choosing an algorithm, finding
 * the connectors and cutting into slices are a third of what a small collective takes on a host, and most of what it takes on a
 * GPU is what its daemon does with an operation that it does not know.
 */
#ifndef RONDO_LIB_SUBMISSION_REQUEST_CACHE_H
#define RONDO_LIB_SUBMISSION_REQUEST_CACHE_H

#include "lib/call/call.h"
#include "lib/connection/lane.h"

#define RONDO_REQUEST_CACHE_SIZE 8 /* of a lane; a power of two */

struct rondo_request;

/* One whose request its lane may keep (lib/submission/request_cache.h). */
struct rondo_known_call {
    struct rondo_host_lane *lane;
    const struct rondo_call *call;
    int reachable;
};

/* Whether there is any use in looking for the call's request. lane NULL: none. */
int rondo_request_cache_is_likely(struct rondo_host_lane *lane, const struct rondo_call *call);

/* What the next one wants to know: whether peers reach the buffers. Not under the queue lock: it may take the runtime's. */
int rondo_request_cache_reachable(const struct rondo_comm *comm, const struct rondo_call *call);

/* Under the queue lock, on a device where threads can help: the request that is kept for the call, with its buffers, ready to
 * be started, or NULL. */
struct rondo_request *rondo_request_cache_find(const struct rondo_known_call *call);
void rondo_request_cache_remove(struct rondo_request *request);

/* The request for this call, whose arguments are right, if the lane (NULL: none) keeps one that will do: ready to be started.
 * Else NULL. */
struct rondo_request *rondo_request_cache_take(struct rondo_host_lane *lane, const struct rondo_call *call);
/* A request that is done and not persistent. 0: it is not for keeping. */
int rondo_request_cache_put(struct rondo_request *request);

#endif
