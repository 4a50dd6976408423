/*
 * What a block of the daemon has to work on: its task table, in the order of the policy, and the contexts of the tasks'
 * program blocks, which say where each stands. Single source; a block's own, so nothing here is atomic.
 */
#ifndef RONDO_DEVICE_DAEMON_TASKS_H
#define RONDO_DEVICE_DAEMON_TASKS_H

#include "device/abi/platform.h"
#include "device/abi/structures.h"

/* ---- contexts: a direct-mapped cache in front of device memory, written back only when they moved ---- */

/* Gives a cache line to the context. Returns 0 if the line does not hold the context's value. */
RONDO_FUNCTION int rondo_context_claim(const struct rondo_daemon *daemon, struct rondo_block *block, uint32_t index)
{
    uint32_t line = index % RONDO_CONTEXT_CACHE;
    if (block->cache[line].context == index)
        return 1;
    if (block->cache[line].dirty) {
        daemon->contexts[block->cache[line].context] = block->cache[line].value;
        rondo_count(&block->report->statistics.context_saves, 1);
    }
    block->cache[line].context = index;
    block->cache[line].dirty = 0;
    return 0;
}

/* The context with the index, from the cache or from device memory. */
RONDO_FUNCTION struct rondo_context *rondo_context_load(const struct rondo_daemon *daemon, struct rondo_block *block,
                                                        uint32_t index)
{
    struct rondo_context *context = &block->cache[index % RONDO_CONTEXT_CACHE].value;
    if (!rondo_context_claim(daemon, block, index)) {
        *context = daemon->contexts[index];
        rondo_count(&block->report->statistics.context_loads, 1);
    }
    return context;
}

/* Marks a cached context as changed. */
RONDO_FUNCTION void rondo_context_changed(struct rondo_block *block, uint32_t index)
{
    block->cache[index % RONDO_CONTEXT_CACHE].dirty = 1;
}

/* Makes the context of an operation that begins. number: in its lane. */
RONDO_FUNCTION struct rondo_context *rondo_context_begin(const struct rondo_daemon *daemon, struct rondo_block *block,
                                                         uint32_t index, uint64_t number)
{
    struct rondo_context *context = &block->cache[index % RONDO_CONTEXT_CACHE].value;
    rondo_context_claim(daemon, block, index);
    context->operation = number + 1; /* zeroed memory names no operation */
    context->tile = 0;
    context->instruction = context->slice = context->slice_op = context->finished = context->sent = context->direct_write = 0;
    for (int i = 0; i < RONDO_PROGRESS / 8; i++)
        context->progress[i] = 0;
    rondo_context_changed(block, index);
    return context;
}

/* ---- tasks ---- */

RONDO_FUNCTION struct rondo_task *rondo_task_at(struct rondo_block *block, uint32_t place)
{
    return place < RONDO_TASKS_NEAR ? &block->near[place] : &block->task_table[place];
}

/* Moves a task before those of lower priority: FIFO inside one priority. */
RONDO_FUNCTION void rondo_rise(struct rondo_block *block, uint32_t place)
{
    const struct rondo_task task = *rondo_task_at(block, place);
    for (; place > 0 && rondo_task_at(block, place - 1)->priority < task.priority; place--)
        *rondo_task_at(block, place) = *rondo_task_at(block, place - 1);
    *rondo_task_at(block, place) = task;
}

/* Puts a task where the order policy says. Returns 0 if its context has one already. */
RONDO_FUNCTION int rondo_add_task(const struct rondo_daemon *daemon, struct rondo_block *block, const struct rondo_task *task)
{
    uint8_t *queued = &daemon->queued[task->lane * daemon->lane_contexts + task->program_block];
    if (block->tasks > 0 && *queued)
        return 0;
    *queued = 1;
    *rondo_task_at(block, block->tasks++) = *task;
    if (daemon->policy.order == RONDO_ORDER_PRIORITY)
        rondo_rise(block, block->tasks - 1);
    return 1;
}

/* Marks the task as no longer queued; the visitor gives its place up. */
RONDO_FUNCTION void rondo_forget_task(const struct rondo_daemon *daemon, const struct rondo_task *task)
{
    daemon->queued[task->lane * daemon->lane_contexts + task->program_block] = 0;
}

#endif
