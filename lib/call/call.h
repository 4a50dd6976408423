/* Calls: their argument checks, and what of them must agree between ranks. */
#ifndef RONDO_LIB_CALL_CALL_H
#define RONDO_LIB_CALL_CALL_H

#include "lib/context/runtime.h"

/* Argument checks of every form; the first wrong one is an error whose message has its value. */
rondo_result_t rondo_call_check(const struct rondo_comm *comm, const struct rondo_call *call);

/* Plain data without padding. */
struct rondo_signature {
    uint32_t kind, type, op, root, rate, feedback;
    uint64_t count;
};
void rondo_call_signature(const struct rondo_comm *comm, const struct rondo_call *call, struct rondo_signature *signature);

#endif
