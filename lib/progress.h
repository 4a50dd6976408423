/* Starting and waiting. */
#ifndef RONDO_LIB_PROGRESS_H
#define RONDO_LIB_PROGRESS_H

#include "runtime.h"

/* helper: RONDO_HELPS: the caller goes on to wait for it at once. */
void rondo_progress_start(struct rondo_request *request, enum rondo_helper helper);
/* Of a request that has been bound: sets whether it may be carried out by who starts it, where nothing else is under way. */
void rondo_progress_classify(struct rondo_request *request);
/* Starts it and waits. */
rondo_result_t rondo_progress_run(struct rondo_request *request);
/* The same at once for a call whose request its lane (NULL: none) keeps. 0: it does not, or something else is under way. */
int rondo_progress_again(struct rondo_host_lane *lane, const struct rondo_call *call, rondo_result_t *result);
/* Of requests that begin together and are linked by next_grouped, carries out at once what can be. Returns the rest, from the
 * first that has not been started on; one that has, and is to be waited for, is put before the others of *blocking. */
struct rondo_request *rondo_progress_carry(struct rondo_request *first, struct rondo_request **blocking);
/* Waits, lending this thread to the daemon meanwhile; frees a request that is not persistent. */
rondo_result_t rondo_progress_wait(struct rondo_request *request);

#endif
