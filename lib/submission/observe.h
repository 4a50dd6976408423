/*
 * What this rank's operations are doing, for hang reports (lib/diagnostics/hang.h): the active requests, and the lanes whose
 * kernels on streams wait.
 */
#ifndef RONDO_LIB_SUBMISSION_OBSERVE_H
#define RONDO_LIB_SUBMISSION_OBSERVE_H

#include "lib/diagnostics/hang.h"

/* Reports active requests and waiting lanes, and finds a communicator with an operation beyond the timeout. Takes the runtime
 * lock and the queue lock. */
extern const struct rondo_hang_observer rondo_hang_observer;

/* Records which lanes have waiting kernels on streams, and since when; at most once in 100 ms. Called by the poller alone;
 * takes the runtime lock. */
void rondo_observe_streams(struct rondo_runtime *runtime);

#endif
