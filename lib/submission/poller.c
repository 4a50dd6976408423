/* The poller's thread (lib/submission/poller.h). Relies on lib/submission/state.h for completions and on the queue's called
 * list for callbacks. */
#include "lib/submission/poller.h"

#include "lib/base/thread.h"
#include "lib/base/futex.h"
#include "lib/diagnostics/flight_dump.h"
#include "lib/diagnostics/hang.h"
#include "lib/diagnostics/inspection.h"
#include "device/abi/platform.h"
#include "lib/submission/observe.h"
#include "lib/submission/queue.h"
#include "lib/diagnostics/timeline.h"
#include "lib/submission/state.h"

#include <sched.h>
#include <string.h>

#define TICK_NS     100000000u
#define STACK_BYTES ((size_t) 1 << 20) /* the user's callbacks run on it */

void rondo_poller_wake(struct rondo_runtime *runtime)
{
    rondo_event_signal(&runtime->poller->event, &runtime->poller->sleepers);
}

/* Calls the callbacks of completed requests, oldest first and without a lock, and then makes the requests DONE. Release: the
 * callback's effects and the result are visible to the waiting thread. */
static void call_back(struct rondo_runtime *runtime)
{
    struct rondo_queue *queue = runtime->queue;
    for (;;) {
        rondo_lock_take(&queue->lock);
        struct rondo_request **last = &queue->called; /* the list is newest first */
        while (*last != NULL && (*last)->next_waiting != NULL)
            last = &(*last)->next_waiting;
        struct rondo_request *request = *last;
        *last = NULL;
        void (*callback)(void *, rondo_result_t) = request != NULL ? request->callback : NULL;
        if (request != NULL)
            request->callback = NULL;
        rondo_lock_drop(&queue->lock);
        if (request == NULL)
            return;
        callback(request->callback_argument, request->result);
        __atomic_store_n(&request->state, RONDO_REQUEST_DONE, __ATOMIC_RELEASE);
        rondo_event_signal(&queue->event, &queue->sleepers);
    }
}

/* Looks for completions without a pause while there are requests with callbacks, where completions wake no thread. Ends when
 * none has been started or has completed for RONDO_QUEUE_WATCH_NS, as for a thread that waits (lib/submission/progress.c): then
 * it is the operations that take long. */
static void watch_callbacks(struct rondo_runtime *runtime)
{
    struct rondo_queue *queue = runtime->queue;
    uint64_t since = rondo_clock_ns(), before = 0;
    while (__atomic_load_n(&queue->callbacks, __ATOMIC_RELAXED) > 0 && rondo_clock_ns() - since < RONDO_QUEUE_WATCH_NS &&
           rondo_queue_restart(runtime, RONDO_ASSIST_NEVER) == 0) {
        for (int looks = 0; looks < RONDO_QUEUE_LOOKS && rondo_queue_reap(runtime) == 0; looks++)
            rondo_relax(0, UINT32_MAX);
        call_back(runtime);
        const uint64_t now =
            __atomic_load_n(&queue->submitted, __ATOMIC_RELAXED) + __atomic_load_n(&queue->completed, __ATOMIC_RELAXED);
        if (now != before)
            since = rondo_clock_ns();
        before = now;
        sched_yield();
    }
}

/* Checks the device, at most once a tick. The loss of the device ends everything, also communicators that are made later. */
static void look_at_device(struct rondo_runtime *runtime)
{
    const struct rondo_device_kind *kind = runtime->device->kind;
    uint64_t now = rondo_clock_ns();
    if (kind->check == NULL || now - runtime->poller->looked_ns < TICK_NS)
        return;
    runtime->poller->looked_ns = now;
    rondo_result_t result = kind->check(runtime->device);
    if (result != RONDO_SUCCESS)
        rondo_device_lost(runtime, result, rondo_last_error());
}

static void *poll(void *argument)
{
    struct rondo_runtime *runtime = argument;
    struct rondo_poller *poller = runtime->poller;
    while (!__atomic_load_n(&poller->stopping, __ATOMIC_ACQUIRE)) {
        uint32_t seen = __atomic_load_n(&poller->event, __ATOMIC_SEQ_CST);
        rondo_queue_reap(runtime);
        call_back(runtime);
        rondo_observe_streams(runtime);
        rondo_hang_check(runtime);
        rondo_flight_dump_check(runtime);
        rondo_inspection_check(runtime);
        look_at_device(runtime);
        if (runtime->device->kind->poll_ns != 0)
            watch_callbacks(runtime);
        int outstanding = rondo_queue_outstanding(runtime);
        uint64_t pause = outstanding ? rondo_queue_restart(runtime, RONDO_ASSIST_NEVER) : 0;
        uint64_t most = outstanding && runtime->device->kind->poll_ns != 0 ? runtime->device->kind->poll_ns : TICK_NS;
        rondo_timeline_drain(runtime, &most);
        rondo_event_sleep(&poller->event, seen, &poller->sleepers, pause > 0 && pause < most ? pause : most);
    }
    return NULL;
}

rondo_result_t rondo_poller_create(struct rondo_runtime *runtime)
{
    rondo_result_t result = rondo_thread_start(&runtime->poller->thread, "rondo poller", STACK_BYTES, poll, runtime);
    runtime->poller->running = result == RONDO_SUCCESS;
    return result;
}

void rondo_poller_destroy(struct rondo_runtime *runtime)
{
    struct rondo_poller *poller = runtime->poller;
    if (poller == NULL || !poller->running)
        return;
    __atomic_store_n(&poller->stopping, 1, __ATOMIC_RELEASE);
    rondo_poller_wake(runtime);
    pthread_join(poller->thread, NULL);
    poller->running = 0;
}
