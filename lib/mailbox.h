/*
 * Tagged messages between ranks that somebody waits for, and the collective exchange built on them. Mail that comes before it
 * is waited for is kept.
 */
#ifndef RONDO_LIB_MAILBOX_H
#define RONDO_LIB_MAILBOX_H

#include "runtime.h"

rondo_result_t rondo_mailbox_create(struct rondo_mailbox **mailbox);
void rondo_mailbox_destroy(struct rondo_mailbox *mailbox);
/* From the control handler: a message of type RONDO_MESSAGE_MAIL. */
void rondo_mailbox_deliver(struct rondo_runtime *runtime, int source, const void *data, size_t bytes);
/* Wakes all waiting, to look whether their peer has gone. */
void rondo_mailbox_stir(struct rondo_runtime *runtime);

/* Every member gives bytes of mine; all (size * bytes) receives everybody's, in rank order. Collective over the communicator,
 * in the same order on all members. Ends with the communicator's failure, or RONDO_ERR_TIMEOUT after settings.timeout if that
 * is not 0. name: for the message. */
rondo_result_t rondo_exchange(struct rondo_comm *comm, const char *name, const void *mine, size_t bytes, void *all);

#endif
