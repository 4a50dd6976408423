/*
 * The root of a job: a thread that admits the ranks that know the secret, waits until all have joined, then routes their
 * messages and tells which ranks have died and which have left. It relies on lib/bootstrap/frame_connection.h and
 * lib/bootstrap/handshake.h for what may be believed, and knows nothing of collectives.
 *
 * Unauthenticated peers cost it little: their connections are bounded in number, bytes and time, and the root never waits for
 * one.
 */
#ifndef RONDO_LIB_BOOTSTRAP_ROUTER_H
#define RONDO_LIB_BOOTSTRAP_ROUTER_H

#include "rondo.h"
#include "lib/base/sha256.h"
#include "lib/bootstrap/heartbeat.h"

enum { RONDO_ROUTER_LISTENERS = 9 };

struct rondo_router_options {
    struct rondo_hmac secret;     /* of Unix sockets, on which the same user alone is heard, and of `local` */
    struct rondo_hmac tcp_secret; /* of TCP: the same, or one that no rank knows, where TCP is there to refuse alone */
    int encrypts;                 /* RONDO_ENCRYPT */
    int size;                     /* ranks of the job; 0: as the first rank says */
    struct rondo_heartbeat_limits heartbeat;
    double timeout; /* seconds to wait for the first rank; the thread ends if none comes */
    int listeners[RONDO_ROUTER_LISTENERS], listener_count; /* listening sockets */
    int local; /* a connected socket of the rank that starts the root, which unauthenticated peers cannot displace; -1: none */
};

/*
 * Starts the thread, which ends when all ranks have left or died, or cannot all join. The thread owns the sockets; if it cannot
 * be started they are closed. A rank of the same process that says goodbye is answered only when every other rank has left, or
 * another rank of this process is still connected and keeps the process alive. One that ends its connection without waiting for
 * that, the last of this process, ends the root: which ranks are left is logged, and their connections are closed.
 * RONDO_ERR_MEMORY, RONDO_ERR_SYSTEM.
 */
rondo_result_t rondo_router_start(const struct rondo_router_options *options);

#endif
