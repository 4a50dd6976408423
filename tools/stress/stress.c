/*
 * `rondo stress`: runs the deadlock programs of the papers on all ranks and tells what came of them. Exit 0: all finished with
 * exact results; 1: wrong data or another error; 3: a deadlock, with the library's hang report.
 */
#include "tools/stress/stress.h"
#include "tools/stress/interfere.h"
#include "tools/common/output.h"
#include "tools/common/verbs.h"

#include <inttypes.h>
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
    PROGRAM,
    FILL,
    CHECK,
    PREEMPTIONS,
    DAEMON_STARTS,
    DAEMON_QUITS,
    CONTEXT_LOADS,
    CONTEXT_SAVES,
    PRIMITIVES,
    BYTES_SENT,
    TOTALS
};
static const char *const total_names[TOTALS] = {
    "finished",    "wrong",         "deadlocked_ranks", "failed_ranks",  "program_ns",    "fill_ns",    "check_ns",
    "preemptions", "daemon_starts", "daemon_quits",     "context_loads", "context_saves", "primitives", "bytes_sent"};
_Static_assert((int) TOTALS <= (int) RANKS_TOTAL_MAX, "totals fit into one sum");

struct stress {
    struct stress_options options;
    struct stress_outcome *outcomes; /* of this process's ranks */
    struct stress_peer peer;
    double limit; /* seconds; of a call beside the collectives; 0: none */
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

const char *const interfere_names[INTERFERE_CALLS] = {
    "cudaMalloc",       "cudaFree",           "cudaHostAlloc", "cudaFreeHost",
    "cudaHostRegister", "cudaHostUnregister", "first launch",  "first launch's kernel end"};

/* Of the calls beside the collectives, over all ranks. */
struct interference {
    uint64_t counts[INTERFERE_CALLS], late[INTERFERE_CALLS];
    double longest[INTERFERE_CALLS];
    double limit; /* seconds; 0: none */
};

/* Whether calls wait for the daemon: more than one of a kind, and more than one in LATE_ONE_IN, took longer than the limit, or
 * one took LATE_MOST times that. Other programs of the machine delay one call of thousands, too. */
enum { LATE_ONE_IN = 200, LATE_MOST = 20 };
static bool in_the_way(const struct interference *found)
{
    for (int i = 0; found != NULL && found->limit > 0 && i < INTERFERE_CALLS; i++)
        if ((found->late[i] > 1 && found->late[i] * LATE_ONE_IN > found->counts[i]) ||
            found->longest[i] > LATE_MOST * found->limit)
            return true;
    return false;
}

static void print_interference(FILE *stream, const struct interference *found)
{
    fprintf(stream, "  calls beside the collectives, the longest of each in ms");
    if (found->limit > 0)
        fprintf(stream, " (limit %.1f)", found->limit * 1e3);
    for (int i = 0; i < INTERFERE_CALLS; i++) {
        fprintf(stream, "%s %s %.3f of %" PRIu64, i == 0 ? ":" : ",", interfere_names[i], found->longest[i] * 1e3,
                found->counts[i]);
        if (found->late[i] > 0)
            fprintf(stream, " (%" PRIu64 " late)", found->late[i]);
    }
    fprintf(stream, "\n");
}

static json_t *json_interference(const struct interference *found)
{
    json_t *object = json_object();
    json_object_set_new(object, "limit_us", json_real(found->limit * 1e6));
    for (int i = 0; i < INTERFERE_CALLS; i++) {
        json_t *call = json_object();
        json_object_set_new(call, "calls", json_integer((json_int_t) found->counts[i]));
        json_object_set_new(call, "late", json_integer((json_int_t) found->late[i]));
        json_object_set_new(call, "longest_us", json_real(found->longest[i] * 1e6));
        json_object_set_new(object, interfere_names[i], call);
    }
    return object;
}

static void print_peer(FILE *stream, const struct stress_peer *peer)
{
    if (!peer->ran)
        fprintf(stream, "NCCL: not run: %s\n", peer->message);
    else
        fprintf(stream, "NCCL: %s: %" PRIu64 " of %" PRIu64 " collectives finished\n",
                peer->hung ? "HUNG, and was killed" : "ok", peer->finished, peer->expected);
}

static json_t *json_peer(const struct stress_peer *peer)
{
    json_t *object = json_object();
    json_object_set_new(object, "name", json_string("nccl"));
    json_object_set_new(object, "ran", json_boolean(peer->ran));
    json_object_set_new(object, "hung", json_boolean(peer->hung));
    json_object_set_new(object, "finished", json_integer((json_int_t) peer->finished));
    json_object_set_new(object, "expected", json_integer((json_int_t) peer->expected));
    json_object_set_new(object, "message", json_string(peer->message));
    return object;
}

/* Prints the summary and writes the JSON, once and where rank 0 is. complete: totals are over all ranks of the job. beside may
 * be NULL. */
static int report(struct stress *s, const uint64_t *totals, int size, bool complete, const struct interference *beside)
{
    const struct stress_options *o = &s->options;
    uint64_t expected = (uint64_t) size * (uint64_t) o->collectives * (uint64_t) o->iterations;
    int code = exit_code(totals, expected);
    if (code == 0 && in_the_way(beside))
        code = EXIT_WRONG;
    if (!atomic_load(&s->has_rank0) || atomic_flag_test_and_set(&s->reported))
        return code;
    double seconds = ranks_clock() - s->started;
    FILE *stream = output_stream(o->json);
    fprintf(stream, "%s: %" PRIu64 " of %" PRIu64 " collectives finished, %" PRIu64 " wrong elements, %.2f s\n",
            code == 0               ? "ok"
            : code == EXIT_DEADLOCK ? "DEADLOCK"
            : totals[WRONG] > 0     ? "WRONG"
            : in_the_way(beside)    ? "IN THE WAY"
                                    : "FAILED",
            totals[FINISHED], expected, totals[WRONG], seconds);
    fprintf(stream, "  ");
    for (int i = PREEMPTIONS; i < TOTALS; i++)
        fprintf(stream, "%s %" PRIu64 "%s", total_names[i], totals[i], i + 1 < TOTALS ? ", " : "\n");
    if (beside != NULL)
        print_interference(stream, beside);
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
    json_object_set_new(object, "streams", json_integer(o->streams));
    json_object_set_new(object, "interference", beside != NULL ? json_interference(beside) : json_null());
    json_object_set_new(object, "peer", o->peer != NULL ? json_peer(&s->peer) : json_null());
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
    totals[PROGRAM] += atomic_load(&outcome->program_ns);
    totals[FILL] += atomic_load(&outcome->fill_ns);
    totals[CHECK] += atomic_load(&outcome->check_ns);
}

/* With the watchdog: what this process's ranks have counted so far. */
static int abandon(void *argument)
{
    struct stress *s = argument;
    uint64_t totals[TOTALS] = {0};
    for (int i = 0; i < (s->options.runtime.threads > 0 ? s->options.runtime.threads : 1); i++)
        add_outcome(&s->outcomes[i], totals);
    return report(s, totals, atomic_load(&s->size), false, NULL);
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

void stress_note_failure(struct stress_outcome *outcome, rondo_result_t code, char *message, size_t bytes)
{
    snprintf(message, bytes, "%s", rondo_last_error());
    atomic_fetch_add(&outcome->failed, 1);
    atomic_fetch_add(&outcome->deadlock, code == RONDO_ERR_TIMEOUT);
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

/* What could not be known before there was a device. */
static int check_device(struct rank *rank, const struct stress_options *o)
{
    bool cuda = o->streams > 0 || o->interfere;
    if (!cuda || buffers_are_on_gpu(&rank->buffers))
        return 0;
    return rank->rank > 0 ? EXIT_USAGE : options_refuse(VERB, "--streams and --interfere need a CUDA device, not host");
}

static rondo_result_t run_program(struct stress *s, struct rank *rank, struct stress_outcome *outcome, char *message,
                                  size_t bytes)
{
    return s->options.streams > 0 ? stress_streams(rank, &s->options, outcome, message, bytes)
                                  : stress_program(rank, &s->options, outcome, message, bytes);
}

/* The sum and the largest of all ranks' records. */
static rondo_result_t collect(struct rank *rank, const struct interfere_record *record, struct interference *found)
{
    memcpy(found->counts, record->counts, sizeof(found->counts));
    memcpy(found->late, record->late, sizeof(found->late));
    memcpy(found->longest, record->longest, sizeof(found->longest));
    rondo_result_t code = ranks_total(rank, found->counts, INTERFERE_CALLS);
    if (code == RONDO_SUCCESS)
        code = ranks_total(rank, found->late, INTERFERE_CALLS);
    return code == RONDO_SUCCESS ? ranks_most(rank, found->longest, INTERFERE_CALLS) : code;
}

/* The program with a thread of other calls beside it. */
static rondo_result_t run_with_interference(struct stress *s, struct rank *rank, struct stress_outcome *outcome,
                                            struct interfere_record *record, char *message, size_t bytes)
{
#if RONDO_WITH_CUDA
    struct interfere *beside = s->options.interfere ? interfere_start(rank->buffers.gpu, s->limit) : NULL;
    rondo_result_t error = run_program(s, rank, outcome, message, bytes);
    if (beside != NULL)
        interfere_stop(beside, record);
    if (error == RONDO_SUCCESS && s->options.interfere && (beside == NULL || record->failure[0] != '\0')) {
        snprintf(message, bytes, "beside the collectives: %s", beside == NULL ? "no thread" : record->failure);
        atomic_fetch_add(&outcome->failed, 1);
        error = RONDO_ERR_DEVICE;
    }
    return error;
#else
    (void) record;
    return run_program(s, rank, outcome, message, bytes);
#endif
}

static int body(struct rank *rank, void *argument)
{
    struct stress *s = argument;
    atomic_store(&s->size, rank->size);
    if (rank->rank == 0)
        atomic_store(&s->has_rank0, true);
    int code = check_device(rank, &s->options);
    if (code != 0)
        return code;
    struct stress_outcome *outcome = &s->outcomes[rank->threads ? rank->rank : 0];
    struct interfere_record record = {.failure = ""};
    struct interference beside = {.limit = s->limit};
    char message[1024] = "";
    rondo_result_t error = run_with_interference(s, rank, outcome, &record, message, sizeof(message));
    if (error != RONDO_SUCCESS)
        tell_failure(s, rank, error, message);
    uint64_t totals[TOTALS] = {0};
    add_outcome(outcome, totals);
    add_statistics(rank, totals);
    bool complete = ranks_total(rank, totals, TOTALS) == RONDO_SUCCESS;
    if (s->options.interfere)
        complete = complete && collect(rank, &record, &beside) == RONDO_SUCCESS;
    return report(s, totals, rank->size, complete, s->options.interfere ? &beside : NULL);
}

/* After how long a call beside persistent operations is late. On streams never: it may have to wait for those. */
static int read_limit(struct stress *s)
{
    static const double slack = 0.05;
    int64_t residency = 0;
    int code = options_variable(VERB, "RONDO_RESIDENCY", &residency);
    if (code != 0)
        return code;
    if (s->options.interfere && s->options.streams == 0)
        s->limit = 2e-6 * (double) residency + slack;
    return 0;
}

static void run_peer(struct stress *s)
{
#if RONDO_WITH_CUDA
    stress_on_peer(&s->options, &s->peer);
#endif
    print_peer(output_stream(s->options.json), &s->peer);
}

int verb_stress(int argc, char **argv)
{
    struct stress s = {.reported = ATOMIC_FLAG_INIT, .hang_told = ATOMIC_FLAG_INIT};
    bool help_wanted = false;
    int code = stress_options_read(argc, argv, &s.options, &help_wanted);
    if (code != 0 || help_wanted)
        return code;
    if ((code = read_limit(&s)) != 0)
        return code;
    if (s.options.interfere) /* else no kernel has a first launch that loads it; the default of CUDA 12.2 and later */
        setenv("CUDA_MODULE_LOADING", "LAZY", 0);
    if (s.options.streams > 0) /* else CUDA has those behind the eighth wait for others */
        setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    if (s.options.peer != NULL)
        run_peer(&s);
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
