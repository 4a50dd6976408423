/*
 * A lane keeps the request of its last call as it was bound, for the next one like it: choosing an algorithm, finding the
 * connectors and cutting into slices are a third of what a small collective takes on a host, and most of what it takes on a GPU
 * is what its daemon does with an operation that it does not know.
 */
#ifndef RONDO_LIB_KEPT_H
#define RONDO_LIB_KEPT_H

#include "runtime.h"

/* The request for this call, whose arguments are right, if the lane (NULL: none) keeps one that will do: ready to be started.
 * Else NULL. */
struct rondo_request *rondo_kept_take(struct rondo_host_lane *lane, const struct rondo_call *call);
/* A request that is done and not persistent. 0: it is not for keeping. */
int rondo_kept_put(struct rondo_request *request);

#endif
