/*
 * `rondo bench COLLECTIVE --tune FILE`: runs the bench once for each algorithm, protocol and number of channels, and writes
 * which was fastest for which sizes. The file is a JSON array, first
 *     {"machine"}
 * which says what it was measured on and is compared with what it is used on, and then
 *     {"collective", "ranks", "max_bytes", "algorithm", "protocol", "channels"}
 * sorted by collective, ranks and max_bytes: a row is for sizes up to max_bytes, from the row before it on. Size is the bench's
 * (all ranks' blocks together where there are blocks). Rows of other collectives and other numbers of ranks that the file has
 * already are kept. A channel count of 0 means: the library's own.
 */
#include "tools/bench/bench.h"
#include "lib/select/tuning.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Those that a collective does not have are passed over. Plainer ones come first. */
static const struct {
    const char *algorithm, *protocol;
} methods[] = {{"allpairs", "ll"},    {"allpairs", "simple"}, {"multicast", "simple"}, {"multicast-twoshot", "simple"},
               {"linear", "ll"},      {"linear", "simple"},   {"direct", "simple"},    {"push", "simple"},
               {"ring", "ll"},        {"ring", "simple"},     {"chain", "simple"},     {"doubling", "simple"},
               {"halving", "simple"}, {"twoshot", "simple"},  {"tree", "simple"},      {"hierarchical", "simple"},
               {"twostep", "simple"}, {"pairs", "ll"},        {"pairs", "simple"},     {"doubling", "ll"},
               {"spread", "simple"},  {"allpairs", "ll128"},  {"linear", "ll128"},     {"pairs", "ll128"},
               {"twoshot", "ll128"},  {"chain", "ll128"},     {"ring", "ll128"},       {"ring", "tma"},
               {"pairs", "tma"},      {"chain", "tma"}};
static const int channel_counts[] = {1, 2, 4, 8, 16, 32};
#define LENGTH(array) (int) (sizeof(array) / sizeof((array)[0]))

/* A plainer candidate is kept unless another is faster by this part. */
static const double worthwhile = 0.02;
/* Packets of data and flags carry half as much: beyond this size they are not worth trying. */
static const size_t ll_largest = 4 << 20;

struct candidate {
    const char *algorithm, *protocol;
    int channels;
};

struct best {
    size_t bytes;
    double microseconds;
    struct candidate candidate;
};

struct tuning {
    const struct bench_options *options;
    int (*run)(const struct bench_options *options, json_t *rows);
    int ranks, cuda;
    int known; /* sizes with a best candidate */
    struct best best[64];
};

static void consider(struct tuning *t, const struct candidate *candidate, size_t bytes, double microseconds)
{
    int at = 0;
    while (at < t->known && t->best[at].bytes < bytes)
        at++;
    if (at < t->known && t->best[at].bytes == bytes) {
        if (microseconds < t->best[at].microseconds * (1.0 - worthwhile))
            t->best[at] = (struct best){bytes, microseconds, *candidate};
        return;
    }
    if (t->known == LENGTH(t->best))
        return;
    memmove(&t->best[at + 1], &t->best[at], (size_t) (t->known - at) * sizeof(t->best[0]));
    t->best[at] = (struct best){bytes, microseconds, *candidate};
    t->known++;
}

static int try_candidate(struct tuning *t, const struct candidate *candidate)
{
    struct bench_options options = *t->options;
    char channels[16];
    bool packets = strcmp(candidate->protocol, "ll") == 0;
    options.algorithm = candidate->algorithm;
    options.protocol = candidate->protocol;
    snprintf(channels, sizeof(channels), "%d", candidate->channels);
    options.channels = candidate->channels > 0 ? channels : NULL;
    options.json = NULL;
    if (packets && options.maximum > ll_largest)
        options.maximum = ll_largest;
    if (options.minimum > options.maximum)
        return 0;
    printf("# algorithm %s, protocol %s, channels %s\n", candidate->algorithm, candidate->protocol,
           candidate->channels > 0 ? channels : "as the library chooses");
    json_t *rows = json_array(), *row;
    size_t i;
    int code = t->run(&options, rows);
    json_array_foreach(rows, i, row)
    {
        t->cuda |= json_is_true(json_object_get(row, "cuda"));
        consider(t, candidate, (size_t) json_integer_value(json_object_get(row, "bytes")),
                 json_real_value(json_object_get(row, "time_us")));
    }
    json_decref(rows);
    return code;
}

/* A candidate that gives wrong data or fails ends the search: its figure would be worth nothing. */
static int try_all(struct tuning *t)
{
    bool choice = bench_has_variable("RONDO_CHANNELS");
    int code = 0;
    for (int m = 0; m < LENGTH(methods) && code == 0; m++) {
        for (int c = 0; c < (choice ? LENGTH(channel_counts) : 1) && code == 0; c++) {
            struct candidate candidate = {methods[m].algorithm, methods[m].protocol, choice ? channel_counts[c] : 0};
            code = try_candidate(t, &candidate);
        }
    }
    return code;
}

static bool same(const struct candidate *a, const struct candidate *b)
{
    return strcmp(a->algorithm, b->algorithm) == 0 && strcmp(a->protocol, b->protocol) == 0 && a->channels == b->channels;
}

/* The border between two measured sizes is halfway between them, as their logarithms are. */
static json_int_t border(const struct tuning *t, int i)
{
    if (i + 1 == t->known)
        return INT64_MAX;
    return (json_int_t) sqrt((double) t->best[i].bytes * (double) t->best[i + 1].bytes);
}

static void add_rows(const struct tuning *t, json_t *table)
{
    for (int i = 0; i < t->known; i++) {
        const struct candidate *c = &t->best[i].candidate;
        if (i + 1 < t->known && same(c, &t->best[i + 1].candidate))
            continue;
        json_t *row = json_object();
        json_object_set_new(row, "collective", json_string(t->options->collective->name));
        json_object_set_new(row, "ranks", json_integer(t->ranks));
        json_object_set_new(row, "max_bytes", json_integer(border(t, i)));
        json_object_set_new(row, "algorithm", json_string(c->algorithm));
        json_object_set_new(row, "protocol", json_string(c->protocol));
        json_object_set_new(row, "channels", json_integer(c->channels));
        json_array_append_new(table, row);
    }
}

static const char *text(const json_t *row, const char *key)
{
    const char *value = json_string_value(json_object_get(row, key));
    return value != NULL ? value : "";
}

static json_int_t number(const json_t *row, const char *key)
{
    return json_integer_value(json_object_get(row, key));
}

static int ascending(const void *a, const void *b)
{
    const json_t *x = *(json_t *const *) a, *y = *(json_t *const *) b;
    int order = strcmp(text(x, "collective"), text(y, "collective"));
    if (order == 0)
        order = (number(x, "ranks") > number(y, "ranks")) - (number(x, "ranks") < number(y, "ranks"));
    if (order == 0)
        order = (number(x, "max_bytes") > number(y, "max_bytes")) - (number(x, "max_bytes") < number(y, "max_bytes"));
    return order;
}

/* What is already in the file and of something else, and the new rows, sorted. NULL: the file is something else altogether, or
 * of another machine. */
static json_t *merge(const struct tuning *t, const char *machine)
{
    json_error_t error;
    FILE *file = fopen(t->options->tune, "r");
    json_t *old = file != NULL ? json_loadf(file, 0, &error) : json_array(), *table = json_array(), *row;
    size_t i, count;
    if (file != NULL)
        fclose(file);
    if (!json_is_array(old)) {
        json_decref(old);
        json_decref(table);
        return NULL;
    }
    const char *theirs = json_array_size(old) > 0 ? text(json_array_get(old, 0), "machine") : machine;
    if (*theirs != '\0' && strcmp(theirs, machine) != 0) {
        json_decref(old);
        json_decref(table);
        return NULL;
    }
    json_array_foreach(old, i, row)
    {
        if (*text(row, "machine") != '\0')
            continue;
        if (strcmp(text(row, "collective"), t->options->collective->name) != 0 || number(row, "ranks") != t->ranks)
            json_array_append(table, row);
    }
    json_decref(old);
    add_rows(t, table);

    count = json_array_size(table);
    json_t **sorted = calloc(count + 1, sizeof(json_t *)), *result = json_array();
    json_array_append_new(result, json_pack("{s:s}", "machine", machine));
    for (i = 0; sorted != NULL && i < count; i++)
        sorted[i] = json_array_get(table, i);
    if (sorted != NULL)
        qsort(sorted, count, sizeof(json_t *), ascending);
    for (i = 0; sorted != NULL && i < count; i++)
        json_array_append(result, sorted[i]);
    free(sorted);
    json_decref(table);
    return result;
}

int bench_tune(const struct bench_options *options, int (*run)(const struct bench_options *options, json_t *rows))
{
    struct tuning *t = calloc(1, sizeof(*t));
    if (t == NULL)
        return EXIT_WRONG;
    *t = (struct tuning){.options = options, .run = run, .ranks = options->runtime.threads};
    int code = try_all(t);
    if (code == 0 && t->known == 0) {
        fprintf(stderr, "rondo bench: --tune: no candidate fits %s\n", options->collective->name);
        code = EXIT_WRONG;
    }
    if (code == 0) {
        char machine[RONDO_MACHINE_BYTES];
        rondo_tuning_machine(t->cuda, machine);
        json_t *table = merge(t, machine);
        if (table == NULL) {
            fprintf(stderr, "rondo bench: --tune %s: the file is there and is no table of this machine (%s)\n", options->tune,
                    machine);
            code = EXIT_WRONG;
        } else {
            code = output_json("bench", options->tune, table);
        }
    }
    free(t);
    return code;
}
