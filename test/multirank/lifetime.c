/*
 * One rank of a job that test_faults.py starves of memory or kills at any moment. It goes through a life: init, rounds of calls
 * of every kind, finalize. It prints READY, RESULT code seconds message (of the first call that fails), AGAIN code message (of
 * the next call on the same communicator) and FINALIZED on single lines. The environment gives its rank.
 */
#include "test/multirank/device_memory.h"
#include "test/multirank/ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static const char *call = "";
static long starved = -1, limit = 0, rounds = 40;

static void print(const char *word, rondo_result_t result, double seconds)
{
    char message[1024];
    snprintf(message, sizeof(message), "%s", rondo_last_error());
    for (char *at = message; *at != '\0'; at++)
        if (*at == '\n')
            *at = ' ';
    printf("%s %d %.3f %s\n", word, (int) result, seconds, result == RONDO_SUCCESS ? "" : message);
    fflush(stdout);
}

/* From here on the process gets no more address space than it has, or so many bytes in all. */
static void starve(rlim_t bytes)
{
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long pages = 0;
    CHECK(file != NULL && fscanf(file, "%lu", &pages) == 1, "/proc/self/statm cannot be read");
    if (file != NULL)
        fclose(file);
    if (bytes == 0)
        bytes = (rlim_t) pages * (rlim_t) sysconf(_SC_PAGESIZE);
    const struct rlimit most = {bytes, RLIM_INFINITY};
    CHECK(setrlimit(RLIMIT_AS, &most) == 0, "setrlimit to %llu bytes", (unsigned long long) bytes);
    /* What malloc has at hand is used up, in large pieces and in small ones. The memory is never freed. */
    for (size_t part = 1 << 20; part >= 64; part /= 2)
        while (bytes != 0 && limit == 0 && malloc(part) != NULL)
            ;
}

struct life {
    struct rank *me;
    float *send, *recv;
    size_t count;
};

static rondo_result_t blocking(struct life *life)
{
    return rondo_allreduce(life->send, life->recv, life->count, RONDO_FLOAT, RONDO_SUM, life->me->world);
}

static rondo_result_t nonblocking(struct life *life)
{
    rondo_request_t request = NULL;
    rondo_result_t result =
        rondo_iallreduce(life->send, life->recv, life->count, RONDO_FLOAT, RONDO_SUM, life->me->world, &request);
    return result == RONDO_SUCCESS ? rondo_wait(request) : result;
}

static rondo_result_t persistent(struct life *life)
{
    rondo_request_t request = NULL;
    rondo_result_t result =
        rondo_allreduce_init(life->send, life->recv, life->count, RONDO_FLOAT, RONDO_SUM, life->me->world, NULL, &request);
    if (result == RONDO_SUCCESS && (result = rondo_start(request)) == RONDO_SUCCESS)
        result = rondo_wait(request);
    if (request != NULL && result == RONDO_SUCCESS) /* rondo_finalize frees a failed one */
        CHECK(rondo_request_free(&request) == RONDO_SUCCESS, "free of the request: %s", rondo_last_error());
    return result;
}

static rondo_result_t message(struct life *life)
{
    const struct rank *me = life->me;
    int next = (me->rank + 1) % me->size, before = (me->rank + me->size - 1) % me->size;
    rondo_result_t result = rondo_group_start(me->world);
    if (result != RONDO_SUCCESS)
        return result;
    rondo_result_t sent = rondo_send(life->send, life->count, RONDO_FLOAT, next, me->world);
    rondo_result_t received = rondo_recv(life->recv, life->count, RONDO_FLOAT, before, me->world);
    result = rondo_group_end(me->world);
    return sent != RONDO_SUCCESS ? sent : received != RONDO_SUCCESS ? received : result;
}

static rondo_result_t split(struct life *life)
{
    rondo_comm_t comm = NULL;
    rondo_result_t result = rondo_comm_split(life->me->world, 0, -life->me->rank, &comm);
    CHECK((result == RONDO_SUCCESS) == (comm != NULL), "%s: communicator %p", rondo_strerror(result), (void *) comm);
    if (comm != NULL && (result = rondo_barrier(comm)) == RONDO_SUCCESS)
        CHECK(rondo_comm_free(&comm) == RONDO_SUCCESS, "%s", rondo_last_error());
    return result; /* a failed communicator is left to rondo_finalize */
}

static rondo_result_t registering(struct life *life)
{
    rondo_result_t result = rondo_comm_register(life->me->world, life->recv, life->count * sizeof(float));
    if (result == RONDO_SUCCESS)
        CHECK(rondo_comm_deregister(life->me->world, life->recv) == RONDO_SUCCESS, "%s", rondo_last_error());
    return result;
}

static rondo_result_t barrier(struct life *life)
{
    return rondo_barrier(life->me->world);
}

static const struct {
    const char *name;
    rondo_result_t (*run)(struct life *life);
} calls[] = {{"blocking", blocking}, {"nonblocking", nonblocking}, {"persistent", persistent}, {"message", message},
             {"split", split},       {"register", registering},    {"barrier", barrier}};
#define CALLS (sizeof(calls) / sizeof(calls[0]))

/* Rounds of all calls with sizes that grow, so that most rounds connect, map and bind something new. */
static rondo_result_t live(struct life *life)
{
    static const size_t counts[] = {2, 3000, 40000, 700};
    rondo_result_t result = RONDO_SUCCESS;
    for (long round = 0; round < rounds && result == RONDO_SUCCESS; round++) {
        if (round == 1)
            printf("READY\n"), fflush(stdout);
        for (size_t c = 0; c < CALLS && result == RONDO_SUCCESS; c++) {
            life->count = counts[(size_t) round % 4] + (size_t) round;
            result = calls[c].run(life);
        }
        usleep(5000);
    }
    return result;
}

/* A barrier, and then the one call, which rank `starved` has no memory for. */
static rondo_result_t once(struct life *life)
{
    rondo_result_t result = rondo_barrier(life->me->world);
    life->count = 300000;
    if (life->me->rank == starved && limit == 0)
        starve(0);
    for (size_t c = 0; c < CALLS && result == RONDO_SUCCESS; c++)
        if (strcmp(calls[c].name, call) == 0)
            result = calls[c].run(life);
    return result;
}

int main(int argc, char **argv)
{
    const struct ranks_option options[] = {
        {"--call", NULL, &call, "the one call to make; else all of them, again and again"},
        {"--rounds", &rounds, NULL, "how often"},
        {"--starved", &starved, NULL, "the rank that runs out of memory"},
        {"--limit", &limit, NULL, "MiB of its address space from the start; 0: what it has when it makes the call"},
    };
    ranks_parse(argc, argv, options, sizeof(options) / sizeof(options[0]));
    rondo_config_t config = RONDO_CONFIG_DEFAULT;
    config.device = ranks_device();
    struct rank me = {0};
    const char *rank = getenv("RONDO_RANK");
    if (limit > 0 && rank != NULL && atol(rank) == starved)
        starve((rlim_t) limit << 20);
    double start = ranks_seconds();
    rondo_result_t result = rondo_init(&me.runtime, &config);
    if (result != RONDO_SUCCESS) {
        CHECK(me.runtime == NULL, "a failed init made a runtime");
        print("RESULT", result, ranks_seconds() - start);
        print("AGAIN", result, 0);
        printf("FINALIZED\n");
        return ranks_finish("lifetime");
    }
    MUST(rondo_comm_world(me.runtime, &me.world));
    MUST(rondo_comm_rank(me.world, &me.rank));
    MUST(rondo_comm_size(me.world, &me.size));
    ranks_current = me.rank;
    ranks_use_device(me.runtime);
    static float memory[2][400000];
    struct life life = {&me, memory[0], memory[1], 0};
    result = *call != '\0' ? once(&life) : live(&life);
    print("RESULT", result, ranks_seconds() - start);
    if (*call != '\0' || result != RONDO_SUCCESS)
        print("AGAIN", rondo_barrier(me.world), 0);
    start = ranks_seconds();
    result = rondo_finalize(me.runtime);
    CHECK(result == RONDO_SUCCESS, "rondo_finalize: %s", rondo_last_error());
    printf("FINALIZED after %.3f\n", ranks_seconds() - start);
    fflush(stdout);
    return ranks_finish("lifetime");
}
