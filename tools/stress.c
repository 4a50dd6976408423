/*
 * `rondo stress`: runs the deadlock programs of the papers on all ranks and tells what came of them. Exit 0: all finished with
 * exact results; 1: wrong data or another error; 3: a deadlock, with the library's hang report.
 */
#include "stress.h"
#include "output.h"
#include "verbs.h"

#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VERB "stress"

/* The places of what is summed over ranks. */
enum {
    FINISHED,
    WRONG,
    DEADLOCK,
    FAILED,
    PREEMPTIONS,
    DAEMON_STARTS,
    DAEMON_QUITS,
    CONTEXT_LOADS,
    CONTEXT_SAVES,
    PRIMITIVES,
    BYTES_SENT,
    TOTALS
};
static const char *const total_names[TOTALS] = {"finished",      "wrong",         "deadlocked_ranks", "failed_ranks",
                                                "preemptions",   "daemon_starts", "daemon_quits",     "context_loads",
                                                "context_saves", "primitives",    "bytes_sent"};
_Static_assert((int) TOTALS <= (int) RANKS_TOTAL_MAX, "totals fit into one sum");

struct stress {
    struct stress_options options;
    struct stress_outcome *outcomes; /* of this process's ranks */
    double started;
    atomic_int size;       /* of the job, once known */
    atomic_bool has_rank0; /* this process does, and so reports */
    atomic_flag reported, hang_told;
};

static int exit_code(const uint64_t *totals, uint64_t expected)
{
    if (totals[WRONG] > 0)
        return EXIT_WRONG;
    if (totals[DEADLOCK] > 0)
        return EXIT_DEADLOCK;
    return totals[FAILED] > 0 || totals[FINISHED] != expected ? EXIT_WRONG : 0;
}

/* Prints the summary and writes the JSON, once and where rank 0 is. complete: totals are over all ranks of the job. */
static int report(struct stress *s, const uint64_t *totals, int size, bool complete)
{
    const struct stress_options *o = &s->options;
    uint64_t expected = (uint64_t) size * (uint64_t) o->collectives * (uint64_t) o->iterations;
    int code = exit_code(totals, expected);
    if (!atomic_load(&s->has_rank0) || atomic_flag_test_and_set(&s->reported))
        return code;
    double seconds = ranks_clock() - s->started;
    FILE *stream = output_stream(o->json);
    fprintf(stream, "%s: %" PRIu64 " of %" PRIu64 " collectives finished, %" PRIu64 " wrong elements, %.2f s\n",
            code == 0               ? "ok"
            : code == EXIT_DEADLOCK ? "DEADLOCK"
            : totals[WRONG] > 0     ? "WRONG"
                                    : "FAILED",
            totals[FINISHED], expected, totals[WRONG], seconds);
    fprintf(stream, "  ");
    for (int i = PREEMPTIONS; i < TOTALS; i++)
        fprintf(stream, "%s %" PRIu64 "%s", total_names[i], totals[i], i + 1 < TOTALS ? ", " : "\n");
    if (!complete)
        fprintf(stream, "  (of some ranks only: not all could be asked)\n");
    fflush(stream);
    if (o->json == NULL)
        return code;

    json_t *object = json_object();
    for (int i = 0; i < TOTALS; i++)
        json_object_set_new(object, total_names[i], json_integer((json_int_t) totals[i]));
    json_object_set_new(object, "expected", json_integer((json_int_t) expected));
    json_object_set_new(object, "deadlock", json_boolean(totals[DEADLOCK] > 0));
    json_object_set_new(object, "complete", json_boolean(complete));
    json_object_set_new(object, "seconds", json_real(seconds));
    json_object_set_new(object, "ranks", json_integer(size));
    json_object_set_new(object, "collectives", json_integer(o->collectives));
    json_object_set_new(object, "iterations", json_integer(o->iterations));
    json_object_set_new(object, "order", json_string(o->random_order ? "random" : "same"));
    json_object_set_new(object, "sync", json_boolean(o->synchronize));
    json_object_set_new(object, "preempt", json_boolean(o->runtime.preempt != 0));
    json_object_set_new(object, "timeout", json_real(o->runtime.timeout));
    json_object_set_new(object, "seed", json_integer((json_int_t) o->seed));
    int written = output_json(VERB, o->json, object);
    return code != 0 ? code : written;
}

static void add_outcome(const struct stress_outcome *outcome, uint64_t *totals)
{
    totals[FINISHED] += atomic_load(&outcome->finished);
    totals[WRONG] += atomic_load(&outcome->wrong);
    totals[DEADLOCK] += atomic_load(&outcome->deadlock);
    totals[FAILED] += atomic_load(&outcome->failed);
}

/* With the watchdog: what this process's ranks have counted so far. */
static int abandon(void *argument)
{
    struct stress *s = argument;
    uint64_t totals[TOTALS] = {0};
    for (int i = 0; i < (s->options.runtime.threads > 0 ? s->options.runtime.threads : 1); i++)
        add_outcome(&s->outcomes[i], totals);
    return report(s, totals, atomic_load(&s->size), false);
}

static void add_statistics(struct rank *rank, uint64_t *totals)
{
    rondo_stats_t stats;
    if (rondo_get_stats(rank->runtime, &stats) != RONDO_SUCCESS)
        return;
    totals[PREEMPTIONS] = stats.preemptions;
    totals[DAEMON_STARTS] = stats.daemon_starts;
    totals[DAEMON_QUITS] = stats.daemon_quits;
    totals[CONTEXT_LOADS] = stats.context_loads;
    totals[CONTEXT_SAVES] = stats.context_saves;
    totals[PRIMITIVES] = stats.primitives;
    totals[BYTES_SENT] = stats.bytes_sent;
}

/* The library has logged the report of a hang in full; its text is not told again. */
static void tell_failure(struct stress *s, struct rank *rank, rondo_result_t error, const char *message)
{
    ranks_mark_failed(rank);
    if (error == RONDO_ERR_TIMEOUT && !atomic_flag_test_and_set(&s->hang_told))
        fprintf(stderr, "rondo stress: rank %d has been stuck for %g s: %.*s\n", rank->rank, s->options.runtime.timeout,
                (int) strcspn(message, "\n"), message);
    else if (error != RONDO_ERR_TIMEOUT && error != RONDO_ERR_ABORTED)
        fprintf(stderr, "rondo stress: rank %d: %s: %s\n", rank->rank, rondo_strerror((int) error), message);
}

static int body(struct rank *rank, void *argument)
{
    struct stress *s = argument;
    atomic_store(&s->size, rank->size);
    if (rank->rank == 0)
        atomic_store(&s->has_rank0, true);
    struct stress_outcome *outcome = &s->outcomes[rank->threads ? rank->rank : 0];
    char message[1024] = "";
    rondo_result_t error = stress_program(rank, &s->options, outcome, message, sizeof(message));
    if (error != RONDO_SUCCESS)
        tell_failure(s, rank, error, message);
    uint64_t totals[TOTALS] = {0};
    add_outcome(outcome, totals);
    add_statistics(rank, totals);
    bool complete = ranks_total(rank, totals, TOTALS) == RONDO_SUCCESS;
    return report(s, totals, rank->size, complete);
}

enum {
    OPT_RANKS = 256,
    OPT_COLLECTIVES,
    OPT_ITERATIONS,
    OPT_ORDER,
    OPT_SYNC,
    OPT_NO_PREEMPT,
    OPT_TIMEOUT,
    OPT_SEED,
    OPT_DEVICE,
    OPT_TRANSPORTS,
    OPT_JSON,
    OPT_HELP
};

static const struct option long_options[] = {
    {"ranks", required_argument, NULL, OPT_RANKS},
    {"collectives", required_argument, NULL, OPT_COLLECTIVES},
    {"iterations", required_argument, NULL, OPT_ITERATIONS},
    {"order", required_argument, NULL, OPT_ORDER},
    {"sync", no_argument, NULL, OPT_SYNC},
    {"no-preempt", no_argument, NULL, OPT_NO_PREEMPT},
    {"timeout", required_argument, NULL, OPT_TIMEOUT},
    {"seed", required_argument, NULL, OPT_SEED},
    {"device", required_argument, NULL, OPT_DEVICE},
    {"transports", required_argument, NULL, OPT_TRANSPORTS},
    {"json", required_argument, NULL, OPT_JSON},
    {"help", no_argument, NULL, OPT_HELP},
    {NULL, 0, NULL, 0},
};

static const char help[] =
    "usage: rondo stress [OPTIONS]\n"
    "  Every rank starts the same persistent all-reduces (256 B to 1 MiB, float and double) in an order of its own, waits for\n"
    "  all of them and verifies every result, again and again. Exit 0: all finished with exact results; 1: wrong data or\n"
    "  another error; 3: deadlock.\n"
    "  --ranks N         that many ranks as threads of this process (else from the environment: mpirun, srun)\n"
    "  --collectives K   all-reduces an iteration (8)\n"
    "  --iterations I    (100)\n"
    "  --order WHICH     random: each rank's own in each iteration (the default); same: one order on all ranks\n"
    "  --sync            device synchronizations at random points between starts, two an iteration and rank on average\n"
    "  --no-preempt      the daemon holds on to a stuck collective (for comparison)\n"
    "  --timeout S       seconds until a stuck collective is a deadlock (20; 5 with --no-preempt)\n"
    "  --seed X          of orders and data (1)\n"
    "  --device host|cuda, --transports LIST, --json FILE (- for standard output)\n";

static int read_order(struct stress_options *o, const char *text)
{
    if (strcmp(text, "random") != 0 && strcmp(text, "same") != 0)
        return options_refuse(VERB, "--order '%s' is not an order (random, same)", text);
    o->random_order = strcmp(text, "random") == 0;
    return 0;
}

static int read_one(int option, struct stress_options *o)
{
    int64_t value = 0;
    int code = 0;
    switch (option) {
    case OPT_RANKS:
        return options_ranks(VERB, "--ranks", optarg, &o->runtime.threads);
    case OPT_COLLECTIVES:
        code = options_integer(VERB, "--collectives", optarg, 1, 4096, &value);
        o->collectives = (int) value;
        return code;
    case OPT_ITERATIONS:
        code = options_integer(VERB, "--iterations", optarg, 1, INT_MAX, &value);
        o->iterations = (int) value;
        return code;
    case OPT_ORDER:
        return read_order(o, optarg);
    case OPT_SYNC:
        o->synchronize = true;
        return 0;
    case OPT_NO_PREEMPT:
        o->runtime.preempt = 0;
        return 0;
    case OPT_TIMEOUT:
        code = options_real(VERB, "--timeout", optarg, 0.0, &o->runtime.timeout);
        if (code == 0 && o->runtime.timeout == 0)
            code = options_refuse(VERB, "--timeout %s would never tell a deadlock", optarg);
        return code;
    case OPT_SEED:
        code = options_integer(VERB, "--seed", optarg, 0, INT64_MAX, &value);
        o->seed = (uint64_t) value;
        return code;
    case OPT_DEVICE:
        return options_device(VERB, "--device", optarg, &o->runtime.device);
    case OPT_TRANSPORTS:
        o->runtime.transports = optarg;
        return 0;
    default: /* OPT_JSON */
        o->json = optarg;
        return 0;
    }
}

/* *help_wanted: nothing else is to be done. */
static int read_options(int argc, char **argv, struct stress_options *o, bool *help_wanted)
{
    /* Ranks in several processes must agree on the seed, so the default is no clock's. */
    *o = (struct stress_options){
        .runtime = OPTIONS_RUNTIME_DEFAULT, .collectives = 8, .iterations = 100, .random_order = true, .seed = 1};
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
    if (optind < argc)
        return options_refuse(VERB, "'%s' is not an option", argv[optind]);
    if (o->runtime.timeout < 0)
        o->runtime.timeout = o->runtime.preempt == 0 ? 5.0 : 20.0;
    return 0;
}

int verb_stress(int argc, char **argv)
{
    struct stress s = {.reported = ATOMIC_FLAG_INIT, .hang_told = ATOMIC_FLAG_INIT};
    bool help_wanted = false;
    int code = read_options(argc, argv, &s.options, &help_wanted);
    if (code != 0 || help_wanted)
        return code;
    size_t ranks = s.options.runtime.threads > 0 ? (size_t) s.options.runtime.threads : 1;
    s.outcomes = calloc(ranks, sizeof(*s.outcomes));
    if (s.outcomes == NULL) {
        fprintf(stderr, "rondo stress: out of memory\n");
        return EXIT_WRONG;
    }
    s.started = ranks_clock();
    struct ranks_plan plan = {.verb = VERB, .runtime = &s.options.runtime, .body = body, .argument = &s, .abandon = abandon};
    code = ranks_run(&plan);
    free(s.outcomes);
    return code;
}
