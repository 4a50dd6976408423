/*
 * Checking (RONDO_CHECK): the signature of every operation is compared across its ranks before it may move anything. One rank,
 * the arbiter (the communicator's first, or a message's receiver), collects the statements of all and sends the verdict; until
 * then each rank's operation waits on its host. Relies on the control plane (lib/control/control.h).
 */
#ifndef RONDO_LIB_SUBMISSION_CHECK_H
#define RONDO_LIB_SUBMISSION_CHECK_H

#include "lib/context/runtime.h"
#include "lib/call/call.h"

/* Makes a checker without comparisons. RONDO_ERR_MEMORY. */
rondo_result_t rondo_check_create(struct rondo_checker **checker);
/* Frees it with the comparisons that have not ended. NULL: nothing. No control handler runs any more. */
void rondo_check_destroy(struct rondo_checker *checker);
/* Handles RONDO_MESSAGE_CHECK and RONDO_MESSAGE_VERDICT; drops one of a wrong size. Called by the control thread alone, without
 * locks. */
void rondo_check_message(struct rondo_runtime *runtime, int source, uint32_t type, const void *data, size_t bytes);

/* Sends the statement of a started request to its arbiter. rondo_request_approve follows on this rank once all ranks have sent
 * theirs. Not under a lock. */
void rondo_check_ask(struct rondo_request *request);
/* Compares the calls of a persistent collective at its init. Collective: every rank of the communicator calls it and waits for
 * the others. Returns RONDO_ERR_MISMATCH on all ranks if they disagree, RONDO_ERR_MEMORY, or why the exchange failed. */
rondo_result_t rondo_check_init(struct rondo_comm *comm, const struct rondo_call *call);

#endif
