/*
 * The root of a job: a thread that lets genuine ranks in, waits until all have come, then passes their messages on and tells
 * who died and who left. It relies on lib/bootstrap/frame_connection.h and lib/bootstrap/handshake.h for what may be believed,
 * and knows nothing of collectives.
 *
 * Strangers cost it little: connections that have not proven themselves are bounded in number, bytes and time, and none is
 * ever waited for.
 */
#ifndef RONDO_LIB_BOOTSTRAP_ROUTER_H
#define RONDO_LIB_BOOTSTRAP_ROUTER_H

#include "rondo.h"
#include "lib/base/sha256.h"

enum { RONDO_ROUTER_LISTENERS = 9 };

struct rondo_router_options {
    struct rondo_hmac secret;
    int size;       /* ranks of the job; 0: as the first one says */
    double timeout; /* seconds to wait for the first rank, at the end of which the thread ends */
    int listeners[RONDO_ROUTER_LISTENERS], listener_count; /* listening sockets */
    int local; /* a connected socket of the rank that starts the root, which strangers cannot crowd out; -1: none */
};

/* Starts the thread, which ends when all ranks have left or died, or could not meet. It then owns the sockets; also when it
 * could not start, they are closed. A rank in the same process that closes its connection is answered only when every other
 * rank has left or another rank of this process is still there to keep the process alive. */
rondo_result_t rondo_router_start(const struct rondo_router_options *options);

#endif
