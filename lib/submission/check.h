/*
 * Checking (RONDO_CHECK): every operation's signature is compared across its ranks before it may move anything. One rank (the
 * communicator's first, or a message's receiver) collects and judges; the others' operations wait for its verdict on the host.
 */
#ifndef RONDO_LIB_SUBMISSION_CHECK_H
#define RONDO_LIB_SUBMISSION_CHECK_H

#include "lib/context/runtime.h"
#include "lib/call/call.h"

rondo_result_t rondo_check_create(struct rondo_checker **checker);
void rondo_check_destroy(struct rondo_checker *checker);
void rondo_check_message(struct rondo_runtime *runtime, int source, uint32_t type, const void *data, size_t bytes);

/* Sends the request's signature to its judge; rondo_request_approve follows. After it has been started. */
void rondo_check_ask(struct rondo_request *request);
/* Compares a persistent operation at its init; collective. RONDO_ERR_MISMATCH on all ranks if they disagree. */
rondo_result_t rondo_check_init(struct rondo_comm *comm, const struct rondo_call *call);

#endif
