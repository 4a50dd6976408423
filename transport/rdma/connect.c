/*
 * Queue pairs of the rdma transport, connected by rdma_cm step by step as its events come. The rank that sends slots connects;
 * the other one accepts requests that bring the token of its endpoint address. Nothing here waits.
 */
#include "transport/rdma/rdma.h"

#include "lib/base/error.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RESOLVE_MS  3000
#define RETRIES     7
#define ACK_TIMEOUT 15 /* 4.096 us * 2^15 = 0.13 s, RETRIES times and up to four times as long: within 5 s a peer is lost */
#define MAGIC       0x6f646e52u

/* What a connection request brings; private data of rdma_cm have room for 56 bytes. */
struct request {
    uint64_t token;
    uint32_t magic;
    int32_t rank;
    uint8_t index, count, rail, other_rail;
};

static void set_broken(struct rondo_rdma *rdma, struct rondo_rdma_queue *queue)
{
    struct ibv_qp_attr attributes = {.qp_state = IBV_QPS_ERR};
    if (queue->phase == RONDO_RDMA_CONNECTING)
        rdma->connecting--;
    queue->phase = RONDO_RDMA_BROKEN;
    queue->completed = queue->posted; /* what has not arrived never will */
    if (queue->id != NULL && queue->id->qp != NULL)
        rdma->library->ibv_modify_qp(queue->id->qp, &attributes, IBV_QP_STATE);
}

void rondo_rdma_lose(struct rondo_rdma *rdma, int rank, const char *why)
{
    struct rondo_rdma_peer *peer = &rdma->peers[rank];
    if (peer->lost)
        return;
    peer->lost = 1;
    for (struct rondo_rdma_queue *queue = rdma->all; queue != NULL; queue = queue->next)
        if (queue->peer == rank)
            set_broken(rdma, queue);
    if (!rdma->closing)
        rondo_proxy_lose(rdma->proxy, rank, "rdma", why);
    /* Without the way to itself (transport/rdma/flush.c) this rank cannot trust what others send. */
    for (int other = 0; rank == rdma->rank && rdma->slots != RONDO_SLOTS_WITH_COUNTERS && other < rdma->context->size; other++)
        if (rdma->peers[other].in_count > 0)
            rondo_rdma_lose(rdma, other, why);
}

static void lose_by(struct rondo_rdma_queue *queue, const char *step, const char *why)
{
    char text[160];
    snprintf(text, sizeof(text), "%s: %s", step, why);
    rondo_rdma_lose(queue->rdma, queue->peer, text);
}

static struct rondo_rdma_queue *make_queue(struct rondo_rdma *rdma, int peer, int rail, int other_rail)
{
    struct rondo_rdma_queue *queue = calloc(1, sizeof(*queue));
    if (queue == NULL)
        return NULL;
    queue->rdma = rdma;
    queue->peer = peer;
    queue->rail = rail;
    queue->other_rail = other_rail;
    queue->next = rdma->all;
    rdma->all = queue;
    return queue;
}

static int create_pair(struct rondo_rdma *rdma, struct rondo_rdma_queue *queue)
{
    struct rondo_rdma_rail *rail = &rdma->rails[queue->rail];
    struct ibv_qp_init_attr attributes = {
        .send_cq = rail->completions,
        .recv_cq = rail->completions,
        .qp_type = IBV_QPT_RC,
        .cap = {
            .max_send_wr = RONDO_RDMA_DEPTH, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 128}};
    if (rdma->library->rdma_create_qp(queue->id, rail->domain, &attributes) != 0)
        return -1;
    queue->inline_most = attributes.cap.max_inline_data;
    if (queue->inline_most >= sizeof(uint64_t)) /* counters travel in their requests */
        return 0;
    errno = ENOTSUP;
    return -1;
}

static void set_timeout(const struct rondo_rdma *rdma, struct rdma_cm_id *id)
{
    uint8_t timeout = ACK_TIMEOUT;
    /* An old kernel keeps its own, which is longer; the control connections notice then. */
    (void) rdma->library->rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, sizeof(timeout));
}

/* ---- connecting ---- */

static void to_socket(const struct rondo_rdma_address *from, struct sockaddr_storage *to)
{
    memset(to, 0, sizeof(*to));
    if (from->family == AF_INET) {
        struct sockaddr_in *v4 = (struct sockaddr_in *) to;
        v4->sin_family = AF_INET;
        v4->sin_port = from->port;
        memcpy(&v4->sin_addr, from->bytes, sizeof(v4->sin_addr));
    } else {
        struct sockaddr_in6 *v6 = (struct sockaddr_in6 *) to;
        v6->sin6_family = AF_INET6;
        v6->sin6_port = from->port;
        v6->sin6_scope_id = from->scope;
        memcpy(&v6->sin6_addr, from->bytes, sizeof(v6->sin6_addr));
    }
}

static void begin(struct rondo_rdma *rdma, struct rondo_rdma_queue *queue, const struct rondo_rdma_endpoint_address *endpoint)
{
    struct sockaddr_storage there, here = rdma->rails[queue->rail].address;
    queue->token = endpoint->token;
    to_socket(&endpoint->addresses[queue->other_rail], &there);
    if (here.ss_family == AF_INET) /* any port of this address */
        ((struct sockaddr_in *) &here)->sin_port = 0;
    else
        ((struct sockaddr_in6 *) &here)->sin6_port = 0;
    queue->phase = RONDO_RDMA_CONNECTING;
    rdma->connecting++;
    if (rdma->library->rdma_create_id(rdma->events, &queue->id, queue, RDMA_PS_TCP) != 0) {
        queue->id = NULL;
        lose_by(queue, "rdma_create_id", strerror(errno));
        return;
    }
    set_timeout(rdma, queue->id);
    if (rdma->library->rdma_resolve_addr(queue->id, (struct sockaddr *) &here, (struct sockaddr *) &there, RESOLVE_MS) != 0)
        lose_by(queue, "rdma_resolve_addr", strerror(errno));
}

/* Another rank has made the endpoint address: it is checked before it is believed. */
static int read_endpoint_address(const struct rondo_port *port, struct rondo_rdma_endpoint_address *endpoint)
{
    if (port->endpoint_address == NULL || port->endpoint_address->bytes != sizeof(*endpoint))
        return 0;
    memcpy(endpoint, port->endpoint_address->data, sizeof(*endpoint));
    return endpoint->rails >= 1 && endpoint->rails <= RONDO_RDMA_RAILS && endpoint->queues >= 1 &&
           endpoint->queues <= RONDO_RDMA_QUEUES;
}

static void begin_all(struct rondo_rdma *rdma, int rank, const struct rondo_rdma_endpoint_address *endpoint)
{
    struct rondo_rdma_peer *peer = &rdma->peers[rank];
    int rails = rdma->rail_count > (int) endpoint->rails ? rdma->rail_count : (int) endpoint->rails;
    int count = rdma->queues > rails ? rdma->queues : rails; /* at least one a rail of the side that has more */
    peer->out_count = count > RONDO_RDMA_QUEUES ? RONDO_RDMA_QUEUES : count;
    for (int i = 0; i < peer->out_count; i++)
        if ((peer->out[i] = make_queue(rdma, rank, i % rdma->rail_count, i % (int) endpoint->rails)) == NULL) {
            rondo_rdma_lose(rdma, rank, "no memory for a queue pair");
            return;
        }
    for (int i = 0; i < peer->out_count && !peer->lost; i++)
        begin(rdma, peer->out[i], endpoint);
}

static struct rondo_rdma_queue *if_ready(struct rondo_rdma_queue *queue)
{
    return queue != NULL && queue->phase == RONDO_RDMA_READY ? queue : NULL;
}

struct rondo_rdma_queue *rondo_rdma_queue_of(struct rondo_rdma *rdma, const struct rondo_port *port)
{
    struct rondo_rdma_peer *peer = &rdma->peers[port->peer];
    struct rondo_rdma_endpoint_address endpoint;
    if (peer->lost)
        return NULL;
    /* Both sides know the number of the sender's port, and so which queue pair it is. */
    if (port->direction == RONDO_INCOMING)
        return peer->in_count > 0 ? if_ready(peer->in[port->other_number % (uint32_t) peer->in_count]) : NULL;
    if (peer->out_count == 0) {
        if (read_endpoint_address(port, &endpoint))
            begin_all(rdma, port->peer, &endpoint);
        else
            rondo_rdma_lose(rdma, port->peer, "its address cannot be understood");
    }
    return peer->lost ? NULL : if_ready(peer->out[port->number % (uint32_t) peer->out_count]);
}

struct rondo_rdma_queue *rondo_rdma_loop(struct rondo_rdma *rdma, int rail)
{
    struct rondo_rdma_peer *self = &rdma->peers[rdma->rank];
    if (!self->lost && self->out_count == 0)
        begin_all(rdma, rdma->rank, &rdma->endpoint);
    return self->lost ? NULL : if_ready(self->out[rail]); /* one a rail, the first ones in their order */
}

static int index_of(const struct rondo_rdma_queue *queue, const struct rondo_rdma_peer *peer)
{
    int i = 0;
    while (i < peer->out_count && peer->out[i] != queue)
        i++;
    return i;
}

static void request_connection(struct rondo_rdma *rdma, struct rondo_rdma_queue *queue)
{
    const struct rondo_rdma_peer *peer = &rdma->peers[queue->peer];
    struct request request = {.token = queue->token,
                              .magic = MAGIC,
                              .rank = rdma->rank,
                              .index = (uint8_t) index_of(queue, peer),
                              .count = (uint8_t) peer->out_count,
                              .rail = (uint8_t) queue->rail,
                              .other_rail = (uint8_t) queue->other_rail};
    struct rdma_conn_param parameters = {.private_data = &request,
                                         .private_data_len = sizeof(request),
                                         .responder_resources = 1,
                                         .initiator_depth = 1,
                                         .retry_count = RETRIES,
                                         .rnr_retry_count = 7};
    if (create_pair(rdma, queue) != 0)
        lose_by(queue, "no queue pair", strerror(errno));
    else if (rdma->library->rdma_connect(queue->id, &parameters) != 0)
        lose_by(queue, "rdma_connect", strerror(errno));
}

/* ---- accepting ---- */

/* The rank of a genuine request that is not there yet, or -1. */
static int judge(const struct rondo_rdma *rdma, const struct rdma_cm_event *event, struct request *request)
{
    if (event->param.conn.private_data == NULL || event->param.conn.private_data_len < sizeof(*request))
        return -1;
    memcpy(request, event->param.conn.private_data, sizeof(*request));
    if (request->magic != MAGIC || request->token != rdma->token || request->rank < 0 || request->rank >= rdma->context->size ||
        request->count < 1 || request->count > RONDO_RDMA_QUEUES || request->index >= request->count ||
        request->rail >= RONDO_RDMA_RAILS || request->other_rail >= rdma->rail_count)
        return -1;
    const struct rondo_rdma_peer *peer = &rdma->peers[request->rank];
    if (peer->lost || peer->in[request->index] != NULL || (peer->in_count != 0 && peer->in_count != request->count))
        return -1;
    return event->id->verbs == rdma->rails[request->other_rail].verbs ? request->rank : -1;
}

static void accept_connection(struct rondo_rdma *rdma, struct rdma_cm_event *event)
{
    struct request request;
    struct rdma_cm_id *id = event->id;
    int rank = judge(rdma, event, &request);
    struct rondo_rdma_queue *queue = rank >= 0 ? make_queue(rdma, rank, request.other_rail, request.rail) : NULL;
    if (queue == NULL) {
        rondo_log(RONDO_LOG_DEBUG, rdma->rank, "rdma: a connection request was refused");
        rdma->library->rdma_reject(id, NULL, 0);
        rdma->library->rdma_destroy_id(id);
        return;
    }
    struct rdma_conn_param parameters = {
        .responder_resources = 1, .initiator_depth = 1, .retry_count = RETRIES, .rnr_retry_count = 7};
    queue->id = id;
    id->context = queue;
    set_timeout(rdma, id);
    if (create_pair(rdma, queue) != 0 || rdma->library->rdma_accept(id, &parameters) != 0) {
        lose_by(queue, "accepting its connection", strerror(errno));
        return;
    }
    rdma->peers[rank].in_count = request.count;
    rdma->peers[rank].in[request.index] = queue;
    queue->phase = RONDO_RDMA_READY; /* it may send: what it answers has come by this queue pair */
}

/* ---- events ---- */

static void handle_event(struct rondo_rdma *rdma, struct rdma_cm_event *event)
{
    struct rondo_rdma_queue *queue = event->id->context;
    if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
        accept_connection(rdma, event);
        return;
    }
    if (queue == NULL || queue->phase == RONDO_RDMA_BROKEN)
        return;
    switch (event->event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
        if (rdma->library->rdma_resolve_route(queue->id, RESOLVE_MS) != 0)
            lose_by(queue, "rdma_resolve_route", strerror(errno));
        break;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
        request_connection(rdma, queue);
        break;
    case RDMA_CM_EVENT_ESTABLISHED:
        if (queue->phase == RONDO_RDMA_CONNECTING)
            rdma->connecting--;
        queue->phase = RONDO_RDMA_READY;
        break;
    case RDMA_CM_EVENT_TIMEWAIT_EXIT:
        break;
    default:
        lose_by(queue, "connection", rdma->library->rdma_event_str(event->event));
        break;
    }
}

int rondo_rdma_poll_connections(struct rondo_rdma *rdma)
{
    struct rdma_cm_event *event;
    int any = 0;
    while (rdma->library->rdma_get_cm_event(rdma->events, &event) == 0) {
        /* Acknowledged from a copy, since destroying an id waits for its events. */
        struct rdma_cm_event copy = *event;
        unsigned char data[sizeof(struct request)];
        if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST && event->param.conn.private_data != NULL &&
            event->param.conn.private_data_len >= sizeof(data)) {
            memcpy(data, event->param.conn.private_data, sizeof(data));
            copy.param.conn.private_data = data;
        }
        rdma->library->rdma_ack_cm_event(event);
        handle_event(rdma, &copy);
        any = 1;
    }
    return any;
}

void rondo_rdma_close_queues(struct rondo_rdma *rdma)
{
    while (rdma->all != NULL) {
        struct rondo_rdma_queue *queue = rdma->all;
        rdma->all = queue->next;
        if (queue->id != NULL && queue->id->qp != NULL)
            rdma->library->rdma_destroy_qp(queue->id);
        if (queue->id != NULL)
            rdma->library->rdma_destroy_id(queue->id);
        free(queue);
    }
}
