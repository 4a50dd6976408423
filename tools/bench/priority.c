/*
 * `rondo bench priority`: how soon an urgent all-reduce finishes while many large ones are under way. The large ones are
 * persistent, and so is the urgent one, or it is a call on a communicator that has a priority. In each round all ranks start it
 * alone, and then once more behind the large ones, which have been started and have begun. Times are from a rank's start to its
 * end; each figure is that of the rank that takes longest. RONDO_ORDER is "priority" unless it is set: "fifo" shows what the
 * table's order is worth. A device has one block, so that the slices of a large one follow each other, and the time of one can
 * be told.
 */
#include "tools/bench/bench.h"

#include <stdio.h>
#include <stdlib.h>

enum { LARGE = 64, ROUNDS = BENCH_MEDIAN_MOST, WARMUP = 3, COLUMNS = 6 };
#define LARGE_BYTES   ((size_t) 2 << 20)
#define URGENT_BYTES  ((size_t) 64 << 10)
#define BEGUN_SECONDS 100e-6 /* from the last start of a large one to that of the urgent one */

/* What is measured of a round, in seconds. */
enum { ALONE, BESIDE, ALL, FIGURES };

struct calls {
    struct call large[LARGE], urgent;
    rondo_comm_t urgent_comm;
};

static int set_up(void)
{
    static const char *const variables[][2] = {{"RONDO_ORDER", "priority"}, {"RONDO_BLOCKS", "1"}};
    int code = 0;
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]) && code == 0; i++)
        if (!options_variable_is_set(variables[i][0]))
            code = bench_set_variable("priority", variables[i][0], variables[i][1]);
    return code;
}

static rondo_result_t open_one(struct bench *b, struct call *call, size_t bytes, size_t place, enum form form)
{
    if (!call_shape(call, bytes))
        return RONDO_ERR_MEMORY;
    call_bind(call, b->buffers.input + place, b->buffers.output + place);
    return call_open(call, form);
}

static rondo_result_t open_urgent(struct bench *b, struct calls *calls)
{
    struct call *urgent = &calls->urgent;
    rondo_result_t code = RONDO_SUCCESS;
    *urgent = bench_call(b);
    urgent->attr.priority = 1;
    if (b->options->mode != FORM_PERSISTENT) {
        code = rondo_comm_dup(b->rank->world, &calls->urgent_comm);
        if (code == RONDO_SUCCESS)
            code = rondo_comm_set_priority(calls->urgent_comm, 1);
        urgent->comm = calls->urgent_comm;
    }
    return code == RONDO_SUCCESS ? open_one(b, urgent, URGENT_BYTES, LARGE * LARGE_BYTES, b->options->mode) : code;
}

static rondo_result_t open_all(struct bench *b, struct calls *calls)
{
    rondo_result_t code = bench_make_buffers(b, LARGE * LARGE_BYTES + URGENT_BYTES, LARGE * LARGE_BYTES + URGENT_BYTES);
    for (int i = 0; i < LARGE && code == RONDO_SUCCESS; i++) {
        calls->large[i] = bench_call(b);
        code = open_one(b, &calls->large[i], LARGE_BYTES, (size_t) i * LARGE_BYTES, FORM_PERSISTENT);
    }
    return code == RONDO_SUCCESS ? open_urgent(b, calls) : code;
}

static rondo_result_t close_all(struct bench *b, struct calls *calls, rondo_result_t code)
{
    for (int i = 0; i <= LARGE; i++) {
        struct call *call = i < LARGE ? &calls->large[i] : &calls->urgent;
        if (code == RONDO_SUCCESS)
            code = call_close(call, i < LARGE ? FORM_PERSISTENT : b->options->mode);
        call_release(call);
    }
    if (code == RONDO_SUCCESS && calls->urgent_comm != NULL)
        code = rondo_comm_free(&calls->urgent_comm);
    return code;
}

static rondo_result_t run_urgent(struct bench *b, struct calls *calls, double *seconds)
{
    const double start = ranks_clock();
    const rondo_result_t code = call_run(&calls->urgent, b->options->mode);
    *seconds = ranks_clock() - start;
    return code;
}

static rondo_result_t run_round(struct bench *b, struct calls *calls, double figures[FIGURES])
{
    rondo_request_t requests[LARGE];
    rondo_result_t code = rondo_barrier(b->rank->world);
    for (int i = 0; i < LARGE; i++)
        requests[i] = calls->large[i].requests[0];
    if (code == RONDO_SUCCESS)
        code = run_urgent(b, calls, &figures[ALONE]);
    if (code == RONDO_SUCCESS)
        code = rondo_barrier(b->rank->world);
    const double start = ranks_clock();
    if (code == RONDO_SUCCESS)
        code = rondo_startall(LARGE, requests);
    for (const double begun = ranks_clock(); ranks_clock() - begun < BEGUN_SECONDS;)
        ;
    if (code == RONDO_SUCCESS)
        code = run_urgent(b, calls, &figures[BESIDE]);
    if (code == RONDO_SUCCESS)
        code = rondo_waitall(LARGE, requests);
    figures[ALL] = ranks_clock() - start;
    return code == RONDO_SUCCESS ? ranks_most(b->rank, figures, FIGURES) : code;
}

/* The time of a slice: what a large one takes by itself, by the number of its slices. */
static rondo_result_t measure_slice(struct bench *b, struct calls *calls, double *seconds)
{
    enum { TIMES = 15 };
    rondo_stats_t before, after;
    double times[TIMES];
    rondo_result_t code = rondo_get_stats(b->rank->runtime, &before);
    for (int i = 0; i < TIMES && code == RONDO_SUCCESS; i++) {
        const double start = ranks_clock();
        code = call_run(&calls->large[0], FORM_PERSISTENT);
        times[i] = ranks_clock() - start;
    }
    if (code == RONDO_SUCCESS)
        code = rondo_get_stats(b->rank->runtime, &after);
    if (code != RONDO_SUCCESS)
        return code;
    *seconds = bench_median(times, TIMES) * TIMES / (double) (after.primitives - before.primitives);
    return ranks_most(b->rank, seconds, 1);
}

static double greatest(const double *values)
{
    double most = values[0];
    for (int i = 1; i < ROUNDS; i++)
        most = values[i] > most ? values[i] : most;
    return most;
}

static void put_row(struct bench *b, double alone, const double *beside, double all, double slice)
{
    static const struct output_column columns[COLUMNS] = {{"alone", "(us)", 11}, {"beside", "(us)", 11}, {"worst", "(us)", 11},
                                                          {"slice", "(us)", 11}, {"slices", "more", 11}, {"all", "(us)", 11}};
    static const char *const names[COLUMNS] = {"alone_us", "beside_us", "worst_us", "slice_us", "slices_more", "all_us"};
    FILE *stream = output_stream(b->options->json);
    char text[COLUMNS][32];
    const char *cells[COLUMNS];
    const double median = bench_median(beside, ROUNDS),
                 values[COLUMNS] = {alone * 1e6, median * 1e6, greatest(beside) * 1e6, slice * 1e6, (median - alone) / slice,
                                    all * 1e6};
    json_t *row = json_object();
    output_header(stream, columns, COLUMNS);
    for (int i = 0; i < COLUMNS; i++) {
        snprintf(text[i], sizeof(text[i]), "%.2f", values[i]);
        cells[i] = text[i];
        json_object_set_new(row, names[i], json_real(values[i]));
    }
    output_row(stream, columns, COLUMNS, cells);
    json_array_append_new(b->rows, row);
}

static rondo_result_t measure(struct bench *b, struct calls *calls)
{
    double figures[FIGURES][ROUNDS], slice = 0;
    rondo_result_t code = measure_slice(b, calls, &slice);
    for (int round = -WARMUP; round < ROUNDS && code == RONDO_SUCCESS; round++) {
        double of_round[FIGURES] = {0};
        code = run_round(b, calls, of_round);
        for (int f = 0; f < FIGURES && round >= 0; f++)
            figures[f][round] = of_round[f];
    }
    if (code != RONDO_SUCCESS || b->rank->rank != 0)
        return code;
    put_row(b, bench_median(figures[ALONE], ROUNDS), figures[BESIDE], bench_median(figures[ALL], ROUNDS), slice);
    return code;
}

static int run_whole(struct bench *b, uint64_t *wrong)
{
    struct calls *calls = calloc(1, sizeof(*calls));
    (void) wrong;
    rondo_result_t code = calls != NULL ? open_all(b, calls) : RONDO_ERR_MEMORY;
    if (code == RONDO_SUCCESS)
        code = measure(b, calls);
    if (calls != NULL)
        code = close_all(b, calls, code);
    free(calls);
    return code == RONDO_SUCCESS ? 0 : bench_fail(b, "priority", code);
}

static int check_options(const struct bench_options *o)
{
    if (o->mode > FORM_PERSISTENT || o->peer != NULL || o->check || o->compress > 0 || o->trace_cost)
        return options_refuse("bench", "priority is of blocking, non-blocking and persistent calls: no other --mode, no "
                                       "--peer, --check, --compress, --trace-cost");
    return 0;
}

const struct bench_whole bench_priority = {
    .name = "priority", .check = check_options, .set_up = set_up, .run = run_whole, .own_columns = true};
