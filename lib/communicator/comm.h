/* Communicators: who is in them, and their own lane. */
#ifndef RONDO_LIB_COMMUNICATOR_COMM_H
#define RONDO_LIB_COMMUNICATOR_COMM_H

#include "lib/context/runtime.h"

/* Makes a communicator with a lane of its own, and lists it. members: ranks in the world, in the communicator's order; copied.
 */
rondo_result_t rondo_comm_create(struct rondo_runtime *runtime, uint64_t id, const int *members, int size,
                                 struct rondo_comm **comm);
/* None of its requests is active any more. */
void rondo_comm_destroy(struct rondo_comm *comm);
/* Lists the communicator: from here on it learns of failures; of members that have gone before, at once. */
void rondo_comm_list(struct rondo_comm *comm);
/* Takes it from the list. No other thread uses it any more when this returns. One that was never listed is left as it is. */
void rondo_comm_unlist(struct rondo_comm *comm);
/* From the control handler: RONDO_MESSAGE_ABORT. */
void rondo_comm_abort_message(struct rondo_runtime *runtime, int source, const void *data, size_t bytes);

/* A communicator that has no lane and serves for exchanges alone (lib/connection/mailbox.h), before or beside a real one. It is
 * listed, so it fails if one of its members dies. */
struct rondo_comm_rendezvous;
/* members: ranks in the world; must stay until close. RONDO_ERR_MEMORY. */
rondo_result_t rondo_comm_rendezvous_open(struct rondo_runtime *runtime, uint64_t id, int *members, int rank, int size,
                                          struct rondo_comm_rendezvous **rendezvous);
struct rondo_comm *rondo_comm_rendezvous_comm(struct rondo_comm_rendezvous *rendezvous);
/* NULL: nothing. */
void rondo_comm_rendezvous_close(struct rondo_comm_rendezvous *rendezvous);

#endif
