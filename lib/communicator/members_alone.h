/* Communicators that their members make by themselves: the other ranks of the one that they are made from do not take part, and
 * neither does that one's lane. Relies on the control plane alone. */
#ifndef RONDO_LIB_COMMUNICATOR_MEMBERS_ALONE_H
#define RONDO_LIB_COMMUNICATOR_MEMBERS_ALONE_H

#include "lib/context/runtime.h"

/* What all members give alike. */
struct rondo_alone {
    const char *function; /* the public call, for messages */
    int *members;         /* ranks in the world, in the new communicator's order; the caller is one of them */
    int size;
    int tag; /* tells apart what several threads make of the same communicator at one time */
};

/* Makes the communicator of the members once all of them have called it; no rank gets one that another lacks. Collective over
 * the members, in one order for each tag. It inherits comm's compression. Fails as rondo_meet does, with RONDO_ERR_MISMATCH
 * where members whose lists differ have the smallest rank in common, and RONDO_ERR_MEMORY. *made is NULL then. */
rondo_result_t rondo_comm_make_alone(struct rondo_comm *comm, const struct rondo_alone *alone, struct rondo_comm **made);

#endif
