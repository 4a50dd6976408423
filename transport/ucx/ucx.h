/*
 * The parts of the ucx transport: transport/ucx/ucx.c has its tables of functions and what drives UCX's progress,
 * transport/ucx/open.c UCX's context, worker and address, transport/ucx/connection.c the endpoints and what becomes of them
 * when they break, transport/ucx/send.c and transport/ucx/receive.c the messages, transport/ucx/resend.c what is asked,
 * answered and sent again, transport/ucx/direct.c slots in a GPU's memory, transport/ucx/library.c libucp.
 *
 * One struct rondo_ucx a proxy. Everything but the opening and the preparation of ports is called by the holder of the proxy's
 * claim (proxy/proxy.h), and waits for nothing unless its comment says so.
 *
 * A connection that breaks while both ranks live is made again, and no slot is lost, doubled or out of order
 * (test/models/resend.pml). Both sides go through the same steps:
 * 1. The endpoint is closed by force, and all messages that UCX still had are waited for: they have been sent or have failed.
 * 2. A new endpoint is made. Each connection has a generation, the number of times that it was made again. All that is said
 * over the new one tells the generation; a side that hears of a later one than its own closes its endpoint, too, because what
 * it has sent to the former one may be lost without an error.
 * 3. Each outgoing port with slots that are not confirmed asks how many have arrived (a query), and sends the others again as
 *    they were, from the memory where they still are: the device fills a slot again only once there is credit for it. A
 *    receiver takes each slot once, by its number. Each incoming port says anew what it has said of its head.
 * The data of a source reference are the user's again once they are settled, which they are when they have arrived. The slot
 * asks for a credit that says so.
 */
#ifndef RONDO_TRANSPORT_UCX_UCX_H
#define RONDO_TRANSPORT_UCX_UCX_H

#include "proxy/proxies.h"
#include "transport/context.h"
#include "transport/ucx/direct.h"
#include "transport/ucx/library.h"

/* ---- messages ---- */

enum { RONDO_UCX_SLOT = 1, RONDO_UCX_CREDIT = 2, RONDO_UCX_QUERY = 3 }; /* numbers of active messages */

/* Over TCP a message is UCX's own bytes, then the data, then our header. The kernel's copies on both sides and the reduction of
 * what has come in take less time where cache lines begin at lines of the stream: so data follow some padding that brings them
 * to a line, and headers have such sizes that the next message begins on one. Over anything else the padding does no harm. */
enum {
    RONDO_UCX_LINE = 64,
    RONDO_UCX_OWN_BYTES = 13, /* that UCX sends before the data */
    RONDO_UCX_PADDING_BYTES = RONDO_UCX_LINE - RONDO_UCX_OWN_BYTES,
    RONDO_UCX_SLOT_HEADER_BYTES = RONDO_UCX_LINE,
    RONDO_UCX_WORD_HEADER_BYTES = 2 * RONDO_UCX_LINE - RONDO_UCX_OWN_BYTES
};

/* What precedes a slot's data: which port it is for, its key, the slot's number since the connector began, and its bytes. With
 * encryption the data are encrypted by the port's cipher and the slot's number, and the tag covers them and this. A slot that
 * is sent again has the same header, data and tag. */
struct rondo_ucx_slot_header {
    uint64_t key, number;
    uint32_t port, bytes;
};

/* A slot's header as it is sent. The tag does not cover `asks`, which may differ when the slot is sent again: it only asks for
 * a credit that tells of the slot's arrival. */
struct rondo_ucx_sent_header {
    struct rondo_ucx_slot_header slot;
    unsigned char tag[RONDO_CIPHER_TAG];
    uint32_t asks;
    char rest[RONDO_UCX_SLOT_HEADER_BYTES - sizeof(struct rondo_ucx_slot_header) - RONDO_CIPHER_TAG - sizeof(uint32_t)];
};

/* What the two sides of a connector say beside slots. A credit goes to an outgoing port: the number of slots that the receiver
 * has given back since the connector began, and of those that have arrived without a gap; and which query it answers (the low
 * half of its number; 0: none). A query goes to an incoming port and asks for a credit. `number` is another one for each that a
 * port composes. With encryption it is the number for the cipher, of a query with RONDO_UCX_QUERY_BIT, which no slot's has; the
 * tag covers the word. */
struct rondo_ucx_word {
    uint64_t key, number, head, arrived;
    uint32_t port, generation, answered, unused;
};
#define RONDO_UCX_QUERY_BIT ((uint64_t) 1 << 63)

struct rondo_ucx_sent_word {
    struct rondo_ucx_word word;
    unsigned char tag[RONDO_CIPHER_TAG];
    char rest[RONDO_UCX_WORD_HEADER_BYTES - sizeof(struct rondo_ucx_word) - RONDO_CIPHER_TAG];
};

/* A slot that has been sent: what UCX reads until it has, and what is needed to send it again. */
struct rondo_ucx_sent_slot {
    struct rondo_ucx_sent_header header;
    ucp_dt_iov_t parts[2]; /* the padding and the data */
    uint8_t referenced;    /* sent again from its source reference, not from the slot */
};

/* port->messages of an outgoing port. Numbers count slots since the connector began. */
struct rondo_ucx_outgoing {
    uint64_t confirmed; /* those below have arrived at the other side, which has said so */
    uint64_t settled;   /* those below are settled */
    uint64_t wanted;    /* after the last one that is referenced; 0: there was none */
    uint64_t again;     /* of those below transmitted, where sending again begins; UINT64_MAX: they are not to be sent again */
    uint64_t words;     /* composed so far */
    uint64_t query;     /* number of the last query, until it is answered; 0: there is none */
    uint64_t queried;   /* transmitted when it was composed */
    uint64_t looked_confirmed, looked_transmitted; /* at the last look for what does not arrive */
    uint32_t looked_sending;
    uint32_t refused;  /* answers in a row by which slots were lost without a break */
    uint32_t still;    /* looks in a row at which nothing had changed */
    uint32_t silences; /* times that the connection was made again for that, in a row */
    uint8_t asks;      /* a query is to be sent */
    uint8_t holds;     /* nothing is sent before it has been answered */
    struct rondo_ucx_sent_word word;
    struct rondo_ucx_sent_slot slots[]; /* one a slot */
};

/* A slot that UCX is fetching from its sender. */
struct rondo_ucx_fetched_slot {
    struct rondo_port *port;
    struct rondo_ucx_slot_header header;
    unsigned char tag[RONDO_CIPHER_TAG];
    int under_way;
};

/* port->messages of an incoming port. */
struct rondo_ucx_incoming {
    struct rondo_ucx_sent_word word;         /* the credit that is being sent */
    uint64_t words;                          /* composed so far */
    uint64_t told;                           /* arrived, as the last credit has said */
    uint64_t wanted;                         /* arrivals below are to be told, once all have arrived */
    uint64_t query;                          /* number of the last query, until it is answered; 0: none */
    uint64_t queries;                        /* the largest number that a query has had */
    uint8_t owes;                            /* a credit is to be sent even if it says nothing new */
    struct rondo_ucx_fetched_slot fetched[]; /* one a slot */
};

/* ---- state ---- */

enum rondo_ucx_connection_state {
    RONDO_UCX_WHOLE,  /* or not made yet */
    RONDO_UCX_BROKEN, /* its endpoint is to be closed, or has been */
    RONDO_UCX_RENEWED /* it has been made again, and its ports wait for answers */
};

/* To one of a peer's proxies. */
struct rondo_ucx_connection {
    struct rondo_ucx *ucx;
    int32_t rank;
    uint32_t proxy;           /* the peer's */
    ucp_ep_h endpoint;        /* NULL: none */
    ucs_status_ptr_t closing; /* UCX's request to close the endpoint; NULL: none */
    uint32_t sending;         /* messages whose sending has begun and not ended */
    uint32_t generation;      /* how often it was made again, as far as either side has said */
    uint32_t tries;           /* to make it again, in a row */
    int failed;               /* since it was whole, UCX has reported an error */
    int told;                 /* the log: that it carries messages again */
    int64_t broken_at;        /* rondo_clock_ms(): since when it has not; for the log */
    int64_t heard_at; /* when the other side was last heard over a connection that was made again; or of the first error */
    int64_t next_at;  /* when it is to be made again; or when it was */
    enum rondo_ucx_connection_state state;
    char why[80];
    struct rondo_ucx_connection *next_broken; /* in rondo_ucx.broken, where all are that are not whole */
};

struct rondo_ucx_peer {
    struct rondo_ucx_connection *connections[RONDO_PROXIES_MAX]; /* to each of its proxies; NULL: never needed */
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
    struct rondo_ucx_connection *broken;
    uint32_t under_way; /* messages whose sending or receiving has begun and not ended */
    uint32_t events;    /* arrivals and completions since the last progress began */
    uint32_t quiet;     /* times that progress has found nothing */
    uint32_t deferred;  /* times that what is owed has waited */
    int64_t looked_at;  /* when slots that do not arrive were last looked for */
    int pads;           /* slots for ranks on the host device are sent with padding */
    int owing;          /* a port may have a credit or a query to send, or slots to send again */
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

/* ---- connections (transport/ucx/connection.c) ---- */

/* The connection by which the port's messages go; the port's other side is known. NULL: no memory, and the peer is lost. */
struct rondo_ucx_connection *rondo_ucx_connection_of(struct rondo_ucx *ucx, const struct rondo_port *port);
/* The connection with an endpoint, made if there is none yet. NULL: there can be none now, because the connection is broken or
 * the peer lost. */
struct rondo_ucx_connection *rondo_ucx_connect(struct rondo_ucx *ucx, const struct rondo_port *port);
/* The connection does not carry messages any more, and is made again with that generation. Nothing, if it is broken already,
 * but for the generation. failed: UCX has reported an error. May be called by UCX's callbacks; why is copied. */
void rondo_ucx_break(struct rondo_ucx_connection *connection, uint32_t generation, int failed, const char *why);
/* The same with the next generation, by UCX's error. */
void rondo_ucx_fail(struct rondo_ucx_connection *connection, ucs_status_t status);
/* The other side has made the connection again, with a later generation: this one does so at once. */
void rondo_ucx_follow(struct rondo_ucx_connection *connection, uint32_t generation);
/* The other side has been heard over the connection's present generation. */
void rondo_ucx_reach(struct rondo_ucx_connection *connection);
/* Takes broken connections a step further. Not in a callback of UCX's. */
void rondo_ucx_renew(struct rondo_ucx *ucx);
/* The peer cannot be reached any more: its endpoints are closed at the next progress, and its operations fail. Once a peer; why
 * is copied. May be called by UCX's callbacks. */
void rondo_ucx_lose(struct rondo_ucx *ucx, int rank, const char *why);
/* Closes the peer's endpoints: whatever is on its way ends with an error. Waits for that only while the state is being closed.
 * Not in a callback of UCX's. */
void rondo_ucx_drop_endpoints(struct rondo_ucx *ucx, struct rondo_ucx_peer *peer);

/* ---- messages (transport/ucx/send.c, transport/ucx/receive.c) ---- */

/* Of struct rondo_network. */
int rondo_ucx_transmit(void *state, struct rondo_port *port, uint64_t published);
/* Tells the device how far the data of an outgoing port's source references are not needed any more. To be called when that may
 * have changed. */
void rondo_ucx_settle(struct rondo_ucx *ucx, struct rondo_port *port);
/* Sends the slots of an outgoing port from `again` on once more, as they were. No message of the port is on its way. */
void rondo_ucx_send_again(struct rondo_ucx_connection *connection, struct rondo_port *port);
/* Sends a credit that says how many slots have arrived and have been given back. Returns 0 if one is being sent: a later one
 * says more. */
int rondo_ucx_send_credit(struct rondo_ucx_connection *connection, struct rondo_port *port, uint64_t head);
/* Asks the other side of an outgoing port what has arrived. No message of the port is on its way. */
void rondo_ucx_send_query(struct rondo_ucx_connection *connection, struct rondo_port *port);

/* UCX calls these with the worker's messages; argument is the state. A message that fits no open port is dropped. */
ucs_status_t rondo_ucx_slot_came(void *argument, const void *header, size_t header_bytes, void *data, size_t bytes,
                                 const ucp_am_recv_param_t *how);
ucs_status_t rondo_ucx_credit_came(void *argument, const void *header, size_t header_bytes, void *data, size_t bytes,
                                   const ucp_am_recv_param_t *how);
ucs_status_t rondo_ucx_query_came(void *argument, const void *header, size_t header_bytes, void *data, size_t bytes,
                                  const ucp_am_recv_param_t *how);

/* ---- what is sent again (transport/ucx/resend.c) ---- */

/* A word of the port's other side has come, over a connection of that generation there. An incoming port may not know its other
 * side yet. */
void rondo_ucx_hear(struct rondo_ucx *ucx, struct rondo_port *port, uint32_t generation);
/* The other side of an incoming port is to be sent a credit soon. */
void rondo_ucx_owe(struct rondo_ucx *ucx, struct rondo_port *port);
/* A connection may be made again: has its ports ask and tell, by which it is. */
void rondo_ucx_resume_ports(struct rondo_ucx_connection *connection);
/* Whether a port of the connection waits for an answer, or has slots to send again. */
int rondo_ucx_is_resuming(const struct rondo_ucx_connection *connection);
/* Whether slots of an outgoing port, which may not have arrived, wait for its connection to be made again. */
int rondo_ucx_awaits_renewal(const struct rondo_ucx *ucx, struct rondo_port *port);
/* Whether a port of the connection has something to send, or has sent something of which it does not know the arrival, or waits
 * for room. What the other side sends, is at stake there. */
int rondo_ucx_is_at_stake(const struct rondo_ucx_connection *connection);
/* An outgoing port has been told how many of its slots have arrived, and which query that answers (0: none). */
void rondo_ucx_take_arrived(struct rondo_ucx *ucx, struct rondo_port *port, uint64_t arrived, uint32_t answered);
/* Sends what ports owe: credits, queries, slots again. Returns whether anything was sent. */
int rondo_ucx_pay(struct rondo_ucx *ucx);
/* Looks, now and then, for slots that were sent and do not arrive, and has their ports ask. */
void rondo_ucx_look(struct rondo_ucx *ucx);

#endif
