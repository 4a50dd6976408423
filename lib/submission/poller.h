/*
 * The poller: one thread per runtime, for work that must go on while no user thread calls Rondo: it completes requests, calls
 * callbacks, restarts the daemon and notices stuck operations. It sleeps for a tick at a time, or until rondo_poller_wake.
 */
#ifndef RONDO_LIB_SUBMISSION_POLLER_H
#define RONDO_LIB_SUBMISSION_POLLER_H

#include "lib/context/runtime.h"

#include <pthread.h>
#include <stdint.h>

/* event and sleepers are atomic; the poller's thread alone uses the fields below them. */
struct rondo_poller {
    pthread_t thread;
    int running;
    uint32_t stopping, event, sleepers;
    uint64_t looked_ns;   /* when the device was checked last */
    uint64_t watched_ns;  /* when lanes of streams were observed last (observe.c) */
    int on_stream;        /* a lane of a stream is overdue: */
    uint64_t stream_comm; /* its communicator */
};

/* Starts the thread; rondo_queue_create has made the structure. Returns why the thread could not be started. */
rondo_result_t rondo_poller_create(struct rondo_runtime *runtime);
/* Ends the thread and waits for it. Nothing if it does not run. Not under a lock, and not from a callback. */
void rondo_poller_destroy(struct rondo_runtime *runtime);
/* Wakes the poller. Makes no system call unless it sleeps. Any thread, under any lock. */
void rondo_poller_wake(struct rondo_runtime *runtime);

#endif
