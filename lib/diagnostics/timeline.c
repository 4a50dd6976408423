/*
 * The timeline's life and the recording of starts (lib/diagnostics/timeline.h). Its parts are in
 * lib/diagnostics/timeline_parts.h.
 */
#include "lib/diagnostics/timeline.h"

#include "lib/base/environment.h"
#include "lib/diagnostics/timeline_parts.h"
#include "lib/base/error.h"
#include "lib/call/call.h"
#include "lib/context/handles.h"

#include <stdlib.h>
#include <string.h>

#define RETAINED_MAX ((size_t) 2 << 20) /* most records that are retained before they are written */
#define QUIET_NS     200000000u
/* Between two looks: a block that records all it can fills its ring in twice the shorter time. */
#define BUSY_NS      5000000u
#define CALM_NS      10000000u
#define BUSY_RECORDS (RONDO_TRACE_DEPTH / 16)

void rondo_timeline_note_start(struct rondo_timeline *trace, const struct rondo_timeline_operation *operation,
                               enum rondo_timeline_how how)
{
    const struct rondo_call *call = operation->call;
    if (trace->start_count == RONDO_TIMELINE_STARTS) {
        trace->starts_lost++;
        return;
    }
    struct rondo_timeline_start *start = &trace->starts[trace->start_count++];
    *start = (struct rondo_timeline_start){.time = rondo_clock_ns(),
                                           .count = call->count,
                                           .root = call->root,
                                           .lane = operation->lane & (RONDO_LANES_MAX - 1),
                                           .number = operation->number & 0x3ffff,
                                           .rate = call->rate & 0xff,
                                           .feedback = call->feedback != 0,
                                           .how = how,
                                           .kind = (uint8_t) call->kind,
                                           .op = (uint8_t) rondo_op_code(call->op),
                                           .type = (uint32_t) call->type};
    __builtin_prefetch(start + 4, 1); /* as in trace.h: a later store must not wait for this cache line */
}

void rondo_timeline_start(struct rondo_runtime *runtime, const struct rondo_timeline_operation *operation)
{
    if (runtime->trace != NULL && !rondo_load_relaxed32(&runtime->trace->paused))
        rondo_timeline_note_start(runtime->trace, operation, RONDO_TIMELINE_STARTED);
}

static void take_starts(struct rondo_runtime *runtime)
{
    struct rondo_timeline *trace = runtime->trace;
    rondo_lock_take(trace->lock);
    struct rondo_timeline_start *taken = trace->starts;
    uint32_t count = trace->start_count;
    trace->starts = trace->other_starts;
    trace->other_starts = taken;
    trace->start_count = 0;
    trace->retained.lost += trace->starts_lost;
    trace->starts_lost = 0;
    rondo_lock_drop(trace->lock);
    rondo_timeline_keep_starts(&trace->retained, taken, count);
}

static void look(struct rondo_runtime *runtime, uint64_t now)
{
    take_starts(runtime);
    if (rondo_timeline_read_rings(runtime) + rondo_timeline_read_streams(runtime) > 0)
        runtime->trace->quiet_since = now;
}

void rondo_timeline_drain(struct rondo_runtime *runtime, uint64_t *most)
{
    struct rondo_timeline *trace = runtime->trace;
    if (trace == NULL || trace->file.broken || rondo_load_relaxed32(&trace->paused))
        return;
    uint64_t now = rondo_clock_ns();
    if (now >= trace->next_look) {
        size_t before = trace->retained.record_count;
        look(runtime, now);
        trace->pause = trace->retained.record_count - before >= BUSY_RECORDS ? BUSY_NS : CALM_NS;
        trace->next_look = now + trace->pause;
        /* The file is written when no operation has completed for a while, as in a hang that ends with the job being killed, or
         * when RETAINED_MAX records are retained. */
        if (trace->retained.record_count >= RETAINED_MAX ||
            (trace->retained.record_count + trace->retained.start_count > 0 && now - trace->quiet_since >= QUIET_NS))
            rondo_timeline_write_retained(runtime);
    }
    /* The poller wakes for other reasons too, up to once per operation. Therefore this call may be late by the same time again.
     * A timer for the exact rest of the time would cost more at each wake than all the rest of the timeline. */
    *most = *most < trace->pause ? *most : trace->pause;
}

/* Claims the only block of an idle host device, so that its own thread does not run it. */
static int claim_block(struct rondo_device *device)
{
    for (int i = 0; i < 100000; i++)
        if (device->kind->assist_begin(device))
            return 1;
    return 0;
}

rondo_result_t rondo_timeline_pause(rondo_t handle, int paused)
{
    struct rondo_runtime *runtime;
    rondo_result_t result = rondo_runtime_of(handle, "rondo_timeline_pause", &runtime);
    if (result != RONDO_SUCCESS)
        return result;
    struct rondo_device *device = runtime->device;
    const struct rondo_daemon *daemon = device->daemon;
    int by_threads = device->kind->assist_begin != NULL;
    if (runtime->trace == NULL)
        return rondo_fail(RONDO_ERR_UNSUPPORTED, "there is no trace (RONDO_TRACE) to pause");
    if (by_threads && daemon->block_count > 1)
        return rondo_fail(RONDO_ERR_UNSUPPORTED,
                          "a trace of %u blocks on the %s device cannot be paused, only of one (RONDO_BLOCKS=1)",
                          daemon->block_count, device->kind->name);
    result = device->kind->synchronize(device);
    if (result == RONDO_SUCCESS && by_threads && !claim_block(device))
        result = rondo_fail(RONDO_ERR_INTERNAL, "the idle device's block is not to be had");
    if (result != RONDO_SUCCESS)
        return result;
    for (uint32_t b = 0; b < daemon->block_count && result == RONDO_SUCCESS; b++) {
        struct rondo_trace_records *records = paused ? NULL : device->trace + b;
        result = device->kind->upload(device, &daemon->blocks[b].trace, &records, sizeof(records));
    }
    if (by_threads)
        device->kind->assist_end(device, 1, RONDO_ASSIST_NEVER);
    rondo_store_relaxed32(&runtime->trace->paused, paused != 0);
    return result;
}

/* ---- creation and end ---- */

/* Reads RONDO_TRACE_BYTES, and sets *share to this rank's part of it; 0: no limit. */
static rondo_result_t read_share(const struct rondo_runtime *runtime, uint64_t *share)
{
    int64_t bytes;
    rondo_result_t result = rondo_environment_integer("RONDO_TRACE_BYTES", &bytes);
    if (result != RONDO_SUCCESS)
        return result;
    *share = (uint64_t) bytes / (uint64_t) runtime->hosts.counts[runtime->hosts.node[runtime->rank]];
    return RONDO_SUCCESS;
}

static void free_trace(struct rondo_timeline *trace)
{
    rondo_timeline_file_destroy(&trace->file);
    free(trace->starts);
    free(trace->other_starts);
    free(trace->retained.starts);
    free(trace->retained.records);
    free(trace->rings.taken);
    free(trace->streams.ordered);
    free(trace->streams.waiting);
    free(trace->text.kinds);
    free(trace->text.visited);
    free(trace);
}

rondo_result_t rondo_timeline_create(struct rondo_runtime *runtime, struct rondo_lock *lock, struct rondo_timeline **out)
{
    const char *path;
    uint64_t share = 0;
    rondo_result_t result = rondo_environment_text("RONDO_TRACE", &path);
    *out = NULL;
    if (result == RONDO_SUCCESS)
        result = read_share(runtime, &share);
    if (result != RONDO_SUCCESS || path == NULL)
        return result;
    struct rondo_timeline *trace = aligned_alloc(RONDO_CACHE_LINE, sizeof(*trace));
    if (trace == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for a trace");
    memset(trace, 0, sizeof(*trace));
    trace->lock = lock;
    result = rondo_timeline_file_create(&trace->file, path, runtime->rank, share);
    trace->starts = calloc(RONDO_TIMELINE_STARTS, sizeof(*trace->starts));
    trace->other_starts = calloc(RONDO_TIMELINE_STARTS, sizeof(*trace->other_starts));
    trace->streams.ordered = calloc(RONDO_LANES_MAX, sizeof(*trace->streams.ordered));
    trace->streams.waiting = calloc(RONDO_LANES_MAX, sizeof(*trace->streams.waiting));
    trace->text.kinds = calloc(RONDO_LANES_MAX, sizeof(*trace->text.kinds));
    if (result == RONDO_SUCCESS &&
        (trace->starts == NULL || trace->other_starts == NULL || trace->streams.ordered == NULL ||
         trace->streams.waiting == NULL || trace->text.kinds == NULL || !rondo_timeline_prepare(&trace->retained)))
        result = rondo_fail(RONDO_ERR_MEMORY, "no memory for a trace");
    if (result == RONDO_SUCCESS && runtime->hosts.local[runtime->rank] == 0)
        result = rondo_timeline_file_empty(&trace->file);
    if (result == RONDO_SUCCESS)
        *out = trace;
    else
        free_trace(trace);
    return result;
}

rondo_result_t rondo_timeline_begin(struct rondo_runtime *runtime)
{
    struct rondo_timeline *trace = runtime->trace;
    if (trace == NULL)
        return RONDO_SUCCESS;
    uint32_t blocks = runtime->device->daemon->block_count;
    trace->rings.taken = calloc(blocks, sizeof(*trace->rings.taken));
    trace->text.visited = calloc(blocks, sizeof(*trace->text.visited));
    if (trace->rings.taken == NULL || trace->text.visited == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for the trace of %u blocks", blocks);
    rondo_result_t result = rondo_timeline_file_open(&trace->file);
    trace->begun = result == RONDO_SUCCESS;
    if (result == RONDO_SUCCESS)
        rondo_timeline_write_tracks(runtime);
    return result;
}

void rondo_timeline_destroy(struct rondo_runtime *runtime)
{
    struct rondo_timeline *trace = runtime->trace;
    if (trace == NULL)
        return;
    if (trace->begun) {
        look(runtime, 0);
        rondo_timeline_write_retained(runtime);
        rondo_timeline_file_end(&trace->file);
        if (trace->retained.lost > 0)
            rondo_log(RONDO_LOG_WARN, runtime->rank, "RONDO_TRACE: %llu records were overwritten before they could be written",
                      (unsigned long long) trace->retained.lost);
    }
    free_trace(trace);
    runtime->trace = NULL;
}
