/* `rondo top`: the ranks of a running job as a table that is renewed, asked from outside. */
#include "tools/common/options.h"
#include "tools/common/output.h"
#include "tools/common/verbs.h"
#include "tools/observe/job.h"
#include "tools/observe/lateness.h"

#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define VERB "top"

enum { OPT_INTERVAL = 256, OPT_ROUNDS, OPT_JSON, OPT_HELP, ROUNDS_MOST = 1000000000, COLUMNS = 10, CELL_BYTES = 64 };

/* Seconds after which a collective counts 1/e of a new one in a rank's lateness. */
#define LATENESS_SECONDS 120.0

static const struct option long_options[] = {{"interval", required_argument, NULL, OPT_INTERVAL},
                                             {"rounds", required_argument, NULL, OPT_ROUNDS},
                                             {"json", required_argument, NULL, OPT_JSON},
                                             {"help", no_argument, NULL, OPT_HELP},
                                             {NULL, 0, NULL, 0}};

static const char help[] = "usage: rondo top [JOB] [OPTIONS]\n"
                           "  The ranks of a running job, again and again until it ends: operations and bytes a second, "
                           "those over networks among them,\n"
                           "  preemptions a second, what the rank waits for, and how much later than the first rank it starts "
                           "collectives (of the last minutes).\n"
                           "  JOB               its name (RONDO_JOB, or the launcher's), or the number of a process of it on "
                           "this host; without it, the\n"
                           "                    only job of this user here\n"
                           "  --interval T      seconds between two looks (default 1)\n"
                           "  --rounds N        looks (default 0: until the job ends)\n"
                           "  --json FILE       the last look, with each rank's lateness (- for standard output)\n";

struct top {
    struct job job;
    struct lateness lateness;
    double interval;
    int64_t rounds;
    const char *json;
};

static double real_of(const json_t *object, const char *name)
{
    return json_number_value(json_object_get(object, name));
}

static double count_of(const json_t *rank, const char *name)
{
    return real_of(json_object_get(rank, "counts"), name);
}

/* Bytes that the rank has sent over networks of any kind. */
static double sent_on_networks(const json_t *rank)
{
    double sum = 0;
    const char *network;
    json_t *sent;
    json_object_foreach(json_object_get(rank, "sent_on_networks"), network, sent) sum += json_number_value(sent);
    return sum;
}

/* The same rank in an earlier state; NULL if it is not there. */
static const json_t *earlier(const json_t *before, const json_t *rank)
{
    size_t i;
    json_t *other;
    json_array_foreach(json_object_get(before, "ranks"), i,
                       other) if (real_of(other, "rank") == real_of(rank, "rank") &&
                                  real_of(other, "pid") == real_of(rank, "pid")) return other;
    return NULL;
}

/* How much a value has grown a second since the earlier state; NAN if there is none. */
static double rate(const json_t *before, const json_t *rank, double was, double is)
{
    const double seconds = (real_of(rank, "time_ns") - real_of(before, "time_ns")) * 1e-9;
    return before != NULL && seconds > 0 ? (is - was) / seconds : NAN;
}

static double count_rate(const json_t *before, const json_t *rank, const char *name)
{
    return rate(before, rank, count_of(before, name), count_of(rank, name));
}

static void write_rate(char cell[CELL_BYTES], double value, const char *format)
{
    snprintf(cell, CELL_BYTES, isnan(value) ? "-" : format, value);
}

/* Writes what the rank waits for, or what it is in. */
static void write_wait(char cell[CELL_BYTES], const json_t *rank)
{
    size_t i;
    json_t *entry;
    const json_t *shown = NULL;
    json_array_foreach(json_object_get(rank, "active"), i, entry) if (shown == NULL || real_of(entry, "waits_for_rank") >= 0)
        shown = entry;
    const char *operation = json_string_value(json_object_get(shown, "operation"));
    if (operation == NULL)
        snprintf(cell, CELL_BYTES, "-");
    else if (real_of(shown, "waits_for_rank") >= 0)
        snprintf(cell, CELL_BYTES, "rank %.0f in %.46s", real_of(shown, "waits_for_rank"), operation);
    else
        snprintf(cell, CELL_BYTES, "%.60s", operation);
}

static void print_rank(const struct top *top, const json_t *rank, const json_t *before)
{
    static const struct output_column columns[COLUMNS] = {
        {"rank", "", 6},        {"host", "", -16},         {"process", "", 9},      {"operations", "/s", 11},
        {"sent", "(MB/s)", 10}, {"network", "(MB/s)", 10}, {"preempted", "/s", 10}, {"late", "(ms)", 9},
        {"active", "", 7},      {"waits for", "", -30}};
    char cells[COLUMNS][CELL_BYTES];
    const char *row[COLUMNS];
    const json_t *then = earlier(before, rank);
    const int number = (int) real_of(rank, "rank");
    const char *host = json_string_value(json_object_get(rank, "host"));
    if (rank == NULL) {
        output_header(stdout, columns, COLUMNS);
        return;
    }
    snprintf(cells[0], CELL_BYTES, "%d", number);
    snprintf(cells[1], CELL_BYTES, "%.16s", host != NULL ? host : "");
    snprintf(cells[2], CELL_BYTES, "%.0f", real_of(rank, "pid"));
    write_rate(cells[3], count_rate(then, rank, "operations_completed"), "%.0f");
    write_rate(cells[4], count_rate(then, rank, "sent_bytes") / 1e6, "%.2f");
    write_rate(cells[5], rate(then, rank, sent_on_networks(then), sent_on_networks(rank)) / 1e6, "%.2f");
    write_rate(cells[6], count_rate(then, rank, "preemptions"), "%.0f");
    snprintf(cells[7], CELL_BYTES, "%.3f", number < top->job.size ? lateness_of(&top->lateness, number) * 1e3 : 0.0);
    snprintf(cells[8], CELL_BYTES, "%zu", json_array_size(json_object_get(rank, "active")));
    write_wait(cells[9], rank);
    for (int i = 0; i < COLUMNS; i++)
        row[i] = cells[i];
    output_row(stdout, columns, COLUMNS, row);
}

static void print(const struct top *top, const json_t *state, const json_t *before)
{
    size_t i;
    json_t *rank;
    const int worst = lateness_worst(&top->lateness);
    if (isatty(STDOUT_FILENO))
        fputs("\033[H\033[2J", stdout);
    printf("job %s: %d ranks", top->job.name, top->job.size);
    if (worst >= 0)
        printf("; the others wait for rank %d: it starts collectives %.3f ms after the first", worst,
               lateness_of(&top->lateness, worst) * 1e3);
    printf("\n");
    print_rank(top, NULL, NULL);
    json_array_foreach(json_object_get(state, "ranks"), i, rank) print_rank(top, rank, before);
    json_array_foreach(json_object_get(state, "silent"), i, rank)
        printf("  rank %lld does not answer\n", (long long) json_integer_value(rank));
    fflush(stdout);
}

/* Adds each rank's lateness to its state. */
static void add_lateness(const struct top *top, json_t *state)
{
    size_t i;
    json_t *rank;
    json_array_foreach(json_object_get(state, "ranks"), i, rank)
    {
        const int number = (int) real_of(rank, "rank");
        if (number >= 0 && number < top->job.size)
            json_object_set_new(rank, "late_ms", json_real(lateness_of(&top->lateness, number) * 1e3));
    }
    json_object_set_new(state, "latest_rank", json_integer(lateness_worst(&top->lateness)));
}

static void pause_for(double seconds)
{
    struct timespec pause = {(time_t) seconds, (long) ((seconds - floor(seconds)) * 1e9)};
    nanosleep(&pause, NULL);
}

/* The job may end between two looks, and then so does this, with the last state. */
static int watch(struct top *top)
{
    json_t *before = NULL;
    const double weight = exp(-top->interval / LATENESS_SECONDS);
    int code = 0;
    for (int64_t round = 0; top->rounds == 0 || round < top->rounds; round++) {
        if (round > 0)
            pause_for(top->interval);
        json_t *state = job_state(VERB, &top->job);
        if (state == NULL) {
            code = round == 0 ? EXIT_WRONG : 0;
            break;
        }
        lateness_add(&top->lateness, state, weight);
        if (top->json == NULL || strcmp(top->json, "-") != 0)
            print(top, state, before);
        json_decref(before);
        before = state;
    }
    if (before != NULL && top->json != NULL) {
        add_lateness(top, before);
        return output_json(VERB, top->json, before);
    }
    json_decref(before);
    return code;
}

int verb_top(int argc, char **argv)
{
    struct top top = {.interval = 1};
    int option, code;
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
        switch (option) {
        case OPT_INTERVAL:
            if ((code = options_real(VERB, "--interval", optarg, 0.05, &top.interval)) != 0)
                return code;
            break;
        case OPT_ROUNDS:
            if ((code = options_integer(VERB, "--rounds", optarg, 0, ROUNDS_MOST, &top.rounds)) != 0)
                return code;
            break;
        case OPT_JSON:
            top.json = optarg;
            break;
        case OPT_HELP:
            fputs(help, stdout);
            return 0;
        default:
            return options_unknown(VERB, option, argv);
        }
    }
    code = job_find(VERB, argc - optind, argv + optind, &top.job);
    if (code != 0)
        return code;
    if (lateness_begin(&top.lateness, top.job.size) != 0)
        return options_refuse(VERB, "no memory for %d ranks", top.job.size);
    code = watch(&top);
    lateness_end(&top.lateness);
    return code;
}
