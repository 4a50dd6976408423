/* The calls around the collectives: errors, groups, creating and destroying communicators. Each scenario is one behaviour and
 * runs with --ranks ranks as threads; --scenario NAME runs one of them. */
#include "test/nccl/scenarios.h"

#include <pthread.h>

int ranks = 3;

struct scenario_argument {
    void (*f)(struct me *me);
    ncclUniqueId id;
    pthread_barrier_t joined;
};

void put_floats(float *memory, float value, size_t count)
{
    float *host = malloc(count * sizeof(*host));
    for (size_t i = 0; i < count; i++)
        host[i] = value;
    device_put(memory, host, count * sizeof(*host));
    free(host);
}

/* Returns how many of the first count elements differ from the value. */
size_t count_wrong(const float *memory, float value, size_t count)
{
    float *host = malloc(count * sizeof(*host));
    size_t wrong = 0;
    device_get(host, memory, count * sizeof(*host));
    for (size_t i = 0; i < count; i++)
        wrong += host[i] != value;
    free(host);
    return wrong;
}

void open_me(struct me *me)
{
    me->stream = stream_create();
    me->send = device_allocate(COUNT * sizeof(float) * (size_t) ranks);
    me->recv = device_allocate(COUNT * sizeof(float) * (size_t) ranks);
    put_floats(me->send, (float) me->rank + 1, COUNT * (size_t) ranks);
    put_floats(me->recv, -1, COUNT * (size_t) ranks);
}

void close_me(struct me *me)
{
    stream_destroy(me->stream);
    device_free_at_end(me->send);
    device_free_at_end(me->recv);
}

static void thread_main(int rank, void *argument)
{
    struct scenario_argument *given = argument;
    struct me me = {.rank = rank, .size = ranks};
    use_device(rank);
    open_me(&me);
    me.comm = join(&given->id, rank, ranks);
    /* One that aborts or revokes must not find another that still joins, whose ncclCommInitRank would fail. */
    pthread_barrier_wait(&given->joined);
    given->f(&me);
    if (me.comm != NULL)
        NCCL(ncclCommDestroy(me.comm));
    close_me(&me);
}

static void on_threads(void (*f)(struct me *me))
{
    struct scenario_argument argument = {.f = f};
    NCCL(ncclGetUniqueId(&argument.id));
    pthread_barrier_init(&argument.joined, NULL, (unsigned) ranks);
    run_threads(ranks, thread_main, &argument);
    pthread_barrier_destroy(&argument.joined);
}

float sum_of(int size)
{
    return (float) (size * (size + 1) / 2);
}

/* Checks that an all-reduce of rank + 1 works. */
void check_sum(ncclComm_t comm, struct me *me, const char *what)
{
    int rank, size;
    NCCL(ncclCommUserRank(comm, &rank));
    NCCL(ncclCommCount(comm, &size));
    put_floats(me->send, (float) rank + 1, COUNT);
    NCCL(ncclAllReduce(me->send, me->recv, COUNT, ncclFloat, ncclSum, comm, me->stream));
    stream_wait(me->stream);
    CHECK(count_wrong(me->recv, sum_of(size), COUNT) == 0, "%s: rank %d of %d", what, rank, size);
}

/* ---- */

static const struct {
    const char *name;
    void (*alone)(void);
    void (*together)(struct me *me);
    int least; /* the fewest ranks that it needs */
} scenarios[] = {
    {"versions", scenario_versions, NULL, 1},       {"not_offered", scenario_not_offered, NULL, 1},
    {"bad_inits", scenario_bad_inits, NULL, 1},     {"foreign_handles", scenario_foreign_handles, NULL, 1},
    {"errors", NULL, scenario_errors, 1},           {"one_thread", scenario_one_thread, NULL, 1},
    {"messages", NULL, scenario_messages, 1},       {"aggregated", NULL, scenario_aggregated, 1},
    {"orders", NULL, scenario_orders, 1},           {"mixed_group", NULL, scenario_mixed_group, 2},
    {"nonblocking", scenario_nonblocking, NULL, 1}, {"split", NULL, scenario_split, 1},
    {"one_parent", NULL, scenario_one_parent, 1},   {"shrink", NULL, scenario_shrink, 3},
    {"finalize", NULL, scenario_finalize, 1},       {"aborted", NULL, scenario_aborted, 2},
    {"revoked", NULL, scenario_revoked, 2},         {"mismatch", NULL, scenario_mismatch, 2},
    {"abandoned", scenario_abandoned, NULL, 1},     {"scalars", NULL, scenario_scalars, 1},
    {"memory", NULL, scenario_memory, 1},           {"scalable", scenario_scalable, NULL, 1},
};

int main(int argc, char **argv)
{
    const char *only = parse_scenario(argc, argv, &ranks);
    watch();
    for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++) {
        if ((only != NULL && strcmp(only, scenarios[i].name) != 0) || ranks < scenarios[i].least)
            continue;
        double before = now();
        if (scenarios[i].alone != NULL)
            scenarios[i].alone();
        else
            on_threads(scenarios[i].together);
        printf("%s: %.2f s\n", scenarios[i].name, now() - before);
        fflush(stdout);
    }
    return finish("api");
}
