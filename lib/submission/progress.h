/* Waiting for requests, and handing out their results. Relies on lib/submission/state.h to start them and on
 * lib/submission/assist.h to run the device's block while a thread waits. */
#ifndef RONDO_LIB_SUBMISSION_PROGRESS_H
#define RONDO_LIB_SUBMISSION_PROGRESS_H

#include "lib/submission/request.h"

/* Starts an inactive request and waits for it. Otherwise as rondo_progress_wait. */
rondo_result_t rondo_progress_run(struct rondo_request *request);
/* Waits for a started request, and runs the device's block 0 and the proxy meanwhile. Returns the request's result, with the
 * message in rondo_last_error. A persistent request is inactive then; any other is cached or freed, and must not be used any
 * more. One thread waits for a request; not under a lock. */
rondo_result_t rondo_progress_wait(struct rondo_request *request);
/* Waits until no request of the communicator (NULL: of the runtime) is active, if all that are belong to failed communicators,
 * whose requests end by themselves; at most a few seconds. Returns how many are active. Not under a lock. */
int rondo_progress_settle(struct rondo_runtime *runtime, const struct rondo_comm *comm);

#endif
