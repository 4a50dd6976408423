/* The rdma transport while queue pairs and rails fail, on test/rdma/fabric.h: two ranks whose proxies work connectors both
 * ways, and devices that fill slots and compare what comes. All in one thread, in an order that is drawn at random. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#if RONDO_WITH_VERBS
#include "device/abi/platform.h"
#include "device/device.h"
#include "lib/base/thread.h"
#include "proxy/state.h"
#include "test/rdma/fabric.h"
#include "transport/memory/arena.h"
#include "transport/transport.h"

enum { CONNECTORS = 8, SECONDS = 60 };

/* One side's rank, runtime and proxy, as far as the transport sees them. */
struct side {
    struct rondo_transport_context context;
    struct rondo_proxy proxy;
    struct rondo_rdma rdma;
    struct rondo_rdma_peer peers[FABRIC_RANKS];
    struct rondo_endpoint_address endpoint;
};

struct connector {
    struct rondo_port *out, *in;
    uint64_t sent, received, seen; /* by the devices; the greatest tail that the receiver has seen */
    int looked;                    /* at the slot that is being received */
};

static struct side *sides;
static struct connector connectors[CONNECTORS];
static uint64_t goal;
static int patience;
static uint32_t pause_of_proxies; /* the longer, the more slots there are to be sent at once */

static const struct rondo_network *network(void)
{
    return rondo_transport_rdma.network;
}

/* ---- what the transport asks for ---- */

static int no_outstanding(void *library)
{
    (void) library;
    return 0;
}

static int patience_ms(void *library, int peer)
{
    (void) library;
    (void) peer;
    return patience;
}

static void *allocate_host(struct rondo_device *device, size_t bytes)
{
    void *memory = NULL;
    (void) device;
    return posix_memalign(&memory, 4096, bytes) == 0 ? memset(memory, 0, bytes) : NULL;
}

static void release_host(struct rondo_device *device, void *memory, size_t bytes)
{
    (void) device;
    (void) bytes;
    free(memory);
}

static const struct rondo_device_kind kind = {.allocate_host = allocate_host, .release_host = release_host};
static struct rondo_device device = {.kind = &kind};

/* ---- life ---- */

static struct rondo_port *make_port(int rank, enum rondo_direction direction, uint32_t slot_bytes, uint32_t slot_count)
{
    struct rondo_connector_spec spec = {.slot_bytes = slot_bytes, .slot_count = slot_count, .peer = 1 - rank};
    struct rondo_port *port;
    assert_int_equal(rondo_port_open(&sides[rank].context, &sides[rank].proxy, network(), &spec, direction, &port),
                     RONDO_SUCCESS);
    assert_int_equal(network()->prepare(&sides[rank].rdma, port), RONDO_SUCCESS);
    return port;
}

static void join(struct rondo_port *port, const struct rondo_port *other, int other_rank)
{
    port->other_number = other->number;
    port->other_address = (uint64_t) (uintptr_t) (other->region.slab->base + other->region.offset);
    port->other_slots = (uint64_t) (uintptr_t) other->slots;
    memcpy(port->other_access, other->access, sizeof(port->other_access));
    memcpy(port->other_slot_access, other->slot_access, sizeof(port->other_slot_access));
    port->endpoint_address = &sides[other_rank].endpoint;
    rondo_proxy_join(port->proxy, port);
}

/* Both queues each way have some, of each kind of slots. */
static int sender_of(int which)
{
    return which >> 1 & 1;
}

static void set_up(unsigned seed, int rails, enum rondo_slot_memory slots)
{
    static const uint32_t counts[] = {1, 2, 8, 512}, bytes[] = {64, 4096, 16896, 192};
    fabric_open(seed);
    patience = 30000;
    pause_of_proxies = 1;
    sides = calloc(FABRIC_RANKS, sizeof(*sides));
    assert_non_null(sides);
    for (int rank = 0; rank < FABRIC_RANKS; rank++) {
        struct side *side = &sides[rank];
        side->context =
            (struct rondo_transport_context){.rank = rank,
                                             .size = FABRIC_RANKS,
                                             .device_type = RONDO_DEVICE_HOST,
                                             .device_index = -1,
                                             .device = &device,
                                             .upcalls = {.has_outstanding = no_outstanding, .patience_ms = patience_ms}};
        assert_int_equal(rondo_arena_create(&side->context.arena, (uint64_t) 1 << 30), RONDO_SUCCESS);
        side->rdma = (struct rondo_rdma){.context = &side->context,
                                         .proxy = &side->proxy,
                                         .rank = rank,
                                         .gpu = -1,
                                         .descriptor = -1,
                                         .queues = 2,
                                         .peers = side->peers,
                                         .slots = slots,
                                         .flush = RONDO_CUDA_FLUSH_READ};
        fabric_equip(&side->rdma, rank, rails);
        side->endpoint.bytes = sizeof(side->rdma.endpoint);
        memcpy(side->endpoint.data, &side->rdma.endpoint, sizeof(side->rdma.endpoint));
        side->proxy.context = &side->context;
        side->proxy.wake = -1;
        side->proxy.networks[0] = (struct rondo_proxy_open_network){.network = network(), .state = &side->rdma};
        side->proxy.network_count = 1;
        assert_int_equal(rondo_ports_create(&side->proxy.ports), RONDO_SUCCESS);
    }
    memset(connectors, 0, sizeof(connectors));
    for (int i = 0; i < CONNECTORS; i++) {
        int type = (i & 1) | (i >> 2) << 1;
        connectors[i].out = make_port(sender_of(i), RONDO_OUTGOING, bytes[type], counts[type]);
        connectors[i].in = make_port(1 - sender_of(i), RONDO_INCOMING, bytes[type], counts[type]);
        join(connectors[i].out, connectors[i].in, 1 - sender_of(i));
        join(connectors[i].in, connectors[i].out, sender_of(i));
    }
}

static void tear_down(void)
{
    for (int i = 0; i < CONNECTORS; i++) {
        rondo_port_close(&sides[sender_of(i)].context, connectors[i].out);
        rondo_port_close(&sides[1 - sender_of(i)].context, connectors[i].in);
    }
    for (int rank = 0; rank < FABRIC_RANKS; rank++) {
        struct side *side = &sides[rank];
        side->rdma.closing = 1;
        rondo_rdma_close_queues(&side->rdma);
        while (side->proxy.losses != NULL) {
            struct rondo_proxy_loss *loss = side->proxy.losses;
            side->proxy.losses = loss->next;
            free(loss);
        }
    }
    for (int rank = 0; rank < FABRIC_RANKS; rank++) {
        struct rondo_rdma *rdma = &sides[rank].rdma;
        rondo_ports_destroy(sides[rank].proxy.ports);
        rondo_arena_destroy(sides[rank].context.arena);
        for (int i = 0; i < rdma->rail_count; i++)
            if (rdma->rails[i].sink != NULL)
                fabric_library.ibv_dereg_mr(rdma->rails[i].sink);
    }
    fabric_close();
    free(sides);
}

/* ---- devices ---- */

static unsigned char byte_of(int which, uint64_t position, uint32_t i)
{
    return (unsigned char) (position * 151 + i * 7 + (uint64_t) which * 31 + (position >> 8) + i / 251);
}

static uint32_t bytes_of(const struct rondo_port *port, uint64_t position)
{
    uint32_t less = (uint32_t) (position * 7919 % port->slot_bytes);
    return port->slot_bytes - (port->slot_bytes > RONDO_RDMA_LARGE ? less % 500 : less); /* of a large one all are */
}

static int fill(int which)
{
    struct connector *connector = &connectors[which];
    struct rondo_port *port = connector->out;
    uint64_t head = rondo_load_acquire(port->watched);
    assert_true(head <= connector->sent); /* a head goes back, or beyond */
    if (connector->sent == goal || connector->sent - head >= port->slot_count)
        return 0;
    uint32_t slot = (uint32_t) (connector->sent % port->slot_count), bytes = bytes_of(port, connector->sent);
    for (uint32_t i = 0; i < bytes; i++)
        port->slots[(size_t) slot * port->slot_bytes + i] = (char) byte_of(which, connector->sent, i);
    port->sizes[slot] = bytes;
    rondo_store_release((uint64_t *) (uintptr_t) port->published, ++connector->sent);
    return 1;
}

/* Two visits a slot, with whatever may happen between: what it holds is compared in both. */
static int take(int which)
{
    struct connector *connector = &connectors[which];
    struct rondo_port *port = connector->in;
    uint64_t tail = rondo_load_acquire(port->watched);
    if (tail == connector->received)
        return 0;
    size_t slot = connector->received % port->slot_count;
    uint32_t bytes = bytes_of(port, connector->received);
    for (uint32_t i = 0; i < bytes; i++)
        if ((unsigned char) port->slots[slot * port->slot_bytes + i] != byte_of(which, connector->received, i))
            fail_msg("connector %d, slot %llu, byte %u of %u is wrong", which, (unsigned long long) connector->received, i,
                     bytes);
    connector->looked = !connector->looked;
    if (!connector->looked)
        rondo_store_release((uint64_t *) (uintptr_t) port->published, ++connector->received);
    return 1;
}

/* No tail goes back, or beyond what was sent. */
static void watch_tails(void)
{
    for (int i = 0; i < CONNECTORS; i++) {
        uint64_t tail = rondo_load_acquire(connectors[i].in->watched);
        assert_true(tail >= connectors[i].seen && tail <= connectors[i].sent);
        connectors[i].seen = tail;
    }
}

static int is_lost(int rank)
{
    return sides[rank].rdma.peers[1 - rank].lost;
}

static int is_done(void)
{
    for (int i = 0; i < CONNECTORS; i++)
        if (connectors[i].received != goal)
            return 0;
    return 1;
}

/* Until every slot has been received, or a peer is lost. fault is called now and then. */
static void run(void (*fault)(void))
{
    int64_t begin = rondo_clock_ms();
    int idle = 0;
    for (uint64_t step = 0; !is_done() && !is_lost(0) && !is_lost(1); step++) {
        int moved = 0, which = (int) fabric_random(CONNECTORS);
        switch (fabric_random(5)) {
        case 0:
            moved = fill(which);
            break;
        case 1:
            moved = take(which);
            break;
        case 2:
            if (fabric_random(pause_of_proxies) == 0)
                moved = rondo_proxy_pass(&sides[fabric_random(FABRIC_RANKS)].proxy);
            break;
        default:
            moved = fabric_step();
            break;
        }
        watch_tails();
        if (fault != NULL && fabric_random(400) == 0)
            fault();
        idle = moved ? 0 : idle + 1;
        if (idle > 200) {
            struct timespec pause = {0, 200000};
            nanosleep(&pause, NULL);
            idle = 100;
        }
        if (step % 1024 == 0 && rondo_clock_ms() - begin > SECONDS * 1000)
            fail_msg("nothing comes any more");
    }
}

/* All ports leave: each is idle only when what it had to send has arrived. */
static void leave(void (*fault)(void))
{
    int64_t begin = rondo_clock_ms();
    int left = 1;
    for (int i = 0; i < CONNECTORS; i++) {
        __atomic_store_n(&connectors[i].out->state, RONDO_PORT_LEAVING, __ATOMIC_RELEASE);
        __atomic_store_n(&connectors[i].in->state, RONDO_PORT_LEAVING, __ATOMIC_RELEASE);
    }
    for (uint64_t step = 0; left; step++) {
        left = 0;
        rondo_proxy_pass(&sides[step % FABRIC_RANKS].proxy);
        for (int i = 0; i < CONNECTORS; i++) {
            if (connectors[i].out->state == RONDO_PORT_IDLE && !is_lost(sender_of(i)))
                assert_int_equal(connectors[i].in->remote_tail != NULL ? *connectors[i].in->remote_tail
                                                                       : *connectors[i].in->watched,
                                 connectors[i].sent);
            left |= connectors[i].out->state != RONDO_PORT_IDLE || connectors[i].in->state != RONDO_PORT_IDLE;
        }
        if (!fabric_step() && step % 64 == 0) {
            struct timespec pause = {0, 200000};
            nanosleep(&pause, NULL);
        }
        if (fault != NULL && fabric_random(400) == 0)
            fault();
        if (step % 1024 == 0 && rondo_clock_ms() - begin > SECONDS * 1000)
            fail_msg("a port does not come to rest");
    }
}

static void expect_all(void)
{
    assert_false(is_lost(0));
    assert_false(is_lost(1));
    assert_true(is_done());
}

/* ---- tests ---- */

static int breaks;

static void break_one(void)
{
    if (breaks > 0)
        breaks -= fabric_break((enum fabric_loss) fabric_random(FABRIC_LOSSES), fabric_random(4) == 0);
}

static void run_breaks(unsigned seed, int rails, enum rondo_slot_memory slots)
{
    set_up(seed, rails, slots);
    goal = 500;
    breaks = 40;
    run(break_one);
    expect_all();
    assert_true(fabric.broken >= 20);
    leave(NULL);
    tear_down();
}

static void test_breaks(void **unused)
{
    (void) unused;
    for (unsigned seed = 1; seed <= 4; seed++)
        run_breaks(seed, 1 + (int) seed % 2, RONDO_SLOTS_WITH_COUNTERS);
}

static void test_breaks_apart(void **unused)
{
    (void) unused;
    for (unsigned seed = 11; seed <= 14; seed++)
        run_breaks(seed, 1 + (int) seed % 2, RONDO_SLOTS_APART);
}

/* Nothing breaks: each slot and each request goes once. */
static void test_no_fault(void **unused)
{
    (void) unused;
    set_up(3, 2, RONDO_SLOTS_WITH_COUNTERS);
    goal = 300;
    run(NULL);
    expect_all();
    leave(NULL);
    assert_int_equal(fabric.accepted, 4); /* 2 queue pairs each way */
    assert_int_equal(fabric.rejected, 0);
    uint64_t bytes = 0;
    for (int i = 0; i < CONNECTORS; i++)
        for (uint64_t position = 0; sender_of(i) == 0 && position < goal; position++)
            bytes += bytes_of(connectors[i].out, position);
    assert_int_equal(sides[0].proxy.networks[0].sent, bytes);
    tear_down();
}

static void test_sent_once(void **unused)
{
    (void) unused;
    set_up(4, 2, RONDO_SLOTS_WITH_COUNTERS);
    goal = 300;
    breaks = 10;
    run(break_one);
    expect_all();
    uint64_t bytes = 0;
    for (int i = 0; i < CONNECTORS; i++)
        for (uint64_t position = 0; sender_of(i) == 0 && position < goal; position++)
            bytes += bytes_of(connectors[i].out, position);
    assert_int_equal(sides[0].proxy.networks[0].sent, bytes); /* what is sent again does not count */
    tear_down();
}

static void refuse_one(void)
{
    if (breaks > 0 && fabric.refuse_after == 0) {
        fabric.refuse_after = 1 + (int) fabric_random(8);
        breaks--;
    }
}

/* least: bytes of posts that may be refused. After a large slot that is refused, tails within the same run of slots have been
 * sent. */
static void run_refusals(enum rondo_slot_memory slots, uint32_t least, uint32_t pause)
{
    set_up(5, 2, slots);
    fabric.lose_goodbyes = 1;
    fabric.refuse_least = least;
    pause_of_proxies = pause;
    goal = 500;
    breaks = 30;
    run(refuse_one);
    expect_all();
    assert_true(fabric.accepted > 10);
    tear_down();
}

static void test_refused_posts(void **unused)
{
    (void) unused;
    run_refusals(RONDO_SLOTS_WITH_COUNTERS, 0, 1);
    run_refusals(RONDO_SLOTS_APART, 0, 1);
    run_refusals(RONDO_SLOTS_WITH_COUNTERS, RONDO_RDMA_LARGE, 64);
}

static void refuse_pairs(void)
{
    if (breaks > 0 && fabric_break(FABRIC_LOST, 0)) {
        fabric.refuse_pairs = 1;
        breaks--;
    }
}

static void test_refused_pairs(void **unused)
{
    (void) unused;
    set_up(6, 2, RONDO_SLOTS_WITH_COUNTERS);
    goal = 500;
    breaks = 10;
    run(refuse_pairs);
    expect_all();
    tear_down();
}

static int are_ready(void)
{
    for (int rank = 0; rank < FABRIC_RANKS; rank++)
        for (const struct rondo_rdma_queue *queue = sides[rank].rdma.all; queue != NULL; queue = queue->next)
            if (queue->peer != rank && queue->phase != RONDO_RDMA_READY)
                return 0;
    return 1;
}

/* Passes, until all queue pairs are READY and so many connections have been accepted. */
static void settle(int accepted)
{
    int64_t begin = rondo_clock_ms();
    for (int i = 0; rondo_clock_ms() - begin < SECONDS * 1000 && (fabric.accepted < accepted || !are_ready()); i++) {
        struct timespec pause = {0, 1000000};
        rondo_proxy_pass(&sides[i % 2].proxy);
        fabric_step();
        nanosleep(&pause, NULL);
    }
    assert_int_equal(fabric.accepted, accepted);
    assert_true(are_ready());
}

/* Receivers' sides break alone, the senders are not told, and have nothing to post by which they would notice. */
static void run_asks(enum rondo_slot_memory slots)
{
    set_up(7, 2, slots);
    fabric.lose_goodbyes = 1;
    for (goal = 50; goal <= 200; goal += 50) {
        run(NULL);
        expect_all();
        int rejected = fabric.rejected, accepted = fabric.accepted;
        fabric_fail_receiver(0);
        fabric_fail_receiver(1);
        settle(accepted + 4);
        assert_int_equal(fabric.rejected, rejected + 4); /* what asked */
    }
    goal = 250;
    run(NULL);
    expect_all();
    leave(NULL);
    tear_down();
}

static void test_asks(void **unused)
{
    (void) unused;
    run_asks(RONDO_SLOTS_WITH_COUNTERS);
    run_asks(RONDO_SLOTS_APART);
}

/* Queue pairs that nothing has to go by break again and again, for longer in all than one may be missing. */
static void test_idle_breaks(void **unused)
{
    (void) unused;
    set_up(16, 2, RONDO_SLOTS_WITH_COUNTERS);
    goal = 50;
    run(NULL);
    expect_all();
    settle(fabric.accepted);
    for (int i = 0; i < 200; i++) { /* the last credits */
        rondo_proxy_pass(&sides[i % 2].proxy);
        fabric_step();
    }
    patience = 3000;
    int64_t begin = rondo_clock_ms();
    while (rondo_clock_ms() - begin < 7000) {
        int accepted = fabric.accepted;
        fabric_fail_receiver(0);
        fabric_fail_receiver(1);
        settle(accepted + 4);
        for (int i = 0; i < 300; i++) {
            struct timespec pause = {0, 1000000};
            rondo_proxy_pass(&sides[i % 2].proxy);
            fabric_step();
            nanosleep(&pause, NULL);
        }
    }
    goal = 100;
    run(NULL);
    expect_all();
    tear_down();
}

/* Completions of former queue pairs that are taken when another has their number: of this queue, and of another one. */
static void test_old_reports(void **unused)
{
    (void) unused;
    set_up(15, 2, RONDO_SLOTS_WITH_COUNTERS);
    goal = 100;
    breaks = 10;
    run(break_one);
    for (struct rondo_rdma_queue *queue = sides[0].rdma.all; queue != NULL; queue = queue->next) {
        uint64_t completed = queue->completed, last = queue->posted, other_tag = (uint64_t) 77 << 48;
        if (queue->phase != RONDO_RDMA_READY)
            continue;
        queue->posted += 2; /* as if they were under way */
        fabric_report(queue->id->qp, queue->tag | completed, IBV_WC_WR_FLUSH_ERR);
        fabric_report(queue->id->qp, queue->tag | 1, IBV_WC_WR_FLUSH_ERR);
        fabric_report(queue->id->qp, other_tag | (last + 1), IBV_WC_SUCCESS);
        fabric_report(queue->id->qp, other_tag | (last + 1), IBV_WC_WR_FLUSH_ERR);
        for (int i = 0; i < 20; i++)
            rondo_proxy_pass(&sides[0].proxy);
        assert_int_equal(queue->phase, RONDO_RDMA_READY);
        assert_true(queue->completed <= last);
        queue->posted -= 2;
    }
    goal = 200;
    run(NULL);
    expect_all();
    tear_down();
}

static int rail_of_all(int rail)
{
    for (int rank = 0; rank < FABRIC_RANKS; rank++)
        for (const struct rondo_rdma_queue *queue = sides[rank].rdma.all; queue != NULL; queue = queue->next)
            if (queue->peer != rank &&
                (queue->phase != RONDO_RDMA_READY || (queue->rail != rail && queue->rdma == &sides[0].rdma)))
                return 0;
    return 1;
}

/* Rank 0's rails go down in turn, and all of its queue pairs move. Then both are down for a while. */
static int downs;

static void toggle_ports(void)
{
    if (downs == 0 && connectors[0].received > 50) {
        fabric_set_port(0, 0, 0);
        downs = 1;
    } else if (downs == 1 && connectors[0].received > 150 && rail_of_all(1)) {
        fabric_set_port(0, 0, 1);
        downs = 2;
    } else if (downs == 2 && connectors[0].received > 250 && !sides[0].rdma.rails[0].down) {
        fabric_set_port(0, 1, 0);
        downs = 3;
    } else if (downs == 3 && connectors[0].received > 350 && rail_of_all(0)) {
        fabric_set_port(0, 0, 0);
        downs = 4;
    } else if (downs == 4 && sides[0].rdma.rails[0].down && fabric_random(8) == 0) {
        fabric_set_port(0, 1, 1);
        downs = 5;
    }
}

static void run_rails(enum rondo_slot_memory slots)
{
    set_up(8, 2, slots);
    goal = 500;
    downs = 0;
    run(toggle_ports);
    expect_all();
    assert_int_equal(downs, 5);
    leave(NULL);
    tear_down();
}

static void test_rails(void **unused)
{
    (void) unused;
    run_rails(RONDO_SLOTS_WITH_COUNTERS);
    run_rails(RONDO_SLOTS_APART);
}

/* A way is cut that neither side is told of: requests that go there are refused, or lost. */
static void cut_one(void)
{
    if (connectors[0].received > 50)
        fabric.cut[1][0] = 1;
}

static void test_cut(void **unused)
{
    (void) unused;
    for (int silent = 0; silent < 2; silent++) {
        set_up(9, 2, silent ? RONDO_SLOTS_APART : RONDO_SLOTS_WITH_COUNTERS);
        goal = 300;
        fabric.silent = silent;
        run(cut_one);
        expect_all();
        leave(NULL);
        tear_down();
    }
}

/* Requests that come twice, that are old, or that no rank has made. */
static void test_requests(void **unused)
{
    (void) unused;
    unsigned char data[FABRIC_REQUEST];
    set_up(10, 2, RONDO_SLOTS_WITH_COUNTERS);
    fabric.repeat_requests = 1;
    goal = 300;
    breaks = 10;
    run(break_one);
    expect_all();
    int accepted = fabric.accepted, rejected = fabric.rejected;
    assert_true(rejected >= accepted);
    memcpy(data, fabric.request, sizeof(data));
    int to = data[0] & 1; /* the token ends with the rank */
    goal = 310;
    for (int i = 0; i < 24; i++) { /* each byte of the request is another */
        memcpy(data, fabric.request, sizeof(data));
        if (i > 0)
            data[i - 1] ^= 0x80;
        if (i > 16 && i <= 20)
            continue; /* a generation that is newer is believed */
        fabric_request(to, 0, data);
        fabric_request(to, 1, data);
    }
    run(NULL);
    for (int i = 0; i < 200; i++) {
        rondo_proxy_pass(&sides[0].proxy);
        rondo_proxy_pass(&sides[1].proxy);
    }
    expect_all();
    assert_int_equal(fabric.accepted, accepted);
    tear_down();
}

static void expect_loss(const char *why)
{
    assert_true(is_lost(0) || is_lost(1));
    const struct rondo_proxy_loss *loss = sides[is_lost(0) ? 0 : 1].proxy.losses;
    assert_non_null(loss);
    assert_int_equal(loss->peer, is_lost(0) ? 1 : 0);
    assert_string_equal(loss->network, "rdma");
    if (strstr(loss->why, why) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", loss->why, why);
    leave(NULL); /* ports come to rest */
    tear_down();
}

static void cut_all(void)
{
    if (connectors[0].received > 50)
        fabric.cut[1][0] = fabric.cut[1][1] = 1;
}

/* No way is left: the peer is lost in time. */
static void test_lost(void **unused)
{
    (void) unused;
    set_up(12, 2, RONDO_SLOTS_WITH_COUNTERS);
    patience = 700;
    goal = 300;
    int64_t begin = rondo_clock_ms();
    run(cut_all);
    assert_true(rondo_clock_ms() - begin >= 700);
    expect_loss("a queue pair could not be made again: ");
}

/* Connections are made, and nothing goes by them: that is no way, either. */
static void lose_all(void)
{
    if (connectors[0].received > 50)
        fabric.lose_posts = 1;
}

static void test_useless(void **unused)
{
    (void) unused;
    set_up(13, 2, RONDO_SLOTS_WITH_COUNTERS);
    patience = 700;
    goal = 300;
    run(lose_all);
    expect_loss("retries exceeded");
}

/* A peer that leaves while queue pairs break gets all of its slots. */
static void test_leave(void **unused)
{
    (void) unused;
    for (unsigned seed = 21; seed <= 24; seed++) {
        set_up(seed, 2, seed % 2 ? RONDO_SLOTS_APART : RONDO_SLOTS_WITH_COUNTERS);
        goal = 200;
        breaks = 5;
        run(break_one);
        goal += 2;
        for (int which = 0; which < CONNECTORS; which++)
            fill(which);
        breaks = 10;
        leave(break_one);
        tear_down();
    }
}

#endif

int main(void)
{
#if RONDO_WITH_VERBS
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_fault),  cmocka_unit_test(test_breaks),        cmocka_unit_test(test_breaks_apart),
        cmocka_unit_test(test_sent_once), cmocka_unit_test(test_refused_posts), cmocka_unit_test(test_refused_pairs),
        cmocka_unit_test(test_asks),      cmocka_unit_test(test_rails),         cmocka_unit_test(test_cut),
        cmocka_unit_test(test_requests),  cmocka_unit_test(test_lost),          cmocka_unit_test(test_useless),
        cmocka_unit_test(test_leave),     cmocka_unit_test(test_old_reports),   cmocka_unit_test(test_idle_breaks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
#else
    printf("[  PASSED  ] 0 test(s): built without verbs\n");
    return 0;
#endif
}
