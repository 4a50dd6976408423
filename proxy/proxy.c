/* See proxy/proxy.h. */
#include "proxy/proxy.h"

#include "proxy/arrival.h"
#include "lib/base/thread.h"
#include "lib/base/error.h"
#include "transport/context.h"
#include "lib/base/futex.h"
#include "device/abi/platform.h"
#include "proxy/ports.h"
#include "proxy/proxies.h"
#include "proxy/placement.h"
#include "device/device.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define NETWORKS_MAX 4
#define STACK_BYTES  ((size_t) 1 << 20)

enum {
    CREDIT_PASSES = 16, /* that a few credits are held back */
    IDLE_PASSES = 64,   /* without anything to do before the thread sleeps */
    BUSY_PASSES = 16,   /* of those, before it gives its core away between two */
    SLEEP_MS = 100,     /* of a sleep that nothing ends */
    BACKOFF_NS = 50000, /* between looks at what nobody tells of, and after a long quiet */
    LONG_BACKOFF_NS = 1000000,
    BACKOFF_SHARE = 64,     /* of the quiet that a nap may take */
    DISPLACED_NS = 5000000, /* between looks at whether the thread that has the claim still has it: each takes its core */
    WANTED_NS = 100000,     /* that the claim is left to a thread that wants it */
    TRIES = 50,             /* at a claim whose holder has been asked for it */
    LEAVE_MS = 3000,        /* for what a port has on its way */
    SEVER_MS = 1000,        /* for the rest, once its connection has been given up */
};

struct open_network {
    const struct rondo_network *network;
    void *state;
    struct rondo_endpoint_address endpoint;
};

/* A peer that was lost, until the proxy's thread tells. */
struct loss {
    struct loss *next;
    int peer;
    char network[16], why[160];
};

struct rondo_proxy {
    struct rondo_transport_context *context;
    uint32_t index; /* among the runtime's */
    struct rondo_ports *ports;
    struct open_network networks[NETWORKS_MAX];
    int network_count;
    int wake;         /* eventfd: ends a sleep in poll */
    uint32_t claimed; /* 1: somebody does the proxy's work */
    uint32_t wanted;  /* threads that would like to, in place of the proxy's own */
    uint32_t asleep;  /* the thread sleeps, or is about to and will look once more */
    uint64_t fence;   /* a word to fence on (device/abi/platform.h: rondo_fence) */
    uint32_t stopping;
    uint32_t event, displaced;  /* where the thread sleeps while another has the claim */
    uint32_t arrivals;          /* a network's slots lie apart: what lands is shown to the device from here */
    uint32_t deferred;          /* passes in a row, without anything moving, in which credits were held back */
    uint64_t moves, moves_seen; /* passes in which something moved; as of the last doze */
    uint64_t quiet_ns;          /* when that was */
    uint32_t running;
    pthread_t thread;
    struct loss *losses; /* pushed by the holder of the claim, taken by the thread */
};

static int try_claim(struct rondo_proxy *proxy)
{
    uint32_t free_claim = 0;
    return __atomic_load_n(&proxy->claimed, __ATOMIC_RELAXED) == 0 &&
           __atomic_compare_exchange_n(&proxy->claimed, &free_claim, 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

static void drop_claim(struct rondo_proxy *proxy)
{
    __atomic_store_n(&proxy->claimed, 0, __ATOMIC_SEQ_CST);
}

/* ---- the work; by the holder of the claim ---- */

static int has_outstanding(const struct rondo_proxy *proxy)
{
    return proxy->context->upcalls.has_outstanding(proxy->context->library);
}

static void *state_of(const struct rondo_proxy *proxy, const struct rondo_network *network)
{
    for (int i = 0; i < proxy->network_count; i++)
        if (proxy->networks[i].network == network)
            return proxy->networks[i].state;
    return NULL;
}

/* Credits are worth a message once half of the slots are free. Fewer are sent when nothing else has moved for a while and the
 * sender, as far as it knows, has used half of its slots: it may be waiting for a single one. */
static int is_worth_it(const struct rondo_port *port, uint64_t published, int idle)
{
    uint32_t half = (port->slot_count + 1) / 2;
    return port->direction == RONDO_OUTGOING || published - port->transmitted >= half ||
           (idle && rondo_load_relaxed(port->watched) - port->transmitted >= half);
}

static int work_port(struct rondo_proxy *proxy, struct rondo_port *port, int idle, int *deferred)
{
    uint32_t state = __atomic_load_n(&port->state, __ATOMIC_ACQUIRE); /* pairs with rondo_proxy_join */
    if (state == RONDO_PORT_IDLE)
        return 0;
    void *network = state_of(proxy, port->network);
    int moved = state == RONDO_PORT_JOINED && rondo_arrival_work(port, network);
    /* Acquire: the slots and their sizes, or the end of the reading of slots, come before the counter. */
    uint64_t published = rondo_load_acquire(port->published);
    if (published != port->transmitted) {
        if (state == RONDO_PORT_LEAVING || is_worth_it(port, published, idle))
            moved |= port->network->transmit(network, port, published);
        else
            *deferred = 1;
    }
    if (state == RONDO_PORT_LEAVING && published == port->transmitted && port->network->is_quiet(network, port))
        __atomic_store_n(&port->state, RONDO_PORT_IDLE, __ATOMIC_RELEASE); /* after all use of the port */
    return moved;
}

/* Everything once. Returns whether anything moved. */
static int pass(struct rondo_proxy *proxy)
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
            moved |= work_port(proxy, port, idle, &deferred);
    }
    if (moved && has_outstanding(proxy) && !rondo_device_alive(proxy->context->device))
        proxy->context->upcalls.hasten_daemon(proxy->context->library);
    proxy->deferred = deferred && !moved ? proxy->deferred + 1 : 0;
    proxy->moves += moved != 0;
    return moved;
}

void rondo_proxy_lose(struct rondo_proxy *proxy, int peer, const char *network, const char *why)
{
    struct loss *loss = calloc(1, sizeof(*loss));
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

/* On the proxy's own thread, which holds no lock: operations are failed from here. */
static void report_losses(struct rondo_proxy *proxy)
{
    struct loss *loss = __atomic_exchange_n(&proxy->losses, NULL, __ATOMIC_ACQUIRE), *next;
    for (; loss != NULL; loss = next) {
        next = loss->next;
        proxy->context->upcalls.link_lost(proxy->context->library, loss->peer, loss->network, loss->why);
        free(loss);
    }
}

/* ---- the thread ---- */

/* A GPU cannot tell that it has published something, and a host thread that is never preempted does not come to it: while they
 * may, the proxy looks. Other host threads stir. Nobody tells of a tail that lands, either. */
static int looks(const struct rondo_proxy *proxy)
{
    const struct rondo_transport_context *context = proxy->context;
    return (context->device_type == RONDO_DEVICE_CUDA || !context->device->daemon->policy.preempt || proxy->arrivals) &&
           rondo_ports_bound(proxy->ports) > 0;
}

/* How long the thread may sleep if nothing wakes it. What a GPU does in stream order nobody counts: there the looks become
 * rarer with the quiet, so that what ends it is late by no more than a small share of it. By the holder of the claim. */
static uint64_t sleep_ns(struct rondo_proxy *proxy)
{
    uint64_t now = rondo_clock_ns(), backoff;
    if (!looks(proxy))
        return SLEEP_MS * 1000000ull;
    if (proxy->context->device_type != RONDO_DEVICE_CUDA)
        return has_outstanding(proxy) ? BACKOFF_NS : SLEEP_MS * 1000000ull; /* a submit stirs */
    if (proxy->moves != proxy->moves_seen) {
        proxy->moves_seen = proxy->moves;
        proxy->quiet_ns = now;
    }
    backoff = (now - proxy->quiet_ns) / BACKOFF_SHARE;
    return backoff < BACKOFF_NS ? BACKOFF_NS : backoff > LONG_BACKOFF_NS ? LONG_BACKOFF_NS : backoff;
}

/* Works until there is nothing to do. 0: somebody else wants to, or there are losses to tell. */
static int work(struct rondo_proxy *proxy)
{
    for (uint64_t idle = 0; idle < IDLE_PASSES;) {
        if (__atomic_load_n(&proxy->wanted, __ATOMIC_SEQ_CST) || __atomic_load_n(&proxy->stopping, __ATOMIC_RELAXED) ||
            __atomic_load_n(&proxy->losses, __ATOMIC_RELAXED) != NULL)
            return 0;
        idle = pass(proxy) ? 0 : idle + 1;
        if (looks(proxy) && has_outstanding(proxy))
            idle = idle < BUSY_PASSES ? idle : BUSY_PASSES;
        if (idle > 0)
            rondo_relax(idle, idle < BUSY_PASSES ? 3 : 0);
    }
    return 1;
}

/* The claim is held, and given back. The thread's half of the sleep/wake race: it says that it sleeps, then looks once more;
 * whoever has published something does so first and then looks whether it sleeps, with a fence between on both sides. */
static void doze(struct rondo_proxy *proxy)
{
    struct pollfd polled[1 + NETWORKS_MAX] = {{proxy->wake, POLLIN, 0}};
    int sleepy = 1;
    __atomic_store_n(&proxy->asleep, 1, __ATOMIC_SEQ_CST);
    rondo_fence(&proxy->fence);
    if (pass(proxy))
        sleepy = 0;
    for (int i = 0; i < proxy->network_count && sleepy; i++) {
        polled[1 + i].events = POLLIN;
        sleepy = proxy->networks[i].network->arm(proxy->networks[i].state, &polled[1 + i].fd);
    }
    struct timespec limit = {0, (long) sleep_ns(proxy)};
    drop_claim(proxy);
    if (sleepy && !__atomic_load_n(&proxy->stopping, __ATOMIC_SEQ_CST)) {
        ppoll(polled, (nfds_t) (1 + proxy->network_count), &limit, NULL);
        uint64_t count;
        if (polled[0].revents & POLLIN) {
            ssize_t got = read(proxy->wake, &count, sizeof(count));
            (void) got;
        }
    }
    __atomic_store_n(&proxy->asleep, 0, __ATOMIC_SEQ_CST);
}

static void *run(void *argument)
{
    struct rondo_proxy *proxy = argument;
    int node = -1;
    for (int i = 0; i < proxy->network_count && node < 0; i++)
        if (proxy->networks[i].network->numa_node != NULL)
            node = proxy->networks[i].network->numa_node(proxy->networks[i].state);
    rondo_proxy_place(node);
    while (!__atomic_load_n(&proxy->stopping, __ATOMIC_ACQUIRE)) {
        uint32_t seen = __atomic_load_n(&proxy->event, __ATOMIC_SEQ_CST);
        report_losses(proxy);
        if (!try_claim(proxy))
            rondo_event_sleep(&proxy->event, seen, &proxy->displaced, DISPLACED_NS);
        else if (work(proxy))
            doze(proxy);
        else {
            drop_claim(proxy);
            sched_yield();
            if (__atomic_load_n(&proxy->wanted, __ATOMIC_SEQ_CST))
                rondo_event_sleep(&proxy->event, seen, &proxy->displaced, WANTED_NS);
        }
    }
    return NULL;
}

void rondo_proxy_wake(struct rondo_proxy *proxy)
{
    if (proxy == NULL)
        return;
    rondo_fence(&proxy->fence); /* what was published before the look at asleep: see doze */
    if (__atomic_load_n(&proxy->asleep, __ATOMIC_SEQ_CST) == 0 || __atomic_exchange_n(&proxy->asleep, 0, __ATOMIC_SEQ_CST) == 0)
        return;
    uint64_t one = 1;
    ssize_t written = write(proxy->wake, &one, sizeof(one));
    (void) written; /* fails only when the counter is full, and then the thread wakes all the same */
}

void rondo_proxy_expect(struct rondo_proxy *proxy)
{
    if (looks(proxy))
        rondo_proxy_wake(proxy);
}

int rondo_proxy_begin(struct rondo_proxy *proxy)
{
    if (proxy == NULL)
        return 0;
    if (try_claim(proxy))
        return 1;
    __atomic_fetch_add(&proxy->wanted, 1, __ATOMIC_SEQ_CST);
    int claimed = 0;
    for (int i = 0; i < TRIES && !claimed; i++) {
        rondo_relax((uint64_t) i, 7);
        claimed = try_claim(proxy);
    }
    __atomic_fetch_sub(&proxy->wanted, 1, __ATOMIC_SEQ_CST);
    return claimed;
}

int rondo_proxy_turn(struct rondo_proxy *proxy)
{
    return pass(proxy);
}

/* The thread goes on where somebody waits for it; otherwise it looks by itself before long, and is spared a change of threads
 * when the next operation comes first. */
void rondo_proxy_end(struct rondo_proxy *proxy)
{
    pass(proxy);
    int left = has_outstanding(proxy);
    for (int i = 0; i < proxy->network_count && !left; i++)
        left = proxy->networks[i].network->is_busy != NULL && proxy->networks[i].network->is_busy(proxy->networks[i].state);
    drop_claim(proxy);
    if (left)
        rondo_event_signal(&proxy->event, &proxy->displaced);
}

/* ---- ports ---- */

uint32_t rondo_proxy_index(const struct rondo_proxy *proxy)
{
    return proxy->index;
}

void *rondo_proxy_network(const struct rondo_proxy *proxy, const struct rondo_network *network)
{
    return state_of(proxy, network);
}

int rondo_proxy_spreads(const struct rondo_proxy *proxy)
{
    int spreads = 0;
    for (int i = 0; i < proxy->network_count; i++)
        spreads |= proxy->networks[i].network->spreads;
    return spreads;
}

struct rondo_ports *rondo_proxy_ports(struct rondo_proxy *proxy)
{
    return proxy->ports;
}

const struct rondo_endpoint_address *rondo_proxy_endpoint_address(const struct rondo_proxy *proxy, const char *name)
{
    for (int i = 0; i < proxy->network_count; i++) {
        char own[RONDO_NETWORK_NAME];
        rondo_proxies_endpoint_name(own, proxy->networks[i].network->name, proxy->index);
        if (strcmp(own, name) == 0)
            return &proxy->networks[i].endpoint;
    }
    return NULL;
}

void rondo_proxy_join(struct rondo_proxy *proxy, struct rondo_port *port)
{
    __atomic_store_n(&port->state, RONDO_PORT_JOINED, __ATOMIC_RELEASE); /* after what is known of the other side */
    rondo_proxy_wake(proxy);
}

/* Waits, working itself where it can. 1: the port is idle. */
static int await_idle(struct rondo_proxy *proxy, const struct rondo_port *port, int milliseconds)
{
    int64_t deadline = rondo_clock_ms() + milliseconds;
    for (int tries = 0; __atomic_load_n(&port->state, __ATOMIC_ACQUIRE) != RONDO_PORT_IDLE; tries++) {
        if (rondo_clock_ms() >= deadline)
            return 0;
        if (rondo_proxy_begin(proxy)) {
            pass(proxy);
            drop_claim(proxy);
        }
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
    if (await_idle(proxy, port, LEAVE_MS))
        return;
    rondo_log(RONDO_LOG_INFO, proxy->context->rank, "rank %d does not take what is on its way over %s: giving it up",
              port->peer, port->network->name);
    for (int severed = 0; !severed;) {
        severed = rondo_proxy_begin(proxy);
        if (severed) {
            port->network->sever(state_of(proxy, port->network), port);
            drop_claim(proxy);
        } else {
            sched_yield();
        }
    }
    if (!await_idle(proxy, port, SEVER_MS))
        rondo_log(RONDO_LOG_WARN, proxy->context->rank, "a connector with rank %d over %s does not come to rest", port->peer,
                  port->network->name);
    __atomic_store_n(&port->state, RONDO_PORT_IDLE, __ATOMIC_RELEASE);
}

/* ---- life ---- */

static int is_open(const struct rondo_proxy *proxy, const struct rondo_network *network)
{
    for (int i = 0; i < proxy->network_count; i++)
        if (proxy->networks[i].network == network)
            return 1;
    return 0;
}

static rondo_result_t open_network(struct rondo_proxy *proxy, const struct rondo_network *network)
{
    struct open_network *opened = &proxy->networks[proxy->network_count];
    if (proxy->network_count == NETWORKS_MAX)
        return rondo_fail(RONDO_ERR_INTERNAL, "a runtime has at most %d networks", NETWORKS_MAX);
    opened->network = network;
    rondo_result_t result = network->open(proxy->context, proxy, &opened->state, &opened->endpoint);
    if (result != RONDO_SUCCESS)
        return result;
    proxy->network_count++;
    proxy->arrivals |= network->slot_slabs != NULL && network->slot_slabs(opened->state) != NULL;
    return RONDO_SUCCESS;
}

/* What the runtime has chosen for any rank. */
static rondo_result_t open_networks(struct rondo_proxy *proxy)
{
    struct rondo_transport_context *context = proxy->context;
    rondo_result_t result = RONDO_SUCCESS;
    for (int rank = 0; rank < context->size && result == RONDO_SUCCESS; rank++) {
        const struct rondo_transport *transport;
        if (rondo_transport_choose(context, rank, &transport) == RONDO_SUCCESS && transport->network != NULL &&
            (proxy->index == 0 || transport->network->spreads) && !is_open(proxy, transport->network))
            result = open_network(proxy, transport->network);
    }
    return result;
}

rondo_result_t rondo_proxy_create(struct rondo_transport_context *context, uint32_t index, struct rondo_proxy **result)
{
    struct rondo_proxy *proxy = calloc(1, sizeof(*proxy));
    if (proxy == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for the proxy");
    proxy->context = context;
    proxy->index = index;
    proxy->wake = -1;
    rondo_result_t status = rondo_ports_create(&proxy->ports);
    if (status == RONDO_SUCCESS)
        status = open_networks(proxy);
    if (status != RONDO_SUCCESS || proxy->network_count == 0) {
        rondo_proxy_close(proxy);
        rondo_proxy_destroy(proxy);
        return status;
    }
    proxy->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (proxy->wake < 0)
        status = rondo_fail(RONDO_ERR_SYSTEM, "eventfd: %s", strerror(errno));
    if (status == RONDO_SUCCESS)
        status = rondo_thread_start(&proxy->thread, "rondo proxy", STACK_BYTES, run, proxy);
    proxy->running = status == RONDO_SUCCESS;
    if (status != RONDO_SUCCESS) {
        rondo_proxy_close(proxy);
        rondo_proxy_destroy(proxy);
    } else {
        *result = proxy;
    }
    return status;
}

void rondo_proxy_close(struct rondo_proxy *proxy)
{
    if (proxy == NULL)
        return;
    if (proxy->running) {
        uint64_t one = 1;
        __atomic_store_n(&proxy->stopping, 1, __ATOMIC_SEQ_CST);
        ssize_t written = write(proxy->wake, &one, sizeof(one));
        (void) written;
        rondo_event_signal(&proxy->event, &proxy->displaced);
        pthread_join(proxy->thread, NULL);
        proxy->running = 0;
    }
    for (int i = 0; i < proxy->network_count; i++)
        proxy->networks[i].network->close(proxy->networks[i].state);
    while (proxy->losses != NULL) {
        struct loss *loss = proxy->losses;
        proxy->losses = loss->next;
        free(loss);
    }
    rondo_ports_destroy(proxy->ports);
    proxy->ports = NULL;
}

void rondo_proxy_destroy(struct rondo_proxy *proxy)
{
    if (proxy == NULL)
        return;
    for (int i = 0; i < proxy->network_count; i++)
        if (proxy->networks[i].network->destroy != NULL)
            proxy->networks[i].network->destroy(proxy->networks[i].state);
    if (proxy->wake >= 0)
        close(proxy->wake);
    free(proxy);
}
