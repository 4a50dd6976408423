/* The daemon's tables, the same for every kind of device. */
#include "device.h"

#include "error.h"

static size_t queue_bytes(const struct rondo_daemon *daemon)
{
    return RONDO_QUEUE_DEPTH * (sizeof(*daemon->sq) + sizeof(*daemon->cq));
}

rondo_result_t rondo_daemon_create(struct rondo_device *device, const struct rondo_device_options *options)
{
    void *(*allocate)(struct rondo_device *, size_t) = device->kind->allocate;
    struct rondo_daemon *daemon = allocate(device, sizeof(*daemon));
    if (daemon == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for the daemon's state (%zu bytes)", sizeof(*daemon));
    device->daemon = daemon;
    daemon->block_count = options->blocks;
    daemon->policy = options->policy;
    daemon->sq = allocate(device, queue_bytes(daemon));
    daemon->cq = daemon->sq == NULL ? NULL : (uint64_t *) (daemon->sq + RONDO_QUEUE_DEPTH);
    daemon->news = allocate(device, RONDO_QUEUE_DEPTH * sizeof(*daemon->news));
    daemon->lanes = allocate(device, RONDO_LANES_MAX * sizeof(*daemon->lanes));
    daemon->operations = allocate(device, RONDO_OPERATIONS_MAX * sizeof(*daemon->operations));
    daemon->contexts = allocate(device, RONDO_CONTEXTS_MAX * sizeof(*daemon->contexts));
    daemon->semaphores = allocate(device, RONDO_CONTEXTS_MAX * sizeof(*daemon->semaphores));
    daemon->waiting = allocate(device, RONDO_CONTEXTS_MAX * sizeof(*daemon->waiting));
    daemon->queued = allocate(device, RONDO_CONTEXTS_MAX);
    daemon->blocks = allocate(device, options->blocks * sizeof(*daemon->blocks));
    int complete = daemon->sq && daemon->news && daemon->lanes && daemon->operations && daemon->contexts &&
                   daemon->semaphores && daemon->waiting && daemon->queued && daemon->blocks;
    for (uint32_t b = 0; complete && b < options->blocks; b++) {
        struct rondo_block *block = &daemon->blocks[b];
        block->index = b;
        block->task_table = allocate(device, RONDO_CONTEXTS_MAX * sizeof(*block->task_table));
        complete = block->task_table != NULL;
        for (int line = 0; line < RONDO_CONTEXT_CACHE; line++)
            block->cache[line].context = UINT32_MAX;
    }
    if (!complete) {
        rondo_daemon_destroy(device);
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for the daemon's tables");
    }
    return RONDO_SUCCESS;
}

void rondo_daemon_destroy(struct rondo_device *device)
{
    void (*release)(struct rondo_device *, void *, size_t) = device->kind->release;
    struct rondo_daemon *daemon = device->daemon;
    if (daemon == NULL)
        return;
    for (uint32_t b = 0; daemon->blocks != NULL && b < daemon->block_count; b++)
        release(device, daemon->blocks[b].task_table, RONDO_CONTEXTS_MAX * sizeof(struct rondo_task));
    release(device, daemon->blocks, daemon->block_count * sizeof(*daemon->blocks));
    release(device, daemon->queued, RONDO_CONTEXTS_MAX);
    release(device, daemon->waiting, RONDO_CONTEXTS_MAX * sizeof(*daemon->waiting));
    release(device, daemon->semaphores, RONDO_CONTEXTS_MAX * sizeof(*daemon->semaphores));
    release(device, daemon->contexts, RONDO_CONTEXTS_MAX * sizeof(*daemon->contexts));
    release(device, daemon->operations, RONDO_OPERATIONS_MAX * sizeof(*daemon->operations));
    release(device, daemon->lanes, RONDO_LANES_MAX * sizeof(*daemon->lanes));
    release(device, daemon->news, RONDO_QUEUE_DEPTH * sizeof(*daemon->news));
    release(device, daemon->sq, queue_bytes(daemon));
    release(device, daemon, sizeof(*daemon));
    device->daemon = NULL;
}
