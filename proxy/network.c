/* See proxy/network.h: the functions that all network transports share, over ports (proxy/port.h) and proxies. */
#include "proxy/network.h"

#include "lib/base/error.h"
#include "transport/context.h"
#include "proxy/proxies.h"

#include <string.h>

_Static_assert(sizeof(struct rondo_port_ticket) <= sizeof(((struct rondo_ticket *) 0)->bytes), "a ticket holds it");

static size_t slots_bytes(const struct rondo_connector *connector)
{
    return (size_t) connector->spec.slot_bytes * connector->spec.slot_count;
}

static rondo_result_t open_port(struct rondo_transport_context *context, struct rondo_connector *connector,
                                enum rondo_direction direction, struct rondo_ticket *ticket)
{
    const struct rondo_network *network = connector->transport->network;
    struct rondo_port *port;
    struct rondo_proxy *proxy = rondo_proxies_assign(context->proxies, network, slots_bytes(connector));
    if (proxy == NULL)
        return rondo_fail(RONDO_ERR_TRANSPORT, "transport %s was not opened", network->name);
    rondo_result_t result = rondo_port_open(context, proxy, network, &connector->spec, direction, &port);
    if (result == RONDO_SUCCESS && network->prepare != NULL &&
        (result = network->prepare(port->network_state, port)) != RONDO_SUCCESS)
        rondo_port_close(context, port);
    if (result != RONDO_SUCCESS) {
        rondo_proxies_unassign(context->proxies, proxy, slots_bytes(connector));
        return result;
    }
    rondo_log(RONDO_LOG_DEBUG, context->rank, "proxy %u works a connector with rank %d over %s", rondo_proxy_index(proxy),
              port->peer, network->name);
    connector->own = port;
    connector->slots = port->slots;
    connector->sizes = port->sizes;
    connector->source_references = port->source_references;
    connector->receive_actions = port->receive_actions;
    connector->watched = port->watched;
    connector->published = (uint64_t *) (uintptr_t) port->published;
    struct rondo_port_ticket data = {.key = port->key,
                                     .address = (uint64_t) (uintptr_t) (port->region.slab->base + port->region.offset),
                                     .slots = (uint64_t) (uintptr_t) port->slots,
                                     .number = port->number,
                                     .proxy = rondo_proxy_index(proxy)};
    memcpy(data.access, port->access, sizeof(data.access));
    memcpy(data.slot_access, port->slot_access, sizeof(data.slot_access));
    memcpy(data.cipher, port->cipher, sizeof(data.cipher));
    memcpy(ticket->bytes, &data, sizeof(data));
    return RONDO_SUCCESS;
}

rondo_result_t rondo_network_listen(struct rondo_transport_context *context, struct rondo_connector *connector,
                                    struct rondo_ticket *ticket)
{
    return open_port(context, connector, RONDO_INCOMING, ticket);
}

rondo_result_t rondo_network_offer(struct rondo_transport_context *context, struct rondo_connector *connector,
                                   struct rondo_ticket *ticket)
{
    return open_port(context, connector, RONDO_OUTGOING, ticket);
}

rondo_result_t rondo_network_join(struct rondo_transport_context *context, struct rondo_connector *connector,
                                  const struct rondo_ticket *ticket)
{
    struct rondo_port *port = connector->own;
    struct rondo_port_ticket data;
    char name[RONDO_NETWORK_NAME];
    memcpy(&data, ticket->bytes, sizeof(data));
    if (data.proxy >= RONDO_PROXIES_MAX)
        return rondo_fail(RONDO_ERR_TRANSPORT, "rank %d offers a connector of its proxy %u, and there are %d at most",
                          port->peer, data.proxy, RONDO_PROXIES_MAX);
    rondo_proxies_endpoint_name(name, connector->transport->network->name, data.proxy);
    rondo_result_t result =
        context->upcalls.fetch_endpoint_address(context->library, name, port->peer, &port->endpoint_address);
    if (result != RONDO_SUCCESS)
        return result;
    port->other_proxy = data.proxy;
    port->other_key = data.key;
    port->other_number = data.number;
    port->other_address = data.address;
    port->other_slots = data.slots;
    memcpy(port->other_access, data.access, sizeof(port->other_access));
    memcpy(port->other_slot_access, data.slot_access, sizeof(port->other_slot_access));
    memcpy(port->other_cipher, data.cipher, sizeof(port->other_cipher));
    rondo_proxy_join(port->proxy, port);
    return RONDO_SUCCESS;
}

void rondo_network_leave(struct rondo_transport_context *context, struct rondo_connector *connector)
{
    struct rondo_port *port = connector->own;
    (void) context;
    rondo_proxy_leave(port->proxy, port);
}

void rondo_network_close(struct rondo_transport_context *context, struct rondo_connector *connector)
{
    struct rondo_port *port = connector->own;
    rondo_proxies_unassign(context->proxies, port->proxy, slots_bytes(connector));
    rondo_port_close(context, port);
}
