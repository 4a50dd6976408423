/* Arrivals in slots apart from their counters: a NIC whose writes into the slots arrive late, and counters that arrive at once.
 * The device must never see a tail before the slots below it. The same check detects wrong orders of the steps. */
#include "proxy/arrival.h"
#include "proxy/network.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SLOTS = 4, MESSAGES = 500, SEEDS = 200, STEPS = 200000 };

/* Message n writes n + 1 into its slot. */
struct endpoint {
    uint64_t slots[SLOTS];
    uint64_t sent, landed;         /* messages written, and messages whose data has arrived */
    uint64_t tail, shown, head;    /* the counters */
    uint64_t mark, flushes, fails; /* the message that the current flush waits for */
    unsigned flushing, seed;
};

static int chance(struct endpoint *endpoint, unsigned of)
{
    endpoint->seed = endpoint->seed * 1103515245u + 12345u;
    return (endpoint->seed >> 16) % of == 0;
}

static void land(struct endpoint *endpoint)
{
    if (endpoint->landed < endpoint->sent) {
        endpoint->slots[endpoint->landed % SLOTS] = endpoint->landed + 1;
        endpoint->landed++;
    }
}

static int flush(void *state, struct rondo_port *port)
{
    struct endpoint *endpoint = state;
    (void) port;
    if (endpoint->fails)
        return -1;
    if (!endpoint->flushing) {
        endpoint->flushing = 1;
        endpoint->mark = endpoint->sent; /* later writes may arrive after the flush */
        endpoint->flushes++;
        return 0;
    }
    if (chance(endpoint, 2))
        land(endpoint);
    if (endpoint->landed < endpoint->mark)
        return 0;
    endpoint->flushing = 0;
    return 1;
}

static const struct rondo_network network = {.name = "card", .flush = flush};

typedef int work_function(struct rondo_port *port, void *state);

/* A wrong order: shows the device the tail before the flush. */
static int tell_first(struct rondo_port *port, void *state)
{
    *port->watched = *port->remote_tail;
    return rondo_arrival_work(port, state);
}

/* A wrong order: reads the tail after the flush. */
static int tell_latest(struct rondo_port *port, void *state)
{
    if (!rondo_arrival_work(port, state))
        return 0;
    *port->watched = port->shown = *port->remote_tail;
    return 1;
}

static struct rondo_port port_of(struct endpoint *endpoint)
{
    return (struct rondo_port){.direction = RONDO_INCOMING,
                               .network = &network,
                               .watched = &endpoint->shown,
                               .published = &endpoint->head,
                               .remote_tail = &endpoint->tail};
}

/* Returns how many slots were not there when the device saw the tail. *taken: the number of messages that the device has
 * received. */
static int run(work_function *work, unsigned seed, uint64_t *taken)
{
    struct endpoint endpoint = {.seed = seed};
    struct rondo_port port = port_of(&endpoint);
    int stale = 0;
    for (int step = 0; step < STEPS && endpoint.head < MESSAGES; step++) {
        if (endpoint.sent < MESSAGES && endpoint.sent - endpoint.head < SLOTS && chance(&endpoint, 3))
            endpoint.tail = ++endpoint.sent; /* the tail is sent after the slot, and arrives before it */
        if (chance(&endpoint, 8))
            land(&endpoint);
        work(&port, &endpoint);
        while (endpoint.head < endpoint.shown && !chance(&endpoint, 3)) {
            stale += endpoint.slots[endpoint.head % SLOTS] != endpoint.head + 1;
            endpoint.head++;
        }
    }
    *taken = endpoint.head;
    return stale;
}

static void test_order(void **state)
{
    (void) state;
    for (unsigned seed = 1; seed <= SEEDS; seed++) {
        uint64_t taken;
        assert_int_equal(run(rondo_arrival_work, seed, &taken), 0);
        assert_int_equal(taken, MESSAGES);
    }
}

static void test_wrong_orders(void **state)
{
    (void) state;
    uint64_t taken;
    for (unsigned seed = 1; seed <= SEEDS; seed++) {
        assert_true(run(tell_first, seed, &taken) > 0);
        assert_true(run(tell_latest, seed, &taken) > 0);
    }
}

static void test_one_flush_for_all_that_is_there(void **state)
{
    (void) state;
    struct endpoint endpoint = {.seed = 1};
    struct rondo_port port = port_of(&endpoint);
    assert_int_equal(rondo_arrival_work(&port, &endpoint), 0);
    assert_int_equal(endpoint.flushes, 0); /* nothing has arrived */
    endpoint.tail = endpoint.sent = endpoint.landed = 3;
    assert_int_equal(rondo_arrival_work(&port, &endpoint), 0);
    endpoint.tail = endpoint.sent = endpoint.landed = 4;
    assert_int_equal(rondo_arrival_work(&port, &endpoint), 1);
    assert_int_equal(endpoint.shown, 3); /* the fourth message came after the flush had begun */
    assert_int_equal(rondo_arrival_work(&port, &endpoint), 0);
    assert_int_equal(rondo_arrival_work(&port, &endpoint), 1);
    assert_int_equal(endpoint.shown, 4);
    assert_int_equal(rondo_arrival_work(&port, &endpoint), 0);
    assert_int_equal(endpoint.flushes, 2);
}

static void test_failed_flush(void **state)
{
    (void) state;
    struct endpoint endpoint = {.tail = 2, .sent = 2, .landed = 2, .fails = 1};
    struct rondo_port port = port_of(&endpoint);
    for (int i = 0; i < 3; i++)
        assert_int_equal(rondo_arrival_work(&port, &endpoint), 0);
    assert_int_equal(endpoint.shown, 0);
}

static void test_slots_with_counters(void **state)
{
    (void) state;
    struct endpoint endpoint = {.tail = 2, .fails = 1};
    struct rondo_port port = port_of(&endpoint);
    port.remote_tail = NULL; /* the device polls the tail itself */
    assert_int_equal(rondo_arrival_work(&port, &endpoint), 0);
    assert_int_equal(endpoint.flushes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_wrong_orders),
        cmocka_unit_test(test_failed_flush),
        cmocka_unit_test(test_one_flush_for_all_that_is_there),
        cmocka_unit_test(test_slots_with_counters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
