/*
 * Operations in stream order in the timeline. The kernels that execute them record nothing, so the poller reads from the device
 * how many operations of each lane have been executed.
 */
#include "lib/diagnostics/timeline.h"
#include "lib/diagnostics/timeline_parts.h"

void rondo_timeline_enqueue(struct rondo_runtime *runtime, const struct rondo_timeline_operation *operation)
{
    struct rondo_timeline *trace = runtime->trace;
    if (trace == NULL || rondo_load_relaxed32(&trace->paused))
        return;
    uint32_t lane = operation->lane;
    struct rondo_timeline_streams *streams = &trace->streams;
    struct rondo_timeline_ordered *ordered = &streams->ordered[lane];
    rondo_lock_take(trace->lock);
    rondo_timeline_note_start(trace, operation, operation->captured ? RONDO_TIMELINE_CAPTURED : RONDO_TIMELINE_ENQUEUED);
    if (!operation->captured) {
        if ((uint32_t) operation->number == 0) /* the lane was created anew */
            ordered->executed = operation->number;
        ordered->enqueued = operation->number + 1;
        if (!ordered->listed)
            streams->waiting[streams->waiting_count++] = lane;
        ordered->listed = 1;
    }
    rondo_lock_drop(trace->lock);
}

/* Copies 8 bytes per lane from the device; the copies do not use the user's streams. */
uint64_t rondo_timeline_read_streams(struct rondo_runtime *runtime)
{
    struct rondo_timeline *trace = runtime->trace;
    struct rondo_timeline_streams *streams = &trace->streams;
    struct rondo_device *device = runtime->device;
    uint64_t completed = 0;
    for (uint32_t i = 0;;) {
        rondo_lock_take(trace->lock);
        uint32_t lane = i < streams->waiting_count ? streams->waiting[i] : UINT32_MAX;
        struct rondo_timeline_ordered now = lane != UINT32_MAX ? streams->ordered[lane] : (struct rondo_timeline_ordered){0};
        rondo_lock_drop(trace->lock);
        if (lane == UINT32_MAX)
            return completed;
        uint64_t executed = now.executed, count = 0;
        if (device->kind->download(device, &count, &device->daemon->lanes[lane].ordered, sizeof(count)) != RONDO_SUCCESS)
            return completed;
        count = count < now.enqueued ? count : now.enqueued;
        for (; executed < count; executed++, completed++)
            rondo_timeline_keep(&trace->retained,
                                (struct rondo_timeline_record){rondo_clock_ns(), (uint64_t) RONDO_TIMELINE_EXECUTED << 60 |
                                                                                     (uint64_t) lane << 30 |
                                                                                     (executed & 0x3ffff) << 12});
        rondo_lock_take(trace->lock);
        struct rondo_timeline_ordered *ordered = &streams->ordered[lane];
        if (ordered->enqueued >= now.enqueued) /* else the lane was created anew */
            ordered->executed = executed;
        if (ordered->executed >= ordered->enqueued) {
            ordered->listed = 0;
            streams->waiting[i] = streams->waiting[--streams->waiting_count];
        } else {
            i++;
        }
        rondo_lock_drop(trace->lock);
    }
}
