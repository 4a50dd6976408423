/* `rondo sim`: how often would this deadlock on a runtime that cannot preempt? See tools/sim/sim.h. */
#include "tools/sim/sim.h"
#include "tools/common/options.h"
#include "tools/common/output.h"
#include "tools/sim/rondo.h"
#include "tools/common/verbs.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VERB "sim"

enum {
    OPT_PRESET = 256,
    OPT_LIST,
    OPT_TABLE,
    OPT_ROUNDS,
    OPT_SEED,
    OPT_THREADS,
    OPT_MODEL,
    OPT_TEST,
    OPT_ORDER,
    OPT_METHOD,
    OPT_DISORDER,
    OPT_SYNC,
    OPT_SHOW,
    OPT_BENCH,
    OPT_STRESS,
    OPT_CORES,
    OPT_BYTES,
    OPT_START,
    OPT_DETAILS,
    OPT_JSON,
    OPT_HELP
};

static const struct option long_options[] = {
    {"preset", required_argument, NULL, OPT_PRESET}, {"list", no_argument, NULL, OPT_LIST},
    {"table", no_argument, NULL, OPT_TABLE},         {"rounds", required_argument, NULL, OPT_ROUNDS},
    {"seed", required_argument, NULL, OPT_SEED},     {"threads", required_argument, NULL, OPT_THREADS},
    {"model", required_argument, NULL, OPT_MODEL},   {"test", required_argument, NULL, OPT_TEST},
    {"order", required_argument, NULL, OPT_ORDER},   {"method", required_argument, NULL, OPT_METHOD},
    {"show", no_argument, NULL, OPT_SHOW},           {"disorder", required_argument, NULL, OPT_DISORDER},
    {"sync", required_argument, NULL, OPT_SYNC},     {"details", no_argument, NULL, OPT_DETAILS},
    {"json", required_argument, NULL, OPT_JSON},     {"bench", required_argument, NULL, OPT_BENCH},
    {"stress", required_argument, NULL, OPT_STRESS}, {"cores", required_argument, NULL, OPT_CORES},
    {"bytes", required_argument, NULL, OPT_BYTES},   {"start-us", required_argument, NULL, OPT_START},
    {"help", no_argument, NULL, OPT_HELP},           {NULL, 0, NULL, 0},
};

static const char help[] =
    "usage: rondo sim FILE.json | --preset NAME | --stress FILE | --table | --list [OPTIONS]\n"
    "  How often would a job deadlock on a runtime that cannot preempt collectives? Rounds of randomly disordered starts and\n"
    "  synchronizations are drawn and judged; the ratio of those that deadlock comes with its exact 95% interval.\n"
    "  FILE.json         a configuration with the keys of the DFCCL paper's simulator (docs/guide/simulator.md)\n"
    "  --preset NAME     a row of that paper's table 1; --list names them; --table runs all, beside the paper's ratios\n"
    "  --rounds N        so many rounds (the file's; 32000)\n"
    "  --seed X          (the file's; 1): the same seed gives the same rounds, on any number of threads\n"
    "  --threads N       (as many as there are processors)\n"
    "  --model NAME      single, sync or rondo, whatever the configuration says. rondo: the same starts under Rondo's\n"
    "                    preemptive scheduler, which finishes all of them: time, preemptions and waste\n"
    "  --disorder P, --sync P  probabilities, whatever the configuration says\n"
    "  --test WHICH      sync model: cycle (a circle of suspended GPUs), or intersection (the published simulator's weaker\n"
    "                    test, which also takes for a deadlock what would still come right)\n"
    "  --order WHICH     a GPU's collectives: interleaved (one of each of its groups in turn) or concatenated\n"
    "  --method WHICH    jump (decides a round from its disorder alone) or events (goes through all events)\n"
    "  --show            tells one deadlock in words and draws it\n"
    "  --bench FILE      rondo: time of a primitive from a JSON of `rondo bench allreduce`, at --bytes N (64K)\n"
    "  --start-us X      rondo: microseconds from one start to the next (10)\n"
    "  --cores N         rondo: processors that the ranks share, as on the host device; 0: each has its own (the default)\n"
    "  --stress FILE     a JSON of `rondo stress`, to compare with the model what was measured; with --bench of as many "
    "ranks;\n"
    "                    here --cores is by default what this machine has\n"
    "  --json FILE       (- for standard output) of one configuration: deadlock_ratio, low, high, rounds; --details: all of "
    "it\n";

struct options {
    double disorder, sync; /* -1: not given */
    const char *file, *preset, *json;
    bool list, table, show, details;
    int64_t rounds, seed, threads; /* -1: not given */
    int model, test, order;        /* likewise */
    enum sim_method method;
    struct sim_rondo_options rondo;
};

static int read_word(const char *option, const char *text, const char *const *words, int count, int *value)
{
    char known[80] = "";
    for (int i = 0; i < count; i++) {
        if (strcmp(text, words[i]) == 0) {
            *value = i;
            return 0;
        }
        snprintf(known + strlen(known), sizeof(known) - strlen(known), "%s%s", i > 0 ? ", " : "", words[i]);
    }
    return options_refuse(VERB, "%s '%s' is none of %s", option, text, known);
}

static int read_probability(const char *option, double *value)
{
    int code = options_real(VERB, option, optarg, 0, value);
    return code != 0 || *value <= 1 ? code : options_refuse(VERB, "%s %s is not a probability (0 to 1)", option, optarg);
}

static int read_one(int option, struct options *o)
{
    static const char *const models[] = {"single", "sync", "rondo"}, *const tests[] = {"cycle", "intersection"};
    static const char *const orders[] = {"interleaved", "concatenated"}, *const methods[] = {"jump", "events"};
    int word = 0, code;
    size_t bytes = 0;
    switch (option) {
    case OPT_PRESET:
        o->preset = optarg;
        return 0;
    case OPT_LIST:
        o->list = true;
        return 0;
    case OPT_TABLE:
        o->table = true;
        return 0;
    case OPT_ROUNDS:
        return options_integer(VERB, "--rounds", optarg, 1, INT64_C(1) << 40, &o->rounds);
    case OPT_SEED:
        return options_integer(VERB, "--seed", optarg, 0, INT64_MAX, &o->seed);
    case OPT_THREADS:
        return options_integer(VERB, "--threads", optarg, 1, 1024, &o->threads);
    case OPT_MODEL:
        return read_word("--model", optarg, models, 3, &o->model);
    case OPT_TEST:
        return read_word("--test", optarg, tests, 2, &o->test);
    case OPT_ORDER:
        return read_word("--order", optarg, orders, 2, &o->order);
    case OPT_METHOD:
        code = read_word("--method", optarg, methods, 2, &word);
        o->method = (enum sim_method) word;
        return code;
    case OPT_DISORDER:
        return read_probability("--disorder", &o->disorder);
    case OPT_SYNC:
        return read_probability("--sync", &o->sync);
    case OPT_SHOW:
        o->show = true;
        return 0;
    case OPT_DETAILS:
        o->details = true;
        return 0;
    case OPT_BENCH:
        o->rondo.bench = optarg;
        return 0;
    case OPT_STRESS:
        o->rondo.stress = optarg;
        return 0;
    case OPT_CORES:
        return options_integer(VERB, "--cores", optarg, 0, 65536, &o->rondo.cores);
    case OPT_BYTES:
        code = options_size(VERB, "--bytes", optarg, &bytes);
        o->rondo.bytes = (int64_t) bytes;
        return code;
    case OPT_START:
        return options_real(VERB, "--start-us", optarg, 0.001, &o->rondo.start_us);
    default: /* OPT_JSON */
        o->json = optarg;
        return 0;
    }
}

static int read_options(int argc, char **argv, struct options *o, bool *help_wanted)
{
    int option, code;
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
        if (option == '?' || option == ':')
            return options_unknown(VERB, option, argv);
        if (option == OPT_HELP) {
            *help_wanted = true;
            fputs(help, stdout);
            return 0;
        }
        if ((code = read_one(option, o)) != 0)
            return code;
    }
    if (optind + 1 < argc)
        return options_refuse(VERB, "'%s' is one file too many", argv[optind + 1]);
    o->file = optind < argc ? argv[optind] : NULL;
    if ((o->file != NULL) + (o->preset != NULL) + (o->rondo.stress != NULL) + o->list + o->table != 1)
        return options_refuse(VERB, "name one of FILE.json, --preset NAME, --stress FILE, --table, --list");
    return 0;
}

/* ---- one configuration ---- */

static int load(const struct options *o, const char *preset, struct sim_config *config)
{
    int code;
    if (preset != NULL)
        code = sim_preset_load(preset, config);
    else {
        json_error_t error;
        json_t *root = json_load_file(o->file, JSON_REJECT_DUPLICATES, &error);
        if (root == NULL)
            return options_refuse(VERB, "%s, line %d: %s", o->file, error.line, error.text);
        code = sim_config_read(root, o->file, config);
        json_decref(root);
    }
    if (code != 0)
        return code;
    config->method = o->method;
    if (o->rounds > 0)
        config->rounds = (uint64_t) o->rounds;
    if (o->seed >= 0)
        config->seed = (uint64_t) o->seed;
    if (o->disorder >= 0)
        config->disorder = o->disorder;
    if (o->sync >= 0)
        config->sync = o->sync;
    if (o->model >= 0)
        config->model = (enum sim_model) o->model;
    if (o->test >= 0)
        config->test = (enum sim_test) o->test;
    if (o->model >= 0 && config->model != SIM_SYNC && o->test < 0)
        config->test = SIM_CYCLE; /* the configuration's is of its own model */
    if (config->model != SIM_SYNC)
        config->resource_limit = -1; /* as in the artifact, it is of that model */
    if (o->order >= 0)
        config->order = (enum sim_order) o->order;
    if (o->table && config->model == SIM_RONDO)
        return options_refuse(VERB, "--table is of models that can deadlock, not rondo");
    return sim_config_check(config);
}

/* Draws the round again and searches its cycle. */
static int show(FILE *out, const struct sim_config *config, uint64_t number)
{
    struct sim_layout layout;
    struct sim_round round = {0};
    struct sim_cycle cycle = {0};
    struct sim_jump *jump = NULL;
    int code = sim_layout_make(config, &layout);
    if (code != 0)
        return code;
    sim_round_draw(&layout, config, number, &round);
    if (sim_jump_make(&layout, &jump) != 0)
        code = EXIT_WRONG;
    else if (sim_jump_decide(jump, config, &round, &cycle) == 1)
        sim_show(out, &layout, config, &cycle, number);
    else
        fprintf(out, "\nround %llu: reported by the test, but nobody waits in a circle\n", (unsigned long long) number);
    free(cycle.links);
    sim_jump_free(jump);
    sim_round_free(&round);
    sim_layout_free(&layout);
    return code;
}

static json_t *json_of(const struct sim_result *r)
{
    return json_pack("{s:f, s:f, s:f, s:I}", "deadlock_ratio", r->deadlocks.ratio, "low", r->deadlocks.low, "high",
                     r->deadlocks.high, "rounds", (json_int_t) r->rounds);
}

static json_t *details_of(const struct sim_config *config, const struct sim_result *r)
{
    const struct sim_ratio *c = &r->cycles;
    json_t *root = json_of(r);
    json_object_update_new(
        root, json_pack("{s:s, s:I, s:s, s:I, s:f, s:f}", "name", config->name, "deadlocks", (json_int_t) r->deadlocks.count,
                        "test", config->test == SIM_CYCLE ? "cycle" : "intersection", "seed", (json_int_t) config->seed,
                        "seconds", r->seconds, "rounds_per_second", (double) r->rounds / r->seconds));
    json_object_set_new(root, "cycle",
                        json_pack("{s:f, s:f, s:f, s:I}", "deadlock_ratio", c->ratio, "low", c->low, "high", c->high,
                                  "deadlocks", (json_int_t) c->count));
    if (r->first != UINT64_MAX)
        json_object_set_new(root, "first_deadlock_round", json_integer((json_int_t) r->first));
    return root;
}

static int run_one(const struct options *o)
{
    struct sim_config config = {0};
    struct sim_result r;
    FILE *out = output_stream(o->json);
    int code = load(o, o->preset, &config);
    if (code == 0 && config.model == SIM_RONDO) {
        config.rounds = o->rounds > 0 ? config.rounds : 1; /* each is a round in time */
        code = sim_rondo_run(&config, &o->rondo);
        sim_config_free(&config);
        return code;
    }
    if (code == 0)
        code = sim_run(&config, (int) o->threads, &r);
    if (code == 0) {
        const struct sim_ratio *d = &r.deadlocks, *c = &r.cycles;
        fprintf(out, "%s: %llu of %llu rounds deadlock: %.4g%% (95%% interval %.4g%% to %.4g%%)\n", config.name,
                (unsigned long long) d->count, (unsigned long long) r.rounds, 100 * d->ratio, 100 * d->low, 100 * d->high);
        if (config.test == SIM_INTERSECTION || config.resource_limit > 0)
            fprintf(out, "  with GPUs that wait in a circle: %llu, %.4g%% (%.4g%% to %.4g%%); the others %s\n",
                    (unsigned long long) c->count, 100 * c->ratio, 100 * c->low, 100 * c->high,
                    config.test == SIM_INTERSECTION ? "meet the intersection test, but would come right" : "lack resources");
        fprintf(out, "  seed %llu, %.2f s, %.0f rounds/s\n", (unsigned long long) config.seed, r.seconds,
                (double) r.rounds / r.seconds);
        if (o->show && r.first == UINT64_MAX)
            fputs("nobody waits in a circle: there is nothing to show\n", out);
        else if (o->show)
            code = show(out, &config, r.first);
    }
    if (code == 0)
        code = output_json(VERB, o->json, o->details ? details_of(&config, &r) : json_of(&r));
    sim_config_free(&config);
    return code;
}

enum { TABLE_COLUMNS = 9 };

static void table_row(FILE *out, const struct output_column *columns, const struct sim_preset *preset,
                      const struct sim_result *r)
{
    double values[TABLE_COLUMNS - 1] = {preset->paper,   r->deadlocks.ratio, r->deadlocks.low, r->deadlocks.high,
                                        r->cycles.ratio, r->cycles.low,      r->cycles.high,   r->seconds / 100};
    char cells[TABLE_COLUMNS][32];
    const char *row[TABLE_COLUMNS];
    snprintf(cells[0], sizeof(cells[0]), "%s", preset->name);
    for (int k = 1; k < TABLE_COLUMNS; k++)
        snprintf(cells[k], sizeof(cells[k]), "%.*f", k == 1 || k == TABLE_COLUMNS - 1 ? 2 : 3, 100 * values[k - 1]);
    for (int k = 0; k < TABLE_COLUMNS; k++)
        row[k] = cells[k];
    output_row(out, columns, TABLE_COLUMNS, row);
}

static int run_table(const struct options *o)
{
    static const struct output_column columns[TABLE_COLUMNS] = {
        {"configuration", "", -28}, {"paper", "(%)", 7}, {"ratio", "(%)", 7}, {"low", "(%)", 7}, {"high", "(%)", 7},
        {"cycle", "(%)", 7},        {"low", "(%)", 7},   {"high", "(%)", 7},  {"time", "(s)", 8}};
    const struct sim_preset *presets;
    size_t count = sim_presets(&presets);
    FILE *out = output_stream(o->json);
    json_t *rows = json_array();
    int code = 0;
    output_header(out, columns, TABLE_COLUMNS);
    for (size_t i = 0; i < count && code == 0; i++) {
        struct sim_config config = {0};
        struct sim_result r;
        struct options mine = *o;
        if (strncmp(presets[i].name, "single", 6) == 0)
            mine.test = -1; /* a chosen test is for the others */
        if ((code = load(&mine, presets[i].name, &config)) == 0 && (code = sim_run(&config, (int) o->threads, &r)) == 0) {
            table_row(out, columns, &presets[i], &r);
            json_t *object = details_of(&config, &r);
            json_object_set_new(object, "paper_ratio", json_real(presets[i].paper));
            json_array_append_new(rows, object);
        }
        sim_config_free(&config);
    }
    if (code != 0) {
        json_decref(rows);
        return code;
    }
    return output_json(VERB, o->json, json_pack("{s:o}", "rows", rows));
}

static int list(const struct options *o)
{
    const struct sim_preset *presets;
    size_t count = sim_presets(&presets);
    FILE *out = output_stream(o->json);
    json_t *all = json_array();
    for (size_t i = 0; i < count; i++) {
        fprintf(out, "%-28s %s (the paper: %.4g%%)\n", presets[i].name, presets[i].summary, 100 * presets[i].paper);
        json_array_append_new(all, json_pack("{s:s, s:s, s:f}", "name", presets[i].name, "summary", presets[i].summary,
                                             "paper_ratio", presets[i].paper));
    }
    return output_json(VERB, o->json, json_pack("{s:o}", "presets", all));
}

int verb_sim(int argc, char **argv)
{
    struct options o = {.disorder = -1,
                        .sync = -1,
                        .rounds = -1,
                        .seed = -1,
                        .threads = sysconf(_SC_NPROCESSORS_ONLN),
                        .model = -1,
                        .test = -1,
                        .order = -1,
                        .rondo = {.bytes = 65536, .start_us = -1, .cores = -1}};
    bool help_wanted = false;
    int code = read_options(argc, argv, &o, &help_wanted);
    if (code != 0 || help_wanted)
        return code;
    if (o.threads < 1)
        o.threads = 1;
    o.rondo.json = o.json;
    if (o.rondo.stress != NULL)
        return sim_rondo_stress(&o.rondo);
    return o.list ? list(&o) : o.table ? run_table(&o) : run_one(&o);
}
