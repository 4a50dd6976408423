/*
 * Lanes on the host: their creation, and the binding of plans to their connectors. Relies on lib/connection/connect.h for
 * connectors and lib/connection/plan_cache.h for plans.
 */
#ifndef RONDO_LIB_CONNECTION_LANE_H
#define RONDO_LIB_CONNECTION_LANE_H

#include "lib/context/runtime.h"
#include "lib/program/algorithm.h"

#include <pthread.h>

struct rondo_lane_requests;

/* A lane's id: with the communicator's id it identifies the lane in the whole job. */
#define RONDO_LANE_COLLECTIVE     0
#define RONDO_LANE_PERSISTENT     ((uint64_t) 1 << 60) /* + number of earlier inits */
#define RONDO_LANE_P2P            ((uint64_t) 2 << 60) /* source and destination are in the connector's key */
#define RONDO_LANE_P2P_PERSISTENT ((uint64_t) 3 << 60)
#define RONDO_LANE_STREAM         ((uint64_t) 4 << 60)
#define RONDO_LANE_P2P_STREAM     ((uint64_t) 5 << 60)

/* A connector of the lane, as this rank sees it. */
struct rondo_link {
    struct rondo_connection what;
    struct rondo_connector *connector;
    struct rondo_end *end; /* device memory */
    int row;               /* > 0: the first of so many ends allocated together; 0: not the first */
};

/* A plan with its connectors. All operations of one shape on one lane share it. Constant once it is in the lane's list. */
struct rondo_binding {
    struct rondo_binding *next;
    struct rondo_shape shape;
    const struct rondo_algorithm *algorithm;
    struct rondo_plan *plan;
    /* The next three are device memory. */
    struct rondo_program *program;
    struct rondo_end **ends;
    struct rondo_part *parts;
    struct rondo_part first; /* copy of parts[0] */
    int repeats;             /* a part names one end more than once */
    int only_sends;          /* the program fills slots, and takes none */
};

struct rondo_host_lane {
    struct rondo_host_lane *next; /* in the communicator's list; runtime lock */
    struct rondo_comm *comm;
    uint64_t id;
    int peer; /* p2p: rank in the communicator; else -1 */
    int outgoing;
    uint32_t index; /* in the daemon's table */
    int32_t priority;
    uint32_t slot_bytes[RONDO_PROTOCOLS];
    uint32_t slot_count;
    pthread_mutex_t bind_lock; /* protects links and bindings; one thread binds at a time */
    struct rondo_link *links;
    int link_count;
    struct rondo_binding *bindings;
    struct rondo_lane_requests *requests; /* lib/submission/queue.h; owned by the lane */
};

/* peer -1: a lane of the whole communicator. slot_bytes: slot size of every connector of the lane, in bytes, by protocol; it
 * must be the same on all ranks. */
struct rondo_lane_options {
    uint64_t id;
    int peer;
    int outgoing;
    int priority;
    uint32_t slot_bytes[RONDO_PROTOCOLS];
};
/* Creates a lane's part of submission, before other threads can see the lane. old: the part of the lane that had the same index
 * in the daemon's table before, whose counters continue; NULL if there was none. Returns NULL if there is no memory; then old
 * is unchanged. */
typedef struct rondo_lane_requests *rondo_lane_renew_t(struct rondo_lane_requests *old);
/* Creates a lane and adds it to the communicator's list. Takes the runtime lock. Not collective: connectors are opened when the
 * first plan is bound. RONDO_ERR_MEMORY if there is no memory or the daemon's table is full. */
rondo_result_t rondo_lane_create(struct rondo_comm *comm, const struct rondo_lane_options *options, rondo_lane_renew_t *renew,
                                 struct rondo_host_lane **lane);
/* Closes the lane's connectors and frees its bindings. No operation of the lane may be active. A later lane reuses its index in
 * the daemon's table. Takes the runtime lock. */
void rondo_lane_free(struct rondo_host_lane *lane);
/* Frees what rondo_lane_free retained for reuse. Called once, at finalize; no lane may be in use. */
void rondo_lanes_destroy(struct rondo_runtime *runtime);

/* Ends the lane's operations with the code. Each ends at the daemon's next visit. Does not wait. */
void rondo_lane_fail(struct rondo_host_lane *lane, rondo_result_t code);

/* Sets *binding to the plan of the shape on the lane, with all its connectors open. Compiles and connects what is missing. Not
 * on a control thread, and without locks: it takes the bind lock and waits for the peers' control threads, for a bounded time,
 * but for no user thread of another rank. Returns the errors of rondo_plan_cache_get and
 * rondo_connect, RONDO_ERR_MEMORY, and RONDO_ERR_UNSUPPORTED if the program has more blocks than the lane.
 */
rondo_result_t rondo_lane_bind(struct rondo_host_lane *lane, const struct rondo_algorithm *algorithm,
                               const struct rondo_shape *shape, struct rondo_binding **binding);

#endif
