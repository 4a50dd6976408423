/*
 * Sends and receives: matching order, groups, self sends, sends long before their receives, large and empty messages,
 * persistent requests. Each scenario is one behaviour, named on the command line.
 */
#include "test/multirank/ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long ranks = 4, seed = 1, rounds = 1;
static const char *scenario = "all";

static int32_t element(int from, int to, int number, size_t i)
{
    return (int32_t) ranks_hash((uint64_t) seed << 48 ^ (uint64_t) from << 40 ^ (uint64_t) to << 32 ^ (uint64_t) number << 24 ^
                                i);
}
/* A buffer of the device with a canary before and after it; fill writes to it, and check compares it. */
static int32_t *buffer(size_t count)
{
    size_t bytes = (count + 2) * sizeof(int32_t);
    int32_t *memory = ranks_allocate(bytes), *image = malloc(bytes);
    memset(image, 0xa5, bytes);
    ranks_put(memory, image, bytes);
    free(image);
    return memory + 1;
}
static void fill(int32_t *memory, int from, int to, int number, size_t count)
{
    int32_t *image = malloc((count + 1) * sizeof(*image));
    for (size_t i = 0; i < count; i++)
        image[i] = element(from, to, number, i);
    ranks_put(memory, image, count * sizeof(*image));
    free(image);
}
static void wipe(int32_t *memory, size_t count)
{
    int32_t *image = malloc(count * sizeof(*image));
    memset(image, 0xa5, count * sizeof(*image));
    ranks_put(memory, image, count * sizeof(*image));
    free(image);
}
static int32_t *outgoing(int from, int to, int number, size_t count)
{
    int32_t *memory = buffer(count);
    fill(memory, from, to, number, count);
    return memory;
}
static void check(const int32_t *memory, int from, int to, int number, size_t count)
{
    size_t bad = 0, first = 0;
    int32_t *image = malloc((count + 2) * sizeof(*image)), *payload = image + 1;
    ranks_get(image, memory - 1, (count + 2) * sizeof(*image));
    for (size_t i = 0; i < count; i++)
        if (payload[i] != element(from, to, number, i) && bad++ == 0)
            first = i;
    CHECK(bad == 0, "message %d from %d, %zu elements: %zu wrong, first [%zu] = %d, not %d", number, from, count, bad, first,
          payload[first], element(from, to, number, first));
    CHECK(payload[-1] == (int32_t) 0xa5a5a5a5 && payload[count] == (int32_t) 0xa5a5a5a5, "message %d from %d, %zu: overrun",
          number, from, count);
    free(image);
}
static void drop(int32_t *memory)
{
    ranks_release(memory - 1);
}

/* Many messages of different lengths between two ranks arrive in the order of the sends, whatever the forms of the calls. */
static void ordered(struct rank *me)
{
    enum { MESSAGES = 60 };
    if (me->rank > 1 || me->size < 2)
        return;
    int peer = 1 - me->rank;
    rondo_request_t requests[MESSAGES] = {NULL};
    int32_t *memory[MESSAGES];
    for (int k = 0; k < MESSAGES; k++) {
        size_t count = (size_t) (ranks_hash((uint64_t) (seed * 100 + k)) % 3000);
        int blocking = ranks_hash((uint64_t) (me->rank * 1000 + k)) % 3 == 0;
        memory[k] = me->rank == 0 ? outgoing(0, 1, k, count) : buffer(count);
        STEP("message %d", k);
        if (me->rank == 0 && blocking)
            MUST(rondo_send(memory[k], count, RONDO_INT32, peer, me->world));
        else if (me->rank == 0)
            MUST(rondo_isend(memory[k], count, RONDO_INT32, peer, me->world, &requests[k]));
        else if (blocking)
            MUST(rondo_recv(memory[k], count, RONDO_INT32, peer, me->world));
        else
            MUST(rondo_irecv(memory[k], count, RONDO_INT32, peer, me->world, &requests[k]));
    }
    MUST(rondo_waitall(MESSAGES, requests)); /* blocking calls left NULL entries */
    for (int k = 0; k < MESSAGES; k++) {
        if (me->rank == 1)
            check(memory[k], 0, 1, k, (size_t) (ranks_hash((uint64_t) (seed * 100 + k)) % 3000));
        drop(memory[k]);
    }
}

/* Blocking calls in a group: each rank sends right and receives from the left, which would deadlock without the group. */
static void ring_of(struct rank *me, size_t count, int send_first)
{
    int right = (me->rank + 1) % me->size, left = (me->rank + me->size - 1) % me->size;
    int32_t *out = outgoing(me->rank, right, 1, count), *in = buffer(count);
    MUST(rondo_group_start(me->world));
    if (send_first)
        MUST(rondo_send(out, count, RONDO_INT32, right, me->world));
    MUST(rondo_recv(in, count, RONDO_INT32, left, me->world));
    if (!send_first)
        MUST(rondo_send(out, count, RONDO_INT32, right, me->world));
    MUST(rondo_group_end(me->world));
    check(in, left, me->rank, 1, count);
    drop(out);
    drop(in);
}
static void group_ring(struct rank *me)
{
    for (int k = 0; k < 10; k++) {
        STEP("ring %d", k);
        ring_of(me, 1, k % 2);
        ring_of(me, 5000, me->rank % 2);
        ring_of(me, 300000, k % 2);
    }
}

/* Every rank sends to every rank, itself included, in one group; several groups follow each other. */
static void group_all(struct rank *me)
{
    for (int round = 0; round < 5; round++) {
        size_t count = (size_t[]){1, 1000, 0, 40000, 7}[round];
        int32_t *out[64], *in[64];
        STEP("group of all, %zu elements", count);
        MUST(rondo_group_start(me->world));
        for (int r = 0; r < me->size; r++) {
            out[r] = outgoing(me->rank, r, round, count);
            in[r] = buffer(count);
            MUST(rondo_send(out[r], count, RONDO_INT32, r, me->world));
            MUST(rondo_recv(in[r], count, RONDO_INT32, r, me->world));
        }
        MUST(rondo_group_end(me->world));
        for (int r = 0; r < me->size; r++) {
            check(in[r], r, me->rank, round, count);
            drop(out[r]);
            drop(in[r]);
        }
    }
    STEP("empty group");
    MUST(rondo_group_start(me->world));
    MUST(rondo_group_end(me->world));
}

/* rondo_group_end starts non-blocking members, and the caller waits for them afterwards. */
static void group_nonblocking(struct rank *me)
{
    enum { COUNT = 2000 };
    rondo_request_t requests[2] = {NULL, NULL};
    int right = (me->rank + 1) % me->size, left = (me->rank + me->size - 1) % me->size;
    int32_t *out = outgoing(me->rank, right, 3, COUNT), *in = buffer(COUNT);
    MUST(rondo_group_start(me->world));
    MUST(rondo_isend(out, COUNT, RONDO_INT32, right, me->world, &requests[0]));
    MUST(rondo_irecv(in, COUNT, RONDO_INT32, left, me->world, &requests[1]));
    MUST(rondo_group_end(me->world));
    STEP("waiting for the members");
    MUST(rondo_waitall(2, requests));
    check(in, left, me->rank, 3, COUNT);
    drop(out);
    drop(in);
}

/* A collective may be a member of a group too ("blocking and non-blocking operations of this thread on comm"). */
static void group_with_collective(struct rank *me)
{
    enum { COUNT = 777 };
    int right = (me->rank + 1) % me->size, left = (me->rank + me->size - 1) % me->size;
    int32_t *out = outgoing(me->rank, right, 4, COUNT), *in = buffer(COUNT);
    int32_t one = 1, sum = 0, *word = ranks_allocate(2 * sizeof(int32_t));
    ranks_put(word, &one, sizeof(one));
    MUST(rondo_group_start(me->world));
    MUST(rondo_recv(in, COUNT, RONDO_INT32, left, me->world));
    MUST(rondo_allreduce(word, word + 1, 1, RONDO_INT32, RONDO_SUM, me->world));
    MUST(rondo_send(out, COUNT, RONDO_INT32, right, me->world));
    STEP("group with a collective");
    MUST(rondo_group_end(me->world));
    check(in, left, me->rank, 4, COUNT);
    ranks_get(&sum, word + 1, sizeof(sum));
    ranks_release(word);
    CHECK(sum == me->size, "sum %d of %d ranks", sum, me->size);
    drop(out);
    drop(in);
}

static void self(struct rank *me)
{
    enum { COUNT = 100000 };
    rondo_request_t requests[2];
    int32_t *out = outgoing(me->rank, me->rank, 5, COUNT), *in = buffer(COUNT);
    STEP("isend to self");
    MUST(rondo_isend(out, COUNT, RONDO_INT32, me->rank, me->world, &requests[0]));
    MUST(rondo_irecv(in, COUNT, RONDO_INT32, me->rank, me->world, &requests[1]));
    MUST(rondo_waitall(2, requests));
    check(in, me->rank, me->rank, 5, COUNT);
    wipe(in, COUNT);
    STEP("irecv, then blocking send to self");
    MUST(rondo_irecv(in, COUNT, RONDO_INT32, me->rank, me->world, &requests[1]));
    MUST(rondo_send(out, COUNT, RONDO_INT32, me->rank, me->world));
    MUST(rondo_wait(requests[1]));
    check(in, me->rank, me->rank, 5, COUNT);
    drop(out);
    drop(in);
}

/* Sends are started long before their receives. Meanwhile collectives run: a send waits for no collective, and no collective
 * for a send. */
static void early(struct rank *me)
{
    enum { COUNT = 200000 };
    int right = (me->rank + 1) % me->size, left = (me->rank + me->size - 1) % me->size;
    int32_t *out = outgoing(me->rank, right, 6, COUNT), *in = buffer(COUNT);
    rondo_request_t sent;
    MUST(rondo_isend(out, COUNT, RONDO_INT32, right, me->world, &sent));
    for (int k = 0; k < 20; k++) {
        STEP("collective %d beside the pending send", k);
        int64_t sum = 0;
        MUST(ranks_sum(me->world, me->rank + k, &sum));
        CHECK(sum == me->size * (me->size - 1) / 2 + k * me->size, "sum %lld", (long long) sum);
    }
    int done = 1;
    if (me->size > 1) {
        MUST(rondo_device_synchronize(me->runtime));
        ranks_sleep(0.02);
    }
    MUST(rondo_test(sent, &done));
    STEP("late receive");
    MUST(rondo_recv(in, COUNT, RONDO_INT32, left, me->world));
    if (!done)
        MUST(rondo_wait(sent));
    check(in, left, me->rank, 6, COUNT);
    drop(out);
    drop(in);
}

static void large(struct rank *me)
{
    for (size_t count = (size_t) 1 << 20; count <= (size_t) 5 << 20; count += ((size_t) 1 << 20) + 12345) {
        STEP("large ring, %zu elements", count);
        ring_of(me, count, 1);
    }
}

static void empty(struct rank *me)
{
    int right = (me->rank + 1) % me->size, left = (me->rank + me->size - 1) % me->size;
    for (int k = 0; k < 5; k++) {
        rondo_request_t requests[2];
        STEP("empty message %d", k);
        MUST(rondo_isend(NULL, 0, RONDO_DOUBLE, right, me->world, &requests[0]));
        MUST(rondo_irecv(NULL, 0, RONDO_DOUBLE, left, me->world, &requests[1]));
        MUST(rondo_waitall(2, requests));
        ring_of(me, k == 2 ? 0 : 3, 1);
    }
}

/* Several persistent sends to one peer match in the order of their inits, though they are started in another order. */
static void persistent(struct rank *me)
{
    enum { PAIRS = 5, COUNT = 3000, ROUNDS = 6 };
    int right = (me->rank + 1) % me->size, left = (me->rank + me->size - 1) % me->size;
    rondo_request_t sends[PAIRS], receives[PAIRS], all[2 * PAIRS];
    int32_t *out[PAIRS], *in[PAIRS];
    for (int k = 0; k < PAIRS; k++) {
        out[k] = buffer(COUNT);
        in[k] = buffer(COUNT);
        STEP("init %d", k);
        MUST(rondo_send_init(out[k], COUNT, RONDO_INT32, right, me->world, NULL, &sends[k]));
        MUST(rondo_recv_init(in[k], COUNT, RONDO_INT32, left, me->world, NULL, &receives[k]));
    }
    for (int round = 0; round < ROUNDS; round++) {
        STEP("persistent round %d", round);
        for (int k = 0; k < PAIRS; k++) {
            fill(out[k], me->rank, right, round * PAIRS + k, COUNT);
            wipe(in[k], COUNT);
            all[(k + me->rank + round) % PAIRS] = sends[k];
            all[PAIRS + (k * 2 + me->rank) % PAIRS] = receives[k];
        }
        if (round % 2 == 0)
            MUST(rondo_startall(2 * PAIRS, all));
        else
            for (int k = 2 * PAIRS - 1; k >= 0; k--)
                MUST(rondo_start(all[k]));
        MUST(rondo_waitall(2 * PAIRS, all));
        for (int k = 0; k < PAIRS; k++)
            check(in[k], left, me->rank, round * PAIRS + k, COUNT);
    }
    for (int k = 0; k < PAIRS; k++) {
        MUST(rondo_request_free(&sends[k]));
        MUST(rondo_request_free(&receives[k]));
        drop(out[k]);
        drop(in[k]);
    }
}

/* More pending messages than a ring of submitted operations holds: a submit never blocks. */
static void many(struct rank *me)
{
    enum { MESSAGES = 3000, COUNT = 3 };
    int right = (me->rank + 1) % me->size, left = (me->rank + me->size - 1) % me->size;
    rondo_request_t *requests = calloc(2 * MESSAGES, sizeof(*requests));
    size_t bytes = MESSAGES * COUNT * sizeof(int32_t);
    int32_t *out = ranks_allocate(bytes), *in = ranks_allocate(bytes), *image = calloc(MESSAGES, COUNT * sizeof(*image));
    ranks_put(in, image, bytes);
    for (int k = 0; k < MESSAGES; k++)
        for (size_t i = 0; i < COUNT; i++)
            image[k * COUNT + (int) i] = element(me->rank, right, k, i);
    ranks_put(out, image, bytes);
    for (int k = 0; k < MESSAGES; k++) {
        STEP("pending send %d", k);
        MUST(rondo_isend(out + k * COUNT, COUNT, RONDO_INT32, right, me->world, &requests[k]));
    }
    for (int k = 0; k < MESSAGES; k++) {
        STEP("pending receive %d", k);
        MUST(rondo_irecv(in + k * COUNT, COUNT, RONDO_INT32, left, me->world, &requests[MESSAGES + k]));
    }
    STEP("waiting for %d messages", 2 * MESSAGES);
    MUST(rondo_waitall(2 * MESSAGES, requests));
    ranks_get(image, in, bytes);
    int bad = 0;
    for (int k = 0; k < MESSAGES; k++)
        for (size_t i = 0; i < COUNT; i++)
            bad += image[k * COUNT + (int) i] != element(left, me->rank, k, i);
    CHECK(bad == 0, "%d of %d elements wrong", bad, MESSAGES * COUNT);
    free(requests);
    free(image);
    ranks_release(out);
    ranks_release(in);
}

/* Two communicators between the same ranks are separate matching spaces. */
static void communicators(struct rank *me)
{
    enum { COUNT = 5000 };
    rondo_comm_t other;
    MUST(rondo_comm_dup(me->world, &other));
    int right = (me->rank + 1) % me->size, left = (me->rank + me->size - 1) % me->size;
    int32_t *first = outgoing(me->rank, right, 7, COUNT), *second = outgoing(me->rank, right, 8, COUNT);
    int32_t *a = buffer(COUNT), *b = buffer(COUNT);
    rondo_request_t requests[2];
    STEP("messages on two communicators");
    MUST(rondo_isend(first, COUNT, RONDO_INT32, right, me->world, &requests[0]));
    MUST(rondo_isend(second, COUNT, RONDO_INT32, right, other, &requests[1]));
    MUST(rondo_recv(b, COUNT, RONDO_INT32, left, other));
    MUST(rondo_recv(a, COUNT, RONDO_INT32, left, me->world));
    MUST(rondo_waitall(2, requests));
    check(a, left, me->rank, 7, COUNT);
    check(b, left, me->rank, 8, COUNT);
    MUST(rondo_comm_free(&other));
    drop(first);
    drop(second);
    drop(a);
    drop(b);
}

static const struct {
    const char *name;
    rank_function_t function;
} scenarios[] = {{"ordered", ordered},
                 {"group_ring", group_ring},
                 {"group_all", group_all},
                 {"group_nonblocking", group_nonblocking},
                 {"group_with_collective", group_with_collective},
                 {"self", self},
                 {"early", early},
                 {"large", large},
                 {"empty", empty},
                 {"persistent", persistent},
                 {"many", many},
                 {"communicators", communicators}};

static void run(struct rank *me)
{
    int found = 0;
    for (size_t k = 0; k < sizeof(scenarios) / sizeof(scenarios[0]); k++) {
        if (strcmp(scenario, "all") != 0 && strcmp(scenario, scenarios[k].name) != 0)
            continue;
        found++;
        for (long round = 0; round < rounds; round++)
            scenarios[k].function(me);
        STEP("barrier after %s", scenarios[k].name);
        MUST(rondo_barrier(me->world));
    }
    CHECK(found > 0, "no scenario %s", scenario);
}

int main(int argc, char **argv)
{
    const struct ranks_option options[] = {
        {"--ranks", &ranks, NULL, "ranks as threads; 0: from the environment"},
        {"--seed", &seed, NULL, "of the data"},
        {"--scenario", NULL, &scenario, "one of the functions of this file, or all"},
        {"--rounds", &rounds, NULL, "of each scenario"},
    };
    ranks_parse(argc, argv, options, sizeof(options) / sizeof(options[0]));
    rondo_config_t config = RONDO_CONFIG_DEFAULT;
    config.check = 1;
    ranks_run((int) ranks, &config, run, NULL);
    return ranks_finish("p2p");
}
