/* Requests: from a checked call to something that can be started and waited for. */
#ifndef RONDO_LIB_SUBMISSION_REQUEST_H
#define RONDO_LIB_SUBMISSION_REQUEST_H

#include "lib/call/call.h"
#include "lib/connection/lane.h"
#include "lib/connection/window.h"
#include "lib/context/runtime.h"
#include "lib/submission/request_cache.h"

/* lib/submission/state.h; those between the first and the last are active. */
enum rondo_request_state {
    RONDO_REQUEST_INACTIVE,
    RONDO_REQUEST_INLINE,
    RONDO_REQUEST_WAITING,
    RONDO_REQUEST_SUBMITTED,
    RONDO_REQUEST_DONE
};

struct rondo_request {
    struct rondo_runtime *runtime;
    struct rondo_comm *comm;
    struct rondo_host_lane *lane; /* NULL: nothing to move, completes at start */
    struct rondo_call call;
    struct rondo_operation *operation; /* host memory that the device reaches */
    uint32_t slot;
    uint32_t blocks; /* of its program */
    int fresh;       /* the device has no copy of it yet (queue lock) */
    int persistent, owns_lane;
    int counted;                             /* in the communicator's persistent_here */
    int empty;                               /* nothing to move */
    int reachable;                           /* its buffers, by peers; and */
    int direct;                              /* peers do */
    const struct rondo_registered *programs; /* the communicator's when it was made */
    int checked;                             /* waits for a verdict at every start */
    int blocking;                            /* of a blocking call: a group waits for it */
    int may_inline, small_inline;            /* may be carried out by who starts it; and moves little */
    int cached;   /* in its lane's cache: a call that still names it fails, as if it had been freed */
    void *stream; /* in whose order it is executed */
    int streamed, captured;
    struct rondo_request *next_grouped;
    struct rondo_registration *windows[2]; /* opened for it; owned */
    uint32_t state;                        /* enum rondo_request_state; DONE is released after result and message */
    rondo_result_t result;
    char *message;                              /* of a failure; owned */
    size_t *counts;                             /* the call's arrays; owned */
    struct rondo_extent *tables[RONDO_BUFFERS]; /* layouts; device memory, owned */
    size_t table_entries[RONDO_BUFFERS];
    void *scratch; /* device memory, owned */
    size_t scratch_bytes;
    void *residual; /* likewise */
    size_t residual_bytes;
    /* Queue lock: */
    uint64_t number;        /* in the lane, of those started */
    uint64_t device_number; /* of those submitted: the daemon's count */
    uint64_t started_ns;
    int approved; /* checking: all ranks called alike */
    struct rondo_request *next_waiting;
    struct rondo_request *active_before, *active_after;
    void (*callback)(void *argument, rondo_result_t result);
    void *callback_argument;
    struct rondo_request *next_free;
};

/* What a thread collects between rondo_group_start and rondo_group_end: requests; or messages, as long as there are no others.
 */
#define RONDO_GROUP_CALLS 4
struct rondo_group {
    struct rondo_request *first, *last; /* by next_grouped */
    int called;
    struct rondo_known_call known[RONDO_GROUP_CALLS]; /* of: */
    struct rondo_call calls[RONDO_GROUP_CALLS];
    rondo_result_t result; /* of making the calls' requests */
};

/* What a communicator has of requests. */
struct rondo_comm_requests {
    int active;                         /* requests started and not completed (queue lock) */
    struct rondo_host_lane *collective; /* the communicator's own lane */
    struct rondo_host_lane **messages;  /* lanes of sends and receives, where there are any: [2 * peer + outgoing]; atomic */
    pthread_mutex_t lane_lock;          /* one thread at a time makes a shared lane */
    uintptr_t group_owner;              /* the thread that has a group open; 0: none; atomic */
    struct rondo_group collected;       /* that thread's own */
    uint64_t persistent;                /* collective inits so far */
    uint32_t persistent_here;           /* of their requests, those that are not freed; atomic */
    uint64_t *persistent_p2p;           /* inits so far, [2 * peer + outgoing] */
    pthread_mutex_t stream_lock;        /* numbers of operations in stream order, and the next three */
    struct rondo_stream_list *lists;    /* that kernels may read */
    struct rondo_request *retired;      /* enqueued, and not needed but for memory that their kernels use */
    int retired_count, retired_limit;   /* at the limit those that can be are freed */
};

/* The forms every collective comes in. */
rondo_result_t rondo_call_blocking(rondo_comm_t comm, const struct rondo_call *call);
rondo_result_t rondo_call_nonblocking(rondo_comm_t comm, const struct rondo_call *call, rondo_request_t *request);
rondo_result_t rondo_call_persistent(rondo_comm_t comm, const struct rondo_call *call, const rondo_attr_t *attr,
                                     rondo_request_t *request);
rondo_result_t rondo_call_on_stream(rondo_comm_t comm, const struct rondo_call *call, void *stream);

/* Of a blocking call, to be started. */
rondo_result_t rondo_request_make_blocking(struct rondo_comm *comm, const struct rondo_call *call,
                                           struct rondo_request **result);

/* Frees an inactive request with what it owns. */
void rondo_request_destroy(struct rondo_request *request);
/* All of the communicator's; none is active. */
void rondo_request_destroy_all(struct rondo_comm *comm);

#endif
