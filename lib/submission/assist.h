/*
 * A thread that waits lends itself to the device and to the proxy: it runs block 0 of the host device, and moves the proxy's
 * slots, instead of sleeping beside the threads that do. Devices that run by themselves (GPUs) have no assist_begin.
 */
#ifndef RONDO_LIB_SUBMISSION_ASSIST_H
#define RONDO_LIB_SUBMISSION_ASSIST_H

#include "lib/submission/queue.h"

/* Claims block 0 if nothing is outstanding. 1: the block is the calling thread's, until rondo_assist_leave. Only where the
 * device has assist_begin. */
static inline int rondo_assist_claim_idle(struct rondo_runtime *runtime)
{
    return !rondo_queue_outstanding(runtime) && runtime->device->kind->assist_begin(runtime->device);
}
/* Runs the daemon, whose block 0 this thread has claimed, until the request is done or the daemon is out. */
void rondo_assist_run(struct rondo_runtime *runtime, const struct rondo_request *request);
/* Gives block 0 back. assist: whether this thread may soon claim it again. */
static inline void rondo_assist_leave(struct rondo_runtime *runtime, enum rondo_assist assist)
{
    runtime->device->kind->assist_end(runtime->device, !rondo_queue_outstanding(runtime), assist);
}
/* Claims block 0, runs the daemon until the request is done or the daemon is out, and gives the block back. 0: another thread
 * runs it, or the device needs none. */
int rondo_assist(struct rondo_runtime *runtime, const struct rondo_request *request);
/* Runs one round of a daemon that is alive, if no other thread runs it. Nothing without preemption, where a round may have no
 * end. */
void rondo_assist_once(struct rondo_runtime *runtime);

/* Acquire: result and message of a request that is done. */
static inline uint32_t rondo_request_state(const struct rondo_request *request)
{
    return __atomic_load_n(&request->state, __ATOMIC_ACQUIRE);
}

#endif
