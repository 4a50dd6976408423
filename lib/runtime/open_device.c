/* See lib/runtime/open_device.h. */
#include "lib/runtime/open_device.h"

#if RONDO_WITH_CUDA
#include "device/cuda/device.h"
#endif
#include "lib/base/error.h"
#include "lib/runtime/common_settings.h"
#include "lib/runtime/spin.h"
#include "lib/select/select.h"
#include "lib/submission/poller.h"
#include "lib/submission/queue.h"
#include "lib/submission/state.h"
#include "proxy/proxies.h"

#define GPU_SPREAD 5 /* blocks between a lane's first one and the next lane's; no divisor of their number */

/* wake of the device options: wakes the proxies. Any thread. */
static void wake(void *argument)
{
    rondo_proxies_wake(((struct rondo_runtime *) argument)->proxies);
}

/* notify of the device options: operations have been completed, or the daemon has quit. Called by a thread of the device, which
 * takes the completions and so wakes the threads that wait for them. The poller is woken only for callbacks and for a daemon
 * that must be restarted. */
static void notify(void *argument)
{
    struct rondo_runtime *runtime = argument;
    rondo_queue_reap(runtime);
    if (!rondo_queue_outstanding(runtime) || rondo_device_alive(runtime->device))
        return;
    rondo_poller_wake(runtime);
    rondo_queue_wake(runtime);
}

rondo_result_t rondo_choose_device(struct rondo_runtime *runtime, const rondo_config_t *config, int local_rank,
                                   const struct rondo_startup *startup)
{
    const char *why = "this build is without CUDA";
    int count = 0;
    runtime->device_index = -1;
    runtime->device_type = RONDO_DEVICE_HOST;
    if (startup->device == RONDO_DEVICE_HOST)
        return RONDO_SUCCESS;
#if RONDO_WITH_CUDA
    count = rondo_cuda_count(&why);
#endif
    int index = config != NULL ? config->device_index : -1;
    if (count == 0 && startup->device == RONDO_DEVICE_AUTO && index < 0)
        return RONDO_SUCCESS;
    if (count == 0)
        return rondo_fail(RONDO_ERR_UNSUPPORTED, "there is no CUDA device: %s", why);
    if (index >= count)
        return rondo_fail(RONDO_ERR_ARGUMENT, "device_index %d: this machine has %d GPUs", index, count);
    runtime->device_type = RONDO_DEVICE_CUDA;
    runtime->device_index = index >= 0 ? index : (local_rank >= 0 ? local_rank : runtime->rank) % count;
    return RONDO_SUCCESS;
}

/* Where this rank's blocks wait, of which the host has so many. A wait for a slot that the proxy brings yields too, because the
 * slot comes late, and the waiting thread may have to bring it. */
static enum rondo_spin_place place_of(const struct rondo_runtime *runtime, uint32_t threads)
{
    if (runtime->device_type == RONDO_DEVICE_CUDA)
        return RONDO_SPIN_ON_GPU;
    if (rondo_spans_hosts(runtime))
        return RONDO_SPIN_ACROSS_HOSTS;
    return threads > runtime->peers[runtime->rank].cores ? RONDO_SPIN_ON_SHARED_CORES : RONDO_SPIN_ON_HOST;
}

rondo_result_t rondo_open_device(struct rondo_runtime *runtime, struct rondo_startup *startup)
{
    const uint32_t near = rondo_neighbours(runtime, runtime->rank);
    struct rondo_device_options options = {.rank = runtime->rank,
                                           .blocks = rondo_blocks_of(runtime, runtime->rank, near),
                                           .lane_contexts = rondo_lane_contexts(runtime),
                                           .stream_blocks = startup->sm > 0 ? (uint32_t) startup->sm : 0,
                                           .single_copy_peers = runtime->single_copy_peers,
                                           .trace = runtime->trace != NULL,
                                           .notify = notify,
                                           .notify_argument = runtime,
                                           .wake = wake,
                                           .wake_argument = runtime};
    const struct rondo_device_kind *kind = &rondo_host_device;
    const struct rondo_budgets asked = startup->policy.budgets;
    const enum rondo_spin_place place = place_of(runtime, options.blocks * near);
    startup->policy.budgets = rondo_spin_budgets(&asked, place);
    if (startup->fixed) {
        startup->policy.budgets.ordered = startup->policy.budgets.initial;
        startup->policy.budgets.hold = 0;
    }
    startup->policy.yield_mask = place == RONDO_SPIN_ON_SHARED_CORES || rondo_spans_hosts(runtime) ? 15 : 8191;
    if (runtime->device_type == RONDO_DEVICE_CUDA) /* many small operations are spread over all blocks */
        startup->policy.spread = GPU_SPREAD;
    options.policy = startup->policy;
    options.index = runtime->device_index;
#if RONDO_WITH_CUDA
    if (runtime->device_type == RONDO_DEVICE_CUDA)
        kind = &rondo_cuda_device;
#endif
    rondo_result_t result = kind->create(&runtime->device, &options);
    if (result == RONDO_SUCCESS &&
        (runtime->nothing = runtime->device->kind->allocate(runtime->device, RONDO_CACHE_LINE)) == NULL)
        result = rondo_fail(RONDO_ERR_MEMORY, "no device memory");
    return result;
}
