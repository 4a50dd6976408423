/* The poller: one thread a runtime that does what no user thread may be there to do: callbacks, feeding, restarting the daemon,
 * noticing stuck operations. It sleeps unless something calls it. */
#ifndef RONDO_LIB_SUBMISSION_POLLER_H
#define RONDO_LIB_SUBMISSION_POLLER_H

#include "lib/context/runtime.h"

#include <pthread.h>
#include <stdint.h>

struct rondo_poller {
    pthread_t thread;
    int running;
    uint32_t stopping, event, sleepers;
    uint64_t looked_ns;               /* at the device */
    uint64_t watched_ns, stream_comm; /* lanes of streams, and a communicator with one overdue (observe.c) */
    int on_stream;                    /* there is one */
};

rondo_result_t rondo_poller_create(struct rondo_runtime *runtime);
void rondo_poller_destroy(struct rondo_runtime *runtime);
/* Cheap unless it sleeps. Under any lock. */
void rondo_poller_wake(struct rondo_runtime *runtime);

#endif
