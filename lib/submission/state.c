/* The transitions of a request, all under the queue lock (lib/submission/state.h has the states). Relies on the queues' layout
 * (device/abi) and on the release and acquire operations at the SQ and the CQ. */
#include "lib/submission/state.h"

#include "device/abi/platform.h"
#include "lib/base/futex.h"
#include "lib/connection/comm_connections.h"
#include "lib/connection/copy_engine.h"
#include "lib/diagnostics/flight_recorder.h"
#include "lib/diagnostics/nvtx.h"
#include "lib/diagnostics/timeline.h"
#include "lib/select/select.h"
#include "lib/submission/arguments.h"
#include "lib/submission/assist.h"
#include "lib/submission/check.h"
#include "lib/submission/poller.h"
#include "lib/submission/queue.h"
#include "proxy/proxies.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Adds the request to the active ones. Queue lock held. */
static void link_active(struct rondo_queue *queue, struct rondo_request *request)
{
    request->active_before = NULL;
    request->active_after = queue->active;
    if (queue->active != NULL)
        queue->active->active_before = request;
    queue->active = request;
    request->comm->requests->active++;
}

/* ---- the flight recorder, and a profiler's ranges ---- */

static uint64_t ticks(const struct rondo_request *request)
{
    return rondo_flight_ticks(request->runtime->flight);
}

/* The time at which the request starts; the range begins there, too. Queue lock held. */
static uint64_t begin(struct rondo_request *request)
{
    const struct rondo_nvtx *nvtx = request->runtime->nvtx;
    if (__builtin_expect(nvtx != NULL, 0))
        request->range = rondo_nvtx_begin(nvtx, request->call.kind, request->recorded.call.bytes);
    return ticks(request);
}

static void end_range(const struct rondo_request *request)
{
    if (__builtin_expect(request->runtime->nvtx != NULL, 0))
        rondo_nvtx_end(request->runtime->nvtx, request->range);
}

/* Records the start of a request that has its number. started: ticks; completed: ticks, or 0 if it is active. Queue lock held.
 */
static uint64_t record(const struct rondo_request *request, uint64_t started, uint64_t completed)
{
    const enum rondo_flight_family family = request->persistent ? RONDO_FLIGHT_PERSISTENT
                                            : request->blocking ? RONDO_FLIGHT_BLOCKING
                                                                : RONDO_FLIGHT_NONBLOCKING;
    return rondo_flight_begin(request->runtime->flight, &request->recorded, request->number, family, started, completed);
}

void rondo_state_expect_callback(const struct rondo_request *request)
{
    struct rondo_queue *queue = request->runtime->queue;
    __atomic_store_n(&queue->callbacks, queue->callbacks + 1, __ATOMIC_RELAXED);
    if (request->runtime->device->kind->poll_ns != 0) /* no completion wakes the poller, which may be asleep */
        rondo_poller_wake(request->runtime);
}

/* ---- transitions ---- */

/* Ends an active request with the result and a copy of the message (may be NULL): -> DONE, or, where it has a callback, into
 * the poller's list. Queue lock held; the request is in no lane's list. */
static void complete(struct rondo_request *request, rondo_result_t result, const char *message)
{
    struct rondo_queue *queue = request->runtime->queue;
    if (request->active_before != NULL)
        request->active_before->active_after = request->active_after;
    else
        queue->active = request->active_after;
    if (request->active_after != NULL)
        request->active_after->active_before = request->active_before;
    request->comm->requests->active--;
    request->result = result;
    if (request->flight_stamp != 0)
        rondo_flight_end(request->runtime->flight, request->flight_stamp, result, ticks(request));
    request->flight_stamp = 0;
    end_range(request);
    free(request->message);
    request->message = message != NULL ? strdup(message) : NULL;
    __atomic_store_n(&queue->completed, queue->completed + 1, __ATOMIC_RELAXED);
    if (request->callback != NULL) { /* the poller calls it, and makes the request DONE then */
        __atomic_store_n(&queue->callbacks, queue->callbacks - 1, __ATOMIC_RELAXED);
        request->next_waiting = queue->called;
        queue->called = request;
        rondo_poller_wake(request->runtime);
        return;
    }
    /* Release: result and message are visible to the thread that acquires DONE in rondo_request_state. */
    __atomic_store_n(&request->state, RONDO_REQUEST_DONE, __ATOMIC_RELEASE);
}

/* Queue lock held. Relaxed: everything but the wait for DONE reads the state under the lock. */
static void set_state(struct rondo_request *request, enum rondo_request_state state)
{
    __atomic_store_n(&request->state, (uint32_t) state, __ATOMIC_RELAXED);
}

/* INACTIVE -> the state. From here on the request counts as started. Queue lock held. */
static void activate(struct rondo_request *request, enum rondo_request_state state)
{
    struct rondo_queue *queue = request->runtime->queue;
    set_state(request, state);
    request->started_ns = request->runtime->settings.timeout > 0 ? rondo_clock_ns() : 0;
    request->approved = !request->checked;
    link_active(queue, request);
    __atomic_store_n(&queue->submitted, queue->submitted + 1, __ATOMIC_RELAXED);
    if (request->lane != NULL)
        request->number = request->lane->requests->started++;
    if (request->callback != NULL)
        rondo_state_expect_callback(request);
}

/* The same, with a record. started: the ticks at its start. Queue lock held. */
static void activate_recorded(struct rondo_request *request, enum rondo_request_state state, uint64_t started)
{
    activate(request, state);
    if (request->lane != NULL)
        request->flight_stamp = record(request, started, 0);
}

/* Called when the device is about to begin the operation. Returns the operation if the device must copy it again, NULL if its
 * copy is up to date. After another operation of the lane it is not, because that one has moved the connectors on. Queue lock
 * held. */
static const struct rondo_operation *freshen(struct rondo_request *request)
{
    struct rondo_host_lane *lane = request->lane;
    const int fresh = request->fresh || lane->requests->latest != request;
    request->fresh = 0;
    lane->requests->latest = request;
    return fresh ? request->operation : NULL;
}

/* Writes the SQE: -> SUBMITTED. The device has room. begun: RONDO_SQE_BEGUN if it has been executed in part, or 0. Queue lock
 * held; the caller claims a daemon afterwards. */
static void submit(struct rondo_runtime *runtime, struct rondo_request *request, uint32_t begun)
{
    struct rondo_queue *queue = runtime->queue;
    struct rondo_queues *queues = runtime->device->daemon->queues;
    struct rondo_sqe *sqe = &queues->sq[queue->tail % RONDO_QUEUE_DEPTH];
    struct rondo_host_lane *lane = request->lane;
    uint64_t interrupts = rondo_load_relaxed(&queues->interrupts);
    const struct rondo_operation *fresh = freshen(request);
    const int32_t before = lane->priority;
    uint32_t flags = (fresh != NULL ? RONDO_SQE_FRESH : 0) | begun;
    if (!request->owns_lane)
        lane->priority = __atomic_load_n(&request->comm->priority, __ATOMIC_RELAXED);
    if (fresh != NULL || lane->requests->revives || lane->priority != before || interrupts != queue->interrupts) {
        flags |= RONDO_SQE_MORE;
        sqe->priority = lane->priority;
        sqe->revives = lane->requests->revives;
        sqe->fresh = fresh;
        sqe->interrupts = queue->interrupts = interrupts;
    }
    lane->requests->revives = 0;
    set_state(request, RONDO_REQUEST_SUBMITTED);
    request->device_number = request->lane->requests->submitted++;
    if (runtime->trace != NULL)
        rondo_timeline_start(runtime, &(struct rondo_timeline_operation){
                                          .call = &request->call, .lane = lane->index, .number = request->device_number});
    queue->in_flight++;
    /* Release: the entry's other fields and the operation are visible to a daemon that acquires these words with their
     * sequence. */
    rondo_store_release(&sqe->what, RONDO_SQE(queue->tail, request->blocks << 16 | request->slot));
    rondo_store_release(&sqe->where, RONDO_SQE(queue->tail, flags | lane->index));
    queue->tail++;
}

#define FOLLOWERS_MAX (RONDO_QUEUE_DEPTH - RONDO_LANES_MAX)

/* Whether the next operation of the lane may be submitted now. The first operation of a lane always may, because operations on
 * other ranks may wait for it. A follower may only while the queue keeps room for the first operations of all lanes; else the
 * completion of the operation before it submits it. So no lane waits for another's completions. The queues do not overflow:
 * since in_flight was last within FOLLOWERS_MAX, only first operations have been added, and a lane has one at a time. */
static int fits(const struct rondo_runtime *runtime, const struct rondo_host_lane *lane)
{
    uint64_t there = lane->requests->submitted - lane->requests->finished;
    return lane->requests->held == NULL &&
           (there == 0 || (there < RONDO_LANE_DEPTH && runtime->queue->in_flight < FOLLOWERS_MAX));
}

/* Submits the lane's waiting operations that may be, in the order of their starts. Queue lock held. Returns how many. */
static int feed(struct rondo_runtime *runtime, struct rondo_host_lane *lane)
{
    int fed = 0;
    while (lane->requests->waiting_first != NULL && lane->requests->waiting_first->approved && fits(runtime, lane)) {
        struct rondo_request *request = lane->requests->waiting_first;
        lane->requests->waiting_first = request->next_waiting;
        if (lane->requests->waiting_first == NULL)
            lane->requests->waiting_last = NULL;
        runtime->queue->waiting--;
        if (request->empty) {
            complete(request, RONDO_SUCCESS, NULL);
            continue;
        }
        submit(runtime, request, 0);
        fed++;
    }
    return fed;
}

/* Puts the request at the end of its lane's list. Queue lock held. */
static void enqueue(struct rondo_runtime *runtime, struct rondo_request *request)
{
    struct rondo_host_lane *lane = request->lane;
    request->next_waiting = NULL;
    if (lane->requests->waiting_last != NULL)
        lane->requests->waiting_last->next_waiting = request;
    else
        lane->requests->waiting_first = request;
    lane->requests->waiting_last = request;
    runtime->queue->waiting++;
}

/* Whether the request is in its lane's list. Queue lock held. */
static int is_waiting(const struct rondo_request *request)
{
    return request->state == RONDO_REQUEST_WAITING;
}

/* Takes the request out of its lane's list. Queue lock held. */
static void unlink_waiting(struct rondo_runtime *runtime, struct rondo_request *request)
{
    struct rondo_host_lane *lane = request->lane;
    struct rondo_request *before = NULL, *at = lane->requests->waiting_first;
    while (at != request) {
        before = at;
        at = at->next_waiting;
    }
    if (before != NULL)
        before->next_waiting = request->next_waiting;
    else
        lane->requests->waiting_first = request->next_waiting;
    if (lane->requests->waiting_last == request)
        lane->requests->waiting_last = before;
    runtime->queue->waiting--;
}

/* ---- start: inline ---- */

#define INLINE_SMALL_BYTES 8192 /* most that is moved under the queue lock, which other threads' calls may wait for */

/* Whether the operation could run as block 0 on a thread: one block, no comparison, no network, preemptive FIFO order, no
 * trace. */
static int may_run_inline(const struct rondo_request *request)
{
    const struct rondo_device *device = request->runtime->device;
    const struct rondo_policy *policy = &device->daemon->policy;
    return device->kind->run_inline != NULL && request->lane != NULL && request->blocks == 1 && !request->empty &&
           !request->checked && !request->comm->networked && policy->preempt && policy->order == RONDO_ORDER_FIFO &&
           device->trace == NULL;
}

void rondo_request_classify(struct rondo_request *request)
{
    request->may_inline = may_run_inline(request);
    request->small_inline = request->may_inline && rondo_call_bytes(request->comm, &request->call) <= INLINE_SMALL_BYTES;
    rondo_short_steps_forget(&request->steps);
    if (request->small_inline)
        rondo_short_steps_find(request->operation, &request->steps);
    const struct rondo_blocks blocks = rondo_call_blocks(request->comm, request->call.kind);
    rondo_flight_describe(request->runtime->flight, &request->recorded, &request->call, &blocks, request->comm->id,
                          request->lane != NULL ? request->lane->id : 0);
}

/* Whether the request can begin inline now: nothing of its lane is under way, and there is nothing that only an SQE tells the
 * daemon (the lane's new life, interrupts). Queue lock held. */
static int can_begin_inline(const struct rondo_request *request)
{
    const struct rondo_queue *queue = request->runtime->queue;
    const struct rondo_host_lane *lane = request->lane;
    const uint64_t *interrupts = &request->runtime->device->daemon->queues->interrupts;
    return !queue->abandoned && rondo_comm_failure(request->comm) == RONDO_SUCCESS && lane->requests->held == NULL &&
           lane->requests->waiting_first == NULL && lane->requests->submitted == lane->requests->finished &&
           !lane->requests->revives && rondo_load_relaxed(interrupts) == queue->interrupts;
}

/* Completes a request that was executed inline under the queue lock. Of a cached one only the counts change, because no other
 * thread has been able to see it under way. A second reading of the ticks would cost more than the record: it has one time. */
static void count_inline(struct rondo_queue *queue, struct rondo_request *request, uint64_t started)
{
    request->lane->requests->submitted++;
    request->lane->requests->finished++;
    if (!request->cached) {
        activate(request, RONDO_REQUEST_INLINE);
        record(request, started, started);
        complete(request, RONDO_SUCCESS, NULL);
        return;
    }
    request->number = request->lane->requests->started++;
    record(request, started, started);
    end_range(request);
    __atomic_store_n(&queue->submitted, queue->submitted + 1, __ATOMIC_RELAXED);
    __atomic_store_n(&queue->completed, queue->completed + 1, __ATOMIC_RELAXED);
}

/* Executes a small request inline under the queue lock: INACTIVE -> DONE, or, if it gets stuck, -> SUBMITTED as begun, with a
 * daemon claimed for it. waits: the calling thread blocks until the request is done, so it may poll longer. Returns whether it
 * is done. */
static int run_small(struct rondo_request *request, int waits)
{
    struct rondo_runtime *runtime = request->runtime;
    const struct rondo_device_kind *kind = runtime->device->kind;
    const uint64_t started = begin(request);
    uint32_t instruction = 0;
    if ((request->steps.count > 0 && kind->run_steps(runtime->device, request->lane->index, request->slot, request->operation,
                                                     &request->steps, waits, &instruction)) ||
        kind->run_inline(runtime->device, request->lane->index, request->slot, freshen(request), instruction, waits)) {
        count_inline(runtime->queue, request, started);
        return 1;
    }
    if (request->cached)
        rondo_request_cache_remove(request);
    activate_recorded(request, RONDO_REQUEST_INLINE, started);
    submit(runtime, request, RONDO_SQE_BEGUN);
    rondo_queue_claim_start(runtime);
    return 0;
}

/* After inline execution without the lock: INLINE -> DONE, or -> SUBMITTED as begun. Other operations may have come to the lane
 * meanwhile, which are submitted; or the device was lost, and all requests have been completed. */
static void finish_large(struct rondo_request *request, int done)
{
    struct rondo_runtime *runtime = request->runtime;
    struct rondo_queue *queue = runtime->queue;
    struct rondo_host_lane *lane = request->lane;
    int start = 0, others;
    rondo_lock_take(&queue->lock);
    lane->requests->held = NULL;
    if (done) {
        lane->requests->submitted++;
        lane->requests->finished++;
    }
    if (!queue->abandoned && done) /* abandon has completed it otherwise */
        complete(request, RONDO_SUCCESS, NULL);
    else if (!queue->abandoned)
        submit(runtime, request, RONDO_SQE_BEGUN);
    others = lane->requests->waiting_first != NULL;
    if (others)
        feed(runtime, lane);
    if (others || !done)
        start = rondo_queue_claim_start(runtime);
    rondo_lock_drop(&queue->lock);
    if (others)
        rondo_event_signal(&queue->event, &queue->sleepers);
    if (others || !done)
        rondo_queue_attend(runtime, start, RONDO_ASSIST_NOW);
}

/* Executes a large request inline, without the queue lock; lane->requests->held keeps other operations of its lane waiting.
 * Called with the queue lock held, and releases it. Returns whether the request is done. */
static int run_large(struct rondo_request *request)
{
    struct rondo_runtime *runtime = request->runtime;
    activate_recorded(request, RONDO_REQUEST_INLINE, begin(request));
    request->lane->requests->held = request;
    const struct rondo_operation *fresh = freshen(request);
    rondo_lock_drop(&runtime->queue->lock);
    const int done = runtime->device->kind->run_inline(runtime->device, request->lane->index, request->slot, fresh, 0, 1);
    finish_large(request, done);
    return done;
}

/* Begins what can be executed inline, in order, and stops at the first that cannot be or that gets stuck. The calling thread
 * has claimed block 0; *claimed: whether it still has, afterwards. Returns how many have begun. */
static int start_inline(struct rondo_runtime *runtime, struct rondo_submission *submission, int *claimed)
{
    struct rondo_queue *queue = runtime->queue;
    int begun = 0;
    *claimed = 1;
    rondo_lock_take(&queue->lock);
    while (begun < submission->count && submission->stuck == NULL) {
        struct rondo_request *request =
            submission->request != NULL ? submission->request : rondo_request_cache_find(&submission->calls[begun]);
        const int last =
            begun + 1 == submission->count; /* before the last, the thread must not wait: a peer may wait for a later one */
        if (request == NULL || !can_begin_inline(request) || (!request->small_inline && submission->request == NULL))
            break;
        begun++;
        if (!request->small_inline) { /* the only one of its submission */
            submission->stuck = run_large(request) ? NULL : request;
            return begun;
        }
        submission->stuck = run_small(request, submission->waits && last) ? NULL : request;
    }
    if (submission->stuck == NULL)
        *claimed = !runtime->device->kind->assist_end_locked(runtime->device);
    rondo_lock_drop(&queue->lock);
    return begun;
}

/* Executes the submission inline where nothing else is under way, because a small operation takes less time than telling the
 * daemon of it does. The calling thread claims block 0; only an operation that gets stuck is submitted. Returns how many
 * requests have begun; 0: none may run inline now. */
static int try_inline(struct rondo_runtime *runtime, struct rondo_submission *submission)
{
    const struct rondo_request *request = submission->request;
    if (request != NULL && !(request->small_inline || (submission->waits && request->may_inline)))
        return 0;
    if (!rondo_assist_claim_idle(runtime))
        return 0;
    int claimed;
    const int begun = start_inline(runtime, submission, &claimed); /* another thread may free a request that is done */
    if (submission->stuck != NULL && submission->waits && begun == submission->count)
        rondo_assist_run(runtime, submission->stuck);
    /* An operation that is stuck has a daemon, which runs the block from here on. */
    if (claimed)
        rondo_assist_leave(runtime, submission->waits ? RONDO_ASSIST_NEVER : submission->assist);
    return begun;
}

/* ---- start: on the device ---- */

/* INACTIVE -> DONE if there is nothing to move or the communicator has failed; else -> SUBMITTED if the device has room; else
 * -> WAITING. */
static void start_on_device(struct rondo_runtime *runtime, struct rondo_request *request, enum rondo_assist assist)
{
    struct rondo_queue *queue = runtime->queue;
    struct rondo_host_lane *lane = request->lane;
    const int asks = request->checked && lane != NULL;
    int submits = 0, start = 0;
    rondo_lock_take(&queue->lock);
    rondo_result_t failed = rondo_comm_failure(request->comm);
    activate_recorded(request, RONDO_REQUEST_WAITING, begin(request));
    if (failed != RONDO_SUCCESS) {
        complete(request, failed, request->comm->failure);
    } else if (lane == NULL || (request->empty && !request->checked)) {
        complete(request, RONDO_SUCCESS, NULL);
    } else if (request->approved && lane->requests->waiting_first == NULL && fits(runtime, lane)) {
        submit(runtime, request, 0);
        submits = 1;
        start = rondo_queue_claim_start(runtime);
    } else {
        enqueue(runtime, request);
    }
    rondo_lock_drop(&queue->lock);
    if (submits)
        rondo_queue_attend(runtime, start, assist);
    rondo_proxies_expect(runtime->proxies);
    /* The request cannot have been freed: no thread waits for it before the start returns, and it cannot complete before the
     * verdict that is asked for here, unless the communicator fails. */
    if (asks && rondo_comm_failure(request->comm) == RONDO_SUCCESS)
        rondo_check_ask(request);
}

int rondo_submit(struct rondo_runtime *runtime, struct rondo_submission *submission)
{
    submission->stuck = NULL;
    const int begun = try_inline(runtime, submission);
    if (begun > 0 || submission->request == NULL)
        return begun;
    start_on_device(runtime, submission->request, submission->waits ? RONDO_ASSIST_NOW : submission->assist);
    return 1;
}

/* ---- verdicts, completions, failures ---- */

/* The lane that the name is about; NULL: there is none. Takes the runtime lock. */
static struct rondo_host_lane *find_lane(struct rondo_comm *comm, const struct rondo_operation_name *name)
{
    pthread_mutex_lock(&comm->runtime->lock);
    struct rondo_host_lane *lane = comm->connections->lanes;
    while (lane != NULL && (lane->id != name->lane || lane->peer != name->peer || lane->outgoing != name->outgoing))
        lane = lane->next;
    pthread_mutex_unlock(&comm->runtime->lock);
    return lane;
}

void rondo_request_approve(struct rondo_runtime *runtime, const struct rondo_operation_name *name, rondo_result_t verdict,
                           const char *message)
{
    struct rondo_queue *queue = runtime->queue;
    int fed, start = 0;
    struct rondo_comm *comm = rondo_comm_pin(runtime, name->comm);
    struct rondo_host_lane *lane = comm != NULL ? find_lane(comm, name) : NULL;
    rondo_lock_take(&queue->lock);
    struct rondo_request *request = lane != NULL ? lane->requests->waiting_first : NULL;
    while (request != NULL && request->number != name->number)
        request = request->next_waiting;
    if (request ==
        NULL) { /* a failure has completed it meanwhile, or it is in stream order, where no request waits for the verdict */
        rondo_lock_drop(&queue->lock);
        if (comm != NULL && verdict != RONDO_SUCCESS)
            rondo_comm_fail(comm, verdict, "%s", message);
        if (comm != NULL)
            rondo_comm_unpin(comm);
        return;
    }
    request->approved = 1;
    if (verdict != RONDO_SUCCESS) {
        unlink_waiting(runtime, request);
        complete(request, verdict, message);
    }
    if ((fed = feed(runtime, lane)) > 0)
        start = rondo_queue_claim_start(runtime);
    rondo_lock_drop(&queue->lock);
    rondo_comm_unpin(comm);
    rondo_event_signal(&queue->event, &queue->sleepers);
    if (fed > 0)
        rondo_queue_attend(runtime, start, RONDO_ASSIST_NEVER);
}

int rondo_queue_reap(struct rondo_runtime *runtime)
{
    struct rondo_queue *queue = runtime->queue;
    int reaped = 0, fed = 0, start = 0;
    uint64_t head = __atomic_load_n(&queue->head, __ATOMIC_RELAXED);
    uint64_t *cq = runtime->device->daemon->queues->cq;
    if (rondo_load_relaxed(&cq[head % RONDO_QUEUE_DEPTH]) == 0)
        return 0; /* a hint: another thread may be taking the entries */
    rondo_lock_take(&queue->lock);
    while (!queue->abandoned) {
        uint64_t *entry = &cq[queue->head % RONDO_QUEUE_DEPTH];
        uint64_t cqe = rondo_load_acquire(entry); /* pairs with the release in rondo_finish_part */
        if (cqe == 0)
            break;
        struct rondo_request *request = queue->by_slot[RONDO_CQE_SLOT(cqe)];
        rondo_result_t result = (rondo_result_t) RONDO_CQE_RESULT(cqe);
        /* The device writes here again only after a later submission, whose release comes after this store. */
        rondo_store_relaxed(entry, 0);
        __atomic_store_n(&queue->head, queue->head + 1, __ATOMIC_RELAXED);
        queue->in_flight--;
        request->lane->requests->finished++;
        complete(request, result, result != RONDO_SUCCESS ? request->comm->failure : NULL);
        fed += feed(runtime, request->lane);
        reaped++;
    }
    if (fed > 0)
        start = rondo_queue_claim_start(runtime);
    rondo_lock_drop(&queue->lock);
    if (reaped > 0)
        rondo_event_signal(&queue->event, &queue->sleepers);
    if (fed > 0)
        rondo_queue_attend(runtime, start, RONDO_ASSIST_NEVER);
    return reaped;
}

/* Completes the requests of the communicator that are in lanes' lists. */
static void fail_waiting(struct rondo_comm *comm)
{
    rondo_copy_engine_fail(comm);
    struct rondo_runtime *runtime = comm->runtime;
    struct rondo_queue *queue = runtime->queue;
    rondo_lock_take(&queue->lock);
    for (struct rondo_request *request = queue->active, *after; request != NULL; request = after) {
        after = request->active_after;
        if (request->comm != comm || !is_waiting(request))
            continue;
        unlink_waiting(runtime, request);
        complete(request, rondo_comm_failure(comm), comm->failure);
    }
    rondo_lock_drop(&queue->lock);
    rondo_event_signal(&queue->event, &queue->sleepers);
    rondo_poller_wake(comm->runtime);
}

const struct rondo_failure_listener rondo_submission_failure = {.failed = fail_waiting};

/* Completes all active requests with the result, and bars daemons for good. */
static void abandon(struct rondo_runtime *runtime, rondo_result_t result, const char *why)
{
    struct rondo_queue *queue = runtime->queue;
    rondo_queue_reap(runtime); /* completions from before the loss keep their results */
    rondo_lock_take(&queue->lock);
    queue->abandoned = 1;
    while (queue->active != NULL) {
        struct rondo_request *request = queue->active;
        if (request->state == RONDO_REQUEST_SUBMITTED) {
            queue->in_flight--;
            request->lane->requests->finished++;
        } else if (is_waiting(request)) {
            unlink_waiting(runtime, request);
        }
        complete(request, result, why);
    }
    rondo_lock_drop(&queue->lock);
    rondo_queue_wake(runtime);
}

void rondo_device_lost(struct rondo_runtime *runtime, rondo_result_t code, const char *why)
{
    if (rondo_comms_fail(runtime, NULL, 0, code, why) > 0) { /* no other rank has noticed */
        char text[256];
        snprintf(text, sizeof(text), "rank %d: %s", runtime->rank, why);
        rondo_rank_fail(runtime, code, text);
    }
    abandon(runtime, code, why);
}
