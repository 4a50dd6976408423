/*
 * A transport connects two ranks by connectors: one-directional rings of slots with a tail (written by the sender) and a head
 * (written by the receiver). One file a transport; to add one, write its table and add it to transport/transport.c. The library
 * asks them in order of merit.
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
    int32_t peer;        /* the other side's rank in the world */
};

/* What one side tells the other; plain data, at most this long. */
struct rondo_ticket {
    char transport[16];
    unsigned char bytes[176];
};

/* One side of a connector. The transport fills in what an end (device/abi/structures.h) needs. */
struct rondo_connector {
    const struct rondo_transport *transport;
    struct rondo_connector_spec spec;
    uint64_t *watched, *published;
    char *slots;
    uint32_t *sizes; /* a sender's on a network: where the device notes the bytes of each slot; else NULL */
    struct rondo_source_references *source_references; /* and where they lie; NULL: in the slots */
    struct rondo_receive_action *receive_actions;      /* a receiver's on a network that does them, one a slot; else NULL */
    void *own;                                         /* the transport's */
};

struct rondo_transport {
    const char *name;
    const struct rondo_network
        *network; /* whose connectors the proxy works (proxy/proxy.h); NULL: the device reaches the peer */
    /* NULL if this build and machine can use it, else why not. */
    const char *(*unusable)(void);
    int (*reaches)(const struct rondo_transport_context *context, int peer);
    /* The receiver's memory, which has the slots, and what the sender must know of it. Called on any thread, the control thread
     * included; must not wait for others. */
    rondo_result_t (*listen)(struct rondo_transport_context *context, struct rondo_connector *connector,
                             struct rondo_ticket *ticket);
    /* The sender reaches it. Not on a control thread. */
    rondo_result_t (*connect)(struct rondo_transport_context *context, struct rondo_connector *connector,
                              const struct rondo_ticket *ticket);
    /* Where the sender has memory, too: that memory, as listen, and the receiver reaches it, as connect. connect then follows
     * offer on the same connector, and accept follows listen. Both NULL where the sender has none. */
    rondo_result_t (*offer)(struct rondo_transport_context *context, struct rondo_connector *connector,
                            struct rondo_ticket *ticket);
    rondo_result_t (*accept)(struct rondo_transport_context *context, struct rondo_connector *connector,
                             const struct rondo_ticket *ticket);
    /* Undo connect and accept. Not on a control thread. */
    void (*close_sender)(struct rondo_transport_context *context, struct rondo_connector *connector);
    void (*close_receiver)(struct rondo_transport_context *context, struct rondo_connector *connector);
    /* Undo listen and offer, when neither side uses the memory any more. */
    void (*close_listener)(struct rondo_transport_context *context, struct rondo_connector *connector);
    void (*close_offer)(struct rondo_transport_context *context, struct rondo_connector *connector);
};

extern const struct rondo_transport rondo_transport_p2p;
extern const struct rondo_transport rondo_transport_shm;
extern const struct rondo_transport rondo_transport_ucx;
extern const struct rondo_transport rondo_transport_rdma;

const struct rondo_transport *const *rondo_transport_table(int *count);
const struct rondo_transport *rondo_transport_find(const char *name);
/* Whether both sides have opened that network. All ranks know of all which they have. */
int rondo_transport_is_open_to(const struct rondo_transport_context *context, const struct rondo_transport *transport,
                               int peer);
/* The networks of the list that this rank can use, as a set. */
uint32_t rondo_transport_networks(const struct rondo_transport_context *context);
/* The best transport of the runtime's list that reaches the peer; RONDO_ERR_TRANSPORT naming both hosts if none does. Both
 * sides choose alike, because the choice depends only on what both know. */
rondo_result_t rondo_transport_choose(const struct rondo_transport_context *context, int peer,
                                      const struct rondo_transport **transport);

#endif
