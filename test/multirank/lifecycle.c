/*
 * Creation and destruction: communicators, requests, whole runtimes, connector memory up to its budget, callbacks that start
 * operations. What is destroyed must return all its resources. Each scenario is one behaviour, named on the command line.
 */
#include "rondo_program.h"
#include "test/multirank/ranks.h"

#include <dirent.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long ranks = 3, budget_bytes = 2 << 20;
static const char *scenario = "all";

static void good(struct rank *me, rondo_comm_t comm)
{
    int64_t sum = 0;
    int size;
    (void) me;
    MUST(rondo_comm_size(comm, &size));
    MUST(ranks_sum(comm, 1, &sum));
    CHECK(sum == size, "sum %lld of %d ranks", (long long) sum, size);
}

static uint64_t reserved(struct rank *me)
{
    rondo_stats_t stats;
    MUST(rondo_get_stats(me->runtime, &stats));
    return stats.memory_reserved;
}

/* Creating, using and freeing communicators repeatedly takes no more memory than the first few did. */
static void communicators(struct rank *me)
{
    uint64_t early = 0;
    for (int k = 0; k < 200; k++) {
        rondo_comm_t dup = NULL, half = NULL;
        STEP("round %d", k);
        MUST(rondo_comm_dup(me->world, &dup));
        MUST(rondo_comm_split(dup, me->rank % 2, -me->rank, &half));
        good(me, dup);
        good(me, half);
        MUST(rondo_comm_free(&dup)); /* its child must go on working */
        good(me, half);
        MUST(rondo_comm_free(&half));
        MUST(rondo_barrier(me->world));
        if (k == 20)
            early = reserved(me);
    }
    CHECK(reserved(me) <= 2 * early + (1 << 20), "%llu bytes reserved, %llu at first", (unsigned long long) reserved(me),
          (unsigned long long) early);
}

/* The communicator's id, after a check that all ranks have the same. */
static uint64_t agreed_id(rondo_comm_t comm)
{
    uint64_t own = 0, first;
    MUST(rondo_comm_id(comm, &own));
    first = own;
    MUST(rondo_bcast(&first, 1, RONDO_UINT64, 0, comm));
    CHECK(own == first, "communicator %llx is %llx at its first rank", (unsigned long long) own, (unsigned long long) first);
    return own;
}

/* Many communicators exist at once and are used in opposite orders. */
static void many_communicators(struct rank *me)
{
    enum { COUNT = 60 };
    rondo_comm_t comms[COUNT];
    rondo_request_t requests[COUNT];
    int32_t in[COUNT], out[COUNT];
    for (int k = 0; k < COUNT; k++) {
        STEP("dup %d", k);
        MUST(rondo_comm_dup(k == 0 ? me->world : comms[k - 1], &comms[k]));
        CHECK(agreed_id(comms[k]) != agreed_id(k == 0 ? me->world : comms[k - 1]), "communicator %d has its parent's number",
              k);
    }
    for (int i = 0; i < COUNT; i++) {
        int k = me->rank % 2 == 0 ? i : COUNT - 1 - i;
        in[k] = k + me->rank;
        STEP("iallreduce on %d", k);
        MUST(rondo_iallreduce(&in[k], &out[k], 1, RONDO_INT32, RONDO_SUM, comms[k], &requests[k]));
    }
    MUST(rondo_waitall(COUNT, requests));
    for (int k = 0; k < COUNT; k++)
        CHECK(out[k] == k * me->size + me->size * (me->size - 1) / 2, "communicator %d: %d", k, out[k]);
    for (int k = 0; k < COUNT; k++)
        MUST(rondo_comm_free(&comms[k]));
}

/* Persistent requests are created and freed repeatedly, some of them without a start. */
static void requests(struct rank *me)
{
    uint64_t early = 0;
    float in[100] = {1}, out[100];
    for (int k = 0; k < 300; k++) {
        rondo_request_t used = NULL, unused = NULL;
        STEP("round %d", k);
        MUST(rondo_allreduce_init(in, out, 100, RONDO_FLOAT, RONDO_SUM, me->world, NULL, &used));
        MUST(rondo_bcast_init(in, 100, RONDO_FLOAT, k % me->size, me->world, NULL, &unused));
        MUST(rondo_start(used));
        MUST(rondo_wait(used));
        MUST(rondo_request_free(&unused));
        MUST(rondo_request_free(&used));
        if (k == 20)
            early = reserved(me);
    }
    MUST(rondo_barrier(me->world));
    CHECK(reserved(me) <= 2 * early + (1 << 20), "%llu bytes reserved, %llu at first", (unsigned long long) reserved(me),
          (unsigned long long) early);
}

/* Waits until the reserved bytes are at most this: peers report freed memory in messages, which take a moment. */
static void await_reserved(struct rank *me, uint64_t most)
{
    double until = ranks_seconds() + 20;
    while (reserved(me) > most && ranks_seconds() < until)
        ranks_sleep(0.001);
    CHECK(reserved(me) <= most, "%llu bytes stay reserved, %llu before", (unsigned long long) reserved(me),
          (unsigned long long) most);
}

/* An init beyond the budget of any rank fails on every rank. Existing operations go on working, and freed memory can be used
 * again. */
static void budget(struct rank *me)
{
    enum { MOST = 20000, COUNT = 100000 };
    static float zone[64][2 * COUNT];
    rondo_request_t *made = calloc(MOST, sizeof(*made));
    good(me, me->world); /* connects the world while the budget allows it */
    MUST(rondo_barrier(me->world));
    uint64_t before = reserved(me);
    for (int round = 0; round < 3; round++) {
        int count = 0;
        rondo_result_t result = RONDO_SUCCESS;
        for (; count < MOST && result == RONDO_SUCCESS; count++) {
            STEP("round %d init %d", round, count);
            result = rondo_allreduce_init(zone[me->rank], zone[me->rank] + COUNT, COUNT, RONDO_FLOAT, RONDO_SUM, me->world,
                                          NULL, &made[count]);
        }
        count--;
        CHECK(result == RONDO_ERR_MEMORY, "after %d requests: %s: %s", count, rondo_strerror(result), rondo_last_error());
        CHECK(strstr(rondo_last_error(), "budget") != NULL, "the message does not speak of the budget: %s", rondo_last_error());
        CHECK(made[count] == NULL, "a failed init made a request");
        CHECK(count > 0, "not one request fits");
        rondo_stats_t stats;
        MUST(rondo_get_stats(me->runtime, &stats));
        CHECK(stats.memory_reserved <= stats.memory_budget, "%llu bytes reserved of %llu",
              (unsigned long long) stats.memory_reserved, (unsigned long long) stats.memory_budget);
        int32_t mine = count, least = 0;
        STEP("agreement of round %d", round);
        MUST(rondo_allreduce(&mine, &least, 1, RONDO_INT32, RONDO_MIN, me->world));
        CHECK(count == least, "round %d: init %d failed on another rank and succeeded here", round, least);
        for (int i = 0; i < least; i++)
            MUST(rondo_start(made[(i + me->rank) % least]));
        STEP("waiting for the requests of round %d", round);
        MUST(rondo_waitall(least, made));
        for (int i = 0; i < count; i++)
            MUST(rondo_request_free(&made[i]));
        STEP("room after round %d", round);
        await_reserved(me, before);
        STEP("barrier after round %d", round);
        MUST(rondo_barrier(me->world));
    }
    free(made);
}

struct chain {
    rondo_request_t first, second;
    atomic_int calls;
    rondo_result_t started;
};
static void start_second(void *argument, rondo_result_t result)
{
    struct chain *chain = argument;
    chain->started = result == RONDO_SUCCESS ? rondo_start(chain->second) : result;
    atomic_fetch_add(&chain->calls, 1);
}

/* A callback starts the next operation. */
static void callbacks(struct rank *me)
{
    int32_t in = me->rank, out = 0, again = 0;
    struct chain chain = {.started = RONDO_ERR_INTERNAL};
    MUST(rondo_allreduce_init(&in, &out, 1, RONDO_INT32, RONDO_SUM, me->world, NULL, &chain.first));
    MUST(rondo_allreduce_init(&out, &again, 1, RONDO_INT32, RONDO_MAX, me->world, NULL, &chain.second));
    for (int k = 0; k < 200; k++) {
        out = again = -1;
        in = me->rank + k;
        atomic_store(&chain.calls, 0);
        STEP("chain %d", k);
        MUST(rondo_request_callback(chain.first, start_second, &chain));
        MUST(rondo_start(chain.first));
        MUST(rondo_wait(chain.first));
        double until = ranks_seconds() + 10;
        while (atomic_load(&chain.calls) == 0 && ranks_seconds() < until)
            ranks_sleep(0.0001);
        CHECK(atomic_load(&chain.calls) == 1, "%d calls", atomic_load(&chain.calls));
        MUST(chain.started);
        MUST(rondo_wait(chain.second));
        CHECK(again == me->size * (me->size - 1) / 2 + k * me->size, "%d", again);
    }
    MUST(rondo_request_free(&chain.first));
    MUST(rondo_request_free(&chain.second));
}

/* rondo_finalize frees requests and communicators that still exist. A leak checker detects whether it does. */
static void left_alive(struct rank *me)
{
    static int32_t zone[64][64];
    for (int k = 0; k < 5; k++) {
        rondo_comm_t comm;
        rondo_request_t request;
        void *memory;
        MUST(rondo_comm_dup(me->world, &comm));
        MUST(rondo_allreduce_init(zone[me->rank], zone[me->rank] + 32, 8, RONDO_INT32, RONDO_SUM, comm, NULL, &request));
        MUST(rondo_start(request));
        MUST(rondo_wait(request));
        MUST(rondo_alloc(me->runtime, 100000, &memory));
    }
}

static int entries(const char *folder)
{
    int count = 0;
    DIR *directory = opendir(folder);
    while (directory != NULL && readdir(directory) != NULL)
        count++;
    if (directory != NULL)
        closedir(directory);
    return count;
}

/* An all-gather in which a rank has a block for each peer and direction. */
static rondo_program_t to_each_peer(int size)
{
    rondo_program_signature_t signature = RONDO_PROGRAM_SIGNATURE_DEFAULT;
    rondo_program_t program;
    signature.name = "to-each-peer";
    signature.collective = "allgather";
    signature.ranks = size;
    MUST(rondo_program_create(&program, &signature));
    for (int from = 0; from < size; from++)
        for (int to = 0; to < size; to++)
            rondo_chunk_copy(rondo_chunk(program, from, RONDO_BUFFER_INPUT, 0, 1), to, RONDO_BUFFER_OUTPUT, (size_t) from);
    MUST(rondo_program_check(program, NULL));
    return program;
}

/* A communicator fails while the blocks of an operation are at work, sooner or later: where the operation says that it
 * succeeded, each of them has done its part. */
static void failures(struct rank *me)
{
    enum { COUNT = 1 << 14, ROUNDS = 400 };
    int32_t *in = malloc(COUNT * sizeof(*in)), *out = malloc((size_t) me->size * COUNT * sizeof(*out));
    uint64_t seed = 5;
    long succeeded = 0;
    rondo_program_t program = to_each_peer(me->size);
    rondo_attr_t attributes = RONDO_ATTR_DEFAULT;
    attributes.program = "to-each-peer";
    for (int i = 0; i < COUNT; i++)
        in[i] = me->rank + 1;
    for (int round = 0; round < ROUNDS; round++) {
        rondo_comm_t comm = NULL;
        rondo_request_t request = NULL;
        const int fails = ranks_below(&seed, me->size), late = ranks_below(&seed, me->size), after = ranks_below(&seed, 150);
        STEP("round %d", round);
        MUST(rondo_comm_dup(me->world, &comm));
        MUST(rondo_program_register(comm, program, 0, 0));
        MUST(rondo_allgather_init(in, out, COUNT, RONDO_INT32, comm, &attributes, &request));
        MUST(rondo_start(request));
        MUST(rondo_wait(request)); /* its connectors are there now */
        memset(out, 0, (size_t) me->size * COUNT * sizeof(*out));
        MUST(rondo_barrier(me->world));
        if (me->rank == late)
            ranks_sleep(100e-6);
        rondo_result_t result = rondo_start(request);
        if (me->rank == fails) {
            ranks_sleep(after * 1e-6);
            MUST(rondo_comm_abort(comm, 1));
        }
        if (result == RONDO_SUCCESS && rondo_wait(request) == RONDO_SUCCESS) {
            int wrong = 0;
            for (int i = 0; i < me->size * COUNT; i++)
                wrong += out[i] != i / COUNT + 1;
            CHECK(wrong == 0, "round %d: %d elements are wrong after a success", round, wrong);
            succeeded++;
        }
        MUST(rondo_barrier(me->world));
        MUST(rondo_comm_free(&comm));
    }
    printf("rank %d: %ld of %d succeeded\n", me->rank, succeeded, ROUNDS);
    rondo_program_destroy(program);
    free(in);
    free(out);
}

static void one_call(struct rank *me)
{
    good(me, me->world);
}

/* Several jobs run one after the other in one process. The numbers of descriptors and threads do not grow. */
static void runtimes(void)
{
    int descriptors = 0;
    for (int k = 0; k < 40; k++) {
        ranks_run((int) (k % 4) + 1, NULL, one_call, NULL);
        if (k == 7)
            descriptors = entries("/proc/self/fd");
    }
    /* The threads of a rendezvous end a moment after its last rank has left. */
    double until = ranks_seconds() + 10;
    while ((entries("/proc/self/task") > 5 || entries("/proc/self/fd") > descriptors) && ranks_seconds() < until)
        ranks_sleep(0.05);
    CHECK(entries("/proc/self/fd") <= descriptors, "%d descriptors, %d at first", entries("/proc/self/fd"), descriptors);
    CHECK(entries("/proc/self/task") <= 5, "%d threads", entries("/proc/self/task") - 2);
}

static const struct {
    const char *name;
    rank_function_t function;
} scenarios[] = {{"communicators", communicators},
                 {"many_communicators", many_communicators},
                 {"requests", requests},
                 {"budget", budget},
                 {"callbacks", callbacks},
                 {"left_alive", left_alive},
                 {"failures", failures}};

static void run(struct rank *me)
{
    int found = 0;
    for (size_t k = 0; k < sizeof(scenarios) / sizeof(scenarios[0]); k++)
        if (strcmp(scenario, scenarios[k].name) == 0) {
            found++;
            scenarios[k].function(me);
        }
    CHECK(found > 0, "no scenario %s", scenario);
}

int main(int argc, char **argv)
{
    const struct ranks_option options[] = {
        {"--ranks", &ranks, NULL, "ranks as threads; 0: from the environment"},
        {"--budget", &budget_bytes, NULL, "bytes of connector memory, for the scenario of that name; -1: from the environment"},
        {"--scenario", NULL, &scenario, "one of the functions of this file"},
    };
    ranks_parse(argc, argv, options, sizeof(options) / sizeof(options[0]));
    rondo_config_t config = RONDO_CONFIG_DEFAULT;
    if (strcmp(scenario, "budget") == 0)
        config.memory_budget = budget_bytes;
    if (strcmp(scenario, "runtimes") == 0)
        runtimes();
    else
        ranks_run((int) ranks, &config, run, NULL);
    return ranks_finish("lifecycle");
}
