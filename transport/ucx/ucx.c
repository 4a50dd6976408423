/*
 * Ranks reach each other through UCX: TCP, vendors' fabrics, whatever it was built for. A slot and a credit are active
 * messages; large slots are fetched by UCX straight into the receiver's slot, small ones are copied there. Messages name a port
 * and its key: what does not fit a port that is open is dropped, whatever sent it. Connections that break are made again.
 *
 * One worker a proxy, used by the holder of its claim alone.
 */
#include "transport/ucx/ucx.h"

#include "device/engine/receive_action.h"
#include "lib/base/error.h"
#include "proxy/network.h"
#include "transport/memory/memory_node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    OWING_PASSES = 16, /* with arrivals, for which what is owed waits */
    LOOK_PASSES = 256, /* without arrivals, between two looks at the clock; a power of two */
};

static const char *unusable(void)
{
    const char *why;
    rondo_ucx_library(&why);
    return why;
}

static int reaches(const struct rondo_transport_context *context, int peer)
{
    return rondo_transport_is_open_to(context, &rondo_transport_ucx, peer);
}

static rondo_result_t prepare(void *state, struct rondo_port *port)
{
    const struct rondo_ucx *ucx = state;
    size_t bytes = sizeof(struct rondo_ucx_outgoing) + port->slot_count * sizeof(struct rondo_ucx_sent_slot);
    int receives = port->direction == RONDO_INCOMING, host = ucx->context->device_type == RONDO_DEVICE_HOST;
    int references = host && !receives && !ucx->context->encrypts; /* slots are encrypted in place, a user's buffer is not */
    if (references)
        port->source_references =
            calloc(1, sizeof(*port->source_references) + port->slot_count * sizeof(port->source_references->slots[0]));
    if (host && receives)
        port->receive_actions = calloc(port->slot_count, sizeof(*port->receive_actions));
    if (receives) {
        bytes = sizeof(struct rondo_ucx_incoming) + port->slot_count * sizeof(struct rondo_ucx_fetched_slot);
        port->ready = calloc(port->slot_count, sizeof(*port->ready));
    }
    port->messages = calloc(1, bytes);
    int lacks = (receives && port->ready == NULL) || (host && receives && port->receive_actions == NULL) ||
                (references && port->source_references == NULL);
    if (port->messages == NULL || lacks)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for a network connector");
    if (!receives)
        ((struct rondo_ucx_outgoing *) port->messages)->again = UINT64_MAX;
    return RONDO_SUCCESS;
}

static int is_drained(void *state, struct rondo_port *port)
{
    return port->sending == 0 && port->receiving == 0 && !rondo_ucx_awaits_renewal(state, port);
}

static void sever(void *state, struct rondo_port *port)
{
    struct rondo_ucx *ucx = state;
    rondo_ucx_lose(ucx, port->peer, "it does not take what was sent to it");
    ucx->dropping = 1;
}

static int progress(void *state)
{
    struct rondo_ucx *ucx = state;
    ucx->events = 0;
    if (!rondo_ucx_direct_enter(&ucx->direct))
        return 0;
    unsigned moved = ucx->library->ucp_worker_progress(ucx->worker);
    int quiet = moved == 0 && ucx->events == 0;
    if (ucx->broken != NULL)
        rondo_ucx_renew(ucx);
    /* What is owed waits for a pause, in which a credit may have told it without a message of its own; but not for long. */
    if (ucx->owing && (quiet || ++ucx->deferred >= OWING_PASSES)) {
        ucx->deferred = 0;
        moved += (unsigned) rondo_ucx_pay(ucx);
    }
    if (quiet && (++ucx->quiet & (LOOK_PASSES - 1)) == 0)
        rondo_ucx_look(ucx);
    for (int rank = 0; ucx->dropping && rank < ucx->context->size; rank++)
        if (ucx->peers[rank].lost)
            rondo_ucx_drop_endpoints(ucx, &ucx->peers[rank]);
    ucx->dropping = 0;
    rondo_ucx_direct_leave(&ucx->direct);
    return moved > 0 || ucx->events > 0;
}

static int is_busy(void *state)
{
    const struct rondo_ucx *ucx = state;
    return ucx->under_way > 0 || ucx->owing || ucx->broken != NULL;
}

static int arm(void *state, int *descriptor)
{
    struct rondo_ucx *ucx = state;
    *descriptor = ucx->descriptor;
    rondo_ucx_look(ucx);
    if (ucx->owing && ucx->broken == NULL)
        return 0;
    return ucx->library->ucp_worker_arm(ucx->worker) == UCS_OK;
}

/* UCX does not tell which NIC it uses; where the user has named one, it is that. */
static int numa_node_of(void *state)
{
    const char *devices = getenv("UCX_NET_DEVICES");
    char path[200];
    (void) state;
    int length = devices != NULL ? (int) strcspn(devices, ":,") : 0; /* mlx5_0:1,eth0 */
    if (length == 0 || length > 64 || memchr(devices, '/', (size_t) length) != NULL)
        return -1;
    snprintf(path, sizeof(path), "/sys/class/infiniband/%.*s/device/numa_node", length, devices);
    int node = rondo_memory_node_in(path);
    if (node >= 0)
        return node;
    snprintf(path, sizeof(path), "/sys/class/net/%.*s/device/numa_node", length, devices);
    return rondo_memory_node_in(path);
}

const struct rondo_network rondo_network_ucx = {
    .name = "ucx",
    .open = rondo_ucx_open,
    .close = rondo_ucx_close,
    .destroy = free,
    .prepare = prepare,
    .transmit = rondo_ucx_transmit,
    .is_drained = is_drained,
    .sever = sever,
    .progress = progress,
    .spreads = 1,
    .is_busy = is_busy,
    .arm = arm,
    .numa_node = numa_node_of,
    .slot_slabs = rondo_ucx_direct_slabs,
    .flush = rondo_ucx_direct_flush,
};

const struct rondo_transport rondo_transport_ucx = {
    .name = "ucx",
    .network = &rondo_network_ucx,
    .encrypts = 1,
    .unusable = unusable,
    .reaches = reaches,
    RONDO_NETWORK_FUNCTIONS,
};
