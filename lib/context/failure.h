/*
 * Failure of communicators. Every cause of failure ends in rondo_comm_fail, which ends all operations of the communicator.
 * Relies on the listeners of the rooms above, and on the control plane to inform peers of a lost link.
 */
#ifndef RONDO_LIB_CONTEXT_FAILURE_H
#define RONDO_LIB_CONTEXT_FAILURE_H

#include "lib/context/comm.h"

#include <stddef.h>

struct rondo_runtime;

/* A room's reaction to the failure of a communicator or the departure of a rank. lib/runtime/runtime.c lists the listeners of
 * all rooms. A function may be NULL. */
struct rondo_failure_listener {
    /* Called when the communicator has just been marked as failed. Runtime lock held; must not wait. */
    void (*failing)(struct rondo_comm *comm, rondo_result_t code);
    /* Called after the runtime lock has been released. */
    void (*failed)(struct rondo_comm *comm);
    /* Called when a rank has gone, before its communicators fail. No lock held. */
    void (*peer_gone)(struct rondo_runtime *runtime);
};

/* Marks the communicator as failed and ends every operation on it with the code and the message. A later call has no effect:
 * the first failure stays. Any thread, without locks. */
void rondo_comm_fail(struct rondo_comm *comm, rondo_result_t code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Applies rondo_comm_fail to each communicator that has not failed yet and that contains all of the count ranks (count 0: to
 * every communicator). Ranks are those of the world. Any thread, without locks. */
void rondo_comms_fail(struct rondo_runtime *runtime, const int *ranks, int count, rondo_result_t code, const char *text);
/* Returns the communicator of that id, which is not freed until rondo_comm_unpin; NULL if there is none. Takes the runtime
 * lock. */
struct rondo_comm *rondo_comm_pin(struct rondo_runtime *runtime, uint64_t id);
/* Undoes one rondo_comm_pin. Takes the runtime lock. */
void rondo_comm_unpin(struct rondo_comm *comm);
/* Marks the rank as gone, calls the listeners' peer_gone, and fails the communicators that contain the rank with
 * RONDO_ERR_PEER. how: "has died" or the like, for the message. Called on the control thread, without locks. */
void rondo_peer_gone(struct rondo_runtime *runtime, int rank, const char *how);
/* Handles the loss of the network connection between this rank and the peer. Fails the communicators that contain both with
 * RONDO_ERR_PEER, and tells all other ranks to do the same, as one of them may wait for a rank that waits for the lost peer.
 * The other ranks are not told if the peer has gone, as the control plane tells them. Any thread, without locks. */
void rondo_link_lost(struct rondo_runtime *runtime, int peer, const char *network, const char *why);
/* Handles RONDO_MESSAGE_LINK_LOST from rank source: fails the communicators that contain both ranks of the lost link. Called on
 * the control thread. A malformed message is ignored. */
void rondo_link_message(struct rondo_runtime *runtime, int source, const void *data, size_t bytes);

#endif
