/* Binding: a call becomes an operation, with buffers, layouts, slices and a lane's connectors, in the form that the engine
 * runs. Relies on lib/select for the algorithm and on lib/connection/lane.h for the connectors. */
#ifndef RONDO_LIB_SUBMISSION_BIND_H
#define RONDO_LIB_SUBMISSION_BIND_H

#include "lib/context/runtime.h"
#include "lib/select/select.h"

/* Fills request->operation from request->call on request->lane, for the algorithm, protocol and channels of choice. The request
 * is inactive. Not under a lock: it may connect, which does not need the peers' user threads. Returns RONDO_ERR_MEMORY,
 * RONDO_ERR_UNSUPPORTED, or why connecting failed; then nothing is allocated for the request. */
rondo_result_t rondo_operation_bind(struct rondo_request *request, const struct rondo_choice *choice);
/* Gives a bound request other buffers. The request is inactive, and the same choice is right for a call on these buffers
 * (lib/submission/request_cache.c: is_alike). */
void rondo_operation_move(struct rondo_request *request, const void *send, void *recv);
/* Frees the layouts and the scratch of an inactive request, and ends its use of a residual. Idempotent. */
void rondo_operation_unbind(struct rondo_request *request);

/* Sets *input and *output to the buffers that the call reads and writes, with RONDO_IN_PLACE resolved; NULL: this rank has
 * none. */
void rondo_call_buffers(const struct rondo_comm *comm, const struct rondo_call *call, char **input, char **output);

#endif
