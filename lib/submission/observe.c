/* Observing operations for hang reports (lib/submission/observe.h). Relies on the daemon's reports in device memory, and on
 * words in host memory that kernels on streams write while they wait. */
#include "lib/submission/observe.h"

#include "device/abi/platform.h"
#include "lib/call/call.h"
#include "lib/connection/comm_connections.h"
#include "lib/connection/window.h"
#include "lib/submission/poller.h"
#include "lib/submission/queue.h"

#include <stdio.h>
#include <string.h>

#define WATCH_NS 100000000u

/* Fills in which operation's ranks the lane connects; the entry's other fields are 0. */
static void locate(const struct rondo_host_lane *lane, struct rondo_hang_entry *entry)
{
    const struct rondo_comm *comm = lane->comm;
    memset(entry, 0, sizeof(*entry));
    entry->comm = comm->id;
    entry->lane = lane->id;
    entry->waiting_on = entry->sender = entry->receiver = -1;
    if (lane->peer >= 0) {
        entry->sender = comm->members[lane->outgoing ? comm->rank : lane->peer];
        entry->receiver = comm->members[lane->outgoing ? lane->peer : comm->rank];
        entry->members[0] = entry->sender;
        entry->members[1] = entry->receiver;
        entry->size = entry->sender == entry->receiver ? 1 : 2;
        return;
    }
    entry->size = comm->size;
    for (int i = 0; i < comm->size && i < RONDO_HANG_MEMBERS; i++)
        entry->members[i] = comm->members[i];
}

/* The part of the timeout after which an operation is reported and ended together with another that is overdue. */
#define TOGETHER 0.95

/* Whether that part (much) of the timeout has passed. now may have been read before the request was started. */
static int is_overdue(const struct rondo_runtime *runtime, const struct rondo_request *request, uint64_t now, double much)
{
    return now > request->started_ns && (double) (now - request->started_ns) / 1e9 >= much * runtime->settings.timeout;
}

/* Reads a word of the device's memory. */
static uint64_t look(const struct rondo_runtime *runtime, const uint64_t *word)
{
    uint64_t value = 0;
    runtime->device->kind->download(runtime->device, &value, word, sizeof(value));
    return value;
}

/* Describes an active request with a lane. Queue lock held. */
static void observe(const struct rondo_runtime *runtime, const struct rondo_request *request, uint64_t now,
                    struct rondo_hang_entry *entry)
{
    const struct rondo_daemon *daemon = runtime->device->daemon;
    const struct rondo_host_lane *lane = request->lane;
    locate(lane, entry);
    entry->number = request->number;
    entry->overdue = is_overdue(runtime, request, now, TOGETHER);
    rondo_call_describe(&request->call, entry->text, sizeof(entry->text));
    if (request->state != RONDO_REQUEST_SUBMITTED || lane->requests->finished != request->device_number)
        return;
    for (uint32_t b = 0; b < daemon->block_count; b++)
        entry->executing |= look(runtime, &daemon->reports[b].current_lane) == (uint64_t) lane->index + 1;
    for (uint32_t c = 0; c < daemon->lane_contexts && entry->waiting_on < 0; c++)
        entry->waiting_on = (int32_t) look(runtime, &daemon->waiting[lane->index * daemon->lane_contexts + c]) - 1;
}

/* Describes an operation in stream order whose kernel waits. Its call is no longer known. Runtime lock held. */
static void observe_stream(const struct rondo_runtime *runtime, const struct rondo_host_lane *lane, uint64_t now,
                           struct rondo_hang_entry *entry)
{
    locate(lane, entry);
    entry->number = RONDO_STUCK_NUMBER(lane->requests->stuck);
    entry->overdue = (double) (now - lane->requests->stuck_ns) / 1e9 >= runtime->settings.timeout;
    snprintf(entry->text, sizeof(entry->text), "operation %llu of a stream", (unsigned long long) entry->number);
}

/* Describes the active requests, and of every lane a waiting kernel or the count of operations that have been started. */
static size_t observe_all(struct rondo_runtime *runtime, struct rondo_hang_entry *entries, size_t most)
{
    size_t count = 0;
    uint64_t now = rondo_clock_ns();
    pthread_mutex_lock(&runtime->lock);
    rondo_lock_take(&runtime->queue->lock);
    for (const struct rondo_request *request = runtime->queue->active; request != NULL && count < most;
         request = request->active_after)
        if (request->lane != NULL)
            observe(runtime, request, now, &entries[count++]);
    for (const struct rondo_comm *comm = runtime->comms; comm != NULL; comm = comm->next)
        for (const struct rondo_host_lane *lane = comm->connections->lanes; lane != NULL && count < most; lane = lane->next) {
            if (lane->requests->stuck != 0) {
                observe_stream(runtime, lane, now, &entries[count++]);
                continue;
            }
            locate(lane, &entries[count]);
            const uint64_t enqueued = (uint32_t) lane->requests->enqueued; /* without the life in its upper half */
            entries[count++].number = lane->requests->started > enqueued ? lane->requests->started : enqueued;
        }
    rondo_lock_drop(&runtime->queue->lock);
    pthread_mutex_unlock(&runtime->lock);
    return count;
}

/* Sets *comm to a communicator that has an operation beyond the timeout and has not failed. Returns 0 if there is none. */
static int find_overdue(struct rondo_runtime *runtime, uint64_t now, uint64_t *comm)
{
    int found = 0;
    rondo_lock_take(&runtime->queue->lock);
    for (const struct rondo_request *request = runtime->queue->active; request != NULL && !found;
         request = request->active_after)
        if (is_overdue(runtime, request, now, 1) && rondo_comm_failure(request->comm) == RONDO_SUCCESS) {
            *comm = request->comm->id;
            found = 1;
        }
    rondo_lock_drop(&runtime->queue->lock);
    if (!found && runtime->poller->on_stream) {
        *comm = runtime->poller->stream_comm;
        return 1;
    }
    return found;
}

/* Kernels report that they wait by a word in host memory, because no CUDA call is certain to return while they do. */
void rondo_observe_streams(struct rondo_runtime *runtime)
{
    const struct rondo_queues *queues = runtime->device->daemon->queues;
    struct rondo_poller *poller = runtime->poller;
    const uint64_t now = rondo_clock_ns();
    if (runtime->device->kind->enqueue == NULL || now - poller->watched_ns < WATCH_NS)
        return;
    poller->watched_ns = now;
    poller->on_stream = 0;
    pthread_mutex_lock(&runtime->lock);
    for (const struct rondo_comm *comm = runtime->comms; comm != NULL; comm = comm->next)
        for (struct rondo_host_lane *lane = comm->connections->lanes; lane != NULL; lane = lane->next) {
            uint64_t stuck = rondo_load_relaxed(&queues->stuck[lane->index]);
            if (stuck != lane->requests->stuck) {
                lane->requests->stuck = stuck;
                lane->requests->stuck_ns = now;
            }
            if (stuck != 0 && runtime->settings.timeout > 0 &&
                (double) (now - lane->requests->stuck_ns) / 1e9 >= runtime->settings.timeout &&
                rondo_comm_failure(comm) == RONDO_SUCCESS) {
                poller->stream_comm = comm->id;
                poller->on_stream = 1;
            }
        }
    pthread_mutex_unlock(&runtime->lock);
}

static rondo_result_t count(struct rondo_runtime *runtime, rondo_stats_t *stats)
{
    memset(stats, 0, sizeof(*stats));
    rondo_lock_take(&runtime->queue->lock);
    stats->submitted = runtime->queue->submitted;
    stats->completed = runtime->queue->completed;
    stats->daemon_starts = runtime->queue->starts;
    rondo_lock_drop(&runtime->queue->lock);
    const struct rondo_daemon *daemon = runtime->device->daemon;
    stats->daemon_quits = stats->daemon_starts - (uint64_t) rondo_device_alive(runtime->device);
    for (uint32_t b = 0; b < daemon->block_count; b++) {
        struct rondo_block_statistics block;
        rondo_result_t result =
            runtime->device->kind->download(runtime->device, &block, &daemon->reports[b].statistics, sizeof(block));
        if (result != RONDO_SUCCESS)
            return result;
        stats->preemptions += block.preemptions;
        stats->context_loads += block.context_loads;
        stats->context_saves += block.context_saves;
        stats->primitives += block.primitives;
        stats->bytes_sent += block.bytes_sent;
        stats->bytes_saved += block.bytes_saved;
        stats->spin_ns += block.spin_ticks * 1000 / runtime->device->ticks_per_us;
    }
    stats->memory_reserved = rondo_arena_reserved(runtime->arena);
    pthread_mutex_lock(&runtime->lock);
    for (const struct rondo_allocation *a = runtime->allocations; a != NULL; a = a->next)
        stats->memory_allocated += a->reserved;
    pthread_mutex_unlock(&runtime->lock);
    stats->memory_budget = rondo_arena_budget(runtime->arena);
    stats->stream_blocks = __atomic_load_n(&runtime->device->stream_blocks, __ATOMIC_RELAXED);
    return RONDO_SUCCESS;
}

const struct rondo_hang_observer rondo_hang_observer = {.observe = observe_all, .overdue = find_overdue, .count = count};
