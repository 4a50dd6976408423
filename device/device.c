/* The daemon's tables, the same for every kind of device. */
#include "device/device.h"

#include "lib/base/error.h"
#include "device/abi/platform.h"

#include <stdlib.h>
#include <string.h>

struct table {
    void **place;
    size_t bytes;
};

enum { TABLES = 11 };

static void list_tables(struct rondo_daemon *daemon, struct rondo_task **tasks, struct table tables[TABLES])
{
    size_t contexts = (size_t) daemon->lane_count * daemon->lane_contexts;
    const struct table all[TABLES] = {
        {(void **) &daemon->exchange, sizeof(*daemon->exchange)},
        {(void **) &daemon->notifications, RONDO_QUEUE_DEPTH * sizeof(*daemon->notifications)},
        {(void **) &daemon->lanes, daemon->lane_count * sizeof(*daemon->lanes)},
        {(void **) &daemon->operations, RONDO_OPERATIONS_MAX * sizeof(*daemon->operations)},
        {(void **) &daemon->contexts, contexts * sizeof(*daemon->contexts)},
        {(void **) &daemon->semaphores, contexts * sizeof(*daemon->semaphores)},
        {(void **) &daemon->waiting, contexts * sizeof(*daemon->waiting)},
        {(void **) &daemon->queued, contexts},
        {(void **) &daemon->blocks, daemon->block_count * sizeof(*daemon->blocks)},
        {(void **) &daemon->reports, daemon->block_count * sizeof(*daemon->reports)},
        {(void **) tasks, (size_t) daemon->block_count * RONDO_TASKS_MOST(daemon) * sizeof(**tasks)},
    };
    memcpy(tables, all, sizeof(all));
}

static rondo_result_t set_up_blocks(struct rondo_device *device, struct rondo_task *tasks)
{
    struct rondo_daemon *daemon = device->daemon;
    size_t bytes = daemon->block_count * sizeof(struct rondo_block);
    struct rondo_block *blocks = aligned_alloc(16, bytes);
    if (blocks == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for %u blocks", daemon->block_count);
    memset(blocks, 0, bytes);
    for (uint32_t b = 0; b < daemon->block_count; b++) {
        blocks[b].index = b;
        blocks[b].task_table = tasks + (size_t) b * RONDO_TASKS_MOST(daemon);
        blocks[b].report = daemon->reports + b;
        blocks[b].trace = device->trace != NULL ? device->trace + b : NULL;
        for (int line = 0; line < RONDO_CONTEXT_CACHE; line++)
            blocks[b].cache[line].context = UINT32_MAX;
    }
    rondo_result_t result = device->kind->upload(device, daemon->blocks, blocks, bytes);
    free(blocks);
    return result;
}

rondo_result_t rondo_daemon_create(struct rondo_device *device, const struct rondo_device_options *options)
{
    const struct rondo_device_kind *kind = device->kind;
    struct table tables[TABLES];
    struct rondo_task *tasks;
    struct rondo_daemon *daemon =
        aligned_alloc(RONDO_CACHE_LINE, (sizeof(*daemon) + RONDO_CACHE_LINE - 1) / RONDO_CACHE_LINE * RONDO_CACHE_LINE);
    if (daemon == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for the daemon's state (%zu bytes)", sizeof(*daemon));
    memset(daemon, 0, sizeof(*daemon));
    device->daemon = daemon;
    daemon->block_count = options->blocks;
    daemon->lane_contexts = options->lane_contexts;
    daemon->lane_count = RONDO_CONTEXTS_MAX / options->lane_contexts;
    if (daemon->lane_count > RONDO_LANES_MAX)
        daemon->lane_count = RONDO_LANES_MAX;
    daemon->policy = options->policy;
    rondo_device_set_budgets(device, &options->policy.budgets);
    rondo_result_t result = RONDO_SUCCESS;
    list_tables(daemon, &tasks, tables);
    daemon->queues = kind->allocate_host(device, sizeof(*daemon->queues));
    if (daemon->queues == NULL)
        result = rondo_fail(RONDO_ERR_MEMORY, "no memory for the daemon's queues");
    if (options->trace && (device->trace = kind->allocate_host(device, options->blocks * sizeof(*device->trace))) == NULL)
        result = rondo_fail(RONDO_ERR_MEMORY, "no memory for a trace of %u blocks", options->blocks);
    if (device->trace != NULL) /* touched now: the first records must not pay for it */
        memset(device->trace, 0, options->blocks * sizeof(*device->trace));
    for (int i = 0; i < TABLES && result == RONDO_SUCCESS; i++)
        if ((*tables[i].place = kind->allocate(device, tables[i].bytes)) == NULL)
            result = rondo_fail(RONDO_ERR_MEMORY, "no device memory for the daemon's tables (%zu bytes)", tables[i].bytes);
    device->tasks = tasks;
    if (result == RONDO_SUCCESS)
        result = set_up_blocks(device, tasks);
    if (result != RONDO_SUCCESS)
        rondo_daemon_destroy(device);
    return result;
}

void rondo_daemon_destroy(struct rondo_device *device)
{
    const struct rondo_device_kind *kind = device->kind;
    struct rondo_daemon *daemon = device->daemon;
    struct table tables[TABLES];
    if (daemon == NULL)
        return;
    list_tables(daemon, &device->tasks, tables);
    for (int i = 0; i < TABLES; i++)
        if (*tables[i].place != NULL)
            kind->release(device, *tables[i].place, tables[i].bytes);
    if (daemon->queues != NULL)
        kind->release_host(device, daemon->queues, sizeof(*daemon->queues));
    if (device->trace != NULL)
        kind->release_host(device, device->trace, daemon->block_count * sizeof(*device->trace));
    device->trace = NULL;
    free(daemon);
    device->daemon = NULL;
}

static uint64_t ticks(const struct rondo_device *device, uint64_t nanoseconds)
{
    return (nanoseconds * device->ticks_per_us + 999) / 1000; /* no overflow: lib/base/environment.c bounds what is asked for */
}

void rondo_device_set_budgets(struct rondo_device *device, const struct rondo_budgets *nanoseconds)
{
    struct rondo_budgets *budgets = &device->daemon->policy.budgets;
    budgets->initial = ticks(device, nanoseconds->initial);
    budgets->alone = ticks(device, nanoseconds->alone);
    budgets->ordered = ticks(device, nanoseconds->ordered);
    budgets->hold = ticks(device, nanoseconds->hold);
    budgets->cap = ticks(device, nanoseconds->cap);
}

int rondo_device_alive(const struct rondo_device *device)
{
    const struct rondo_queues *queues = device->daemon->queues;
    for (;;) {
        uint64_t launches = rondo_load_acquire(&queues->launches);
        uint64_t state = rondo_load_acquire(&queues->state);
        if (state == RONDO_STATE(launches, RONDO_DAEMON_LEFT))
            return 0;
        if (state != RONDO_STATE(launches, RONDO_DAEMON_LEAVING))
            return 1;      /* runs, or is being started */
        rondo_relax(0, 0); /* the daemon looks at the queue a last time */
    }
}

int rondo_device_claim(struct rondo_device *device)
{
    struct rondo_queues *queues = device->daemon->queues;
    if (rondo_device_alive(device))
        return 0;
    rondo_store_release(&queues->launches, queues->launches + 1);
    rondo_fence(&queues->fence); /* a thread that gives a block up looks for a daemon after it has done so */
    return 1;
}
