/*
 * What the network transports have in common: each side has a port (proxy/port.h) in memory of its own, learns the other's
 * number, key and address from its ticket, and has the proxy work it while both are open.
 */
#ifndef RONDO_PROXY_NETWORK_H
#define RONDO_PROXY_NETWORK_H

#include "proxy/proxy.h"

/* The functions of a struct rondo_transport whose network is given there. */
rondo_result_t rondo_network_listen(struct rondo_transport_context *context, struct rondo_connector *connector,
                                    struct rondo_ticket *ticket);
rondo_result_t rondo_network_offer(struct rondo_transport_context *context, struct rondo_connector *connector,
                                   struct rondo_ticket *ticket);
rondo_result_t rondo_network_join(struct rondo_transport_context *context, struct rondo_connector *connector,
                                  const struct rondo_ticket *ticket);
void rondo_network_leave(struct rondo_transport_context *context, struct rondo_connector *connector);
void rondo_network_close(struct rondo_transport_context *context, struct rondo_connector *connector);

#define RONDO_NETWORK_FUNCTIONS                                                                                                \
    .listen = rondo_network_listen, .offer = rondo_network_offer, .connect = rondo_network_join, .accept = rondo_network_join, \
    .close_sender = rondo_network_leave, .close_receiver = rondo_network_leave, .close_listener = rondo_network_close,         \
    .close_offer = rondo_network_close

#endif
