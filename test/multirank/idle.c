/*
 * While nothing moves, no core is used. An operation that other ranks have started meanwhile wakes a rank whose own thread
 * sleeps: rank 0 joins an all-reduce late, which the others have started and do not wait for yet. A blocking call of a small
 * collective wakes no other thread, however many blocks there are. Starting a small collective and waiting for it does so only
 * now and then. A large operation goes on while the ranks sleep, also with daemons that quit as soon as another rank keeps them
 * waiting.
 */
#include "test/multirank/ranks.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

enum { ROUNDS_MAX = 100 };

static long ranks = 2, rounds = 7, idle_ms = 1000, load_permille = 30, wake_us = 20000, small = 0, started = 0, count = 1,
            bytes = 0;

static double processor_seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double) time.tv_sec + (double) time.tv_nsec * 1e-9;
}

static void add(struct rank *me, int wait)
{
    int64_t in = me->rank + 1, out = 0, expected = (int64_t) me->size * (me->size + 1) / 2;
    rondo_request_t request;
    MUST(rondo_iallreduce(&in, &out, 1, RONDO_INT64, RONDO_SUM, me->world, &request));
    if (!wait)
        ranks_sleep(0.1);
    MUST(rondo_wait(request));
    CHECK(out == expected, "the sum is %lld, not %lld", (long long) out, (long long) expected);
}

static int by_value(const void *a, const void *b)
{
    double first = *(const double *) a, second = *(const double *) b;
    return (first > second) - (first < second);
}

static void rest(struct rank *me)
{
    STEP("idle");
    MUST(rondo_barrier(me->world));
    ranks_sleep(0.2); /* meanwhile the daemon leaves, and the proxy falls asleep */
    double before = processor_seconds(), since = ranks_seconds();
    ranks_sleep((double) idle_ms * 1e-3);
    double used = processor_seconds() - before, past = ranks_seconds() - since;
    int here = ranks > 0 ? (int) ranks : 1; /* ranks of this process */
    CHECK(used <= past * (double) load_permille * 1e-3 * here, "%.1f ms of a processor in %.0f ms in which nothing moves",
          used * 1e3, past * 1e3);
}

static void wake(struct rank *me)
{
    double late[ROUNDS_MAX];
    for (long round = 0; round < rounds; round++) {
        STEP("round %ld", round);
        MUST(rondo_barrier(me->world));
        if (me->rank > 0) {
            add(me, 0);
            continue;
        }
        ranks_sleep(0.05);
        double since = ranks_seconds();
        add(me, 1);
        late[round] = ranks_seconds() - since;
    }
    if (me->rank > 0)
        return;
    qsort(late, (size_t) rounds, sizeof(late[0]), by_value);
    double middle = late[rounds / 2] * 1e6;
    printf("idle: woken in %.0f us\n", middle);
    CHECK(middle <= (double) wake_us, "the others are woken in %.0f us", middle);
}

static long changes_of_thread(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nvcsw;
}

enum { PARTS = 10, PARTS_SECONDS = 20 };

static void repeat(struct rank *me, long calls, int64_t *in, int64_t *out)
{
    for (long i = 0; i < calls; i++) {
        rondo_request_t request;
        if (started) {
            MUST(rondo_iallreduce(in, out, (size_t) count, RONDO_INT64, RONDO_SUM, me->world, &request));
            MUST(rondo_wait(request));
        } else {
            MUST(rondo_allreduce(in, out, (size_t) count, RONDO_INT64, RONDO_SUM, me->world));
        }
    }
}

/* Counts the wake-ups of a call. A thread that is woken has slept before, with one context switch for each time, or runs beside
 * the caller. The calling thread carries out the whole operation, but the thread of block 0 checks now and then whether a
 * started operation progresses. What else runs on the machine adds changes of thread for a while, and makes ranks that share a
 * processor sleep in turns: what counts is the calmest part of the calls, which go on for some seconds until one is calm. */
static void call(struct rank *me)
{
    int64_t *in = calloc((size_t) count, sizeof(*in)), *out = calloc((size_t) count, sizeof(*out));
    const long calls = small / PARTS, most = started ? calls / 2 : calls / 1000;
    long fewest = LONG_MAX;
    double processors = 1e9;
    int64_t loud = 1;
    STEP("small calls");
    MUST(rondo_barrier(me->world));
    ranks_sleep(0.2);
    const double end = ranks_seconds() + PARTS_SECONDS;
    for (int part = 0; part < PARTS || loud > 0; part++) {
        const long before = changes_of_thread();
        const double used = processor_seconds(), since = ranks_seconds();
        repeat(me, calls, in, out);
        const long changes = changes_of_thread() - before;
        const double busy = (processor_seconds() - used) / (ranks_seconds() - since);
        fewest = changes < fewest ? changes : fewest;
        processors = busy < processors ? busy : processors;
        MUST(ranks_sum(me->world, (fewest > most || (ranks == 1 && processors >= 1.3)) && ranks_seconds() < end, &loud));
    }
    printf("idle: %ld changes of thread in %ld calls, %.2f processors\n", fewest, calls, processors);
    CHECK(ranks > 1 || processors < 1.3, "%.2f processors are busy with one caller", processors);
    CHECK(fewest <= most, "%ld changes of thread in %ld calls", fewest, calls);
    free(in);
    free(out);
}

/* Seconds of an all-reduce for whose end the ranks look once a millisecond. */
static double reduce(struct rank *me, const int64_t *in, int64_t *out)
{
    rondo_request_t request;
    int done = 0;
    MUST(rondo_barrier(me->world));
    const double since = ranks_seconds();
    MUST(rondo_iallreduce(in, out, (size_t) bytes / sizeof(*in), RONDO_INT64, RONDO_SUM, me->world, &request));
    while (!done) {
        ranks_sleep(0.001);
        MUST(rondo_test(request, &done));
    }
    return ranks_seconds() - since;
}

/* Says how long it takes, in the middle of the rounds; with which settings that should be alike, the caller knows. */
static void leave_alone(struct rank *me)
{
    double past[ROUNDS_MAX];
    int64_t *in = calloc((size_t) bytes, 1), *out = calloc((size_t) bytes, 1);
    in[0] = in[bytes / 8 - 1] = me->rank + 1;
    for (long round = 0; round < rounds; round++) {
        STEP("large, round %ld", round);
        past[round] = reduce(me, in, out);
    }
    const int64_t expected = (int64_t) me->size * (me->size + 1) / 2;
    CHECK(out[0] == expected && out[bytes / 8 - 1] == expected, "the sums are %lld and %lld, not %lld", (long long) out[0],
          (long long) out[bytes / 8 - 1], (long long) expected);
    qsort(past, (size_t) rounds, sizeof(past[0]), by_value);
    if (me->rank == 0)
        printf("idle: %ld bytes in %.1f ms while the ranks sleep\n", bytes, past[rounds / 2] * 1e3);
    free(in);
    free(out);
}

static void run(struct rank *me)
{
    if (small > 0) {
        call(me);
        return;
    }
    if (bytes > 0) {
        leave_alone(me);
        return;
    }
    for (int i = 0; i < 20; i++)
        add(me, 1);
    rest(me);
    wake(me);
}

int main(int argc, char **argv)
{
    const struct ranks_option options[] = {
        {"--ranks", &ranks, NULL, "ranks as threads, at least 2; 0: from the environment"},
        {"--rounds", &rounds, NULL, "in which rank 0 comes late, at most 100"},
        {"--idle", &idle_ms, NULL, "milliseconds in which nothing moves"},
        {"--load", &load_permille, NULL, "thousandths of a processor that each rank may use meanwhile"},
        {"--wake", &wake_us, NULL, "microseconds in which the others must be woken, in the middle of the rounds"},
        {"--small", &small, NULL, "small collectives, and nothing else"},
        {"--started", &started, NULL, "1: they are started and waited for, not called"},
        {"--count", &count, NULL, "their elements"},
        {"--bytes", &bytes, NULL, "of a large all-reduce while the ranks sleep, and nothing else"},
    };
    ranks_parse(argc, argv, options, sizeof(options) / sizeof(options[0]));
    rounds = rounds < 1 ? 1 : rounds > ROUNDS_MAX ? ROUNDS_MAX : rounds;
    ranks_run((int) ranks, NULL, run, NULL);
    return ranks_finish("idle");
}
