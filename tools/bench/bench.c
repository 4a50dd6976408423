/*
 * `rondo bench COLLECTIVE`: time, bandwidth and, if asked for, correctness of one collective over a range of sizes, alone or
 * beside a peer. See tools/bench/bench.h for its parts.
 */
#include "tools/bench/bench.h"
#include "tools/common/verbs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What all ranks of this process are given. */
struct plan {
    const struct bench_options *options;
    json_t *collected; /* not NULL: rank 0's rows go there, and nothing else is written */
};

struct call bench_call(struct bench *b)
{
    const struct bench_options *o = b->options;
    struct call call = {.collective = o->collective,
                        .comm = b->rank->world,
                        .attr = RONDO_ATTR_DEFAULT,
                        .rank = b->rank->rank,
                        .ranks = b->rank->size,
                        .root = o->root,
                        .type = o->type,
                        .op = o->op,
                        .in_place = o->in_place,
                        .stream = b->stream,
                        .buffers = &b->rank->buffers};
    call.attr.compress_rate = o->compress;
    call.attr.error_feedback = o->feedback;
    call.attr.program = o->algorithm;
    return call;
}

/* The size after this one; more than the maximum at the end. */
static size_t next_size(const struct bench_options *o, size_t size)
{
    if (size == 0)
        return 1;
    return size > o->maximum / o->factor ? o->maximum + 1 : size * o->factor;
}

int bench_fail(struct bench *b, const char *what, rondo_result_t code)
{
    b->failed = true;
    snprintf(b->message, sizeof(b->message), "%s: %s: %s", what, rondo_strerror((int) code), rondo_last_error());
    return ranks_fail(b->rank, what, code);
}

static int peer_fail(struct bench *b, const char *what)
{
    fprintf(stderr, "rondo bench: rank %d: peer %s: %s%s\n", b->rank->rank, b->options->peer->name, what, b->message);
    ranks_mark_failed(b->rank);
    b->failed = true;
    return EXIT_WRONG;
}

/* ---- memory ---- */

/* On the host device, only memory of rondo_alloc can be opened to other processes. */
static bool of_library(const struct bench *b)
{
    return b->options->registered && !buffers_are_on_gpu(&b->rank->buffers);
}

static rondo_result_t allocate(struct bench *b, size_t bytes, void **memory)
{
    size_t whole = (bytes + 2 * CHECK_GUARD + 4095) / 4096 * 4096;
    rondo_result_t code =
        of_library(b) ? rondo_alloc(b->rank->runtime, whole, memory) : buffers_allocate(&b->rank->buffers, whole, memory);
    if (code == RONDO_SUCCESS && b->options->registered)
        code = rondo_comm_register(b->rank->world, *memory, whole);
    return code;
}

rondo_result_t bench_make_buffers(struct bench *b, size_t input_bytes, size_t output_bytes)
{
    b->buffers.device = &b->rank->buffers;
    b->buffers.input_bytes = input_bytes;
    b->buffers.output_bytes = output_bytes;
    rondo_result_t code = allocate(b, input_bytes, &b->memory[0]);
    if (code == RONDO_SUCCESS)
        code = allocate(b, output_bytes, &b->memory[1]);
    if (code != RONDO_SUCCESS)
        return code;
    b->buffers.input = (char *) b->memory[0] + CHECK_GUARD;
    b->buffers.output = (char *) b->memory[1] + CHECK_GUARD;
    return RONDO_SUCCESS;
}

/* Buffers for the largest row. */
static rondo_result_t make_row_buffers(struct bench *b)
{
    const struct bench_options *o = b->options;
    size_t most_input = 0, most_output = 0;
    for (size_t size = o->minimum; size <= o->maximum; size = next_size(o, size)) {
        struct call call = bench_call(b);
        if (!call_shape(&call, size))
            return RONDO_ERR_MEMORY;
        size_t input = call.input_elements * call.type_bytes, output = call.output_elements * call.type_bytes;
        most_input = input > most_input ? input : most_input;
        most_output = output > most_output ? output : most_output;
        call_release(&call);
    }
    return bench_make_buffers(b, most_input, most_output);
}

static rondo_result_t release_buffers(struct bench *b)
{
    rondo_result_t first = RONDO_SUCCESS;
    for (int i = 0; i < 2; i++) {
        if (b->memory[i] == NULL)
            continue;
        rondo_result_t code = RONDO_SUCCESS;
        if (b->options->registered && !b->failed) /* deregistering needs the other ranks */
            code = rondo_comm_deregister(b->rank->world, b->memory[i]);
        if (!of_library(b))
            ranks_free_later(b->rank, b->memory[i]);
        else if (code == RONDO_SUCCESS && !b->failed) /* else the runtime takes the memory with it */
            code = rondo_free(b->rank->runtime, b->memory[i]);
        first = first != RONDO_SUCCESS ? first : code;
    }
    return first;
}

/* ---- a row ---- */

/* One row's own: the argument of its work. */
struct row_work {
    struct bench *bench;
    struct call *call;
    struct call plain; /* the same without compression */
    const struct values *values;
    int flipped; /* the input differs from the values by vary */
};

static rondo_result_t run_once(void *argument)
{
    struct row_work *w = argument;
    return call_run(w->call, w->bench->options->mode);
}

/* Compression is an attribute of persistent operations, and for the others of the communicator: a matter of a few words. */
static rondo_result_t set_compression(struct bench *b, int rate)
{
    const rondo_compression_t compression = {.rate = rate};
    bool settable = !form_is_persistent(b->options->mode) && b->options->compress > 0;
    return settable ? rondo_comm_set_compression(b->rank->world, &compression) : RONDO_SUCCESS;
}

static rondo_result_t run_plain(void *argument)
{
    struct row_work *w = argument;
    rondo_result_t code = set_compression(w->bench, 0);
    if (code == RONDO_SUCCESS)
        code = call_run(&w->plain, w->bench->options->mode);
    rondo_result_t restored = set_compression(w->bench, w->bench->options->compress);
    return code != RONDO_SUCCESS ? code : restored;
}

static rondo_result_t finish(void *argument)
{
    struct row_work *w = argument;
    return call_finish(w->call, w->bench->options->mode);
}

static int run_peer(void *argument, char *message, size_t bytes)
{
    struct row_work *w = argument;
    return w->bench->options->peer->run(w->bench->peer, message, bytes);
}

/* The lowest bit of each cache line of this rank's input is flipped from one iteration to the next. */
static void vary(void *argument, int follow)
{
    struct row_work *w = argument;
    const struct call *call = w->call;
    unsigned char flip = (unsigned char) (w->flipped != (follow & 1));
    w->flipped = follow & 1;
    for (size_t at = 0; at < call->input_elements * call->type_bytes; at += 64)
        call->input[at] = (char) (call->input[at] ^ flip);
}

static rondo_result_t poison(void *argument)
{
    struct row_work *w = argument;
    return check_poison(w->call, &w->bench->buffers);
}

static rondo_result_t check(void *argument, uint64_t *wrong)
{
    struct row_work *w = argument;
    return check_result(w->call, w->values, &w->bench->buffers, wrong);
}

static rondo_result_t check_once(struct row_work *w, uint64_t *wrong)
{
    rondo_result_t code;
    if (w->call->collective->id == COLLECTIVE_BARRIER) {
        uint64_t early;
        code = check_barrier(w->bench->rank, w->call, w->bench->options->mode, w->values->seed, &early);
        *wrong += early;
        return code;
    }
    code = run_once(w);
    if (code == RONDO_SUCCESS)
        code = finish(w);
    return code == RONDO_SUCCESS ? check(w, wrong) : code;
}

/* Calls that are not persistent take the algorithm from the environment, where one that does not fit the call is passed over in
 * silence. A persistent operation refuses it. */
static rondo_result_t check_algorithm(struct call *call, const struct bench_options *o)
{
    if (o->algorithm == NULL || form_is_persistent(o->mode))
        return RONDO_SUCCESS;
    rondo_result_t code = call_open(call, FORM_PERSISTENT);
    return code == RONDO_SUCCESS ? call_close(call, FORM_PERSISTENT) : code;
}

/* Checked before the timing, and after the last timed run: where that does not spoil its own input by a fresh run instead. */
static rondo_result_t measure(struct bench *b, struct call *call, uint64_t seed, struct bench_row *row, const char **what)
{
    const struct bench_options *o = b->options;
    struct values values = {
        .type = o->type, .op = o->op, .reduces = o->collective->rule->reduces, .ranks = b->rank->size, .seed = seed};
    struct row_work w = {.bench = b, .call = call, .plain = *call, .values = &values};
    struct bench_work work = {.bytes = call->bytes,
                              .argument = &w,
                              .run = run_once,
                              .finish = finish,
                              .peer_run = run_peer,
                              .peer_waits = !form_is_on_stream(o->mode)};
    if (o->check && check_repeats(call)) {
        work.before_last = poison;
        work.after_last = check;
    }
    if (o->vary && b->device == RONDO_DEVICE_HOST && o->collective->id != COLLECTIVE_BARRIER)
        work.vary = vary;
    w.plain.attr.compress_rate = RONDO_COMPRESS_NEVER;
    w.plain.attr.error_feedback = 0;
    if (o->compress > 0 && o->peer == NULL)
        work.plain_run = run_plain;
    values_prepare(&values, collective_is_prefix(o->collective));
    *what = "data";
    rondo_result_t code = check_fill(call, &values, &b->buffers, !o->check);
    if (code != RONDO_SUCCESS)
        return code;
    *what = "prepare";
    if ((code = check_algorithm(call, o)) != RONDO_SUCCESS || (code = call_open(call, o->mode)) != RONDO_SUCCESS ||
        (work.plain_run != NULL && (code = call_open(&w.plain, o->mode)) != RONDO_SUCCESS))
        return code;
    *what = "checked run";
    if (o->check && (code = check_once(&w, &row->wrong)) != RONDO_SUCCESS)
        return code;
    if ((code = bench_time(b, &work, &row->timing, what)) != RONDO_SUCCESS)
        return code;
    row->wrong += row->timing.wrong;
    *what = "checked run after the timed ones";
    if (o->check && (!check_repeats(call) || o->collective->id == COLLECTIVE_BARRIER)) {
        values.seed = ~seed;
        if ((code = check_fill(call, &values, &b->buffers, false)) != RONDO_SUCCESS ||
            (code = check_once(&w, &row->wrong)) != RONDO_SUCCESS)
            return code;
    }
    *what = "run for the error's norm";
    if (o->compress > 0 && (code = bench_error(b, call, seed, &row->error)) != RONDO_SUCCESS)
        return code;
    *what = "free";
    if (work.plain_run != NULL && (code = call_close(&w.plain, o->mode)) != RONDO_SUCCESS)
        return code;
    return call_close(call, o->mode);
}

static int run_row(struct bench *b, struct call *call, uint64_t seed, uint64_t *wrong)
{
    const struct bench_options *o = b->options;
    call_bind(call, b->buffers.input, b->buffers.output);
    struct bench_row row = {.bytes = call->bytes, .count = call->bytes / call->type_bytes};
    const char *step = "";
    char what[128];
    if (b->peer != NULL && o->peer->prepare(b->peer, call, b->message, sizeof(b->message)) != 0) {
        if (b->rank->rank == 0)
            options_refuse("bench", "--peer %s: %s", o->peer->name, b->message);
        return EXIT_USAGE;
    }
    rondo_result_t code = measure(b, call, seed, &row, &step);
    if (code == RONDO_ERR_UNSUPPORTED && o->tune != NULL) /* a candidate that does not fit; all ranks see it alike */
        return 0;
    if (code == RONDO_SUCCESS) {
        step = "sum of wrong elements";
        *wrong += row.wrong; /* this rank's own, which no failure of the library can hide */
        code = ranks_total(b->rank, &row.wrong, 1);
    }
    if (code != RONDO_SUCCESS) {
        snprintf(what, sizeof(what), "%s of %zu bytes, %s", o->collective->name, call->bytes, step);
        return bench_fail(b, what, code);
    }
    row.algorithm_gbs = (double) row.bytes / row.timing.seconds * 1e-9;
    row.bus_gbs = row.algorithm_gbs * collective_bus_factor(o->collective, b->rank->size);
    *wrong += row.wrong;
    bench_put_row(b, &row);
    return 0;
}

static int run_rows(struct bench *b, uint64_t *wrong)
{
    const struct bench_options *o = b->options;
    size_t previous = SIZE_MAX;
    uint64_t seed = 0x52D0;
    rondo_result_t result = set_compression(b, o->compress);
    if (result != RONDO_SUCCESS)
        return bench_fail(b, "compression", result);
    result = make_row_buffers(b);
    if (result != RONDO_SUCCESS)
        return bench_fail(b, "buffers of the largest row", result);
    for (int i = 0; b->peer != NULL && o->registered && o->peer->enlist != NULL && i < 2; i++) {
        size_t bytes = (i == 0 ? b->buffers.input_bytes : b->buffers.output_bytes) + 2 * CHECK_GUARD;
        if (o->peer->enlist(b->peer, b->memory[i], bytes, b->message, sizeof(b->message)) != 0)
            return peer_fail(b, "registering a buffer: ");
    }
    for (size_t size = o->minimum; size <= o->maximum; size = next_size(o, size)) {
        struct call call = bench_call(b);
        if (!call_shape(&call, size))
            return bench_fail(b, "counts of a row", RONDO_ERR_MEMORY);
        int code = 0;
        if (call.bytes != previous) /* several sizes below one element are all one row */
            code = run_row(b, &call, seed++, wrong);
        previous = call.bytes;
        call_release(&call);
        if (code != 0)
            return code;
    }
    return 0;
}

/* ---- a rank ---- */

/* What could not be known before the ranks had met. */
static int check_against_job(struct bench *b)
{
    const struct bench_options *o = b->options;
    bool cuda = b->device == RONDO_DEVICE_CUDA;
    char message[160] = "";
    if (o->collective->rule->rooted && o->root >= b->rank->size)
        snprintf(message, sizeof(message), "-r %d is not one of %d ranks", o->root, b->rank->size);
    else if (form_is_on_stream(o->mode) && !cuda)
        snprintf(message, sizeof(message), "--mode %s needs a CUDA device, not %s", bench_mode_name(o->mode),
                 options_device_name(b->device));
    else if (o->peer != NULL && o->peer->needs_device_memory && !cuda)
        snprintf(message, sizeof(message), "--peer %s needs a CUDA device, not %s", o->peer->name,
                 options_device_name(b->device));
    else if (o->peer != NULL && !o->peer->needs_device_memory && cuda)
        snprintf(message, sizeof(message), "--peer %s takes host memory: add --device host", o->peer->name);
    if (message[0] == '\0')
        return 0;
    return b->rank->rank == 0 ? options_refuse("bench", "%s", message) : EXIT_USAGE;
}

static int gather_for_peer(void *argument, const void *mine, size_t bytes, void *all)
{
    struct rank *rank = argument;
    return ranks_gather(rank, mine, bytes, all) != RONDO_SUCCESS;
}

static int open_bench(struct bench *b)
{
    const struct bench_options *o = b->options;
    rondo_result_t result = rondo_device(b->rank->runtime, &b->device);
    if (result == RONDO_SUCCESS)
        result = buffers_make_stream(&b->rank->buffers, &b->stream);
    if (result != RONDO_SUCCESS)
        return bench_fail(b, "device", result);
    int code = check_against_job(b);
    if (code != 0 || o->peer == NULL)
        return code;
    struct peer_place place = {.rank = b->rank->rank,
                               .size = b->rank->size,
                               .gpu = b->rank->buffers.gpu,
                               .stream = b->stream,
                               .gather = gather_for_peer,
                               .argument = b->rank};
    if (o->peer->open(&b->peer, &place, b->message, sizeof(b->message)) != 0) {
        b->peer = NULL;
        return peer_fail(b, "");
    }
    return 0;
}

/* An open peer must be closed before the memory that it knows of goes. */
static int close_bench(struct bench *b, int code)
{
    if (b->peer != NULL && !b->failed)
        b->options->peer->close(b->peer);
    rondo_result_t result = release_buffers(b);
    if (!b->failed)
        buffers_free_stream(&b->rank->buffers, b->stream);
    return result != RONDO_SUCCESS ? bench_fail(b, "release of the buffers", result) : code;
}

static int body(struct rank *rank, void *argument)
{
    const struct plan *plan = argument;
    const struct bench_options *o = plan->options;
    struct bench b = {.rank = rank, .options = o, .rows = rank->rank == 0 ? json_array() : NULL};
    uint64_t wrong = 0;
    int code = open_bench(&b);
    if (code == 0) {
        if (rank->rank == 0)
            bench_print_title(&b);
        code = o->whole != NULL ? o->whole->run(&b, &wrong) : run_rows(&b, &wrong);
    }
    if (code == 0 && wrong > 0)
        code = EXIT_WRONG;
    code = close_bench(&b, code);
    if (rank->rank == 0 && plan->collected != NULL)
        json_array_extend(plan->collected, b.rows);
    else if (rank->rank == 0 && o->json != NULL && code != EXIT_USAGE) {
        int written = bench_write_json(&b, b.failed ? b.message : NULL);
        code = code != 0 ? code : written;
    }
    json_decref(b.rows);
    return code;
}

/* ---- the verb ---- */

bool bench_has_variable(const char *name)
{
    const rondo_variable_t *variable;
    for (int i = 0; (variable = rondo_environment_describe(i)) != NULL; i++) {
        if (strcmp(variable->name, name) == 0)
            return true;
    }
    return false;
}

/* Calls that are not persistent carry no attribute; the library reads their algorithm and protocol when it starts. */
int bench_set_variable(const char *option, const char *name, const char *value)
{
    if (value == NULL)
        return unsetenv(name) == 0 ? 0 : EXIT_WRONG;
    if (!bench_has_variable(name))
        return options_refuse("bench", "%s %s: this library offers no choice (it reads no %s)", option, value, name);
    return setenv(name, value, 1) == 0 ? 0 : EXIT_WRONG;
}

static int run(const struct bench_options *o, json_t *collected)
{
    struct plan plan = {.options = o, .collected = collected};
    int code = 0;
    if (o->algorithm != NULL)
        code = bench_set_variable("--algorithm", "RONDO_ALGORITHM", o->algorithm);
    if (code == 0 && o->protocol != NULL)
        code = bench_set_variable("--protocol", "RONDO_PROTOCOL", o->protocol);
    if (code == 0 && o->channels != NULL)
        code = bench_set_variable("--channels", "RONDO_CHANNELS", o->channels);
    if (code == 0 && o->whole != NULL && o->whole->set_up != NULL)
        code = o->whole->set_up();
    if (code != 0)
        return code;
    struct ranks_plan ranks = {.verb = "bench", .runtime = &o->runtime, .body = body, .argument = &plan};
    return ranks_run(&ranks);
}

int verb_bench(int argc, char **argv)
{
    struct bench_options options;
    bool help_wanted = false;
    int code = bench_options_read(argc, argv, &options, &help_wanted);
    if (code != 0 || help_wanted)
        return code;
    if (options.processes > 0)
        return bench_rivals(&options, argc, argv);
    return options.tune != NULL ? bench_tune(&options, run) : run(&options, NULL);
}
