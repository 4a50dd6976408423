/*
 * A simulation of how a job starts, each rank on a host of its own: from the first connection to the root until rondo_init has
 * returned on all ranks. Each rank does what lib/bootstrap, lib/control and lib/connection/exchange.c do, message by message;
 * the lengths are those of their headers. What a message costs a processor at either end is given, apart for the root's end;
 * the network has a latency, and each host sends at a rate. Prints a line of JSON for each size; with --each, one for each rank
 * before it; with --one-host, of ranks that share a host, as far as that changes what they say; with --roots N, of a job of so
 * many roots, each on the host of its first rank but with a processor of its own, as they have by the launcher's key store.
 *
 * test/scale/scale.py compares the counts with those of real jobs, which must be the same, and measures the costs.
 */
#include "lib/bootstrap/first_root.h"
#include "lib/bootstrap/frame_connection.h"
#include "lib/bootstrap/handshake.h"
#include "lib/bootstrap/root.h"
#include "lib/connection/mailbox.h"
#include "lib/control/links.h"
#include "transport/peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    FRAME = RONDO_FRAME_HEADER + RONDO_FRAME_TAG,
    PLACES_PART = RONDO_FRAME_SPARE_DATA / RONDO_ADDRESS_STORED,
    ROOT_PART = RONDO_ROOT_PLACES
};

/* The exchanges of rondo_init. */
static const struct {
    size_t bytes; /* that a rank contributes */
    int spreads;  /* all get all of it; else only that all have come */
    int by_hosts; /* only made where the ranks are on several hosts */
} exchanges[] = {{sizeof(struct rondo_peer), 1, 0}, {4, 1, 1}, {8, 1, 0}, {1, 0, 0}};
enum { EXCHANGES = sizeof(exchanges) / sizeof(exchanges[0]) };

enum kind {
    CONNECT,
    CHALLENGE,
    HELLO,
    VERDICT,
    JOB,
    LISTENING,
    PLACES_OF_ROOT,
    LINKED,
    READY,
    FIRST_ROOT,
    SHARE,
    PLACES_OF_SHARE,
    PLACES_OF_ALL,
    BEGIN,
    NEIGHBOUR,
    PLACES,
    UP,
    DOWN
};

struct event {
    double at; /* seconds */
    uint64_t number;
    uint64_t bytes; /* with heads and tags */
    int to, from;   /* the roots have the numbers after the last rank */
    uint32_t messages;
    uint8_t kind, exchange;
};

struct rank {
    double busy, sending; /* until when its processor and its network interface are */
    uint32_t open, told;  /* by step: the connection to a neighbour, and that its places have been told */
    uint32_t heard;       /* by step: the neighbour's places have come */
    int is_linked, is_ready;
    enum { NONE, BEING_MADE, OPEN } to_parent;
    int exchange, has_passed_up;                         /* the exchange that it is in */
    uint32_t parts_up[EXCHANGES], parts_down[EXCHANGES]; /* that have come */
    struct rondo_control_costs costs;
};

/* A root: how many of its members have answered each step. Members of the first are its ranks and the other roots. */
struct root {
    int joined, listening, linked;
    enum {
        UNKNOWN,
        REACHED,
        KNOWN
    } first; /* of another: whether its ranks have told it of the first root, and that is reached */
};

static struct {
    int size, on_one_host;
    int wanted, roots; /* as asked for, and at most one a rank */
    struct root *root;
    int steps;                                           /* log2(size), rounded up: neighbours of a rank */
    double message, of_root, byte, setup, latency, rate; /* seconds; bytes a second. of_root: of a message at the root's end */
    struct rank *ranks;                                  /* the roots are those after the last */
    struct event *events;                                /* a heap */
    size_t count, capacity;
    uint64_t numbers, messages, bytes; /* events; and those of all messages, the root's too */
    double formed, over;               /* when the job had formed; when rondo_init had returned on all */
} job;

/* ---- events ---- */

static int is_before(const struct event *a, const struct event *b)
{
    return a->at != b->at ? a->at < b->at : a->number < b->number;
}

static void push(struct event event)
{
    if (job.count == job.capacity) {
        job.capacity = job.capacity == 0 ? 1024 : 2 * job.capacity;
        job.events = realloc(job.events, job.capacity * sizeof(*job.events));
        if (job.events == NULL) {
            fprintf(stderr, "startup: no memory for %zu events\n", job.capacity);
            exit(1);
        }
    }
    size_t at = job.count++;
    event.number = job.numbers++;
    for (; at > 0 && is_before(&event, &job.events[(at - 1) / 2]); at = (at - 1) / 2)
        job.events[at] = job.events[(at - 1) / 2];
    job.events[at] = event;
}

static struct event pop(void)
{
    const struct event first = job.events[0], last = job.events[--job.count];
    size_t at = 0, child;
    while ((child = 2 * at + 1) < job.count) {
        child += child + 1 < job.count && is_before(&job.events[child + 1], &job.events[child]);
        if (!is_before(&job.events[child], &last))
            break;
        job.events[at] = job.events[child];
        at = child;
    }
    job.events[at] = last;
    return first;
}

static double processing(int rank, uint32_t messages, uint64_t bytes)
{
    return messages * (rank >= job.size ? job.of_root : job.message) + (double) bytes * job.byte;
}

/* A rank sends when its processor comes to it, and its interface has sent what it had before. */
static void send_many(int from, int to, enum kind kind, int exchange, uint32_t messages, uint64_t bytes)
{
    struct rank *sender = &job.ranks[from];
    job.messages += messages;
    job.bytes += bytes;
    sender->busy += processing(from, messages, bytes);
    sender->sending = (sender->busy > sender->sending ? sender->busy : sender->sending) + (double) bytes / job.rate;
    push((struct event){.at = sender->sending + job.latency,
                        .bytes = bytes,
                        .to = to,
                        .from = from,
                        .messages = messages,
                        .kind = (uint8_t) kind,
                        .exchange = (uint8_t) exchange});
}

static int root_of(int rank)
{
    return job.size + rondo_job_share(rank, job.size, job.roots);
}

static int first_rank(int share)
{
    return rondo_job_first_rank(share, job.size, job.roots);
}

static void send_one(int from, int to, enum kind kind, uint64_t bytes)
{
    send_many(from, to, kind, 0, 1, bytes);
}

/* What a rank says to another over an open connection counts. */
static void say(int from, int to, enum kind kind, int exchange, uint32_t messages, uint64_t data)
{
    const uint64_t bytes = data + (uint64_t) messages * FRAME;
    job.ranks[from].costs.messages += messages;
    job.ranks[from].costs.bytes += bytes;
    send_many(from, to, kind, exchange, messages, bytes);
}

/* ---- connections ---- */

static int neighbour(int rank, int step)
{
    return (rank + (1 << step)) % job.size;
}

/* The step at which a rank is another's neighbour; -1: it is none. */
static int step_to(int rank, int other)
{
    const int distance = (other - rank + job.size) % job.size;
    for (int step = 0; step < job.steps; step++)
        if (distance == 1 << step)
            return step;
    return -1;
}

static int parent_of(int rank)
{
    return rank & (rank - 1);
}

static int span(int rank)
{
    const int rest = job.size - rank, most = rank == 0 ? rest : rank & -rank;
    return most < rest ? most : rest;
}

/* Tells places, and that the rank is linked, once that can be (rondo_links_share_places). */
static void share(int number)
{
    struct rank *rank = &job.ranks[number];
    int all = 1;
    for (int step = 0; step < job.steps && all; step++) {
        const int count = 1 << step < job.size - (1 << step) ? 1 << step : job.size - (1 << step);
        if ((rank->open >> step & 1) != 0 && (rank->told >> step & 1) == 0) {
            rank->told |= 1u << step;
            say(number, neighbour(number, step), PLACES, 0, (uint32_t) ((count + PLACES_PART - 1) / PLACES_PART),
                (uint64_t) count * RONDO_ADDRESS_STORED);
        }
        all = (rank->told & rank->heard) >> step & 1;
    }
    if (all && !rank->is_linked) {
        rank->is_linked = 1;
        send_one(number, root_of(number), LINKED, FRAME);
    }
}

/* ---- exchanges ---- */

static uint32_t parts_of(uint64_t bytes)
{
    return (uint32_t) ((bytes + RONDO_MAIL_PART_MOST - 1) / RONDO_MAIL_PART_MOST);
}

/* Of what all children contribute. */
static uint32_t parts_from_children(int rank, int exchange)
{
    uint32_t parts = 0;
    for (int distance = 1; distance < span(rank); distance *= 2)
        parts += parts_of((uint64_t) span(rank + distance) * exchanges[exchange].bytes);
    return parts;
}

static uint64_t whole_down(int exchange)
{
    return exchanges[exchange].spreads ? (uint64_t) job.size * exchanges[exchange].bytes : exchanges[exchange].bytes;
}

static uint64_t part_bytes(uint64_t whole, uint32_t part)
{
    const uint64_t rest = whole - (uint64_t) part * RONDO_MAIL_PART_MOST;
    return rest < RONDO_MAIL_PART_MOST ? rest : RONDO_MAIL_PART_MOST;
}

static void mail(int from, int to, enum kind kind, int exchange, uint64_t data)
{
    say(from, to, kind, exchange, 1, sizeof(struct rondo_mail_header) + data);
}

/* The first one is followed by what a rank does by itself. */
static void finish_exchange(int number)
{
    struct rank *rank = &job.ranks[number];
    rank->has_passed_up = 0;
    rank->busy += rank->exchange == 0 ? job.setup : 0;
    rank->exchange++;
    while (rank->exchange < EXCHANGES && exchanges[rank->exchange].by_hosts && job.on_one_host)
        rank->exchange++;
    if (rank->exchange == EXCHANGES && rank->busy > job.over)
        job.over = rank->busy;
}

static void pass_down(int number, int exchange, uint32_t part)
{
    for (int distance = 1; distance < span(number); distance *= 2)
        mail(number, number + distance, DOWN, exchange, part_bytes(whole_down(exchange), part));
}

/* Passes up what has come from the children, once it has; the first rank then has the whole. */
static void pass_up(int number)
{
    struct rank *rank = &job.ranks[number];
    for (int exchange; (exchange = rank->exchange) < EXCHANGES && rank->is_ready && !rank->has_passed_up;) {
        const int parent = parent_of(number);
        if (rank->parts_up[exchange] < parts_from_children(number, exchange))
            return;
        if (number == 0) {
            for (uint32_t part = 0; part < parts_of(whole_down(exchange)); part++)
                pass_down(number, exchange, part);
            finish_exchange(number);
            continue;
        }
        if (rank->to_parent == NONE) {
            rank->to_parent = step_to(number, parent) >= 0 ? OPEN : BEING_MADE;
            if (rank->to_parent == BEING_MADE)
                send_one(number, parent, CONNECT, 0);
        }
        if (rank->to_parent != OPEN)
            return;
        rank->has_passed_up = 1;
        const uint64_t whole = (uint64_t) span(number) * exchanges[exchange].bytes;
        for (uint32_t part = 0; part < parts_of(whole); part++)
            mail(number, parent, UP, exchange, part_bytes(whole, part));
    }
}

static void take_down(int number, int exchange)
{
    struct rank *rank = &job.ranks[number];
    pass_down(number, exchange, rank->parts_down[exchange]);
    if (++rank->parts_down[exchange] == parts_of(whole_down(exchange))) {
        finish_exchange(number);
        pass_up(number);
    }
}

/* ---- what arrives ---- */

/* To the ranks of a root's share. */
static void tell_share(int share, enum kind kind, uint64_t bytes)
{
    for (int rank = first_rank(share); rank < first_rank(share + 1); rank++)
        send_one(job.size + share, rank, kind, bytes + FRAME);
}

/* Of so many ranks, from one root to another. */
static void tell_places(int from, int to, enum kind kind, int ranks)
{
    const uint32_t frames = (uint32_t) (ranks + ROOT_PART - 1) / ROOT_PART;
    send_many(from, to, kind, 0, frames, (uint64_t) ranks * RONDO_ADDRESS_STORED + (uint64_t) frames * FRAME);
}

/* Of a connection that this rank makes: to the root, a neighbour, or the parent. */
static void open_connection(int number, int peer)
{
    struct rank *rank = &job.ranks[number];
    if (peer > job.size)
        send_one(number, peer, FIRST_ROOT, RONDO_FIRST_ROOT_DATA + FRAME);
    if (peer >= job.size)
        return;
    const int step = step_to(number, peer);
    rank->costs.made++;
    say(number, peer, BEGIN, 0, 1, 8);
    if (step < 0) {
        rank->to_parent = OPEN;
        pass_up(number);
        return;
    }
    say(number, peer, NEIGHBOUR, 0, 1, 0);
    rank->open |= 1u << step;
    share(number);
}

static uint64_t places_of_a_rank(void)
{
    return (uint64_t) (1 + job.steps) * RONDO_ADDRESS_STORED;
}

/* All members of the first root have answered a step, or it has told another root so: the root's ranks are told of the next. */
static void begin_listening(int share)
{
    for (int other = 1; share == 0 && other < job.roots; other++)
        send_one(job.size, job.size + other, JOB, RONDO_ROOT_JOB + FRAME);
    tell_share(share, JOB, RONDO_ROOT_JOB);
}

static void begin_linking(int share)
{
    for (int other = 1; share == 0 && other < job.roots; other++)
        tell_places(job.size, job.size + other, PLACES_OF_ALL, job.size);
    tell_share(share, PLACES_OF_ROOT, places_of_a_rank());
}

static void end_forming(int share)
{
    for (int other = 1; share == 0 && other < job.roots; other++)
        send_one(job.size, job.size + other, READY, FRAME);
    tell_share(share, READY, 0);
}

static void take_at_root(const struct event *event)
{
    const int number = event->to, share = number - job.size;
    const int ranks = first_rank(share + 1) - first_rank(share), members = ranks + (share == 0 ? job.roots - 1 : 0);
    struct root *root = &job.root[share];
    switch ((enum kind) event->kind) {
    case CONNECT:
        send_one(number, event->from, CHALLENGE, RONDO_HANDSHAKE_CHALLENGE);
        break;
    case CHALLENGE: /* of the first root */
        send_one(number, event->from, HELLO, RONDO_HANDSHAKE_HELLO);
        break;
    case HELLO:
        send_one(number, event->from, VERDICT, RONDO_HANDSHAKE_VERDICT);
        if (event->from < job.size && ++root->joined == members && share == 0)
            begin_listening(0);
        else if (root->joined == ranks && root->first == KNOWN && share > 0 && event->from < job.size)
            send_one(number, job.size, SHARE, 4 + FRAME);
        break;
    case FIRST_ROOT:
        if (root->first == UNKNOWN) {
            root->first = REACHED;
            send_one(number, job.size, CONNECT, 0);
        }
        break;
    case VERDICT:
        root->first = KNOWN;
        if (root->joined == ranks)
            send_one(number, job.size, SHARE, 4 + FRAME);
        break;
    case SHARE:
        if (++root->joined == members)
            begin_listening(0);
        break;
    case JOB:
        begin_listening(share);
        break;
    case LISTENING:
    case PLACES_OF_SHARE:
        if (++root->listening < members)
            break;
        if (share == 0)
            begin_linking(0);
        else
            tell_places(number, job.size, PLACES_OF_SHARE, ranks);
        break;
    case PLACES_OF_ALL:
        begin_linking(share);
        break;
    case READY:
        end_forming(share);
        break;
    default:
        if (++root->linked < members)
            break;
        if (share == 0)
            end_forming(0);
        else
            send_one(number, job.size, LINKED, FRAME);
    }
}

static void take(const struct event *event)
{
    struct rank *rank = &job.ranks[event->to];
    switch ((enum kind) event->kind) {
    case CONNECT:
        send_one(event->to, event->from, CHALLENGE, RONDO_HANDSHAKE_CHALLENGE);
        break;
    case CHALLENGE:
        send_one(event->to, event->from, HELLO, RONDO_HANDSHAKE_HELLO);
        break;
    case HELLO:
        rank->costs.accepted++;
        send_one(event->to, event->from, VERDICT, RONDO_HANDSHAKE_VERDICT);
        break;
    case VERDICT:
        open_connection(event->to, event->from);
        break;
    case JOB:
        send_one(event->to, root_of(event->to), LISTENING, 4 + FRAME);
        break;
    case PLACES_OF_ROOT:
        for (int step = 0; step < job.steps; step++)
            send_one(event->to, neighbour(event->to, step), CONNECT, 0);
        break;
    case READY:
        rank->is_ready = 1;
        job.formed = rank->busy > job.formed ? rank->busy : job.formed;
        pass_up(event->to);
        break;
    case PLACES:
        rank->heard |= 1u << step_to(event->from, event->to);
        share(event->to);
        break;
    case UP:
        rank->parts_up[event->exchange]++;
        pass_up(event->to);
        break;
    case DOWN:
        take_down(event->to, event->exchange);
        break;
    default:
        break;
    }
}

/* ---- a job ---- */

/* Seconds that a byte of a message takes at either end: its tag, and that it is copied twice. */
static double measure_byte(void)
{
    enum { BYTES = 1 << 20, ROUNDS = 16 };
    unsigned char key[32] = {1}, tag[RONDO_SHA256_BYTES], *from = calloc(1, BYTES), *to = malloc(BYTES);
    struct timespec began, ended;
    clock_gettime(CLOCK_MONOTONIC, &began);
    for (int round = 0; round < ROUNDS && from != NULL && to != NULL; round++) {
        struct rondo_hmac hmac;
        memcpy(to, from, BYTES);
        rondo_hmac_begin(&hmac, key, sizeof(key));
        rondo_hmac_add(&hmac, to, BYTES);
        rondo_hmac_end(&hmac, tag);
        memcpy(from, to, BYTES);
        from[0] = tag[0];
    }
    clock_gettime(CLOCK_MONOTONIC, &ended);
    free(from);
    free(to);
    return ((double) (ended.tv_sec - began.tv_sec) + 1e-9 * (double) (ended.tv_nsec - began.tv_nsec)) / BYTES / ROUNDS;
}

static void simulate(int size)
{
    job.size = size;
    for (job.steps = 0; 1 << job.steps < size;)
        job.steps++;
    job.roots = job.wanted < size ? job.wanted : size;
    job.ranks = calloc((size_t) (size + job.roots), sizeof(*job.ranks));
    job.root = calloc((size_t) job.roots, sizeof(*job.root));
    if (job.ranks == NULL || job.root == NULL) {
        fprintf(stderr, "startup: no memory for %d ranks\n", size);
        exit(1);
    }
    job.numbers = job.messages = job.bytes = 0;
    job.formed = job.over = 0;
    for (int rank = 0; rank < size; rank++)
        send_one(rank, root_of(rank), CONNECT, 0);
    while (job.count > 0) {
        const struct event event = pop();
        struct rank *rank = &job.ranks[event.to];
        rank->busy = (event.at > rank->busy ? event.at : rank->busy) + processing(event.to, event.messages, event.bytes);
        if (event.to >= size)
            take_at_root(&event);
        else
            take(&event);
    }
}

static void print_costs(const struct rondo_control_costs *costs)
{
    printf("\"made\": %llu, \"accepted\": %llu, \"messages\": %llu, \"bytes\": %llu", (unsigned long long) costs->made,
           (unsigned long long) costs->accepted, (unsigned long long) costs->messages, (unsigned long long) costs->bytes);
}

static void print(int each)
{
    struct rondo_control_costs most = {0}, sum = {0};
    for (int rank = 0; rank < job.size; rank++) {
        const struct rondo_control_costs *costs = &job.ranks[rank].costs;
        const uint64_t of[] = {costs->made, costs->accepted, costs->messages, costs->bytes};
        uint64_t *all[] = {&most.made, &most.accepted, &most.messages, &most.bytes},
                 *added[] = {&sum.made, &sum.accepted, &sum.messages, &sum.bytes};
        for (int i = 0; i < 4; i++) {
            *all[i] = of[i] > *all[i] ? of[i] : *all[i];
            *added[i] += of[i];
        }
        if (each) {
            printf("{\"rank\": %d, ", rank);
            print_costs(costs);
            printf("}\n");
        }
    }
    printf(
        "{\"ranks\": %d, \"roots\": %d, \"formed_s\": %.6f, \"init_s\": %.6f, \"messages\": %llu, \"bytes\": %llu, \"most\": {",
        job.size, job.roots, job.formed, job.over, (unsigned long long) job.messages, (unsigned long long) job.bytes);
    print_costs(&most);
    printf("}, \"sum\": {");
    print_costs(&sum);
    printf("}}\n");
    free(job.ranks);
    free(job.root);
    if (job.over == 0) {
        fprintf(stderr, "startup: a job of %d ranks has not started\n", job.size);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    const char *sizes = NULL;
    double roots = 1, message_us = 10, root_us = 10, byte_ns = measure_byte() * 1e9, setup_ms = 0, latency_us = 20, gbit = 10;
    int each = 0, wrong = argc < 2;
    const struct {
        const char *name;
        double *value;
    } options[] = {{"--roots", &roots},       {"--message-us", &message_us}, {"--root-us", &root_us}, {"--byte-ns", &byte_ns},
                   {"--setup-ms", &setup_ms}, {"--latency-us", &latency_us}, {"--gbit", &gbit}};
    for (int i = 1; i < argc && !wrong; i++) {
        int known = 0;
        if (strcmp(argv[i], "--each") == 0)
            known = each = 1;
        else if (strcmp(argv[i], "--one-host") == 0)
            known = job.on_one_host = 1;
        else if (strcmp(argv[i], "--ranks") == 0 && i + 1 < argc)
            known = (sizes = argv[++i]) != NULL;
        for (size_t option = 0; option < sizeof(options) / sizeof(options[0]) && !known && i + 1 < argc; option++)
            if (strcmp(argv[i], options[option].name) == 0) {
                char *end;
                *options[option].value = strtod(argv[++i], &end);
                known = *end == '\0' && *options[option].value >= 0;
            }
        wrong = !known;
    }
    if (wrong || sizes == NULL || gbit <= 0 || roots < 1 || roots > RONDO_JOB_ROOTS_MOST) {
        fprintf(
            stderr,
            "usage: startup --ranks N,... [--each] [--one-host] [--roots N] [--message-us US] [--root-us US] [--byte-ns NS]\n"
            "               [--setup-ms MS] [--latency-us US] [--gbit GBIT]\n"
            "Costs of a message and a byte are those of either end; setup is what a rank does by itself.\n");
        return 2;
    }
    job.wanted = (int) roots;
    job.message = 1e-6 * message_us;
    job.of_root = 1e-6 * root_us;
    job.byte = 1e-9 * byte_ns;
    job.setup = 1e-3 * setup_ms;
    job.latency = 1e-6 * latency_us;
    job.rate = 1e9 / 8 * gbit;
    fprintf(stderr,
            "startup: %.3g us a message, %.3g us at the root, and %.3g ns a byte at either end, %.3g ms of a rank's own\n",
            message_us, root_us, byte_ns, setup_ms);
    for (const char *at = sizes; *at != '\0';) {
        char *end;
        const long size = strtol(at, &end, 10);
        if (end == at || (*end != ',' && *end != '\0') || size < 2 || size > RONDO_CONTROL_SIZE_MAX) {
            fprintf(stderr, "startup: --ranks %s: sizes must be 2 to %d\n", sizes, RONDO_CONTROL_SIZE_MAX);
            return 2;
        }
        simulate((int) size);
        print(each);
        at = *end == ',' ? end + 1 : end;
    }
    return 0;
}
