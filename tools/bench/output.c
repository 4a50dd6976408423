/* The table and the JSON of `rondo bench`. See tools/bench/bench.h. */
#include "tools/bench/bench.h"

#include <inttypes.h>
#include <stdio.h>

static const struct output_column columns[] = {
    {"size", "(B)", 12},  {"count", "(elements)", 12}, {"type", "", 10},       {"op", "", 5},    {"root", "", 5},
    {"time", "(us)", 11}, {"algbw", "(GB/s)", 8},      {"busbw", "(GB/s)", 8}, {"wrong", "", 6},
};
static const struct output_column peer_columns[] = {{"peer time", "(us)", 11}, {"ratio", "", 7}};
static const struct output_column aa_columns[] = {{"A/A", "", 7}};
static const struct output_column compression_columns[] = {{"error", "(norm)", 9}, {"same bits", "", 9}};
static const struct output_column plain_columns[] = {{"plain time", "(us)", 11}, {"less", "(%)", 6}};
#define LENGTH(array) ((int) (sizeof(array) / sizeof((array)[0])))
enum { COLUMNS_MOST = 16 };

static int add_columns(struct output_column *all, int count, const struct output_column *more, int how_many)
{
    for (int i = 0; i < how_many; i++)
        all[count + i] = more[i];
    return count + how_many;
}

static int choose_columns(const struct bench_options *o, struct output_column *all)
{
    int count = add_columns(all, 0, columns, LENGTH(columns));
    if (o->peer != NULL)
        count = add_columns(all, count, peer_columns, LENGTH(peer_columns));
    if (o->twice)
        count = add_columns(all, count, aa_columns, LENGTH(aa_columns));
    if ((o->compress > 0 && o->peer == NULL) || o->trace_cost)
        count = add_columns(all, count, plain_columns, LENGTH(plain_columns));
    if (o->compress > 0)
        count = add_columns(all, count, compression_columns, LENGTH(compression_columns));
    return count;
}

static const char *collective_name(const struct bench_options *o)
{
    return o->whole != NULL ? o->whole->name : o->collective->name;
}

void bench_print_title(const struct bench *b)
{
    const struct bench_options *o = b->options;
    FILE *stream = output_stream(o->json);
    struct output_column all[COLUMNS_MOST];
    fprintf(stream, "# %s, %d %s, %s device, %s%s%s", collective_name(o), b->rank->size,
            b->rank->threads    ? "ranks as threads"
            : b->rank->size > 1 ? "ranks as processes"
                                : "rank",
            options_device_name(b->device), bench_mode_name(o->mode), o->in_place ? ", in place" : "",
            o->registered ? ", registered buffers" : "");
    if (o->peer != NULL)
        fprintf(stream, "; peer %s%s%s (ratio = peer's time / Rondo's)", o->peer->name, o->peer->version != NULL ? " " : "",
                o->peer->version != NULL ? o->peer->version : "");
    fputc('\n', stream);
    if (o->whole == NULL || !o->whole->own_columns)
        output_header(stream, all, choose_columns(o, all));
}

static const char *same_bits(const struct bench_row *row)
{
    return !row->error.shared ? "-" : row->error.identical ? "yes" : "NO";
}

static double saved_percent(const struct bench_row *row)
{
    return 100.0 * (1.0 - row->timing.seconds / row->timing.plain_seconds);
}

static void print_row(const struct bench_options *o, const struct bench_row *row)
{
    char text[COLUMNS_MOST][32];
    const char *cells[COLUMNS_MOST];
    struct output_column all[COLUMNS_MOST];
    const struct collective *c = o->collective;
    int count = LENGTH(columns);
    snprintf(text[0], sizeof(text[0]), "%zu", row->bytes);
    snprintf(text[1], sizeof(text[1]), "%zu", row->count);
    snprintf(text[2], sizeof(text[2]), "%s", row->bytes > 0 ? options_type_name(o->type) : "-");
    snprintf(text[3], sizeof(text[3]), "%s", c->rule->reduces ? options_operator_name(o->op) : "-");
    snprintf(text[4], sizeof(text[4]), "%d", c->rule->rooted ? o->root : -1);
    snprintf(text[5], sizeof(text[5]), "%.2f", row->timing.seconds * 1e6);
    snprintf(text[6], sizeof(text[6]), "%.3f", row->algorithm_gbs);
    snprintf(text[7], sizeof(text[7]), "%.3f", row->bus_gbs);
    if (o->check)
        snprintf(text[8], sizeof(text[8]), "%" PRIu64, row->wrong);
    else
        snprintf(text[8], sizeof(text[8]), "-");
    if (o->peer != NULL) {
        snprintf(text[count++], sizeof(text[0]), "%.2f", row->timing.peer_seconds * 1e6);
        snprintf(text[count++], sizeof(text[0]), "%.3f", row->timing.peer_seconds / row->timing.seconds);
        if (o->twice)
            snprintf(text[count++], sizeof(text[0]), "%.3f", row->timing.again_seconds / row->timing.peer_seconds);
    } else if (o->compress > 0 || o->trace_cost) {
        snprintf(text[count++], sizeof(text[0]), "%.2f", row->timing.plain_seconds * 1e6);
        snprintf(text[count++], sizeof(text[0]), "%.1f", saved_percent(row));
    }
    if (o->compress > 0) {
        snprintf(text[count++], sizeof(text[0]), "%.3g", row->error.norm);
        snprintf(text[count++], sizeof(text[0]), "%s", same_bits(row));
    }
    for (int i = 0; i < count; i++)
        cells[i] = text[i];
    output_row(output_stream(o->json), all, choose_columns(o, all), cells);
}

static json_t *json_row(const struct bench_options *o, const struct bench_row *row)
{
    json_t *object = json_object();
    json_object_set_new(object, "bytes", json_integer((json_int_t) row->bytes));
    json_object_set_new(object, "count", json_integer((json_int_t) row->count));
    json_object_set_new(object, "iterations", json_integer(row->timing.iterations));
    json_object_set_new(object, "time_us", json_real(row->timing.seconds * 1e6));
    json_object_set_new(object, "algbw_gbs", json_real(row->algorithm_gbs));
    json_object_set_new(object, "busbw_gbs", json_real(row->bus_gbs));
    json_object_set_new(object, "stream_blocks", json_real(row->timing.blocks));
    json_object_set_new(object, "wrong", o->check ? json_integer((json_int_t) row->wrong) : json_null());
    if (o->peer != NULL) {
        json_object_set_new(object, "peer_time_us", json_real(row->timing.peer_seconds * 1e6));
        json_object_set_new(object, "ratio", json_real(row->timing.peer_seconds / row->timing.seconds));
        if (o->twice)
            json_object_set_new(object, "aa_ratio", json_real(row->timing.again_seconds / row->timing.peer_seconds));
    }
    if ((o->compress > 0 && o->peer == NULL) || o->trace_cost) {
        json_object_set_new(object, "plain_time_us", json_real(row->timing.plain_seconds * 1e6));
        json_object_set_new(object, "less_percent", json_real(saved_percent(row)));
    }
    if (o->compress > 0) {
        json_object_set_new(object, "error_norm", json_real(row->error.norm));
        json_object_set_new(object, "error_largest", json_real(row->error.largest));
        json_object_set_new(object, "identical", row->error.shared ? json_boolean(row->error.identical) : json_null());
    }
    return object;
}

void bench_put_row(struct bench *b, const struct bench_row *row)
{
    if (b->rank->rank != 0)
        return;
    print_row(b->options, row);
    json_t *object = json_row(b->options, row);
    if (b->options->tune != NULL)
        json_object_set_new(object, "cuda", json_boolean(b->device == RONDO_DEVICE_CUDA));
    json_array_append_new(b->rows, object);
}

static json_t *json_text(const char *text)
{
    return text != NULL ? json_string(text) : json_null();
}

int bench_write_json(struct bench *b, const char *error)
{
    const struct bench_options *o = b->options;
    json_t *object = json_object();
    json_object_set_new(object, "collective", json_string(collective_name(o)));
    json_object_set_new(object, "ranks", json_integer(b->rank->size));
    json_object_set_new(object, "launch", json_string(b->rank->threads ? "threads" : "processes"));
    json_object_set_new(object, "device", json_string(options_device_name(b->device)));
    json_object_set_new(object, "type", json_string(options_type_name(o->type)));
    json_object_set_new(object, "op", json_text(o->collective->rule->reduces ? options_operator_name(o->op) : NULL));
    json_object_set_new(object, "root", json_integer(o->collective->rule->rooted ? o->root : -1));
    json_object_set_new(object, "mode", json_string(bench_mode_name(o->mode)));
    json_object_set_new(object, "in_place", json_boolean(o->in_place));
    json_object_set_new(object, "registered", json_boolean(o->registered));
    json_object_set_new(object, "vary", json_boolean(o->vary && b->device == RONDO_DEVICE_HOST));
    json_object_set_new(object, "transports", json_text(o->runtime.transports));
    json_object_set_new(object, "algorithm", json_text(o->algorithm));
    json_object_set_new(object, "protocol", json_text(o->protocol));
    json_object_set_new(object, "channels", json_text(o->channels));
    json_object_set_new(object, "compress", json_integer(o->compress));
    json_object_set_new(object, "peer", json_text(o->peer != NULL ? o->peer->name : NULL));
    json_object_set_new(object, "peer_version", json_text(o->peer != NULL ? o->peer->version : NULL));
    json_object_set_new(object, "error", json_text(error));
    json_object_set(object, "rows", b->rows);
    return output_json("bench", o->json, object);
}
