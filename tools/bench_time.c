/*
 * The timing of a row. Batches of Rondo and of the peer alternate, so that both meet the same machine; each begins at a
 * barrier of its own. A batch takes as long as its slowest rank; the row is the median of its batches.
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCHES_MAX = 10, ITERATIONS_MIN = 5, ITERATIONS_MAX = 2000 };
#define ROW_SECONDS 0.2 /* that a row's iterations should take, where their number is free */

struct bench {
    struct rank *rank;
    const struct bench_options *options;
    struct call *call;
    struct peer_state *peer;
    const char **what;
    char message[256]; /* of the peer */
};

static rondo_result_t peer_failed(struct bench *b, const char *what)
{
    fprintf(stderr, "rondo bench: rank %d: peer %s: %s: %s\n", b->rank->rank, b->options->peer->name, what, b->message);
    *b->what = "the peer's run";
    return RONDO_ERR_SYSTEM;
}

static rondo_result_t batch(struct bench *b, int iterations, double *seconds)
{
    rondo_result_t code = rondo_barrier(b->rank->world);
    double start = ranks_clock();
    for (int i = 0; code == RONDO_SUCCESS && i < iterations; i++)
        code = call_run(b->call, b->options->mode);
    *seconds = ranks_clock() - start;
    return code;
}

/* The daemon must have stopped polling before the peer is measured: it would take the peer's processor. */
static rondo_result_t peer_batch(struct bench *b, int iterations, double *seconds)
{
    const struct peer *peer = b->options->peer;
    rondo_result_t code = rondo_device_synchronize(b->rank->runtime);
    if (code != RONDO_SUCCESS)
        return code;
    if (peer->barrier(b->peer, b->message, sizeof(b->message)) != 0)
        return peer_failed(b, "barrier");
    double start = ranks_clock();
    for (int i = 0; i < iterations; i++) {
        if (peer->run(b->peer, b->message, sizeof(b->message)) != 0)
            return peer_failed(b, "run");
    }
    *seconds = ranks_clock() - start;
    return RONDO_SUCCESS;
}

static rondo_result_t warm_up(struct bench *b)
{
    int warmup = b->options->warmup >= 0 ? b->options->warmup : b->call->bytes <= 65536 ? 20 : 3;
    double ignored;
    rondo_result_t code = batch(b, warmup, &ignored);
    if (code == RONDO_SUCCESS && b->options->peer != NULL)
        code = peer_batch(b, warmup, &ignored);
    return code;
}

/* Rank 0 decides from a short trial; all ranks must agree. */
static rondo_result_t choose_iterations(struct bench *b, int *iterations)
{
    *iterations = b->options->iterations;
    if (*iterations > 0)
        return RONDO_SUCCESS;
    int trial = b->call->bytes <= 65536 ? 10 : 2;
    double seconds;
    rondo_result_t code = batch(b, trial, &seconds);
    if (code != RONDO_SUCCESS)
        return code;
    double wanted = ROW_SECONDS * trial / (seconds > 1e-9 ? seconds : 1e-9);
    int32_t decided = wanted > ITERATIONS_MAX ? ITERATIONS_MAX : wanted < ITERATIONS_MIN ? ITERATIONS_MIN : (int32_t) wanted;
    code = rondo_bcast(&decided, 1, RONDO_INT32, 0, b->rank->world);
    *iterations = decided;
    return code;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *) a, y = *(const double *) b;
    return (x > y) - (x < y);
}

static double median(double *values, int count)
{
    qsort(values, (size_t) count, sizeof(values[0]), ascending);
    return count % 2 == 1 ? values[count / 2] : 0.5 * (values[count / 2 - 1] + values[count / 2]);
}

rondo_result_t bench_time(struct rank *rank, const struct bench_options *options, struct call *call, struct peer_state *peer,
                          const struct values *values, const struct bench_buffers *buffers, struct bench_timing *timing,
                          const char **what)
{
    struct bench b = {.rank = rank, .options = options, .call = call, .peer = peer, .what = what, .message = ""};
    bool check = options->check && bench_repeats(call);
    double mine[2 * BATCHES_MAX] = {0}, slowest[2 * BATCHES_MAX];
    int iterations = 0;
    *what = "warm-up";
    rondo_result_t code = warm_up(&b);
    if (code == RONDO_SUCCESS)
        code = choose_iterations(&b, &iterations);
    if (code != RONDO_SUCCESS)
        return code;
    *what = "timed run";
    int batches = iterations < BATCHES_MAX ? iterations : BATCHES_MAX;
    for (int k = 0; k < batches; k++) {
        int some = (int) ((int64_t) iterations * (k + 1) / batches - (int64_t) iterations * k / batches);
        bool check_now = check && k == batches - 1;
        if (check_now)
            bench_poison(call, buffers);
        if ((code = batch(&b, some, &mine[k])) != RONDO_SUCCESS)
            return code;
        mine[k] /= some;
        if (check_now)
            timing->wrong = bench_check(call, values, buffers);
        if (options->peer == NULL)
            continue;
        if ((code = peer_batch(&b, some, &mine[BATCHES_MAX + k])) != RONDO_SUCCESS)
            return code;
        mine[BATCHES_MAX + k] /= some;
    }
    *what = "exchange of times";
    code = rondo_allreduce(mine, slowest, 2 * BATCHES_MAX, RONDO_DOUBLE, RONDO_MAX, rank->world);
    timing->iterations = iterations;
    timing->seconds = median(slowest, batches);
    timing->peer_seconds = options->peer != NULL ? median(slowest + BATCHES_MAX, batches) : 0.0;
    return code;
}
