/* The connection room's reaction to the failure of a communicator or the departure of a rank. */
#ifndef RONDO_LIB_CONNECTION_FAILURE_H
#define RONDO_LIB_CONNECTION_FAILURE_H

#include "lib/context/failure.h"

/* Ends the operations of the communicator's lanes, and wakes the threads that wait for a peer in an exchange, in rondo_connect
 * or for an endpoint address. Listed in lib/runtime/dispatch.c. */
extern const struct rondo_failure_listener rondo_connection_failure;

#endif
