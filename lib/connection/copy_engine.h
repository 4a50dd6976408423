/*
 * Operations by a GPU's copy engines, which take no multiprocessor (RONDO_SM=0): a communicator's words for the signals of its
 * ranks, and the order of such operations. Relies on windows for the addresses of the others' memory, and on
 * lib/connection/copy_steps.h for what is done. What is received lies at the same offset of its registered range on all ranks.
 */
#ifndef RONDO_LIB_CONNECTION_COPY_ENGINE_H
#define RONDO_LIB_CONNECTION_COPY_ENGINE_H

#include "lib/connection/window.h"
#include "lib/program/plan.h"

/* An operation that is to be enqueued. */
struct rondo_copy_operation {
    const struct rondo_plan *plan; /* rondo_copy_steps_can */
    const struct rondo_operation *operation;
    size_t output_bytes;
    void *stream;
    uint64_t stream_id; /* 0: not known */
};

/* Prepares the communicator, if its settings ask for copy engines and nothing has prepared it yet: collective, as
 * rondo_window_open, whose errors it returns. */
rondo_result_t rondo_copy_engine_open(struct rondo_comm *comm);
/* Whether the communicator is prepared, with words that all ranks reach. The same on all ranks. */
int rondo_copy_engine_usable(const struct rondo_comm *comm);
/* Enqueues an operation, which the same call does on all ranks, in one order on each. Under the communicator's stream lock.
 * RONDO_ERR_BUFFER: another rank's range does not contain the buffer. RONDO_ERR_MEMORY, RONDO_ERR_DEVICE. */
rondo_result_t rondo_copy_engine_enqueue(struct rondo_comm *comm, const struct rondo_copy_operation *what);
/* How many operations were enqueued. */
uint32_t rondo_copy_engine_issued(const struct rondo_comm *comm);
/* *idle: whether all operations are done. Those of a failed communicator end when they are waited for here: their waits are
 * over then, and their copies are done with whatever the buffers hold. RONDO_ERR_DEVICE: the GPU's memory cannot be read. */
rondo_result_t rondo_copy_engine_idle(struct rondo_comm *comm, int *idle);
/* Ends the waits of a failed communicator's operations. Without locks. */
void rondo_copy_engine_fail(struct rondo_comm *comm);
/* No operation is enqueued any more, on any rank. */
void rondo_copy_engine_close(struct rondo_comm *comm);

#endif
