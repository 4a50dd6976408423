/* See tools/program/conditions.h. Files are not trusted: what is not in the format is refused with the entry's number. */
#include "tools/program/conditions.h"

#include "tools/common/options.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int make_room(struct conditions *c, const rondo_program_signature_t *signature, size_t chunks)
{
    c->chunks = chunks;
    c->count = (size_t) signature->ranks * chunks;
    c->entries = calloc(c->count + 1, sizeof(*c->entries));
    for (size_t i = 0; c->entries != NULL && i < c->count; i++) {
        c->entries[i].rank = (int) (i / chunks);
        c->entries[i].chunk = i % chunks;
        c->entries[i].terms = -1;
    }
    return c->entries != NULL;
}

static int set_terms(struct condition *entry, size_t terms)
{
    entry->ranks = calloc(terms + 1, sizeof(*entry->ranks));
    entry->indexes = calloc(terms + 1, sizeof(*entry->indexes));
    entry->terms = (int) terms;
    return entry->ranks != NULL && entry->indexes != NULL;
}

static int add_term(struct condition *entry, int at, int rank, size_t chunk)
{
    entry->ranks[at] = rank;
    entry->indexes[at] = chunk;
    return 1;
}

/* ---- built-in postconditions ---- */

struct builtin {
    const char *name, *needs;
    int terms; /* of a chunk; 0: one for each rank */
    /* Whether the chunks fit. */
    int (*fits)(const rondo_program_signature_t *signature);
    /* Writes the data of one output chunk of the rank; returns 0 if nothing is asked of it. */
    int (*fill)(const rondo_program_signature_t *signature, struct condition *entry);
};

static int are_equal(const rondo_program_signature_t *s)
{
    return s->inputs == s->outputs;
}

static int has_all(const rondo_program_signature_t *s)
{
    return (long) s->inputs * s->ranks == s->outputs;
}

static int are_for_each_rank(const rondo_program_signature_t *s)
{
    return s->inputs == s->outputs && s->inputs % s->ranks == 0;
}

static int fill_next(const rondo_program_signature_t *s, struct condition *entry)
{
    (void) s;
    return entry->rank > 0 && add_term(entry, 0, entry->rank - 1, entry->chunk);
}

static int fill_gathered(const rondo_program_signature_t *s, struct condition *entry)
{
    return add_term(entry, 0, (int) entry->chunk / s->inputs, entry->chunk % (size_t) s->inputs);
}

static int fill_transposed(const rondo_program_signature_t *s, struct condition *entry)
{
    const size_t block = (size_t) (s->inputs / s->ranks);
    return add_term(entry, 0, (int) (entry->chunk / block), (size_t) entry->rank * block + entry->chunk % block);
}

static int fill_sum(const rondo_program_signature_t *s, struct condition *entry)
{
    for (int rank = 0; rank < s->ranks; rank++)
        add_term(entry, rank, rank, entry->chunk);
    return 1;
}

static const struct builtin builtins[] = {
    {"alltonext", "as many output chunks as input chunks", 1, are_equal, fill_next},
    {"allgather", "as many output chunks as all ranks have input chunks", 1, has_all, fill_gathered},
    {"alltoall", "as many output chunks as input chunks, equally many for each rank", 1, are_for_each_rank, fill_transposed},
    {"allreduce", "as many output chunks as input chunks", 0, are_equal, fill_sum},
};

static int make_builtin(const struct builtin *builtin, const rondo_program_signature_t *signature, struct conditions *c)
{
    if (!builtin->fits(signature)) {
        fprintf(stderr, "rondo program: --postcondition %s: it needs %s, and program '%s' for %d ranks has %d and %d\n",
                builtin->name, builtin->needs, signature->name, signature->ranks, signature->outputs, signature->inputs);
        return EXIT_WRONG;
    }
    for (size_t i = 0; i < c->count; i++) {
        if (!set_terms(&c->entries[i], builtin->terms > 0 ? (size_t) builtin->terms : (size_t) signature->ranks))
            return EXIT_WRONG;
        if (!builtin->fill(signature, &c->entries[i]))
            c->entries[i].terms = -1;
    }
    return 0;
}

/* ---- files ---- */

struct reading {
    const char *what, *path;
    size_t entry;
};

static int refuse(const struct reading *r, const char *why)
{
    fprintf(stderr, "rondo program: --%s %s: entry %zu: %s\n", r->what, r->path, r->entry, why);
    return EXIT_WRONG;
}

/* Whether the value is a whole number below `end`; stores it. */
static int is_below(const json_t *value, json_int_t end, json_int_t *number)
{
    *number = json_integer_value(value);
    return json_is_integer(value) && *number >= 0 && *number < end;
}

static int read_entry(const struct reading *r, const json_t *item, const rondo_program_signature_t *signature,
                      struct conditions *c)
{
    const json_t *holds = json_object_get(item, "holds"), *pair;
    json_int_t rank, chunk;
    size_t i;
    if (!json_is_object(item) || json_object_size(item) != 3 || !json_is_array(holds))
        return refuse(r, "not an object of \"rank\", \"chunk\" and \"holds\" alone, the last one an array");
    if (!is_below(json_object_get(item, "rank"), signature->ranks, &rank))
        return refuse(r, "\"rank\" is none of the program's");
    if (!is_below(json_object_get(item, "chunk"), (json_int_t) c->chunks, &chunk))
        return refuse(r, "\"chunk\" is none of the rank's");
    struct condition *entry = &c->entries[(size_t) rank * c->chunks + (size_t) chunk];
    if (entry->terms >= 0)
        return refuse(r, "the chunk for the second time");
    if (json_array_size(holds) > 1 << 24 || !set_terms(entry, json_array_size(holds)))
        return refuse(r, "too long for memory");
    json_array_foreach(holds, i, pair)
    {
        json_int_t of, index;
        if (!json_is_array(pair) || json_array_size(pair) != 2 || !is_below(json_array_get(pair, 0), signature->ranks, &of) ||
            !is_below(json_array_get(pair, 1), signature->inputs, &index))
            return refuse(r, "\"holds\" has something else than [RANK, CHUNK] of an input chunk");
        add_term(entry, (int) i, (int) of, (size_t) index);
    }
    return 0;
}

static int read_file(struct reading *r, const rondo_program_signature_t *signature, struct conditions *c)
{
    json_error_t error;
    json_t *all = json_load_file(r->path, JSON_REJECT_DUPLICATES, &error), *item;
    int code = 0;
    if (all == NULL) {
        fprintf(stderr, "rondo program: --%s %s: line %d: %s\n", r->what, r->path, error.line, error.text);
        return EXIT_WRONG;
    }
    if (!json_is_array(all))
        code = refuse(r, "the file is no array");
    json_array_foreach(all, r->entry, item) if (code == 0) code = read_entry(r, item, signature, c);
    json_decref(all);
    return code;
}

int conditions_read(const char *what, const char *name, const rondo_program_signature_t *signature, struct conditions *result)
{
    const int after = strcmp(what, "postcondition") == 0;
    struct reading reading = {.what = what, .path = name};
    *result = (struct conditions){0};
    if (strcmp(signature->collective, "custom") != 0) {
        fprintf(stderr, "rondo program: --%s %s: program '%s' is for %s, which says itself what it requires\n", what, name,
                signature->name, signature->collective);
        return EXIT_WRONG;
    }
    if (!make_room(result, signature, (size_t) (after ? signature->outputs : signature->inputs)))
        return refuse(&reading, "too large for memory");
    for (size_t i = 0; after && i < sizeof(builtins) / sizeof(builtins[0]); i++)
        if (strcmp(name, builtins[i].name) == 0)
            return make_builtin(&builtins[i], signature, result);
    return read_file(&reading, signature, result);
}

void conditions_free(struct conditions *c)
{
    for (size_t i = 0; c->entries != NULL && i < c->count; i++) {
        free(c->entries[i].ranks);
        free(c->entries[i].indexes);
    }
    free(c->entries);
    *c = (struct conditions){0};
}

/* ---- using them ---- */

void conditions_apply(const struct conditions *before, const struct conditions *after, rondo_program_t program)
{
    for (size_t i = 0; before->entries != NULL && i < before->count; i++) {
        const struct condition *c = &before->entries[i];
        if (c->terms >= 0)
            rondo_program_assume(program, c->rank, c->chunk, c->terms, c->ranks, c->indexes);
    }
    for (size_t i = 0; after->entries != NULL && i < after->count; i++) {
        const struct condition *c = &after->entries[i];
        if (c->terms >= 0)
            rondo_program_require(program, c->rank, c->chunk, c->terms, c->ranks, c->indexes);
    }
}

const struct condition *conditions_find(const struct conditions *c, int rank, size_t chunk)
{
    const struct condition *entry = c->entries != NULL ? &c->entries[(size_t) rank * c->chunks + chunk] : NULL;
    return entry != NULL && entry->terms >= 0 ? entry : NULL;
}

/* Finalizer of splitmix64 (Steele, Lea, Flood 2014). */
static unsigned data_of(int rank, size_t chunk, size_t e)
{
    uint64_t x = ((uint64_t) rank << 40 | (uint64_t) chunk << 20) + e * 0x9e3779b97f4a7c15u + 1;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return (unsigned) (x ^ x >> 31) % 1000003;
}

unsigned conditions_element(const struct conditions *c, int rank, size_t chunk, size_t e)
{
    const struct condition *entry = conditions_find(c, rank, chunk);
    unsigned value = entry == NULL ? data_of(rank, chunk, e) : 0;
    for (int i = 0; entry != NULL && i < entry->terms; i++)
        value += data_of(entry->ranks[i], entry->indexes[i], e);
    return value;
}
