/* Lanes on the host: their creation, and the binding of plans to their connectors. */
#ifndef RONDO_LIB_CONNECTION_LANE_H
#define RONDO_LIB_CONNECTION_LANE_H

#include "lib/context/runtime.h"
#include "lib/program/algorithm.h"

#include <pthread.h>

struct rondo_lane_requests;

/* Names a lane in the whole job, with its communicator. */
#define RONDO_LANE_COLLECTIVE     0
#define RONDO_LANE_PERSISTENT     ((uint64_t) 1 << 60) /* + how many inits came before */
#define RONDO_LANE_P2P            ((uint64_t) 2 << 60) /* source and destination are in the connector's key */
#define RONDO_LANE_P2P_PERSISTENT ((uint64_t) 3 << 60)
#define RONDO_LANE_STREAM         ((uint64_t) 4 << 60)
#define RONDO_LANE_P2P_STREAM     ((uint64_t) 5 << 60)

/* A connector of the lane, as this rank sees it. */
struct rondo_link {
    struct rondo_connection what;
    struct rondo_connector *connector;
    struct rondo_end *end; /* device memory */
    int row;               /* so many ends were allocated together, of which this is the first; 0: it is not */
};

/* A plan with its connectors: what operations of one shape on one lane share. */
struct rondo_binding {
    struct rondo_binding *next;
    struct rondo_shape shape;
    const struct rondo_algorithm *algorithm;
    struct rondo_plan *plan;
    /* Device memory: */
    struct rondo_program *program;
    struct rondo_end **ends;
    struct rondo_part *parts;
    struct rondo_part first; /* copy of parts[0] */
    int repeats;             /* some part names an end more than once */
};

struct rondo_host_lane {
    struct rondo_host_lane *next; /* of the communicator (runtime lock) */
    struct rondo_comm *comm;
    uint64_t id;
    int peer; /* p2p: rank in the communicator; else -1 */
    int outgoing;
    uint32_t index; /* in the daemon's table */
    int32_t priority;
    uint32_t slot_bytes[RONDO_PROTOCOLS];
    uint32_t slot_count;
    pthread_mutex_t bind_lock; /* links and bindings; one thread binds at a time */
    struct rondo_link *links;
    int link_count;
    struct rondo_binding *bindings;
    struct rondo_lane_requests *requests; /* lib/submission/queue.h; owned by the lane */
};

/* peer -1: a lane of the whole communicator. slot_bytes per protocol: what all its connectors have; all ranks agree on them. */
struct rondo_lane_options {
    uint64_t id;
    int peer;
    int outgoing;
    int priority;
    uint32_t slot_bytes[RONDO_PROTOCOLS];
};
/* Makes a lane's part of submission, before other threads can see the lane. old: that of the lane which had its place in the
 * daemon's table before, whose counters go on; NULL: none had. NULL returned: no memory, and old stays as it was. */
typedef struct rondo_lane_requests *rondo_lane_renew_t(struct rondo_lane_requests *old);
rondo_result_t rondo_lane_create(struct rondo_comm *comm, const struct rondo_lane_options *options, rondo_lane_renew_t *renew,
                                 struct rondo_host_lane **lane);
/* No operation of it may be active. Its place in the daemon's table is used again. */
void rondo_lane_free(struct rondo_host_lane *lane);
/* Frees what is left of lanes that were freed: no lane is in use any more. */
void rondo_lanes_destroy(struct rondo_runtime *runtime);

/* Ends its operations with the code, at their next visit. */
void rondo_lane_fail(struct rondo_host_lane *lane, rondo_result_t code);

/* The plan of that shape on that lane, connected. Bounded, and without other ranks' user threads. */
rondo_result_t rondo_lane_bind(struct rondo_host_lane *lane, const struct rondo_algorithm *algorithm,
                               const struct rondo_shape *shape, struct rondo_binding **binding);

#endif
