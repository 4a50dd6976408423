/*
 * `rondo bench policy`: what the budgets of waits are worth. Programs of persistent collectives run under each policy in turn,
 * in the same runtime: budgets that stay (`fixed`), from 0.2 us to 1 ms; those of the environment, which are the device's own
 * where nothing is set (`default`); the same, raised twentyfold by progress as in DFCCL (`raised`); and measured ones
 * (`profile`). A figure is the median of the rounds.
 */
#include "tools/bench/bench.h"

#include "lib/runtime/spin.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CELL_SECONDS 0.05 /* that the iterations of a cell take, about */
enum {
    ITERATIONS_MOST = 200,
    OPERATIONS_MOST = BENCH_TENSORS,
    ROUNDS_MOST = 15,
    RAISE = 20 /* DFCCL, section 6.4.1 */
};
#define NAME_BYTES 24

/* ---- policies ---- */

static const uint64_t fixed_ns[] = {200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000, 500000, 1000000};
enum { FIXED = sizeof(fixed_ns) / sizeof(fixed_ns[0]), POLICIES = FIXED + 3 };

struct policy {
    char name[NAME_BYTES];
    struct rondo_spin spin;
};

static struct policy fixed(uint64_t ns)
{
    struct policy policy = {
        .spin = {.budgets = {.initial = ns, .alone = ns, .ordered = ns, .cap = ns}, .decay = 100, .boost = 1}};
    snprintf(policy.name, sizeof(policy.name), "fixed %g us", (double) ns * 1e-3);
    return policy;
}

/* The default first. On all ranks alike: profile measures on all of them. */
static rondo_result_t make_policies(struct bench *b, struct policy *policies)
{
    struct policy own = {.name = "default"}, raised = {.name = "raised"}, measured = {.name = "profile"};
    rondo_result_t code = rondo_spin_get(b->rank->runtime, &own.spin);
    if (code == RONDO_SUCCESS)
        code = rondo_spin_measure(b->rank->runtime, &measured.spin);
    raised.spin = own.spin;
    raised.spin.boost = RAISE;
    raised.spin.budgets.ordered = own.spin.budgets.initial;
    raised.spin.budgets.hold = 0;
    raised.spin.budgets.cap = RAISE * own.spin.budgets.initial;
    policies[0] = own;
    policies[1] = raised;
    policies[2] = measured;
    for (int i = 0; i < FIXED; i++)
        policies[3 + i] = fixed(fixed_ns[i]);
    return code;
}

/* ---- programs ---- */

struct program {
    const char *name;
    int operations;
    size_t least, most; /* bytes, in powers of two in turn; 0: the gradients of a ResNet-50 */
    bool random;        /* each rank starts them in an order of its own, which changes */
    bool mixed;         /* all-reduces, broadcasts and all-gathers in turn */
};
static const struct program programs[] = {
    {"one of 8 B", 1, 8, 8, false, false},
    {"one of 1 MiB", 1, 1 << 20, 1 << 20, false, false},
    {"8 of 64 KiB, random orders", 8, 1 << 16, 1 << 16, true, false},
    {"64 of 256 B to 1 MiB, one order", 64, 256, 1 << 20, false, false},
    {"64 of 256 B to 1 MiB, random orders", 64, 256, 1 << 20, true, false},
    {"64 mixed, random orders", 64, 256, 1 << 20, true, true},
    {"gradients, one order", BENCH_TENSORS, 0, 0, false, false},
    {"gradients, random orders", BENCH_TENSORS, 0, 0, true, false},
};
enum { PROGRAMS = sizeof(programs) / sizeof(programs[0]) };

struct operation {
    struct call call;
    struct check_buffers buffers;
    struct values values;
};

struct set {
    struct bench *bench;
    const struct program *program;
    struct operation operations[OPERATIONS_MOST];
    int order[OPERATIONS_MOST];
    uint64_t random; /* the state of this rank's generator */
};

static size_t bytes_of(const struct program *program, int i)
{
    size_t counts[BENCH_TENSORS], bytes = program->least;
    if (program->least == 0) {
        bench_count_elements(counts);
        return counts[i] * sizeof(float);
    }
    for (; i > 0; i--)
        bytes = 2 * bytes <= program->most ? 2 * bytes : program->least;
    return bytes;
}

static const struct collective *collective_of(const struct program *program, int i)
{
    static const char *const names[] = {"allreduce", "bcast", "allgather"};
    return collective_find(names[program->mixed ? i % 3 : 0]);
}

/* Shapes the operations, one behind the other in memory. Returns 0 without memory. */
static int shape(struct set *set, size_t *input_bytes, size_t *output_bytes)
{
    struct bench *b = set->bench;
    *input_bytes = *output_bytes = 0;
    for (int i = 0; i < set->program->operations; i++) {
        struct operation *o = &set->operations[i];
        o->call = bench_call(b);
        o->call.collective = collective_of(set->program, i);
        if (!call_shape(&o->call, bytes_of(set->program, i)))
            return 0;
        o->buffers = (struct check_buffers){.device = b->buffers.device};
        o->buffers.input = b->buffers.input + *input_bytes;
        o->buffers.output = b->buffers.output + *output_bytes;
        *input_bytes += (o->call.input_elements * o->call.type_bytes + 2 * CHECK_GUARD + 511) / 512 * 512;
        *output_bytes += (o->call.output_elements * o->call.type_bytes + 2 * CHECK_GUARD + 511) / 512 * 512;
    }
    return 1;
}

static rondo_result_t open_set(struct set *set)
{
    size_t input_bytes, output_bytes;
    if (!shape(set, &input_bytes, &output_bytes))
        return RONDO_ERR_MEMORY;
    rondo_result_t code = RONDO_SUCCESS;
    for (int i = 0; i < set->program->operations && code == RONDO_SUCCESS; i++) {
        struct operation *o = &set->operations[i];
        o->values = (struct values){.type = o->call.type,
                                    .op = o->call.op,
                                    .reduces = o->call.collective->rule->reduces,
                                    .ranks = set->bench->rank->size,
                                    .seed = 0x5B1D + (uint64_t) i};
        values_prepare(&o->values, false);
        call_bind(&o->call, o->buffers.input, o->buffers.output);
        if ((code = check_fill(&o->call, &o->values, &o->buffers, false)) == RONDO_SUCCESS)
            code = call_open(&o->call, FORM_PERSISTENT);
    }
    return code;
}

static rondo_result_t close_set(struct set *set, rondo_result_t code)
{
    for (int i = 0; i < set->program->operations; i++) {
        if (code == RONDO_SUCCESS)
            code = call_close(&set->operations[i].call, FORM_PERSISTENT);
        call_release(&set->operations[i].call);
    }
    return code;
}

static rondo_result_t iterate(struct set *set)
{
    const int operations = set->program->operations;
    rondo_request_t requests[OPERATIONS_MOST];
    for (int i = 0; i < operations; i++)
        set->order[i] = i;
    if (set->program->random)
        bench_shuffle(set->order, operations, &set->random);
    for (int i = 0; i < operations; i++)
        requests[i] = set->operations[set->order[i]].call.requests[0];
    rondo_result_t code = RONDO_SUCCESS;
    for (int i = 0; i < operations && code == RONDO_SUCCESS; i++)
        code = rondo_start(requests[i]);
    return code == RONDO_SUCCESS ? rondo_waitall(operations, requests) : code;
}

static rondo_result_t check(struct set *set, uint64_t *wrong)
{
    rondo_result_t code = RONDO_SUCCESS;
    for (int i = 0; i < set->program->operations && code == RONDO_SUCCESS; i++)
        code = check_poison(&set->operations[i].call, &set->operations[i].buffers);
    if (code == RONDO_SUCCESS)
        code = iterate(set);
    for (int i = 0; i < set->program->operations && code == RONDO_SUCCESS; i++)
        code = check_result(&set->operations[i].call, &set->operations[i].values, &set->operations[i].buffers, wrong);
    return code;
}

/* ---- cells ---- */

/* What one iteration took, and what the daemons of all ranks have done in it. */
enum { TIME, PREEMPTIONS, LOADS, SAVES, STARTS, SPIN, FIGURES };
static const char *const figure_names[FIGURES] = {"time_us",       "preemptions",   "context_loads",
                                                  "context_saves", "daemon_starts", "spin_us"};
struct cell {
    double figures[FIGURES][ROUNDS_MOST];
    int iterations;
};

static void count(const rondo_stats_t *stats, uint64_t counts[FIGURES])
{
    counts[PREEMPTIONS] = stats->preemptions;
    counts[LOADS] = stats->context_loads;
    counts[SAVES] = stats->context_saves;
    counts[STARTS] = stats->daemon_starts;
    counts[SPIN] = stats->spin_ns;
}

static rondo_result_t run_some(struct set *set, int iterations, double *seconds)
{
    rondo_result_t code = rondo_barrier(set->bench->rank->world);
    const double start = ranks_clock();
    for (int i = 0; i < iterations && code == RONDO_SUCCESS; i++)
        code = iterate(set);
    *seconds = ranks_clock() - start;
    return code == RONDO_SUCCESS ? ranks_most(set->bench->rank, seconds, 1) : code;
}

/* How many iterations a cell has. Rank 0 decides. */
static rondo_result_t choose_iterations(struct set *set, struct cell *cell)
{
    double seconds;
    rondo_result_t code = run_some(set, 2, &seconds);
    const double wanted = 2 * CELL_SECONDS / (seconds > 1e-9 ? seconds : 1e-9);
    cell->iterations = set->bench->options->iterations > 0 ? set->bench->options->iterations
                       : wanted > ITERATIONS_MOST          ? ITERATIONS_MOST
                       : wanted < 2                        ? 2
                                                           : (int) wanted;
    return code == RONDO_SUCCESS ? ranks_share(set->bench->rank, &cell->iterations, sizeof(cell->iterations)) : code;
}

static rondo_result_t measure(struct set *set, const struct policy *policy, int round, struct cell *cell)
{
    struct bench *b = set->bench;
    uint64_t before[FIGURES] = {0}, after[FIGURES] = {0};
    rondo_stats_t stats;
    double seconds = 0;
    rondo_result_t code = rondo_barrier(b->rank->world);
    if (code == RONDO_SUCCESS)
        code = rondo_spin_set(b->rank->runtime, &policy->spin);
    if (code == RONDO_SUCCESS)
        code = run_some(set, 3, &seconds);
    if (code == RONDO_SUCCESS && round == 0)
        code = choose_iterations(set, cell);
    if (code == RONDO_SUCCESS && (code = rondo_get_stats(b->rank->runtime, &stats)) == RONDO_SUCCESS)
        count(&stats, before);
    if (code == RONDO_SUCCESS)
        code = run_some(set, cell->iterations, &seconds);
    if (code == RONDO_SUCCESS && (code = rondo_get_stats(b->rank->runtime, &stats)) == RONDO_SUCCESS)
        count(&stats, after);
    for (int f = 0; f < FIGURES; f++)
        after[f] -= before[f];
    if (code == RONDO_SUCCESS)
        code = ranks_total(b->rank, after, FIGURES);
    for (int f = 0; f < FIGURES; f++)
        cell->figures[f][round] = (double) after[f] / cell->iterations;
    cell->figures[TIME][round] = seconds / cell->iterations * 1e6;
    cell->figures[SPIN][round] *= 1e-3;
    return code;
}

static void put_row(struct bench *b, const struct program *program, const struct policy *policy, const struct cell *cell,
                    double first_us)
{
    enum { COLUMNS = 6 };
    static const struct output_column columns[COLUMNS] = {{"program", "", -36},    {"policy", "", -16},
                                                          {"time", "(us)", 11},    {"by default's", "", 12},
                                                          {"preemptions", "", 11}, {"spun", "(us)", 11}};
    const int rounds = b->options->rounds;
    FILE *stream = output_stream(b->options->json);
    char text[COLUMNS][32];
    const double us = bench_median(cell->figures[TIME], rounds);
    const char *cells[COLUMNS] = {program->name, policy->name, text[2], text[3], text[4], text[5]};
    if (json_array_size(b->rows) == 0)
        output_header(stream, columns, COLUMNS);
    snprintf(text[2], sizeof(text[2]), "%.2f", us);
    snprintf(text[3], sizeof(text[3]), "%.3f", us / first_us);
    snprintf(text[4], sizeof(text[4]), "%.1f", bench_median(cell->figures[PREEMPTIONS], rounds));
    snprintf(text[5], sizeof(text[5]), "%.1f", bench_median(cell->figures[SPIN], rounds));
    output_row(stream, columns, COLUMNS, cells);
    json_t *row = json_object(), *times = json_array();
    json_object_set_new(row, "program", json_string(program->name));
    json_object_set_new(row, "policy", json_string(policy->name));
    json_object_set_new(row, "initial_ns", json_integer((json_int_t) policy->spin.budgets.initial));
    json_object_set_new(row, "alone_ns", json_integer((json_int_t) policy->spin.budgets.alone));
    json_object_set_new(row, "ordered_ns", json_integer((json_int_t) policy->spin.budgets.ordered));
    json_object_set_new(row, "hold_ns", json_integer((json_int_t) policy->spin.budgets.hold));
    json_object_set_new(row, "cap_ns", json_integer((json_int_t) policy->spin.budgets.cap));
    json_object_set_new(row, "decay", json_integer(policy->spin.decay));
    json_object_set_new(row, "boost", json_integer(policy->spin.boost));
    json_object_set_new(row, "iterations", json_integer(cell->iterations));
    for (int f = 0; f < FIGURES; f++)
        json_object_set_new(row, figure_names[f], json_real(bench_median(cell->figures[f], rounds)));
    for (int round = 0; round < rounds; round++)
        json_array_append_new(times, json_real(cell->figures[TIME][round]));
    json_object_set_new(row, "rounds_us", times);
    json_array_append_new(b->rows, row);
}

static rondo_result_t run_program(struct set *set, const struct policy *policies, uint64_t *wrong)
{
    struct bench *b = set->bench;
    struct cell *cells = calloc(POLICIES, sizeof(*cells));
    rondo_result_t code = cells != NULL ? open_set(set) : RONDO_ERR_MEMORY;
    for (int round = 0; round < b->options->rounds; round++)
        for (int turn = 0; turn < POLICIES && code == RONDO_SUCCESS; turn++) { /* another one first in each round */
            const int i = (turn + 4 * round) % POLICIES;
            code = measure(set, &policies[i], round, &cells[i]);
        }
    if (code == RONDO_SUCCESS)
        code = check(set, wrong);
    for (int i = 0; i < POLICIES && code == RONDO_SUCCESS && b->rank->rank == 0; i++)
        put_row(b, set->program, &policies[i], &cells[i], bench_median(cells[0].figures[TIME], b->options->rounds));
    free(cells);
    return close_set(set, code);
}

/* Memory for the program that needs the most. */
static rondo_result_t make_memory(struct set *set)
{
    size_t input_most = 0, output_most = 0;
    for (int p = 0; p < PROGRAMS; p++) {
        size_t input_bytes, output_bytes;
        set->program = &programs[p];
        if (!shape(set, &input_bytes, &output_bytes))
            return RONDO_ERR_MEMORY;
        for (int i = 0; i < set->program->operations; i++)
            call_release(&set->operations[i].call);
        input_most = input_bytes > input_most ? input_bytes : input_most;
        output_most = output_bytes > output_most ? output_bytes : output_most;
    }
    return bench_make_buffers(set->bench, input_most, output_most);
}

static int run_whole(struct bench *b, uint64_t *wrong)
{
    struct policy policies[POLICIES];
    struct set *set = calloc(1, sizeof(*set));
    rondo_result_t code = RONDO_ERR_MEMORY;
    if (set != NULL) {
        set->bench = b;
        set->random = 1 + (uint64_t) b->rank->rank;
        code = make_memory(set);
    }
    if (code == RONDO_SUCCESS)
        code = make_policies(b, policies);
    for (int p = 0; p < PROGRAMS && code == RONDO_SUCCESS; p++) {
        set->program = &programs[p];
        code = run_program(set, policies, wrong);
    }
    if (code == RONDO_SUCCESS)
        code = rondo_spin_set(b->rank->runtime, &policies[0].spin);
    free(set);
    if (code == RONDO_SUCCESS)
        code = ranks_total(b->rank, wrong, 1);
    return code == RONDO_SUCCESS ? 0 : bench_fail(b, "policies", code);
}

static int check_options(const struct bench_options *o)
{
    if (o->mode != FORM_PERSISTENT || o->peer != NULL || o->compress > 0 || o->trace_cost || o->in_place ||
        o->type != RONDO_FLOAT)
        return options_refuse("bench",
                              "policies are measured with persistent collectives of floats: no --mode, --peer, --compress, "
                              "--trace-cost, -i, -d");
    if (o->rounds > ROUNDS_MOST)
        return options_refuse("bench", "--rounds %d is more than %d", o->rounds, ROUNDS_MOST);
    return 0;
}

const struct bench_whole bench_policy = {.name = "policy", .check = check_options, .run = run_whole, .own_columns = true};
