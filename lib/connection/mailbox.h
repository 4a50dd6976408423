/*
 * Tagged messages between ranks. A thread waits for each message; the mailbox retains a message that arrives before the wait
 * begins. Relies on lib/control/control.h.
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

/* What a message begins with. Plain data: transmitted as bytes. */
struct rondo_mail_header {
    uint64_t comm, number;       /* of the exchange among those of the communicator */
    uint64_t step;               /* 0: towards the first member, 1: from it */
    uint64_t key, list, attempt; /* struct rondo_membership's; 0: the members know each other */
    uint64_t part;               /* which one of the messages in which the whole is sent */
    uint64_t whole;              /* bytes of all of them; the receiver knows what it expects */
};
/* Bytes of the whole in each part but the last. */
#define RONDO_MAIL_PART_MOST (RONDO_CONTROL_MESSAGE_MAX - sizeof(struct rondo_mail_header))

/* Sends the member `destination` one part. data: where the whole begins. RONDO_ERR_MEMORY, and the errors of
 * rondo_control_send. Any thread. */
rondo_result_t rondo_mailbox_send(struct rondo_comm *comm, int destination, const struct rondo_mail_header *header,
                                  const char *data);
/* Waits for the part that the header says from the member `source`, which itself waits for so many ranks before it sends, and
 * copies it to its place in data, where the whole begins. The more ranks there are, the longer is the wait, so that the member
 * that waits for a missing rank itself is the first to say so. Fails as rondo_exchange does. */
rondo_result_t rondo_mailbox_receive(struct rondo_comm *comm, const char *name, int source,
                                     const struct rondo_mail_header *header, int ranks, char *data);

#endif
