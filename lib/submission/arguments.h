/* Argument checks of calls, and what of a call must agree between ranks. */
#ifndef RONDO_LIB_SUBMISSION_ARGUMENTS_H
#define RONDO_LIB_SUBMISSION_ARGUMENTS_H

#include "lib/call/call.h"
#include "lib/context/runtime.h"

/* Checks a call's arguments in every form. The first wrong one is an error whose message has its value: RONDO_ERR_ARGUMENT or
 * RONDO_ERR_BUFFER. Local: other ranks are not involved. */
rondo_result_t rondo_call_check(const struct rondo_comm *comm, const struct rondo_call *call);

/* What all ranks of a call must have in common; plain data without padding, compared byte by byte (check.c). */
struct rondo_signature {
    uint32_t kind, type, op, root, rate, feedback;
    uint64_t count;
};
/* Fills in the signature of a call that rondo_call_check has accepted. Fields that ranks need not agree on are 0. For a send
 * and its receive, the two ends must agree. */
void rondo_call_signature(const struct rondo_comm *comm, const struct rondo_call *call, struct rondo_signature *signature);

#endif
