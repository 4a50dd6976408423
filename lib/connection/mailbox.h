/*
 * Tagged messages between ranks, each of which a thread waits for, and the collective exchange built on them. Mail that comes
 * before it is waited for is kept.
 */
#ifndef RONDO_LIB_CONNECTION_MAILBOX_H
#define RONDO_LIB_CONNECTION_MAILBOX_H

#include "lib/context/runtime.h"

rondo_result_t rondo_mailbox_create(struct rondo_mailbox **mailbox);
void rondo_mailbox_destroy(struct rondo_mailbox *mailbox);
/* From the control handler: a message of type RONDO_MESSAGE_MAIL. */
void rondo_mailbox_deliver(struct rondo_runtime *runtime, int source, const void *data, size_t bytes);
/* Wakes all waiting, to look whether their peer has gone. */
void rondo_mailbox_wake(struct rondo_runtime *runtime);

/* Every member gives bytes of mine; all (size * bytes) receives those of all members, in rank order. Collective over the
 * communicator, in the same order on all members. Ends with the communicator's failure, or RONDO_ERR_TIMEOUT after
 * settings.timeout if that is not 0. name: for the message. */
rondo_result_t rondo_exchange(struct rondo_comm *comm, const char *name, const void *mine, size_t bytes, void *all);
/* Every member tells how its part of something went (mine, with its message), and if one failed, all fail: a member whose own
 * part failed as that did, the others with the code of the first. The communicator's own failure goes before either, as it is
 * why a part failed on the way to a peer that has died. *refused: all members know that one failed. Collective as an exchange.
 */
rondo_result_t rondo_agree(struct rondo_comm *comm, const char *name, rondo_result_t mine, int *refused);

#endif
