/*
 * The timing of a row. Batches of Rondo and of the peer alternate, so that both meet the same machine; each begins at a
 * barrier of its own. What is enqueued on a stream is enqueued back to back, and a batch ends when the stream is done. A batch
 * takes as long as its slowest rank; the row is the median of its batches. The time that changing the input takes is measured
 * by itself after the batch, and taken off.
 */
#include "tools/bench/bench.h"
#include "lib/diagnostics/timeline.h"

#include <stdio.h>

enum { BATCHES_MAX = 10, ITERATIONS_MIN = 5, ITERATIONS_MAX = 2000 };
#define ROW_SECONDS 0.2 /* that a row's iterations should take, where their number is free */

struct timer {
    struct bench *bench;
    const struct bench_work *work;
    const char **what;
    char message[256]; /* of the peer */
};

static rondo_result_t peer_failed(struct timer *t, const char *what)
{
    fprintf(stderr, "rondo bench: rank %d: peer %s: %s: %s\n", t->bench->rank->rank, t->bench->options->peer->name, what,
            t->message);
    *t->what = "the peer's run";
    return RONDO_ERR_SYSTEM;
}

typedef rondo_result_t run_function(void *argument);

static void vary(const struct bench_work *work, int follow)
{
    if (work->vary != NULL)
        work->vary(work->argument, follow);
}

/* What the changes of the input took in a batch of so many iterations. */
static double vary_seconds(const struct bench_work *work, int iterations)
{
    double start = ranks_clock();
    for (int i = 0; i < iterations; i++)
        vary(work, iterations - 1 - i);
    return work->vary != NULL ? ranks_clock() - start : 0;
}

static rondo_result_t batch(struct timer *t, run_function *run, int iterations, double *seconds)
{
    const struct bench_work *work = t->work;
    rondo_result_t code = rondo_barrier(t->bench->rank->world);
    double start = ranks_clock();
    for (int i = 0; code == RONDO_SUCCESS && i < iterations; i++) {
        vary(work, iterations - 1 - i);
        code = run(work->argument);
    }
    if (code == RONDO_SUCCESS)
        code = work->finish(work->argument);
    *seconds = ranks_clock() - start - vary_seconds(work, iterations);
    return code;
}

/* The daemon must have stopped polling before the peer is measured: it would take the peer's processor. */
static rondo_result_t peer_batch(struct timer *t, int iterations, double *seconds)
{
    const struct bench_work *work = t->work;
    const struct peer *peer = t->bench->options->peer;
    struct peer_state *state = t->bench->peer;
    size_t room = sizeof(t->message);
    rondo_result_t code = rondo_device_synchronize(t->bench->rank->runtime);
    if (code != RONDO_SUCCESS)
        return code;
    if (peer->barrier(state, t->message, room) != 0)
        return peer_failed(t, "barrier");
    double start = ranks_clock();
    for (int i = 0; i < iterations; i++) {
        vary(work, iterations - 1 - i);
        if (work->peer_run(work->argument, t->message, room) != 0)
            return peer_failed(t, "run");
        if ((work->peer_waits || i + 1 == iterations) && peer->finish != NULL && peer->finish(state, t->message, room) != 0)
            return peer_failed(t, "end of the run");
    }
    *seconds = ranks_clock() - start - vary_seconds(work, iterations);
    /* What a rank has handed to its peer library may only leave while it is called: none may turn to Rondo before all are done.
     */
    return peer->barrier(state, t->message, room) != 0 ? peer_failed(t, "barrier") : RONDO_SUCCESS;
}

/* The same without the trace. */
static rondo_result_t untraced_batch(struct timer *t, int iterations, double *seconds)
{
    rondo_t runtime = t->bench->rank->runtime;
    rondo_result_t code = rondo_timeline_pause(runtime, 1);
    if (code == RONDO_SUCCESS)
        code = batch(t, t->work->run, iterations, seconds);
    rondo_result_t after = rondo_timeline_pause(runtime, 0);
    return code == RONDO_SUCCESS ? after : code;
}

/* Of what takes turns with Rondo: the peer, Rondo without a trace, or without compression. */
static rondo_result_t other_batch(struct timer *t, int iterations, double *seconds)
{
    if (t->bench->options->peer != NULL)
        return peer_batch(t, iterations, seconds);
    if (t->bench->options->trace_cost)
        return untraced_batch(t, iterations, seconds);
    return t->work->plain_run != NULL ? batch(t, t->work->plain_run, iterations, seconds) : RONDO_SUCCESS;
}

static rondo_result_t warm_up(struct timer *t)
{
    const struct bench_options *options = t->bench->options;
    int warmup = options->warmup >= 0 ? options->warmup : t->work->bytes <= 65536 ? 20 : 3;
    double ignored;
    rondo_result_t code = batch(t, t->work->run, warmup, &ignored);
    if (code == RONDO_SUCCESS)
        code = other_batch(t, warmup, &ignored);
    return code;
}

/* Rank 0 decides from a short trial; all ranks must agree. */
static rondo_result_t choose_iterations(struct timer *t, int *iterations)
{
    *iterations = t->bench->options->iterations;
    if (*iterations > 0)
        return RONDO_SUCCESS;
    int trial = t->work->bytes <= 65536 ? 10 : 2;
    double seconds;
    rondo_result_t code = batch(t, t->work->run, trial, &seconds);
    if (code != RONDO_SUCCESS)
        return code;
    double wanted = ROW_SECONDS * trial / (seconds > 1e-9 ? seconds : 1e-9);
    int decided = wanted > ITERATIONS_MAX ? ITERATIONS_MAX : wanted < ITERATIONS_MIN ? ITERATIONS_MIN : (int) wanted;
    code = ranks_share(t->bench->rank, &decided, sizeof(decided));
    *iterations = decided;
    return code;
}

/* The batch that is timed last, and the blocks of its kernels. */
static rondo_result_t counted_batch(struct timer *t, int iterations, double *seconds, double *blocks)
{
    rondo_t runtime = t->bench->rank->runtime;
    rondo_stats_t before, after;
    rondo_result_t code = rondo_get_stats(runtime, &before);
    if (code == RONDO_SUCCESS)
        code = batch(t, t->work->run, iterations, seconds);
    if (code == RONDO_SUCCESS)
        code = rondo_get_stats(runtime, &after);
    if (code == RONDO_SUCCESS)
        *blocks = (double) (after.stream_blocks - before.stream_blocks) / iterations;
    return code;
}

rondo_result_t bench_time(struct bench *bench, const struct bench_work *work, struct bench_timing *timing, const char **what)
{
    struct timer t = {.bench = bench, .work = work, .what = what, .message = ""};
    double times[3 * BATCHES_MAX] = {0};
    int iterations = 0;
    *what = "warm-up";
    rondo_result_t code = warm_up(&t);
    if (code == RONDO_SUCCESS)
        code = choose_iterations(&t, &iterations);
    if (code != RONDO_SUCCESS)
        return code;
    *what = "timed run";
    int batches = iterations < BATCHES_MAX ? iterations : BATCHES_MAX;
    for (int k = 0; k < batches; k++) {
        int some = (int) ((int64_t) iterations * (k + 1) / batches - (int64_t) iterations * k / batches);
        bool last = k == batches - 1;
        if (last && work->before_last != NULL && (code = work->before_last(work->argument)) != RONDO_SUCCESS)
            return code;
        code = last ? counted_batch(&t, some, &times[k], &timing->blocks) : batch(&t, work->run, some, &times[k]);
        if (code != RONDO_SUCCESS)
            return code;
        times[k] /= some;
        if (last && work->after_last != NULL && (code = work->after_last(work->argument, &timing->wrong)) != RONDO_SUCCESS)
            return code;
        if ((code = other_batch(&t, some, &times[BATCHES_MAX + k])) != RONDO_SUCCESS)
            return code;
        times[BATCHES_MAX + k] /= some;
        if (bench->options->twice && (code = other_batch(&t, some, &times[2 * BATCHES_MAX + k])) != RONDO_SUCCESS)
            return code;
        times[2 * BATCHES_MAX + k] /= some;
    }
    *what = "exchange of times";
    code = ranks_most(bench->rank, times, 3 * BATCHES_MAX);
    timing->iterations = iterations;
    timing->seconds = bench_median(times, batches);
    double other = bench_median(times + BATCHES_MAX, batches);
    timing->peer_seconds = bench->options->peer != NULL ? other : 0.0;
    timing->again_seconds = bench_median(times + 2 * BATCHES_MAX, batches);
    timing->plain_seconds =
        bench->options->trace_cost || (bench->options->peer == NULL && work->plain_run != NULL) ? other : 0.0;
    return code;
}
