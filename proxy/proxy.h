/*
 * The proxy: works a rank's network connectors on its device's behalf (DESIGN section 7). The device fills slots and bumps
 * counters in local memory, as with any connector; the proxy sees the counters move and has the network transmit slots one way
 * and credits the other. It knows nothing of collectives, so preemption never involves it.
 *
 * One thread a proxy, and one proxy a runtime unless there are cores to spare (proxy/proxies.h). A claim says which thread does
 * the proxy's work: only the holder of the claim works ports and calls into networks. The proxy's own thread takes the claim,
 * and so may a thread that waits for an operation (assist), so that a message needs no change of threads.
 */
#ifndef RONDO_PROXY_PROXY_H
#define RONDO_PROXY_PROXY_H

#include "proxy/port.h"

#define RONDO_PROXY_NETWORKS_MAX 4

struct rondo_network;
struct rondo_transport_context;
struct rondo_proxy;

/* Opens the network of every transport that is chosen for some rank, and starts the thread; where index, the proxy's number
 * among the runtime's, is not 0, only networks that spread. *proxy stays NULL, with RONDO_SUCCESS, where that is no network.
 * The context must outlive the proxy. RONDO_ERR_TRANSPORT, RONDO_ERR_SYSTEM or RONDO_ERR_MEMORY with the reason. */
rondo_result_t rondo_proxy_create(struct rondo_transport_context *context, uint32_t index, struct rondo_proxy **proxy);
/* close ends the thread and closes the networks; destroy frees the rest, when the arena has been destroyed. NULL: nothing. */
void rondo_proxy_close(struct rondo_proxy *proxy);
void rondo_proxy_destroy(struct rondo_proxy *proxy);

/* ---- for threads that submit, wait, or run the daemon; proxy may be NULL where the comment says so ---- */

/* The device may have published something: call it after the counter has been stored. Cheap while the proxy is awake. Any
 * thread. NULL: nothing. */
void rondo_proxy_wake(struct rondo_proxy *proxy);
/* Operations have been submitted: wakes the proxy if it has to look for what the device publishes. Any thread. */
void rondo_proxy_expect(struct rondo_proxy *proxy);
/* The calling thread does the proxy's work: begin takes the claim, and returns 0 if another thread has it (or proxy is NULL).
 * After 1: any number of steps, which do everything once and return whether anything moved, and one end, which gives the claim
 * back. A thread calls begin only if it will come back to step or end soon: peers wait for it. */
int rondo_proxy_assist_begin(struct rondo_proxy *proxy);
int rondo_proxy_assist_step(struct rondo_proxy *proxy);
void rondo_proxy_assist_end(struct rondo_proxy *proxy);

/* ---- for proxy/ and networks ---- */

/* Its number among the runtime's. */
uint32_t rondo_proxy_index(const struct rondo_proxy *proxy);
/* The state that the network made when this proxy opened it; NULL: it has not. */
void *rondo_proxy_network(const struct rondo_proxy *proxy, const struct rondo_network *network);
/* Whether one of its networks spreads. */
int rondo_proxy_spreads(const struct rondo_proxy *proxy);
/* Its ports. */
struct rondo_ports *rondo_proxy_ports(struct rondo_proxy *proxy);
/* This rank's endpoint address of that name (rondo_proxies_endpoint_name), which stays until close; NULL: there is none. */
const struct rondo_endpoint_address *rondo_proxy_endpoint_address(const struct rondo_proxy *proxy, const char *name);
/* The port's other side is known: from now on the port is worked. Any thread. */
void rondo_proxy_join(struct rondo_proxy *proxy, struct rondo_port *port);
/* The reverse: returns when all that the device had published has arrived at the other side, or never will. A peer with which
 * nothing has moved for as long as the library has patience (transport/context.h) is given up. Not on a control thread, nor by
 * the holder of the claim. */
void rondo_proxy_leave(struct rondo_proxy *proxy, struct rondo_port *port);
/* By the holder of the claim: the network has begun to send so many bytes of slots. */
void rondo_proxy_note_sent(struct rondo_proxy *proxy, const struct rondo_network *network, uint64_t bytes);
/* The bytes of slots that have gone over a network so far, what it has sent again not counted. */
struct rondo_network_bytes {
    const char *network;
    uint64_t sent;
};
/* Adds the proxy's to the first count totals, one a network, and begins one for each further network. Returns how many there
 * are then. Any thread. */
int rondo_proxy_add_sent(const struct rondo_proxy *proxy, struct rondo_network_bytes totals[RONDO_PROXY_NETWORKS_MAX],
                         int count);
/* By the holder of the claim: the peer cannot be reached over the network any more. Operations with it fail, on the proxy's own
 * thread and a little later. network and why are copied. */
void rondo_proxy_lose(struct rondo_proxy *proxy, int peer, const char *network, const char *why);

#endif
