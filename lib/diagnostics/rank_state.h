/*
 * What a rank tells of itself while it runs: its counts, what its operations wait for, and its last operations, as JSON; and
 * the counts alone in the text form of Prometheus.
 */
#ifndef RONDO_LIB_DIAGNOSTICS_RANK_STATE_H
#define RONDO_LIB_DIAGNOSTICS_RANK_STATE_H

#include "lib/context/runtime.h"

/* A JSON object; the caller frees it. NULL if there is no memory. Takes the runtime lock and the queue lock. Any thread. */
char *rondo_rank_state(struct rondo_runtime *runtime);
/* Text of Prometheus (exposition format 0.0.4); the caller frees it. NULL if there is no memory or the device has failed. The
 * same locks. */
char *rondo_rank_metrics(struct rondo_runtime *runtime);

#endif
