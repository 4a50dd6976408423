/* The parameters of `rondo sim --model rondo`: policy from the environment, times from `rondo bench`. See tools/sim/rondo.h. */
#include "lib/runtime/spin.h"
#include "tools/common/options.h"
#include "tools/sim/rondo.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define VERB "sim"

enum { REPEATED = 16 }; /* all-reduces to fit a time */

int sim_machine_read(const struct sim_rondo_options *o, int default_cores, struct sim_machine *machine)
{
    *machine = (struct sim_machine) SIM_MACHINE_DEFAULT;
    const struct {
        const char *name;
        double scale, *value;
    } settings[] = {{"RONDO_SPIN_INITIAL", 1, &machine->initial},  {"RONDO_SPIN_DECAY", 1, &machine->decay},
                    {"RONDO_SPIN_BOOST", 1, &machine->boost},      {"RONDO_SPIN_CAP", 1, &machine->cap},
                    {"RONDO_QUIT_IDLE", 1e3, &machine->quit_idle}, {"RONDO_QUIT_STUCK", 1e3, &machine->quit_stuck},
                    {"RONDO_RESIDENCY", 1e3, &machine->residency}};
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        int64_t value;
        int code = options_variable(VERB, settings[i].name, &value);
        if (code != 0)
            return code;
        *settings[i].value = settings[i].scale * (double) value;
    }
    int64_t readiness_check;
    int code = options_variable(VERB, "RONDO_READINESS_CHECK", &readiness_check);
    if (code != 0)
        return code;
    if (readiness_check == 0)
        machine->readiness_check = 0;
    if (o->start_us > 0)
        machine->start = 1e3 * o->start_us;
    machine->cores = o->cores >= 0 ? (int) o->cores : default_cores;
    const struct rondo_budgets asked = {.initial = (uint64_t) machine->initial, .cap = (uint64_t) machine->cap};
    const struct rondo_budgets budgets =
        rondo_spin_budgets(&asked, machine->cores > 0 ? RONDO_SPIN_ON_SHARED_CORES : RONDO_SPIN_ON_HOST);
    machine->initial = (double) budgets.initial;
    machine->cap = (double) budgets.cap;
    return 0;
}

/* What the model makes of one all-reduce after the other, each waited for. */
static double all_reduce(const struct sim_layout *layout, const struct sim_machine *machine, double primitive)
{
    double check = 0;
    struct sim_machine m = *machine;
    struct sim_load load = {.kinds = 1, .primitive = &primitive, .check = &check, .window = 1};
    struct sim_round in_order = {0};
    struct sim_rondo_outcome outcome;
    m.start = m.start < 300 ? m.start : 300; /* as fast as a loop of the benchmark's */
    if (sim_rondo_round(layout, &in_order, &m, &load, &outcome) != 0)
        return -1;
    return outcome.finish / layout->collectives;
}

/* The primitive with which that takes so long; 1 ns if nothing is left for it. */
static double fit(const struct sim_layout *layout, const struct sim_machine *machine, double time)
{
    double low = 1, high = time > 2 ? time : 2;
    for (int i = 0; i < 16; i++) {
        double middle = sqrt(low * high), found = all_reduce(layout, machine, middle);
        if (found < 0)
            return -1;
        *(found < time ? &low : &high) = middle;
    }
    return sqrt(low * high);
}

static int read_rows(const char *path, json_t *rows, struct sim_bench *bench)
{
    size_t index;
    json_t *row;
    bench->bytes = calloc(json_array_size(rows) + 1, sizeof(*bench->bytes));
    bench->primitive = calloc(json_array_size(rows) + 1, sizeof(*bench->primitive));
    if (bench->bytes == NULL || bench->primitive == NULL)
        return options_refuse(VERB, "--bench %s: no memory for %zu rows", path, json_array_size(rows));
    json_array_foreach(rows, index, row)
    {
        double bytes = json_number_value(json_object_get(row, "bytes"));
        double time = json_number_value(json_object_get(row, "time_us"));
        if (!(time > 0) || !(bytes > (index > 0 ? bench->bytes[index - 1] : 0)))
            return options_refuse(VERB, "--bench %s: row %zu has %g bytes in %g us", path, index, bytes, time);
        bench->bytes[index] = bytes;
        bench->primitive[index] = 1e3 * time; /* of all of it, as yet */
        bench->rows++;
    }
    return 0;
}

int sim_bench_read(const char *path, const struct sim_machine *machine, struct sim_bench *bench)
{
    json_error_t error;
    json_t *root = json_load_file(path, 0, &error);
    struct sim_layout layout;
    *bench = (struct sim_bench){0};
    if (root == NULL)
        return options_refuse(VERB, "--bench %s, line %d: %s", path, error.line, error.text);
    json_t *rows = json_object_get(root, "rows");
    json_int_t ranks = json_integer_value(json_object_get(root, "ranks"));
    const char *collective = json_string_value(json_object_get(root, "collective"));
    int code = 0;
    if (collective == NULL || strcmp(collective, "allreduce") != 0 || ranks < 2 || ranks > 4096 || json_array_size(rows) == 0)
        code = options_refuse(VERB, "--bench %s is not the JSON of a `rondo bench allreduce` of 2 to 4096 ranks", path);
    bench->ranks = (int) ranks;
    if (code == 0)
        code = read_rows(path, rows, bench);
    json_decref(root);
    if (code != 0 || (code = sim_layout_one_group(bench->ranks, REPEATED, &layout)) != 0)
        return code;
    for (size_t i = 0; i < bench->rows && code == 0; i++) {
        bench->primitive[i] = fit(&layout, machine, bench->primitive[i]);
        code = bench->primitive[i] < 0 ? EXIT_WRONG : 0;
    }
    if (code != 0)
        fprintf(stderr, "rondo %s: no memory for %d ranks\n", VERB, bench->ranks);
    sim_layout_free(&layout);
    return code;
}

void sim_bench_free(struct sim_bench *bench)
{
    free(bench->bytes);
    free(bench->primitive);
    *bench = (struct sim_bench){0};
}

double sim_bench_primitive(const struct sim_bench *bench, double bytes)
{
    size_t i = 1;
    while (i < bench->rows && bench->bytes[i] < bytes)
        i++;
    if (i >= bench->rows || bytes <= bench->bytes[0])
        return bench->primitive[bytes <= bench->bytes[0] ? 0 : bench->rows - 1];
    double part = log(bytes / bench->bytes[i - 1]) / log(bench->bytes[i] / bench->bytes[i - 1]);
    return bench->primitive[i - 1] * pow(bench->primitive[i] / bench->primitive[i - 1], part);
}
