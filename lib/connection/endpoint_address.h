/*
 * Cards: what a rank must know of another to reach it over a network, asked for over the control plane when the first connector
 * between the two is made. The other's control thread answers, so that no user thread of it is needed.
 */
#ifndef RONDO_LIB_CONNECTION_ENDPOINT_ADDRESS_H
#define RONDO_LIB_CONNECTION_ENDPOINT_ADDRESS_H

#include "proxy/proxy.h"
#include "lib/context/runtime.h"

rondo_result_t rondo_endpoints_create(struct rondo_endpoints **endpoints);
void rondo_endpoints_destroy(struct rondo_endpoints *endpoints);
/* From here on this rank's networks are not told to others any more. */
void rondo_endpoints_withdraw(struct rondo_runtime *runtime);
/* From the control handler. */
void rondo_endpoints_message(struct rondo_runtime *runtime, int source, uint32_t type, const void *data, size_t bytes);
/* Wakes all waiting, to look whether their peer has gone. */
void rondo_endpoints_wake(struct rondo_runtime *runtime);

/* The peer's card of that network, which stays until the runtime ends. Not on a control thread. RONDO_ERR_TRANSPORT if the peer
 * has not opened that network. */
rondo_result_t rondo_endpoint_address_fetch(struct rondo_runtime *runtime, const char *network, int peer,
                                            const struct rondo_endpoint_address **endpoint);

#endif
