/*
 * Collective exchanges of small records over the control plane, by which members agree. Relies on lib/connection/mailbox.h.
 */
#ifndef RONDO_LIB_CONNECTION_EXCHANGE_H
#define RONDO_LIB_CONNECTION_EXCHANGE_H

#include "lib/connection/mailbox.h"

/* Waits until all members have called it. Collective, as rondo_exchange, and fails as that does. membership NULL: the members
 * know each other. Otherwise RONDO_ERR_MISMATCH, also on the ranks of the other communicator, if a member comes to the first
 * one with the same key and another list; and the failure of an attempt that a member has given up. Each attempt must be ended
 * by rondo_mailbox_end_attempt. */
rondo_result_t rondo_meet(struct rondo_comm *comm, const char *name, const struct rondo_membership *membership);
/* An allgather over the control plane: every member contributes bytes of mine, and all (size * bytes) receives the
 * contributions in rank order. A member sends to and receives from at most log2(size) + 1 others, in parts of at most
 * RONDO_CONTROL_MESSAGE_MAX. Collective over the communicator: all members call it, in the same order and with equal bytes. A
 * member may return while others still wait for their parts. Not on a control thread and without locks. name: the calling
 * function, for error messages. Returns the communicator's failure if it fails, RONDO_ERR_TIMEOUT after settings.timeout and a
 * little if that is not 0 (in rondo_init: settings.connect_timeout), RONDO_ERR_MISMATCH if a member sent another number of
 * bytes, RONDO_ERR_MEMORY. Each of them fails the communicator everywhere. */
rondo_result_t rondo_exchange(struct rondo_comm *comm, const char *name, const void *mine, size_t bytes, void *all);
/* Agrees on the result of a step that every member has carried out. mine: this member's result, whose message is
 * rondo_last_error. Returns RONDO_SUCCESS if all members passed that. Otherwise a member whose own step failed gets its own
 * result and message back, and the others get the code of the lowest failed rank. A failure of the communicator takes
 * precedence over both, because it is the reason why a step failed on the way to a dead peer. *refused: 1 if all members know
 * that one failed. Collective, as rondo_exchange. */
rondo_result_t rondo_agree(struct rondo_comm *comm, const char *name, rondo_result_t mine, int *refused);

#endif
