/* Exchanges among ranks that are threads (lib/connection/exchange.h): every shape of the tree, wholes of one part and of
 * several, and what members learn of one that sends other bytes or does not come. */
#include "lib/base/error.h"
#include "lib/connection/exchange.h"
#include "lib/context/handles.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { RANKS_MOST = 33 };

struct rank {
    int rank, size, failures;
    rondo_t runtime;
    rondo_comm_t world;
    rondo_result_t result; /* of what the test is about */
    char message[1024];
};

static rondo_unique_id_t id;
static pthread_barrier_t together;

/* Of the rank's own thread, which may not assert. */
static void expect(struct rank *me, rondo_result_t result, const char *what)
{
    if (result == RONDO_SUCCESS)
        return;
    printf("rank %d of %d: %s: %s: %s\n", me->rank, me->size, what, rondo_strerror(result), rondo_last_error());
    me->failures++;
}

static void open_rank(struct rank *me)
{
    rondo_config_t config = RONDO_CONFIG_DEFAULT;
    config.rank = me->rank;
    config.size = me->size;
    config.unique_id = &id;
    config.device = RONDO_DEVICE_HOST;
    expect(me, rondo_init(&me->runtime, &config), "rondo_init");
    if (me->failures == 0)
        expect(me, rondo_comm_world(me->runtime, &me->world), "rondo_comm_world");
}

static void run(int size, void *(*function)(void *), struct rank *ranks)
{
    pthread_t threads[RANKS_MOST];
    assert_int_equal(rondo_get_unique_id(&id), RONDO_SUCCESS);
    pthread_barrier_init(&together, NULL, (unsigned) size);
    for (int i = 0; i < size; i++) {
        ranks[i] = (struct rank){.rank = i, .size = size};
        assert_int_equal(pthread_create(&threads[i], NULL, function, &ranks[i]), 0);
    }
    for (int i = 0; i < size; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&together);
    for (int i = 0; i < size; i++)
        assert_int_equal(ranks[i].failures, 0);
}

/* Member m's record is what begins at byte 31 m. */
static char records[5 * RONDO_MAIL_PART_MOST + 31 * RANKS_MOST];

static void fill_records(void)
{
    uint32_t state = 1;
    for (size_t i = 0; i < sizeof(records); i++)
        records[i] = (char) ((state = state * 1664525 + 1013904223) >> 24);
}

/* Exchanges records of so many bytes, and looks whether each member's is at its place. */
static void exchange(struct rank *me, rondo_comm_t handle, size_t bytes)
{
    struct rondo_comm *comm;
    expect(me, rondo_comm_of(handle, "exchange", &comm), "rondo_comm_of");
    char *all = malloc((size_t) comm->size * bytes);
    expect(me, rondo_exchange(comm, "exchange", records + 31 * comm->rank, bytes, all), "rondo_exchange");
    for (int member = 0; member < comm->size; member++)
        if (memcmp(all + (size_t) member * bytes, records + 31 * member, bytes) != 0) {
            printf("rank %d of %d: member %d's %zu bytes are wrong\n", me->rank, me->size, member, bytes);
            me->failures++;
        }
    free(all);
}

/* Wholes up to three parts and a little, of one part exactly among them, then meetings; in the world, and in its halves, whose
 * members are in the opposite order. */
static void *exchange_all(void *argument)
{
    struct rank *me = argument;
    open_rank(me);
    if (me->failures > 0)
        return NULL;
    const size_t part = RONDO_MAIL_PART_MOST / (size_t) me->size;
    const size_t bytes[] = {1, 40, part, part + 1, 3 * part + 5};
    for (size_t i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++)
        exchange(me, me->world, bytes[i]);
    rondo_comm_t half;
    struct rondo_comm *comm;
    expect(me, rondo_comm_split(me->world, me->rank % 2, -me->rank, &half), "rondo_comm_split");
    exchange(me, half, 16);
    exchange(me, half, 5 * part);
    if (rondo_comm_of(half, "meet", &comm) == RONDO_SUCCESS)
        expect(me, rondo_meet(comm, "meet", NULL), "rondo_meet");
    expect(me, rondo_comm_free(&half), "rondo_comm_free");
    expect(me, rondo_finalize(me->runtime), "rondo_finalize");
    return NULL;
}

static void test_every_shape(void **state)
{
    (void) state;
    static const int sizes[] = {1, 2, 3, 5, 7, 8, 16, RANKS_MOST};
    struct rank ranks[RANKS_MOST];
    fill_records();
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        run(sizes[i], exchange_all, ranks);
}

/* Makes an exchange that fails, and stores its result and message. No rank leaves before all have theirs. */
static void keep_result(struct rank *me, size_t bytes)
{
    struct rondo_comm *comm;
    char *mine = calloc(1, bytes), *all = calloc((size_t) me->size, bytes);
    expect(me, rondo_comm_of(me->world, "keep_result", &comm), "rondo_comm_of");
    me->result = rondo_exchange(comm, "keep_result", mine, bytes, all);
    snprintf(me->message, sizeof(me->message), "%s", rondo_last_error());
    free(mine);
    free(all);
    pthread_barrier_wait(&together);
    expect(me, rondo_finalize(me->runtime), "rondo_finalize");
}

enum { ODD_ONE = 5, EIGHT = 8 };

/* Both numbers make several parts. */
static void *send_others(void *argument)
{
    struct rank *me = argument;
    open_rank(me);
    pthread_barrier_wait(&together);
    keep_result(me, me->rank == ODD_ONE ? RONDO_MAIL_PART_MOST + 1 : 2 * RONDO_MAIL_PART_MOST + 8);
    return NULL;
}

static void test_other_bytes(void **state)
{
    (void) state;
    struct rank ranks[EIGHT];
    run(EIGHT, send_others, ranks);
    for (int i = 0; i < EIGHT; i++) {
        assert_int_equal(ranks[i].result, RONDO_ERR_MISMATCH);
        assert_non_null(strstr(ranks[i].message, "rank 5 sent"));
        assert_non_null(strstr(ranks[i].message, "ranks call different functions"));
    }
}

static void *stay_away(void *argument)
{
    struct rank *me = argument;
    open_rank(me);
    pthread_barrier_wait(&together);
    if (me->rank != ODD_ONE) {
        keep_result(me, 4);
        return NULL;
    }
    pthread_barrier_wait(&together);
    expect(me, rondo_finalize(me->runtime), "rondo_finalize");
    return NULL;
}

/* The member that waits for the missing one is not the first, and yet all are told which one is missing. */
static void test_one_that_does_not_come(void **state)
{
    (void) state;
    struct rank ranks[EIGHT];
    setenv("RONDO_TIMEOUT", "1", 1);
    run(EIGHT, stay_away, ranks);
    unsetenv("RONDO_TIMEOUT");
    for (int i = 0; i < EIGHT; i++) {
        if (i == ODD_ONE)
            continue;
        assert_int_equal(ranks[i].result, RONDO_ERR_TIMEOUT);
        assert_non_null(strstr(ranks[i].message, "rank 5 has not joined within 1 s"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_shape),
        cmocka_unit_test(test_other_bytes),
        cmocka_unit_test(test_one_that_does_not_come),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
