/*
 * The connection room's part of a communicator: its lanes, the count of its collective exchanges, and its windows.
 */
#ifndef RONDO_LIB_CONNECTION_COMM_CONNECTIONS_H
#define RONDO_LIB_CONNECTION_COMM_CONNECTIONS_H

#include <stdint.h>

struct rondo_host_lane;
struct rondo_registration;
struct rondo_copy_engine;

#define RONDO_WINDOWS_MAX 256 /* windows per communicator */

struct rondo_comm_connections {
    struct rondo_host_lane *lanes;            /* linked list; runtime lock */
    uint64_t exchanges;                       /* collective exchanges so far (lib/connection/exchange.h) */
    struct rondo_registration *registrations; /* linked list; lib/connection/window.h; runtime lock */
    struct rondo_copy_engine *copy_engine;    /* lib/connection/copy_engine.h; NULL: none */
    uint32_t windows_used;
    char **windows; /* [member][RONDO_WINDOWS_MAX]; device memory */
};

#endif
