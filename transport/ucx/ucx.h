/*
 * The parts of the ucx transport: transport/ucx/ucx.c has its tables of functions and what drives UCX's progress,
 * transport/ucx/open.c UCX's context, worker and address, transport/ucx/peers.c the endpoints, transport/ucx/send.c and
 * transport/ucx/receive.c the messages, transport/ucx/direct.c slots in a GPU's memory, transport/ucx/library.c libucp.
 *
 * One struct rondo_ucx a proxy. Everything but the opening and rondo_ucx_prepare is called by the holder of the proxy's claim
 * (proxy/proxy.h), and waits for nothing unless its comment says so.
 */
#ifndef RONDO_TRANSPORT_UCX_UCX_H
#define RONDO_TRANSPORT_UCX_UCX_H

#include "proxy/proxies.h"
#include "transport/context.h"
#include "transport/ucx/direct.h"
#include "transport/ucx/library.h"

/* ---- messages ---- */

enum { RONDO_UCX_SLOT = 1, RONDO_UCX_CREDIT = 2 }; /* numbers of active messages */

/* Over TCP a message is UCX's own bytes, then the data, then our header. The kernel's copies on both sides and the reduction of
 * what has come in take less time where cache lines begin at lines of the stream: so data follow some padding that brings them
 * to a line, and headers have such sizes that the next message begins on one. Over anything else the padding does no harm. */
enum {
    RONDO_UCX_LINE = 64,
    RONDO_UCX_OWN_BYTES = 13, /* that UCX sends before the data */
    RONDO_UCX_PADDING_BYTES = RONDO_UCX_LINE - RONDO_UCX_OWN_BYTES,
    RONDO_UCX_SLOT_HEADER_BYTES = RONDO_UCX_LINE,
    RONDO_UCX_CREDIT_HEADER_BYTES = RONDO_UCX_LINE - RONDO_UCX_OWN_BYTES
};

/* What precedes a slot's data: which port it is for, its key, the slot's number since the connector began, and its bytes. With
 * encryption the data are encrypted by the port's cipher and the slot's number, and the tag covers them and this. */
struct rondo_ucx_slot_header {
    uint64_t key, number;
    uint32_t port, bytes;
};

/* A credit: the number of slots that the receiver has given back since the connector began. With encryption the tag covers it;
 * its number for the cipher is head, which grows from one credit to the next. */
struct rondo_ucx_credit_header {
    uint64_t key, head;
    uint32_t port, unused;
};

/* A slot that is being sent: what UCX reads until it has been. */
struct rondo_ucx_sent_slot {
    struct rondo_ucx_slot_header header;
    unsigned char tag[RONDO_CIPHER_TAG];
    char rest[RONDO_UCX_SLOT_HEADER_BYTES - sizeof(struct rondo_ucx_slot_header) - RONDO_CIPHER_TAG];
    ucp_dt_iov_t parts[2]; /* the padding and the data */
};

/* A slot that UCX is fetching from its sender. */
struct rondo_ucx_fetched_slot {
    struct rondo_port *port;
    struct rondo_ucx_slot_header header;
    unsigned char tag[RONDO_CIPHER_TAG];
};

/* port->messages: of an outgoing port an array of struct rondo_ucx_sent_slot, one a slot; of an incoming port this. */
struct rondo_ucx_incoming {
    struct rondo_ucx_credit_header credit; /* that is being sent, and its tag */
    unsigned char tag[RONDO_CIPHER_TAG];
    char rest[RONDO_UCX_LINE - sizeof(struct rondo_ucx_credit_header) - RONDO_CIPHER_TAG];
    struct rondo_ucx_fetched_slot fetched[]; /* one a slot */
};

/* ---- state ---- */

struct rondo_ucx_peer {
    ucp_ep_h endpoints[RONDO_PROXIES_MAX]; /* one for each of the peer's proxies; NULL: none yet */
    int lost;
};

struct rondo_ucx {
    struct rondo_ucx_direct direct; /* first: transport/ucx/direct.h's functions take the state */
    const struct rondo_ucx_library *library;
    struct rondo_transport_context *context;
    struct rondo_proxy *proxy;
    ucp_context_h ucp;
    ucp_worker_h worker;
    int descriptor; /* readable when the worker has something to do, once armed */
    struct rondo_ucx_peer *peers;
    uint32_t under_way; /* messages whose sending or receiving has begun and not ended */
    uint32_t events;    /* arrivals and completions since the last progress began */
    int pads;           /* slots for ranks on the host device are sent with padding */
    int dropping;       /* endpoints of lost peers are to be closed, outside UCX's callbacks */
    int closing;
    int64_t closing_until; /* until when closing waits for endpoints */
};

extern const struct rondo_network rondo_network_ucx;

/* ---- opening (transport/ucx/open.c) ---- */

/* Of struct rondo_network: loads UCX, makes its context and worker, and writes the worker's address. RONDO_ERR_TRANSPORT with
 * UCX's reason. */
rondo_result_t rondo_ucx_open(struct rondo_transport_context *context, struct rondo_proxy *proxy, void **state,
                              struct rondo_endpoint_address *endpoint_address);
/* Of struct rondo_network: has what is on its way sent, for at most a second, and closes everything but the state itself. */
void rondo_ucx_close(void *state);

/* Waits until UCX has carried out what it returned the request for (or NULL, or an error), or the deadline (rondo_clock_ms())
 * has passed, and frees the request. Returns whether it has been carried out. */
int rondo_ucx_finish(struct rondo_ucx *ucx, ucs_status_ptr_t request, int64_t deadline);

/* ---- peers (transport/ucx/peers.c) ---- */

/* The endpoint by which the port's messages go, made if there is none yet; NULL if the peer is lost. */
ucp_ep_h rondo_ucx_endpoint_of(struct rondo_ucx *ucx, const struct rondo_port *port);
/* The peer cannot be reached any more: its endpoints are closed at the next progress, and its operations fail. Once a peer; why
 * is copied. May be called by UCX's callbacks. */
void rondo_ucx_lose(struct rondo_ucx *ucx, int rank, const char *why);
/* Closes the peer's endpoints: whatever is on its way ends with an error. Waits for that only while the state is being closed.
 * Not in a callback of UCX's. */
void rondo_ucx_drop_endpoints(struct rondo_ucx *ucx, struct rondo_ucx_peer *peer);

/* ---- messages (transport/ucx/send.c, transport/ucx/receive.c) ---- */

/* Of struct rondo_network. */
int rondo_ucx_transmit(void *state, struct rondo_port *port, uint64_t published);
/* UCX calls these with the worker's messages; argument is the state. A message that fits no open port is dropped. */
ucs_status_t rondo_ucx_slot_came(void *argument, const void *header, size_t header_bytes, void *data, size_t bytes,
                                 const ucp_am_recv_param_t *how);
ucs_status_t rondo_ucx_credit_came(void *argument, const void *header, size_t header_bytes, void *data, size_t bytes,
                                   const ucp_am_recv_param_t *how);

#endif
