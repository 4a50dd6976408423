/*
 * The lock of lib/base/futex.h: what it protects is changed by one thread at a time, and a thread that waits for it gets it,
 * also while the threads are more than the processors. Built with ThreadSanitizer, a lock whose taking is no acquire, or whose
 * dropping no release, is found as well.
 */
#include "lib/base/futex.h"

#include "lib/base/thread.h"

#include <sched.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

enum { THREADS = 6, TURNS = 20000, LONG_TURN = 512, LIMIT_MS = 60000 };

static struct rondo_lock lock;
static long count, inside, mistakes;
static int64_t longest_ms; /* that a thread waited */

static void *take_turns(void *argument)
{
    for (long turn = 0; turn < TURNS; turn++) {
        const int64_t before = rondo_clock_ms();
        rondo_lock_take(&lock);
        const int64_t waited = rondo_clock_ms() - before;
        longest_ms = waited > longest_ms ? waited : longest_ms;
        mistakes += inside++ != 0;
        count++;
        if (turn % LONG_TURN == 0) /* the others go to sleep */
            sched_yield();
        inside--;
        rondo_lock_drop(&lock);
    }
    return argument;
}

static void one_thread_at_a_time(void **state)
{
    (void) state;
    pthread_t threads[THREADS];
    const int64_t before = rondo_clock_ms();
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(rondo_thread_start(&threads[i], "lock", 65536, take_turns, NULL), RONDO_SUCCESS);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    print_message("%d threads, %ld turns: the longest wait %ld ms\n", THREADS, count, (long) longest_ms);
    assert_int_equal(count, (long) THREADS * TURNS);
    assert_int_equal(mistakes, 0);
    assert_int_equal(lock.held, 0);
    assert_int_equal(lock.sleepers, 0);
    assert_true(rondo_clock_ms() - before < LIMIT_MS);
}

/* Holds the lock longer than others look before they sleep. */
static void *hold_for_long(void *argument)
{
    for (int i = 0; i < 200; i++) {
        rondo_lock_take(&lock);
        struct timespec hold = {0, 100000};
        nanosleep(&hold, NULL);
        rondo_lock_drop(&lock);
        sched_yield();
    }
    return argument;
}

static void sleepers_get_it(void **state)
{
    (void) state;
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(rondo_thread_start(&threads[i], "lock", 65536, hold_for_long, NULL), RONDO_SUCCESS);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(lock.held, 0);
    assert_int_equal(lock.sleepers, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_thread_at_a_time), cmocka_unit_test(sleepers_get_it)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
