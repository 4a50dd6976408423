/*
 * The proxy's work, and the claim to do it. Every function but those that take the claim is for its holder. It relies on
 * proxy/port.h for the ports and on proxy/network.h for what moves their bytes.
 */
#include "proxy/state.h"

#include "device/abi/platform.h"
#include "device/device.h"
#include "lib/base/error.h"
#include "lib/base/futex.h"
#include "lib/base/thread.h"
#include "proxy/arrival.h"
#include "proxy/ports.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    CREDIT_PASSES = 16, /* that a few credits are held back */
    TRIES = 50,         /* at a claim whose holder has been asked for it */
    SEVER_MS = 1000,    /* for the rest, once its connection has been given up */
};

/* ---- the claim ---- */

int rondo_proxy_try_claim(struct rondo_proxy *proxy)
{
    uint32_t free_claim = 0;
    return __atomic_load_n(&proxy->claimed, __ATOMIC_RELAXED) == 0 &&
           __atomic_compare_exchange_n(&proxy->claimed, &free_claim, 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

void rondo_proxy_drop_claim(struct rondo_proxy *proxy)
{
    __atomic_store_n(&proxy->claimed, 0, __ATOMIC_SEQ_CST);
}

int rondo_proxy_assist_begin(struct rondo_proxy *proxy)
{
    if (proxy == NULL)
        return 0;
    if (rondo_proxy_try_claim(proxy))
        return 1;
    __atomic_fetch_add(&proxy->wanted, 1, __ATOMIC_SEQ_CST);
    int claimed = 0;
    for (int i = 0; i < TRIES && !claimed; i++) {
        rondo_relax((uint64_t) i, 7);
        claimed = rondo_proxy_try_claim(proxy);
    }
    __atomic_fetch_sub(&proxy->wanted, 1, __ATOMIC_SEQ_CST);
    return claimed;
}

int rondo_proxy_assist_step(struct rondo_proxy *proxy)
{
    return rondo_proxy_pass(proxy);
}

/* The thread is woken where something is left to do; otherwise it looks by itself before long, and is spared a change of
 * threads when the next operation comes first. */
void rondo_proxy_assist_end(struct rondo_proxy *proxy)
{
    rondo_proxy_pass(proxy);
    int left = rondo_proxy_has_outstanding(proxy);
    for (int i = 0; i < proxy->network_count && !left; i++)
        left = proxy->networks[i].network->is_busy != NULL && proxy->networks[i].network->is_busy(proxy->networks[i].state);
    rondo_proxy_drop_claim(proxy);
    if (left)
        rondo_event_signal(&proxy->event, &proxy->displaced);
}

/* ---- the work ---- */

/* Credits are worth a message once half of the slots are free. Fewer are sent when nothing else has moved for a while and the
 * sender, as far as this rank knows, has used half of its slots: it may be waiting for a single one. */
static int is_worth_it(const struct rondo_port *port, uint64_t published, int idle)
{
    uint32_t half = (port->slot_count + 1) / 2;
    return port->direction == RONDO_OUTGOING || published - port->transmitted >= half ||
           (idle && rondo_load_relaxed(port->watched) - port->transmitted >= half);
}

static int work_port(struct rondo_port *port, int idle, int *deferred)
{
    uint32_t state = __atomic_load_n(&port->state, __ATOMIC_ACQUIRE); /* pairs with rondo_proxy_join */
    if (state == RONDO_PORT_IDLE)
        return 0;
    int moved = state == RONDO_PORT_JOINED && rondo_arrival_work(port, port->network_state);
    /* Acquire: the slots and their sizes, or the end of the reading of slots, come before the counter. */
    uint64_t published = rondo_load_acquire(port->published);
    if (published != port->transmitted) {
        if (state == RONDO_PORT_LEAVING || is_worth_it(port, published, idle))
            moved |= port->network->transmit(port->network_state, port, published);
        else
            *deferred = 1;
    }
    if (state == RONDO_PORT_LEAVING && published == port->transmitted && port->network->is_drained(port->network_state, port))
        __atomic_store_n(&port->state, RONDO_PORT_IDLE, __ATOMIC_RELEASE); /* after all use of the port */
    return moved;
}

int rondo_proxy_pass(struct rondo_proxy *proxy)
{
    int moved = 0, deferred = 0;
    if (rondo_ports_closed(proxy->ports))
        rondo_ports_reap(proxy->ports, 0);
    for (int i = 0; i < proxy->network_count; i++)
        moved |= proxy->networks[i].network->progress(proxy->networks[i].state);
    int idle = proxy->deferred >= CREDIT_PASSES;
    uint32_t bound = rondo_ports_bound(proxy->ports);
    for (uint32_t number = 0; number < bound; number++) {
        struct rondo_port *port = rondo_port_find(proxy->ports, number);
        if (port != NULL)
            moved |= work_port(port, idle, &deferred);
    }
    if (moved && rondo_proxy_has_outstanding(proxy) && !rondo_device_alive(proxy->context->device))
        proxy->context->upcalls.hasten_daemon(proxy->context->library);
    proxy->deferred = deferred && !moved ? proxy->deferred + 1 : 0;
    proxy->moves += moved != 0;
    return moved;
}

/* ---- lost peers ---- */

void rondo_proxy_lose(struct rondo_proxy *proxy, int peer, const char *network, const char *why)
{
    struct rondo_proxy_loss *loss = calloc(1, sizeof(*loss));
    if (loss == NULL)
        return;
    loss->peer = peer;
    strncpy(loss->network, network, sizeof(loss->network) - 1);
    strncpy(loss->why, why, sizeof(loss->why) - 1);
    loss->next = __atomic_load_n(&proxy->losses, __ATOMIC_RELAXED);
    /* Release: the entry before the list that shows it. */
    while (!__atomic_compare_exchange_n(&proxy->losses, &loss->next, loss, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ;
    rondo_event_signal(&proxy->event, &proxy->displaced);
}

void rondo_proxy_report_losses(struct rondo_proxy *proxy)
{
    /* Acquire: pairs with the release above. */
    struct rondo_proxy_loss *loss = __atomic_exchange_n(&proxy->losses, NULL, __ATOMIC_ACQUIRE), *next;
    for (; loss != NULL; loss = next) {
        next = loss->next;
        proxy->context->upcalls.link_lost(proxy->context->library, loss->peer, loss->network, loss->why);
        free(loss);
    }
}

/* ---- ports that come and go; on any thread ---- */

void rondo_proxy_join(struct rondo_proxy *proxy, struct rondo_port *port)
{
    __atomic_store_n(&port->state, RONDO_PORT_JOINED, __ATOMIC_RELEASE); /* after what is known of the other side */
    rondo_proxy_wake(proxy);
}

/* What changes while a port's bytes move. */
struct position {
    uint64_t transmitted;
    uint32_t sending, receiving;
};

/* By the holder of the claim. */
static int has_moved(const struct rondo_port *port, struct position *last)
{
    struct position now = {port->transmitted, port->sending, port->receiving};
    int moved = now.transmitted != last->transmitted || now.sending != last->sending || now.receiving != last->receiving;
    *last = now;
    return moved;
}

static int patience_with(const struct rondo_proxy *proxy, const struct rondo_port *port)
{
    return proxy->context->upcalls.patience_ms(proxy->context->library, port->peer);
}

/* Waits, working itself where it can, until the port is idle (1), or has stood still for so many milliseconds (0). 0
 * milliseconds: for as long as the library has patience with the peer, however that changes. */
static int await_idle(struct rondo_proxy *proxy, const struct rondo_port *port, int milliseconds)
{
    struct position last = {0};
    int64_t moved = rondo_clock_ms();
    /* Acquire: pairs with the end of work_port, after which the port is used no more. */
    for (int tries = 0; __atomic_load_n(&port->state, __ATOMIC_ACQUIRE) != RONDO_PORT_IDLE; tries++) {
        if (rondo_proxy_assist_begin(proxy)) {
            rondo_proxy_pass(proxy);
            if (has_moved(port, &last))
                moved = rondo_clock_ms();
            rondo_proxy_drop_claim(proxy);
        }
        if (rondo_clock_ms() - moved >= (milliseconds > 0 ? milliseconds : patience_with(proxy, port)))
            return __atomic_load_n(&port->state, __ATOMIC_ACQUIRE) == RONDO_PORT_IDLE;
        if (tries >= 16) {
            struct timespec pause = {0, 100000};
            nanosleep(&pause, NULL);
        } else {
            sched_yield();
        }
    }
    return 1;
}

void rondo_proxy_leave(struct rondo_proxy *proxy, struct rondo_port *port)
{
    __atomic_store_n(&port->state, RONDO_PORT_LEAVING, __ATOMIC_RELEASE);
    rondo_proxy_wake(proxy);
    if (await_idle(proxy, port, 0))
        return;
    rondo_log(RONDO_LOG_INFO, proxy->context->rank, "rank %d does not take what is on its way over %s: giving it up",
              port->peer, port->network->name);
    for (int severed = 0; !severed;) {
        severed = rondo_proxy_assist_begin(proxy);
        if (severed) {
            port->network->sever(port->network_state, port);
            rondo_proxy_drop_claim(proxy);
        } else {
            sched_yield();
        }
    }
    if (!await_idle(proxy, port, SEVER_MS))
        rondo_log(RONDO_LOG_WARN, proxy->context->rank, "a connector with rank %d over %s does not come to rest", port->peer,
                  port->network->name);
    __atomic_store_n(&port->state, RONDO_PORT_IDLE, __ATOMIC_RELEASE);
}
