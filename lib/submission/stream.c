/* Enqueuing operations on streams, and freeing their memory after their kernels (lib/submission/stream.h). Relies on the lane's
 * count of executed operations in device memory. */
#include "lib/submission/stream.h"

#include "lib/submission/check.h"
#include "lib/submission/reach.h"
#include "lib/connection/copy_engine.h"
#include "device/abi/platform.h"
#include "lib/submission/request.h"
#include "lib/select/select.h"
#include "lib/diagnostics/nvtx.h"
#include "lib/diagnostics/timeline.h"
#include "lib/base/error.h"
#include "lib/submission/queue.h"

#include <stdlib.h>
#include <string.h>

#define RETIRED_LEAST 64 /* requests, before the first look at which are over */

rondo_result_t rondo_stream_check(struct rondo_comm *comm, const char *function, void *stream, int *captured)
{
    struct rondo_runtime *runtime = comm->runtime;
    const struct rondo_device_kind *kind = runtime->device->kind;
    *captured = 0;
    if (kind->enqueue == NULL)
        return rondo_fail(RONDO_ERR_UNSUPPORTED, "%s: the %s device has no streams", function, kind->name);
    const rondo_result_t result = kind->is_captured(runtime->device, stream, captured);
    return result == RONDO_SUCCESS
               ? result
               : rondo_comm_conclude(comm, function, rondo_fail(result, "%s: %s", function, rondo_last_error()));
}

/* *count: how many operations in stream order the lane has executed, with its life in the upper half. Reads device memory. */
static rondo_result_t count_executed(const struct rondo_host_lane *lane, uint64_t *count)
{
    struct rondo_device *device = lane->comm->runtime->device;
    return device->kind->download(device, count, &device->daemon->lanes[lane->index].ordered, sizeof(*count));
}

rondo_result_t rondo_stream_idle(const struct rondo_host_lane *lane, int *idle)
{
    uint64_t enqueued = lane->requests->enqueued, count = enqueued;
    rondo_result_t result = (uint32_t) enqueued != 0 ? count_executed(lane, &count) : RONDO_SUCCESS;
    *idle = result == RONDO_SUCCESS && count == enqueued;
    return *idle && lane->id == RONDO_LANE_STREAM ? rondo_copy_engine_idle(lane->comm, idle) : result;
}

/* ---- retired requests: they have layouts, scratch and residuals that their kernels may still use ---- */

/* Whether the request's kernel has ended, as far as is known. */
static int is_executed(const struct rondo_request *request)
{
    uint64_t count = 0;
    /* A graph may be launched at any time. */
    return request->device_number != RONDO_UNORDERED && count_executed(request->lane, &count) == RONDO_SUCCESS &&
           count > request->device_number;
}

/* Frees an enqueued request, at once or when its kernel has ended. Stream lock held. */
static void retire(struct rondo_request *request)
{
    struct rondo_comm *comm = request->comm;
    if (request->tables[0] == NULL && request->tables[1] == NULL && request->tables[2] == NULL && request->scratch == NULL &&
        request->residual == NULL) {
        rondo_request_destroy(request); /* the kernel has a copy of the rest */
        return;
    }
    request->next_grouped = comm->requests->retired;
    comm->requests->retired = request;
    if (++comm->requests->retired_count < (comm->requests->retired_limit > 0 ? comm->requests->retired_limit : RETIRED_LEAST))
        return;
    struct rondo_request **link = &comm->requests->retired;
    while (*link != NULL) {
        struct rondo_request *old = *link;
        if (!is_executed(old)) {
            link = &old->next_grouped;
            continue;
        }
        *link = old->next_grouped;
        comm->requests->retired_count--;
        rondo_request_destroy(old);
    }
    /* As many again may retire before the next look, so that the cost of looking per request does not grow with their number.
     */
    comm->requests->retired_limit =
        2 * comm->requests->retired_count > RETIRED_LEAST ? 2 * comm->requests->retired_count : RETIRED_LEAST;
}

/* ---- memory of kernels whose operations do not fit into their arguments ---- */

/* Frees the lists that no kernel uses any more. end: removes all; memory of a kernel that may still run is then left to the end
 * of the runtime's device. Stream lock held, or end. Acquire: the kernel's last reads come before the word that ends them. */
static void return_lists(struct rondo_comm *comm, int end)
{
    struct rondo_device *device = comm->runtime->device;
    struct rondo_stream_list **link = &comm->requests->lists, *list;
    while ((list = *link) != NULL) {
        const int captured = list->over == NULL,
                  over = !captured && (int32_t) (rondo_load_acquire32(list->over) - list->until) >= 0;
        if (!over && !end) {
            link = &list->next;
            continue;
        }
        *link = list->next;
        if (over || captured) {
            device->kind->release_host(device, list->host, list->host_bytes);
            device->kind->release(device, list->memory, list->memory_bytes);
        }
        free(list);
    }
}

void rondo_stream_forget(struct rondo_comm *comm)
{
    return_lists(comm, 1);
    while (comm->requests->retired != NULL) {
        struct rondo_request *request = comm->requests->retired;
        comm->requests->retired = request->next_grouped;
        rondo_request_destroy(request);
    }
    comm->requests->retired_count = 0;
}

/* ---- enqueuing ---- */

/* Fills in *operation, and gives a request outside of a graph its place in the lane's order. Stream lock held. */
static void describe(struct rondo_request *request, uint64_t stream_id, struct rondo_stream_operation *operation)
{
    struct rondo_host_lane *lane = request->lane;
    operation->operation = *request->operation;
    operation->blocks = request->blocks;
    if (request->captured) {
        operation->order = RONDO_UNORDERED;
    } else {
        /* On one stream an operation has ended when the next one begins. */
        operation->order = lane->requests->enqueued++;
        operation->waits = (uint32_t) operation->order > 0 && (stream_id == 0 || lane->requests->stream_id != stream_id);
        lane->requests->stream_id = stream_id;
    }
    request->device_number = operation->order;
    request->fresh = 1; /* the daemon's copy may have an older state of the connectors */
}

/* Records operations that have been enqueued. Of their completion no record tells, because no thread of the host sees it. */
static void record(struct rondo_runtime *runtime, struct rondo_request *const *requests, int count)
{
    const uint64_t ticks = rondo_flight_ticks(runtime->flight);
    rondo_lock_take(&runtime->queue->lock);
    for (int i = 0; i < count; i++)
        rondo_flight_begin(runtime->flight, &requests[i]->recorded, (uint32_t) requests[i]->device_number, RONDO_FLIGHT_STREAM,
                           ticks, 0);
    rondo_lock_drop(&runtime->queue->lock);
    for (int i = 0; i < count && runtime->nvtx != NULL; i++)
        rondo_nvtx_mark(runtime->nvtx, requests[i]->call.kind, requests[i]->recorded.call.bytes);
}

/* Asks for the comparison of the calls (check.h). A mismatch fails the communicator, and so ends its kernels. */
static void ask(struct rondo_request *request)
{
    struct rondo_queue *queue = request->runtime->queue;
    if (!request->checked || request->captured)
        return;
    rondo_lock_take(&queue->lock);
    request->number = request->lane->requests->started++;
    rondo_lock_drop(&queue->lock);
    rondo_check_ask(request);
}

/* Enqueues the requests as one kernel. Returns RONDO_ERR_MEMORY or the launch's error; then none has taken a place in its lane.
 */
static rondo_result_t launch(struct rondo_comm *comm, struct rondo_request *const *requests, int count)
{
    struct rondo_device *device = comm->runtime->device;
    struct rondo_stream_launch what = {.count = count, .stream = requests[0]->stream, .captured = requests[0]->captured};
    struct rondo_stream_list *list = NULL;
    what.operations = calloc((size_t) count, sizeof(*what.operations));
    if (what.operations == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory to enqueue %d operations", count);
    if (!what.captured)
        what.stream_id = device->kind->stream_id(device, what.stream);
    /* The lock makes the order of the numbers that of the launches: an operation that waited for one behind it in its stream
     * would wait for ever. */
    pthread_mutex_lock(&comm->requests->stream_lock);
    return_lists(comm, 0);
    for (int i = 0; i < count; i++) {
        size_t bytes = rondo_call_bytes(comm, &requests[i]->call);
        what.bytes = bytes > what.bytes ? bytes : what.bytes;
        describe(requests[i], what.stream_id, &what.operations[i]);
        for (int k = 0; k < i; k++) /* operations of one kernel begin together, although they are on one stream */
            what.operations[i].waits |= requests[k]->lane == requests[i]->lane;
    }
    rondo_result_t result = device->kind->enqueue(device, &what, &list);
    for (int i = 0; i < count && result == RONDO_SUCCESS; i++)
        rondo_timeline_enqueue(comm->runtime, &(struct rondo_timeline_operation){.call = &requests[i]->call,
                                                                                 .lane = requests[i]->lane->index,
                                                                                 .captured = requests[i]->captured,
                                                                                 .number = requests[i]->device_number});
    for (int i = 0; i < count && result != RONDO_SUCCESS; i++)
        if (!requests[i]->captured)
            requests[i]->lane->requests->enqueued--;
    if (result == RONDO_SUCCESS)
        record(comm->runtime, requests, count);
    if (list != NULL) {
        list->next = comm->requests->lists;
        comm->requests->lists = list;
    }
    pthread_mutex_unlock(&comm->requests->stream_lock);
    free(what.operations);
    return result;
}

/* Has copy engines carry out an operation. They need no place in the lane's order: they have their own. */
static rondo_result_t copy(struct rondo_comm *comm, struct rondo_request *request)
{
    struct rondo_device *device = comm->runtime->device;
    const struct rondo_operation *operation = request->operation;
    const struct rondo_copy_operation what = {.plan = request->copied,
                                              .operation = operation,
                                              .output_bytes = rondo_buffer_bytes(comm, &request->call, 1),
                                              .stream = request->stream,
                                              .stream_id = device->kind->stream_id(device, request->stream)};
    pthread_mutex_lock(&comm->requests->stream_lock);
    rondo_result_t result = rondo_copy_engine_enqueue(comm, &what);
    if (result == RONDO_SUCCESS)
        record(comm->runtime, &request, 1);
    pthread_mutex_unlock(&comm->requests->stream_lock);
    return result;
}

/* Hands to the copy engines what is for them, before all else, which is the same on all ranks. A graph could not count the
 * signals of its launches: what is captured is left to kernels. Takes those requests out of the list. */
static rondo_result_t copy_some(struct rondo_comm *comm, struct rondo_request **requests, int *count)
{
    rondo_result_t result = RONDO_SUCCESS;
    int left = 0;
    for (int i = 0; i < *count && result == RONDO_SUCCESS; i++)
        if (requests[i]->copied != NULL && !requests[i]->captured)
            result = copy(comm, requests[i]);
        else
            requests[left++] = requests[i];
    *count = left;
    return result;
}

/* Enqueues the requests. Operations of one lane are in the same order on all ranks, so each has a launch of its own, whose
 * blocks need not wait for those before. Operations of several lanes may wait for each other across ranks, and are launched
 * together.
 */
static rondo_result_t launch_kernels(struct rondo_comm *comm, struct rondo_request *const *requests, int count)
{
    int same = 1, twice = 0;
    rondo_result_t result = RONDO_SUCCESS;
    for (int i = 1; i < count; i++)
        same &= requests[i]->lane == requests[0]->lane;
    for (int i = 0; i < count && !same && requests[0]->captured; i++)
        for (int k = 0; k < i; k++)
            twice |= requests[i]->lane == requests[k]->lane;
    if (twice) /* a graph's launches have no numbers to wait for */
        return rondo_fail(RONDO_ERR_UNSUPPORTED,
                          "a group of %d operations in a graph: some are of one lane (collectives, or messages "
                          "to or from one peer), which must be captured one after the other",
                          count);
    if (!same)
        return launch(comm, requests, count);
    for (int i = 0; i < count && result == RONDO_SUCCESS; i++)
        result = launch(comm, requests + i, 1);
    return result;
}

static rondo_result_t launch_all(struct rondo_comm *comm, struct rondo_request *const *requests, int count)
{
    struct rondo_request *small[4], **left = count > 4 ? malloc((size_t) count * sizeof(struct rondo_request *)) : small;
    if (left == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory to enqueue %d operations", count);
    memcpy(left, requests, (size_t) count * sizeof(struct rondo_request *));
    rondo_result_t result = copy_some(comm, left, &count);
    if (result == RONDO_SUCCESS && count > 0)
        result = launch_kernels(comm, left, count);
    if (left != small)
        free(left);
    return result;
}

rondo_result_t rondo_stream_enqueue(struct rondo_request *first)
{
    struct rondo_comm *comm = first->comm;
    struct rondo_request *small[4], **requests = small;
    int all = 0, count = 0;
    rondo_result_t result = rondo_comm_failure(comm);
    if (result != RONDO_SUCCESS)
        rondo_fail(result, "%s: %s", rondo_kind_name(first->call.kind), comm->failure);
    for (const struct rondo_request *request = first; request != NULL; request = request->next_grouped)
        all++;
    if (all > 4)
        requests = calloc((size_t) all, sizeof(struct rondo_request *));
    if (requests == NULL)
        return rondo_comm_conclude(comm, rondo_kind_name(first->call.kind),
                                   rondo_fail(RONDO_ERR_MEMORY, "no memory to enqueue %d operations", all));
    struct rondo_request *next;
    all = 0;
    for (struct rondo_request *request = first; request != NULL; request = next) {
        next = request->next_grouped;
        requests[all++] = request;
    }
    for (int i = 0; i < all; i++)
        if (!requests[i]->empty) {
            struct rondo_request *request = requests[i];
            requests[i] = requests[count]; /* requests that move something come first */
            requests[count++] = request;
        }
    if (result == RONDO_SUCCESS && count > 0)
        result = rondo_comm_conclude(comm, rondo_kind_name(requests[0]->call.kind), launch_all(comm, requests, count));
    for (int i = 0; i < all; i++) {
        if (i < count && result == RONDO_SUCCESS)
            ask(requests[i]);
        if (requests[i]->persistent)
            continue;
        pthread_mutex_lock(&comm->requests->stream_lock);
        retire(requests[i]);
        pthread_mutex_unlock(&comm->requests->stream_lock);
    }
    if (requests != small)
        free(requests);
    return result;
}
