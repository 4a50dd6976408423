/* Operations: a call bound to a lane's connectors, in the form the engine runs. */
#ifndef RONDO_LIB_SUBMISSION_BIND_H
#define RONDO_LIB_SUBMISSION_BIND_H

#include "lib/context/runtime.h"
#include "lib/select/select.h"

/* Fills request->operation from request->call on request->lane. The operation must not be on the device. May connect. */
rondo_result_t rondo_operation_bind(struct rondo_request *request, const struct rondo_choice *choice);
/* A request that has been bound, and is not on the device: to other buffers. Of a call that an algorithm fits as well there. */
void rondo_operation_move(struct rondo_request *request, const void *send, void *recv);
/* Frees what the binding allocated for this request alone. */
void rondo_operation_unbind(struct rondo_request *request);

/* The buffers the call reads and writes, in-place resolved; NULL where this rank has none. */
void rondo_call_buffers(const struct rondo_comm *comm, const struct rondo_call *call, char **input, char **output);

#endif
