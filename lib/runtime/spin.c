/*
 * See lib/runtime/spin.h. A task that is granted less than a peer's answer takes is preempted although no rank is stuck. One
 * that is granted much more delays the other tasks when a rank is stuck (DFCCL, section 4.5, balances the same two costs). Here
 * a task costs little to leave, because what it waits for is looked at together with what the others wait for. So grants are
 * short while there are other tasks, and progress does not raise them, as it does in DFCCL: `rondo bench policy` compares these
 * values with others. A task that is alone has nothing to give way to.
 */
#include "lib/runtime/spin.h"

#include "lib/connection/exchange.h"
#include "lib/context/handles.h"
#include "device/abi/platform.h"
#include "lib/base/error.h"

#include <stdlib.h>

static const struct rondo_budgets of_place[RONDO_SPIN_PLACES] = {
    [RONDO_SPIN_ON_HOST] = {.initial = 300, .alone = 2000, .cap = 300},
    /* The rank that is waited for may need this very processor: until it has been given away once. */
    [RONDO_SPIN_ON_SHARED_CORES] = {.initial = 500, .alone = 500, .cap = 20000},
    /* The waiting thread moves the proxy's slots between two visits of tasks, so a visit that waits long delays the slot that
     * it waits for. */
    [RONDO_SPIN_ACROSS_HOSTS] = {.initial = 200, .alone = 200, .cap = 200},
    [RONDO_SPIN_ON_GPU] = {.initial = 2000, .alone = 16000, .ordered = 64000, .hold = 200000, .cap = 2000},
};

/* What is measured: a barrier of all ranks, from the host. */
#define ROUNDS  200
#define QUICK   20    /* of them are quicker than the one that counts: the others may have met anything on the way */
#define LONGEST 16000 /* that counts, where processors are shared; longer waits are lost for other tasks */
#define LEAST   200   /* of a grant */

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

struct rondo_budgets rondo_spin_budgets(const struct rondo_budgets *asked, enum rondo_spin_place place)
{
    struct rondo_budgets budgets = of_place[place];
    if (asked->initial != 0) {
        budgets.initial = budgets.alone = asked->initial;
        budgets.ordered = budgets.hold = 0;
    }
    if (asked->cap != 0) {
        budgets.cap = asked->cap;
        if (asked->initial == 0) {
            budgets.initial = least(budgets.initial, asked->cap);
            budgets.alone = least(budgets.alone, asked->cap);
            budgets.ordered = least(budgets.ordered, asked->cap);
        }
    }
    if (budgets.cap < budgets.initial)
        budgets.cap = budgets.initial;
    if (budgets.ordered < budgets.initial)
        budgets.ordered = budgets.initial;
    return budgets;
}

/* For an answer that takes so long, from call to return: some of that is the way between caller and daemon, and on a GPU nearly
 * all of it. */
static struct rondo_budgets suit(uint64_t answer, rondo_device_t device)
{
    const int on_gpu = device == RONDO_DEVICE_CUDA;
    const uint64_t wanted = answer / (on_gpu ? 8 : 2), initial = wanted < LEAST ? LEAST : wanted;
    return (struct rondo_budgets){.initial = initial,
                                  .alone = (on_gpu ? 8 : 4) * initial,
                                  .ordered = (on_gpu ? 32 : 1) * initial,
                                  .hold = (on_gpu ? 100 : 0) * initial,
                                  .cap = initial};
}

static int by_value(const void *a, const void *b)
{
    uint64_t first = *(const uint64_t *) a, second = *(const uint64_t *) b;
    return first < second ? -1 : first > second;
}

/* The daemon is idle, or soon will be, and reads its policy in its next round at the earliest. */
static rondo_result_t put_in_force(struct rondo_device *device, const struct rondo_budgets *budgets)
{
    const rondo_result_t result = device->kind->synchronize(device);
    if (result == RONDO_SUCCESS)
        rondo_device_set_budgets(device, budgets);
    return result;
}

static rondo_result_t measure(struct rondo_runtime *runtime, struct rondo_budgets *budgets)
{
    uint64_t times[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t start = rondo_clock_ns();
        rondo_result_t result = rondo_barrier(runtime->world->handle);
        if (result != RONDO_SUCCESS)
            return result;
        times[round] = rondo_clock_ns() - start;
    }
    qsort(times, ROUNDS, sizeof(times[0]), by_value);
    uint64_t answer = times[QUICK] < LONGEST ? times[QUICK] : LONGEST;
    uint64_t *answers = calloc((size_t) runtime->size, sizeof(*answers));
    if (answers == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for the times of %d ranks", runtime->size);
    rondo_result_t result = rondo_exchange(runtime->world, "profile", &answer, sizeof(answer), answers);
    for (int rank = 0; rank < runtime->size; rank++) /* the longest */
        answer = answers[rank] > answer ? answers[rank] : answer;
    free(answers);
    *budgets = suit(answer, runtime->device_type);
    if (result == RONDO_SUCCESS)
        rondo_log(RONDO_LOG_INFO, runtime->rank,
                  "profile: an answer takes %llu ns; waits may take %llu ns, and %llu of a task that is alone",
                  (unsigned long long) answer, (unsigned long long) budgets->initial, (unsigned long long) budgets->alone);
    return result;
}

rondo_result_t rondo_spin_profile(struct rondo_runtime *runtime)
{
    struct rondo_budgets budgets;
    const rondo_result_t result = measure(runtime, &budgets);
    return result == RONDO_SUCCESS ? put_in_force(runtime->device, &budgets) : result;
}

rondo_result_t rondo_spin_measure(rondo_t handle, struct rondo_spin *spin)
{
    struct rondo_runtime *runtime;
    rondo_result_t result = rondo_spin_get(handle, spin);
    if (result == RONDO_SUCCESS)
        result = rondo_runtime_of(handle, "rondo_spin_measure", &runtime);
    return result == RONDO_SUCCESS ? measure(runtime, &spin->budgets) : result;
}

rondo_result_t rondo_spin_get(rondo_t handle, struct rondo_spin *spin)
{
    struct rondo_runtime *runtime;
    rondo_result_t result = rondo_runtime_of(handle, "rondo_spin_get", &runtime);
    if (result != RONDO_SUCCESS)
        return result;
    const struct rondo_policy *policy = &runtime->device->daemon->policy;
    const uint64_t ticks = runtime->device->ticks_per_us;
    *spin = (struct rondo_spin){.budgets = {.initial = policy->budgets.initial * 1000 / ticks,
                                            .alone = policy->budgets.alone * 1000 / ticks,
                                            .ordered = policy->budgets.ordered * 1000 / ticks,
                                            .hold = policy->budgets.hold * 1000 / ticks,
                                            .cap = policy->budgets.cap * 1000 / ticks},
                                .decay = policy->decay,
                                .boost = policy->boost};
    return RONDO_SUCCESS;
}

rondo_result_t rondo_spin_set(rondo_t handle, const struct rondo_spin *spin)
{
    struct rondo_runtime *runtime;
    rondo_result_t result = rondo_runtime_of(handle, "rondo_spin_set", &runtime);
    if (result == RONDO_SUCCESS)
        result = put_in_force(runtime->device, &spin->budgets);
    if (result == RONDO_SUCCESS) {
        runtime->device->daemon->policy.decay = spin->decay;
        runtime->device->daemon->policy.boost = spin->boost;
    }
    return result;
}
