/*
 * The proxy: works a rank's network connectors on its device's behalf (docs/architecture.md). The device fills slots and bumps
 * counters in local memory, as with any connector; the proxy sees the counters move and has the network carry slots one way and
 * credits the other. It knows nothing of collectives, so preemption never involves it.
 *
 * One thread a proxy, and one proxy a runtime unless there are cores to spare (proxy/proxies.h). While a thread waits for an
 * operation it may do the proxy's work in its place (begin, turn, end), so that a message needs no change of threads; a claim
 * says who does. Only the holder of the claim calls into networks.
 */
#ifndef RONDO_PROXY_PROXY_H
#define RONDO_PROXY_PROXY_H

#include "proxy/port.h"

struct rondo_transport_context;
struct rondo_proxy;

/* What the proxy needs of a network; transport/ucx/ucx.c and transport/rdma/rdma.c have one each. All but open, close
 * and prepare are called by the holder of the claim, and wait for nothing. */
struct rondo_network {
    const char *name;
    /* At init. card: what other ranks must know to reach this one, at most RONDO_ENDPOINT_ADDRESS_BYTES, plain data. */
    rondo_result_t (*open)(struct rondo_transport_context *context, struct rondo_proxy *proxy, void **state,
                           struct rondo_endpoint_address *endpoint);
    /* When no port is joined any more: from here on nothing arrives. Ports may still be there. */
    void (*close)(void *state);
    /* When the memory of all ports has been released. NULL: close has done all. */
    void (*destroy)(void *state);
    /* On any thread, a control thread included: completes a port that has just been opened (access, messages, ready). NULL:
     * nothing to do. */
    rondo_result_t (*prepare)(void *state, struct rondo_port *port);
    /* The device has published more than port->carried: has as much of it on its way as there is room for, and counts it in
     * carried. Returns whether anything was. */
    int (*transmit)(void *state, struct rondo_port *port, uint64_t published);
    /* Whether everything of the port that is on its way has arrived, or never will. */
    int (*is_quiet)(void *state, struct rondo_port *port);
    /* Gives the port's connection up, so that nothing more arrives in the other side's memory or comes from there. */
    void (*sever)(void *state, struct rondo_port *port);
    /* Looks after arrivals and completions. Returns whether there were any. */
    int (*progress)(void *state);
    /* Whether it is the processor that moves the bytes, so that several proxies move more, each with a state of its own. */
    int spreads;
    /* Whether messages that are on their way need progress to arrive. NULL: never. */
    int (*is_busy)(void *state);
    /* Before the proxy sleeps: 1 if whatever comes from now on makes *fd readable; 0 if something has come already. */
    int (*arm)(void *state, int *fd);
    /* The NUMA node that its card is on, or -1. NULL: none to speak of. */
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

/* Opens the network of every transport that the runtime has chosen for some rank; where index, its number among the runtime's
 * proxies, is not 0, only those that spread. Without one *proxy stays NULL. */
rondo_result_t rondo_proxy_create(struct rondo_transport_context *context, uint32_t index, struct rondo_proxy **proxy);
/* Ends the thread and closes the networks, then, when the arena has been destroyed, the rest. NULL: nothing. */
void rondo_proxy_close(struct rondo_proxy *proxy);
void rondo_proxy_destroy(struct rondo_proxy *proxy);

/* ---- for whoever submits, waits, or runs the daemon; proxy may be NULL ---- */

/* The device may have published something. Cheap while the proxy is awake. */
void rondo_proxy_wake(struct rondo_proxy *proxy);
/* Operations have been submitted. */
void rondo_proxy_expect(struct rondo_proxy *proxy);
/* Lends the calling thread: begin returns 0 if another has the claim. Then turns, which return whether anything moved; end
 * gives it back. */
int rondo_proxy_begin(struct rondo_proxy *proxy);
int rondo_proxy_turn(struct rondo_proxy *proxy);
void rondo_proxy_end(struct rondo_proxy *proxy);

/* ---- for networks and their transports ---- */

uint32_t rondo_proxy_index(const struct rondo_proxy *proxy);
void *rondo_proxy_network(const struct rondo_proxy *proxy, const struct rondo_network *network); /* its state; NULL: not open */
int rondo_proxy_spreads(const struct rondo_proxy *proxy); /* whether any of its networks does */
struct rondo_ports *rondo_proxy_ports(struct rondo_proxy *proxy);
/* This rank's card, by its name (rondo_proxies_endpoint_name); NULL: there is none of that name. */
const struct rondo_endpoint_address *rondo_proxy_endpoint_address(const struct rondo_proxy *proxy, const char *name);
/* The port's other side is known: from now on it is worked. */
void rondo_proxy_join(struct rondo_proxy *proxy, struct rondo_port *port);
/* The reverse: returns when all that the device had published has arrived at the other side, or will never do so; bounded. Not
 * on a control thread. */
void rondo_proxy_leave(struct rondo_proxy *proxy, struct rondo_port *port);
/* By the holder of the claim: the peer cannot be reached over the network any more. Operations with it fail; whatever why says
 * is copied. */
void rondo_proxy_lose(struct rondo_proxy *proxy, int peer, const char *network, const char *why);

#endif
