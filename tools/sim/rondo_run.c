/* `rondo sim --model rondo`: parameters of the machine, rounds, and what comes of them. See tools/sim/rondo.h. */
#include "tools/sim/rondo.h"
#include "tools/common/options.h"
#include "tools/common/output.h"

#include <stddef.h>

#define VERB "sim"

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
                double primitive, const struct sim_rondo_outcome *sum, const struct sim_rondo_outcome *ideal)
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
            (unsigned long long) ideal->longest_queue, 100 * spun, primitive / 1e3, machine->start / 1e3,
            (unsigned long long) config->seed);
    json_t *root = json_pack("{s:s, s:s, s:f, s:I, s:I, s:b, s:I, s:I, s:f, s:f, s:f, s:I, s:f, s:f, s:I, s:I, s:f, s:f}",
                             "name", config->name, "model", "rondo", "deadlock_ratio", sum->stuck ? 1.0 : 0.0, "finished",
                             (json_int_t) sum->finished, "expected", (json_int_t) sum->collectives, "deadlock",
                             (int) sum->stuck, "rounds", (json_int_t) config->rounds, "ranks", (json_int_t) config->gpus,
                             "finish_us", finish / 1e3, "ideal_us", ideal->finish / 1e3, "waste", waste, "preemptions",
                             (json_int_t) sum->preemptions, "preemptions_per_collective", (double) sum->preemptions / parts,
                             "spinning", spun, "daemon_quits", (json_int_t) sum->quits, "seed", (json_int_t) config->seed,
                             "primitive_us", primitive / 1e3, "start_us", machine->start / 1e3);
    int code = output_json(VERB, o->json, root);
    return sum->stuck ? EXIT_DEADLOCK : code;
}

int sim_rondo_run(const struct sim_config *config, const struct sim_rondo_options *o)
{
    struct sim_machine machine;
    struct sim_bench bench = {0};
    struct sim_layout layout;
    struct sim_round round = {0};
    struct sim_rondo_outcome sum = {0}, ideal, one;
    double primitive = SIM_PRIMITIVE_DEFAULT, check = 0;
    struct sim_load load = {.kinds = 1, .primitive = &primitive, .check = &check};
    int code = sim_machine_read(o, 0, &machine);
    if (config->gpus > 4096)
        return options_refuse(VERB, "--model rondo is for 4096 GPUs at most, not %d", config->gpus);
    if (code == 0 && o->bench != NULL && (code = sim_bench_read(o->bench, &machine, &bench)) == 0)
        primitive = sim_bench_primitive(&bench, (double) o->bytes);
    sim_bench_free(&bench);
    if (code != 0 || (code = sim_layout_make(config, &layout)) != 0)
        return code;
    code = sim_rondo_round(&layout, &round, &machine, &load, &ideal) != 0 ? EXIT_WRONG : 0;
    for (uint64_t number = 0; number < config->rounds && code == 0; number++) {
        sim_round_draw(&layout, config, number, &round);
        code = sim_rondo_round(&layout, &round, &machine, &load, &one) != 0 ? EXIT_WRONG : 0;
        add(&sum, &one);
    }
    sim_round_free(&round);
    sim_layout_free(&layout);
    if (code != 0) {
        fprintf(stderr, "rondo sim: no memory for a round of %d GPUs\n", config->gpus);
        return code;
    }
    return tell(config, o, &machine, primitive, &sum, &ideal);
}
