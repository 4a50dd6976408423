/*
 * Endpoint addresses: what a rank needs to reach a peer over a network. A rank fetches the peer's over the control plane when
 * it opens the first connector to that peer, and caches it. The peer's control thread answers, so no user thread of the peer is
 * needed. Relies on lib/control/control.h and proxy/proxy.h.
 */
#ifndef RONDO_LIB_CONNECTION_ENDPOINT_ADDRESS_H
#define RONDO_LIB_CONNECTION_ENDPOINT_ADDRESS_H

#include "proxy/proxy.h"
#include "lib/context/runtime.h"

/* Creates the cache. Called once, during init. RONDO_ERR_MEMORY if there is no memory. */
rondo_result_t rondo_endpoints_create(struct rondo_endpoints **endpoints);
/* Frees the cache, and with it every address fetched. The control thread must have ended. */
void rondo_endpoints_destroy(struct rondo_endpoints *endpoints);
/* From this call on, the answer to every peer's request is that this rank has no network. Called at finalize before the proxies
 * end; takes the lock under which answers are made, so no answer is using a proxy when it returns. */
void rondo_endpoints_withdraw(struct rondo_runtime *runtime);
/* Handles a message of type ENDPOINT_ASK or ENDPOINT from rank source. Called on the control thread. A message of a wrong size
 * is dropped. */
void rondo_endpoints_message(struct rondo_runtime *runtime, int source, uint32_t type, const void *data, size_t bytes);
/* Wakes the threads that wait in rondo_endpoint_address_fetch, which then check whether their peer has gone. Any thread. */
void rondo_endpoints_wake(struct rondo_runtime *runtime);

/* Sets *endpoint to the peer's endpoint address on the network, fetching it if it is not cached. The address is valid until
 * rondo_endpoints_destroy. Not on a control thread and without locks: it may wait for the peer's control thread.
 * RONDO_ERR_TRANSPORT if the peer has not opened that network, RONDO_ERR_PEER if the peer has gone, RONDO_ERR_TIMEOUT after
 * settings.connect_timeout, RONDO_ERR_MEMORY. */
rondo_result_t rondo_endpoint_address_fetch(struct rondo_runtime *runtime, const char *network, int peer,
                                            const struct rondo_endpoint_address **endpoint);

#endif
