/* `rondo trace`: the command line, and what is counted of a trace (tools/trace/trace.h). */
#include "tools/trace/trace.h"
#include "tools/common/options.h"
#include "tools/common/output.h"
#include "tools/common/verbs.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#define VERB "trace"

enum { OPT_SVG = 256, OPT_TIMELINE, OPT_ALL, OPT_JSON, OPT_HELP, BINS = 20, MOST_SHOWN = 10 };

static const struct option long_options[] = {
    {"svg", required_argument, NULL, OPT_SVG}, {"timeline", required_argument, NULL, OPT_TIMELINE},
    {"all", no_argument, NULL, OPT_ALL},       {"json", required_argument, NULL, OPT_JSON},
    {"help", no_argument, NULL, OPT_HELP},     {NULL, 0, NULL, 0},
};

static const char help[] = "usage: rondo trace summary FILE [OPTIONS]\n"
                           "  What a trace shows (RONDO_TRACE=FILE; it also opens in Perfetto or chrome://tracing): context "
                           "switches of each operation\n"
                           "  and the length of the task queue over time.\n"
                           "  --svg FILE        both as plots, a line a rank\n"
                           "  --timeline FILE   the visits of each block over time, as a picture; pale: ended in preemption\n"
                           "  --all             every operation, not only those that were switched most\n"
                           "  --json FILE       (- for standard output)\n";

struct summary {
    size_t operations, unfinished, fetches;
    uint64_t switches, most;
    double queue, longest, time; /* sums, but for longest */
};

static void add(struct summary *s, const struct trace_operation *o)
{
    s->operations++;
    s->switches += o->switches;
    s->most = o->switches > s->most ? o->switches : s->most;
    s->unfinished += o->completed < 0;
    if (o->queue >= 0) {
        s->fetches++;
        s->queue += o->queue;
        s->longest = o->queue > s->longest ? o->queue : s->longest;
    }
    if (o->completed >= 0 && o->fetched >= 0)
        s->time += o->completed - o->fetched;
}

static double mean(double sum, size_t count)
{
    return count > 0 ? sum / (double) count : 0;
}

static void print_ranks(FILE *out, const struct summary *all, int ranks)
{
    static const struct output_column columns[] = {{"rank", "", 6},      {"operations", "", 10}, {"switches", "", 9},
                                                   {"each", "mean", 8},  {"each", "most", 7},    {"queue", "mean", 7},
                                                   {"queue", "most", 6}, {"time", "(us)", 10},   {"unfinished", "", 10}};
    output_header(out, columns, 9);
    for (int rank = 0; rank < ranks; rank++) {
        const struct summary *s = &all[rank];
        char cells[9][24];
        const char *row[9];
        snprintf(cells[0], sizeof(cells[0]), "%d", rank);
        snprintf(cells[1], sizeof(cells[1]), "%zu", s->operations);
        snprintf(cells[2], sizeof(cells[2]), "%llu", (unsigned long long) s->switches);
        snprintf(cells[3], sizeof(cells[3]), "%.2f", mean((double) s->switches, s->operations));
        snprintf(cells[4], sizeof(cells[4]), "%llu", (unsigned long long) s->most);
        snprintf(cells[5], sizeof(cells[5]), "%.2f", mean(s->queue, s->fetches));
        snprintf(cells[6], sizeof(cells[6]), "%.0f", s->longest);
        snprintf(cells[7], sizeof(cells[7]), "%.1f", mean(s->time, s->operations - s->unfinished));
        snprintf(cells[8], sizeof(cells[8]), "%zu", s->unfinished);
        for (int i = 0; i < 9; i++)
            row[i] = cells[i];
        output_row(out, columns, 9, row);
    }
}

static int by_switches(const void *a, const void *b)
{
    const struct trace_operation *x = *(const struct trace_operation *const *) a,
                                 *y = *(const struct trace_operation *const *) b;
    return x->switches != y->switches ? (x->switches < y->switches ? 1 : -1) : (x > y) - (x < y);
}

static void print_operations(FILE *out, const struct trace *t, bool everything)
{
    const struct trace_operation **order = calloc(t->count + 1, sizeof(*order));
    if (order == NULL)
        return;
    for (size_t i = 0; i < t->count; i++)
        order[i] = &t->operations[i];
    if (!everything)
        qsort(order, t->count, sizeof(*order), by_switches);
    fprintf(out, everything ? "\noperations:\n" : "\nmost often switched:\n");
    for (size_t i = 0; i < t->count && (everything || i < MOST_SHOWN); i++)
        fprintf(out, "  rank %d, lane %u, number %u: %llu switches in %llu visits, queue %d  %s\n", order[i]->rank,
                order[i]->lane, order[i]->number, (unsigned long long) order[i]->switches,
                (unsigned long long) order[i]->visits, order[i]->queue, order[i]->text);
    free(order);
}

static void print_queue(FILE *out, const struct trace *t)
{
    struct summary bins[BINS];
    memset(bins, 0, sizeof(bins));
    double width = (t->last - t->first) / BINS;
    for (size_t i = 0; i < t->count && width > 0; i++) {
        if (t->operations[i].fetched < 0)
            continue;
        int bin = (int) ((t->operations[i].fetched - t->first) / width);
        add(&bins[bin < BINS ? bin : BINS - 1], &t->operations[i]);
    }
    fprintf(out, "\nqueue length over time (all ranks):\n");
    for (int b = 0; b < BINS; b++) {
        int stars = (int) (mean(bins[b].queue, bins[b].fetches) + 0.5);
        fprintf(out, "  %9.3f ms  mean %6.2f  most %3.0f  %.*s\n", width * b / 1e3, mean(bins[b].queue, bins[b].fetches),
                bins[b].longest, stars < 60 ? stars : 60, "############################################################");
    }
}

static json_t *json_of(const struct trace *t, const struct summary *all)
{
    json_t *ranks = json_array(), *operations = json_array();
    uint64_t switches = 0;
    for (int rank = 0; rank < t->ranks; rank++) {
        const struct summary *s = &all[rank];
        switches += s->switches;
        json_array_append_new(ranks, json_pack("{s:i, s:I, s:I, s:I, s:f, s:f, s:I}", "rank", rank, "operations",
                                               (json_int_t) s->operations, "context_switches", (json_int_t) s->switches,
                                               "most_switches", (json_int_t) s->most, "queue_mean", mean(s->queue, s->fetches),
                                               "queue_most", s->longest, "unfinished", (json_int_t) s->unfinished));
    }
    for (size_t i = 0; i < t->count; i++) {
        const struct trace_operation *o = &t->operations[i];
        json_array_append_new(operations, json_pack("{s:i, s:I, s:I, s:s, s:I, s:I, s:i, s:f}", "rank", o->rank, "lane",
                                                    (json_int_t) o->lane, "number", (json_int_t) o->number, "operation",
                                                    o->text, "context_switches", (json_int_t) o->switches, "visits",
                                                    (json_int_t) o->visits, "queue", o->queue, "time_us",
                                                    o->completed >= 0 && o->fetched >= 0 ? o->completed - o->fetched : -1.0));
    }
    return json_pack("{s:o, s:o, s:I, s:I, s:I, s:I, s:i}", "ranks", ranks, "operations", operations, "context_switches",
                     (json_int_t) switches, "daemon_quits", (json_int_t) t->quits, "lost", (json_int_t) t->lost, "dropped",
                     (json_int_t) t->dropped, "full", t->full);
}

static int summarize(const char *path, const char *svg, const char *timeline, const char *json, bool everything)
{
    struct trace t;
    int code = trace_load(path, &t);
    if (code != 0)
        return code;
    struct summary *all = calloc((size_t) t.ranks, sizeof(*all));
    FILE *out = output_stream(json);
    if (all == NULL) {
        trace_free(&t);
        return options_refuse(VERB, "no memory for %d ranks", t.ranks);
    }
    for (size_t i = 0; i < t.count; i++)
        add(&all[t.operations[i].rank], &t.operations[i]);
    fprintf(out, "%s: %d ranks, %zu operations, %.3f ms; blocks left the daemon %llu times, %llu records lost\n", path, t.ranks,
            t.count, (t.last - t.first) / 1e3, (unsigned long long) t.quits, (unsigned long long) t.lost);
    if (t.full > 0 || t.dropped > 0)
        fprintf(out, "incomplete: %d ranks had used up their share of RONDO_TRACE_BYTES; %llu events dropped\n", t.full,
                (unsigned long long) t.dropped);
    print_ranks(out, all, t.ranks);
    print_operations(out, &t, everything);
    print_queue(out, &t);
    if (svg != NULL)
        code = trace_plot(&t, svg);
    if (code == 0 && timeline != NULL)
        code = trace_draw(&t, timeline);
    if (code == 0)
        code = output_json(VERB, json, json_of(&t, all));
    free(all);
    trace_free(&t);
    return code;
}

int verb_trace(int argc, char **argv)
{
    const char *svg = NULL, *timeline = NULL, *json = NULL;
    bool everything = false;
    int option;
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
        switch (option) {
        case OPT_SVG:
            svg = optarg;
            break;
        case OPT_TIMELINE:
            timeline = optarg;
            break;
        case OPT_ALL:
            everything = true;
            break;
        case OPT_JSON:
            json = optarg;
            break;
        case OPT_HELP:
            fputs(help, stdout);
            return 0;
        default:
            return options_unknown(VERB, option, argv);
        }
    }
    if (optind >= argc || strcmp(argv[optind], "summary") != 0)
        return options_refuse(VERB, "'%s' is not what rondo trace can do (summary)", optind < argc ? argv[optind] : "");
    if (optind + 2 != argc)
        return options_refuse(VERB, "summary takes one file, not %d", argc - optind - 1);
    return summarize(argv[optind + 1], svg, timeline, json, everything);
}
