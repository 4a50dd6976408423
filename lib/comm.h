/* Communicators: who is in them, and their own lane. */
#ifndef RONDO_LIB_COMM_H
#define RONDO_LIB_COMM_H

#include "runtime.h"

/* members: ranks in the world, in the communicator's order; copied. */
rondo_result_t rondo_comm_create(struct rondo_runtime *runtime, uint64_t id, const int *members, int size,
                                 struct rondo_comm **comm);
void rondo_comm_destroy(struct rondo_comm *comm);
void rondo_comm_abort_message(struct rondo_runtime *runtime, int source, const void *data, size_t bytes);

#endif
