/*
 * `rondo bench COLLECTIVE`: time, bandwidth and, if asked for, correctness of one collective over a range of sizes, alone or
 * beside a peer. See bench.h for its parts.
 */
#include "bench.h"
#include "environment.h"
#include "output.h"
#include "verbs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct row {
    size_t bytes, count;
    struct bench_timing timing;
    double algorithm_gbs, bus_gbs;
    uint64_t wrong;
};

/* A rank's own. */
struct session {
    struct rank *rank;
    const struct bench_options *options;
    struct bench_buffers buffers;
    char *memory[2]; /* with their guards */
    struct peer_state *peer;
    rondo_device_t device;
    json_t *rows;      /* rank 0 only */
    bool failed;       /* operations may be left behind; the world is going to be aborted */
    char message[512]; /* of the failure */
};

static const struct output_column columns[] = {
    {"size", "(B)", 12}, {"count", "(elements)", 12}, {"type", "", 10},       {"op", "", 5},
    {"root", "", 5},     {"time", "(us)", 11},        {"algbw", "(GB/s)", 8}, {"busbw", "(GB/s)", 8},
    {"wrong", "", 6},    {"peer time", "(us)", 11},   {"ratio", "", 7},
};
enum { COLUMNS_ALONE = 9, COLUMNS_WITH_PEER = 11 };

static int column_count(const struct bench_options *o)
{
    return o->peer != NULL ? COLUMNS_WITH_PEER : COLUMNS_ALONE;
}

static void print_row(const struct bench_options *o, const struct row *row)
{
    char text[COLUMNS_WITH_PEER][32];
    const char *cells[COLUMNS_WITH_PEER];
    const struct collective *c = o->collective;
    snprintf(text[0], sizeof(text[0]), "%zu", row->bytes);
    snprintf(text[1], sizeof(text[1]), "%zu", row->count);
    snprintf(text[2], sizeof(text[2]), "%s", row->bytes > 0 ? options_type_name(o->type) : "-");
    snprintf(text[3], sizeof(text[3]), "%s", c->reduces ? options_operator_name(o->op) : "-");
    snprintf(text[4], sizeof(text[4]), "%d", c->rooted ? o->root : -1);
    snprintf(text[5], sizeof(text[5]), "%.2f", row->timing.seconds * 1e6);
    snprintf(text[6], sizeof(text[6]), "%.3f", row->algorithm_gbs);
    snprintf(text[7], sizeof(text[7]), "%.3f", row->bus_gbs);
    if (o->check)
        snprintf(text[8], sizeof(text[8]), "%" PRIu64, row->wrong);
    else
        snprintf(text[8], sizeof(text[8]), "-");
    snprintf(text[9], sizeof(text[9]), "%.2f", row->timing.peer_seconds * 1e6);
    snprintf(text[10], sizeof(text[10]), "%.3f", row->timing.peer_seconds / row->timing.seconds);
    for (int i = 0; i < COLUMNS_WITH_PEER; i++)
        cells[i] = text[i];
    output_row(output_stream(o->json), columns, column_count(o), cells);
}

static json_t *json_row(const struct bench_options *o, const struct row *row)
{
    json_t *object = json_object();
    json_object_set_new(object, "bytes", json_integer((json_int_t) row->bytes));
    json_object_set_new(object, "count", json_integer((json_int_t) row->count));
    json_object_set_new(object, "iterations", json_integer(row->timing.iterations));
    json_object_set_new(object, "time_us", json_real(row->timing.seconds * 1e6));
    json_object_set_new(object, "algbw_gbs", json_real(row->algorithm_gbs));
    json_object_set_new(object, "busbw_gbs", json_real(row->bus_gbs));
    json_object_set_new(object, "wrong", o->check ? json_integer((json_int_t) row->wrong) : json_null());
    if (o->peer != NULL) {
        json_object_set_new(object, "peer_time_us", json_real(row->timing.peer_seconds * 1e6));
        json_object_set_new(object, "ratio", json_real(row->timing.peer_seconds / row->timing.seconds));
    }
    return object;
}

static json_t *json_text(const char *text)
{
    return text != NULL ? json_string(text) : json_null();
}

static int write_json(struct session *s, const char *error)
{
    const struct bench_options *o = s->options;
    json_t *object = json_object();
    json_object_set_new(object, "collective", json_string(o->collective->name));
    json_object_set_new(object, "ranks", json_integer(s->rank->size));
    json_object_set_new(object, "launch", json_string(s->rank->threads ? "threads" : "processes"));
    json_object_set_new(object, "device", json_string(options_device_name(s->device)));
    json_object_set_new(object, "type", json_string(options_type_name(o->type)));
    json_object_set_new(object, "op", json_text(o->collective->reduces ? options_operator_name(o->op) : NULL));
    json_object_set_new(object, "root", json_integer(o->collective->rooted ? o->root : -1));
    json_object_set_new(object, "mode", json_string(bench_mode_name(o->mode)));
    json_object_set_new(object, "in_place", json_boolean(o->in_place));
    json_object_set_new(object, "registered", json_boolean(o->registered));
    json_object_set_new(object, "algorithm", json_text(o->algorithm));
    json_object_set_new(object, "protocol", json_text(o->protocol));
    json_object_set_new(object, "compress", json_integer(o->compress));
    json_object_set_new(object, "peer", json_text(o->peer != NULL ? o->peer->name : NULL));
    json_object_set_new(object, "error", json_text(error));
    json_object_set(object, "rows", s->rows);
    return output_json("bench", o->json, object);
}

static void shape_template(const struct session *s, struct call *call)
{
    const struct bench_options *o = s->options;
    *call = (struct call){.collective = o->collective,
                          .comm = s->rank->world,
                          .attr = RONDO_ATTR_DEFAULT,
                          .rank = s->rank->rank,
                          .ranks = s->rank->size,
                          .root = o->root,
                          .type = o->type,
                          .op = o->op,
                          .in_place = o->in_place};
    call->attr.compress_rate = o->compress;
    call->attr.program = o->algorithm;
}

/* The size after this one; more than the maximum at the end. */
static size_t next_size(const struct bench_options *o, size_t size)
{
    if (size == 0)
        return 1;
    return size > o->maximum / o->factor ? o->maximum + 1 : size * o->factor;
}

static rondo_result_t allocate(struct session *s, size_t bytes, char **memory)
{
    size_t whole = (bytes + 2 * BENCH_GUARD + 4095) / 4096 * 4096;
    void *block = NULL;
    rondo_result_t code = RONDO_SUCCESS;
    if (s->options->registered)
        code = rondo_alloc(s->rank->runtime, whole, &block);
    else if ((block = aligned_alloc(4096, whole)) == NULL)
        code = RONDO_ERR_MEMORY;
    if (code != RONDO_SUCCESS)
        return code;
    *memory = block;
    return s->options->registered ? rondo_comm_register(s->rank->world, block, whole) : RONDO_SUCCESS;
}

/* Buffers for the largest row. */
static rondo_result_t make_buffers(struct session *s)
{
    const struct bench_options *o = s->options;
    for (size_t size = o->minimum; size <= o->maximum; size = next_size(o, size)) {
        struct call call;
        shape_template(s, &call);
        if (!call_shape(&call, size))
            return RONDO_ERR_MEMORY;
        size_t input = call.input_elements * call.type_bytes, output = call.output_elements * call.type_bytes;
        s->buffers.input_bytes = input > s->buffers.input_bytes ? input : s->buffers.input_bytes;
        s->buffers.output_bytes = output > s->buffers.output_bytes ? output : s->buffers.output_bytes;
        call_release(&call);
    }
    rondo_result_t code = allocate(s, s->buffers.input_bytes, &s->memory[0]);
    if (code == RONDO_SUCCESS)
        code = allocate(s, s->buffers.output_bytes, &s->memory[1]);
    if (code != RONDO_SUCCESS)
        return code;
    s->buffers.input = s->memory[0] + BENCH_GUARD;
    s->buffers.output = s->memory[1] + BENCH_GUARD;
    return RONDO_SUCCESS;
}

static rondo_result_t release_buffers(struct session *s)
{
    rondo_result_t first = RONDO_SUCCESS;
    for (int i = 0; i < 2; i++) {
        if (s->memory[i] == NULL)
            continue;
        if (!s->options->registered) {
            ranks_free_later(s->rank, s->memory[i]);
            continue;
        }
        if (s->failed) /* deregistering needs the other ranks; the runtime takes the memory with it */
            continue;
        rondo_result_t code = rondo_comm_deregister(s->rank->world, s->memory[i]);
        if (code == RONDO_SUCCESS)
            code = rondo_free(s->rank->runtime, s->memory[i]);
        first = first != RONDO_SUCCESS ? first : code;
    }
    return first;
}

static rondo_result_t check_once(struct session *s, struct call *call, const struct values *values, uint64_t *wrong)
{
    rondo_result_t code;
    if (call->collective->id == COLLECTIVE_BARRIER) {
        uint64_t early;
        code = bench_check_barrier(call, s->options->mode, values->seed, &early);
        *wrong += early;
        return code;
    }
    code = call_run(call, s->options->mode);
    if (code == RONDO_SUCCESS)
        *wrong += bench_check(call, values, &s->buffers);
    return code;
}

/* Blocking and non-blocking calls take the algorithm from the environment, where one that does not fit the call is passed over
 * in silence. A persistent operation refuses it. */
static rondo_result_t check_algorithm(struct call *call, const struct bench_options *o)
{
    if (o->algorithm == NULL || o->mode == FORM_PERSISTENT)
        return RONDO_SUCCESS;
    rondo_result_t code = call_open(call, FORM_PERSISTENT);
    return code == RONDO_SUCCESS ? call_close(call, FORM_PERSISTENT) : code;
}

/* Checked before the timing, and after the last timed run: where that does not spoil its own input by a fresh run instead. */
static rondo_result_t measure(struct session *s, struct call *call, uint64_t seed, struct row *row, const char **what)
{
    const struct bench_options *o = s->options;
    struct values values = {
        .type = o->type, .op = o->op, .reduces = o->collective->reduces, .ranks = s->rank->size, .seed = seed};
    values_prepare(&values, o->collective->prefix);
    bench_fill(call, &values, &s->buffers);
    *what = "prepare";
    rondo_result_t code = check_algorithm(call, o);
    if (code == RONDO_SUCCESS)
        code = call_open(call, o->mode);
    if (code != RONDO_SUCCESS)
        return code;
    *what = "checked run";
    if (o->check && (code = check_once(s, call, &values, &row->wrong)) != RONDO_SUCCESS)
        return code;
    code = bench_time(s->rank, o, call, s->peer, &values, &s->buffers, &row->timing, what);
    if (code != RONDO_SUCCESS)
        return code;
    row->wrong += row->timing.wrong;
    *what = "checked run after the timed ones";
    if (o->check && (!bench_repeats(call) || o->collective->id == COLLECTIVE_BARRIER)) {
        values.seed = ~seed;
        bench_fill(call, &values, &s->buffers);
        if ((code = check_once(s, call, &values, &row->wrong)) != RONDO_SUCCESS)
            return code;
    }
    *what = "free";
    return call_close(call, o->mode);
}

/* The library's message goes into the JSON too. */
static int fail(struct session *s, const char *what, rondo_result_t code)
{
    s->failed = true;
    snprintf(s->message, sizeof(s->message), "%s: %s: %s", what, rondo_strerror((int) code), rondo_last_error());
    return ranks_fail(s->rank, what, code);
}

static int run_row(struct session *s, struct call *call, uint64_t seed, uint64_t *wrong)
{
    const struct bench_options *o = s->options;
    call_bind(call, s->buffers.input, s->buffers.output);
    struct row row = {.bytes = call->bytes, .count = call->bytes / call->type_bytes};
    const char *step = "";
    char what[128];
    if (s->peer != NULL && o->peer->prepare(s->peer, call, s->message, sizeof(s->message)) != 0) {
        if (s->rank->rank == 0)
            options_refuse("bench", "--peer %s: %s", o->peer->name, s->message);
        return EXIT_USAGE;
    }
    rondo_result_t code = measure(s, call, seed, &row, &step);
    if (code == RONDO_SUCCESS) {
        step = "sum of wrong elements";
        *wrong += row.wrong; /* this rank's own, which no failure of the library can hide */
        code = ranks_total(s->rank, s->rank->world, &row.wrong, 1);
    }
    if (code != RONDO_SUCCESS) {
        snprintf(what, sizeof(what), "%s of %zu bytes, %s", o->collective->name, call->bytes, step);
        return fail(s, what, code);
    }
    row.algorithm_gbs = (double) row.bytes / row.timing.seconds * 1e-9;
    row.bus_gbs = row.algorithm_gbs * o->collective->bus_factor(s->rank->size);
    *wrong += row.wrong;
    if (s->rank->rank == 0) {
        print_row(o, &row);
        json_array_append_new(s->rows, json_row(o, &row));
    }
    return 0;
}

static int run_rows(struct session *s)
{
    const struct bench_options *o = s->options;
    size_t previous = SIZE_MAX;
    uint64_t wrong = 0, seed = 0x52D0;
    for (size_t size = o->minimum; size <= o->maximum; size = next_size(o, size)) {
        struct call call;
        shape_template(s, &call);
        if (!call_shape(&call, size))
            return fail(s, "counts of a row", RONDO_ERR_MEMORY);
        int code = 0;
        if (call.bytes != previous) /* several sizes below one element are all one row */
            code = run_row(s, &call, seed++, &wrong);
        previous = call.bytes;
        call_release(&call);
        if (code != 0)
            return code;
    }
    return wrong > 0 ? EXIT_WRONG : 0;
}

static void print_title(const struct session *s)
{
    const struct bench_options *o = s->options;
    FILE *stream = output_stream(o->json);
    fprintf(stream, "# %s, %d %s, %s device, %s%s%s", o->collective->name, s->rank->size,
            s->rank->threads    ? "ranks as threads"
            : s->rank->size > 1 ? "ranks as processes"
                                : "rank",
            options_device_name(s->device), bench_mode_name(o->mode), o->in_place ? ", in place" : "",
            o->registered ? ", registered buffers" : "");
    if (o->peer != NULL)
        fprintf(stream, "; peer %s (ratio = peer's time / Rondo's)", o->peer->name);
    fputc('\n', stream);
    output_header(stream, columns, column_count(o));
}

/* What could not be known before the ranks had met. */
static int check_against_job(struct session *s)
{
    const struct bench_options *o = s->options;
    if (o->collective->rooted && o->root >= s->rank->size)
        return s->rank->rank > 0 ? EXIT_USAGE : options_refuse("bench", "-r %d is not one of %d ranks", o->root, s->rank->size);
    return 0;
}

static int open_session(struct session *s)
{
    const struct bench_options *o = s->options;
    rondo_result_t result = rondo_device(s->rank->runtime, &s->device);
    if (result != RONDO_SUCCESS)
        return fail(s, "device", result);
    int code = check_against_job(s);
    if (code != 0)
        return code;
    if ((result = make_buffers(s)) != RONDO_SUCCESS)
        return fail(s, "buffers of the largest row", result);
    if (o->peer != NULL && o->peer->open(&s->peer, s->rank->rank, s->rank->size, s->message, sizeof(s->message)) != 0) {
        fprintf(stderr, "rondo bench: rank %d: peer %s: %s\n", s->rank->rank, o->peer->name, s->message);
        ranks_mark_failed(s->rank);
        s->failed = true;
        s->peer = NULL;
        return EXIT_WRONG;
    }
    return 0;
}

static int body(struct rank *rank, void *argument)
{
    struct session s = {.rank = rank, .options = argument, .rows = rank->rank == 0 ? json_array() : NULL};
    int code = open_session(&s);
    if (code == 0) {
        if (rank->rank == 0)
            print_title(&s);
        code = run_rows(&s);
    }
    rondo_result_t result = release_buffers(&s);
    if (result != RONDO_SUCCESS)
        code = fail(&s, "release of the buffers", result);
    if (s.peer != NULL && !s.failed)
        s.options->peer->close(s.peer);
    if (rank->rank == 0 && s.options->json != NULL && code != EXIT_USAGE) {
        int written = write_json(&s, s.failed ? s.message : NULL);
        code = code != 0 ? code : written;
    }
    json_decref(s.rows);
    return code;
}

/* Blocking and non-blocking calls carry no attribute; the library reads their algorithm and protocol when it starts. */
static int set_variable(const char *option, const char *name, const char *value)
{
    int rows;
    const struct rondo_variable *table = rondo_environment_table(&rows);
    if (value == NULL)
        return 0;
    for (int i = 0; i < rows; i++) {
        if (strcmp(table[i].name, name) == 0)
            return setenv(name, value, 1) == 0 ? 0 : EXIT_WRONG;
    }
    return options_refuse("bench", "%s %s: this library offers no choice (it reads no %s)", option, value, name);
}

int verb_bench(int argc, char **argv)
{
    struct bench_options options;
    bool help_wanted = false;
    int code = bench_options_read(argc, argv, &options, &help_wanted);
    if (code != 0 || help_wanted)
        return code;
    if ((code = set_variable("--algorithm", "RONDO_ALGORITHM", options.algorithm)) != 0 ||
        (code = set_variable("--protocol", "RONDO_PROTOCOL", options.protocol)) != 0)
        return code;
    struct ranks_plan plan = {.verb = "bench", .runtime = &options.runtime, .body = body, .argument = &options};
    return ranks_run(&plan);
}
