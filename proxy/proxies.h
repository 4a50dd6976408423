/*
 * The proxies of a context, a thread and connections of its own each. One is enough where a card moves the bytes. Where
 * processors do (ucx over TCP) and there are cores to spare, there are several, and each side of a connector belongs to one of
 * them; its ticket says which, so that a rank need not know how many another has.
 */
#ifndef RONDO_PROXY_PROXIES_H
#define RONDO_PROXY_PROXIES_H

#include "proxy/proxy.h"

#define RONDO_PROXIES_MAX  8
#define RONDO_NETWORK_NAME 16 /* of a network, and of the card of one of its proxies */

struct rondo_proxies;

/* As many as RONDO_PROXY_THREADS says. Where no rank is reached over a network *proxies stays NULL, which all below take. */
rondo_result_t rondo_proxies_create(struct rondo_transport_context *context, struct rondo_proxies **proxies);
/* As rondo_proxy_close and rondo_proxy_destroy. */
void rondo_proxies_close(struct rondo_proxies *proxies);
void rondo_proxies_destroy(struct rondo_proxies *proxies);
void rondo_proxies_wake(struct rondo_proxies *proxies);
void rondo_proxies_expect(struct rondo_proxies *proxies);
/* Among how many the networks are spread whose bytes processors move; 0: cards move them all. */
uint32_t rondo_proxies_carriers(const struct rondo_proxies *proxies);
/* The one that whoever waits lends itself to; the others have cores of their own. */
struct rondo_proxy *rondo_proxies_first(const struct rondo_proxies *proxies);
/* The one with that network that has the least to move, for a port of so many bytes of slots, until they are taken back. NULL:
 * the network is not open. */
struct rondo_proxy *rondo_proxies_deal(struct rondo_proxies *proxies, const struct rondo_network *network, size_t bytes);
void rondo_proxies_take_back(struct rondo_proxies *proxies, const struct rondo_proxy *proxy, size_t bytes);
/* The name under which others ask for the card of the network of a proxy. */
void rondo_proxies_endpoint_name(char name[RONDO_NETWORK_NAME], const char *network, uint32_t index);
/* NULL: none is open of that name. */
const struct rondo_endpoint_address *rondo_proxies_endpoint_address(const struct rondo_proxies *proxies, const char *name);

#endif
