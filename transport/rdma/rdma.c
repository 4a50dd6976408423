/*
 * Ranks reach each other by RDMA: a slot, then the counter, are written straight into the receiver's memory, in this order on
 * one reliable queue pair, so that no thread there has to do anything; credits come back in the same way. Connectors are spread
 * over several queue pairs and NICs.
 *
 * Why the order suffices: writes of one reliable queue pair are carried out in order, and a counter is one aligned word.
 * Why a local slot may be filled again once its credit is there: the receiver had all of it, and what the NIC may still send
 * of it again the other NIC drops as a duplicate. A queue pair that breaks is made again, and transport/rdma/renew.c says why
 * nothing is lost with it.
 */
#include "transport/rdma/rdma.h"

#include "lib/base/thread.h"
#include "lib/base/environment.h"
#include "lib/base/error.h"
#include "proxy/network.h"
#include "device/abi/platform.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define QUIET_PASSES 64 /* between two looks at events that seldom come */

extern const struct rondo_network rondo_network_rdma;

static const char *unusable(void)
{
    const char *why;
    rondo_rdma_library(&why);
    return why;
}

static int reaches(const struct rondo_transport_context *context, int peer)
{
    return rondo_transport_is_open_to(context, &rondo_transport_rdma, peer);
}

/* ---- posting ---- */

int rondo_rdma_post(struct rondo_rdma_queue *queue, struct ibv_send_wr *request, struct ibv_sge part, int signaled)
{
    struct ibv_send_wr *refused;
    request->wr_id = queue->tag | (queue->posted + 1);
    request->sg_list = &part;
    request->num_sge = 1;
    if (signaled)
        request->send_flags |= IBV_SEND_SIGNALED;
    int error = ibv_post_send(queue->id->qp, request, &refused);
    if (error != 0) {
        rondo_rdma_break(queue, strerror(error));
        return 0;
    }
    queue->posted++;
    if (signaled)
        queue->signaled = queue->posted;
    return 1;
}

/* A slot into the port's other side. A short one travels in the request itself, but not from where only NICs may read. */
static int post_slot(struct rondo_rdma_queue *queue, const struct rondo_port *port, uint32_t slot, uint32_t bytes)
{
    uint64_t place = (uint64_t) slot * port->slot_bytes;
    const struct rondo_region *from = port->slot_region.slab != NULL ? &port->slot_region : &port->region;
    struct ibv_send_wr request = {.opcode = IBV_WR_RDMA_WRITE};
    if (bytes <= queue->inline_most && port->slot_region.slab == NULL)
        request.send_flags |= IBV_SEND_INLINE;
    request.wr.rdma.remote_addr = port->other_slots + place;
    request.wr.rdma.rkey = port->other_slot_access[queue->other_rail];
    return rondo_rdma_post(
        queue, &request,
        (struct ibv_sge){(uint64_t) (uintptr_t) (port->slots + place), bytes, rondo_rdma_keys(from, queue->rail)->lkey},
        queue->posted - queue->signaled >= RONDO_RDMA_UNSIGNALED);
}

/* The counter always travels in the request (transport/rdma/connect.c insists on room for it), so the value may be on the
 * stack. */
static int post_counter(struct rondo_rdma_queue *queue, struct rondo_port *port, uint64_t value, int signaled)
{
    struct ibv_send_wr request = {.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_INLINE};
    request.wr.rdma.remote_addr = port->other_address + (port->direction == RONDO_OUTGOING ? RONDO_PORT_TAIL : RONDO_PORT_HEAD);
    request.wr.rdma.rkey = port->other_access[queue->other_rail];
    if (!rondo_rdma_post(queue, &request, (struct ibv_sge){(uint64_t) (uintptr_t) &value, sizeof(value), 0},
                         signaled || queue->posted - queue->signaled >= RONDO_RDMA_UNSIGNALED))
        return 0;
    port->last_post = queue->posted;
    return 1;
}

/* After a break this sends slots again (transport/rdma/renew.c). The receiver may know a tail up to port->told by then, and a
 * counter never goes back: no tail is sent before all slots below told have been. port->transmitted is never less than a tail
 * that is posted, because a post that is refused breaks the queue, and that makes it told. */
static int transmit_slots(struct rondo_rdma_queue *queue, struct rondo_port *port, uint64_t tail)
{
    const uint64_t begin = port->transmitted;
    uint64_t sent = begin;
    while (sent != tail && rondo_rdma_room(queue) > 2) {
        uint32_t slot = (uint32_t) (sent & (port->slot_count - 1));
        uint32_t bytes = rondo_load_relaxed32(port->sizes + slot);
        if (bytes > port->slot_bytes)
            bytes = port->slot_bytes;
        if (!post_slot(queue, port, slot, bytes))
            return 0;
        sent++;
        if (sent <= port->told)
            continue;
        rondo_proxy_note_sent(port->proxy, port->network, bytes);
        /* The receiver may begin with what is there while the rest comes; a counter is cheap beside a large slot. */
        if (bytes >= RONDO_RDMA_LARGE && sent != tail) {
            port->transmitted = sent;
            if (!post_counter(queue, port, sent, 0))
                return 0;
        }
    }
    if (sent == begin)
        return 0;
    port->transmitted = sent;
    return sent < port->told || post_counter(queue, port, sent, 0);
}

static int transmit(void *state, struct rondo_port *port, uint64_t published)
{
    struct rondo_rdma *rdma = state;
    struct rondo_rdma_queue *queue = rondo_rdma_queue_of(rdma, port);
    if (rdma->peers[port->peer].lost)
        port->transmitted = published; /* it will never arrive */
    if (queue == NULL || rondo_rdma_room(queue) < 4)
        return 0;
    if (port->direction == RONDO_OUTGOING)
        return transmit_slots(queue, port, published);
    if (!post_counter(queue, port, published, 0))
        return 0;
    port->transmitted = published;
    return 1;
}

/* The last post may be one that was not signaled: then the counter is sent again, signaled. Where the queue pair has broken,
 * the other side has had everything: otherwise the port had begun again, and would have something to transmit. */
static int is_drained(void *state, struct rondo_port *port)
{
    struct rondo_rdma *rdma = state;
    if (port->last_post == 0 || rdma->peers[port->peer].lost)
        return 1;
    struct rondo_rdma_queue *queue = rondo_rdma_queue_of(rdma, port);
    if (queue == NULL || queue->completed >= port->last_post)
        return 1;
    if (queue->signaled < port->last_post && rondo_rdma_room(queue) >= 4)
        post_counter(queue, port, port->transmitted, 1);
    return 0;
}

static void sever(void *state, struct rondo_port *port)
{
    rondo_rdma_lose(state, port->peer, "it does not take what was sent to it");
}

/* ---- completions ---- */

/* Of a queue pair of the past NULL, or, once its number has been given again, perhaps another queue. */
static struct rondo_rdma_queue *queue_by_number(const struct rondo_rdma *rdma, const struct rondo_rdma_rail *rail,
                                                uint32_t number)
{
    struct rondo_rdma_queue *queue = rdma->all;
    while (queue != NULL &&
           (&rdma->rails[queue->rail] != rail || queue->id == NULL || queue->id->qp == NULL || queue->id->qp->qp_num != number))
        queue = queue->next;
    return queue;
}

static int poll_rail(struct rondo_rdma *rdma, struct rondo_rdma_rail *rail)
{
    struct ibv_wc done[32];
    int count = ibv_poll_cq(rail->completions, 32, done);
    for (int i = 0; i < count; i++) {
        struct rondo_rdma_queue *queue = queue_by_number(rdma, rail, done[i].qp_num);
        uint64_t number = done[i].wr_id & RONDO_RDMA_COUNT;
        /* What a queue pair of the past reports is told by its tag, or by its number, which goes on from one to the next. */
        if (queue == NULL || done[i].wr_id - number != queue->tag || number <= queue->completed || number > queue->posted)
            continue;
        if (done[i].status == IBV_WC_SUCCESS)
            queue->completed = number;
        else
            rondo_rdma_break(queue, rdma->library->ibv_wc_status_str(done[i].status));
    }
    return count > 0;
}

static void take_rail_events(struct rondo_rdma *rdma, struct rondo_rdma_rail *rail)
{
    struct ibv_cq *completions;
    void *context;
    while (rdma->library->ibv_get_cq_event(rail->channel, &completions, &context) == 0)
        rdma->library->ibv_ack_cq_events(completions, 1);
    rondo_rdma_poll_device_events(rdma, rail);
}

static int progress(void *state)
{
    struct rondo_rdma *rdma = state;
    int moved = 0;
    for (int i = 0; i < rdma->rail_count; i++)
        moved |= poll_rail(rdma, &rdma->rails[i]);
    if (rdma->connecting > 0 || ++rdma->passes % QUIET_PASSES == 0) {
        moved |= rondo_rdma_poll_connections(rdma);
        for (int i = 0; i < rdma->rail_count; i++)
            take_rail_events(rdma, &rdma->rails[i]);
    }
    return moved;
}

/* Requests notification, then looks once more: of what came before the request there is none. */
static int arm(void *state, int *descriptor)
{
    struct rondo_rdma *rdma = state;
    *descriptor = rdma->descriptor;
    int came = rondo_rdma_poll_connections(rdma);
    for (int i = 0; i < rdma->rail_count; i++) {
        take_rail_events(rdma, &rdma->rails[i]);
        ibv_req_notify_cq(rdma->rails[i].completions, 0);
    }
    for (int i = 0; i < rdma->rail_count; i++)
        came |= poll_rail(rdma, &rdma->rails[i]);
    return !came;
}

/* ---- life ---- */

static void close_network(void *state)
{
    struct rondo_rdma *rdma = state;
    rdma->closing = 1;
    if (rdma->peers != NULL)
        rondo_rdma_close_queues(rdma);
}

/* After the memory that the rails have registered. */
static void free_network(void *state)
{
    struct rondo_rdma *rdma = state;
    rondo_rdma_close_rails(rdma);
    if (rdma->descriptor >= 0)
        close(rdma->descriptor);
    free(rdma->peers);
    free(rdma);
}

static void write_endpoint_address(struct rondo_rdma *rdma, struct rondo_endpoint_address *endpoint)
{
    struct rondo_rdma_endpoint_address own = {
        .token = rdma->token, .rails = (uint32_t) rdma->rail_count, .queues = (uint32_t) rdma->queues};
    for (int i = 0; i < rdma->rail_count; i++) {
        const struct sockaddr_storage *from = &rdma->rails[i].address;
        struct rondo_rdma_address *to = &own.addresses[i];
        to->family = from->ss_family;
        if (from->ss_family == AF_INET) {
            const struct sockaddr_in *v4 = (const struct sockaddr_in *) from;
            to->port = v4->sin_port;
            memcpy(to->bytes, &v4->sin_addr, sizeof(v4->sin_addr));
        } else {
            const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *) from;
            to->port = v6->sin6_port;
            memcpy(to->bytes, &v6->sin6_addr, sizeof(v6->sin6_addr));
        }
    }
    rdma->endpoint = own;
    endpoint->bytes = sizeof(own);
    memcpy(endpoint->data, &own, sizeof(own));
}

static rondo_result_t open_network(struct rondo_transport_context *context, struct rondo_proxy *proxy, void **state,
                                   struct rondo_endpoint_address *endpoint)
{
    const char *why;
    int64_t queues = 0;
    const struct rondo_rdma_library *library = rondo_rdma_library(&why);
    if (library == NULL)
        return rondo_fail(RONDO_ERR_TRANSPORT, "rdma: %s", why);
    struct rondo_rdma *rdma = calloc(1, sizeof(*rdma));
    if (rdma != NULL)
        rdma->peers = calloc((size_t) context->size, sizeof(*rdma->peers));
    if (rdma == NULL || rdma->peers == NULL) {
        free(rdma);
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for rdma");
    }
    rdma->library = library;
    rdma->context = context;
    rdma->rank = context->rank;
    rdma->gpu = context->device_type == RONDO_DEVICE_CUDA ? context->device_index : -1;
    for (int rank = 0; rank < context->rank; rank++)
        rdma->local_rank += strcmp(context->peers[rank].host_id, context->peers[context->rank].host_id) == 0;
    rdma->proxy = proxy;
    rdma->descriptor = epoll_create1(EPOLL_CLOEXEC);
    rondo_result_t result = rdma->descriptor >= 0 ? RONDO_SUCCESS : rondo_fail(RONDO_ERR_SYSTEM, "epoll: %s", strerror(errno));
    if (result == RONDO_SUCCESS)
        result = rondo_environment_integer("RONDO_RDMA_QUEUES", &queues);
    rdma->queues = (int) queues;
    if (result == RONDO_SUCCESS)
        result = rondo_random_bytes(&rdma->token, sizeof(rdma->token));
    if (result == RONDO_SUCCESS)
        result = rondo_rdma_open_rails(rdma);
    if (result == RONDO_SUCCESS)
        result = rondo_rdma_choose_slots(rdma);
    if (result != RONDO_SUCCESS) {
        close_network(rdma);
        free_network(rdma);
        return result;
    }
    write_endpoint_address(rdma, endpoint);
    *state = rdma;
    return RONDO_SUCCESS;
}

static int numa_node_of(void *state)
{
    return ((const struct rondo_rdma *) state)->rails[0].node;
}

static const struct rondo_slab_source *slot_slabs(void *state)
{
    return ((const struct rondo_rdma *) state)->slots != RONDO_SLOTS_WITH_COUNTERS ? &rondo_rdma_slots_apart : NULL;
}

const struct rondo_network rondo_network_rdma = {
    .name = "rdma",
    .open = open_network,
    .close = close_network,
    .destroy = free_network,
    .prepare = rondo_rdma_prepare,
    .transmit = transmit,
    .is_drained = is_drained,
    .sever = sever,
    .progress = progress,
    .arm = arm,
    .numa_node = numa_node_of,
    .slabs = &rondo_rdma_slabs,
    .slot_slabs = slot_slabs,
    .flush = rondo_rdma_flush,
};

const struct rondo_transport rondo_transport_rdma = {
    .name = "rdma",
    .network = &rondo_network_rdma,
    .unusable = unusable,
    .reaches = reaches,
    RONDO_NETWORK_FUNCTIONS,
};
