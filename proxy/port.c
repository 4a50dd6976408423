/* See proxy/port.h. A table of pages, so that it grows without moving: the proxy reads it while other threads open and close
 * ports. */
#include "proxy/port.h"

#include "lib/base/thread.h"
#include "lib/base/error.h"
#include "transport/context.h"
#include "device/device.h"
#include "proxy/ports.h"
#include "proxy/network.h"
#include "proxy/proxy.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_PORTS     1024
#define PAGES          (RONDO_PORTS_MAX / PAGE_PORTS)
#define HOST_SLAB      ((size_t) 64 << 20) /* of address space; pages cost memory once touched */
#define PINNED_SLAB    ((size_t) 8 << 20)
#define COUNTERS_BYTES 128

struct rondo_ports {
    pthread_mutex_t lock; /* numbers, and the list of closed ports */
    struct rondo_port **pages[PAGES];
    uint32_t bound;
    uint32_t free_count;
    uint32_t *free_numbers;    /* room for RONDO_PORTS_MAX, touched as far as used */
    struct rondo_port *closed; /* closed ports stay until the holder of the claim uses them no more */
};

rondo_result_t rondo_ports_create(struct rondo_ports **result)
{
    struct rondo_ports *ports = calloc(1, sizeof(*ports));
    if (ports != NULL)
        ports->free_numbers = calloc(RONDO_PORTS_MAX, sizeof(*ports->free_numbers));
    if (ports == NULL || ports->free_numbers == NULL) {
        free(ports);
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for the table of network connectors");
    }
    pthread_mutex_init(&ports->lock, NULL);
    *result = ports;
    return RONDO_SUCCESS;
}

void rondo_ports_destroy(struct rondo_ports *ports)
{
    if (ports == NULL)
        return;
    rondo_ports_reap(ports, 1);
    for (uint32_t i = 0; i < PAGES; i++)
        free(ports->pages[i]);
    free(ports->free_numbers);
    pthread_mutex_destroy(&ports->lock);
    free(ports);
}

struct rondo_port *rondo_port_find(struct rondo_ports *ports, uint32_t number)
{
    /* Acquire: pairs with enlist's release of the bound, so that the page is there, and of the entry, so that the port is. */
    if (number >= __atomic_load_n(&ports->bound, __ATOMIC_ACQUIRE))
        return NULL;
    return __atomic_load_n(&ports->pages[number / PAGE_PORTS][number % PAGE_PORTS], __ATOMIC_ACQUIRE);
}

uint32_t rondo_ports_bound(struct rondo_ports *ports)
{
    return __atomic_load_n(&ports->bound, __ATOMIC_ACQUIRE);
}

/* ---- memory ---- */

static rondo_result_t slab_allocate(void *argument, size_t bytes, struct rondo_slab *slab)
{
    struct rondo_transport_context *context = argument;
    char *base = context->device->kind->allocate_host(context->device, bytes);
    if (base == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for %zu bytes of network slots", bytes);
    *slab = (struct rondo_slab){base, bytes, NULL};
    return RONDO_SUCCESS;
}

static void slab_release(void *argument, struct rondo_slab *slab)
{
    struct rondo_transport_context *context = argument;
    context->device->kind->release_host(context->device, slab->base, slab->bytes);
}

static rondo_result_t slab_zero(void *argument, void *memory, size_t bytes)
{
    (void) argument;
    memset(memory, 0, bytes);
    return RONDO_SUCCESS;
}

static const struct rondo_slab_source host_slabs = {HOST_SLAB, slab_allocate, slab_release, slab_zero};
static const struct rondo_slab_source pinned_slabs = {PINNED_SLAB, slab_allocate, slab_release, slab_zero};

static size_t sizes_bytes(const struct rondo_port *port)
{
    size_t bytes = port->slot_count * sizeof(uint32_t);
    return port->direction == RONDO_OUTGOING ? (bytes + COUNTERS_BYTES - 1) & ~(size_t) (COUNTERS_BYTES - 1) : 0;
}

static rondo_result_t take_region(struct rondo_transport_context *context, struct rondo_proxy *proxy,
                                  const struct rondo_slab_source *source, void *argument, size_t bytes,
                                  struct rondo_region *region)
{
    rondo_result_t result = rondo_arena_allocate(context->arena, source, argument, bytes, region);
    /* Ports that have been closed may not have been looked at by the proxy yet. */
    for (int i = 0; i < 100 && result == RONDO_ERR_MEMORY && rondo_ports_closed(rondo_proxy_ports(proxy)); i++) {
        rondo_proxy_wake(proxy);
        struct timespec pause = {0, 1000000};
        nanosleep(&pause, NULL);
        result = rondo_arena_allocate(context->arena, source, argument, bytes, region);
    }
    return result;
}

static rondo_result_t take_memory(struct rondo_transport_context *context, struct rondo_port *port)
{
    const struct rondo_network *network = port->network;
    const struct rondo_slab_source *source = network->slabs, *apart = NULL;
    size_t bytes = RONDO_PORT_REST + sizes_bytes(port), slot_bytes = (size_t) port->slot_bytes * port->slot_count;
    if (source == NULL)
        source = context->device_type == RONDO_DEVICE_CUDA ? &pinned_slabs : &host_slabs;
    if (network->slot_slabs != NULL)
        apart = network->slot_slabs(port->network_state);
    rondo_result_t result = take_region(context, port->proxy, source, network->slabs != NULL ? port->network_state : context,
                                        apart != NULL ? bytes : bytes + slot_bytes, &port->region);
    if (result == RONDO_SUCCESS && apart != NULL)
        result = take_region(context, port->proxy, apart, port->network_state, slot_bytes, &port->slot_region);
    return result;
}

static void lay_out(struct rondo_port *port)
{
    char *base = port->region.slab->base + port->region.offset;
    uint64_t *tail = (uint64_t *) (void *) (base + RONDO_PORT_TAIL), *head = (uint64_t *) (void *) (base + RONDO_PORT_HEAD);
    int apart = port->slot_region.slab != NULL;
    port->slots = apart ? port->slot_region.slab->base + port->slot_region.offset : base + RONDO_PORT_REST + sizes_bytes(port);
    if (port->direction == RONDO_OUTGOING) {
        port->published = tail;
        port->watched = head;
        port->sizes = (uint32_t *) (void *) (base + RONDO_PORT_REST);
    } else {
        port->published = head;
        port->watched = apart ? (uint64_t *) (void *) (base + RONDO_PORT_SHOWN) : tail;
        port->remote_tail = apart ? tail : NULL;
    }
}

/* ---- opening and closing ---- */

/* Under the lock. */
static rondo_result_t enlist(struct rondo_ports *ports, struct rondo_port *port)
{
    if (ports->free_count > 0) {
        port->number = ports->free_numbers[--ports->free_count];
        __atomic_store_n(&ports->pages[port->number / PAGE_PORTS][port->number % PAGE_PORTS], port, __ATOMIC_RELEASE);
        return RONDO_SUCCESS;
    }
    if (ports->bound == RONDO_PORTS_MAX)
        return rondo_fail(RONDO_ERR_MEMORY, "%u network connectors are in use; there can be no more", ports->bound);
    struct rondo_port ***page = &ports->pages[ports->bound / PAGE_PORTS];
    if (*page == NULL && (*page = calloc(PAGE_PORTS, sizeof(**page))) == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for the table of network connectors");
    port->number = ports->bound;
    (*page)[port->number % PAGE_PORTS] = port;
    /* Release: the entry and its page before the bound that lets the proxy look at them. */
    __atomic_store_n(&ports->bound, ports->bound + 1, __ATOMIC_RELEASE);
    return RONDO_SUCCESS;
}

static void free_port(struct rondo_transport_context *context, struct rondo_port *port)
{
    if (port->region.slab != NULL)
        rondo_arena_release(context->arena, &port->region);
    if (port->slot_region.slab != NULL)
        rondo_arena_release(context->arena, &port->slot_region);
    free(port->messages);
    free(port->ready);
    free(port->source_references);
    free(port->receive_actions);
    explicit_bzero(port->cipher, sizeof(port->cipher));
    explicit_bzero(port->other_cipher, sizeof(port->other_cipher));
    free(port);
}

rondo_result_t rondo_port_open(struct rondo_transport_context *context, struct rondo_proxy *proxy,
                               const struct rondo_network *network, const struct rondo_connector_spec *spec,
                               enum rondo_direction direction, struct rondo_port **result)
{
    struct rondo_ports *ports = rondo_proxy_ports(proxy);
    struct rondo_port *port = calloc(1, sizeof(*port));
    if (port == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory to describe a network connector");
    port->peer = spec->peer;
    port->direction = direction;
    port->proxy = proxy;
    port->network = network;
    port->network_state = rondo_proxy_network(proxy, network);
    port->slot_bytes = spec->slot_bytes;
    port->slot_count = spec->slot_count;
    rondo_result_t status = rondo_random_bytes(&port->key, sizeof(port->key));
    if (status == RONDO_SUCCESS && context->encrypts)
        status = rondo_random_bytes(port->cipher, sizeof(port->cipher));
    if (status == RONDO_SUCCESS)
        status = take_memory(context, port);
    if (status == RONDO_SUCCESS) {
        lay_out(port);
        pthread_mutex_lock(&ports->lock);
        status = enlist(ports, port);
        pthread_mutex_unlock(&ports->lock);
    }
    if (status != RONDO_SUCCESS)
        free_port(context, port);
    else
        *result = port;
    return status;
}

void rondo_port_close(struct rondo_transport_context *context, struct rondo_port *port)
{
    struct rondo_ports *ports = rondo_proxy_ports(port->proxy);
    pthread_mutex_lock(&ports->lock);
    __atomic_store_n(&ports->pages[port->number / PAGE_PORTS][port->number % PAGE_PORTS], NULL, __ATOMIC_RELEASE);
    port->context = context;
    port->next_closed = ports->closed;
    __atomic_store_n(&ports->closed, port, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&ports->lock);
}

int rondo_ports_closed(struct rondo_ports *ports)
{
    return __atomic_load_n(&ports->closed, __ATOMIC_RELAXED) != NULL;
}

void rondo_ports_reap(struct rondo_ports *ports, int all)
{
    pthread_mutex_lock(&ports->lock);
    for (struct rondo_port **link = &ports->closed; *link != NULL;) {
        struct rondo_port *port = *link;
        if (port->sending + port->receiving > 0 && !all) {
            link = &port->next_closed;
            continue;
        }
        __atomic_store_n(link, port->next_closed, __ATOMIC_RELAXED);
        ports->free_numbers[ports->free_count++] = port->number;
        free_port(port->context, port);
    }
    pthread_mutex_unlock(&ports->lock);
}
