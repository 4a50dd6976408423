/*
 * `rondo sim --stress FILE --bench FILE`: the program that a `rondo stress` has run, played under the model of Rondo's
 * scheduler, beside what that run measured. See tools/sim/rondo.h.
 */
#include "tools/common/options.h"
#include "tools/common/output.h"
#include "tools/sim/random.h"
#include "tools/sim/rondo.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VERB "sim"

enum { STARTS_MAX = 1 << 24 };
/* As tools/stress/program.c and tools/stress/data.c have it. */
static const double synchronizations_per_iteration = 2, smallest_bytes = 256, largest_bytes = 1 << 20;

/* What the run was, and what it measured: a rank's, of an iteration. */
struct run {
    int ranks, collectives, iterations;
    bool random_order, synchronize;
    uint64_t seed;
    double time, fill, check; /* ns */
    double preemptions;       /* a collective and rank */
    double quits;
};

static int read_run(const char *path, struct run *run)
{
    json_error_t error;
    json_t *root = json_load_file(path, 0, &error);
    if (root == NULL)
        return options_refuse(VERB, "--stress %s, line %d: %s", path, error.line, error.text);
    json_int_t ranks = json_integer_value(json_object_get(root, "ranks"));
    json_int_t collectives = json_integer_value(json_object_get(root, "collectives"));
    json_int_t iterations = json_integer_value(json_object_get(root, "iterations"));
    double time = json_number_value(json_object_get(root, "program_ns"));
    const char *order = json_string_value(json_object_get(root, "order"));
    int code = 0;
    if (ranks < 1 || collectives < 1 || iterations < 1 || time <= 0 || order == NULL)
        code = options_refuse(VERB, "--stress %s is not the JSON of a `rondo stress` of persistent operations", path);
    else if (ranks > 4096 || (double) ranks * (double) collectives * (double) iterations > STARTS_MAX)
        code = options_refuse(VERB,
                              "--stress %s: %lld ranks with %lld collectives in %lld iterations; at most 4096, and %d starts "
                              "in all, can be simulated",
                              path, (long long) ranks, (long long) collectives, (long long) iterations, STARTS_MAX);
    else if (!json_is_true(json_object_get(root, "preempt")) || json_is_true(json_object_get(root, "deadlock")))
        code = options_refuse(VERB, "--stress %s: the model is of runs with preemption that finished", path);
    if (code == 0) {
        double parts = (double) ranks * (double) iterations;
        *run = (struct run){.ranks = (int) ranks, .collectives = (int) collectives, .iterations = (int) iterations};
        run->random_order = strcmp(order, "random") == 0;
        run->synchronize = json_is_true(json_object_get(root, "sync"));
        run->seed = (uint64_t) json_integer_value(json_object_get(root, "seed"));
        run->time = time / parts;
        run->fill = json_number_value(json_object_get(root, "fill_ns")) / parts;
        run->check = json_number_value(json_object_get(root, "check_ns")) / parts;
        run->preemptions = json_number_value(json_object_get(root, "preemptions")) / parts / (double) collectives;
        run->quits = json_number_value(json_object_get(root, "daemon_quits")) / parts;
    }
    json_decref(root);
    return code;
}

/* Every rank's orders, and where it synchronizes. 0, or -1 without memory. */
static int draw(const struct run *run, struct sim_round *round)
{
    uint32_t count = (uint32_t) run->collectives;
    size_t windows = (size_t) run->ranks * (size_t) run->iterations, starts = windows * count;
    struct sim_random random = sim_random_seed(run->seed, 0);
    *round = (struct sim_round){0};
    round->segments = calloc(windows, sizeof(*round->segments));
    round->orders = calloc(starts, sizeof(*round->orders));
    round->synchronizations = calloc(starts, sizeof(*round->synchronizations));
    if (round->segments == NULL || round->orders == NULL || round->synchronizations == NULL)
        return -1;
    for (int rank = 0; rank < run->ranks; rank++)
        for (uint32_t first = 0; first < count * (uint32_t) run->iterations; first += count) {
            uint32_t *order = round->orders + round->order_count;
            for (uint32_t k = 0; k < count; k++)
                order[k] = first + k;
            for (uint32_t k = count - 1; k > 0 && run->random_order; k--) {
                uint32_t other = (uint32_t) (sim_random_next(&random) % (k + 1)), retained = order[k];
                order[k] = order[other];
                order[other] = retained;
            }
            round->segments[round->segment_count++] = (struct sim_segment){rank, first, count, round->order_count};
            round->order_count += count;
            for (uint32_t k = 1; k <= count && run->synchronize; k++)
                if (sim_random_unit(&random) * count < synchronizations_per_iteration)
                    round->synchronizations[round->synchronization_count++] = (struct sim_synchronization){rank, first + k};
        }
    return 0;
}

/* Sizes from the smallest to the largest, as the program's; checking takes time by bytes. The benchmark repeats one collective,
 * whose data stay where they are quickest; here an iteration's follow each other, so each moves no faster than one does that
 * has as many bytes as all of them. */
static int make_load(const struct run *run, const struct sim_bench *bench, struct sim_load *load)
{
    size_t count = (size_t) run->collectives;
    double sum = 0;
    *load = (struct sim_load){.kinds = (uint32_t) count, .window = (uint32_t) count, .fill = run->fill};
    load->primitive = calloc(count, sizeof(*load->primitive));
    load->check = calloc(count, sizeof(*load->check));
    if (load->primitive == NULL || load->check == NULL)
        return -1;
    for (size_t k = 0; k < count; k++) {
        double part = count > 1 ? (double) k / (double) (count - 1) : 1;
        load->check[k] = smallest_bytes * pow(largest_bytes / smallest_bytes, part);
        load->primitive[k] = sim_bench_primitive(bench, load->check[k]);
        sum += load->check[k];
    }
    double all = sim_bench_primitive(bench, sum);
    for (size_t k = 0; k < count; k++) {
        double share = load->check[k] / sum;
        load->primitive[k] = load->primitive[k] > share * all ? load->primitive[k] : share * all;
        load->check[k] = share * run->check;
    }
    return 0;
}

static int tell(const struct sim_rondo_options *o, const struct run *run, const struct sim_machine *machine,
                const struct sim_rondo_outcome *out)
{
    FILE *stream = output_stream(o->json);
    double parts = (double) run->ranks * run->iterations, time = out->finish / run->iterations;
    double preemptions = (double) out->preemptions / (double) out->collectives, quits = (double) out->quits / parts;
    fprintf(stream,
            "rondo stress, %d ranks, %d collectives, %s order%s, %d iterations; the model, on %d processors%s\n"
            "  an iteration    measured %8.3f ms  model %8.3f ms  (%.2f)\n"
            "  preemptions     measured %8.2f     model %8.2f     (%.2f), a collective and rank\n"
            "  daemon's quits  measured %8.2f     model %8.2f     (%.2f), an iteration and rank\n",
            run->ranks, run->collectives, run->random_order ? "random" : "same",
            run->synchronize ? " and synchronizations" : "", run->iterations,
            machine->cores > 0 ? machine->cores : 2 * run->ranks, out->stuck ? ": STUCK" : "", run->time / 1e6, time / 1e6,
            time / run->time, run->preemptions, preemptions, preemptions / run->preemptions, run->quits, quits,
            quits / run->quits);
    json_t *root =
        json_pack("{s:i, s:i, s:i, s:b, s:b, s:i, s:b, s:{s:f, s:f, s:f}, s:{s:f, s:f, s:f}}", "ranks", run->ranks,
                  "collectives", run->collectives, "iterations", run->iterations, "random_order", (int) run->random_order,
                  "sync", (int) run->synchronize, "cores", machine->cores, "deadlock", (int) out->stuck, "measured",
                  "iteration_us", run->time / 1e3, "preemptions_per_collective", run->preemptions, "quits", run->quits, "model",
                  "iteration_us", time / 1e3, "preemptions_per_collective", preemptions, "quits", quits);
    int code = output_json(VERB, o->json, root);
    return out->stuck ? EXIT_DEADLOCK : code;
}

int sim_rondo_stress(const struct sim_rondo_options *o)
{
    struct sim_rondo_options mine = *o;
    struct sim_machine machine;
    struct sim_layout layout = {0};
    struct sim_bench bench = {0};
    struct sim_load load = {0};
    struct sim_round round = {0};
    struct sim_rondo_outcome out;
    struct run run;
    if (o->bench == NULL)
        return options_refuse(VERB, "--stress needs --bench: a JSON of `rondo bench allreduce` with as many ranks");
    if (o->start_us < 0)
        mine.start_us = 0.3; /* it starts them in a loop */
    int code = sim_machine_read(&mine, (int) sysconf(_SC_NPROCESSORS_ONLN), &machine);
    if (code == 0 && (code = read_run(o->stress, &run)) == 0)
        code = sim_bench_read(o->bench, &machine, &bench);
    if (code == 0 && bench.ranks != run.ranks)
        code = options_refuse(VERB, "--stress is of %d ranks, --bench of %d", run.ranks, bench.ranks);
    if (code == 0)
        code = sim_layout_one_group(run.ranks, (int64_t) run.collectives * run.iterations, &layout);
    if (code == 0 && (draw(&run, &round) != 0 || make_load(&run, &bench, &load) != 0 ||
                      sim_rondo_round(&layout, &round, &machine, &load, &out) != 0)) {
        fprintf(stderr, "rondo %s: no memory for %d ranks\n", VERB, run.ranks);
        code = EXIT_WRONG;
    }
    if (code == 0)
        code = tell(o, &run, &machine, &out);
    free(load.primitive);
    free(load.check);
    sim_round_free(&round);
    sim_layout_free(&layout);
    sim_bench_free(&bench);
    return code;
}
