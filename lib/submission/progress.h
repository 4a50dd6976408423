/* Starting and waiting. */
#ifndef RONDO_LIB_SUBMISSION_PROGRESS_H
#define RONDO_LIB_SUBMISSION_PROGRESS_H

#include "lib/submission/request.h"

/* helper: RONDO_ASSIST_NOW: the caller goes on to wait for it at once. */
void rondo_progress_start(struct rondo_request *request, enum rondo_assist helper);
/* Of a request that has been bound: sets whether it may be carried out by who starts it, where nothing else is under way. */
void rondo_progress_classify(struct rondo_request *request);
/* Starts it and waits. */
rondo_result_t rondo_progress_run(struct rondo_request *request);
/* The same at once for calls whose requests are kept, as far as nothing else is under way (rondo_queue_run_cached_inline): one,
 * or several that begin together. Where threads can help. Returns how many are done; or, *stuck is the last one of them, and to
 * be waited for. */
int rondo_progress_again(struct rondo_runtime *runtime, const struct rondo_known_call *calls, int count,
                         struct rondo_request **stuck);
/* Waits, lending this thread to the daemon meanwhile; frees a request that is not persistent. */
rondo_result_t rondo_progress_wait(struct rondo_request *request);

#endif
