/*
 * Operations in stream order. A kernel on the user's stream carries its own engine, so that it needs neither the host nor a
 * daemon once it is enqueued; it executes the same programs, on lanes of their own, and so takes nothing from operations that
 * the host starts. Operations of one lane follow each other in the order of the calls, whatever their streams.
 */
#ifndef RONDO_LIB_SUBMISSION_STREAM_H
#define RONDO_LIB_SUBMISSION_STREAM_H

#include "lib/context/runtime.h"

/* RONDO_ERR_UNSUPPORTED on a device without streams, RONDO_ERR_ARGUMENT for what is no stream. captured: into a graph. */
rondo_result_t rondo_stream_check(const struct rondo_runtime *runtime, const char *function, void *stream, int *captured);

/* Enqueues requests of one communicator and one stream, linked by next_grouped, to be executed together. Those that are not
 * persistent are freed when they can be, and must not be used any more. */
rondo_result_t rondo_stream_enqueue(struct rondo_request *first);

/* Whether all that was enqueued of the lane has been executed. Looks at the device. */
int rondo_stream_idle(const struct rondo_host_lane *lane);

/* Frees what is kept for kernels of the communicator's operations. None may run. */
void rondo_stream_forget(struct rondo_comm *comm);

#endif
