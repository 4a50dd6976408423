/* Communicators: making and freeing them, their members and their own lane. Relies on lib/connection for lanes and exchanges
 * and on lib/submission for requests. */
#ifndef RONDO_LIB_COMMUNICATOR_COMM_H
#define RONDO_LIB_COMMUNICATOR_COMM_H

#include "lib/context/runtime.h"

/* Makes a communicator with a lane of its own, and lists it. members: ranks in the world, in the communicator's order; copied.
 * id: the same on all members, and no other communicator of the job has it. Local: members need not call it together, and
 * connect later. Not under a lock. RONDO_ERR_MEMORY, or why the lane could not be made. */
rondo_result_t rondo_comm_create(struct rondo_runtime *runtime, uint64_t id, const int *members, int size,
                                 struct rondo_comm **comm);
/* Gives a new communicator what its parent's user has set. */
void rondo_comm_inherit(struct rondo_comm *comm, const struct rondo_comm *parent);
/* Takes the communicator from the list and frees it. Its requests have been freed (rondo_request_destroy_all), and no thread
 * uses it. Not under a lock. Local. */
void rondo_comm_destroy(struct rondo_comm *comm);
/* Lists the communicator: failures of its members fail it from here on, and a member that has gone before, or a notice that
 * came before, fails it at once. Not under a lock. */
void rondo_comm_list(struct rondo_comm *comm);
/* Takes the communicator from the list, and waits until no library thread has it pinned. Does nothing to one that was never
 * listed. Takes the runtime lock. */
void rondo_comm_unlist(struct rondo_comm *comm);

/* rondo_comm_split for another public function, which is named in messages. */
rondo_result_t rondo_comm_divide(rondo_comm_t comm, const char *function, int color, int key, rondo_comm_t *result);

/* Finds how the members lie on hosts, by what each rank has told. members: ranks in the world; NULL: all, which `size` then is.
 * RONDO_ERR_MEMORY, and *topology is then empty or untouched. */
rondo_result_t rondo_comm_find_topology(const struct rondo_runtime *runtime, const int *members, int size,
                                        struct rondo_topology *topology);

/* A rendezvous: a communicator without a lane, only for exchanges (lib/connection/exchange.h) before a real one exists. It is
 * listed, so that it fails if one of its members dies. */
struct rondo_comm_rendezvous;
/* Makes and lists one. members: ranks in the world; not copied, must stay until close. rank: the caller's index among them. id:
 * as rondo_comm_create. Local. RONDO_ERR_MEMORY: *rendezvous is NULL. */
rondo_result_t rondo_comm_rendezvous_open(struct rondo_runtime *runtime, uint64_t id, int *members, int rank, int size,
                                          struct rondo_comm_rendezvous **rendezvous);
/* The communicator to pass to rondo_exchange; valid until close. */
struct rondo_comm *rondo_comm_rendezvous_comm(struct rondo_comm_rendezvous *rendezvous);
/* Takes it from the list and frees it. NULL: nothing. No exchange is under way. */
void rondo_comm_rendezvous_close(struct rondo_comm_rendezvous *rendezvous);

#endif
