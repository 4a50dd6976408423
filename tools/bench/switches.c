/*
 * `rondo bench switches`: what preemption costs. So many persistent all-reduces are started by all ranks but the last, which
 * starts none: the others' daemons, of one block, can only go from one to the next, looking once at what each waits for, which
 * never comes. What a visit takes with one operation is a look and the round around it; with more, the switch to another comes
 * on top. When all have been counted the last rank starts its own, and they all end.
 */
#include "tools/bench/bench.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { OPERATIONS_MOST = 32, COLUMNS = 3 };
static const int row_operations[] = {1, 2, 4, 8, 16, OPERATIONS_MOST};
enum { ROWS = sizeof(row_operations) / sizeof(row_operations[0]) };

#define SETTLE_SECONDS 0.02 /* until a daemon has them all */
#define COUNT_SECONDS  0.1

struct visits {
    uint64_t count;
    double seconds;
};

/* One poll a visit, in every round; a daemon that stays. What the user has set stays as it is. */
static int set_up(void)
{
    static const char *const variables[][2] = {
        {"RONDO_BLOCKS", "1"},   {"RONDO_READINESS_CHECK", "0"},  {"RONDO_SPIN", "fixed"},       {"RONDO_SPIN_INITIAL", "1"},
        {"RONDO_SPIN_CAP", "1"}, {"RONDO_QUIT_STUCK", "2000000"}, {"RONDO_RESIDENCY", "2000000"}};
    int code = 0;
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]) && code == 0; i++)
        if (!options_variable_is_set(variables[i][0]))
            code = bench_set_variable("switches", variables[i][0], variables[i][1]);
    return code;
}

static void sleep_for(double seconds)
{
    struct timespec pause = {(time_t) seconds, (long) ((seconds - (double) (time_t) seconds) * 1e9)};
    nanosleep(&pause, NULL);
}

/* Visits in vain in a stretch of time. */
static rondo_result_t count_visits(struct bench *b, struct visits *visits)
{
    rondo_stats_t before, after;
    sleep_for(SETTLE_SECONDS);
    rondo_result_t code = rondo_get_stats(b->rank->runtime, &before);
    const double start = ranks_clock();
    if (code != RONDO_SUCCESS)
        return code;
    sleep_for(COUNT_SECONDS);
    code = rondo_get_stats(b->rank->runtime, &after);
    *visits = (struct visits){after.preemptions - before.preemptions, ranks_clock() - start};
    return code;
}

static rondo_result_t run_row(struct bench *b, struct call *calls, int operations, struct visits *visits)
{
    rondo_request_t requests[OPERATIONS_MOST];
    const bool late = b->rank->rank == b->rank->size - 1;
    uint64_t nothing = 0;
    rondo_result_t code = RONDO_SUCCESS;
    for (int i = 0; i < operations; i++)
        requests[i] = calls[i].requests[0];
    if (!late && (code = rondo_startall(operations, requests)) == RONDO_SUCCESS)
        code = count_visits(b, visits);
    if (code == RONDO_SUCCESS)
        code = ranks_total(b->rank, &nothing, 1); /* all have counted */
    if (code == RONDO_SUCCESS && late)
        code = rondo_startall(operations, requests);
    return code == RONDO_SUCCESS ? rondo_waitall(operations, requests) : code;
}

static rondo_result_t open_calls(struct bench *b, struct call *calls)
{
    const size_t room = (b->options->minimum + sizeof(double) + 511) / 512 * 512;
    rondo_result_t code = bench_make_buffers(b, OPERATIONS_MOST * room, OPERATIONS_MOST * room);
    for (int i = 0; i < OPERATIONS_MOST && code == RONDO_SUCCESS; i++) {
        calls[i] = bench_call(b);
        if (!call_shape(&calls[i], b->options->minimum))
            return RONDO_ERR_MEMORY;
        call_bind(&calls[i], b->buffers.input + (size_t) i * room, b->buffers.output + (size_t) i * room);
        code = call_open(&calls[i], FORM_PERSISTENT);
    }
    return code;
}

static void put_row(struct bench *b, int operations, const struct visits *visits)
{
    static const struct output_column columns[COLUMNS] = {{"operations", "", 12}, {"visits", "", 12}, {"a visit", "(us)", 11}};
    FILE *stream = output_stream(b->options->json);
    char text[COLUMNS][32];
    const char *cells[COLUMNS] = {text[0], text[1], text[2]};
    const double us = visits->count > 0 ? visits->seconds / (double) visits->count * 1e6 : 0;
    if (b->rank->rank != 0)
        return;
    if (json_array_size(b->rows) == 0)
        output_header(stream, columns, COLUMNS);
    snprintf(text[0], sizeof(text[0]), "%d", operations);
    snprintf(text[1], sizeof(text[1]), "%" PRIu64, visits->count);
    snprintf(text[2], sizeof(text[2]), "%.3f", us);
    output_row(stream, columns, COLUMNS, cells);
    json_t *row = json_object();
    json_object_set_new(row, "operations", json_integer(operations));
    json_object_set_new(row, "visits", json_integer((json_int_t) visits->count));
    json_object_set_new(row, "time_us", json_real(us));
    json_array_append_new(b->rows, row);
}

static int run_whole(struct bench *b, uint64_t *wrong)
{
    struct call calls[OPERATIONS_MOST] = {0};
    const char *what = "prepare";
    (void) wrong;
    if (b->rank->size == 1)
        return options_refuse("bench", "switches need a rank that is waited for: 2 ranks or more, not 1");
    rondo_result_t code = open_calls(b, calls);
    for (int i = 0; i < ROWS && code == RONDO_SUCCESS; i++) {
        struct visits visits = {0, 0};
        what = "run";
        if ((code = run_row(b, calls, row_operations[i], &visits)) == RONDO_SUCCESS)
            put_row(b, row_operations[i], &visits);
    }
    for (int i = 0; i < OPERATIONS_MOST && code == RONDO_SUCCESS; i++) {
        what = "free";
        code = call_close(&calls[i], FORM_PERSISTENT);
    }
    for (int i = 0; i < OPERATIONS_MOST; i++)
        call_release(&calls[i]);
    return code == RONDO_SUCCESS ? 0 : bench_fail(b, what, code);
}

static int check_options(const struct bench_options *o)
{
    if (o->mode != FORM_PERSISTENT || o->peer != NULL || o->check || o->compress > 0 || o->trace_cost)
        return options_refuse(
            "bench", "switches are of persistent operations alone: no --mode, --peer, --check, --compress, --trace-cost");
    return 0;
}

const struct bench_whole bench_switches = {
    .name = "switches", .check = check_options, .set_up = set_up, .run = run_whole, .own_columns = true};
