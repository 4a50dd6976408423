/* The public calls that ask a runtime something, or tell it: its device, its counts, whether its device is idle, and what
 * waiting threads call. Relies on the queue lock and the runtime lock for what changes meanwhile. */
#include "lib/base/error.h"
#include "lib/context/handles.h"
#include "lib/context/runtime.h"
#include "lib/submission/queue.h"

#include <string.h>

/* Finds the runtime of a function with a result of that name. */
static rondo_result_t check(rondo_t handle, const void *out, const char *name, const char *function,
                            struct rondo_runtime **runtime)
{
    rondo_result_t result = rondo_runtime_of(handle, function, runtime);
    return result == RONDO_SUCCESS && out == NULL ? rondo_fail(RONDO_ERR_ARGUMENT, "%s: %s is NULL", function, name) : result;
}

rondo_result_t rondo_device(rondo_t handle, rondo_device_t *device)
{
    struct rondo_runtime *runtime;
    rondo_result_t result = check(handle, device, "device", "rondo_device", &runtime);
    if (result != RONDO_SUCCESS)
        return result;
    *device = runtime->device_type;
    return RONDO_SUCCESS;
}

rondo_result_t rondo_device_index(rondo_t handle, int *index)
{
    struct rondo_runtime *runtime;
    rondo_result_t result = check(handle, index, "index", "rondo_device_index", &runtime);
    if (result != RONDO_SUCCESS)
        return result;
    *index = runtime->device_index;
    return RONDO_SUCCESS;
}

rondo_result_t rondo_device_synchronize(rondo_t handle)
{
    struct rondo_runtime *runtime;
    rondo_result_t result = rondo_runtime_of(handle, "rondo_device_synchronize", &runtime);
    if (result != RONDO_SUCCESS)
        return result;
    return runtime->device->kind->synchronize(runtime->device);
}

rondo_result_t rondo_wait_callback(rondo_t handle, void (*function)(void *argument), void *argument)
{
    struct rondo_runtime *runtime;
    rondo_result_t result = rondo_runtime_of(handle, "rondo_wait_callback", &runtime);
    if (result != RONDO_SUCCESS)
        return result;
    __atomic_store_n(&runtime->wait_callback, NULL, __ATOMIC_RELEASE);
    runtime->wait_argument = argument;
    __atomic_store_n(&runtime->wait_callback, function, __ATOMIC_RELEASE); /* a thread that sees it sees the argument */
    return RONDO_SUCCESS;
}

rondo_result_t rondo_get_stats(rondo_t handle, rondo_stats_t *stats)
{
    struct rondo_runtime *runtime;
    rondo_result_t result = check(handle, stats, "stats", "rondo_get_stats", &runtime);
    if (result != RONDO_SUCCESS)
        return result;
    memset(stats, 0, sizeof(*stats));
    pthread_mutex_lock(&runtime->queue->lock);
    stats->submitted = runtime->queue->submitted;
    stats->completed = runtime->queue->completed;
    stats->daemon_starts = runtime->queue->starts;
    pthread_mutex_unlock(&runtime->queue->lock);
    const struct rondo_daemon *daemon = runtime->device->daemon;
    stats->daemon_quits = stats->daemon_starts - (uint64_t) rondo_device_alive(runtime->device);
    for (uint32_t b = 0; b < daemon->block_count; b++) {
        struct rondo_block_statistics block;
        result = runtime->device->kind->download(runtime->device, &block, &daemon->reports[b].statistics, sizeof(block));
        if (result != RONDO_SUCCESS)
            return result;
        stats->preemptions += block.preemptions;
        stats->context_loads += block.context_loads;
        stats->context_saves += block.context_saves;
        stats->primitives += block.primitives;
        stats->bytes_sent += block.bytes_sent;
        stats->bytes_saved += block.bytes_saved;
    }
    stats->memory_reserved = rondo_arena_reserved(runtime->arena);
    pthread_mutex_lock(&runtime->lock);
    for (const struct rondo_allocation *a = runtime->allocations; a != NULL; a = a->next)
        stats->memory_allocated += a->reserved;
    pthread_mutex_unlock(&runtime->lock);
    stats->memory_budget = rondo_arena_budget(runtime->arena);
    return RONDO_SUCCESS;
}
