/*
 * Failure of communicators. Every cause of failure ends in rondo_comm_fail, which ends all operations of the communicator on
 * this rank. What other ranks cannot learn from the control plane (the death of a rank) they are told in a notice: of a failed
 * operation, an abort, a lost link, a rank that cannot go on. Relies on the listeners of the rooms above, and on the control
 * plane, which gives a notice to every rank or shows this one as dead.
 */
#ifndef RONDO_LIB_CONTEXT_FAILURE_H
#define RONDO_LIB_CONTEXT_FAILURE_H

#include "lib/context/comm.h"

#include <stddef.h>

struct rondo_runtime;

/* A room's reaction to the failure of a communicator or the departure of a rank. lib/runtime/dispatch.c lists the listeners of
 * all rooms. A function may be NULL. */
struct rondo_failure_listener {
    /* Called before the communicator is marked as failed, while its operations are what they were; by each thread that finds a
     * failure at once. No lock held. */
    void (*impending)(struct rondo_comm *comm);
    /* Called when the communicator has just been marked as failed. Runtime lock held; must not wait. */
    void (*failing)(struct rondo_comm *comm, rondo_result_t code);
    /* Called after the runtime lock has been released. */
    void (*failed)(struct rondo_comm *comm);
    /* Called when a communicator has failed that this rank has not made yet, or has freed. No lock held. */
    void (*unlisted)(struct rondo_runtime *runtime, uint64_t id, rondo_result_t code);
    /* Called when a rank has gone, before its communicators fail. No lock held. */
    void (*peer_gone)(struct rondo_runtime *runtime);
};

/* Why a rank is not among those that can be reached; struct rondo_runtime's gone. */
enum rondo_gone { RONDO_HERE, RONDO_DIED, RONDO_LEFT, RONDO_UNREACHABLE };

/* Notices that came before the communicator that they are about: rondo_comm_list applies them. Runtime lock. */
struct rondo_early_notice {
    int scope; /* enum scope of failure.c; 0: none */
    int source;
    uint64_t comm;
    rondo_result_t code;
    char text[400];
};
#define RONDO_EARLY_NOTICES 16 /* beyond which the oldest is dropped */

/* Marks the communicator as failed on this rank alone, and ends every operation on it with the code and the message. A later
 * call has no effect: the first failure stays. Any thread, without locks. */
void rondo_comm_fail(struct rondo_comm *comm, rondo_result_t code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same on all ranks of the communicator, which get a notice, unless it has failed already. Any thread, without locks. */
void rondo_comm_fail_everywhere(struct rondo_comm *comm, rondo_result_t code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Fails the communicator with RONDO_ERR_REVOKED on all of its ranks, also where it has failed on this one already: others may
 * not know of that. Any thread, without locks. */
void rondo_comm_revoke_everywhere(struct rondo_comm *comm);
/* After a call has found that a rank is gone or out of reach (RONDO_ERR_PEER): waits, at most a second, until the control
 * thread, which may have found it only now, has failed the communicator, so that the next call on it fails. rondo_last_error
 * stays. Not on the control thread; without locks. */
void rondo_comm_await_failure(const struct rondo_comm *comm);
/* To be called with the result of each step of a call in which other ranks take part, and of which they do not learn otherwise.
 * function: the public call, for the message. Fails the communicator everywhere if this rank cannot do its part; not if the
 * caller has made a mistake that was found before anything was done (RONDO_ERR_ARGUMENT, BUFFER, STATE, UNSUPPORTED). Returns
 * the result, with rondo_last_error as it was; but for RONDO_ERR_PEER and RONDO_ERR_TRANSPORT the communicator's failure, if
 * that says what has become of a rank on the way to which the step failed. Not on the control thread; without locks. */
rondo_result_t rondo_comm_conclude(struct rondo_comm *comm, const char *function, rondo_result_t result);
/* Fails the communicator of that id everywhere, which this rank may not have made yet, or may have freed, with the function and
 * rondo_last_error as the reason. */
void rondo_comm_fail_by_id(struct rondo_runtime *runtime, uint64_t id, rondo_result_t code, const char *function);
/* Applies rondo_comm_fail to each communicator that has not failed yet and that contains all of the count ranks (count 0: to
 * every communicator). Ranks are those of the world. Returns how many there were. Any thread, without locks. */
int rondo_comms_fail(struct rondo_runtime *runtime, const int *ranks, int count, rondo_result_t code, const char *text);
/* This rank can take part in nothing any more: fails all its communicators everywhere, and on other ranks those that they make
 * with it later. Any thread, without locks. */
void rondo_rank_fail(struct rondo_runtime *runtime, rondo_result_t code, const char *text);
/* Fails a communicator that has just been listed if a member has gone or a notice about it came early. Without locks. */
void rondo_comm_fail_early(struct rondo_comm *comm);
/* Returns the communicator of that id, which is not freed until rondo_comm_unpin; NULL if there is none. Takes the runtime
 * lock. */
struct rondo_comm *rondo_comm_pin(struct rondo_runtime *runtime, uint64_t id);
/* Undoes one rondo_comm_pin. Takes the runtime lock. */
void rondo_comm_unpin(struct rondo_comm *comm);
/* Marks the rank as gone, calls the listeners' peer_gone, and fails the communicators that contain the rank with
 * RONDO_ERR_PEER. Called on the control thread, without locks. */
void rondo_peer_gone(struct rondo_runtime *runtime, int rank, enum rondo_gone how);
/* Whether the rank has died, left or cannot be reached. Any thread. */
int rondo_is_gone(const struct rondo_runtime *runtime, int rank);
/* Handles the loss of the network connection between this rank and the peer. Fails the communicators that contain both with
 * RONDO_ERR_PEER, and tells all other ranks to do the same, as one of them may wait for a rank that waits for the lost peer.
 * The other ranks are not told if the peer has gone, as the control plane tells them. Any thread, without locks. */
void rondo_link_lost(struct rondo_runtime *runtime, int peer, const char *network, const char *why);
/* Handles RONDO_MESSAGE_FAILURE from rank source. Called on the control thread. A malformed message is ignored. */
void rondo_failure_message(struct rondo_runtime *runtime, int source, const void *data, size_t bytes);

#endif
