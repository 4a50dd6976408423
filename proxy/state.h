/*
 * A proxy's state, for proxy/proxy.c (its life), proxy/work.c (the claim and the work) and proxy/thread.c (its own thread and
 * the race between its sleep and those that wake it).
 */
#ifndef RONDO_PROXY_STATE_H
#define RONDO_PROXY_STATE_H

#include "proxy/network.h"
#include "proxy/proxy.h"
#include "transport/context.h"

#include <pthread.h>

struct rondo_proxy_open_network {
    const struct rondo_network *network;
    void *state;
    struct rondo_endpoint_address endpoint;
    uint64_t sent; /* bytes of slots; the holder of the claim adds to it */
};

/* A peer that was lost, until the proxy's thread reports it. */
struct rondo_proxy_loss {
    struct rondo_proxy_loss *next;
    int peer;
    char network[16], why[160];
};

struct rondo_proxy {
    struct rondo_transport_context *context;
    uint32_t index; /* among the runtime's */
    struct rondo_ports *ports;
    struct rondo_proxy_open_network networks[RONDO_PROXY_NETWORKS_MAX];
    int network_count;
    int wake;         /* eventfd: ends a sleep in poll */
    uint32_t claimed; /* 1: a thread does the proxy's work */
    uint32_t wanted;  /* threads that would like to, in place of the proxy's own */
    uint32_t asleep;  /* the thread sleeps, or is about to and will look once more */
    uint64_t fence;   /* a word to fence on (device/abi/platform.h: rondo_fence) */
    uint32_t stopping;
    uint32_t event, displaced;  /* where the thread sleeps while another has the claim: the word, and whether it does */
    uint32_t arrivals;          /* a network's slots lie apart: what arrives is shown to the device from here */
    uint32_t deferred;          /* passes in a row, without anything moving, in which credits were held back */
    uint64_t moves, moves_seen; /* passes in which something moved; as of the last sleep */
    uint64_t quiet_ns;          /* when that was */
    uint32_t running;
    pthread_t thread;
    struct rondo_proxy_loss *losses; /* pushed by the holder of the claim, taken by the thread */
};

static inline int rondo_proxy_has_outstanding(const struct rondo_proxy *proxy)
{
    return proxy->context->upcalls.has_outstanding(proxy->context->library);
}

/* ---- proxy/work.c ---- */

/* Takes the claim if it is free. Any thread. */
int rondo_proxy_try_claim(struct rondo_proxy *proxy);
/* By its holder. */
void rondo_proxy_drop_claim(struct rondo_proxy *proxy);
/* Does everything once. Returns whether anything moved. By the holder of the claim. */
int rondo_proxy_pass(struct rondo_proxy *proxy);
/* Reports the losses to the library, which fails operations: on the proxy's own thread, which holds no lock. */
void rondo_proxy_report_losses(struct rondo_proxy *proxy);

/* ---- proxy/thread.c ---- */

/* The thread's function; argument: the proxy. Ends once stopping is set. */
void *rondo_proxy_run(void *argument);

#endif
