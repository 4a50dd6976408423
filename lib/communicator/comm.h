/* Communicators: who is in them, and their own lane. */
#ifndef RONDO_LIB_COMMUNICATOR_COMM_H
#define RONDO_LIB_COMMUNICATOR_COMM_H

#include "lib/context/runtime.h"

/* members: ranks in the world, in the communicator's order; copied. */
rondo_result_t rondo_comm_create(struct rondo_runtime *runtime, uint64_t id, const int *members, int size,
                                 struct rondo_comm **comm);
void rondo_comm_destroy(struct rondo_comm *comm);
/* From here on it learns of failures; of members that went before, at once. */
void rondo_comm_list(struct rondo_comm *comm);
/* Nobody else knows it any more when this returns. One that was never listed is left as it is. */
void rondo_comm_unlist(struct rondo_comm *comm);
void rondo_comm_abort_message(struct rondo_runtime *runtime, int source, const void *data, size_t bytes);

#endif
