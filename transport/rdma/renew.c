/*
 * Queues whose queue pair breaks: it is made again, perhaps between other rails, and no result is lost with it. The sender of
 * slots connects, as at first. A receiver whose side has broken asks it to, by a request that is always refused, because the
 * sender may not know: a port that has gone down tells the other side nothing. Relies on transport/rdma/connect.c for the steps
 * of an attempt. test/models/requeue.pml is the model of it.
 *
 * Slots and counters are written to fixed places, and counters are absolute, so to write them again does no harm, if:
 * - Nothing of the old queue pair arrives after something of the new one. Each side frees its old queue pair, after which the
 *   NIC carries out nothing for it, before it requests or accepts a new one. A request that is older than the last one accepted
 *   is refused by its generation.
 * - A slot that is written again has the bytes that it had, as long as the receiver may read it. The sender begins again at the
 *   head that it knows (restart_port). The device fills a local slot again only once the head is beyond; then the receiver is
 *   done with its own slot, and looks there again only after a tail that follows the new bytes.
 * - No counter goes back. A tail is not sent before the slots below all tails that may have arrived (port->told) have been sent
 *   again; it is then at least as large. A head is read from the device's counter when it is sent.
 * - A tail that arrived by the old queue pair may not be trusted where slots lie apart (proxy/arrival.h) and were not flushed,
 *   since the flush reads by the NIC that wrote them: it is forgotten, and the sender sends it again, after the slots. It does,
 *   because a slot that was not shown to the device has no credit.
 */
#include "transport/rdma/rdma.h"

#include "device/abi/platform.h"
#include "lib/base/error.h"
#include "lib/base/thread.h"

#include <stdio.h>

enum {
    MISSING_MS = 8000, /* of a queue that is wanted, before its peer is lost; the library's patience may end earlier */
    ATTEMPT_MS = 2000, /* for an attempt, but for the first one, which rdma_cm bounds */
    PAUSE_MS = 50,     /* after an attempt that failed */
    ASK_MS = 300,      /* after a request to be connected to */
    LOOK_MS = 5,       /* between two looks at the attempts */
};

static int is_pending(const struct rondo_rdma_queue *queue)
{
    return queue->phase == RONDO_RDMA_CONNECTING || (queue->phase == RONDO_RDMA_BROKEN && queue->wanted);
}

void rondo_rdma_set_phase(struct rondo_rdma_queue *queue, enum rondo_rdma_phase phase, int wanted)
{
    queue->rdma->connecting -= (uint32_t) is_pending(queue);
    queue->phase = phase;
    queue->wanted = wanted;
    queue->rdma->connecting += (uint32_t) is_pending(queue);
}

void rondo_rdma_release_pair(struct rondo_rdma_queue *queue)
{
    const struct rondo_rdma_library *library = queue->rdma->library;
    if (queue->id != NULL && queue->id->qp != NULL)
        library->rdma_destroy_qp(queue->id);
    if (queue->id != NULL)
        library->rdma_destroy_id(queue->id); /* the kernel ends the connection, if there is one */
    queue->id = NULL;
    queue->completed = queue->signaled = queue->posted;
}

/* ---- the ports of a queue ---- */

static int goes_by(const struct rondo_rdma_queue *queue, const struct rondo_port *port)
{
    const struct rondo_rdma_peer *peer = &queue->rdma->peers[queue->peer];
    if (port->peer != queue->peer || (port->direction == RONDO_OUTGOING) != queue->sends)
        return 0;
    return queue->sends ? (int) (port->number % (uint32_t) peer->out_count) == queue->index
                        : peer->in_count > 0 && (int) (port->other_number % (uint32_t) peer->in_count) == queue->index;
}

/* Its queue pair has been freed, and no other is there yet. */
static void restart_port(struct rondo_port *port)
{
    if (port->direction == RONDO_INCOMING) {
        port->transmitted = 0; /* it is not known which credits have arrived */
        if (port->remote_tail != NULL)
            rondo_store_relaxed(port->remote_tail, port->shown);
        port->flushing = port->flush_post = 0; /* a read that may still be on its way ends in the sink */
        return;
    }
    if (port->transmitted > port->told)
        port->told = port->transmitted;
    /* Acquire is not needed: the slots from there on are this side's, and only their NIC reads them. */
    uint64_t head = rondo_load_relaxed(port->watched);
    port->transmitted = head < port->told ? head : port->told;
}

/* The reads of a queue to this rank itself are lost with it: they are posted again. */
static void forget_flush(const struct rondo_rdma_queue *loop, struct rondo_port *port)
{
    const struct rondo_rdma_peer *peer = &loop->rdma->peers[port->peer];
    if (port->direction != RONDO_INCOMING || peer->in_count == 0)
        return;
    const struct rondo_rdma_queue *came_by = peer->in[port->other_number % (uint32_t) peer->in_count];
    if (came_by != NULL && came_by->rail == loop->rail)
        port->flush_post = 0;
}

/* Returns whether there are any. */
static int restart_ports(struct rondo_rdma_queue *queue)
{
    struct rondo_rdma *rdma = queue->rdma;
    struct rondo_ports *ports = rondo_proxy_ports(rdma->proxy);
    int any = 0;
    for (uint32_t number = 0, bound = rondo_ports_bound(ports); number < bound; number++) {
        struct rondo_port *port = rondo_port_find(ports, number);
        /* Acquire: pairs with rondo_proxy_join, after which the other side is known. */
        if (port == NULL || port->network_state != rdma || __atomic_load_n(&port->state, __ATOMIC_ACQUIRE) == RONDO_PORT_IDLE)
            continue;
        if (queue->peer == rdma->rank && queue->sends)
            forget_flush(queue, port);
        if (!goes_by(queue, port))
            continue;
        rdma->peers[queue->peer].address = port->endpoint_address;
        restart_port(port);
        any = 1;
    }
    return any;
}

/* ---- breaking ---- */

void rondo_rdma_want(struct rondo_rdma_queue *queue)
{
    if (queue->phase != RONDO_RDMA_BROKEN || queue->wanted || queue->rdma->peers[queue->peer].lost)
        return;
    rondo_rdma_set_phase(queue, RONDO_RDMA_BROKEN, 1);
    queue->since = rondo_clock_ms();
}

/* Whether a queue that was READY has had a post completed since, or none to make. One that is connected again and again, and
 * breaks as soon as it is used, counts as missing all the time. */
static int has_worked(const struct rondo_rdma_queue *queue, int64_t now)
{
    return queue->completed != queue->proven || queue->posted == queue->proven || now - queue->ready >= MISSING_MS;
}

void rondo_rdma_break(struct rondo_rdma_queue *queue, const char *why)
{
    struct rondo_rdma *rdma = queue->rdma;
    int64_t now = rondo_clock_ms();
    if (queue->phase == RONDO_RDMA_BROKEN || rdma->peers[queue->peer].lost)
        return;
    int was_ready = queue->phase == RONDO_RDMA_READY;
    int worked = was_ready && has_worked(queue, now);
    if (worked)
        queue->since = 0;
    if (!queue->asks) /* a request that asks ends by a refusal, which says nothing */
        snprintf(queue->why, sizeof(queue->why), "%s", why);
    rondo_rdma_release_pair(queue);
    int wanted = (restart_ports(queue) || queue->wanted) && !rdma->closing;
    rondo_rdma_set_phase(queue, RONDO_RDMA_BROKEN, wanted);
    if (!wanted)
        queue->since = 0;
    else if (queue->since == 0)
        queue->since = now;
    if (worked) {
        queue->start_rail = queue->rail;
        queue->start_other = queue->other_rail;
        queue->tries = 1; /* other rails first */
    }
    if (was_ready)
        rondo_log(RONDO_LOG_INFO, rdma->rank, "rdma: queue pair %d %s rank %d, by %s, broke: %s", queue->index,
                  queue->sends ? "to" : "from", queue->peer, rdma->rails[queue->rail].name, why);
    /* The sender begins at once, so that its receiver, which hears of that, seldom has to ask. */
    queue->attempt = now + (worked && queue->sends ? 0 : queue->asks ? ASK_MS : PAUSE_MS);
    queue->asks = 0;
}

void rondo_rdma_set_ready(struct rondo_rdma_queue *queue)
{
    rondo_rdma_set_phase(queue, RONDO_RDMA_READY, 0);
    /* So that the first post is signaled, and says soon whether the queue pair works. */
    queue->signaled = queue->posted;
    queue->posted += RONDO_RDMA_UNSIGNALED;
    queue->completed = queue->proven = queue->posted;
    queue->ready = rondo_clock_ms();
    if (queue->why[0] != '\0')
        rondo_log(RONDO_LOG_INFO, queue->rdma->rank, "rdma: queue pair %d %s rank %d is there again, by %s", queue->index,
                  queue->sends ? "to" : "from", queue->peer, queue->rdma->rails[queue->rail].name);
    queue->why[0] = '\0';
}

/* ---- attempts ---- */

/* Both sides' rails advance together, so that what fails on one pair is first tried between two others; when they have come
 * round, the other side's are one further, until each has been tried with each. The way to this rank itself stays on its
 * rail. */
int rondo_rdma_choose_rails(struct rondo_rdma_queue *queue, int other_rails)
{
    const struct rondo_rdma *rdma = queue->rdma;
    int round = rdma->rail_count;
    if (queue->peer == rdma->rank)
        return !rdma->rails[queue->rail].down;
    while (round % other_rails != 0) /* the least common multiple */
        round += rdma->rail_count;
    for (int i = 0; i < rdma->rail_count * other_rails; i++) {
        int step = queue->tries++ % (rdma->rail_count * other_rails);
        int rail = (queue->start_rail + step) % rdma->rail_count;
        if (rdma->rails[rail].down)
            continue;
        queue->rail = rail;
        queue->other_rail = (queue->start_other + step + step / round) % other_rails;
        return 1;
    }
    return 0;
}

static void give_up(struct rondo_rdma_queue *queue)
{
    char text[160];
    snprintf(text, sizeof(text), "a queue pair could not be made again: %s", queue->why);
    rondo_rdma_lose(queue->rdma, queue->peer, text);
}

/* Milliseconds for the queue's attempt. The first one is rdma_cm's to bound; one that was accepted is replaced by the sender's
 * next one, if there is one. */
static int64_t limit_of(const struct rondo_rdma_queue *queue)
{
    if (!queue->sends && !queue->asks)
        return MISSING_MS;
    return queue->asks || queue->generation > 1 ? ATTEMPT_MS : INT64_MAX;
}

void rondo_rdma_renew(struct rondo_rdma *rdma)
{
    const struct rondo_transport_context *context = rdma->context;
    int64_t now = rondo_clock_ms();
    if (now - rdma->looked < LOOK_MS)
        return;
    rdma->looked = now;
    for (struct rondo_rdma_queue *queue = rdma->all; queue != NULL; queue = queue->next) {
        if (!is_pending(queue))
            continue;
        int64_t missing = queue->since != 0 ? now - queue->since : 0;
        if (queue->wanted && queue->since != 0 &&
            (missing >= MISSING_MS || missing >= context->upcalls.patience_ms(context->library, queue->peer)))
            give_up(queue);
        else if (queue->phase == RONDO_RDMA_BROKEN && now >= queue->attempt)
            rondo_rdma_begin(queue);
        else if (queue->phase == RONDO_RDMA_CONNECTING && now - queue->attempt >= limit_of(queue))
            rondo_rdma_break(queue, "no answer to a connection request");
    }
}
