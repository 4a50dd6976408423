/*
 * Ports: the sides of network connectors that a rank has, with their memory. A port has a number, by which the other side
 * addresses it, and a key, without which nothing that comes from the network is believed.
 */
#ifndef RONDO_PROXY_PORT_H
#define RONDO_PROXY_PORT_H

#include "transport/memory/arena.h"
#include "device/abi/structures.h"
#include "transport/transport.h"

#include <pthread.h>

#define RONDO_ENDPOINT_ADDRESS_BYTES 4000
#define RONDO_PORTS_MAX              (1u << 18)

/* What a rank tells another that is to reach it over a network. */
struct rondo_endpoint_address {
    uint32_t bytes;
    unsigned char data[RONDO_ENDPOINT_ADDRESS_BYTES];
};

/* Offsets in a port's region; the other side writes tail and head. Each counter has two lines to itself: adjacent lines are
 * fetched in pairs. The rest: the sizes of a sender's slots, then the slots, unless they lie apart. */
#define RONDO_PORT_TAIL 0
#define RONDO_PORT_HEAD 128
#define RONDO_PORT_SHOWN                                                                                                       \
    256 /* the tail as the device is shown it, where it may not see it as soon as it lands (proxy/arrival.h) */
#define RONDO_PORT_REST 384

struct rondo_port {
    uint32_t number;
    uint64_t key;
    int32_t peer; /* rank in the world */
    enum rondo_direction direction;
    struct rondo_proxy *proxy; /* that works it */
    const struct rondo_network *network;
    void *network_state;
    uint32_t slot_bytes, slot_count;
    struct rondo_region region;
    struct rondo_region
        slot_region; /* where slots lie apart, in memory that only the device and networks reach; else no slab */
    char *slots;
    uint32_t *sizes; /* outgoing: bytes that the device has put into each slot */
    struct rondo_source_references
        *source_references; /* outgoing: what is to be sent from where it lies; the network's prepare makes it. NULL: nothing */
    struct rondo_receive_action
        *receive_actions;      /* incoming: what is to be done with slots; prepare makes them. NULL: put them into memory */
    const uint64_t *published; /* the device's: tail (outgoing) or head (incoming) */
    uint64_t *watched;         /* the device's to look at: head or tail */
    /* What the network of the other side needs to write here (remote keys), told in the ticket; and into the slots. */
    uint32_t access[4], slot_access[4];

    /* The other side's, known once joined. */
    const struct rondo_endpoint_address *endpoint_address;
    uint32_t other_proxy, other_number; /* its proxy's number, and its own there */
    uint64_t other_key;
    uint64_t other_address; /* of its region */
    uint64_t other_slots;
    uint32_t other_access[4], other_slot_access[4];

    /* The holder of the claim's: */
    uint64_t transmitted;        /* of the device's counter, what the other side has been or is being told */
    uint64_t arrived;            /* the other side's counter */
    uint32_t sending, receiving; /* messages on their way */
    uint32_t *ready;  /* incoming, where slots may arrive out of order: number of the slot that has, low half; 0: none */
    uint64_t *landed; /* incoming, slots apart: where the other side's tail lands; else NULL, it lands where it is watched */
    uint64_t shown, flushing; /* the tail that watched holds; that which it will, once what is under way is done; 0: nothing */
    uint64_t flush_post;      /* the network's, of what is under way */
    uint64_t last_post; /* the network's count of what it had sent when it last sent something of this port; 0: nothing yet */
    void *messages;     /* the network's own; freed with the port */

    uint32_t state; /* enum rondo_port_state; atomic */
};

/* IDLE -> JOINED by the owner; JOINED -> LEAVING by the owner; LEAVING -> IDLE by the holder of the claim. */
enum rondo_port_state { RONDO_PORT_IDLE, RONDO_PORT_JOINED, RONDO_PORT_LEAVING };

/* What one side's transport tells the other's. */
struct rondo_port_ticket {
    uint64_t key, address, slots;
    uint32_t number;
    uint32_t access[4], slot_access[4];
    uint32_t proxy;
};

struct rondo_proxy;
struct rondo_ports;
rondo_result_t rondo_ports_create(struct rondo_ports **ports);
void rondo_ports_destroy(struct rondo_ports *ports);
/* A port of the proxy's, with its memory, zeroed. Any thread. */
rondo_result_t rondo_port_open(struct rondo_transport_context *context, struct rondo_proxy *proxy,
                               const struct rondo_network *network, const struct rondo_connector_spec *spec,
                               enum rondo_direction direction, struct rondo_port **port);
/* Not while it is joined. Any thread. */
void rondo_port_close(struct rondo_transport_context *context, struct rondo_port *port);
/* NULL if there is none of that number. */
struct rondo_port *rondo_port_find(struct rondo_ports *ports, uint32_t number);
/* All numbers in use are below. */
uint32_t rondo_ports_bound(struct rondo_ports *ports);

#endif
