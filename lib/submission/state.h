/*
 * The states of a request, and the only way to start operations. Relies on lib/submission/queue.h for the queues. A request is
 *
 *     INACTIVE --start--> INLINE ------------------------> DONE --wait, test--> INACTIVE, cached or freed
 *                 |          `--stuck--> SUBMITTED --.      ^
 *                 |---------------------> SUBMITTED --completion--'
 *                 |---> WAITING --room, verdict--> SUBMITTED
 *                 `---------------------------------------> DONE (nothing to move, or the communicator has failed)
 *
 * INLINE: the thread that starts the request executes it as block 0 of the device. An operation that gets stuck is submitted as
 * it stands. WAITING: the request is in its lane's list on the host, until the device has room and the verdict over the calls
 * is in. SUBMITTED: the operation is on the device. When a communicator fails, a WAITING request is DONE at once, and a
 * SUBMITTED one when the daemon visits it next.
 *
 * All transitions are made under the queue lock, with two exceptions. The poller makes a request DONE after it has called the
 * request's callback, and the thread that waits for a DONE persistent request makes it INACTIVE.
 */
#ifndef RONDO_LIB_SUBMISSION_STATE_H
#define RONDO_LIB_SUBMISSION_STATE_H

#include "lib/submission/request.h"

/* What a thread starts: one request, or some calls whose requests may be cached. */
struct rondo_submission {
    struct rondo_request *request;        /* inactive, bound and classified; NULL: the calls are started */
    const struct rondo_known_call *calls; /* calls that begin together; only inline execution starts them */
    int count;                            /* of calls; 1 with a request */
    int waits;                            /* the calling thread blocks until everything that it starts is done */
    enum rondo_assist assist;             /* without waits: whether the thread may soon run the device's block 0 */
    struct rondo_request *stuck; /* result: the last one started, if it got stuck inline and was submitted; NULL: none */
};

/* Starts the request, or as many of the calls as can begin inline, in order. Returns how many have begun: always 1 for a
 * request, 0 to count for calls. Of the calls that have begun all but submission->stuck are done. Does not wait for other
 * ranks, unless waits is set. Errors are results of the requests. Not under a lock. */
int rondo_submit(struct rondo_runtime *runtime, struct rondo_submission *submission);

/* Sets may_inline, small_inline and recorded of a request that has been bound. The request is inactive, and belongs to the
 * caller. */
void rondo_request_classify(struct rondo_request *request);

/* Names an operation, as one of its ranks sees it. */
struct rondo_operation_name {
    uint64_t comm, lane;
    int peer, outgoing; /* as of its lane */
    uint64_t number;    /* in the lane */
};
/* Handles the verdict over a checked operation (lib/submission/check.h). RONDO_SUCCESS: its request may be submitted. Else the
 * request completes with the verdict and the message; if it does not wait any more, the communicator fails with them. Called by
 * the control thread; takes the runtime lock and the queue lock. */
void rondo_request_approve(struct rondo_runtime *runtime, const struct rondo_operation_name *name, rondo_result_t verdict,
                           const char *message);

/* Counts an active request that has a callback, until it completes. Where completions wake no thread the poller is woken, to
 * look for this one. Queue lock held. */
void rondo_state_expect_callback(const struct rondo_request *request);

/* Completes the requests whose CQEs the device has written, and submits those that have waited for room. Any thread; takes the
 * queue lock unless there is no CQE. Returns how many requests it has completed. */
int rondo_queue_reap(struct rondo_runtime *runtime);
/* Handles the loss of the device, after which no daemon runs any more: fails all communicators with the code, completes all
 * requests, whether they are on the device or not, and lets no daemon start again. Not under a lock. */
void rondo_device_lost(struct rondo_runtime *runtime, rondo_result_t code, const char *why);
/* Completes the WAITING requests of a failed communicator, and wakes the poller (lib/context/failure.h). */
extern const struct rondo_failure_listener rondo_submission_failure;

#endif
