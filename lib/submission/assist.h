/*
 * Assisting: a waiting thread runs block 0 of the host device and moves the proxy's slots, instead of sleeping while other
 * threads do. Relies on assist_begin of the device table, which devices that run by themselves (GPUs) do not have.
 */
#ifndef RONDO_LIB_SUBMISSION_ASSIST_H
#define RONDO_LIB_SUBMISSION_ASSIST_H

#include "lib/submission/queue.h"

/* Claims block 0 if nothing is outstanding. Returns 1 if the calling thread has it until rondo_assist_leave. The device has
 * assist_begin. */
static inline int rondo_assist_claim_idle(struct rondo_runtime *runtime)
{
    return !rondo_queue_outstanding(runtime) && runtime->device->kind->assist_begin(runtime->device);
}
/* Runs block 0, which the calling thread has claimed, until the request is done or the daemon has quit. Not under a lock: it
 * completes requests. */
void rondo_assist_run(struct rondo_runtime *runtime, const struct rondo_request *request);
/* Gives block 0 back, which the calling thread has claimed. assist: whether the thread may soon claim it again. */
static inline void rondo_assist_leave(struct rondo_runtime *runtime, enum rondo_assist assist)
{
    runtime->device->kind->assist_end(runtime->device, !rondo_queue_outstanding(runtime), assist);
}
/* Claims block 0, runs it until the request is done or the daemon has quit, and gives it back. Returns 0 without doing anything
 * if another thread has the block or the device has no assist_begin. Not under a lock. */
int rondo_assist(struct rondo_runtime *runtime, const struct rondo_request *request);
/* Runs one round of block 0 if the daemon is alive and no other thread has the block. Does nothing without preemption, because
 * a round may last for ever then. Not under a lock. */
void rondo_assist_once(struct rondo_runtime *runtime);

/* Calls the function of rondo_wait_callback(), if there is one. Not under a lock; only on a thread that waits in a call of the
 * application. */
static inline void rondo_assist_call_back(struct rondo_runtime *runtime)
{
    void (*callback)(void *argument) = __atomic_load_n(&runtime->wait_callback, __ATOMIC_ACQUIRE);
    if (__builtin_expect(callback != NULL, 0))
        callback(runtime->wait_argument);
}

/* The state of a request, without the queue lock. Acquire: after DONE, result and message can be read. */
static inline uint32_t rondo_request_state(const struct rondo_request *request)
{
    return __atomic_load_n(&request->state, __ATOMIC_ACQUIRE);
}

#endif
