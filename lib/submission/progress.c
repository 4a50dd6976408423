/* Waiting for requests, and the public functions on them (lib/submission/progress.h). Relies on the queue's event, which is
 * read before the state, so that no completion between the two is missed. */
#include "lib/submission/progress.h"

#include "lib/submission/assist.h"
#include "lib/base/futex.h"
#include "lib/context/handles.h"
#include "lib/submission/request_cache.h"
#include "device/abi/platform.h"
#include "lib/submission/poller.h"
#include "proxy/proxies.h"
#include "lib/submission/queue.h"
#include "lib/submission/reach.h"
#include "lib/submission/request.h"
#include "lib/select/select.h"
#include "lib/submission/state.h"
#include "lib/submission/stream.h"
#include "lib/base/error.h"

#include <sched.h>
#include <stdlib.h>

#define BACKOFF_NS      1000000u
#define INLINE_NS       100000u     /* a waiting thread moves the proxy's slots for so long while no daemon may run */
#define SETTLE_NS       5000000000u /* for the requests of a failed communicator to end */
#define SETTLE_PAUSE_NS 200000u

static int is_active(const struct rondo_request *request)
{
    const uint32_t state = rondo_request_state(request);
    return state != RONDO_REQUEST_INACTIVE && state != RONDO_REQUEST_DONE;
}

/* Waits for the request on a device that wakes no thread: polls its CQ, without a pause at first. */
static void watch_done(struct rondo_request *request)
{
    struct rondo_runtime *runtime = request->runtime;
    struct rondo_queue *queue = runtime->queue;
    uint64_t since = 0;
    for (uint64_t looks = 1; rondo_request_state(request) != RONDO_REQUEST_DONE; looks++) {
        if (rondo_queue_reap(runtime) > 0 || looks % RONDO_QUEUE_LOOKS != 0) {
            rondo_relax(0, UINT32_MAX);
            continue;
        }
        rondo_assist_call_back(runtime);
        uint64_t now = rondo_clock_ns();
        since = since == 0 ? now : since;
        rondo_queue_restart(runtime, RONDO_ASSIST_NEVER);
        if (now - since > RONDO_QUEUE_WATCH_NS) {
            uint32_t seen = __atomic_load_n(&queue->event, __ATOMIC_SEQ_CST);
            if (rondo_request_state(request) != RONDO_REQUEST_DONE)
                rondo_event_sleep(&queue->event, seen, &queue->sleepers, runtime->device->kind->poll_ns);
        } else {
            sched_yield();
        }
    }
}

/* Passes up to pause nanoseconds in which no daemon may run: the thread moves the proxy's slots at first, and then sleeps.
 * Returns early when a slot has been moved or the event is signalled. seen: the event's value before the request's state was
 * read. */
static void pass_time(struct rondo_runtime *runtime, const struct rondo_request *request, uint32_t seen, uint64_t pause)
{
    struct rondo_queue *queue = runtime->queue;
    struct rondo_proxy *proxy = rondo_proxies_first(runtime->proxies);
    if (rondo_proxy_assist_begin(proxy)) {
        uint64_t until = rondo_clock_ns() + (pause < INLINE_NS ? pause : INLINE_NS);
        int moved = 0;
        while (!moved && rondo_clock_ns() < until && rondo_request_state(request) != RONDO_REQUEST_DONE &&
               __atomic_load_n(&queue->event, __ATOMIC_ACQUIRE) == seen) {
            moved = rondo_proxy_assist_step(proxy);
            rondo_relax(0, 0);
        }
        rondo_proxy_assist_end(proxy);
        if (moved || pause < INLINE_NS)
            return;
        pause -= INLINE_NS;
    }
    rondo_event_sleep(&queue->event, seen, &queue->sleepers, pause);
}

/* Waits until the request is DONE, and runs block 0 of the device where it has one for waiting threads. */
static void wait_done(struct rondo_request *request)
{
    struct rondo_runtime *runtime = request->runtime;
    struct rondo_queue *queue = runtime->queue;
    if (runtime->device->kind->poll_ns != 0) {
        watch_done(request);
        return;
    }
    for (;;) {
        uint32_t seen = __atomic_load_n(&queue->event, __ATOMIC_SEQ_CST);
        rondo_queue_reap(runtime);
        if (rondo_request_state(request) == RONDO_REQUEST_DONE)
            return;
        if (rondo_device_alive(runtime->device) && rondo_assist(runtime, request))
            continue;
        /* The daemon is out. This thread restarts it with RONDO_ASSIST_NOW, and then must run block 0 even if the request is
         * done by now, because no other thread has been woken for it. */
        uint64_t pause = rondo_queue_restart(runtime, RONDO_ASSIST_NOW);
        if (pause == RONDO_QUEUE_STARTED) {
            rondo_assist(runtime, request);
            continue;
        }
        rondo_assist_call_back(runtime);
        pass_time(runtime, request, seen, pause > 0 ? pause : BACKOFF_NS);
    }
}

/* Returns the result of a DONE request; makes the request inactive if it is persistent, else caches or frees it. */
static rondo_result_t conclude(struct rondo_request *request)
{
    rondo_result_t result = request->result;
    if (result != RONDO_SUCCESS) {
        /* There may have been no memory for the message, which is then that of the communicator. */
        const char *reason = request->message != NULL                             ? request->message
                             : rondo_comm_failure(request->comm) != RONDO_SUCCESS ? request->comm->failure
                                                                                  : rondo_strerror(result);
        const int is_bound = request->persistent && rondo_comm_failure(request->comm) != RONDO_SUCCESS;
        rondo_fail(result, "%s: %s%s", rondo_kind_name(request->call.kind), reason,
                   is_bound ? "; a persistent request ends with its communicator: make it again on the one of rondo_comm_shrink"
                            : "");
    }
    if (request->persistent)
        __atomic_store_n(&request->state, RONDO_REQUEST_INACTIVE, __ATOMIC_RELEASE);
    else if (!rondo_request_cache_put(request))
        rondo_request_destroy(request);
    return result;
}

rondo_result_t rondo_progress_run(struct rondo_request *request)
{
    rondo_submit(request->runtime, &(struct rondo_submission){.request = request, .count = 1, .waits = 1});
    return rondo_progress_wait(request);
}

rondo_result_t rondo_progress_wait(struct rondo_request *request)
{
    if (rondo_request_state(request) != RONDO_REQUEST_DONE)
        wait_done(request);
    return conclude(request);
}

/* Counts the active requests of the communicator (NULL: of all). *ending: whether all of them belong to failed ones. */
static int count_active(struct rondo_runtime *runtime, const struct rondo_comm *comm, int *ending)
{
    struct rondo_queue *queue = runtime->queue;
    int active = 0;
    *ending = 1;
    rondo_lock_take(&queue->lock);
    for (const struct rondo_request *request = queue->active; request != NULL; request = request->active_after)
        if (comm == NULL || request->comm == comm) {
            active++;
            *ending &= rondo_comm_failure(request->comm) != RONDO_SUCCESS;
        }
    rondo_lock_drop(&queue->lock);
    return active;
}

int rondo_progress_settle(struct rondo_runtime *runtime, const struct rondo_comm *comm)
{
    struct rondo_queue *queue = runtime->queue;
    for (uint64_t until = rondo_clock_ns() + SETTLE_NS;;) {
        uint32_t seen = __atomic_load_n(&queue->event, __ATOMIC_SEQ_CST);
        int ending, active = count_active(runtime, comm, &ending);
        if (active == 0 || !ending || rondo_clock_ns() > until)
            return active;
        if (rondo_queue_reap(runtime) > 0)
            continue;
        rondo_assist_once(runtime);
        rondo_event_sleep(&queue->event, seen, &queue->sleepers, SETTLE_PAUSE_NS);
    }
}

/* ---- the public calls ---- */

/* Sets *out to the handle's request. Returns RONDO_ERR_STATE unless it is persistent and inactive; else as rondo_request_still,
 * whose errors of the GPU fail the communicator. */
static rondo_result_t find_startable(rondo_request_t handle, const char *function, struct rondo_request **out)
{
    rondo_result_t result = rondo_request_of(handle, function, out);
    struct rondo_request *request = *out;
    if (result != RONDO_SUCCESS)
        return result;
    if (!request->persistent)
        return rondo_fail(RONDO_ERR_STATE, "%s: the request is not persistent", function);
    if (rondo_request_state(request) != RONDO_REQUEST_INACTIVE)
        return rondo_fail(RONDO_ERR_STATE, "%s: the request (%s) is active", function, rondo_kind_name(request->call.kind));
    return rondo_comm_conclude(request->comm, function, rondo_request_still(request));
}

static rondo_result_t start(rondo_request_t handle, const char *function)
{
    struct rondo_request *request;
    int idle = 1;
    rondo_result_t result = find_startable(handle, function, &request);
    if (result == RONDO_SUCCESS && request->lane != NULL)
        result = rondo_comm_conclude(request->comm, function, rondo_stream_idle(request->lane, &idle));
    if (result == RONDO_SUCCESS && !idle)
        result = rondo_fail(RONDO_ERR_STATE, "%s: the request (%s) has not been executed on its stream yet", function,
                            rondo_kind_name(request->call.kind));
    if (result == RONDO_SUCCESS)
        rondo_submit(request->runtime,
                     &(struct rondo_submission){.request = request, .count = 1, .assist = RONDO_ASSIST_MAYBE});
    return result;
}

rondo_result_t rondo_start(rondo_request_t request)
{
    return start(request, "rondo_start");
}

rondo_result_t rondo_startall(int count, rondo_request_t *requests)
{
    if (count < 0 || (count > 0 && requests == NULL))
        return rondo_fail(RONDO_ERR_ARGUMENT, "rondo_startall: %d requests at %p", count, (void *) requests);
    for (int i = 0; i < count; i++) { /* none is started if one of them cannot be */
        struct rondo_request *request;
        rondo_result_t result = find_startable(requests[i], "rondo_startall", &request);
        if (result != RONDO_SUCCESS)
            return result;
    }
    for (int i = 0; i < count; i++) {
        rondo_result_t result = start(requests[i], "rondo_startall"); /* fails where a request is given twice */
        if (result != RONDO_SUCCESS)
            return result;
    }
    return RONDO_SUCCESS;
}

rondo_result_t rondo_start_on_stream(rondo_request_t handle, void *stream)
{
    struct rondo_request *request;
    rondo_result_t result = find_startable(handle, "rondo_start_on_stream", &request);
    if (result == RONDO_SUCCESS)
        result = rondo_stream_check(request->comm, "rondo_start_on_stream", stream, &request->captured);
    if (result != RONDO_SUCCESS)
        return result;
    request->stream = stream;
    request->next_grouped = NULL;
    return rondo_stream_enqueue(request);
}

rondo_result_t rondo_test(rondo_request_t handle, int *done)
{
    struct rondo_request *request;
    if (done == NULL)
        return rondo_fail(RONDO_ERR_ARGUMENT, "rondo_test: done is NULL");
    *done = 0;
    rondo_result_t result = rondo_request_of(handle, "rondo_test", &request);
    if (result != RONDO_SUCCESS)
        return result;
    if (is_active(request) && rondo_queue_reap(request->runtime) == 0)
        rondo_assist_once(request->runtime);
    uint32_t state = rondo_request_state(request);
    *done = state == RONDO_REQUEST_INACTIVE || state == RONDO_REQUEST_DONE;
    return state == RONDO_REQUEST_DONE ? conclude(request) : RONDO_SUCCESS;
}

rondo_result_t rondo_wait(rondo_request_t handle)
{
    struct rondo_request *request;
    rondo_result_t result = rondo_request_of(handle, "rondo_wait", &request);
    if (result != RONDO_SUCCESS || rondo_request_state(request) == RONDO_REQUEST_INACTIVE)
        return result;
    return rondo_progress_wait(request);
}

rondo_result_t rondo_waitall(int count, rondo_request_t *requests)
{
    rondo_result_t first = RONDO_SUCCESS;
    if (count < 0 || (count > 0 && requests == NULL))
        return rondo_fail(RONDO_ERR_ARGUMENT, "rondo_waitall: %d requests at %p", count, (void *) requests);
    for (int i = 0; i < count; i++) {
        if (requests[i] == NULL)
            continue;
        struct rondo_request *request;
        rondo_result_t result = rondo_request_of(requests[i], "rondo_waitall", &request);
        if (result == RONDO_SUCCESS) {
            const int persistent = request->persistent;
            if (rondo_request_state(request) != RONDO_REQUEST_INACTIVE)
                result = rondo_progress_wait(request);
            if (!persistent)
                requests[i] = NULL;
        }
        first = first == RONDO_SUCCESS ? result : first;
    }
    return first;
}

rondo_result_t rondo_request_free(rondo_request_t *handle)
{
    struct rondo_request *request;
    if (handle == NULL)
        return rondo_fail(RONDO_ERR_ARGUMENT, "rondo_request_free: the pointer is NULL");
    rondo_result_t result = rondo_request_of(*handle, "rondo_request_free", &request);
    if (result != RONDO_SUCCESS)
        return result;
    if (is_active(request))
        return rondo_fail(RONDO_ERR_STATE, "rondo_request_free: the request (%s) is active",
                          rondo_kind_name(request->call.kind));
    rondo_request_destroy(request);
    *handle = NULL;
    return RONDO_SUCCESS;
}

rondo_result_t rondo_request_callback(rondo_request_t handle, void (*fn)(void *arg, rondo_result_t result), void *arg)
{
    struct rondo_request *request;
    rondo_result_t result = rondo_request_of(handle, "rondo_request_callback", &request);
    if (result != RONDO_SUCCESS)
        return result;
    if (fn == NULL)
        return rondo_fail(RONDO_ERR_ARGUMENT, "rondo_request_callback: fn is NULL");
    struct rondo_runtime *runtime = request->runtime;
    struct rondo_queue *queue = runtime->queue;
    int too_late;
    rondo_lock_take(&queue->lock);
    too_late = rondo_request_state(request) == RONDO_REQUEST_DONE;
    if (!too_late) {
        const int expected = request->callback != NULL || !is_active(request);
        request->callback_argument = arg;
        request->callback = fn;
        if (!expected)
            rondo_state_expect_callback(request);
    }
    rondo_lock_drop(&queue->lock);
    if (!too_late && runtime->device->kind->attend != NULL) /* the thread that has started it may never wait for it */
        runtime->device->kind->attend(runtime->device, RONDO_ASSIST_NEVER);
    if (too_late) /* it completed before the callback was set, which still is called once */
        fn(arg, request->result);
    return RONDO_SUCCESS;
}
