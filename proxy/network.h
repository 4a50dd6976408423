/*
 * A network: what a transport between hosts gives the proxy to work with, and what all such transports have in common. Each
 * side of a connector has a port (proxy/port.h) in memory of its own, learns the other side's number, key and address from its
 * ticket, and has the proxy work the port while both are open.
 */
#ifndef RONDO_PROXY_NETWORK_H
#define RONDO_PROXY_NETWORK_H

#include "proxy/port.h"
#include "transport/transport.h"

/* What the proxy needs of a network; transport/ucx/ucx.c and transport/rdma/rdma.c have one each. state is what open made. All
 * functions but open, close, destroy and prepare are called by the holder of the proxy's claim (proxy/proxy.h), one at a time,
 * and wait for nothing. */
struct rondo_network {
    const char *name;
    /* At init, on the thread that makes the runtime: makes *state, and fills *endpoint with what other ranks must know to reach
     * this one: plain data of at most RONDO_ENDPOINT_ADDRESS_BYTES. On failure nothing stays behind. */
    rondo_result_t (*open)(struct rondo_transport_context *context, struct rondo_proxy *proxy, void **state,
                           struct rondo_endpoint_address *endpoint);
    /* When no port is joined any more: from here on nothing arrives. Ports may still be there. */
    void (*close)(void *state);
    /* When the memory of all ports has been released. NULL: close has done all. */
    void (*destroy)(void *state);
    /* On any thread, a control thread included: completes a port that has just been opened (access, messages, ready, source
     * references, receive actions). NULL: nothing to do. */
    rondo_result_t (*prepare)(void *state, struct rondo_port *port);
    /* The device has published more than port->transmitted: begins to transmit as much of it as there is room for, and counts
     * it in transmitted. Of an incoming port that is the credit. Returns whether anything was. */
    int (*transmit)(void *state, struct rondo_port *port, uint64_t published);
    /* Whether everything of the port that is on its way has arrived, or never will. */
    int (*is_drained)(void *state, struct rondo_port *port);
    /* Gives the port's connection up, so that nothing more arrives in the other side's memory or comes from there. */
    void (*sever)(void *state, struct rondo_port *port);
    /* Takes arrivals and completions. Returns whether there were any. */
    int (*progress)(void *state);
    /* Whether the processor moves the bytes, so that several proxies move more, each with a state of its own. */
    int spreads;
    /* Whether messages that are on their way need progress to arrive. NULL: never. */
    int (*is_busy)(void *state);
    /* Before the proxy sleeps: 1 if whatever comes from now on makes *fd readable; 0 if something has come already. */
    int (*arm)(void *state, int *fd);
    /* The NUMA node of its NIC, or -1. NULL: it has none to name. */
    int (*numa_node)(void *state);
    /* Memory for ports: a source of the arena, with state as its argument; NULL: the device's plain host memory. */
    const struct rondo_slab_source *slabs;
    /* Memory for the slots alone, likewise, where they lie apart (in the GPU's); NULL returned: they do not. The same for all
     * of the network's life. NULL: never. */
    const struct rondo_slab_source *(*slot_slabs)(void *state);
    /* Slots apart: has the device see all that lies in the port's slots (proxy/arrival.h). Called again, after the call that
     * began it, until it returns other than 0: 1 they are seen, -1 they never will be. */
    int (*flush)(void *state, struct rondo_port *port);
};

/* The functions of a struct rondo_transport with a network; their contracts are those of its members. A port belongs to the
 * proxy of the network with the least bytes of slots so far. join fetches the peer's endpoint address, and so may wait. */
rondo_result_t rondo_network_listen(struct rondo_transport_context *context, struct rondo_connector *connector,
                                    struct rondo_ticket *ticket);
rondo_result_t rondo_network_offer(struct rondo_transport_context *context, struct rondo_connector *connector,
                                   struct rondo_ticket *ticket);
rondo_result_t rondo_network_join(struct rondo_transport_context *context, struct rondo_connector *connector,
                                  const struct rondo_ticket *ticket);
/* Returns when what the device had published has arrived, or never will: as rondo_proxy_leave. */
void rondo_network_leave(struct rondo_transport_context *context, struct rondo_connector *connector);
void rondo_network_close(struct rondo_transport_context *context, struct rondo_connector *connector);

/* All of them, as initializers. */
#define RONDO_NETWORK_FUNCTIONS                                                                                                \
    .listen = rondo_network_listen, .offer = rondo_network_offer, .connect = rondo_network_join, .accept = rondo_network_join, \
    .close_sender = rondo_network_leave, .close_receiver = rondo_network_leave, .close_listener = rondo_network_close,         \
    .close_offer = rondo_network_close

#endif
