/*
 * Measuring the spin thresholds (lib/runtime/profile.h). A task that is granted fewer polls than a peer's answer takes is
 * preempted although no rank is stuck. A task that is granted many more delays the other tasks when a rank is stuck. So the
 * first task's grant is a few answer times, in polls (DFCCL, section 4.5, balances the same two costs).
 */
#include "lib/runtime/profile.h"

#include "lib/connection/mailbox.h"
#include "device/abi/platform.h"
#include "lib/base/error.h"

#include <stdlib.h>

#define ROUNDS       64    /* barriers whose median is the answer time */
#define POLLS        20000 /* whose mean is the cost of one */
#define ANSWER_TIMES 8     /* in a grant */
#define CAP_FACTOR   20    /* DFCCL section 6.4.1: a grant after success is twentyfold */

static int by_value(const void *a, const void *b)
{
    uint64_t first = *(const uint64_t *) a, second = *(const uint64_t *) b;
    return first < second ? -1 : first > second;
}

/* What a poll of a word and the pause after it take this thread. Not 0. */
static uint64_t poll_cost_ns(const struct rondo_runtime *runtime)
{
    uint64_t start = rondo_clock_ns();
    for (uint64_t poll = 0; poll < POLLS; poll++) {
        rondo_load_acquire(&runtime->device->daemon->queues->state);
        rondo_relax(poll, runtime->device->daemon->policy.yield_mask);
    }
    uint64_t cost = (rondo_clock_ns() - start) / POLLS;
    return cost == 0 ? 1 : cost;
}

rondo_result_t rondo_profile(struct rondo_runtime *runtime)
{
    uint64_t times[ROUNDS], grant;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t start = rondo_clock_ns();
        rondo_result_t result = rondo_barrier(runtime->world->handle);
        if (result != RONDO_SUCCESS)
            return result;
        times[round] = rondo_clock_ns() - start;
    }
    qsort(times, ROUNDS, sizeof(times[0]), by_value);
    grant = times[ROUNDS / 2] * ANSWER_TIMES / poll_cost_ns(runtime);
    uint64_t *grants = calloc((size_t) runtime->size, sizeof(*grants));
    if (grants == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for the grants of %d ranks", runtime->size);
    rondo_result_t result = rondo_exchange(runtime->world, "profile", &grant, sizeof(grant), grants);
    for (int rank = 0; rank < runtime->size; rank++) /* the largest, and at least 100 */
        grant = grants[rank] > grant ? grants[rank] : grant;
    free(grants);
    if (result != RONDO_SUCCESS)
        return result;
    if (grant < 100)
        grant = 100;
    /* The daemon is out or idle, and reads the policy in its next round at the earliest. */
    struct rondo_device *device = runtime->device;
    device->kind->synchronize(device);
    device->daemon->policy.initial = device->daemon->policy.alone = grant;
    device->daemon->policy.cap = grant * CAP_FACTOR;
    rondo_log(RONDO_LOG_INFO, runtime->rank, "profile: an answer takes %llu ns; first task %llu polls, at most %llu",
              (unsigned long long) times[ROUNDS / 2], (unsigned long long) grant, (unsigned long long) (grant * CAP_FACTOR));
    return result;
}
