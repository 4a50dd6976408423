/*
 * Tagged messages between ranks, and the collective exchange built on them. A thread waits for each message; the mailbox
 * retains a message that arrives before the wait begins. Relies on lib/bootstrap/control.h.
 */
#ifndef RONDO_LIB_CONNECTION_MAILBOX_H
#define RONDO_LIB_CONNECTION_MAILBOX_H

#include "lib/context/runtime.h"

/* Creates the mailbox. Called once, during init. RONDO_ERR_MEMORY if there is no memory. */
rondo_result_t rondo_mailbox_create(struct rondo_mailbox **mailbox);
/* Frees the mailbox and the messages that it retains. The control thread must have ended. */
void rondo_mailbox_destroy(struct rondo_mailbox *mailbox);
/* Stores a message of type RONDO_MESSAGE_MAIL from rank source, and wakes its receiver; drops it if this rank waits for it no
 * more. Called on the control thread. */
void rondo_mailbox_deliver(struct rondo_runtime *runtime, int source, const void *data, size_t bytes);
/* Wakes the threads that wait in an exchange, which then check whether their communicator has failed. Any thread. */
void rondo_mailbox_wake(struct rondo_runtime *runtime);

/* Drops the messages about the communicator, which has been freed and will not be made again, and what is known of attempts to
 * make others of it. Any thread, without the runtime lock. */
void rondo_mailbox_forget(struct rondo_runtime *runtime, uint64_t comm);

/* What ranks that meet have in common before they know that they are members of one communicator. Plain data: transmitted as
 * bytes.
 *
 * A rank makes one attempt at a time with one key, and counts its attempts with each list. An attempt that fails on one member
 * fails on all: members that have not come to it yet get its failure when they come, and the next attempt of all of them has
 * the next number. So a message of an earlier attempt is never taken for one of a later attempt. */
struct rondo_membership {
    uint64_t key;     /* not 0; a rank that has this key and another list has given other members */
    uint64_t list;    /* of the members in their order; has the key in it */
    uint64_t attempt; /* earlier attempts with this list */
    uint64_t parent;  /* id of the communicator that the members are ranks of */
    char text[72];    /* what this rank says of the members, for the message */
};
/* Ends an attempt on this rank, for which it waits no more: drops the messages about it. comm: the id of the communicator that
 * the members met with, which is not listed any more. first: this rank is the first member; then members that come to the
 * attempt later are told its result, if it is not RONDO_SUCCESS. Any thread, without the runtime lock. */
void rondo_mailbox_end_attempt(struct rondo_runtime *runtime, uint64_t comm, const struct rondo_membership *membership,
                               int first, rondo_result_t result);
/* The communicator of that id, which this rank does not have, has failed: members that have sent a message about it wait for an
 * answer no more. Any thread, without the runtime lock. */
void rondo_mailbox_withdraw(struct rondo_runtime *runtime, uint64_t comm, rondo_result_t code);
/* Waits until all members have called it. Collective, as rondo_exchange, and fails as that does. membership NULL: the members
 * know each other. Otherwise RONDO_ERR_MISMATCH, also on the ranks of the other communicator, if a member comes to the first
 * one with the same key and another list; and the failure of an attempt that a member has given up. Each attempt must be ended
 * by rondo_mailbox_end_attempt. */
rondo_result_t rondo_meet(struct rondo_comm *comm, const char *name, const struct rondo_membership *membership);
/* An allgather over the control plane: every member contributes bytes of mine, and all (size * bytes) receives the
 * contributions in rank order. Collective over the communicator: all members call it, in the same order and with equal bytes.
 * Not on a control thread and without locks. name: the calling function, for error messages. Returns the communicator's failure
 * if it fails, RONDO_ERR_TIMEOUT after settings.timeout if that is not 0 (in rondo_init: settings.connect_timeout),
 * RONDO_ERR_MISMATCH if a member sent another number of bytes, RONDO_ERR_UNSUPPORTED if the whole exceeds a control message,
 * RONDO_ERR_MEMORY. All but RONDO_ERR_UNSUPPORTED, which all members get, fail the communicator everywhere. */
rondo_result_t rondo_exchange(struct rondo_comm *comm, const char *name, const void *mine, size_t bytes, void *all);
/* Agrees on the result of a step that every member has carried out. mine: this member's result, whose message is
 * rondo_last_error. Returns RONDO_SUCCESS if all members passed that. Otherwise a member whose own step failed gets its own
 * result and message back, and the others get the code of the lowest failed rank. A failure of the communicator takes
 * precedence over both, because it is the reason why a step failed on the way to a dead peer. *refused: 1 if all members know
 * that one failed. Collective, as rondo_exchange. */
rondo_result_t rondo_agree(struct rondo_comm *comm, const char *name, rondo_result_t mine, int *refused);

#endif
