/* Groups: what a thread calls on a communicator from rondo_group_start on begins together at rondo_group_end. */
#ifndef RONDO_LIB_SUBMISSION_GROUP_H
#define RONDO_LIB_SUBMISSION_GROUP_H

#include "lib/submission/request.h"

/* Whether this thread has a group open on the communicator. */
int rondo_group_is_open(const struct rondo_comm *comm);
/* The same; then the request is one of it, and not to be started. */
int rondo_group_joins(struct rondo_comm *comm, struct rondo_request *request);
/* Where it is: the blocking call, of a message, is one of it; its request is looked for, or made, when the group ends. 0: it is
 * to be made. */
int rondo_group_notes(struct rondo_comm *comm, const struct rondo_known_call *known);

#endif
