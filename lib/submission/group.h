/* Groups: what a thread calls on a communicator after rondo_group_start begins together at rondo_group_end. Only the thread
 * that has the group open adds to it, so that adding needs no lock. */
#ifndef RONDO_LIB_SUBMISSION_GROUP_H
#define RONDO_LIB_SUBMISSION_GROUP_H

#include "lib/submission/request.h"

/* Whether the calling thread has a group open on the communicator. */
int rondo_group_is_open(const struct rondo_comm *comm);
/* Adds the request to the group if the calling thread has one open, and makes the requests of the calls that are in it already.
 * Returns 1 if the group will start the request; 0 if the caller must. */
int rondo_group_joins(struct rondo_comm *comm, struct rondo_request *request);
/* Adds the blocking call of a message to the group that the calling thread has open. rondo_group_end finds or makes its
 * request. The call is copied. Returns 0 if the group has requests already or no room; then the caller makes the request. */
int rondo_group_notes(struct rondo_comm *comm, const struct rondo_known_call *known);

#endif
