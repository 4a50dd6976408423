/*
 * Requests: a call whose arguments are right, bound to a lane, which can be started and waited for; and the forms in which
 * every collective is called. lib/submission/state.h starts requests, lib/submission/progress.h waits for them.
 */
#ifndef RONDO_LIB_SUBMISSION_REQUEST_H
#define RONDO_LIB_SUBMISSION_REQUEST_H

#include "device/abi/slice_operation.h"
#include "device/engine/short_steps.h"
#include "lib/call/call.h"
#include "lib/connection/lane.h"
#include "lib/connection/window.h"
#include "lib/context/runtime.h"
#include "lib/diagnostics/flight_recorder.h"
#include "lib/submission/request_cache.h"

/* lib/submission/state.h has the transitions. All states but INACTIVE and DONE are active. */
enum rondo_request_state {
    RONDO_REQUEST_INACTIVE,
    RONDO_REQUEST_INLINE,
    RONDO_REQUEST_WAITING,
    RONDO_REQUEST_SUBMITTED,
    RONDO_REQUEST_DONE
};

struct rondo_request {
    struct rondo_runtime *runtime;
    rondo_request_t handle; /* what the user has; renewed when the user's becomes invalid */
    struct rondo_comm *comm;
    struct rondo_host_lane *lane; /* NULL: nothing to move; the request completes at its start */
    struct rondo_call call;
    struct rondo_operation *operation; /* host memory that the device can read */
    uint32_t slot;
    uint32_t blocks; /* of its program */
    int fresh;       /* the device has no copy of it yet (queue lock) */
    int persistent, owns_lane;
    int counted;                             /* in the communicator's persistent_here */
    int empty;                               /* there is nothing to move */
    int reachable;                           /* peers can access its buffers where they lie */
    int direct;                              /* its algorithm lets peers do so */
    const struct rondo_plan *copied;         /* what copy engines are to do; the lane's; NULL: kernels do it */
    const struct rondo_registered *programs; /* the communicator's registered programs when it was made */
    int checked;                             /* every start waits until the ranks' calls have been compared (check.h) */
    int blocking;                            /* made by a blocking call: rondo_group_end waits for it */
    int may_inline;                          /* the thread that starts it may execute it inline */
    int small_inline;                        /* the same, and small enough to run under the queue lock */
    int cached;                              /* in its lane's request cache */
    void *stream;                            /* the stream in whose order it is executed */
    int streamed, captured;                  /* executed in stream order; captured into a graph */
    struct rondo_request *next_grouped;
    struct rondo_registration *windows[2]; /* opened for this request; owned */
    uint32_t state;                        /* enum rondo_request_state; DONE is released after result and message */
    rondo_result_t result;
    char *message;                              /* of a failure; owned */
    size_t *counts;                             /* the call's arrays; owned */
    struct rondo_user_operator user;            /* a copy of the call's operator, if it is the user's */
    struct rondo_extent *tables[RONDO_BUFFERS]; /* layouts; device memory, owned */
    size_t table_entries[RONDO_BUFFERS];
    void *scratch; /* device memory, owned */
    size_t scratch_bytes;
    struct rondo_residual *residual; /* with error feedback; used until the request is unbound */
    struct rondo_short_steps steps;  /* rondo_request_classify sets them; owned */
    /* Queue lock: */
    uint64_t number;        /* its place among the operations that were started in the lane */
    uint64_t device_number; /* as the daemon counts: its place among those submitted, or its order on streams */
    uint64_t started_ns;
    uint64_t flight_stamp;                 /* of its record under way; 0: none */
    uint64_t range;                        /* its range in a profiler, if the runtime has one */
    struct rondo_flight_template recorded; /* what its records tell of the call; rondo_request_classify sets it */
    int approved;                          /* may be submitted: not checked, or the comparison has ended */
    struct rondo_request *next_waiting;
    struct rondo_request *active_before, *active_after;
    void (*callback)(void *argument, rondo_result_t result);
    void *callback_argument;
    struct rondo_request *next_free;
};

/* What a thread collects between rondo_group_start and rondo_group_end: requests; or, while the list of requests is empty,
 * calls of messages whose requests may be cached. */
#define RONDO_GROUP_CALLS 4
struct rondo_group {
    struct rondo_request *first, *last;               /* by next_grouped */
    int called;                                       /* calls collected */
    struct rondo_known_call known[RONDO_GROUP_CALLS]; /* known[i].call points to calls[i] */
    struct rondo_call calls[RONDO_GROUP_CALLS];
    rondo_result_t result; /* the first failure to make a request of a collected call */
};

/* The part of a communicator that belongs to requests. */
struct rondo_comm_requests {
    int active;                         /* requests started and not completed (queue lock) */
    struct rondo_host_lane *collective; /* the communicator's own lane */
    struct rondo_host_lane **messages;  /* lanes of sends and receives, [2 * peer + outgoing]; NULL until first use; atomic */
    pthread_mutex_t lane_lock;          /* held while a thread makes a shared lane */
    uintptr_t group_owner;              /* the thread that has a group open; 0: none; atomic */
    struct rondo_group collected;       /* only that thread uses it */
    uint64_t persistent;                /* collective inits so far */
    uint32_t persistent_here;           /* requests of theirs that are not freed; atomic */
    uint64_t *persistent_p2p;           /* inits so far, [2 * peer + outgoing] */
    pthread_mutex_t stream_lock;        /* for the order of operations on streams, and the fields below */
    struct rondo_stream_list *lists;    /* memory that enqueued kernels may still read */
    struct rondo_request *retired;      /* enqueued requests that own memory which their kernels may still use */
    int retired_count, retired_limit;   /* at the limit, those whose kernels have ended are freed */
};

/* The forms of every collective. Each checks the arguments first, as rondo_call_check, and fails with the communicator's
 * failure if it has one. The other ranks of the call must make the same call; where one is wrong, the others wait for it,
 * unless RONDO_CHECK compares the calls. None may be called under a lock. All return RONDO_ERR_MEMORY, RONDO_ERR_UNSUPPORTED
 * and connection failures of binding as well. In a group, all but rondo_call_persistent add the request to the group instead of
 * starting it. */

/* Starts the call and returns when it has completed, with its result. */
rondo_result_t rondo_call_blocking(rondo_comm_t comm, const struct rondo_call *call);
/* Starts the call. *request: to be passed to rondo_wait or rondo_test; NULL on failure. */
rondo_result_t rondo_call_nonblocking(rondo_comm_t comm, const struct rondo_call *call, rondo_request_t *request);
/* Makes an inactive request that rondo_start starts any number of times. A collective's init is itself collective: it succeeds
 * on all ranks or on none. attr NULL: RONDO_ATTR_DEFAULT. *request is NULL on failure. */
rondo_result_t rondo_call_persistent(rondo_comm_t comm, const struct rondo_call *call, const rondo_attr_t *attr,
                                     rondo_request_t *request);
/* Enqueues the call on a stream of the runtime's GPU, and returns without waiting for it. RONDO_ERR_UNSUPPORTED on a device
 * without streams. */
rondo_result_t rondo_call_on_stream(rondo_comm_t comm, const struct rondo_call *call, void *stream);

/* Makes or takes from the cache an inactive request for a blocking call whose arguments have been checked. Not under a lock.
 * Fails as rondo_call_blocking does before it starts anything. */
rondo_result_t rondo_request_make_blocking(struct rondo_comm *comm, const struct rondo_call *call,
                                           struct rondo_request **result);

/* Frees an inactive request that is in no list, with everything that it owns. Takes the queue lock. */
void rondo_request_destroy(struct rondo_request *request);
/* Frees all requests of the communicator, cached ones included. None is active, and no other thread uses the communicator. */
void rondo_request_destroy_all(struct rondo_comm *comm);

#endif
