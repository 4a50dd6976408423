/*
 * What a communicator has of lanes and windows.
 */
#ifndef RONDO_LIB_CONNECTION_COMM_CONNECTIONS_H
#define RONDO_LIB_CONNECTION_COMM_CONNECTIONS_H

#include <stdint.h>

struct rondo_host_lane;
struct rondo_registration;

#define RONDO_WINDOWS_MAX 256 /* of a communicator */

struct rondo_comm_connections {
    struct rondo_host_lane *lanes;            /* all of them (runtime lock) */
    uint64_t exchanges;                       /* collective exchanges so far (lib/connection/mailbox.h) */
    struct rondo_registration *registrations; /* lib/connection/window.h */
    uint32_t windows_used;
    char **windows; /* [member][RONDO_WINDOWS_MAX]; device memory */
};

#endif
