/* The parts of the rdma transport: rdma.c has the network, its memory and the posting; rdma_rails.c the network cards;
 * rdma_connect.c the queue pairs and how they come to be. All but memory belongs to the holder of the proxy's claim. */
#ifndef RONDO_TRANSPORT_RDMA_H
#define RONDO_TRANSPORT_RDMA_H

#include "proxy.h"
#include "rdma_library.h"
#include "runtime.h"

#include <netinet/in.h>

#define RONDO_RDMA_RAILS  4 /* cards' ports that a rank uses; as many as a ticket has keys for */
#define RONDO_RDMA_QUEUES 8 /* queue pairs between two ranks, one way */

/* A port of a card, by one of its addresses. */
struct rondo_rdma_rail {
    struct rdma_cm_id *listener;
    struct sockaddr_storage address;
    struct ibv_context *verbs;
    struct ibv_pd *domain;
    struct ibv_comp_channel *channel;
    struct ibv_cq *completions;
    char name[64];
    int node; /* NUMA; -1: unknown */
    uint8_t port;
    int down;
};

enum rondo_rdma_phase { RONDO_RDMA_NONE, RONDO_RDMA_CONNECTING, RONDO_RDMA_READY, RONDO_RDMA_BROKEN };

/* A queue pair with a peer. Work is counted, and completes in order: of several posts only the last one is heard of. */
struct rondo_rdma_queue {
    struct rondo_rdma *rdma;
    struct rondo_rdma_queue *next; /* of the rank's, all of them */
    int peer, rail, other_rail;
    enum rondo_rdma_phase phase;
    struct rdma_cm_id *id;
    uint64_t posted, completed, signaled; /* work requests */
    uint32_t inline_most;
    uint64_t token; /* of the peer, while connecting */
};

struct rondo_rdma_peer {
    int lost;
    int out_count, in_count; /* queue pairs by which slots go out and come in; credits take the opposite way on them */
    struct rondo_rdma_queue *out[RONDO_RDMA_QUEUES], *in[RONDO_RDMA_QUEUES];
};

struct rondo_rdma {
    const struct rondo_rdma_library *library;
    struct rondo_runtime *runtime;
    struct rondo_proxy *proxy;
    struct rdma_event_channel *events;
    int descriptor; /* epoll: events, completions and asynchronous events */
    int rail_count, queues;
    struct rondo_rdma_rail rails[RONDO_RDMA_RAILS];
    struct rondo_rdma_peer *peers;
    struct rondo_rdma_queue *all;
    uint64_t token; /* that a connection request must bring */
    uint32_t connecting, passes;
    int closing;
};

/* What a card says. */
struct rondo_rdma_address {
    uint8_t bytes[16];
    uint16_t family, port; /* port in network order */
    uint32_t scope;
};
struct rondo_rdma_card {
    uint64_t token;
    uint32_t rails, queues;
    struct rondo_rdma_address addresses[RONDO_RDMA_RAILS];
};

/* Work requests that a queue pair holds, and how many posts at most go unheard of. */
#define RONDO_RDMA_DEPTH   256
#define RONDO_RDMA_UNHEARD 32
/* Bytes of a slot that is worth a counter of its own. */
#define RONDO_RDMA_LARGE   16384

/* Finds the cards' ports and listens there. RONDO_ERR_TRANSPORT with what was tried if there is none. */
rondo_result_t rondo_rdma_open_rails(struct rondo_rdma *rdma);
void rondo_rdma_close_rails(struct rondo_rdma *rdma);
/* The device's asynchronous events: those that end a rail lose the peers behind it. */
void rondo_rdma_heed_device(struct rondo_rdma *rdma, struct rondo_rdma_rail *rail);

/* The queue pair that carries the port's messages; NULL while it is not ready, after beginning to connect it. */
struct rondo_rdma_queue *rondo_rdma_queue_of(struct rondo_rdma *rdma, const struct rondo_port *port);
/* Whether a connection that was under way has come about, or a request has been answered. */
int rondo_rdma_heed_connections(struct rondo_rdma *rdma);
/* The peer is reached no more: nothing arrives from it, or there, from here on. why is copied. */
void rondo_rdma_lose(struct rondo_rdma *rdma, int peer, const char *why);
void rondo_rdma_close_queues(struct rondo_rdma *rdma);

#endif
