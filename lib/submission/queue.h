/* The host ends of SQ and CQ: submission, completion, and keeping a daemon alive while there is work. */
#ifndef RONDO_LIB_SUBMISSION_QUEUE_H
#define RONDO_LIB_SUBMISSION_QUEUE_H

#include "lib/submission/request.h"

/* The host ends of the queues. */
struct rondo_queue {
    pthread_mutex_t lock;
    uint64_t tail;       /* SQEs written */
    uint64_t interrupts; /* the count that the daemon has been told of last */
    uint64_t head;       /* CQEs taken */
    uint64_t in_flight;  /* operations on the device; at most RONDO_QUEUE_DEPTH (lib/submission/queue.c: fits) */
    uint64_t submitted, completed;
    struct rondo_request **by_slot; /* RONDO_OPERATIONS_MAX */
    uint32_t slots_used;
    struct rondo_request *free_requests; /* with their slots */
    struct rondo_request *active;        /* started and not completed */
    struct rondo_request *called;        /* completed, callback not yet called */
    uint64_t waiting;                    /* requests in lanes' lists */
    uint32_t event, sleepers;            /* bumped at completions */
    uint64_t restart_pause_ns, not_before_ns;
    uint64_t starts;
    int abandoned; /* there will be no daemon any more */
};

/* What a lane has of requests. */
struct rondo_lane_requests {
    uint32_t revives; /* nothing has been submitted in this life of the daemon's entry (queue lock) */
    uint64_t stuck,
        stuck_ns; /* what a kernel on a stream says of it (device/abi/structures.h), and since when (runtime lock) */
    /* Operations in stream order, but for those in graphs, and the last one's stream (the communicator's stream lock). */
    uint64_t enqueued, stream_id;
    /* Queue lock: */
    uint64_t started, submitted, finished; /* operations; those started and not submitted wait in the list */
    struct rondo_request *waiting_first, *waiting_last;
    const struct rondo_request *held;   /* is executed inline by the thread that starts it; NULL: none is */
    const struct rondo_request *latest; /* of those submitted or executed inline */
    struct rondo_request
        *cached[RONDO_REQUEST_CACHE_SIZE]; /* of its last calls; whether there is one may be read at any time */
};

/* A lane with its part of submission; as rondo_lane_create. */
rondo_result_t rondo_queue_lane(struct rondo_comm *comm, const struct rondo_lane_options *options,
                                struct rondo_host_lane **lane);

rondo_result_t rondo_queue_create(struct rondo_runtime *runtime);
void rondo_queue_destroy(struct rondo_runtime *runtime);

/* An inactive request with an operation slot; from the pool, so usually without allocation. */
rondo_result_t rondo_request_take(struct rondo_runtime *runtime, struct rondo_request **request);
void rondo_request_give_back(struct rondo_request *request);

/* A new submission gets a daemon at once, whatever pause the last runs have earned. Queue lock held, after the entry has been
 * written. Returns whether the caller is to start it: rondo_queue_attend, without the lock. */
int rondo_queue_claim_start(struct rondo_runtime *runtime);
/* Sees to what has been submitted: by a daemon that is started (start: it has been claimed), or by the one that runs. */
void rondo_queue_attend(struct rondo_runtime *runtime, int start, enum rondo_assist assist);
/* Work is outstanding and no daemon runs: starts one if its pause is over (RONDO_QUEUE_STARTED), or returns the nanoseconds to
 * wait before the next try. 0: a daemon runs, or nothing is outstanding. */
#define RONDO_QUEUE_STARTED UINT64_MAX
uint64_t rondo_queue_restart(struct rondo_runtime *runtime, enum rondo_assist assist);
/* Something has come that a stuck operation may be waiting for: if no daemon runs, one may soon. */
void rondo_queue_hasten(struct rondo_runtime *runtime);
/* Wakes threads that sleep until something happens. */
void rondo_queue_wake(struct rondo_runtime *runtime);
/* Whether requests have been started that are not completed. Both counts may move meanwhile. */
static inline int rondo_queue_outstanding(const struct rondo_runtime *runtime)
{
    return __atomic_load_n(&runtime->queue->submitted, __ATOMIC_RELAXED) !=
           __atomic_load_n(&runtime->queue->completed, __ATOMIC_RELAXED);
}

#endif
