/* Requests: from a checked call to something that can be started and waited for. */
#ifndef RONDO_LIB_SUBMISSION_REQUEST_H
#define RONDO_LIB_SUBMISSION_REQUEST_H

#include "lib/context/runtime.h"

/* The forms every collective comes in. */
rondo_result_t rondo_call_blocking(rondo_comm_t comm, const struct rondo_call *call);
rondo_result_t rondo_call_nonblocking(rondo_comm_t comm, const struct rondo_call *call, rondo_request_t *request);
rondo_result_t rondo_call_persistent(rondo_comm_t comm, const struct rondo_call *call, const rondo_attr_t *attr,
                                     rondo_request_t *request);
rondo_result_t rondo_call_on_stream(rondo_comm_t comm, const struct rondo_call *call, void *stream);

/* Of a blocking call, to be started. */
rondo_result_t rondo_request_make_blocking(struct rondo_comm *comm, const struct rondo_call *call,
                                           struct rondo_request **result);

/* Frees an inactive request with what it owns. */
void rondo_request_destroy(struct rondo_request *request);
/* All of the communicator's; none is active. */
void rondo_request_destroy_all(struct rondo_comm *comm);

#endif
