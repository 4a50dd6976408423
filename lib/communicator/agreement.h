/*
 * Agreement among the members of a communicator although members die in the middle of it: all that go on get one value. It
 * needs neither the communicator's lane nor that the communicator has not failed. Relies on the control plane alone: on its
 * messages, which keep their order between two ranks, and on its notices that a rank has died or left, after which none of that
 * rank's messages comes. test/models/agreement.pml is the model.
 *
 * Contributions go up a binomial tree of the members that live, and its root proposes what follows from them. When all that
 * live have stored the proposal, which is reported up the tree, it is decided, and the decision goes down. So without deaths a
 * member sends no more than two messages for each binary digit of the number of members, and each phase takes as many steps as
 * the tree is deep. If a member goes, its children report to the nearest ancestor that lives; if the root goes, the next one
 * proposes what it has stored. lib/communicator/agreement.c says why whatever a member has returned, even one that has died
 * since, is what all return.
 *
 * A rank that has returned still answers: reports are handled on the control thread, and a decision is kept while another
 * member may lack it, also when the communicator has been freed.
 */
#ifndef RONDO_LIB_COMMUNICATOR_AGREEMENT_H
#define RONDO_LIB_COMMUNICATOR_AGREEMENT_H

#include "lib/context/runtime.h"

/* What the members agree on. failed, acknowledged: one byte for each rank of the communicator. */
struct rondo_agreed {
    int32_t flag;                /* in: this rank's; out: the bitwise AND of all that have contributed */
    unsigned char *failed;       /* out: ranks that are known to have died or left, by any member */
    unsigned char *acknowledged; /* in: those that this rank has acknowledged; out: those that all have */
};

/* Creates the runtime's agreements. Called once, during init. RONDO_ERR_MEMORY. */
rondo_result_t rondo_agreements_create(struct rondo_agreements **agreements);
/* Frees them, if they have been created. The control thread must have ended. */
void rondo_agreements_destroy(struct rondo_runtime *runtime);
/* The communicator has been freed: drops what no member can still ask for. Any thread, without the runtime lock. */
void rondo_agreements_forget(struct rondo_runtime *runtime, uint64_t comm);
/* Handles RONDO_MESSAGE_AGREEMENT from rank source. Called on the control thread. Ignores a message that is malformed. */
void rondo_agreement_message(struct rondo_runtime *runtime, int source, const void *data, size_t bytes);
/* Looks anew at the agreements that wait for a rank that has gone. Listed in lib/runtime/dispatch.c. */
extern const struct rondo_failure_listener rondo_agreement_failure;

/* Agrees. Collective over the members that have not died, in one order among the agreements of the communicator; not on the
 * control thread, and without locks. name: the public call, for messages. RONDO_SUCCESS with the same *agreed on all members
 * that return it; RONDO_ERR_PEER if this rank itself is cut off from the others, RONDO_ERR_TIMEOUT after settings.timeout if
 * that is not 0 (others may agree all the same), RONDO_ERR_UNSUPPORTED on all for more ranks than a control message has room
 * for, RONDO_ERR_MEMORY, with which this rank gives up its connection, so that it counts as dead. */
rondo_result_t rondo_agreement_reach(struct rondo_comm *comm, const char *name, struct rondo_agreed *agreed);

#endif
