/* What connections do when a communicator fails or a rank goes. */
#ifndef RONDO_LIB_CONNECTION_FAILURE_H
#define RONDO_LIB_CONNECTION_FAILURE_H

#include "lib/context/failure.h"

/* Ends the lanes' operations, and wakes what waits for a peer in an exchange, a connection or an endpoint address. */
extern const struct rondo_failure_listener rondo_connection_failure;

#endif
