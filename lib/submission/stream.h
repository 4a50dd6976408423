/*
 * Operations in stream order. A kernel on the user's stream contains its own engine: once enqueued, it needs neither the host
 * nor a daemon. It executes the same programs, on lanes of their own, apart from operations that the host starts. Operations of
 * one lane are executed in the order of the calls, on whatever streams they are. Relies on enqueue of the device table.
 */
#ifndef RONDO_LIB_SUBMISSION_STREAM_H
#define RONDO_LIB_SUBMISSION_STREAM_H

#include "lib/context/runtime.h"

/* Checks a stream for the public function of that name. *captured: whether the stream is being captured into a graph. Returns
 * RONDO_ERR_UNSUPPORTED on a device without streams, RONDO_ERR_ARGUMENT for what is no stream of the runtime's GPU; anything
 * else (RONDO_ERR_DEVICE) fails the communicator. */
rondo_result_t rondo_stream_check(struct rondo_comm *comm, const char *function, void *stream, int *captured);

/* Enqueues inactive requests of one communicator and one stream, linked by next_grouped, to be executed together. Takes
 * ownership of those that are not persistent, also on failure. Returns the communicator's failure, RONDO_ERR_MEMORY,
 * RONDO_ERR_UNSUPPORTED for a group that cannot be captured, or why the launch failed. Not under a lock; does not wait for
 * other ranks. */
rondo_result_t rondo_stream_enqueue(struct rondo_request *first);

/* *idle: whether all operations of the lane that were enqueued outside of graphs have been executed. Reads the device's memory:
 * RONDO_ERR_DEVICE if it cannot be read. */
rondo_result_t rondo_stream_idle(const struct rondo_host_lane *lane, int *idle);

/* Frees the retired requests of the communicator and the memory of its kernels. None of its kernels runs. */
void rondo_stream_forget(struct rondo_comm *comm);

#endif
