/* What comes from other ranks, and what fails, is passed on to the rooms that it concerns. A room's new message gets a case
 * here, and its listener a place in the list. */
#ifndef RONDO_LIB_RUNTIME_DISPATCH_H
#define RONDO_LIB_RUNTIME_DISPATCH_H

#include "lib/context/runtime.h"

/* Handler of the control plane; argument: the runtime. Passes a message to the room whose type it has. Called by the control
 * thread, without locks. */
void rondo_dispatch(void *argument, int source, uint32_t type, const void *data, size_t bytes);

/* What rooms do when a communicator fails or a rank is gone, in this order. Ends with NULL. */
extern const struct rondo_failure_listener *const rondo_failure_listeners[];

#endif
