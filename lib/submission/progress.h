/* Waiting for requests, and what becomes of them when they are done. Relies on lib/submission/state.h to start them. */
#ifndef RONDO_LIB_SUBMISSION_PROGRESS_H
#define RONDO_LIB_SUBMISSION_PROGRESS_H

#include "lib/submission/request.h"

/* Starts the request and waits for it; as rondo_progress_wait. */
rondo_result_t rondo_progress_run(struct rondo_request *request);
/* Waits for a started request, running the device's block and the proxy meanwhile. Returns its result, with the message in
 * rondo_last_error, and makes it inactive if it is persistent; else it is cached or freed. */
rondo_result_t rondo_progress_wait(struct rondo_request *request);

#endif
