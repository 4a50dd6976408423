/*
 * The proxies of a runtime, a thread and connections of its own each. One is enough where NICs move the bytes. Where processors
 * do (ucx over TCP) and there are cores to spare, there are several, and each side of a connector belongs to one of them; its
 * ticket says which, so that a rank need not know how many another has.
 */
#ifndef RONDO_PROXY_PROXIES_H
#define RONDO_PROXY_PROXIES_H

#include "proxy/proxy.h"

#define RONDO_PROXIES_MAX  8
#define RONDO_NETWORK_NAME 16 /* bytes of the name of a network, or of one proxy's endpoint address */

struct rondo_proxies;

/* Makes as many proxies as RONDO_PROXY_THREADS says, or as there are cores to spare for. Where no rank is reached over a
 * network *proxies stays NULL, which all functions below take. The context must outlive them. Errors as rondo_proxy_create, and
 * RONDO_ERR_ARGUMENT. */
rondo_result_t rondo_proxies_create(struct rondo_transport_context *context, struct rondo_proxies **proxies);
/* As rondo_proxy_close and rondo_proxy_destroy, of all. */
void rondo_proxies_close(struct rondo_proxies *proxies);
void rondo_proxies_destroy(struct rondo_proxies *proxies);
/* As rondo_proxy_wake and rondo_proxy_expect, of all. Any thread. */
void rondo_proxies_wake(struct rondo_proxies *proxies);
void rondo_proxies_expect(struct rondo_proxies *proxies);
/* Among how many proxies the networks are spread whose bytes processors move; 0: NICs move them all. */
uint32_t rondo_proxies_carriers(const struct rondo_proxies *proxies);
/* The proxy that waiting threads assist; the others have cores of their own. NULL: there is none. */
struct rondo_proxy *rondo_proxies_first(const struct rondo_proxies *proxies);
/* Assigns a port of so many bytes of slots to the proxy with that network that has the least, until unassign; returns it. NULL:
 * the network is not open. Any thread. */
struct rondo_proxy *rondo_proxies_assign(struct rondo_proxies *proxies, const struct rondo_network *network, size_t bytes);
void rondo_proxies_unassign(struct rondo_proxies *proxies, const struct rondo_proxy *proxy, size_t bytes);
/* The bytes that have gone over each network, by all proxies together. Returns the number of networks. Any thread. */
int rondo_proxies_sent(const struct rondo_proxies *proxies, struct rondo_network_bytes totals[RONDO_PROXY_NETWORKS_MAX]);
/* The name under which other ranks ask for the endpoint address of a network of the proxy of that index. */
void rondo_proxies_endpoint_name(char name[RONDO_NETWORK_NAME], const char *network, uint32_t index);
/* This rank's endpoint address of that name, which stays until close; NULL: there is none. */
const struct rondo_endpoint_address *rondo_proxies_endpoint_address(const struct rondo_proxies *proxies, const char *name);

#endif
