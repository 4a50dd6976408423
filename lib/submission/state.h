/*
 * The states of a request and the one way to start operations. A request is
 *
 *     INACTIVE --start--> INLINE ------------------------> DONE --wait, test--> INACTIVE, cached or freed
 *                 |          `--stuck--> SUBMITTED --.      ^
 *                 |---------------------> SUBMITTED --completion--'
 *                 |---> WAITING --room, verdict--> SUBMITTED
 *                 `---------------------------------------> DONE (nothing to move, or the communicator has failed)
 *
 * INLINE: the thread that starts it executes it, as block 0 of the device; where that gets stuck the operation is submitted as
 * it stands. WAITING: in its lane's list on the host, until the device has room or the calls have been compared. SUBMITTED: on
 * the device. A WAITING request of a communicator that fails is DONE at once, a SUBMITTED one at its next visit.
 *
 * All transitions are made under the queue lock, but for that to DONE of a request whose callback has been called (poller.c).
 */
#ifndef RONDO_LIB_SUBMISSION_STATE_H
#define RONDO_LIB_SUBMISSION_STATE_H

#include "lib/submission/request.h"

/* What a thread starts. */
struct rondo_submission {
    struct rondo_request *request;        /* inactive, bound and classified; or NULL, and: */
    const struct rondo_known_call *calls; /* calls whose requests may be cached, which begin together: only inline */
    int count;                            /* of calls; 1 with a request */
    int waits;                            /* the thread does nothing else until what it starts is done */
    enum rondo_assist assist;             /* without waits: whether the thread may soon run the device's block */
    struct rondo_request *stuck;          /* result: began inline, is submitted now, and was started last; NULL: none */
};

/* Starts the request, or as many of the calls as can begin inline, in order. Returns how many have begun (a request always
 * has); what is not stuck of them is done, or its state says where it is. Does not wait for other ranks. Not under a lock. */
int rondo_submit(struct rondo_runtime *runtime, struct rondo_submission *submission);

/* Of a request that has been bound: sets whether it may be executed inline, where nothing else is under way. */
void rondo_request_classify(struct rondo_request *request);

/* Names an operation in the whole job. */
struct rondo_operation_name {
    uint64_t comm, lane;
    int peer, outgoing; /* as of its lane */
    uint64_t number;    /* in the lane */
};
/* Checking: the verdict over an operation is in. RONDO_SUCCESS: it may be submitted. Else it ends with it. */
void rondo_request_approve(struct rondo_runtime *runtime, const struct rondo_operation_name *name, rondo_result_t verdict,
                           const char *message);

/* Completes what the device has finished, and submits what has waited for room. Any thread. Returns how many it completed. */
int rondo_queue_reap(struct rondo_runtime *runtime);
/* The device is lost, and no daemon runs any more: fails all communicators, ends all requests, whether they are on the device
 * or not, and starts no daemon again. */
void rondo_device_lost(struct rondo_runtime *runtime, rondo_result_t code, const char *why);
/* Ends requests of a failed communicator that are not on the device, and wakes the poller. */
extern const struct rondo_failure_listener rondo_submission_failure;

#endif
