/*
 * Going on after failures: rondo_comm_revoke while operations hang, rondo_comm_agree and rondo_comm_shrink with
 * RONDO_SHRINK_FAILED while ranks die, rondo_comm_grow. Processes die of themselves, at a random moment of a random round
 * (--deaths). Ranks as threads do not die; for them it checks the calls and their arguments.
 */
#include "test/multirank/ranks.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static long ranks = 3, rounds = 20, deaths = 0, seed = 1;
static const char *scenario = "calls";

/* ---- on ranks that all live ---- */

static void bad_calls(struct rank *me)
{
    rondo_comm_t made;
    int flag = 1, own = me->rank, beyond = me->size, count = -1;
    EXPECT(RONDO_ERR_ARGUMENT, "NULL", rondo_comm_revoke(NULL));
    EXPECT(RONDO_ERR_ARGUMENT, "NULL", rondo_comm_agree(NULL, &flag));
    EXPECT(RONDO_ERR_ARGUMENT, "flag is NULL", rondo_comm_agree(me->world, NULL));
    EXPECT(RONDO_ERR_ARGUMENT, "count is NULL", rondo_comm_get_failed(me->world, NULL, NULL));
    EXPECT(RONDO_ERR_ARGUMENT, "is not a failed rank", rondo_comm_acknowledge_failed(me->world, &own, 1));
    EXPECT(RONDO_ERR_ARGUMENT, "is not a failed rank", rondo_comm_acknowledge_failed(me->world, &beyond, 1));
    EXPECT(RONDO_ERR_ARGUMENT, "NULL", rondo_comm_acknowledge_failed(me->world, NULL, 1));
    EXPECT(RONDO_ERR_ARGUMENT, "NULL", rondo_comm_shrink(me->world, NULL, RONDO_SHRINK_FAILED, NULL));
    EXPECT(RONDO_ERR_ARGUMENT, "to be excluded", rondo_comm_shrink(me->world, &own, RONDO_SHRINK_FAILED, &made));
    MUST(rondo_comm_get_failed(me->world, NULL, &count));
    CHECK(count == 0, "%d failed ranks", count);
    MUST(rondo_comm_acknowledge_failed(me->world, NULL, 0));
}

/* The AND of what all contribute, again and again, with ranks at different speeds. */
static void agree_alive(struct rank *me)
{
    uint64_t state = (uint64_t) seed;
    for (int round = 0; round < 50; round++) {
        int wanted = -1, mine = 0;
        for (int rank = 0; rank < me->size; rank++) {
            const int value = (int) (ranks_random(&state) | ranks_random(&state));
            wanted &= value;
            mine = rank == me->rank ? value : mine;
        }
        if (ranks_hash((uint64_t) (round * me->size + me->rank)) % 7 == 0)
            ranks_sleep(0.001);
        MUST(rondo_comm_agree(me->world, &mine));
        CHECK(mine == wanted, "round %d: %#x, not %#x", round, (unsigned) mine, (unsigned) wanted);
    }
}

static void *wait_for(void *argument)
{
    struct rank *me = argument;
    int64_t sum;
    ranks_current = me->rank;
    EXPECT(RONDO_ERR_REVOKED, "revoked by rank", ranks_sum(me->world, 1, &sum));
    return NULL;
}

/* Rank 0 revokes a copy on which all others hang in different calls. Each call, also a later one, ends; what works on a revoked
 * communicator works. */
static void revoke_hanging(struct rank *me)
{
    struct rank copied = *me;
    rondo_comm_t smaller = NULL;
    rondo_request_t request = NULL;
    rondo_result_t failure;
    pthread_t waiter;
    char byte = 0;
    int flag = 6 | me->rank << 3, size = 0;
    int64_t sum = 0;
    MUST(rondo_comm_dup(me->world, &copied.world));
    MUST(rondo_barrier(me->world)); /* a rank that revokes before another has the copy makes the copying fail there */
    if (me->rank == 0) {
        ranks_sleep(0.05);
        MUST(rondo_comm_revoke(copied.world));
        EXPECT(RONDO_ERR_REVOKED, "revoked by rank 0", ranks_sum(copied.world, 1, &sum));
    } else if (me->rank % 2 == 1) {
        MUST(pthread_create(&waiter, NULL, wait_for, &copied) == 0 ? RONDO_SUCCESS : RONDO_ERR_SYSTEM);
        pthread_join(waiter, NULL);
    } else if (rondo_irecv(&byte, 1, RONDO_UINT8, 0, copied.world, &request) == RONDO_SUCCESS) {
        EXPECT(RONDO_ERR_REVOKED, "revoked by rank 0", rondo_wait(request));
    }
    if (me->size == 1)
        EXPECT(RONDO_ERR_REVOKED, "revoked", rondo_barrier(copied.world));
    MUST(rondo_comm_revoke(copied.world)); /* again, by all */
    EXPECT(RONDO_ERR_REVOKED, "revoked by rank", rondo_barrier(copied.world));
    MUST(rondo_comm_status(copied.world, &failure, NULL));
    CHECK(failure == RONDO_ERR_REVOKED, "%d", (int) failure);
    MUST(rondo_comm_agree(copied.world, &flag));
    CHECK((flag & 7) == 6, "%#x", (unsigned) flag);
    MUST(rondo_comm_shrink(copied.world, NULL, RONDO_SHRINK_FAILED, &smaller));
    MUST(rondo_comm_size(smaller, &size));
    CHECK(size == me->size, "%d ranks", size);
    MUST(ranks_sum(smaller, 1, &sum));
    CHECK(sum == me->size, "%lld", (long long) sum);
    MUST(rondo_comm_free(&smaller));
    MUST(rondo_comm_free(&copied.world));
}

/* ---- ranks that come later ---- */

/* A rank that starts when the others have run for long. */
struct newcomer {
    rondo_config_t config;
    rondo_unique_id_t id;
    int old_size;
    pthread_t thread;
};

/* What all ranks of a grown job do: the old ones tell the new ones a number, and all add up. */
static void use_grown(rondo_t grown, int rank, int size, int old_size)
{
    rondo_comm_t world;
    int own, all;
    int64_t sum = 0, told = rank < old_size ? 4711 : 0;
    MUST(rondo_comm_world(grown, &world));
    MUST(rondo_comm_rank(world, &own));
    MUST(rondo_comm_size(world, &all));
    CHECK(own == rank && all == size, "rank %d of %d, not %d of %d", own, all, rank, size);
    MUST(rondo_bcast(&told, 1, RONDO_INT64, 0, world));
    CHECK(told == 4711, "%lld", (long long) told);
    for (int round = 0; round < 10; round++) {
        const int64_t mine = rank + round;
        MUST(rondo_allreduce(&mine, &sum, 1, RONDO_INT64, RONDO_SUM, world));
        CHECK(sum == (int64_t) size * (size - 1) / 2 + (int64_t) size * round, "round %d: %lld", round, (long long) sum);
    }
    MUST(rondo_finalize(grown));
}

static void *come(void *argument)
{
    struct newcomer *me = argument;
    rondo_t grown;
    ranks_current = me->config.rank;
    MUST(rondo_init(&grown, &me->config));
    use_grown(grown, me->config.rank, me->config.size, me->old_size);
    return NULL;
}

/* Rank `giver` has the id and starts the new ranks, as threads of its process. */
static void grow(struct rank *me, int giver, int newcomers)
{
    struct newcomer coming[2] = {{.config = RONDO_CONFIG_DEFAULT}, {.config = RONDO_CONFIG_DEFAULT}};
    rondo_config_t config = RONDO_CONFIG_DEFAULT;
    rondo_unique_id_t id;
    rondo_t grown = NULL;
    config.device = RONDO_DEVICE_HOST;
    if (me->rank == giver)
        MUST(rondo_get_unique_id(&id));
    for (int i = 0; me->rank == giver && i < newcomers; i++) {
        coming[i].old_size = me->size;
        coming[i].id = id;
        coming[i].config = config;
        coming[i].config.unique_id = &coming[i].id;
        coming[i].config.rank = me->size + i;
        coming[i].config.size = me->size + newcomers;
        MUST(pthread_create(&coming[i].thread, NULL, come, &coming[i]) == 0 ? RONDO_SUCCESS : RONDO_ERR_SYSTEM);
    }
    MUST(rondo_comm_grow(me->world, me->size + newcomers, me->rank == giver ? &id : NULL, &config, &grown));
    use_grown(grown, me->rank, me->size + newcomers, me->size);
    for (int i = 0; me->rank == giver && i < newcomers; i++)
        pthread_join(coming[i].thread, NULL);
}

/* Each mistake is an error on all ranks, after which the communicator is as good as before. */
static void grow_wrongly(struct rank *me)
{
    struct rank failed = *me;
    rondo_unique_id_t id = {{0}};
    rondo_t grown = (rondo_t) &grown;
    EXPECT(RONDO_ERR_ARGUMENT, "NULL", rondo_comm_grow(NULL, me->size, NULL, NULL, &grown));
    EXPECT(RONDO_ERR_ARGUMENT, "grown is NULL", rondo_comm_grow(me->world, me->size, NULL, NULL, NULL));
    EXPECT(RONDO_ERR_MISMATCH, "give an id, not one", rondo_comm_grow(me->world, me->size, NULL, NULL, &grown));
    CHECK(grown == NULL, "%s", ranks_pointer_text(grown));
    EXPECT(RONDO_ERR_ARGUMENT, "cannot become 0", rondo_comm_grow(me->world, 0, me->rank == 0 ? &id : NULL, NULL, &grown));
    EXPECT(RONDO_ERR_ARGUMENT, "id", rondo_comm_grow(me->world, me->size, me->rank == 0 ? &id : NULL, NULL, &grown));
    if (me->size > 1) {
        EXPECT(RONDO_ERR_MISMATCH, "give an id, not one", rondo_comm_grow(me->world, me->size, &id, NULL, &grown));
        EXPECT(RONDO_ERR_MISMATCH, "rank 1 grows to", rondo_comm_grow(me->world, me->size + me->rank, NULL, NULL, &grown));
    }
    MUST(rondo_comm_dup(me->world, &failed.world));
    MUST(rondo_comm_revoke(failed.world));
    EXPECT(RONDO_ERR_REVOKED, "revoked by rank", rondo_comm_grow(failed.world, me->size, NULL, NULL, &grown));
    MUST(rondo_comm_free(&failed.world));
}

/* ---- ranks that die ---- */

static void *die_later(void *argument)
{
    ranks_sleep(*(const double *) argument);
    kill(getpid(), SIGKILL);
    return NULL;
}

/* The calls of a round on comm that rank may not survive. Prints each outcome, for the test to compare. */
static void agree_often(rondo_comm_t comm, int round, int rank)
{
    int failed[64], count = 0;
    for (int k = 0; k < 5; k++) {
        int flag = ~(1 << rank) & ~(int) (ranks_hash((uint64_t) (rank + 64 * k)) << 16);
        const rondo_result_t result = rondo_comm_agree(comm, &flag);
        CHECK(result == RONDO_SUCCESS || result == RONDO_ERR_PEER, "agree: %d %s", (int) result, rondo_last_error());
        printf("AGREED %d.%d %d %#x\n", round, k, (int) result, (unsigned) flag);
        if (result == RONDO_ERR_PEER && k % 2 == 1) { /* acknowledges what it knows of */
            MUST(rondo_comm_get_failed(comm, failed, &count));
            MUST(rondo_comm_acknowledge_failed(comm, failed, count));
        }
    }
}

/* In each round a rank may die at a random moment: before, during or after the agreements and the shrink. All that live get the
 * same, and go on on a communicator of those that remain. */
static void agree_dying(struct rank *me)
{
    uint64_t state = (uint64_t) seed;
    rondo_comm_t comm = me->world;
    int left = (int) deaths;
    setvbuf(stdout, NULL, _IOLBF, 0);
    (void) rondo_barrier(me->world); /* until all are out of rondo_init, which a death would end with an error */
    for (int round = 0; round < rounds; round++) {
        static double moment; /* a process dies once */
        int rank, size, remaining = 0;
        int64_t sum = 0;
        pthread_t killer;
        rondo_comm_t next = NULL;
        MUST(rondo_comm_rank(comm, &rank));
        MUST(rondo_comm_size(comm, &size));
        const int dies = left > 0 && size > 2 && ranks_below(&state, 4) > 0, victim = ranks_below(&state, size);
        const double when = (double) ranks_below(&state, 1000) * 5e-5 / (double) (1 << ranks_below(&state, 8));
        left -= dies;
        if (dies && rank == victim) {
            moment = when;
            MUST(pthread_create(&killer, NULL, die_later, &moment) == 0 ? RONDO_SUCCESS : RONDO_ERR_SYSTEM);
        }
        /* An operation that is under way ends with success or an error. */
        const rondo_result_t result = ranks_sum(comm, 1, &sum);
        CHECK(result != RONDO_SUCCESS || sum == size, "sum %lld of %d", (long long) sum, size);
        agree_often(comm, round, rank);
        MUST(rondo_comm_shrink(comm, NULL, RONDO_SHRINK_FAILED, &next));
        MUST(rondo_comm_size(next, &remaining));
        printf("SHRUNK %d %d\n", round, remaining);
        if (dies && remaining == size) { /* it dies after all */
            rondo_comm_t all = next;
            if (rank == victim)
                ranks_sleep(600);
            MUST(rondo_comm_shrink(all, NULL, RONDO_SHRINK_FAILED, &next));
            MUST(rondo_comm_free(&all));
            MUST(rondo_comm_size(next, &remaining));
        }
        CHECK(remaining == size - dies, "%d ranks of %d, of which %d died", remaining, size, dies);
        MUST(ranks_sum(next, 1, &sum));
        CHECK(sum == remaining, "sum %lld of %d", (long long) sum, remaining);
        int done = 1; /* on all: a rank that dies in the next round takes no result of this one from others */
        MUST(rondo_comm_agree(next, &done));
        if (comm != me->world)
            MUST(rondo_comm_free(&comm));
        comm = next;
    }
    if (comm != me->world)
        MUST(rondo_comm_free(&comm));
}

static void run(struct rank *me)
{
    if (strcmp(scenario, "dying") == 0) {
        agree_dying(me);
        return;
    }
    bad_calls(me);
    agree_alive(me);
    revoke_hanging(me);
    agree_alive(me);
    grow_wrongly(me);
    grow(me, 0, 1);
    grow(me, me->size - 1, 2);
    grow(me, me->size / 2, 0);
    agree_alive(me);
}

int main(int argc, char **argv)
{
    const struct ranks_option options[] = {
        {"--ranks", &ranks, NULL, "ranks as threads; 0: from the environment"},
        {"--scenario", NULL, &scenario, "calls or dying"},
        {"--rounds", &rounds, NULL, "of dying"},
        {"--deaths", &deaths, NULL, "ranks that die at most"},
        {"--seed", &seed, NULL, "of the moments"},
    };
    ranks_parse(argc, argv, options, (int) (sizeof(options) / sizeof(options[0])));
    ranks_run((int) ranks, NULL, run, NULL);
    return ranks_finish("recovery");
}
