/* The flight recorder's ring: what a reader gets of operations that have ended, that are under way, and that are written while
 * it reads. */
#include "lib/diagnostics/flight_recorder.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

static struct rondo_flight_entry entries[RONDO_FLIGHT_RECORDS];

static int open_recorder(void **state)
{
    return rondo_flight_create((struct rondo_flight_recorder **) state) != RONDO_SUCCESS;
}

static int close_recorder(void **state)
{
    rondo_flight_destroy(*state);
    return 0;
}

/* A call of which every field tells the number. */
static struct rondo_flight_call numbered(uint64_t number)
{
    return (struct rondo_flight_call){.comm = number,
                                      .lane = number + 1,
                                      .count = number + 2,
                                      .input = number + 3,
                                      .output = number + 4,
                                      .bytes = number + 5,
                                      .kind = (uint32_t) number,
                                      .root = (int32_t) number,
                                      .type = (uint32_t) number,
                                      .op = (uint32_t) number};
}

/* Whether all of the entry is of the one operation that was recorded there. */
static int is_whole(const struct rondo_flight_entry *entry)
{
    const uint64_t number = entry->position;
    const struct rondo_flight_call *call = &entry->call;
    return entry->number == number && call->comm == number && call->lane == number + 1 && call->count == number + 2 &&
           call->input == number + 3 && call->output == number + 4 && call->bytes == number + 5 &&
           call->kind == (uint32_t) number && call->root == (int32_t) number && call->type == (uint32_t) number &&
           call->op == (uint32_t) number && entry->family == (enum rondo_flight_family)(number % RONDO_FLIGHT_FAMILIES) &&
           (entry->completed_ns != 0 || entry->result == RONDO_SUCCESS) &&
           (entry->completed_ns == 0 || entry->result == (rondo_result_t) (number % 16));
}

static uint64_t begin(struct rondo_flight_recorder *recorder, uint64_t number)
{
    const struct rondo_flight_template what = {.call = numbered(number), .id = number + 1};
    return rondo_flight_begin(recorder, &what, number, (enum rondo_flight_family)(number % RONDO_FLIGHT_FAMILIES),
                              rondo_flight_ticks(recorder), 0);
}

static void end(struct rondo_flight_recorder *recorder, uint64_t stamp)
{
    rondo_flight_end(recorder, stamp, (rondo_result_t) (RONDO_FLIGHT_POSITION(stamp) % 16), rondo_flight_ticks(recorder));
}

static void test_the_last_ones(void **state)
{
    struct rondo_flight_recorder *recorder = *state;
    assert_int_equal(rondo_flight_read(recorder, entries), 0);
    const uint64_t first = begin(recorder, 0);
    assert_int_equal(rondo_flight_read(recorder, entries), 1);
    assert_true(is_whole(&entries[0]) && entries[0].completed_ns == 0);
    for (uint64_t number = 1; number < 3 * RONDO_FLIGHT_RECORDS; number++) {
        const uint64_t stamp = begin(recorder, number);
        if (number % 2 == 0)
            end(recorder, stamp);
    }
    assert_int_equal(rondo_flight_read(recorder, entries), RONDO_FLIGHT_RECORDS);
    for (uint64_t i = 0; i < RONDO_FLIGHT_RECORDS; i++) {
        assert_int_equal(entries[i].position, 2 * RONDO_FLIGHT_RECORDS + i);
        assert_true(is_whole(&entries[i]));
        assert_int_equal(entries[i].completed_ns != 0, i % 2 == 0);
    }
    assert_int_equal(recorder->dropped, 0);
    end(recorder, first); /* its record is another operation's by now */
    assert_int_equal(recorder->dropped, 1);
    rondo_flight_read(recorder, entries);
    assert_true(is_whole(&entries[0]));
}

static void test_times(void **state)
{
    struct rondo_flight_recorder *recorder = *state;
    for (uint64_t number = 0; number < 20; number++) {
        const uint64_t before = rondo_clock_ns(), stamp = begin(recorder, number);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        end(recorder, stamp);
        const uint64_t after = rondo_clock_ns();
        assert_int_equal(rondo_flight_read(recorder, entries), number + 1);
        const struct rondo_flight_entry *entry = &entries[number];
        /* Two readings that make a line are not made at the same instant where threads share cores. */
        assert_true(entry->started_ns + 500000 > before && entry->completed_ns < after + 500000);
        assert_true(entry->completed_ns - entry->started_ns > 500000);
    }
}

static uint32_t stopping;

static void *write_on(void *argument)
{
    struct rondo_flight_recorder *recorder = argument;
    for (uint64_t number = 0; !__atomic_load_n(&stopping, __ATOMIC_RELAXED); number++)
        end(recorder, begin(recorder, number));
    return NULL;
}

/* Without rondo_flight_open, or without the second reading of the stamp, a reader gets parts of two operations. */
static void test_read_while_written(void **state)
{
    struct rondo_flight_recorder *recorder = *state;
    pthread_t writer;
    uint64_t began = rondo_clock_ns(), read = 0;
    stopping = 0;
    assert_int_equal(pthread_create(&writer, NULL, write_on, recorder), 0);
    int whole = 1;
    while (whole && rondo_clock_ns() - began < 1500000000u) {
        const size_t count = rondo_flight_read(recorder, entries);
        for (size_t i = 0; i < count; i++)
            whole &= is_whole(&entries[i]);
        read += count;
    }
    __atomic_store_n(&stopping, 1, __ATOMIC_RELAXED);
    pthread_join(writer, NULL);
    assert_true(whole);
    assert_true(read > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_last_ones, open_recorder, close_recorder),
        cmocka_unit_test_setup_teardown(test_times, open_recorder, close_recorder),
        cmocka_unit_test_setup_teardown(test_read_while_written, open_recorder, close_recorder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
