/* Starting and waiting. */
#ifndef RONDO_LIB_PROGRESS_H
#define RONDO_LIB_PROGRESS_H

#include "runtime.h"

/* will_wait: the caller goes on to wait for it at once. */
void rondo_progress_start(struct rondo_request *request, int will_wait);
/* Whether it may be carried out by who starts it, where nothing else is under way. */
int rondo_progress_is_simple(const struct rondo_request *request);
/* Starts it and waits. */
rondo_result_t rondo_progress_run(struct rondo_request *request);
/* Waits, lending this thread to the daemon meanwhile; frees a request that is not persistent. */
rondo_result_t rondo_progress_wait(struct rondo_request *request);

#endif
