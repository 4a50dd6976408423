/*
 * A proxy's life, from opening its networks to freeing them, and what others ask of it. The work is in proxy/work.c, the thread
 * in proxy/thread.c.
 */
#include "proxy/state.h"

#include "device/abi/platform.h"
#include "lib/base/error.h"
#include "lib/base/futex.h"
#include "lib/base/thread.h"
#include "proxy/proxies.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define STACK_BYTES ((size_t) 1 << 20)

uint32_t rondo_proxy_index(const struct rondo_proxy *proxy)
{
    return proxy->index;
}

void *rondo_proxy_network(const struct rondo_proxy *proxy, const struct rondo_network *network)
{
    for (int i = 0; i < proxy->network_count; i++)
        if (proxy->networks[i].network == network)
            return proxy->networks[i].state;
    return NULL;
}

void rondo_proxy_note_sent(struct rondo_proxy *proxy, const struct rondo_network *network, uint64_t bytes)
{
    for (int i = 0; i < proxy->network_count; i++) /* other threads read the sum */
        if (proxy->networks[i].network == network)
            rondo_store_relaxed(&proxy->networks[i].sent, proxy->networks[i].sent + bytes);
}

int rondo_proxy_add_sent(const struct rondo_proxy *proxy, struct rondo_network_bytes totals[RONDO_PROXY_NETWORKS_MAX],
                         int count)
{
    for (int i = 0; i < proxy->network_count; i++) {
        const struct rondo_proxy_open_network *open = &proxy->networks[i];
        int place = 0;
        while (place < count && strcmp(totals[place].network, open->network->name) != 0)
            place++;
        if (place == count)
            totals[count++] = (struct rondo_network_bytes){.network = open->network->name};
        totals[place].sent += rondo_load_relaxed(&open->sent);
    }
    return count;
}

int rondo_proxy_spreads(const struct rondo_proxy *proxy)
{
    int spreads = 0;
    for (int i = 0; i < proxy->network_count; i++)
        spreads |= proxy->networks[i].network->spreads;
    return spreads;
}

struct rondo_ports *rondo_proxy_ports(struct rondo_proxy *proxy)
{
    return proxy->ports;
}

const struct rondo_endpoint_address *rondo_proxy_endpoint_address(const struct rondo_proxy *proxy, const char *name)
{
    for (int i = 0; i < proxy->network_count; i++) {
        char own[RONDO_NETWORK_NAME];
        rondo_proxies_endpoint_name(own, proxy->networks[i].network->name, proxy->index);
        if (strcmp(own, name) == 0)
            return &proxy->networks[i].endpoint;
    }
    return NULL;
}

/* ---- life ---- */

static int is_open(const struct rondo_proxy *proxy, const struct rondo_network *network)
{
    for (int i = 0; i < proxy->network_count; i++)
        if (proxy->networks[i].network == network)
            return 1;
    return 0;
}

static rondo_result_t open_network(struct rondo_proxy *proxy, const struct rondo_network *network)
{
    struct rondo_proxy_open_network *opened = &proxy->networks[proxy->network_count];
    if (proxy->network_count == RONDO_PROXY_NETWORKS_MAX)
        return rondo_fail(RONDO_ERR_INTERNAL, "a runtime has at most %d networks", RONDO_PROXY_NETWORKS_MAX);
    opened->network = network;
    rondo_result_t result = network->open(proxy->context, proxy, &opened->state, &opened->endpoint);
    if (result != RONDO_SUCCESS)
        return result;
    proxy->network_count++;
    proxy->arrivals |= network->slot_slabs != NULL && network->slot_slabs(opened->state) != NULL;
    return RONDO_SUCCESS;
}

/* The networks of the transports that are chosen for any rank. */
static rondo_result_t open_networks(struct rondo_proxy *proxy)
{
    struct rondo_transport_context *context = proxy->context;
    rondo_result_t result = RONDO_SUCCESS;
    for (int rank = 0; rank < context->size && result == RONDO_SUCCESS; rank++) {
        const struct rondo_transport *transport;
        if (rondo_transport_choose(context, rank, &transport) == RONDO_SUCCESS && transport->network != NULL &&
            (proxy->index == 0 || transport->network->spreads) && !is_open(proxy, transport->network))
            result = open_network(proxy, transport->network);
    }
    return result;
}

rondo_result_t rondo_proxy_create(struct rondo_transport_context *context, uint32_t index, struct rondo_proxy **result)
{
    struct rondo_proxy *proxy = calloc(1, sizeof(*proxy));
    if (proxy == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for the proxy");
    proxy->context = context;
    proxy->index = index;
    proxy->wake = -1;
    rondo_result_t status = rondo_ports_create(&proxy->ports);
    if (status == RONDO_SUCCESS)
        status = open_networks(proxy);
    if (status != RONDO_SUCCESS || proxy->network_count == 0) {
        rondo_proxy_close(proxy);
        rondo_proxy_destroy(proxy);
        return status;
    }
    proxy->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (proxy->wake < 0)
        status = rondo_fail(RONDO_ERR_SYSTEM, "eventfd: %s", strerror(errno));
    if (status == RONDO_SUCCESS)
        status = rondo_thread_start(&proxy->thread, "rondo proxy", STACK_BYTES, rondo_proxy_run, proxy);
    proxy->running = status == RONDO_SUCCESS;
    if (status != RONDO_SUCCESS) {
        rondo_proxy_close(proxy);
        rondo_proxy_destroy(proxy);
    } else {
        *result = proxy;
    }
    return status;
}

void rondo_proxy_close(struct rondo_proxy *proxy)
{
    if (proxy == NULL)
        return;
    if (proxy->running) {
        uint64_t one = 1;
        __atomic_store_n(&proxy->stopping, 1, __ATOMIC_SEQ_CST);
        ssize_t written = write(proxy->wake, &one, sizeof(one));
        (void) written;
        rondo_event_signal(&proxy->event, &proxy->displaced);
        pthread_join(proxy->thread, NULL);
        proxy->running = 0;
    }
    for (int i = 0; i < proxy->network_count; i++)
        proxy->networks[i].network->close(proxy->networks[i].state);
    while (proxy->losses != NULL) {
        struct rondo_proxy_loss *loss = proxy->losses;
        proxy->losses = loss->next;
        free(loss);
    }
    rondo_ports_destroy(proxy->ports);
    proxy->ports = NULL;
}

void rondo_proxy_destroy(struct rondo_proxy *proxy)
{
    if (proxy == NULL)
        return;
    for (int i = 0; i < proxy->network_count; i++)
        if (proxy->networks[i].network->destroy != NULL)
            proxy->networks[i].network->destroy(proxy->networks[i].state);
    if (proxy->wake >= 0)
        close(proxy->wake);
    free(proxy);
}
