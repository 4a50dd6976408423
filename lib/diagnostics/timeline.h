/*
 * The timeline (RONDO_TRACE=file): what each block of the daemon did and when, as Chrome trace JSON, with ranks as processes
 * and blocks as their threads. All ranks of a host append to one file, under a lock on the file. Between two writes the file is
 * complete JSON, so a killed job leaves a valid trace; one killed inside a write leaves its last line cut off. Relies on the
 * rings of device/daemon/trace.h.
 */
#ifndef RONDO_LIB_DIAGNOSTICS_TIMELINE_H
#define RONDO_LIB_DIAGNOSTICS_TIMELINE_H

#include "lib/base/futex.h"
#include "lib/call/call.h"
#include "lib/context/runtime.h"

struct rondo_timeline;

/* What the timeline records of an operation that begins. */
struct rondo_timeline_operation {
    const struct rondo_call *call;
    uint32_t lane;   /* in the daemon's table */
    int captured;    /* into a graph, instead of enqueued on a stream */
    uint64_t number; /* the operation's number in the lane, as the device counts */
};

/* Reads RONDO_TRACE; if it is set, creates *trace, and on the first rank of each host empties the file. Otherwise *trace stays
 * NULL. Called before the device is created, and before ranks tell each other that they are ready. lock: the lock that callers
 * of rondo_timeline_start and rondo_timeline_enqueue hold. RONDO_ERR_ARGUMENT if no file can be created at the path, or
 * RONDO_TRACE_BYTES is wrong; RONDO_ERR_MEMORY. Where a file cannot be written all the same, the timeline ends with a warning.
 */
rondo_result_t rondo_timeline_create(struct rondo_runtime *runtime, struct rondo_lock *lock, struct rondo_timeline **trace);
/* Opens the file, which exists by then. Called once, after all ranks are ready. Errors as rondo_timeline_create. */
rondo_result_t rondo_timeline_begin(struct rondo_runtime *runtime);
/* The functions below do nothing if there is no trace. */
/* Records an operation that is being submitted to the daemon. The lock of rondo_timeline_create is held. */
void rondo_timeline_start(struct rondo_runtime *runtime, const struct rondo_timeline_operation *operation);
/* Records an operation that has been enqueued on a stream, or captured into a graph. Its kernels record nothing, so the poller
 * reads from the device how many operations of the lane have been executed. comm->requests->stream_lock held. */
void rondo_timeline_enqueue(struct rondo_runtime *runtime, const struct rondo_timeline_operation *operation);
/* Takes what the blocks have recorded, and may write the file. Called by the poller. Lowers *most to the nanoseconds until the
 * next call is due. */
void rondo_timeline_drain(struct rondo_runtime *runtime, uint64_t *most);
/* Suspends recording of the handle's runtime (paused 1) or resumes it (0), to measure the overhead of a trace. Waits until the
 * device is idle; no operation may be started meanwhile. RONDO_ERR_UNSUPPORTED if there is no trace, and on a host device with
 * several blocks; RONDO_ERR_INTERNAL if the idle device's block cannot be claimed. */
rondo_result_t rondo_timeline_pause(rondo_t handle, int paused);
/* Writes what is left and frees the trace. Called once, after the daemon and the poller have ended. */
void rondo_timeline_destroy(struct rondo_runtime *runtime);

#endif
