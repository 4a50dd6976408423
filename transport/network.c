/* See network.h. */
#include "network.h"

#include "card.h"
#include "error.h"
#include "runtime.h"

#include <string.h>

_Static_assert(sizeof(struct rondo_port_ticket) <= sizeof(((struct rondo_ticket *) 0)->bytes), "a ticket holds it");

static rondo_result_t open_port(struct rondo_runtime *runtime, struct rondo_connector *connector,
                                enum rondo_direction direction, struct rondo_ticket *ticket)
{
    const struct rondo_network *network = connector->transport->network;
    struct rondo_port *port;
    void *state = runtime->proxy != NULL ? rondo_proxy_network(runtime->proxy, network) : NULL;
    if (state == NULL)
        return rondo_fail(RONDO_ERR_TRANSPORT, "transport %s was not opened", network->name);
    rondo_result_t result =
        rondo_port_open(runtime, rondo_proxy_ports(runtime->proxy), network, state, &connector->spec, direction, &port);
    if (result == RONDO_SUCCESS && network->prepare != NULL && (result = network->prepare(state, port)) != RONDO_SUCCESS)
        rondo_port_close(runtime, rondo_proxy_ports(runtime->proxy), port);
    if (result != RONDO_SUCCESS)
        return result;
    connector->own = port;
    connector->slots = port->slots;
    connector->sizes = port->sizes;
    connector->loans = port->loans;
    connector->errands = port->errands;
    connector->watched = port->watched;
    connector->published = (uint64_t *) (uintptr_t) port->published;
    struct rondo_port_ticket data = {.key = port->key,
                                     .address = (uint64_t) (uintptr_t) (port->region.slab->base + port->region.offset),
                                     .slots = (uint64_t) (uintptr_t) port->slots,
                                     .number = port->number};
    memcpy(data.access, port->access, sizeof(data.access));
    memcpy(data.slot_access, port->slot_access, sizeof(data.slot_access));
    memcpy(ticket->bytes, &data, sizeof(data));
    return RONDO_SUCCESS;
}

rondo_result_t rondo_network_listen(struct rondo_runtime *runtime, struct rondo_connector *connector,
                                    struct rondo_ticket *ticket)
{
    return open_port(runtime, connector, RONDO_INCOMING, ticket);
}

rondo_result_t rondo_network_offer(struct rondo_runtime *runtime, struct rondo_connector *connector,
                                   struct rondo_ticket *ticket)
{
    return open_port(runtime, connector, RONDO_OUTGOING, ticket);
}

rondo_result_t rondo_network_join(struct rondo_runtime *runtime, struct rondo_connector *connector,
                                  const struct rondo_ticket *ticket)
{
    struct rondo_port *port = connector->own;
    struct rondo_port_ticket data;
    memcpy(&data, ticket->bytes, sizeof(data));
    rondo_result_t result = rondo_card_fetch(runtime, connector->transport->network->name, port->peer, &port->card);
    if (result != RONDO_SUCCESS)
        return result;
    port->other_key = data.key;
    port->other_number = data.number;
    port->other_address = data.address;
    port->other_slots = data.slots;
    memcpy(port->other_access, data.access, sizeof(port->other_access));
    memcpy(port->other_slot_access, data.slot_access, sizeof(port->other_slot_access));
    rondo_proxy_join(runtime->proxy, port);
    return RONDO_SUCCESS;
}

void rondo_network_leave(struct rondo_runtime *runtime, struct rondo_connector *connector)
{
    rondo_proxy_leave(runtime->proxy, connector->own);
}

void rondo_network_close(struct rondo_runtime *runtime, struct rondo_connector *connector)
{
    rondo_port_close(runtime, rondo_proxy_ports(runtime->proxy), connector->own);
}
