/*
 * Inline execution: operations that run on the calling thread before a daemon knows of them (rondo_run_inline). An operation
 * that is not waited for never runs inline; an operation that gets stuck continues where it stopped once a daemon has taken it
 * over; and threads that start operations of one lane at the same time do not disturb each other.
 */
#include "test/multirank/ranks.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static long ranks = 2, seed = 1, rounds = 60, threads = 3;
static const char *scenario = "late";

enum {
    CALLS = 1000,
    WORDS_MAX = 900,
    TINY_MAX = 32, /* words of a tiny slot */
    MESSAGES = 80, /* more than there are tiny slots */
};

static uint64_t word(int from, long round, int message, int i)
{
    return ranks_hash((uint64_t) seed << 56 ^ (uint64_t) from << 48 ^ (uint64_t) message << 40 ^ (uint64_t) round << 16 ^
                      (uint64_t) i);
}

/* ---- no daemon runs ---- */

static void alone(struct rank *me)
{
    int64_t in = 1, out;
    rondo_stats_t before, after;
    /* The lane's first operation is submitted to the daemon. */
    MUST(rondo_allreduce(&in, &out, 1, RONDO_INT64, RONDO_SUM, me->world));
    ranks_sleep(0.2);
    MUST(rondo_get_stats(me->runtime, &before));
    for (int i = 0; i < CALLS; i++)
        MUST(rondo_allreduce(&in, &out, 1, RONDO_INT64, RONDO_SUM, me->world));
    MUST(rondo_get_stats(me->runtime, &after));
    CHECK(out == me->size, "the sum is %lld", (long long) out);
    CHECK(after.completed - before.completed == CALLS, "%llu operations",
          (unsigned long long) (after.completed - before.completed));
    CHECK(after.daemon_starts == before.daemon_starts, "%llu daemons in %d calls",
          (unsigned long long) (after.daemon_starts - before.daemon_starts), CALLS);
}

/* ---- stuck ---- */

static void check_words(const uint64_t *words, int count, int from, long round, int message)
{
    int bad = 0;
    for (int i = 0; i < count; i++)
        bad += words[i] != word(from, round, message, i);
    CHECK(bad == 0, "round %ld: %d of %d words of message %d from %d are wrong", round, bad, count, message, from);
}

/* One rank is late, for sums and for messages: more messages than there are slots wait for it, or it for them. */
static void late(struct rank *me)
{
    const int next = (me->rank + 1) % me->size, previous = (me->rank + me->size - 1) % me->size;
    uint64_t random = (uint64_t) seed, words[WORDS_MAX], sums[WORDS_MAX];
    rondo_stats_t stats;
    for (long round = 0; round < rounds; round++) {
        STEP("round %ld", round);
        const int count = 1 + ranks_below(&random, round % 2 == 0 ? WORDS_MAX : TINY_MAX),
                  sleeper = ranks_below(&random, me->size);
        const int odd = (int) (ranks_random(&random) % 2);
        if (me->rank == sleeper)
            ranks_sleep(0.004);
        for (int i = 0; i < count; i++)
            words[i] = word(me->rank, round, 0, i);
        MUST(rondo_allreduce(words, sums, (size_t) count, RONDO_UINT64, RONDO_SUM, me->world));
        for (int i = 0; i < count; i++) {
            uint64_t expected = 0;
            for (int r = 0; r < me->size; r++)
                expected += word(r, round, 0, i);
            if (sums[i] != expected)
                CHECK(0, "round %ld: sum %d of %d is wrong", round, i, count);
        }
        for (int message = 1; message <= MESSAGES && me->size % 2 == 0; message++) {
            if (me->rank % 2 == odd) {
                for (int i = 0; i < count; i++)
                    words[i] = word(me->rank, round, message, i);
                MUST(rondo_send(words, (size_t) count, RONDO_UINT64, next, me->world));
            } else {
                if (message == 2 && me->rank == sleeper)
                    ranks_sleep(0.002);
                MUST(rondo_recv(sums, (size_t) count, RONDO_UINT64, previous, me->world));
                check_words(sums, count, previous, round, message);
            }
        }
    }
    MUST(rondo_get_stats(me->runtime, &stats));
    CHECK(stats.preemptions > 0, "nothing got stuck in %ld rounds", rounds);
}

/* One receiver of a multicast connector is late, and the root has more to send than there are slots: it waits for that one, not
 * for those that have taken all. */
static void late_receiver(struct rank *me)
{
    uint64_t words[TINY_MAX];
    for (long round = 0; round < rounds; round++) {
        const int root = (int) (round % me->size), sleeper = (root + 1 + (int) (round / me->size) % (me->size - 1)) % me->size;
        STEP("round %ld", round);
        if (me->rank == sleeper)
            ranks_sleep(0.01);
        for (int message = 0; message < 2 * MESSAGES; message++) {
            const int count = 1 + message % TINY_MAX;
            for (int i = 0; i < count; i++)
                words[i] = me->rank == root ? word(root, round, message, i) : 0;
            MUST(rondo_bcast(words, (size_t) count, RONDO_UINT64, root, me->world));
            check_words(words, count, root, round, message);
        }
    }
}

/* ---- in groups ---- */

enum { GROUP_MOST = 6, GROUP_WORDS = 24 };

/* The peer of a message on the ring; odd messages go round the other way. */
static int peer_of(const struct rank *me, int message, int sends)
{
    const int right = (message % 2 == 0) == sends;
    return (me->rank + (right ? 1 : me->size - 1)) % me->size;
}

/* Adds a member to the group: sends or receives the number of a message. */
static void add_member(struct rank *me, int message, int sends, uint64_t *words, int count, rondo_request_t *request)
{
    const int peer = peer_of(me, message, sends);
    const size_t length = (size_t) (count + message); /* different lengths: each has an entry of its own in the request cache */
    if (request != NULL && sends)
        MUST(rondo_isend(words, length, RONDO_UINT64, peer, me->world, request));
    else if (request != NULL)
        MUST(rondo_irecv(words, length, RONDO_UINT64, peer, me->world, request));
    else if (sends)
        MUST(rondo_send(words, length, RONDO_UINT64, peer, me->world));
    else
        MUST(rondo_recv(words, length, RONDO_UINT64, peer, me->world));
}

/* The arrays of a call belong to the application again when it returns, in a group too. */
static void arrays(struct rank *me)
{
    enum { SUMS = 64, MOST = 8 };
    int64_t in[SUMS] = {0}, out[SUMS], all[MOST] = {0};
    size_t counts[MOST], displacements[MOST];
    for (size_t count = 1; count <= SUMS; count++) /* so that every entry of the request cache is taken */
        MUST(rondo_allreduce(in, out, count, RONDO_INT64, RONDO_SUM, me->world));
    for (int r = 0; r < MOST; r++)
        counts[r] = 1, displacements[r] = (size_t) r;
    in[0] = me->rank + 1;
    MUST(rondo_group_start(me->world));
    MUST(rondo_allgatherv(in, 1, all, counts, displacements, RONDO_INT64, me->world));
    for (int r = 0; r < MOST; r++)
        counts[r] = 0, displacements[r] = 0;
    MUST(rondo_group_end(me->world));
    for (int r = 0; r < me->size && r < MOST; r++)
        CHECK(all[r] == r + 1, "%lld from rank %d", (long long) all[r], r);
}

/* Sends messages both ways around a ring in groups, mostly the same messages again. Each rank has an order of its own between
 * its sends and its receives, and may have a member that is not waited for. */
static void groups(struct rank *me)
{
    uint64_t common = (uint64_t) seed, own = ranks_hash((uint64_t) (seed * 100 + me->rank)),
             places[2][2][GROUP_MOST][GROUP_WORDS];
    for (long round = 0; round < rounds; round++) {
        const int messages = 1 + ranks_below(&common, ranks_below(&common, 4) == 0 ? GROUP_MOST : 2),
                  count = ranks_below(&common, 8) == 0 ? 7 : 3, sleeper = ranks_below(&common, 8 * me->size);
        int next[2] = {0, 0}, unwaited = ranks_below(&own, 6) == 0 ? ranks_below(&own, 2 * messages) : -1;
        const int place = ranks_below(&own, 3) == 0; /* mostly the same entry */
        uint64_t(*out)[GROUP_WORDS] = places[place][0], (*in)[GROUP_WORDS] = places[place][1];
        rondo_request_t request = NULL;
        STEP("group of %d, round %ld", messages, round);
        for (int m = 0; m < messages; m++)
            for (int i = 0; i < GROUP_WORDS; i++)
                out[m][i] = word(me->rank, round, m, i);
        memset(in, 0, sizeof(places[0][1]));
        if (me->rank == sleeper)
            ranks_sleep(0.001);
        MUST(rondo_group_start(me->world));
        for (int left = 2 * messages; left > 0; left--) {
            const int sends = next[0] == messages ? 1 : next[1] == messages ? 0 : ranks_below(&own, 2);
            const int m = next[sends]++;
            add_member(me, m, sends, sends ? out[m] : in[m], count, unwaited == left - 1 ? &request : NULL);
        }
        MUST(rondo_group_end(me->world));
        if (request != NULL)
            MUST(rondo_wait(request));
        for (int m = 0; m < messages; m++) {
            check_words(in[m], count + m, peer_of(me, m, 0), round, m);
            CHECK(in[m][count + m] == 0, "round %ld: message %d is longer than %d words", round, m, count + m);
        }
    }
}

/* ---- at the same time ---- */

struct crew {
    struct rank *me;
    uint64_t sent, received;
};

/* Messages of several threads match in any order: each is one number, and the numbers add up. */
static void *sender(void *argument)
{
    struct crew *crew = argument;
    const int peer = 1 - crew->me->rank;
    uint64_t random = (uint64_t) (uintptr_t) &random ^ (uint64_t) seed, words[WORDS_MAX];
    ranks_current = crew->me->rank;
    for (long round = 0; round < rounds; round++) {
        const uint64_t number = ranks_random(&random);
        rondo_request_t request;
        for (int i = 0; i < WORDS_MAX; i++)
            words[i] = number;
        if (ranks_below(&random, 2) == 0) {
            MUST(rondo_send(words, WORDS_MAX, RONDO_UINT64, peer, crew->me->world));
        } else {
            MUST(rondo_isend(words, WORDS_MAX, RONDO_UINT64, peer, crew->me->world, &request));
            MUST(rondo_wait(request));
        }
        __atomic_fetch_add(&crew->sent, number, __ATOMIC_RELAXED);
    }
    return NULL;
}

static void *receiver(void *argument)
{
    struct crew *crew = argument;
    const int peer = 1 - crew->me->rank;
    uint64_t random = (uint64_t) (uintptr_t) &random ^ (uint64_t) seed, words[WORDS_MAX];
    ranks_current = crew->me->rank;
    for (long round = 0; round < rounds; round++) {
        rondo_request_t request;
        int mixed = 0;
        memset(words, 0, sizeof(words));
        if (ranks_below(&random, 2) == 0) {
            MUST(rondo_recv(words, WORDS_MAX, RONDO_UINT64, peer, crew->me->world));
        } else {
            MUST(rondo_irecv(words, WORDS_MAX, RONDO_UINT64, peer, crew->me->world, &request));
            MUST(rondo_wait(request));
        }
        for (int i = 1; i < WORDS_MAX; i++)
            mixed += words[i] != words[0];
        CHECK(mixed == 0, "round %ld: %d words are another message's", round, mixed);
        __atomic_fetch_add(&crew->received, words[0], __ATOMIC_RELAXED);
    }
    return NULL;
}

static void together(struct rank *me)
{
    struct crew crew = {.me = me};
    pthread_t members[32];
    const int count = threads < 1 ? 1 : threads > 16 ? 16 : (int) threads;
    int64_t sums[2], own[2];
    for (int t = 0; t < 2 * count; t++)
        if (pthread_create(&members[t], NULL, t % 2 == 0 ? sender : receiver, &crew) != 0)
            ranks_die(__FILE__, __LINE__, "pthread_create", RONDO_ERR_SYSTEM);
    for (int t = 0; t < 2 * count; t++)
        pthread_join(members[t], NULL);
    own[0] = (int64_t) crew.sent, own[1] = (int64_t) crew.received;
    MUST(rondo_allreduce(own, sums, 2, RONDO_INT64, RONDO_SUM, me->world));
    CHECK(sums[0] == sums[1], "what was received is not what was sent");
}

/* ---- in order ---- */

struct second {
    struct rank *me;
    uint64_t before, got; /* before: operations submitted before the first receive */
};

static void *receive_second(void *argument)
{
    struct second *second = argument;
    rondo_stats_t stats;
    ranks_current = second->me->rank;
    do
        MUST(rondo_get_stats(second->me->runtime, &stats));
    while (stats.submitted == second->before);
    MUST(rondo_recv(&second->got, 1, RONDO_UINT64, 0, second->me->world));
    return NULL;
}

/* Another thread starts an operation as soon as the first one runs, before any message for the first one has arrived. */
static void order(struct rank *me)
{
    for (long round = 0; round < rounds; round++) {
        uint64_t numbers[2] = {1, 2}, got;
        STEP("round %ld", round);
        MUST(rondo_barrier(me->world));
        if (me->rank == 0) {
            ranks_sleep(0.002);
            for (int i = 0; i < 2; i++)
                MUST(rondo_send(&numbers[i], 1, RONDO_UINT64, 1, me->world));
        } else if (me->rank == 1) {
            struct second second = {.me = me};
            rondo_stats_t stats;
            pthread_t thread;
            MUST(rondo_get_stats(me->runtime, &stats));
            second.before = stats.submitted;
            if (pthread_create(&thread, NULL, receive_second, &second) != 0)
                ranks_die(__FILE__, __LINE__, "pthread_create", RONDO_ERR_SYSTEM);
            ranks_sleep(0.0005);
            MUST(rondo_recv(&got, 1, RONDO_UINT64, 0, me->world));
            pthread_join(thread, NULL);
            CHECK(got == 1 && second.got == 2, "round %ld: the receive begun first got %llu, the other one %llu", round,
                  (unsigned long long) got, (unsigned long long) second.got);
        }
    }
}

static void run(struct rank *me)
{
    if (strcmp(scenario, "order") == 0)
        order(me);
    else if (strcmp(scenario, "alone") == 0)
        alone(me);
    else if (strcmp(scenario, "together") == 0)
        together(me);
    else if (strcmp(scenario, "groups") == 0)
        groups(me), arrays(me);
    else if (strcmp(scenario, "receiver") == 0)
        late_receiver(me);
    else
        late(me);
}

int main(int argc, char **argv)
{
    const struct ranks_option options[] = {
        {"--ranks", &ranks, NULL, "ranks as threads (together, order: 2); 0: from the environment"},
        {"--seed", &seed, NULL, "of counts and of who is late"},
        {"--rounds", &rounds, NULL, "of each thread"},
        {"--threads", &threads, NULL, "that send, and as many that receive, a rank (at most 16)"},
        {"--scenario", NULL, &scenario, "late, receiver, alone, together, order or groups"},
    };
    ranks_parse(argc, argv, options, sizeof(options) / sizeof(options[0]));
    ranks_run((int) ranks, NULL, run, NULL);
    return ranks_finish("inline_execution");
}
