/* The pool of requests, and the daemon that executes what is submitted: starting it, and the pauses between its restarts
 * (lib/submission/queue.h). Relies on rondo_device_claim for one daemon at a time. */
#include "lib/submission/queue.h"

#include "lib/base/futex.h"
#include "lib/base/handle.h"
#include "lib/submission/request_cache.h"
#include "device/abi/platform.h"
#include "lib/submission/poller.h"
#include "proxy/proxies.h"
#include "lib/diagnostics/timeline.h"
#include "lib/base/error.h"
#include "lib/connection/comm_connections.h"

#include <stdlib.h>
#include <string.h>

/* The pause before a daemon that has quit with operations in flight is restarted doubles from the first to the last. It begins
 * anew when a daemon has advanced a task: then other ranks are at work, too, and would soon wait for this one. */
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
        rondo_handle_close(request->handle);
        free(request);
    }
    free(queue->by_slot);
    free(queue);
    free(runtime->poller);
    runtime->queue = NULL;
    runtime->poller = NULL;
}

/* rondo_lane_renew_t (lib/connection/lane.h). The counters of a reused entry go on, because the daemon has them, too. */
static struct rondo_lane_requests *renew(struct rondo_lane_requests *old)
{
    struct rondo_lane_requests *requests = old != NULL ? old : calloc(1, sizeof(*requests));
    if (old != NULL) /* enqueued: all operations of the life before are over */
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

rondo_result_t rondo_request_take(struct rondo_comm *comm, struct rondo_request **result)
{
    struct rondo_runtime *runtime = comm->runtime;
    struct rondo_queue *queue = runtime->queue;
    rondo_lock_take(&queue->lock);
    struct rondo_request *request = queue->free_requests;
    rondo_result_t status = RONDO_SUCCESS;
    if (request != NULL) {
        queue->free_requests = request->next_free;
    } else if (queue->slots_used == RONDO_OPERATIONS_MAX) {
        status = rondo_fail(RONDO_ERR_MEMORY, "%u requests exist; there can be no more", queue->slots_used);
    } else {
        request = calloc(1, sizeof(*request));
        if (request != NULL && (request->handle = rondo_handle_open(RONDO_HANDLE_REQUEST, request)) != NULL)
            request->operation = runtime->device->kind->allocate_host(runtime->device, sizeof(*request->operation));
        if (request == NULL || request->operation == NULL) {
            if (request != NULL)
                rondo_handle_close(request->handle);
            free(request);
            request = NULL;
            status = rondo_fail(RONDO_ERR_MEMORY, "no memory for a request");
        } else {
            request->runtime = runtime;
            request->slot = queue->slots_used++;
            queue->by_slot[request->slot] = request;
        }
    }
    if (request != NULL)
        request->comm = comm; /* under the lock: threads that free other communicators look at it */
    rondo_lock_drop(&queue->lock);
    *result = request;
    return status;
}

void rondo_request_give_back(struct rondo_request *request)
{
    struct rondo_queue *queue = request->runtime->queue;
    struct rondo_request fresh = {.runtime = request->runtime,
                                  .handle = rondo_handle_renew(request->handle),
                                  .operation = request->operation,
                                  .slot = request->slot};
    free(request->message);
    free(request->counts);
    rondo_lock_take(&queue->lock);
    *request = fresh;
    request->next_free = queue->free_requests;
    queue->free_requests = request;
    rondo_lock_drop(&queue->lock);
}

/* ---- the daemon that executes what is submitted ---- */

void rondo_queue_attend(struct rondo_runtime *runtime, int start, enum rondo_assist assist)
{
    const struct rondo_device_kind *kind = runtime->device->kind;
    if (start)
        kind->start(runtime->device, assist);
    else if (assist != RONDO_ASSIST_NOW && kind->attend != NULL)
        kind->attend(runtime->device, assist);
}

/* Resets the pause: a new submission gets a daemon at once. This is the submitter's half of the sleep/wake race, whose other
 * half is rondo_leave (device/daemon/consensus.h). The SQE is written before the fence, and the daemon's state is read after
 * it; the daemon writes LEAVING, fences, and then reads the queue. So at least one of the two sees the other's write, and a
 * submitter that sees LEAVING waits for the outcome in rondo_device_claim. */
int rondo_queue_claim_start(struct rondo_runtime *runtime)
{
    struct rondo_queue *queue = runtime->queue;
    queue->restart_pause_ns = FIRST_PAUSE_NS;
    queue->not_before_ns = 0;
    rondo_fence(&runtime->device->daemon->queues->fence);
    if (queue->abandoned || !rondo_device_claim(runtime->device))
        return 0;
    queue->starts++;
    return 1;
}

void rondo_queue_wake(struct rondo_runtime *runtime)
{
    rondo_event_signal(&runtime->queue->event, &runtime->queue->sleepers);
}

void rondo_queue_hasten(struct rondo_runtime *runtime)
{
    struct rondo_queue *queue = runtime->queue;
    rondo_lock_take(&queue->lock);
    uint64_t latest = rondo_clock_ns() + FIRST_PAUSE_NS;
    int sooner = queue->in_flight > 0 && !rondo_device_alive(runtime->device) &&
                 (queue->not_before_ns == 0 || queue->not_before_ns > latest);
    if (sooner) {
        queue->restart_pause_ns = FIRST_PAUSE_NS;
        queue->not_before_ns = latest;
    }
    rondo_lock_drop(&queue->lock);
    if (!sooner)
        return;
    rondo_poller_wake(runtime);
    rondo_queue_wake(runtime);
}

uint64_t rondo_queue_restart(struct rondo_runtime *runtime, enum rondo_assist assist)
{
    struct rondo_queue *queue = runtime->queue;
    uint64_t pause = 0;
    int start = 0;
    rondo_lock_take(&queue->lock);
    if (queue->in_flight > 0 && !queue->abandoned && !rondo_device_alive(runtime->device)) {
        uint64_t now = rondo_clock_ns();
        if (queue->not_before_ns == 0) { /* first seen: the daemon has just quit */
            if (rondo_load_relaxed(&runtime->device->advanced) == runtime->device->daemon->queues->launches)
                queue->restart_pause_ns = FIRST_PAUSE_NS;
            queue->not_before_ns = now + queue->restart_pause_ns;
            if (queue->restart_pause_ns < LAST_PAUSE_NS)
                queue->restart_pause_ns *= 2;
        }
        if (now < queue->not_before_ns) {
            pause = queue->not_before_ns - now;
        } else if (rondo_device_claim(runtime->device)) {
            queue->not_before_ns = 0;
            queue->starts++;
            start = 1;
        }
    }
    rondo_lock_drop(&queue->lock);
    if (start)
        runtime->device->kind->start(runtime->device, assist);
    return start ? RONDO_QUEUE_STARTED : pause;
}
