/*
 * What a transport and the proxy may know of the runtime that they serve, and the few things that they may ask of it. The
 * runtime has one of these as a member and fills it while it comes to life (lib/runtime/runtime.c); the pointers are the
 * runtime's, and stay as they are while a connector or a proxy exists. Unit tests make one of their own.
 */
#ifndef RONDO_TRANSPORT_CONTEXT_H
#define RONDO_TRANSPORT_CONTEXT_H

#include "rondo.h"
#include "transport/peer.h"

#define RONDO_TRANSPORTS_MAX 8 /* that a runtime chooses from */

struct rondo_arena;
struct rondo_device;
struct rondo_endpoint_address;
struct rondo_proxies;
struct rondo_segments;
struct rondo_transport;

/* What the layers below ask of the library. Each is called with the context's `library`, by the threads that its comment names,
 * and with no lock of transport/ or proxy/ held. */
struct rondo_transport_upcalls {
    /* *address: what the peer has told about the network of that name (rondo_proxies_endpoint_name); asks the peer once and
     * waits for its answer. The address stays until the runtime ends. Not on a control thread. RONDO_ERR_TRANSPORT: the peer
     * has not opened that network; RONDO_ERR_PEER: it has gone; RONDO_ERR_TIMEOUT. */
    rondo_result_t (*fetch_endpoint_address)(void *library, const char *network, int peer,
                                             const struct rondo_endpoint_address **address);
    /* The peer cannot be reached over that network any more: fails the communicators that both ranks are in. By the proxy's own
     * thread. network and why are read during the call alone. */
    void (*link_lost)(void *library, int peer, const char *network, const char *why);
    /* Whether operations have been submitted that have not completed. Any thread; takes no lock, and may be late. */
    int (*has_outstanding)(void *library);
    /* Data have arrived while operations are outstanding and no daemon runs: starts it before its pause is over. Any thread. */
    void (*hasten_daemon)(void *library);
    /* For how many milliseconds in a row what is on its way to the peer may stand still before the peer is given up: few where
     * it is gone, many where it may just be slow. Any thread; takes no lock, and changes with time. */
    int (*patience_ms)(void *library, int peer);
    /* Whether the peer is known to have died or left, or to be out of reach. Any thread; changes with time. */
    int (*is_gone)(void *library, int peer);
};

struct rondo_transport_context {
    int rank, size;             /* of the world */
    int encrypts;               /* RONDO_ENCRYPT: what goes over networks must be encrypted */
    rondo_device_t device_type; /* never RONDO_DEVICE_AUTO */
    int device_index;           /* which GPU; -1: the host device */
    struct rondo_device *device;
    struct rondo_arena *arena;       /* memory for connectors comes from here, so that it counts against the budget */
    struct rondo_segments *segments; /* shared memory that this rank has made or mapped */
    const struct rondo_peer *peers;  /* [size], this rank's own included */
    const struct rondo_transport *transports[RONDO_TRANSPORTS_MAX]; /* to choose from, in order of merit */
    int transport_count;
    struct rondo_proxies *proxies; /* NULL: no rank is reached over a network */
    struct rondo_transport_upcalls upcalls;
    void *library; /* the first argument of the upcalls */
};

#endif
