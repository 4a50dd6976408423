/* Which buffers of a call the other ranks reach where they lie, and opening those of persistent operations to them. */
#ifndef RONDO_LIB_SUBMISSION_REACH_H
#define RONDO_LIB_SUBMISSION_REACH_H

#include "lib/context/runtime.h"
#include "lib/call/call.h"
#include "lib/connection/window.h"

/* Whether a call on these buffers may use an algorithm that is direct; the same on all ranks. windows: of a persistent
 * operation, as rondo_open_buffers left them; else NULL, twice. */
int rondo_is_reachable(const struct rondo_comm *comm, const struct rondo_call *call,
                       struct rondo_registration *const windows[2]);
/* A persistent operation's buffers are known to all at init: opens them if that may pay. Collective, because whether it may is
 * known to all; a rank on which one cannot be opened goes on with the other, as its peers do. */
rondo_result_t rondo_open_buffers(struct rondo_comm *comm, const struct rondo_call *call,
                                  struct rondo_registration *windows[2]);
void rondo_close_buffers(struct rondo_comm *comm, struct rondo_registration *const windows[2]);
/* At a start: whether the buffers that peers reach directly are those that were opened to them. RONDO_ERR_BUFFER if one was
 * freed since. Nothing on the host device. */
rondo_result_t rondo_request_still(const struct rondo_request *request);

#endif
