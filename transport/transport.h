/*
 * A transport connects two ranks by connectors: one-directional rings of slots with a tail (written by the sender) and a head
 * (written by the receiver). Both sides of a connector choose the same transport, each side makes its own memory, and they
 * exchange tickets, which the library transmits (lib/connection/connect.c).
 *
 * A transport NAME is a folder transport/NAME that defines `const struct rondo_transport rondo_transport_NAME`, and a row of
 * RONDO_TRANSPORT_ROWS. It may include transport/, transport/memory/ and what lies below them; transport/shm/shm.c is the
 * shortest example. CONTRIBUTING.md has the steps to add one.
 * A network is a transport whose bytes the proxy moves: it may include proxy/, defines a struct rondo_network
 * (proxy/network.h), and takes its functions from RONDO_NETWORK_FUNCTIONS. transport/ucx/ is an example.
 */
#ifndef RONDO_TRANSPORT_TRANSPORT_H
#define RONDO_TRANSPORT_TRANSPORT_H

#include "rondo.h"
#include "device/abi/structures.h"

struct rondo_transport_context;
struct rondo_transport;
struct rondo_network;

/* What sender and receiver agree on before they connect. */
struct rondo_connector_spec {
    uint32_t slot_bytes; /* a multiple of 64 */
    uint32_t slot_count; /* a power of two */
    uint32_t protocol;   /* enum rondo_protocol */
    int32_t peer;        /* the other side's rank in the world; of a multicast sender: its own */
    /* Of a multicast connector (device/abi/structures.h): how many ranks receive, and a receiver's place among them. 0: the
     * connector has one receiver. */
    uint32_t receivers, place;
};

/* What one side tells the other; plain data, at most this long. */
struct rondo_ticket {
    char transport[16];
    unsigned char bytes[176];
};

/* One side of a connector. The transport fills in what an end (device/abi/structures.h) needs: addresses that this rank's
 * device can use. */
struct rondo_connector {
    const struct rondo_transport *transport;
    struct rondo_connector_spec spec;
    uint64_t *watched;   /* the other side's counter: a sender's head, a receiver's tail */
    uint64_t *published; /* this side's own counter */
    char *slots;
    uint32_t *sizes; /* a sender's on a network: where the device notes the bytes of each slot; else NULL */
    /* A sender's on a network with zero-copy sends: where the bytes of each slot lie. NULL: in the slots. */
    struct rondo_source_references *source_references;
    /* A receiver's on a network that carries out receive actions, one a slot; else NULL. */
    struct rondo_receive_action *receive_actions;
    void *own; /* the transport's */
};

/* Every function may be called by several threads at once, for different connectors. One that fails leaves nothing behind, and
 * the reason with rondo_fail. */
struct rondo_transport {
    const char *name;                    /* as in RONDO_TRANSPORTS; at most 15 characters */
    const struct rondo_network *network; /* by which the proxy moves the bytes (proxy/network.h); NULL: the device does */
    /* NULL if this build and machine can use it, else why not. */
    const char *(*unusable)(void);
    /* A network's: whether what it transmits is encrypted where the context says so. */
    int encrypts;
    /* Whether it connects this rank and the peer. The answer may depend only on what both ranks know, and is the same on both.
     */
    int (*reaches)(const struct rondo_transport_context *context, int peer);
    /* The receiver's memory, which has the slots, zeroed; and what the sender must know of it. Called on any thread, the
     * control thread included; must not wait for other ranks. */
    rondo_result_t (*listen)(struct rondo_transport_context *context, struct rondo_connector *connector,
                             struct rondo_ticket *ticket);
    /* The sender reaches that memory. May wait; not on a control thread. */
    rondo_result_t (*connect)(struct rondo_transport_context *context, struct rondo_connector *connector,
                              const struct rondo_ticket *ticket);
    /* Where the sender has memory, too: offer makes that memory, as listen does; accept has the receiver reach it, as connect
     * does. connect then follows offer on the same connector, and accept follows listen. Both NULL where the sender has none.
     */
    rondo_result_t (*offer)(struct rondo_transport_context *context, struct rondo_connector *connector,
                            struct rondo_ticket *ticket);
    rondo_result_t (*accept)(struct rondo_transport_context *context, struct rondo_connector *connector,
                             const struct rondo_ticket *ticket);
    /* A multicast connector (spec.receivers > 0) has the sender's memory alone. multicast_offer makes it, zeroed, as listen
     * does; it has a head for each receiver, and the sender's watched is the first one. multicast_accept has a receiver reach
     * it, as connect does. Both NULL where the transport has no memory that several ranks reach. Undone by close_listener and
     * by close_sender. */
    rondo_result_t (*multicast_offer)(struct rondo_transport_context *context, struct rondo_connector *connector,
                                      struct rondo_ticket *ticket);
    rondo_result_t (*multicast_accept)(struct rondo_transport_context *context, struct rondo_connector *connector,
                                       const struct rondo_ticket *ticket);
    /* Undo connect and accept. May wait for the device; not on a control thread. close_receiver is NULL without accept. */
    void (*close_sender)(struct rondo_transport_context *context, struct rondo_connector *connector);
    void (*close_receiver)(struct rondo_transport_context *context, struct rondo_connector *connector);
    /* Undo listen and offer, when neither side uses the memory any more. Any thread. close_offer is NULL without offer. */
    void (*close_listener)(struct rondo_transport_context *context, struct rondo_connector *connector);
    void (*close_offer)(struct rondo_transport_context *context, struct rondo_connector *connector);
};

/* X(NAME, whether this build has it: 0 or 1, or a macro that is one of them), each in its folder, in order of merit: the first
 * that reaches the peer is chosen. All builds have the same rows, because a row's place is a network's number in struct
 * rondo_peer, which ranks of different builds compare. */
#define RONDO_TRANSPORT_ROWS(X)                                                                                                \
    X(p2p, RONDO_WITH_CUDA)                                                                                                    \
    X(shm, 1)                                                                                                                  \
    X(rdma, RONDO_WITH_VERBS)                                                                                                  \
    X(ucx, RONDO_WITH_UCX)

#define RONDO_TRANSPORT_DECLARE(name, built) extern const struct rondo_transport rondo_transport_##name;
RONDO_TRANSPORT_ROWS(RONDO_TRANSPORT_DECLARE)
#undef RONDO_TRANSPORT_DECLARE

/* ---- the table (transport/transport.c); any thread ---- */

/* The transports of this build, in order of merit; *count of them. */
const struct rondo_transport *const *rondo_transport_table(int *count);
/* NULL if this build has none of that name. */
const struct rondo_transport *rondo_transport_find(const char *name);
/* Whether nothing leaves the host in plain text by this transport, or may: without encryption anything may. */
int rondo_transport_keeps_secret(const struct rondo_transport_context *context, const struct rondo_transport *transport);
/* Whether this rank and the peer both can use that network, as they have told each other (struct rondo_peer). */
int rondo_transport_is_open_to(const struct rondo_transport_context *context, const struct rondo_transport *transport,
                               int peer);
/* The networks among the context's transports that this rank can use, as a set for struct rondo_peer. Loads their libraries. */
uint32_t rondo_transport_networks(const struct rondo_transport_context *context);
/* *transport: the best of the context's that reaches the peer; RONDO_ERR_TRANSPORT naming both hosts if none does. Both sides
 * choose alike, because the choice depends only on what both know. */
rondo_result_t rondo_transport_choose(const struct rondo_transport_context *context, int peer,
                                      const struct rondo_transport **transport);
/* Whether the transport that connects this rank and the peer has multicast connectors. Both answer alike. */
int rondo_transport_multicasts(const struct rondo_transport_context *context, int peer);

#endif
