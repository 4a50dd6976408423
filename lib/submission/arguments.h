/* Argument checks of calls, and the signature of a call, which all its ranks must have in common. Both follow from the
 * collective's row of the descriptor table (lib/call/collective.h). */
#ifndef RONDO_LIB_SUBMISSION_ARGUMENTS_H
#define RONDO_LIB_SUBMISSION_ARGUMENTS_H

#include "lib/call/call.h"
#include "lib/context/runtime.h"

/* Checks the arguments of a call in any form. Any thread, not under a lock. Returns RONDO_ERR_ARGUMENT or RONDO_ERR_BUFFER for
 * the first wrong argument, with its value in the message; RONDO_ERR_DEVICE where a GPU's memory cannot be looked at. Other
 * ranks take no part. */
rondo_result_t rondo_call_check(const struct rondo_comm *comm, const struct rondo_call *call);

/* What all ranks of a call must have in common: plain data without padding, which check.c compares byte by byte. */
struct rondo_signature {
    uint32_t kind, type, op, root, rate, feedback, program;
    uint64_t count;
};
/* How many blocks the call's buffers have on this rank, where they have blocks. */
struct rondo_blocks rondo_call_blocks(const struct rondo_comm *comm, enum rondo_kind kind);
/* Fills in the signature of a call that rondo_call_check has accepted. A field on which the ranks need not agree is 0. A send
 * has the signature of its receive. */
void rondo_call_signature(const struct rondo_comm *comm, const struct rondo_call *call, struct rondo_signature *signature);

#endif
