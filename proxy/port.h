/*
 * Ports: the sides of network connectors that a rank has, with their memory. A port has a number, by which the other side
 * addresses it, and a key, without which nothing that comes from the network is believed.
 */
#ifndef RONDO_PROXY_PORT_H
#define RONDO_PROXY_PORT_H

#include "device/abi/structures.h"
#include "lib/base/cipher.h"
#include "transport/memory/arena.h"
#include "transport/transport.h"

#define RONDO_ENDPOINT_ADDRESS_BYTES 4000
#define RONDO_PORTS_MAX              (1u << 18) /* of a proxy */

/* What a rank must know of another to reach it over a network: plain data, which only the network understands. */
struct rondo_endpoint_address {
    uint32_t bytes; /* of data that are used */
    unsigned char data[RONDO_ENDPOINT_ADDRESS_BYTES];
};

/* Offsets in a port's region; the other side writes tail and head. Each counter has two cache lines to itself: adjacent lines
 * are fetched in pairs. At REST: the sizes of a sender's slots, then the slots, unless they lie apart. */
#define RONDO_PORT_TAIL  0
#define RONDO_PORT_HEAD  128
#define RONDO_PORT_SHOWN 256 /* the tail as the device is shown it, where it may not see it on arrival (proxy/arrival.h) */
#define RONDO_PORT_REST  384

struct rondo_port {
    uint32_t number;
    uint64_t key;                           /* random */
    unsigned char cipher[RONDO_CIPHER_KEY]; /* random; with encryption of what is sent to this port, and of nothing else */
    int32_t peer;                           /* rank in the world */
    enum rondo_direction direction;
    struct rondo_proxy *proxy; /* that works it */
    const struct rondo_network *network;
    void *network_state;
    uint32_t slot_bytes, slot_count;
    struct rondo_region region;
    struct rondo_region slot_region; /* slots that lie apart, in memory that only the device and networks reach; else no slab */
    char *slots;
    uint32_t *sizes; /* outgoing: bytes that the device has put into each slot */
    /* Outgoing: zero-copy sends, where a slot names the bytes instead of holding them; prepare makes it. NULL: there are none.
     */
    struct rondo_source_references *source_references;
    /* Incoming: what is to be done with the bytes of a slot, one a slot; prepare makes them. NULL: they are put into the slot.
     */
    struct rondo_receive_action *receive_actions;
    const uint64_t *published; /* the device's counter: tail (outgoing) or head (incoming) */
    uint64_t *watched;         /* the counter that the device looks at: head or tail */
    /* What the other side's network needs to write here (remote keys), told in the ticket; and into the slots. */
    uint32_t access[4], slot_access[4];

    /* The other side's, known once joined. */
    const struct rondo_endpoint_address *endpoint_address;
    uint32_t other_proxy, other_number; /* its proxy's number, and its own there */
    uint64_t other_key;
    unsigned char other_cipher[RONDO_CIPHER_KEY];
    uint64_t other_address; /* of its region */
    uint64_t other_slots;
    uint32_t other_access[4], other_slot_access[4];

    /* Of the holder of the claim: */
    uint64_t transmitted;        /* of the device's counter, what the other side has been or is being told */
    uint64_t told;               /* the network's: what it may know beyond, of a connection that broke; 0: none has */
    uint64_t arrived;            /* the other side's counter */
    uint32_t sending, receiving; /* messages on their way */
    uint32_t *ready; /* incoming, where slots may arrive out of order: low half of the number after the slot's; 0: none yet */
    uint64_t *remote_tail;    /* incoming, slots apart: where the other side writes its tail; else NULL, it writes *watched */
    uint64_t shown, flushing; /* the tail that *watched holds; the tail that it will, once the flush is over; 0: no flush */
    uint64_t flush_post;      /* the network's, of the flush under way */
    uint64_t last_post; /* the network's count of what it had sent when it last sent something of this port; 0: nothing yet */
    void *messages;     /* the network's own; freed with the port */
    uint8_t known;   /* the port has been seen joined, so what is said of the other side may be read, also after it has left */
    uint8_t awaited; /* the other side waits for a word of this one, which was not known yet */

    uint32_t state; /* enum rondo_port_state; atomic */

    /* Once closed, under the table's lock: */
    struct rondo_port *next_closed;
    struct rondo_transport_context *context; /* that it is freed with */
};

/* IDLE -> JOINED and JOINED -> LEAVING by the thread that has the connector; LEAVING -> IDLE by the holder of the claim. */
enum rondo_port_state { RONDO_PORT_IDLE, RONDO_PORT_JOINED, RONDO_PORT_LEAVING };

/* What one side's transport tells the other's; plain data. */
struct rondo_port_ticket {
    uint64_t key, address, slots;
    uint32_t number;
    uint32_t access[4], slot_access[4];
    uint32_t proxy;
    unsigned char cipher[RONDO_CIPHER_KEY];
};

struct rondo_proxy;
struct rondo_ports;

/* An empty table. RONDO_ERR_MEMORY. */
rondo_result_t rondo_ports_create(struct rondo_ports **ports);
/* Frees closed ports and the table; there may be no others. NULL: nothing. */
void rondo_ports_destroy(struct rondo_ports *ports);
/* *port: a port of the proxy's, idle, with its memory, zeroed. Any thread, a control thread included; where the budget is used
 * up it waits up to 0.1 s for closed ports to be freed. RONDO_ERR_MEMORY. */
rondo_result_t rondo_port_open(struct rondo_transport_context *context, struct rondo_proxy *proxy,
                               const struct rondo_network *network, const struct rondo_connector_spec *spec,
                               enum rondo_direction direction, struct rondo_port **port);
/* The caller's last use of the port, which is not joined. Cannot fail. Any thread. The memory is freed by the holder of the
 * claim. */
void rondo_port_close(struct rondo_transport_context *context, struct rondo_port *port);
/* NULL if there is none of that number. Any thread; the port may be used by the holder of the claim alone. */
struct rondo_port *rondo_port_find(struct rondo_ports *ports, uint32_t number);
/* All numbers in use are below. Any thread. */
uint32_t rondo_ports_bound(struct rondo_ports *ports);

#endif
