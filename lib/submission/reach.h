/* Which buffers of a call the peers can access where they lie, and opening the buffers of persistent operations to them. Relies
 * on lib/connection/window.h. */
#ifndef RONDO_LIB_SUBMISSION_REACH_H
#define RONDO_LIB_SUBMISSION_REACH_H

#include "lib/context/runtime.h"
#include "lib/call/call.h"
#include "lib/connection/window.h"

/* Whether a direct algorithm may be chosen for the call; the same on all ranks. windows: as rondo_open_buffers left them for a
 * persistent operation, else two NULLs. May take the runtime lock. */
int rondo_is_reachable(const struct rondo_comm *comm, const struct rondo_call *call,
                       struct rondo_registration *const windows[2]);
/* The bytes of the call's input or output. Only for a call that a direct algorithm may carry out. */
size_t rondo_buffer_bytes(const struct rondo_comm *comm, const struct rondo_call *call, int output);
/* Opens the buffers of a persistent operation to its peers, if a direct algorithm may pay there. Collective: all ranks of the
 * communicator call it, come to the same decision, and open both buffers or none; a rank whose first buffer cannot be opened
 * still opens the second, because its peers wait for it. Sets windows[i] to NULL or to what rondo_close_buffers closes, also on
 * failure. Returns the last failure. */
rondo_result_t rondo_open_buffers(struct rondo_comm *comm, const struct rondo_call *call,
                                  struct rondo_registration *windows[2]);
/* Closes the windows that are not NULL. No operation uses them any more. */
void rondo_close_buffers(struct rondo_comm *comm, struct rondo_registration *const windows[2]);
/* Whether peers reach the request's buffers through registrations, which may end before its next use. Within one process they
 * use addresses. */
int rondo_relies_on_registrations(const struct rondo_request *request);
/* Checks, before a start, that the buffers of a direct operation are still the memory that was opened to the peers. Returns
 * RONDO_ERR_BUFFER if one was freed since. Does nothing for other operations and within one process. */
rondo_result_t rondo_request_still(const struct rondo_request *request);

#endif
