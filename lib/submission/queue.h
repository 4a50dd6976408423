/*
 * The host's ends of the submission queue (SQ) and the completion queue (CQ), the pool of requests, and starting a daemon when
 * there is work. Relies on the device table (device/device.h) for the daemon; lib/submission/state.h writes the entries.
 */
#ifndef RONDO_LIB_SUBMISSION_QUEUE_H
#define RONDO_LIB_SUBMISSION_QUEUE_H

#include "lib/base/futex.h"
#include "lib/submission/request.h"

/* The host's ends of the queues. The lock protects all fields unless a field says otherwise. */
struct rondo_queue {
    struct rondo_lock lock;
    uint64_t tail;                  /* SQEs written */
    uint64_t interrupts;            /* the interrupt count that the latest SQE with one told the daemon */
    uint64_t head;                  /* CQEs taken; may be read at any time */
    uint64_t in_flight;             /* operations on the device; at most RONDO_QUEUE_DEPTH (lib/submission/state.c: fits) */
    uint64_t submitted, completed;  /* requests started, and of those completed; may be read at any time */
    struct rondo_request **by_slot; /* RONDO_OPERATIONS_MAX */
    uint32_t slots_used;
    struct rondo_request *free_requests; /* with their slots; linked by next_free */
    struct rondo_request *active;        /* started and not completed; linked by active_after */
    uint64_t callbacks;                  /* active requests that have one; may be read at any time */
    struct rondo_request *called;        /* completed, callback not yet called; newest first, linked by next_waiting */
    uint64_t waiting;                    /* requests in lanes' lists */
    uint32_t event, sleepers;            /* the event that is signalled at completions; atomic */
    uint64_t restart_pause_ns;           /* the pause before the next restart of the daemon */
    uint64_t not_before_ns;              /* no restart before this time; 0: no pause has begun */
    uint64_t starts;                     /* of the daemon */
    int abandoned;                       /* the device is lost: no daemon runs any more */
};

/* A thread that looks for completions which wake no thread: so many looks between two looks at all else, and without a pause
 * until none has come for so long. */
#define RONDO_QUEUE_LOOKS    64
#define RONDO_QUEUE_WATCH_NS 2000000u

/* The part of a lane that belongs to submission. */
struct rondo_lane_requests {
    uint32_t revives;   /* nothing has been submitted in this life of the lane's entry in the daemon's table (queue lock) */
    uint64_t stuck;     /* what a waiting kernel on a stream reports (RONDO_STUCK_NUMBER); 0: none waits (runtime lock) */
    uint64_t stuck_ns;  /* since when the report is the same (runtime lock) */
    uint64_t enqueued;  /* operations enqueued on streams, without those in graphs (the communicator's stream lock) */
    uint64_t stream_id; /* the stream of the last one (the same lock) */
    /* Queue lock: */
    uint64_t started, submitted, finished; /* operations; those started and not submitted wait in the list */
    struct rondo_request *waiting_first, *waiting_last;
    const struct rondo_request *held;                       /* a thread executes it inline without the queue lock; NULL: none */
    const struct rondo_request *latest;                     /* of those submitted or executed inline */
    struct rondo_request *cached[RONDO_REQUEST_CACHE_SIZE]; /* whether an entry is NULL may be read at any time */
};

/* Makes a lane with its part of submission. Locks, errors and other ranks: as rondo_lane_create (lib/connection/lane.h). */
rondo_result_t rondo_queue_lane(struct rondo_comm *comm, const struct rondo_lane_options *options,
                                struct rondo_host_lane **lane);

/* Makes runtime->queue, and runtime->poller without its thread. RONDO_ERR_MEMORY; then rondo_queue_destroy frees what there
 * is. */
rondo_result_t rondo_queue_create(struct rondo_runtime *runtime);
/* Frees both, with all requests and their operations. Does nothing if there is no queue. No request is active, the poller's
 * thread has ended, and no daemon runs. */
void rondo_queue_destroy(struct rondo_runtime *runtime);

/* Takes an inactive request with an operation slot from the pool, for a call of the communicator, and allocates one only if the
 * pool is empty. Takes the queue lock. RONDO_ERR_MEMORY: *request is NULL. */
rondo_result_t rondo_request_take(struct rondo_comm *comm, struct rondo_request **request);
/* Returns an inactive request to the pool, and frees its message and its counts. Takes the queue lock. The caller has freed
 * whatever else the request owns (rondo_request_destroy). */
void rondo_request_give_back(struct rondo_request *request);

/* Claims the start of a daemon for a submission, without a pause. Queue lock held; the SQE has been written. Returns 1 if the
 * caller must start the daemon, by rondo_queue_attend after it has released the lock; 0 if a daemon runs or none may. */
int rondo_queue_claim_start(struct rondo_runtime *runtime);
/* Makes a daemon see what has been submitted. start: the result of rondo_queue_claim_start; 1 starts a daemon, 0 tells the one
 * that runs. assist: whether the calling thread will run the device's block 0. Not under the queue lock. */
void rondo_queue_attend(struct rondo_runtime *runtime, int start, enum rondo_assist assist);
/* Starts a daemon if operations are in flight, no daemon runs and its pause is over. Returns RONDO_QUEUE_STARTED if it has
 * started one, the nanoseconds to wait before the next try if the pause is not over, and 0 if there is nothing to start. Takes
 * the queue lock. assist: as rondo_queue_attend. */
#define RONDO_QUEUE_STARTED UINT64_MAX
uint64_t rondo_queue_restart(struct rondo_runtime *runtime, enum rondo_assist assist);
/* Shortens the pause before a restart, because something has come that a stuck operation may wait for. Wakes the poller and the
 * waiting threads if it does. Any thread; takes the queue lock. */
void rondo_queue_hasten(struct rondo_runtime *runtime);
/* Wakes all threads that sleep on the queue's event. Any thread, under any lock. */
void rondo_queue_wake(struct rondo_runtime *runtime);
/* Whether requests have been started that are not completed. A hint without the queue lock, because both counts may move. */
static inline int rondo_queue_outstanding(const struct rondo_runtime *runtime)
{
    return __atomic_load_n(&runtime->queue->submitted, __ATOMIC_RELAXED) !=
           __atomic_load_n(&runtime->queue->completed, __ATOMIC_RELAXED);
}

#endif
