/* See lib/submission/queue.h. */
#include "lib/submission/queue.h"

#include "lib/base/futex.h"
#include "lib/submission/request_cache.h"
#include "device/abi/platform.h"
#include "lib/submission/poller.h"
#include "proxy/proxies.h"
#include "lib/diagnostics/timeline.h"
#include "lib/base/error.h"
#include "lib/connection/comm_connections.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_PAUSE_NS 20000u
#define LAST_PAUSE_NS  4000000u

rondo_result_t rondo_queue_create(struct rondo_runtime *runtime)
{
    struct rondo_queue *queue = runtime->queue = calloc(1, sizeof(*queue));
    if (queue == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for the queue");
    if ((runtime->poller = calloc(1, sizeof(*runtime->poller))) == NULL) { /* completions wake it, whether it runs or not */
        free(queue);
        runtime->queue = NULL;
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for the poller");
    }
    pthread_mutex_init(&queue->lock, NULL);
    queue->by_slot = calloc(RONDO_OPERATIONS_MAX, sizeof(struct rondo_request *));
    queue->restart_pause_ns = FIRST_PAUSE_NS;
    return queue->by_slot != NULL ? RONDO_SUCCESS : rondo_fail(RONDO_ERR_MEMORY, "no memory for the queue");
}

void rondo_queue_destroy(struct rondo_runtime *runtime)
{
    struct rondo_queue *queue = runtime->queue;
    if (queue == NULL)
        return;
    for (uint32_t slot = 0; queue->by_slot != NULL && slot < queue->slots_used; slot++) {
        struct rondo_request *request = queue->by_slot[slot];
        runtime->device->kind->release_host(runtime->device, request->operation, sizeof(*request->operation));
        free(request);
    }
    free(queue->by_slot);
    pthread_mutex_destroy(&queue->lock);
    free(queue);
    free(runtime->poller);
    runtime->queue = NULL;
    runtime->poller = NULL;
}

static struct rondo_lane_requests *renew(struct rondo_lane_requests *old)
{
    struct rondo_lane_requests *requests = old != NULL ? old : calloc(1, sizeof(*requests));
    if (old != NULL) /* the daemon has the counters, too; enqueued: what comes before is all over */
        *old = (struct rondo_lane_requests){
            .submitted = old->submitted, .finished = old->submitted, .enqueued = RONDO_NEXT_LIFE(old->enqueued)};
    if (requests != NULL)
        requests->revives = 1;
    return requests;
}

rondo_result_t rondo_queue_lane(struct rondo_comm *comm, const struct rondo_lane_options *options,
                                struct rondo_host_lane **lane)
{
    return rondo_lane_create(comm, options, renew, lane);
}

rondo_result_t rondo_request_take(struct rondo_runtime *runtime, struct rondo_request **result)
{
    struct rondo_queue *queue = runtime->queue;
    pthread_mutex_lock(&queue->lock);
    struct rondo_request *request = queue->free_requests;
    rondo_result_t status = RONDO_SUCCESS;
    if (request != NULL) {
        queue->free_requests = request->next_free;
    } else if (queue->slots_used == RONDO_OPERATIONS_MAX) {
        status = rondo_fail(RONDO_ERR_MEMORY, "%u requests exist; there can be no more", queue->slots_used);
    } else {
        request = calloc(1, sizeof(*request));
        if (request != NULL)
            request->operation = runtime->device->kind->allocate_host(runtime->device, sizeof(*request->operation));
        if (request == NULL || request->operation == NULL) {
            free(request);
            request = NULL;
            status = rondo_fail(RONDO_ERR_MEMORY, "no memory for a request");
        } else {
            request->runtime = runtime;
            request->slot = queue->slots_used++;
            queue->by_slot[request->slot] = request;
        }
    }
    pthread_mutex_unlock(&queue->lock);
    *result = request;
    return status;
}

void rondo_request_give_back(struct rondo_request *request)
{
    struct rondo_queue *queue = request->runtime->queue;
    struct rondo_request fresh = {.runtime = request->runtime, .operation = request->operation, .slot = request->slot};
    free(request->message);
    free(request->counts);
    pthread_mutex_lock(&queue->lock);
    *request = fresh;
    request->next_free = queue->free_requests;
    queue->free_requests = request;
    pthread_mutex_unlock(&queue->lock);
}

/* ---- under the queue lock ---- */

static void link_active(struct rondo_queue *queue, struct rondo_request *request)
{
    request->active_before = NULL;
    request->active_after = queue->active;
    if (queue->active != NULL)
        queue->active->active_before = request;
    queue->active = request;
    request->comm->requests->active++;
}

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
    free(request->message);
    request->message = message != NULL ? strdup(message) : NULL;
    __atomic_store_n(&queue->completed, queue->completed + 1, __ATOMIC_RELAXED);
    if (request->callback != NULL) { /* the poller calls it, and releases the request to its waiter then */
        request->next_waiting = queue->called;
        queue->called = request;
        rondo_poller_wake(request->runtime);
        return;
    }
    /* Release: result and message before the state that lets the waiter look at them. */
    __atomic_store_n(&request->state, RONDO_REQUEST_DONE, __ATOMIC_RELEASE);
}

static void activate(struct rondo_request *request)
{
    struct rondo_queue *queue = request->runtime->queue;
    __atomic_store_n(&request->state, RONDO_REQUEST_ACTIVE, __ATOMIC_RELAXED);
    request->started_ns = request->runtime->settings.timeout > 0 ? rondo_clock_ns() : 0;
    request->submitted = 0;
    request->approved = !request->checked;
    link_active(queue, request);
    __atomic_store_n(&queue->submitted, queue->submitted + 1, __ATOMIC_RELAXED);
    if (request->lane != NULL)
        request->number = request->lane->requests->started++;
}

/* The device is about to begin with it. Returns what its copy has to be brought up to date with; NULL: it is. After others of
 * its lane it is no longer what the device knows, whose connectors have moved on. */
static const struct rondo_operation *freshen(struct rondo_request *request)
{
    struct rondo_host_lane *lane = request->lane;
    const int fresh = request->fresh || lane->requests->latest != request;
    request->fresh = 0;
    lane->requests->latest = request;
    return fresh ? request->operation : NULL;
}

/* Writes the SQE. The device has room. begun: RONDO_SQE_BEGUN or 0. */
static void submit(struct rondo_runtime *runtime, struct rondo_request *request, uint32_t begun)
{
    struct rondo_queue *queue = runtime->queue;
    struct rondo_queues *queues = runtime->device->daemon->queues;
    struct rondo_sqe *sqe = &queues->sq[queue->tail % RONDO_QUEUE_DEPTH];
    struct rondo_host_lane *lane = request->lane;
    uint64_t interrupts = rondo_load_relaxed(&queues->interrupts);
    const struct rondo_operation *fresh = freshen(request);
    uint32_t flags = (fresh != NULL ? RONDO_SQE_FRESH : 0) | begun;
    if (fresh != NULL || lane->requests->revives || interrupts != queue->interrupts) {
        flags |= RONDO_SQE_MORE;
        sqe->priority = lane->priority;
        sqe->revives = lane->requests->revives;
        sqe->fresh = fresh;
        sqe->interrupts = queue->interrupts = interrupts;
    }
    lane->requests->revives = 0;
    request->submitted = 1;
    request->device_number = request->lane->requests->submitted++;
    if (runtime->trace != NULL)
        rondo_timeline_start(runtime, &(struct rondo_timeline_operation){
                                          .call = &request->call, .lane = lane->index, .number = request->device_number});
    queue->in_flight++;
    /* Release: entry and operation before the words that say they are valid. */
    rondo_store_release(&sqe->what, RONDO_SQE(queue->tail, request->blocks << 16 | request->slot));
    rondo_store_release(&sqe->where, RONDO_SQE(queue->tail, flags | lane->index));
    queue->tail++;
}

/* The first operation of a lane always goes to the device: others of its kind, on this rank and elsewhere, may wait for it.
 * What follows in the lane goes there early only while there is room for the first ones of all lanes; else it goes when it is
 * the first, fed by the completion of the one before it. So no lane waits for another's completions. Why the queues hold them:
 * since in_flight was last within FOLLOWERS_MAX, only first ones have been added, and a lane has one of them at a time. */
#define FOLLOWERS_MAX (RONDO_QUEUE_DEPTH - RONDO_LANES_MAX)
static int fits(const struct rondo_runtime *runtime, const struct rondo_host_lane *lane)
{
    uint64_t there = lane->requests->submitted - lane->requests->finished;
    return lane->requests->held == NULL &&
           (there == 0 || (there < RONDO_LANE_DEPTH && runtime->queue->in_flight < FOLLOWERS_MAX));
}

/* In order: a lane's operations reach the device as they were started. */
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

/* Of an active one: it is in its lane's list. */
static int is_waiting(const struct rondo_request *request)
{
    return request->lane != NULL && !request->submitted && request->lane->requests->held != request;
}

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

/* What has been submitted is looked after: by a daemon that is started (start: it has been claimed), or the one that there is.
 */
static void see_to(struct rondo_runtime *runtime, int start, enum rondo_assist helper)
{
    const struct rondo_device_kind *kind = runtime->device->kind;
    if (start)
        kind->start(runtime->device, helper);
    else if (helper != RONDO_ASSIST_NOW && kind->attend != NULL)
        kind->attend(runtime->device, helper);
}

/* A new submission gets a daemon at once, whatever pause the last runs have earned. The submitter's half of the sleep/wake race
 * (device/daemon/consensus.h: rondo_leave): the entry is written, fence, then the daemon's state is looked at. */
static int claim_start(struct rondo_runtime *runtime)
{
    struct rondo_queue *queue = runtime->queue;
    queue->restart_pause_ns = FIRST_PAUSE_NS;
    queue->not_before_ns = 0;
    rondo_fence(&runtime->device->daemon->queues->fence);
    if (queue->abandoned || !rondo_device_claim(runtime->device, queue->in_flight > 1))
        return 0;
    queue->starts++;
    return 1;
}

/* ---- the calls ---- */

void rondo_queue_start(struct rondo_request *request, enum rondo_assist helper)
{
    struct rondo_runtime *runtime = request->runtime;
    struct rondo_queue *queue = runtime->queue;
    int submits = 0, start = 0;
    pthread_mutex_lock(&queue->lock);
    rondo_result_t failed = rondo_comm_failure(request->comm);
    activate(request);
    if (failed != RONDO_SUCCESS) {
        complete(request, failed, request->comm->failure);
    } else if (request->lane == NULL || (request->empty && !request->checked)) {
        complete(request, RONDO_SUCCESS, NULL);
    } else if (request->approved && request->lane->requests->waiting_first == NULL && fits(runtime, request->lane)) {
        submit(runtime, request, 0);
        submits = 1;
        start = claim_start(runtime);
    } else {
        enqueue(runtime, request);
    }
    pthread_mutex_unlock(&queue->lock);
    if (submits)
        see_to(runtime, start, helper);
    rondo_proxies_expect(runtime->proxies);
}

/* Whether the request may be carried out by who starts it: what the daemon would have to be told with it, it is told with a
 * submission. */
static int can_be_held(const struct rondo_request *request)
{
    const struct rondo_queue *queue = request->runtime->queue;
    const struct rondo_host_lane *lane = request->lane;
    const uint64_t *interrupts = &request->runtime->device->daemon->queues->interrupts;
    return !queue->abandoned && rondo_comm_failure(request->comm) == RONDO_SUCCESS && lane->requests->held == NULL &&
           lane->requests->waiting_first == NULL && lane->requests->submitted == lane->requests->finished &&
           !lane->requests->revives && rondo_load_relaxed(interrupts) == queue->interrupts;
}

int rondo_queue_hold(struct rondo_request *request, const struct rondo_operation **fresh)
{
    struct rondo_queue *queue = request->runtime->queue;
    pthread_mutex_lock(&queue->lock);
    const int holds = can_be_held(request);
    if (holds) {
        activate(request);
        request->lane->requests->held = request;
        *fresh = freshen(request);
    }
    pthread_mutex_unlock(&queue->lock);
    return holds;
}

void rondo_queue_release(struct rondo_request *request, int done)
{
    struct rondo_runtime *runtime = request->runtime;
    struct rondo_queue *queue = runtime->queue;
    struct rondo_host_lane *lane = request->lane;
    int start = 0, others;
    pthread_mutex_lock(&queue->lock);
    lane->requests->held = NULL;
    if (done) {
        lane->requests->submitted++;
        lane->requests->finished++;
    }
    if (!queue->abandoned && done) /* else it has been completed as all the others */
        complete(request, RONDO_SUCCESS, NULL);
    else if (!queue->abandoned)
        submit(runtime, request, RONDO_SQE_BEGUN);
    others = lane->requests->waiting_first != NULL;
    if (others)
        feed(runtime, lane);
    if (others || !done)
        start = claim_start(runtime);
    pthread_mutex_unlock(&queue->lock);
    if (others)
        rondo_event_signal(&queue->event, &queue->sleepers);
    if (others || !done)
        see_to(runtime, start, RONDO_ASSIST_NOW);
}

/* Nobody has been able to see a kept one under way: it counts, and that is all. */
static void count_inline(struct rondo_queue *queue, struct rondo_request *request)
{
    request->lane->requests->submitted++;
    request->lane->requests->finished++;
    if (!request->cached) {
        activate(request);
        complete(request, RONDO_SUCCESS, NULL);
        return;
    }
    request->lane->requests->started++;
    __atomic_store_n(&queue->submitted, queue->submitted + 1, __ATOMIC_RELAXED);
    __atomic_store_n(&queue->completed, queue->completed + 1, __ATOMIC_RELAXED);
}

/* Under the queue lock. */
static enum rondo_inline_result begin_inline(struct rondo_request *request, int waits)
{
    struct rondo_runtime *runtime = request->runtime;
    if (!can_be_held(request))
        return RONDO_INLINE_NOT;
    if (runtime->device->kind->run_inline(runtime->device, request->lane->index, request->slot, freshen(request), waits)) {
        count_inline(runtime->queue, request);
        return RONDO_INLINE_DONE;
    }
    if (request->cached)
        rondo_request_cache_remove(request);
    activate(request);
    submit(runtime, request, RONDO_SQE_BEGUN);
    claim_start(runtime);
    return RONDO_INLINE_STUCK;
}

enum rondo_inline_result rondo_queue_run_inline(struct rondo_request *request, int waits)
{
    struct rondo_queue *queue = request->runtime->queue;
    pthread_mutex_lock(&queue->lock);
    const enum rondo_inline_result how = begin_inline(request, waits);
    pthread_mutex_unlock(&queue->lock);
    return how;
}

int rondo_queue_run_cached_inline(struct rondo_runtime *runtime, const struct rondo_known_call *calls, int count,
                                  struct rondo_request **stuck)
{
    struct rondo_queue *queue = runtime->queue;
    int begun = 0;
    *stuck = NULL;
    pthread_mutex_lock(&queue->lock);
    while (begun < count && *stuck == NULL) {
        struct rondo_request *request = rondo_request_cache_find(&calls[begun]);
        if (request == NULL || !request->small_inline)
            break;
        const enum rondo_inline_result how =
            begin_inline(request, begun + 1 == count); /* others may be what a peer waits for */
        if (how == RONDO_INLINE_NOT)
            break;
        if (how == RONDO_INLINE_STUCK)
            *stuck = request;
        begun++;
    }
    pthread_mutex_unlock(&queue->lock);
    return begun;
}

static struct rondo_host_lane *find_lane(struct rondo_comm *comm, uint64_t id, int peer, int outgoing)
{
    pthread_mutex_lock(&comm->runtime->lock);
    struct rondo_host_lane *lane = comm->connections->lanes;
    while (lane != NULL && (lane->id != id || lane->peer != peer || lane->outgoing != outgoing))
        lane = lane->next;
    pthread_mutex_unlock(&comm->runtime->lock);
    return lane;
}

void rondo_queue_approve(struct rondo_runtime *runtime, uint64_t comm_id, uint64_t lane_id, int peer, int outgoing,
                         uint64_t number, rondo_result_t verdict, const char *message)
{
    struct rondo_queue *queue = runtime->queue;
    int fed, start = 0;
    struct rondo_comm *comm = rondo_comm_pin(runtime, comm_id);
    struct rondo_host_lane *lane = comm != NULL ? find_lane(comm, lane_id, peer, outgoing) : NULL;
    pthread_mutex_lock(&queue->lock);
    struct rondo_request *request = lane != NULL ? lane->requests->waiting_first : NULL;
    while (request != NULL && request->number != number)
        request = request->next_waiting;
    if (request == NULL) { /* ended by a failure meanwhile, or in stream order, where nothing waits for the verdict */
        pthread_mutex_unlock(&queue->lock);
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
        start = claim_start(runtime);
    pthread_mutex_unlock(&queue->lock);
    rondo_comm_unpin(comm);
    rondo_event_signal(&queue->event, &queue->sleepers);
    if (fed > 0)
        see_to(runtime, start, RONDO_ASSIST_NEVER);
}

int rondo_queue_reap(struct rondo_runtime *runtime)
{
    struct rondo_queue *queue = runtime->queue;
    int reaped = 0, fed = 0, start = 0;
    uint64_t head = __atomic_load_n(&queue->head, __ATOMIC_RELAXED);
    uint64_t *cq = runtime->device->daemon->queues->cq;
    if (rondo_load_relaxed(&cq[head % RONDO_QUEUE_DEPTH]) == 0)
        return 0; /* a hint; another thread may be taking them */
    pthread_mutex_lock(&queue->lock);
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
        start = claim_start(runtime);
    pthread_mutex_unlock(&queue->lock);
    if (reaped > 0)
        rondo_event_signal(&queue->event, &queue->sleepers);
    if (fed > 0)
        see_to(runtime, start, RONDO_ASSIST_NEVER);
    return reaped;
}

static void fail_waiting(struct rondo_comm *comm)
{
    struct rondo_runtime *runtime = comm->runtime;
    struct rondo_queue *queue = runtime->queue;
    pthread_mutex_lock(&queue->lock);
    for (struct rondo_request *request = queue->active, *after; request != NULL; request = after) {
        after = request->active_after;
        if (request->comm != comm || !is_waiting(request))
            continue;
        unlink_waiting(runtime, request);
        complete(request, rondo_comm_failure(comm), comm->failure);
    }
    pthread_mutex_unlock(&queue->lock);
    rondo_event_signal(&queue->event, &queue->sleepers);
    rondo_poller_wake(comm->runtime);
}

const struct rondo_failure_listener rondo_submission_failure = {.failed = fail_waiting};

static void abandon(struct rondo_runtime *runtime, rondo_result_t result, const char *why)
{
    struct rondo_queue *queue = runtime->queue;
    rondo_queue_reap(runtime); /* what was finished before is finished */
    pthread_mutex_lock(&queue->lock);
    queue->abandoned = 1;
    while (queue->active != NULL) {
        struct rondo_request *request = queue->active;
        if (request->submitted) {
            queue->in_flight--;
            request->lane->requests->finished++;
        } else if (is_waiting(request)) {
            unlink_waiting(runtime, request);
        }
        complete(request, result, why);
    }
    pthread_mutex_unlock(&queue->lock);
    rondo_queue_wake(runtime);
}

void rondo_device_lost(struct rondo_runtime *runtime, rondo_result_t code, const char *why)
{
    rondo_comms_fail(runtime, NULL, 0, code, why);
    abandon(runtime, code, why);
}

void rondo_queue_wake(struct rondo_runtime *runtime)
{
    rondo_event_signal(&runtime->queue->event, &runtime->queue->sleepers);
}

void rondo_queue_hasten(struct rondo_runtime *runtime)
{
    struct rondo_queue *queue = runtime->queue;
    pthread_mutex_lock(&queue->lock);
    uint64_t latest = rondo_clock_ns() + FIRST_PAUSE_NS;
    int sooner = queue->in_flight > 0 && !rondo_device_alive(runtime->device) &&
                 (queue->not_before_ns == 0 || queue->not_before_ns > latest);
    if (sooner) {
        queue->restart_pause_ns = FIRST_PAUSE_NS;
        queue->not_before_ns = latest;
    }
    pthread_mutex_unlock(&queue->lock);
    if (!sooner)
        return;
    rondo_poller_wake(runtime);
    rondo_queue_wake(runtime);
}

int rondo_queue_outstanding(struct rondo_runtime *runtime)
{
    return __atomic_load_n(&runtime->queue->submitted, __ATOMIC_RELAXED) !=
           __atomic_load_n(&runtime->queue->completed, __ATOMIC_RELAXED);
}

uint64_t rondo_queue_restart(struct rondo_runtime *runtime, enum rondo_assist helper)
{
    struct rondo_queue *queue = runtime->queue;
    uint64_t pause = 0;
    int start = 0;
    pthread_mutex_lock(&queue->lock);
    if (queue->in_flight > 0 && !queue->abandoned && !rondo_device_alive(runtime->device)) {
        uint64_t now = rondo_clock_ns();
        if (queue->not_before_ns == 0) { /* first seen: the daemon has just quit */
            queue->not_before_ns = now + queue->restart_pause_ns;
            if (queue->restart_pause_ns < LAST_PAUSE_NS)
                queue->restart_pause_ns *= 2;
        }
        if (now < queue->not_before_ns) {
            pause = queue->not_before_ns - now;
        } else if (rondo_device_claim(runtime->device, 1)) {
            queue->not_before_ns = 0;
            queue->starts++;
            start = 1;
        }
    }
    pthread_mutex_unlock(&queue->lock);
    if (start)
        runtime->device->kind->start(runtime->device, helper);
    return start ? RONDO_QUEUE_STARTED : pause;
}
