/* `rondo sim --model rondo`: parameters of the machine, rounds, and what comes of them. See sim_rondo.h. */
#include "sim_rondo.h"
#include "environment.h"
#include "options.h"
#include "output.h"

#include <stdlib.h>
#include <string.h>

#define VERB "sim"

/* The time of a primitive: that of the all-reduce by its ring's steps. */
static int read_bench(const struct sim_rondo_options *o, struct sim_machine *machine)
{
    json_error_t error;
    json_t *root = json_load_file(o->bench, 0, &error), *rows, *row, *best = NULL;
    int code = 0;
    if (root == NULL)
        return options_refuse(VERB, "--bench %s, line %d: %s", o->bench, error.line, error.text);
    json_int_t ranks = json_integer_value(json_object_get(root, "ranks"));
    const char *collective = json_string_value(json_object_get(root, "collective"));
    rows = json_object_get(root, "rows");
    size_t index;
    json_array_foreach(rows, index, row)
    {
        json_int_t bytes = json_integer_value(json_object_get(row, "bytes"));
        json_int_t nearest = json_integer_value(json_object_get(best, "bytes"));
        if (best == NULL || llabs(bytes - o->bytes) < llabs(nearest - o->bytes))
            best = row;
    }
    double time = json_number_value(json_object_get(best, "time_us"));
    if (collective == NULL || strcmp(collective, "allreduce") != 0 || ranks < 2 || time <= 0)
        code = options_refuse(VERB, "--bench %s is not the JSON of a `rondo bench allreduce` of two ranks or more", o->bench);
    else
        machine->primitive = 1e3 * time / (double) (2 * (ranks - 1));
    json_decref(root);
    return code;
}

/* The daemon's policy, as this environment sets it. */
static int read_policy(struct sim_machine *machine)
{
    const struct {
        const char *name;
        double scale, *value;
    } settings[] = {{"RONDO_SPIN_INITIAL", 1, &machine->initial},  {"RONDO_SPIN_DECAY", 1, &machine->decay},
                    {"RONDO_SPIN_BOOST", 1, &machine->boost},      {"RONDO_SPIN_CAP", 1, &machine->cap},
                    {"RONDO_QUIT_IDLE", 1e3, &machine->quit_idle}, {"RONDO_QUIT_STUCK", 1e3, &machine->quit_stuck},
                    {"RONDO_RESIDENCY", 1e3, &machine->residency}};
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        int64_t value;
        if (rondo_environment_integer(settings[i].name, &value) != RONDO_SUCCESS || value < 0)
            return options_refuse(VERB, "%s: %s", settings[i].name, rondo_last_error());
        *settings[i].value = settings[i].scale * (double) value;
    }
    return 0;
}

static void add(struct sim_rondo_outcome *sum, const struct sim_rondo_outcome *one)
{
    sum->finish += one->finish;
    sum->spinning += one->spinning;
    sum->working += one->working;
    sum->collectives += one->collectives;
    sum->preemptions += one->preemptions;
    sum->quits += one->quits;
    sum->finished += one->finished;
    sum->longest_queue = one->longest_queue > sum->longest_queue ? one->longest_queue : sum->longest_queue;
    sum->stuck = sum->stuck || one->stuck;
}

static int tell(const struct sim_config *config, const struct sim_rondo_options *o, const struct sim_machine *machine,
                const struct sim_rondo_outcome *sum, const struct sim_rondo_outcome *ideal)
{
    FILE *out = output_stream(o->json);
    double rounds = (double) config->rounds, finish = sum->finish / rounds, parts = (double) sum->collectives;
    double waste = finish / ideal->finish - 1, spun = sum->spinning / (sum->spinning + sum->working);
    fprintf(out,
            "%s under Rondo: %llu of %llu collectives' parts finished%s\n"
            "  finish %.3f ms a round, in order %.3f ms: %.2f%% longer\n"
            "  %.4g preemptions a part (in order %.4g), %.4g quits a GPU and round, longest queue %llu (in order %llu)\n"
            "  %.1f%% of the daemons' time goes into polls in vain; primitive %.3g us, start %.3g us, seed %llu\n",
            config->name, (unsigned long long) sum->finished, (unsigned long long) sum->collectives,
            sum->stuck ? ": STUCK" : ", no deadlock", finish / 1e6, ideal->finish / 1e6, 100 * waste,
            (double) sum->preemptions / parts, (double) ideal->preemptions / (double) ideal->collectives,
            (double) sum->quits / rounds / config->gpus, (unsigned long long) sum->longest_queue,
            (unsigned long long) ideal->longest_queue, 100 * spun, machine->primitive / 1e3, machine->start / 1e3,
            (unsigned long long) config->seed);
    json_t *root = json_pack("{s:s, s:s, s:f, s:I, s:I, s:b, s:I, s:I, s:f, s:f, s:f, s:I, s:f, s:f, s:I, s:I, s:f, s:f}",
                             "name", config->name, "model", "rondo", "deadlock_ratio", sum->stuck ? 1.0 : 0.0, "finished",
                             (json_int_t) sum->finished, "expected", (json_int_t) sum->collectives, "deadlock",
                             (int) sum->stuck, "rounds", (json_int_t) config->rounds, "ranks", (json_int_t) config->gpus,
                             "finish_us", finish / 1e3, "ideal_us", ideal->finish / 1e3, "waste", waste, "preemptions",
                             (json_int_t) sum->preemptions, "preemptions_per_collective", (double) sum->preemptions / parts,
                             "spinning", spun, "daemon_quits", (json_int_t) sum->quits, "seed", (json_int_t) config->seed,
                             "primitive_us", machine->primitive / 1e3, "start_us", machine->start / 1e3);
    int code = output_json(VERB, o->json, root);
    return sum->stuck ? EXIT_DEADLOCK : code;
}

int sim_rondo_run(const struct sim_config *config, const struct sim_rondo_options *o)
{
    struct sim_machine machine = SIM_MACHINE_DEFAULT;
    struct sim_layout layout;
    struct sim_round round = {0};
    struct sim_rondo_outcome sum = {0}, ideal, one;
    int code = read_policy(&machine);
    if (config->gpus > 4096)
        return options_refuse(VERB, "--model rondo is for 4096 GPUs at most, not %d", config->gpus);
    if (code == 0 && o->bench != NULL)
        code = read_bench(o, &machine);
    if (o->start_us > 0)
        machine.start = 1e3 * o->start_us;
    if (code != 0 || (code = sim_layout_make(config, &layout)) != 0)
        return code;
    code = sim_rondo_round(&layout, &round, &machine, &ideal) != 0 ? EXIT_WRONG : 0;
    for (uint64_t number = 0; number < config->rounds && code == 0; number++) {
        sim_round_draw(&layout, config, number, &round);
        code = sim_rondo_round(&layout, &round, &machine, &one) != 0 ? EXIT_WRONG : 0;
        add(&sum, &one);
    }
    sim_round_free(&round);
    sim_layout_free(&layout);
    if (code != 0) {
        fprintf(stderr, "rondo sim: no memory for a round of %d GPUs\n", config->gpus);
        return code;
    }
    return tell(config, o, &machine, &sum, &ideal);
}
