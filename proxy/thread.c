/*
 * The proxy's own thread: it works while there is something to do and sleeps in poll otherwise. A thread that has published
 * something for the proxy wakes it (rondo_proxy_wake); the ordering that makes sure of it is argued at
 * sleep_a_while.
 */
#include "proxy/state.h"

#include "device/abi/platform.h"
#include "device/device.h"
#include "lib/base/futex.h"
#include "lib/base/thread.h"
#include "proxy/placement.h"

#include <poll.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

enum {
    IDLE_PASSES = 64,   /* without anything to do before the thread sleeps */
    BUSY_PASSES = 16,   /* of those, before it gives its core away between two */
    SLEEP_MS = 100,     /* of a sleep that nothing ends */
    BACKOFF_NS = 50000, /* between looks at what does not wake the thread, and after a long quiet */
    LONG_BACKOFF_NS = 1000000,
    BACKOFF_SHARE = 64,     /* of the quiet, that a sleep may take */
    DISPLACED_NS = 5000000, /* between looks at whether the thread that has the claim still has it: each takes its core */
    WANTED_NS = 100000,     /* that the claim is left to a thread that wants it */
};

/* Whether the thread has to look for what the device publishes while operations may be running: a GPU cannot wake it, and a
 * host thread that is never preempted does not come to do so; other host threads wake it. The arrival of a tail in a port with
 * slots apart wakes no thread, either. */
static int looks(const struct rondo_proxy *proxy)
{
    const struct rondo_transport_context *context = proxy->context;
    return (context->device_type == RONDO_DEVICE_CUDA || !context->device->daemon->policy.preempt || proxy->arrivals) &&
           rondo_ports_bound(proxy->ports) > 0;
}

/* How long the thread may sleep if nothing wakes it. What a GPU does in stream order is not counted by any queue: there the
 * looks become rarer with the quiet, so that what ends it is late by no more than a small share of it. By the holder of the
 * claim. */
static uint64_t sleep_ns(struct rondo_proxy *proxy)
{
    uint64_t now = rondo_clock_ns(), backoff;
    if (!looks(proxy))
        return SLEEP_MS * 1000000ull;
    if (proxy->context->device_type != RONDO_DEVICE_CUDA)
        return rondo_proxy_has_outstanding(proxy) ? BACKOFF_NS : SLEEP_MS * 1000000ull; /* a submission wakes the thread */
    if (proxy->moves != proxy->moves_seen) {
        proxy->moves_seen = proxy->moves;
        proxy->quiet_ns = now;
    }
    backoff = (now - proxy->quiet_ns) / BACKOFF_SHARE;
    return backoff < BACKOFF_NS ? BACKOFF_NS : backoff > LONG_BACKOFF_NS ? LONG_BACKOFF_NS : backoff;
}

/* Works until there is nothing to do. 0: another thread wants the claim, or there are losses to report. */
static int work(struct rondo_proxy *proxy)
{
    for (uint64_t idle = 0; idle < IDLE_PASSES;) {
        if (__atomic_load_n(&proxy->wanted, __ATOMIC_SEQ_CST) || __atomic_load_n(&proxy->stopping, __ATOMIC_RELAXED) ||
            __atomic_load_n(&proxy->losses, __ATOMIC_RELAXED) != NULL)
            return 0;
        idle = rondo_proxy_pass(proxy) ? 0 : idle + 1;
        if (looks(proxy) && rondo_proxy_has_outstanding(proxy))
            idle = idle < BUSY_PASSES ? idle : BUSY_PASSES;
        if (idle > 0)
            rondo_relax(idle, idle < BUSY_PASSES ? 3 : 0);
    }
    return 1;
}

/* The claim is held, and given back. The thread's half of the sleep/wake race: it says that it sleeps, then looks once more. A
 * thread that publishes something does so first and then looks whether the proxy sleeps (rondo_proxy_wake). With a sequentially
 * consistent fence between the two steps on both sides, one of the two sees what the other has done. */
static void sleep_a_while(struct rondo_proxy *proxy)
{
    struct pollfd polled[1 + RONDO_PROXY_NETWORKS_MAX] = {{proxy->wake, POLLIN, 0}};
    int sleepy = 1;
    __atomic_store_n(&proxy->asleep, 1, __ATOMIC_SEQ_CST);
    rondo_fence(&proxy->fence);
    if (rondo_proxy_pass(proxy))
        sleepy = 0;
    for (int i = 0; i < proxy->network_count && sleepy; i++) {
        polled[1 + i].events = POLLIN;
        sleepy = proxy->networks[i].network->arm(proxy->networks[i].state, &polled[1 + i].fd);
    }
    struct timespec limit = {0, (long) sleep_ns(proxy)};
    rondo_proxy_drop_claim(proxy);
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

void *rondo_proxy_run(void *argument)
{
    struct rondo_proxy *proxy = argument;
    int node = -1;
    for (int i = 0; i < proxy->network_count && node < 0; i++)
        if (proxy->networks[i].network->numa_node != NULL)
            node = proxy->networks[i].network->numa_node(proxy->networks[i].state);
    rondo_proxy_place(node);
    while (!__atomic_load_n(&proxy->stopping, __ATOMIC_ACQUIRE)) {
        uint32_t seen = __atomic_load_n(&proxy->event, __ATOMIC_SEQ_CST);
        rondo_proxy_report_losses(proxy);
        if (!rondo_proxy_try_claim(proxy))
            rondo_event_sleep(&proxy->event, seen, &proxy->displaced, DISPLACED_NS);
        else if (work(proxy))
            sleep_a_while(proxy);
        else {
            rondo_proxy_drop_claim(proxy);
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
    /* What was published comes before the look at asleep: see sleep_a_while. */
    rondo_fence(&proxy->fence);
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
