/*
 * What this rank's operations are doing, for hang reports: those that are active, and lanes whose kernels on streams wait.
 */
#ifndef RONDO_LIB_SUBMISSION_OBSERVE_H
#define RONDO_LIB_SUBMISSION_OBSERVE_H

#include "lib/diagnostics/hang.h"

extern const struct rondo_hang_observer rondo_hang_observer;

/* From the poller, every tick: looks now and then which lanes have kernels on streams that wait, and since when. */
void rondo_observe_streams(struct rondo_runtime *runtime);

#endif
