/*
 * Queue pairs of the rdma transport, connected by rdma_cm step by step as its events come. The rank that sends slots connects;
 * the other one accepts requests that bring the token of its endpoint address. When one breaks, and when it is made again, is
 * in transport/rdma/renew.c. Nothing here waits.
 */
#include "transport/rdma/rdma.h"

#include "lib/base/error.h"
#include "lib/base/thread.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RESOLVE_MS  3000
#define RETRIES     7
#define ACK_TIMEOUT 15 /* 4.096 us * 2^15 = 0.13 s, RETRIES times and up to four times as long: within 5 s a queue breaks */
#define MAGIC       0x6f646e52u

/* What a connection request brings; private data of rdma_cm have room for 56 bytes. */
struct request {
    uint64_t token;
    uint32_t magic;
    int32_t rank;
    uint32_t generation;
    uint8_t asks; /* the receiver of slots would have its queue pair made again; the request itself is refused */
    uint8_t index, count, rail, other_rail;
};

void rondo_rdma_lose(struct rondo_rdma *rdma, int rank, const char *why)
{
    struct rondo_rdma_peer *peer = &rdma->peers[rank];
    if (peer->lost)
        return;
    peer->lost = 1;
    for (struct rondo_rdma_queue *queue = rdma->all; queue != NULL; queue = queue->next)
        if (queue->peer == rank) {
            rondo_rdma_release_pair(queue);
            rondo_rdma_set_phase(queue, RONDO_RDMA_BROKEN, 0);
        }
    if (!rdma->closing)
        rondo_proxy_lose(rdma->proxy, rank, "rdma", why);
    /* Without the way to itself (transport/rdma/flush.c) this rank cannot trust what others send. */
    for (int other = 0; rank == rdma->rank && rdma->slots != RONDO_SLOTS_WITH_COUNTERS && other < rdma->context->size; other++)
        if (rdma->peers[other].in_count > 0)
            rondo_rdma_lose(rdma, other, why);
}

static void break_by(struct rondo_rdma_queue *queue, const char *step, const char *why)
{
    char text[160];
    snprintf(text, sizeof(text), "%s: %s", step, why);
    rondo_rdma_break(queue, text);
}

static struct rondo_rdma_queue *make_queue(struct rondo_rdma *rdma, int peer, int index, int sends)
{
    struct rondo_rdma_queue *queue = calloc(1, sizeof(*queue));
    if (queue == NULL)
        return NULL;
    queue->rdma = rdma;
    queue->peer = peer;
    queue->index = index;
    queue->sends = sends;
    queue->tag = (rdma->made++ & 0xffff) << 48;
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

/* Another rank has made the endpoint address: it is checked before it is believed. */
static int read_endpoint_address(const struct rondo_rdma *rdma, int rank, struct rondo_rdma_endpoint_address *endpoint)
{
    const struct rondo_endpoint_address *address = rdma->peers[rank].address;
    if (rank == rdma->rank) {
        *endpoint = rdma->endpoint;
        return 1;
    }
    if (address == NULL || address->bytes != sizeof(*endpoint))
        return 0;
    memcpy(endpoint, address->data, sizeof(*endpoint));
    return endpoint->rails >= 1 && endpoint->rails <= RONDO_RDMA_RAILS && endpoint->queues >= 1 &&
           endpoint->queues <= RONDO_RDMA_QUEUES;
}

void rondo_rdma_begin(struct rondo_rdma_queue *queue)
{
    struct rondo_rdma *rdma = queue->rdma;
    struct rondo_rdma_endpoint_address endpoint;
    if (!read_endpoint_address(rdma, queue->peer, &endpoint)) {
        rondo_rdma_lose(rdma, queue->peer, "its address cannot be understood");
        return;
    }
    int64_t now = rondo_clock_ms();
    if (!rondo_rdma_choose_rails(queue, (int) endpoint.rails)) {
        snprintf(queue->why, sizeof(queue->why), "the ports of all RDMA devices are down");
        queue->since = queue->since != 0 ? queue->since : now;
        return; /* until one is up again */
    }
    struct sockaddr_storage there, here = rdma->rails[queue->rail].address;
    to_socket(&endpoint.addresses[queue->other_rail], &there);
    if (here.ss_family == AF_INET) /* any port of this address */
        ((struct sockaddr_in *) &here)->sin_port = 0;
    else
        ((struct sockaddr_in6 *) &here)->sin6_port = 0;
    queue->attempt = now;
    queue->asks = !queue->sends;
    queue->generation += (uint32_t) queue->sends;
    rondo_rdma_set_phase(queue, RONDO_RDMA_CONNECTING, queue->wanted);
    rondo_log(RONDO_LOG_DEBUG, rdma->rank, "rdma: queue pair %d %s rank %d: attempt %u, by %s, %s", queue->index,
              queue->sends ? "to" : "from", queue->peer, queue->generation, rdma->rails[queue->rail].name,
              queue->asks ? "asks" : "connects");
    if (rdma->library->rdma_create_id(rdma->events, &queue->id, queue, RDMA_PS_TCP) != 0) {
        queue->id = NULL;
        break_by(queue, "rdma_create_id", strerror(errno));
        return;
    }
    set_timeout(rdma, queue->id);
    if (rdma->library->rdma_resolve_addr(queue->id, (struct sockaddr *) &here, (struct sockaddr *) &there, RESOLVE_MS) != 0)
        break_by(queue, "rdma_resolve_addr", strerror(errno));
}

static void begin_all(struct rondo_rdma *rdma, int rank, const struct rondo_endpoint_address *address)
{
    struct rondo_rdma_peer *peer = &rdma->peers[rank];
    struct rondo_rdma_endpoint_address endpoint;
    peer->address = address;
    if (!read_endpoint_address(rdma, rank, &endpoint)) {
        rondo_rdma_lose(rdma, rank, "its address cannot be understood");
        return;
    }
    int rails = rdma->rail_count > (int) endpoint.rails ? rdma->rail_count : (int) endpoint.rails;
    int count = rdma->queues > rails ? rdma->queues : rails; /* at least one a rail of the side that has more */
    peer->out_count = count > RONDO_RDMA_QUEUES ? RONDO_RDMA_QUEUES : count;
    for (int i = 0; i < peer->out_count; i++) {
        if ((peer->out[i] = make_queue(rdma, rank, i, 1)) == NULL) {
            rondo_rdma_lose(rdma, rank, "no memory for a queue pair");
            return;
        }
        peer->out[i]->rail = peer->out[i]->start_rail = i % rdma->rail_count;
        peer->out[i]->other_rail = peer->out[i]->start_other = i % (int) endpoint.rails;
    }
    for (int i = 0; i < peer->out_count && !peer->lost; i++) {
        rondo_rdma_set_phase(peer->out[i], RONDO_RDMA_BROKEN, 1);
        rondo_rdma_begin(peer->out[i]);
    }
}

/* address: the peer's. */
static struct rondo_rdma_queue *if_ready(struct rondo_rdma_queue *queue, const struct rondo_endpoint_address *address)
{
    if (queue == NULL || queue->phase == RONDO_RDMA_READY)
        return queue;
    queue->rdma->peers[queue->peer].address = address;
    rondo_rdma_want(queue);
    return NULL;
}

struct rondo_rdma_queue *rondo_rdma_queue_of(struct rondo_rdma *rdma, const struct rondo_port *port)
{
    struct rondo_rdma_peer *peer = &rdma->peers[port->peer];
    if (peer->lost)
        return NULL;
    /* Both sides know the number of the sender's port, and so which queue it is. */
    if (port->direction == RONDO_INCOMING)
        return peer->in_count > 0 ? if_ready(peer->in[port->other_number % (uint32_t) peer->in_count], port->endpoint_address)
                                  : NULL;
    if (peer->out_count == 0)
        begin_all(rdma, port->peer, port->endpoint_address);
    return peer->lost ? NULL : if_ready(peer->out[port->number % (uint32_t) peer->out_count], port->endpoint_address);
}

struct rondo_rdma_queue *rondo_rdma_loop(struct rondo_rdma *rdma, int rail)
{
    struct rondo_rdma_peer *self = &rdma->peers[rdma->rank];
    if (!self->lost && self->out_count == 0)
        begin_all(rdma, rdma->rank, NULL);
    return self->lost ? NULL : if_ready(self->out[rail], NULL); /* one a rail, the first ones in their order */
}

/* A request that asks has a queue pair, too, although none will be connected to it: rdma_cm tells requests apart by their
 * numbers. */
static void request_connection(struct rondo_rdma *rdma, struct rondo_rdma_queue *queue)
{
    const struct rondo_rdma_peer *peer = &rdma->peers[queue->peer];
    struct rondo_rdma_endpoint_address endpoint;
    if (!read_endpoint_address(rdma, queue->peer, &endpoint))
        return; /* it was read when the attempt began */
    struct request request = {.token = endpoint.token,
                              .magic = MAGIC,
                              .rank = rdma->rank,
                              .generation = queue->generation,
                              .asks = (uint8_t) queue->asks,
                              .index = (uint8_t) queue->index,
                              .count = (uint8_t) (queue->sends ? peer->out_count : peer->in_count),
                              .rail = (uint8_t) queue->rail,
                              .other_rail = (uint8_t) queue->other_rail};
    struct rdma_conn_param parameters = {.private_data = &request,
                                         .private_data_len = sizeof(request),
                                         .responder_resources = 1,
                                         .initiator_depth = 1,
                                         .retry_count = RETRIES,
                                         .rnr_retry_count = 7};
    if (create_pair(rdma, queue) != 0)
        break_by(queue, "no queue pair", strerror(errno));
    else if (rdma->library->rdma_connect(queue->id, &parameters) != 0)
        break_by(queue, "rdma_connect", strerror(errno));
}

/* ---- accepting ---- */

/* Whether a genuine rank has made the request. */
static int is_genuine(const struct rondo_rdma *rdma, const struct rdma_cm_event *event, struct request *request)
{
    if (event->param.conn.private_data == NULL || event->param.conn.private_data_len < sizeof(*request))
        return 0;
    memcpy(request, event->param.conn.private_data, sizeof(*request));
    return request->magic == MAGIC && request->token == rdma->token && request->asks <= 1 && request->rank >= 0 &&
           request->rank < rdma->context->size && request->count >= 1 && request->count <= RONDO_RDMA_QUEUES &&
           request->index < request->count && request->rail < RONDO_RDMA_RAILS &&
           (int) request->other_rail < rdma->rail_count && !rdma->peers[request->rank].lost;
}

/* The queue that the request is to connect; NULL: it is refused. One that is not newer than the last one accepted has been
 * overtaken, or comes twice. */
static struct rondo_rdma_queue *admit(struct rondo_rdma *rdma, const struct rdma_cm_event *event, const struct request *request)
{
    struct rondo_rdma_peer *peer = &rdma->peers[request->rank];
    struct rondo_rdma_queue *queue = peer->in[request->index];
    const struct rondo_rdma_rail *rail = &rdma->rails[request->other_rail];
    if ((peer->in_count != 0 && peer->in_count != request->count) || event->id->verbs != rail->verbs || rail->down ||
        request->generation <= (queue != NULL ? queue->generation : 0))
        return NULL;
    if (queue == NULL) {
        if ((queue = make_queue(rdma, request->rank, request->index, 0)) == NULL)
            return NULL;
        peer->in[request->index] = queue;
        peer->in_count = request->count;
    }
    return queue;
}

/* The receiver's side has broken, which the request says of the queue pair that both have connected last. */
static void take_ask(struct rondo_rdma *rdma, const struct request *request)
{
    const struct rondo_rdma_peer *peer = &rdma->peers[request->rank];
    if (request->count != peer->out_count || request->generation != peer->out[request->index]->generation)
        return; /* a later attempt is under way */
    rondo_rdma_break(peer->out[request->index], "the receiver asks for another");
    rondo_rdma_want(peer->out[request->index]);
}

static void accept_connection(struct rondo_rdma *rdma, struct rdma_cm_event *event)
{
    struct request request;
    struct rdma_cm_id *id = event->id;
    int genuine = is_genuine(rdma, event, &request);
    struct rondo_rdma_queue *queue = genuine && !request.asks ? admit(rdma, event, &request) : NULL;
    if (queue == NULL) {
        rdma->library->rdma_reject(id, NULL, 0);
        rdma->library->rdma_destroy_id(id);
        if (genuine && request.asks)
            take_ask(rdma, &request);
        else
            rondo_log(RONDO_LOG_DEBUG, rdma->rank, "rdma: a connection request was refused");
        return;
    }
    struct rdma_conn_param parameters = {
        .responder_resources = 1, .initiator_depth = 1, .retry_count = RETRIES, .rnr_retry_count = 7};
    rondo_rdma_break(queue, "the sender makes another"); /* before anything can arrive by the new one */
    queue->generation = request.generation;
    queue->rail = request.other_rail;
    queue->other_rail = request.rail;
    queue->attempt = rondo_clock_ms();
    queue->asks = 0;
    queue->id = id;
    id->context = queue;
    rondo_rdma_set_phase(queue, RONDO_RDMA_CONNECTING, queue->wanted);
    set_timeout(rdma, id);
    if (create_pair(rdma, queue) != 0 || rdma->library->rdma_accept(id, &parameters) != 0)
        break_by(queue, "accepting its connection", strerror(errno));
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
    rondo_log(RONDO_LOG_DEBUG, rdma->rank, "rdma: queue pair %d %s rank %d: %s", queue->index, queue->sends ? "to" : "from",
              queue->peer, rdma->library->rdma_event_str(event->event));
    switch (event->event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
        if (rdma->library->rdma_resolve_route(queue->id, RESOLVE_MS) != 0)
            break_by(queue, "rdma_resolve_route", strerror(errno));
        break;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
        request_connection(rdma, queue);
        break;
    case RDMA_CM_EVENT_ESTABLISHED:
        rondo_rdma_set_ready(queue);
        break;
    case RDMA_CM_EVENT_TIMEWAIT_EXIT:
        break;
    default:
        break_by(queue, "connection", rdma->library->rdma_event_str(event->event));
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
    if (rdma->connecting > 0)
        rondo_rdma_renew(rdma);
    return any;
}

void rondo_rdma_close_queues(struct rondo_rdma *rdma)
{
    while (rdma->all != NULL) {
        struct rondo_rdma_queue *queue = rdma->all;
        rdma->all = queue->next;
        rondo_rdma_release_pair(queue);
        free(queue);
    }
}
