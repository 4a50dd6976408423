/*
 * The parts of the rdma transport: transport/rdma/rdma.c has its tables of functions and the posting; transport/rdma/rails.c
 * the NICs' ports; transport/rdma/memory.c what they have registered; transport/rdma/direct.c the choice of where slots lie,
 * and transport/rdma/flush.c what makes them visible there; transport/rdma/connect.c the queue pairs and how they are
 * connected; transport/rdma/renew.c what happens to one that breaks.
 *
 * One struct rondo_rdma a proxy. Once it is open, everything but memory.c is called by the holder of the proxy's claim
 * (proxy/proxy.h), and waits for nothing.
 */
#ifndef RONDO_TRANSPORT_RDMA_RDMA_H
#define RONDO_TRANSPORT_RDMA_RDMA_H

#include "transport/memory/cuda_direct.h"
#include "transport/memory/cuda_memory.h"
#include "proxy/proxy.h"
#include "transport/rdma/library.h"
#include "transport/context.h"
#include "transport/rdma/survey.h"
#include "transport/memory/slot_memory.h"

#include <netinet/in.h>

#define RONDO_RDMA_RAILS  4 /* NICs' ports that a rank uses; as many as a ticket has keys for */
#define RONDO_RDMA_QUEUES 8 /* queue pairs between two ranks, one way */

/* A rail: a port of a NIC, by one of its addresses. */
struct rondo_rdma_rail {
    struct rdma_cm_id *listener;
    struct sockaddr_storage address;
    struct ibv_context *verbs;
    struct ibv_pd *domain;
    struct ibv_comp_channel *channel;
    struct ibv_cq *completions;
    struct ibv_mr *sink; /* where reads that only flush put what they have read; registered when needed */
    char name[64];
    int node; /* NUMA; -1: unknown */
    uint8_t port;
    int down;      /* no queue pair is made here until the port is up again */
    uint32_t dead; /* the device has gone, for good; atomic, because memory is registered by any thread */
};

/* BROKEN: there is no queue pair, and id is NULL. A queue begins as BROKEN. */
enum rondo_rdma_phase { RONDO_RDMA_BROKEN, RONDO_RDMA_CONNECTING, RONDO_RDMA_READY };

/* A way to a peer or from it: the queue pairs, one at a time, that carry the same connectors. One that breaks is made again
 * (transport/rdma/renew.c), perhaps between other rails. Work is counted over all of them, and completes in order: one signaled
 * post says that all before have completed. */
struct rondo_rdma_queue {
    struct rondo_rdma *rdma;
    struct rondo_rdma_queue *next; /* of the rank's, all of them */
    int peer, index;               /* among the peer's out or in */
    int sends;                     /* out: this side connects */
    uint64_t tag;                  /* of its work requests, above RONDO_RDMA_COUNT */
    int rail, other_rail;
    enum rondo_rdma_phase phase;
    struct rdma_cm_id *id;
    uint64_t posted, completed, signaled; /* work requests; completed counts those that were lost with their queue pair */
    uint32_t inline_most;
    /* Of the queue pair: the sender counts its attempts, from 1, and the receiver has that of the last one it has accepted. */
    uint32_t generation;
    int wanted;                         /* while not READY: a connector needs it, so it is made again */
    int asks;                           /* CONNECTING, in: the attempt asks the sender for one */
    int start_rail, start_other, tries; /* where the attempts begin to rotate, and how far they are */
    int64_t since;                      /* ms: how long it has been missing; 0: not counted */
    int64_t attempt;                    /* ms: when the attempt began; BROKEN: when the next one may */
    int64_t ready;                      /* ms: since when it is READY */
    uint64_t proven;                    /* completed when it became READY */
    char why[96];                       /* what broke it, or the last attempt */
};

struct rondo_rdma_peer {
    int lost;
    int out_count, in_count; /* queue pairs by which slots go out and come in; credits take the opposite way on them */
    struct rondo_rdma_queue *out[RONDO_RDMA_QUEUES], *in[RONDO_RDMA_QUEUES];
    const struct rondo_endpoint_address *address; /* from one of its ports; NULL: not known */
};

/* What an endpoint address of this network has: plain data. */
struct rondo_rdma_address {
    uint8_t bytes[16];
    uint16_t family, port; /* port in network order */
    uint32_t scope;
};
struct rondo_rdma_endpoint_address {
    uint64_t token;
    uint32_t rails, queues;
    struct rondo_rdma_address addresses[RONDO_RDMA_RAILS];
};

/* context and proxy are NULL for a survey (transport/rdma/survey.h), which opens rails alone. */
struct rondo_rdma {
    const struct rondo_rdma_library *library;
    struct rondo_transport_context *context;
    struct rondo_proxy *proxy;
    int rank, gpu;        /* -1: on the host device */
    int local_rank, node; /* among the ranks of its host; the memory node of its GPU or processors, -1: unknown */
    struct rdma_event_channel *events;
    int descriptor; /* epoll: events, completions and asynchronous events */
    int rail_count, queues;
    struct rondo_rdma_rail rails[RONDO_RDMA_RAILS];
    struct rondo_rdma_peer *peers;
    struct rondo_rdma_queue *all;
    uint64_t token;      /* that a connection request must bring */
    uint64_t made;       /* queues, ever */
    uint32_t connecting; /* of those, not READY and to be */
    uint32_t passes;
    int64_t looked; /* ms: when the attempts were last looked at */
    int closing;
    struct rondo_rdma_endpoint_address endpoint; /* this rank's */
    enum rondo_slot_memory slots;
    enum rondo_cuda_flush flush; /* where they lie apart */
    uint64_t sink;
};

/* Work requests that a queue pair holds, and the most posts in a row that are not signaled. */
#define RONDO_RDMA_DEPTH      256
#define RONDO_RDMA_UNSIGNALED 32
/* A work request has its queue's tag, and its number there. */
#define RONDO_RDMA_COUNT      (((uint64_t) 1 << 48) - 1)
/* A slot of so many bytes is worth a counter of its own. */
#define RONDO_RDMA_LARGE      16384

/* ---- posting (transport/rdma/rdma.c) ---- */

/* Posts that the queue pair takes now. */
static inline uint64_t rondo_rdma_room(const struct rondo_rdma_queue *queue)
{
    return RONDO_RDMA_DEPTH - (queue->posted - queue->completed);
}

/* Has it carried out after all posts before. part: what is read or written; copied. signaled: its completion is reported, and
 * with it that of all before. 0: refused, and the queue is broken: its ports' counts are no longer what they were. There must
 * be room. */
int rondo_rdma_post(struct rondo_rdma_queue *queue, struct ibv_send_wr *request, struct ibv_sge part, int signaled);

/* ---- rails (transport/rdma/rails.c) ---- */

/* Finds the NICs' ports and listens there, with library, gpu, rank and descriptor set. RONDO_ERR_TRANSPORT with what was tried
 * if there is none. close undoes it, also after a failure. */
rondo_result_t rondo_rdma_open_rails(struct rondo_rdma *rdma);
void rondo_rdma_close_rails(struct rondo_rdma *rdma);
/* Takes the NIC's asynchronous events: those that end a rail break the queues there, those of a queue pair that queue. */
void rondo_rdma_poll_device_events(struct rondo_rdma *rdma, struct rondo_rdma_rail *rail);

/* ---- memory (transport/rdma/memory.c, transport/rdma/direct.c) ---- */

extern const struct rondo_slab_source rondo_rdma_slabs, rondo_rdma_slots_apart;
rondo_result_t rondo_rdma_prepare(void *rdma, struct rondo_port *port); /* of struct rondo_network */
/* The keys of a region of those sources, on that rail; NULL: the device had gone before. Any thread. */
struct ibv_mr *rondo_rdma_keys(const struct rondo_region *region, int rail);
/* Whether these rails can register such memory for slots, by doing it: RONDO_SUCCESS, or the reason. */
rondo_result_t rondo_rdma_try_slots(struct rondo_rdma *rdma, enum rondo_slot_memory kind, int first_rail, int rails);
/* The best that these rails can register, and what is wrong with what would be better (dmabuf, then peermem); "": nothing, or
 * not tried. */
#define RONDO_RDMA_MERITS 2
enum rondo_slot_memory rondo_rdma_best_slots(struct rondo_rdma *rdma, int first_rail, int rails,
                                             char whys[RONDO_RDMA_MERITS][RONDO_SURVEY_TEXT]);
/* Where this rank's slots will lie, as RONDO_GPUDIRECT says. RONDO_ERR_TRANSPORT with the reason if it says what cannot be. */
rondo_result_t rondo_rdma_choose_slots(struct rondo_rdma *rdma);
/* Of struct rondo_network (transport/rdma/flush.c). */
int rondo_rdma_flush(void *rdma, struct rondo_port *port);

/* ---- queue pairs (transport/rdma/connect.c) ---- */

/* The queue that the port's messages go by. NULL while it is not READY: the call then has it made, if it was not begun. */
struct rondo_rdma_queue *rondo_rdma_queue_of(struct rondo_rdma *rdma, const struct rondo_port *port);
/* The queue from this rank to itself by that rail; NULL as above. */
struct rondo_rdma_queue *rondo_rdma_loop(struct rondo_rdma *rdma, int rail);
/* Takes the events of connections and the attempts a step further. Returns whether there were any events. */
int rondo_rdma_poll_connections(struct rondo_rdma *rdma);
/* Begins an attempt to have the queue's pair made, on rails that are chosen: the sender of slots requests a connection, the
 * receiver asks it to. Failure breaks the attempt. The queue is BROKEN. */
void rondo_rdma_begin(struct rondo_rdma_queue *queue);
/* The peer is reached no more: nothing arrives from it, or there, from here on, and its operations fail. Once a peer; why is
 * copied. */
void rondo_rdma_lose(struct rondo_rdma *rdma, int peer, const char *why);
/* Frees all queue pairs: nothing arrives by them any more. */
void rondo_rdma_close_queues(struct rondo_rdma *rdma);

/* ---- queues that break (transport/rdma/renew.c) ---- */

/* Changes a queue's phase, and whether it is wanted; keeps count of those that are to be made. */
void rondo_rdma_set_phase(struct rondo_rdma_queue *queue, enum rondo_rdma_phase phase, int wanted);
/* Frees the queue's pair and connection, if there are any: from here on nothing arrives by them, here or on their behalf. What
 * was posted counts as completed. The peer is told as far as it can be reached. */
void rondo_rdma_release_pair(struct rondo_rdma_queue *queue);
/* The queue's pair, or the attempt to make it, has failed: it becomes BROKEN, the ports that go by it begin again where the
 * other side is known to be, and if there are any it is made again. Nothing happens if it is BROKEN, or its peer lost. why is
 * copied. */
void rondo_rdma_break(struct rondo_rdma_queue *queue, const char *why);
/* A connector needs the queue: it is made again if it is BROKEN. */
void rondo_rdma_want(struct rondo_rdma_queue *queue);
/* The queue's pair is connected. */
void rondo_rdma_set_ready(struct rondo_rdma_queue *queue);
/* The next pair of rails to try. 0: all of this rank's are down. other_rails: how many the peer has. */
int rondo_rdma_choose_rails(struct rondo_rdma_queue *queue, int other_rails);
/* Begins the attempts whose time has come, ends those that take too long, and loses peers with which a queue has been missing
 * for too long. */
void rondo_rdma_renew(struct rondo_rdma *rdma);

#endif
