/*
 * Traces (RONDO_TRACE=file): what each block of the daemon did and when, as Chrome trace JSON, with ranks as processes and
 * blocks as threads of them. All ranks of a host write to one file, each some lines at a time under a lock on it. Between these
 * writes it is complete JSON, so that a job which is killed leaves a trace too (inside a write: with its last line cut off).
 */
#ifndef RONDO_LIB_DIAGNOSTICS_TIMELINE_H
#define RONDO_LIB_DIAGNOSTICS_TIMELINE_H

#include "lib/call/call.h"
#include "lib/context/runtime.h"

struct rondo_timeline;

/* An operation that begins, as a trace tells of it. */
struct rondo_timeline_operation {
    const struct rondo_call *call;
    uint32_t lane;   /* in the daemon's table */
    int captured;    /* into a graph, instead of enqueued on a stream */
    uint64_t number; /* in the lane, as the device counts */
};

/* Before the device is created, and before ranks tell each other that they are ready: reads RONDO_TRACE, and on the first rank
 * of each host empties the file. *trace stays NULL without one. lock: is held
 * wherever operations are noted. RONDO_ERR_ARGUMENT if the file cannot be written. */
rondo_result_t rondo_timeline_create(struct rondo_runtime *runtime, pthread_mutex_t *lock, struct rondo_timeline **trace);
/* After all are ready. */
rondo_result_t rondo_timeline_begin(struct rondo_runtime *runtime);
/* The rest below does nothing without a trace. Of an operation that is being submitted; the lock is held. */
void rondo_timeline_start(struct rondo_runtime *runtime, const struct rondo_timeline_operation *operation);
/* Of an operation that has been enqueued on a stream, or captured into a graph. Kernels of their own execute it, which record
 * nothing: how many of a lane have been executed is looked up on the device now and then. comm->requests->stream_lock held. */
void rondo_timeline_enqueue(struct rondo_runtime *runtime, const struct rondo_timeline_operation *operation);
/* From the poller: takes what the blocks have recorded; most: nanoseconds until it should be called again. */
void rondo_timeline_drain(struct rondo_runtime *runtime, uint64_t *most);
/* For measuring what a trace costs: until it is called with 0 the blocks record nothing and the poller takes nothing. Waits
 * until the device is idle, and nothing may be started meanwhile. RONDO_ERR_UNSUPPORTED without a trace, and on the host device
 * with several blocks. */
rondo_result_t rondo_timeline_pause(struct rondo_runtime *runtime, int paused);
/* After the daemon's end: writes the rest. */
void rondo_timeline_destroy(struct rondo_runtime *runtime);

#endif
