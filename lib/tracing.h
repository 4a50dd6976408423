/*
 * Traces (RONDO_TRACE=file): what each block of the daemon did and when, as Chrome trace JSON, with ranks as processes and
 * blocks as threads of them. All ranks of a host write to one file, each some lines at a time under a lock on it. Between these
 * writes it is complete JSON, so that a job which is killed leaves a trace too (inside a write: with its last line cut off).
 */
#ifndef RONDO_LIB_TRACING_H
#define RONDO_LIB_TRACING_H

#include "runtime.h"

struct rondo_tracing;

/* Before the device is created, and before ranks tell each other that they are ready: reads RONDO_TRACE, and on the first rank
 * of each host empties the file. *trace stays NULL without one. RONDO_ERR_ARGUMENT if the file cannot be written. */
rondo_result_t rondo_tracing_create(struct rondo_runtime *runtime, struct rondo_tracing **trace);
/* After all are ready. */
rondo_result_t rondo_tracing_begin(struct rondo_runtime *runtime);
/* The rest below does nothing without a trace. Of an operation that is being submitted; queue lock held. */
void rondo_tracing_start(struct rondo_runtime *runtime, const struct rondo_request *request);
/* From the poller: takes what the blocks have recorded; most: nanoseconds until it should be called again. */
void rondo_tracing_drain(struct rondo_runtime *runtime, uint64_t *most);
/* After the daemon's end: writes the rest. */
void rondo_tracing_destroy(struct rondo_runtime *runtime);

#endif
