/*
 * Error feedback: what compression has lost of a rank's data, which is added to them the next time (docs/guide/compression.md).
 * A persistent request has a residual of its own. Other calls find that of their buffers: the communicator has one for each of
 * the combinations of buffers, type, count, operator and rate that were used last. Relies on the device's memory.
 */
#ifndef RONDO_LIB_SELECT_RESIDUALS_H
#define RONDO_LIB_SELECT_RESIDUALS_H

#include "lib/call/call.h"
#include "lib/context/runtime.h"

#include <pthread.h>

struct rondo_residual {
    struct rondo_residual *next;
    struct rondo_call call; /* whose loss it is; without arrays */
    int users;              /* requests that refer to it */
    int shared;             /* in the communicator's list */
    void *memory;           /* device memory, laid out as the input, in the type in which the codec computes */
    size_t bytes;
};

enum { RONDO_RESIDUALS_MOST = 256 }; /* of a communicator, but for those that requests refer to */

/* The part of a communicator that belongs to residuals. */
struct rondo_comm_residuals {
    pthread_mutex_t lock;
    struct rondo_residual *first; /* the one used last */
    int count;
};

/*
 * Stores the residual of a call that is fed back; a new one is all zeros: nothing has been lost yet. shared: that of the call's
 * buffers, which equal calls have in common. They are executed one after the other, because they write the same buffer. Each
 * use is ended by rondo_residual_release. Any thread. RONDO_ERR_MEMORY, RONDO_ERR_DEVICE.
 */
rondo_result_t rondo_residual_use(struct rondo_comm *comm, const struct rondo_call *call, int shared,
                                  struct rondo_residual **residual);
/* The device does not use it for this request any more. A shared one is left for the next call. Any thread. */
void rondo_residual_release(struct rondo_comm *comm, struct rondo_residual *residual);

/* Frees those that no request uses, which at the communicator's end is all of them. */
void rondo_residuals_free(struct rondo_comm *comm);

#endif
