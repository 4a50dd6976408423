/* The public calls that ask a runtime something, or tell it: its device, its counts, whether its device is idle, and what
 * waiting threads call. */
#include "lib/base/error.h"
#include "lib/context/handles.h"
#include "lib/context/runtime.h"
#include "lib/diagnostics/hang.h"

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
    return rondo_hang_count(runtime, stats);
}
