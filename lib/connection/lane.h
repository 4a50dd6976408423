/* Lanes on the host: their creation, and the binding of plans to their connectors. */
#ifndef RONDO_LIB_CONNECTION_LANE_H
#define RONDO_LIB_CONNECTION_LANE_H

#include "lib/context/runtime.h"

/* peer -1: a lane of the whole communicator. slot_bytes per protocol: what all its connectors have; all ranks agree on them. */
struct rondo_lane_options {
    uint64_t id;
    int peer;
    int outgoing;
    int priority;
    uint32_t slot_bytes[RONDO_PROTOCOLS];
};
rondo_result_t rondo_lane_create(struct rondo_comm *comm, const struct rondo_lane_options *options,
                                 struct rondo_host_lane **lane);
/* No operation of it may be active. Its place in the daemon's table is used again. */
void rondo_lane_free(struct rondo_host_lane *lane);

/* Ends its operations with the code, at their next visit. */
void rondo_lane_fail(struct rondo_host_lane *lane, rondo_result_t code);

/* The plan of that shape on that lane, connected. Bounded, and without other ranks' user threads. */
rondo_result_t rondo_lane_bind(struct rondo_host_lane *lane, const struct rondo_algorithm *algorithm,
                               const struct rondo_shape *shape, struct rondo_binding **binding);

#endif
