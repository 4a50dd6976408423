/*
 * Communicators that their members make by themselves. Those of the remaining ranks of another one (rondo_comm_shrink), which
 * is intact, aborted, or has a rank that hangs, and the state that they report (rondo_comm_status). Those of ranks that are
 * listed (rondo_comm_create_group): in any order, again and again, of each other, from several threads at a time, beside
 * collectives of the communicator that they are made from; and lists that are wrong, or differ between members. And the
 * in-place reduce-scatter in NCCL's form, on buffers of the device.
 */
#include "test/multirank/ranks.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static long ranks = 3, threads = 3, rounds = 5, late = 0;

static void good(rondo_comm_t comm, int size)
{
    int64_t sum = 0;
    int counted;
    MUST(rondo_comm_size(comm, &counted));
    CHECK(counted == size, "%d ranks, not %d", counted, size);
    MUST(ranks_sum(comm, 1, &sum));
    CHECK(sum == size, "sum %lld of %d ranks", (long long) sum, size);
}

static void await_idle(rondo_comm_t comm)
{
    rondo_result_t failure;
    int idle = 0;
    for (double end = ranks_seconds() + 10; !idle && ranks_seconds() < end; ranks_sleep(0.001))
        MUST(rondo_comm_status(comm, &failure, &idle));
    CHECK(idle, "operations go on");
}

static void bad_calls(struct rank *me)
{
    rondo_comm_t made;
    int all[64], other = (me->rank + 1) % me->size;
    for (int i = 0; i < 64; i++)
        all[i] = i;
    EXPECT(RONDO_ERR_ARGUMENT, "NULL", rondo_comm_shrink(NULL, all, 0, &made));
    EXPECT(RONDO_ERR_ARGUMENT, "NULL", rondo_comm_shrink(me->world, NULL, 1, &made));
    EXPECT(RONDO_ERR_ARGUMENT, "NULL", rondo_comm_shrink(me->world, &other, 1, NULL));
    EXPECT(RONDO_ERR_ARGUMENT, "ranks are to be excluded", rondo_comm_shrink(me->world, all, me->size, &made));
    if (me->size > 1)
        EXPECT(RONDO_ERR_ARGUMENT, "excludes rank", rondo_comm_shrink(me->world, &me->rank, 1, &made));
    EXPECT(RONDO_ERR_ARGUMENT, "NULL", rondo_comm_status(NULL, NULL, NULL));
}

/* The last rank does nothing but wait until the others have finished: when it leaves, every communicator that it belongs to
 * fails. */
static void rest(struct rank *me)
{
    int last = me->size - 1, idle;
    rondo_comm_t first = NULL, second = NULL, third = NULL;
    rondo_request_t request;
    rondo_result_t failure;
    float in = 1, out = 0;
    if (me->rank == last)
        return;
    MUST(rondo_comm_shrink(me->world, &last, 1, &first));
    good(first, me->size - 1);
    MUST(rondo_comm_shrink(me->world, &last, 1, &second)); /* a second communicator of the same ranks */
    good(second, me->size - 1);
    good(first, me->size - 1);
    await_idle(first);
    MUST(rondo_comm_status(first, &failure, &idle));
    CHECK(failure == RONDO_SUCCESS, "%s", rondo_last_error());
    MUST(rondo_comm_free(&second));
    /* On the host device these are the buffers; the operation never begins. */
    if (ranks_device() == RONDO_DEVICE_HOST) {
        MUST(rondo_iallreduce(&in, &out, 1, RONDO_FLOAT, RONDO_SUM, me->world, &request));
        MUST(rondo_comm_status(me->world, &failure, &idle));
        CHECK(failure == RONDO_SUCCESS && !idle, "an operation that waits for the last rank: failure %d, idle %d",
              (int) failure, idle);
        MUST(rondo_barrier(first)); /* all ranks have started it */
        MUST(rondo_comm_abort(me->world, 7));
        EXPECT(RONDO_ERR_ABORTED, "aborted", rondo_wait(request));
        MUST(rondo_comm_status(me->world, &failure, NULL));
        CHECK(failure == RONDO_ERR_ABORTED, "failure %d", (int) failure);
        await_idle(me->world);
    }
    MUST(rondo_comm_shrink(me->world, &last, 1, &third)); /* from a communicator that has failed */
    good(third, me->size - 1);
    MUST(rondo_comm_free(&third));
    MUST(rondo_comm_free(&first));
}

/* The result replaces the rank's own block of the input. */
static void own_block(struct rank *me)
{
    static const size_t counts[] = {1, 3, 1000, 4099, 70001};
    for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
        size_t count = counts[c], all = count * (size_t) me->size, wrong = 0;
        int32_t *host = malloc(all * sizeof(*host)), *device = ranks_allocate(all * sizeof(*host));
        for (size_t i = 0; i < all; i++)
            host[i] = (int32_t) i + me->rank;
        ranks_put(device, host, all * sizeof(*host));
        MUST(rondo_reduce_scatter_block(device, device + (size_t) me->rank * count, count, RONDO_INT32, RONDO_SUM, me->world));
        ranks_get(host, device, all * sizeof(*host));
        for (size_t i = 0; i < all; i++) {
            int mine = i / count == (size_t) me->rank;
            int32_t sum = (int32_t) i * me->size + me->size * (me->size - 1) / 2;
            wrong += host[i] != (mine ? sum : (int32_t) i + me->rank);
        }
        CHECK(wrong == 0, "%zu of %zu elements are wrong for %zu a rank", wrong, all, count);
        int32_t *beside = device + (size_t) me->rank * count + (me->rank == 0 ? 1 : -1);
        if (me->size > 1 && count > 1)
            EXPECT(RONDO_ERR_BUFFER, "overlap",
                   rondo_reduce_scatter_block(device, beside, count, RONDO_INT32, RONDO_SUM, me->world));
        free(host);
        ranks_release(device);
    }
}

/* Waits until all ranks have finished. A rank whose world has failed leaves without waiting for the others, and what they have
 * not ended by then fails. Threads therefore wait for each other's last operation; processes give each other half a second. */
static void await_all(const struct rank *me)
{
    static int out;
    int apart = ranks == 0;
    __atomic_add_fetch(&out, 1, __ATOMIC_ACQ_REL);
    for (double end = ranks_seconds() + (apart ? 0.5 : 10); ranks_seconds() < end; ranks_sleep(0.001))
        if (!apart && __atomic_load_n(&out, __ATOMIC_ACQUIRE) >= me->size)
            break;
}

/* ---- ranks that are listed ---- */

enum { RANKS_MOST = 64 };

/* The communicator has the listed ranks, in that order, and works. */
static void good_group(struct rank *me, rondo_comm_t comm, const int *list, int count)
{
    int size, rank, gathered[RANKS_MOST];
    MUST(rondo_comm_size(comm, &size));
    MUST(rondo_comm_rank(comm, &rank));
    CHECK(size == count && list[rank] == me->rank, "rank %d of %d, not of %d", rank, size, count);
    int32_t *mine = ranks_allocate(sizeof(*mine)), *all = ranks_allocate(sizeof(*all) * RANKS_MOST);
    ranks_put(mine, &(int32_t){me->rank}, sizeof(*mine));
    MUST(rondo_allgather(mine, all, 1, RONDO_INT32, comm));
    ranks_get(gathered, all, sizeof(*all) * (size_t) count);
    for (int i = 0; i < count; i++)
        CHECK(gathered[i] == list[i], "rank %d is %d of the world, not %d", i, gathered[i], list[i]);
    ranks_release(mine);
    ranks_release(all);
}

/* A random list of at least one rank: the same on all ranks that have the same seed. */
static int random_list(uint64_t *plan, int size, int *list)
{
    int all[RANKS_MOST], count = 1 + ranks_below(plan, size);
    for (int i = 0; i < size; i++)
        all[i] = i;
    for (int i = 0; i < count; i++) {
        int k = i + ranks_below(plan, size - i);
        list[i] = all[k];
        all[k] = all[i];
    }
    return count;
}

static int is_listed(const int *list, int count, int rank)
{
    for (int i = 0; i < count; i++)
        if (list[i] == rank)
            return 1;
    return 0;
}

static void random_groups(struct rank *me)
{
    uint64_t plan = 77;
    rondo_comm_t made[8] = {NULL};
    for (int round = 0; round < 40; round++) {
        int list[RANKS_MOST], count = random_list(&plan, me->size, list), place = round % 8;
        STEP("group %d of %d ranks", round, count);
        if (made[place] != NULL)
            MUST(rondo_comm_free(&made[place]));
        if (!is_listed(list, count, me->rank))
            continue;
        MUST(rondo_comm_create_group(me->world, list, count, round % 3, &made[place]));
        good_group(me, made[place], list, count);
    }
    for (int i = 0; i < 8; i++)
        if (made[i] != NULL)
            MUST(rondo_comm_free(&made[i]));
}

/* A group of a group: its lists are of the first group's ranks. */
static void nested(struct rank *me)
{
    int reversed[RANKS_MOST], first[RANKS_MOST];
    rondo_comm_t outer, inner;
    for (int i = 0; i < me->size; i++)
        reversed[i] = me->size - 1 - i;
    MUST(rondo_comm_create_group(me->world, reversed, me->size, 0, &outer));
    for (int i = 0; i < me->size; i++) /* back again */
        first[i] = i;
    MUST(rondo_comm_create_group(outer, reversed, me->size, 0, &inner));
    good_group(me, inner, first, me->size);
    MUST(rondo_comm_free(&outer));
    good_group(me, inner, first, me->size);
    MUST(rondo_comm_free(&inner));
}

struct worker {
    struct rank *me;
    int number;
};

static void *work(void *opaque)
{
    struct worker *worker = opaque;
    struct rank *me = worker->me;
    uint64_t plan = 1000 + (uint64_t) worker->number;
    ranks_current = me->rank;
    for (int round = 0; round < rounds; round++) {
        int list[RANKS_MOST], count = random_list(&plan, me->size, list);
        rondo_comm_t comm;
        STEP("thread %d, round %d", worker->number, round);
        if (!is_listed(list, count, me->rank))
            continue;
        MUST(rondo_comm_create_group(me->world, list, count, worker->number, &comm));
        good_group(me, comm, list, count);
        MUST(rondo_comm_free(&comm));
    }
    return NULL;
}

/* Each thread of a rank has a tag of its own, and makes groups while an all-reduce of the world waits for its last rank. */
static void from_threads(struct rank *me)
{
    struct worker *workers = calloc((size_t) threads, sizeof(*workers));
    pthread_t *running = calloc((size_t) threads, sizeof(*running));
    rondo_request_t request;
    int64_t sum = 0, *in = ranks_allocate(sizeof(*in)), *out = ranks_allocate(sizeof(*out));
    ranks_put(in, &(int64_t){1}, sizeof(*in));
    if (me->rank != me->size - 1)
        MUST(rondo_iallreduce(in, out, 1, RONDO_INT64, RONDO_SUM, me->world, &request));
    for (int t = 0; t < threads; t++) {
        workers[t] = (struct worker){me, t};
        pthread_create(&running[t], NULL, work, &workers[t]);
    }
    for (int t = 0; t < threads; t++)
        pthread_join(running[t], NULL);
    if (me->rank == me->size - 1)
        MUST(rondo_iallreduce(in, out, 1, RONDO_INT64, RONDO_SUM, me->world, &request));
    MUST(rondo_wait(request));
    ranks_get(&sum, out, sizeof(sum));
    CHECK(sum == me->size, "sum %lld", (long long) sum);
    ranks_release(in);
    ranks_release(out);
    free(workers);
    free(running);
}

static void bad_groups(struct rank *me)
{
    rondo_comm_t made = (rondo_comm_t) (void *) me;
    int list[RANKS_MOST + 1], other = (me->rank + 1) % me->size;
    for (int i = 0; i <= me->size; i++)
        list[i] = i;
    EXPECT(RONDO_ERR_ARGUMENT, "NULL", rondo_comm_create_group(NULL, list, 1, 0, &made));
    EXPECT(RONDO_ERR_ARGUMENT, "list of ranks is NULL", rondo_comm_create_group(me->world, NULL, 1, 0, &made));
    EXPECT(RONDO_ERR_ARGUMENT, "result pointer is NULL", rondo_comm_create_group(me->world, list, 1, 0, NULL));
    EXPECT(RONDO_ERR_ARGUMENT, "0 ranks", rondo_comm_create_group(me->world, list, 0, 0, &made));
    EXPECT(RONDO_ERR_ARGUMENT, "are listed", rondo_comm_create_group(me->world, list, me->size + 1, 0, &made));
    EXPECT(RONDO_ERR_ARGUMENT, "tag -1", rondo_comm_create_group(me->world, list, me->size, -1, &made));
    if (me->size == 1)
        return;
    EXPECT(RONDO_ERR_ARGUMENT, "is not listed", rondo_comm_create_group(me->world, &other, 1, 0, &made));
    list[other] = me->size;
    EXPECT(RONDO_ERR_ARGUMENT, "is not a rank", rondo_comm_create_group(me->world, list, me->size, 0, &made));
    list[other] = me->rank;
    EXPECT(RONDO_ERR_ARGUMENT, "listed twice", rondo_comm_create_group(me->world, list, me->size, 0, &made));
}

/* The last rank gives another order, then fewer ranks. All that meet learn it, and what they make next works. */
static void mismatches(struct rank *me)
{
    int list[RANKS_MOST], last = me->size - 1;
    rondo_comm_t made;
    for (int fewer = 0; fewer < 2 && me->size > 2; fewer++) {
        int count = me->size;
        for (int i = 0; i < me->size; i++)
            list[i] = i;
        if (me->rank == last && fewer)
            list[1] = list[--count];
        else if (me->rank == last)
            list[0] = 1, list[1] = 0;
        EXPECT(RONDO_ERR_MISMATCH, "ranks disagree", rondo_comm_create_group(me->world, list, count, 9, &made));
        CHECK(made == NULL, "a communicator was made");
        MUST(rondo_barrier(me->world));
        for (int i = 0; i < me->size; i++)
            list[i] = last - i;
        MUST(rondo_comm_create_group(me->world, list, me->size, 9, &made));
        good_group(me, made, list, me->size);
        MUST(rondo_comm_free(&made));
    }
}

enum { FORGOTTEN = 20 }; /* more notices than a rank remembers */

static atomic_int given_up;

/* Makes the other ranks forget earlier notices, by new ones about communicators that they do not have. */
static void fill_memory(struct rank *me)
{
    rondo_comm_t alone;
    if (me->rank == 0)
        return;
    for (int i = 0; i < FORGOTTEN; i++) {
        MUST(rondo_comm_create_group(me->world, &me->rank, 1, i, &alone));
        MUST(rondo_comm_abort(alone, 1));
        MUST(rondo_comm_free(&alone));
    }
}

/* Returns when all ranks have called it, and have handled what the others had sent before. */
static void meet_all(struct rank *me)
{
    rondo_comm_t all;
    MUST(rondo_comm_create_group(me->world, (const int[]){0, 1, 2}, 3, 7, &all));
    MUST(rondo_comm_free(&all));
}

static void good_pair(struct rank *me, int other, int tag)
{
    rondo_comm_t pair;
    int64_t sum = 0;
    const int list[2] = {0, other};
    MUST(rondo_comm_create_group(me->world, list, 2, tag, &pair));
    MUST(ranks_sum(pair, me->rank + 1, &sum));
    CHECK(sum == other + 2, "ranks 0 and %d: %lld", other, (long long) sum);
    MUST(rondo_comm_free(&pair));
}

/* Some members do not come until the others have given up (RONDO_TIMEOUT, which must be set): rank 1 waits for rank 0, the
 * first member, and rank 0 for rank 2. The late ones get the failure, also long after the notices of it have been forgotten,
 * and what all make next with the same members and tag is right. Three ranks as threads. */
static void attempts(struct rank *me)
{
    rondo_comm_t made = NULL;
    const int first[2] = {0, 1}, second[2] = {0, 2};
    for (int round = 1; round <= 2; round++) {
        meet_all(me);
        if (me->rank == 1)
            EXPECT(RONDO_ERR_TIMEOUT, "rank 0 has not answered", rondo_comm_create_group(me->world, first, 2, 5, &made));
        if (me->rank == 0)
            EXPECT(RONDO_ERR_TIMEOUT, "rank 2 has not joined", rondo_comm_create_group(me->world, second, 2, 6, &made));
        atomic_fetch_add(&given_up, me->rank < 2);
        for (double end = ranks_seconds() + 60; atomic_load(&given_up) < 2 * round && ranks_seconds() < end;)
            ranks_sleep(0.001);
        if (round == 1) /* in the second round the notices are still there */
            fill_memory(me);
        meet_all(me);
        if (me->rank == 0)
            EXPECT(RONDO_ERR_TIMEOUT, "failed", rondo_comm_create_group(me->world, first, 2, 5, &made));
        if (me->rank == 2)
            EXPECT(RONDO_ERR_TIMEOUT, "failed", rondo_comm_create_group(me->world, second, 2, 6, &made));
        CHECK(made == NULL, "a communicator was made without a member");
        fill_memory(me);
        meet_all(me);
        if (me->rank < 2)
            good_pair(me, 1, 5);
        if (me->rank != 1)
            good_pair(me, 2, 6);
    }
}

static void measure(struct rank *me)
{
    int list[RANKS_MOST];
    enum { TIMES = 50 };
    rondo_comm_t made[TIMES];
    for (int i = 0; i < me->size; i++)
        list[i] = i;
    MUST(rondo_barrier(me->world));
    double start = ranks_seconds();
    for (int i = 0; i < TIMES; i++)
        MUST(rondo_comm_create_group(me->world, list, me->size, 0, &made[i]));
    double each = (ranks_seconds() - start) / TIMES * 1e6;
    for (int i = 0; i < TIMES; i++)
        MUST(rondo_comm_free(&made[i]));
    if (me->rank == 0)
        printf("create_group: %.0f us each with %d ranks\n", each, me->size);
}

static void member(struct rank *me)
{
    rondo_comm_t all;
    own_block(me);
    bad_calls(me);
    bad_groups(me);
    random_groups(me);
    nested(me);
    from_threads(me);
    mismatches(me);
    measure(me);
    if (me->size > 1) {
        MUST(rondo_comm_dup(me->world, &all));
        rest(me);
        MUST(rondo_barrier(all));
        await_all(me);
        MUST(rondo_comm_free(&all));
    }
}

int main(int argc, char **argv)
{
    const struct ranks_option options[] = {{"--ranks", &ranks, NULL, "ranks as threads; 0: the environment says"},
                                           {"--threads", &threads, NULL, "of each rank that make groups"},
                                           {"--rounds", &rounds, NULL, "groups of each thread"},
                                           {"--late", &late, NULL, "1: three ranks, of which some come too late"}};
    ranks_parse(argc, argv, options, sizeof(options) / sizeof(options[0]));
    ranks_run(late ? 3 : (int) ranks, NULL, late ? attempts : member, NULL);
    return ranks_finish("members_alone");
}
