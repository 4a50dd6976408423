/*
 * One collective on one communicator, checked to the last byte: buffers between canaries, inputs that every rank can compute
 * for every other rank, the expected contents of the whole receive buffer (gaps and untouched parts included), and the call in
 * any of its forms. Relies on elements.h for the values.
 */
#ifndef RONDO_TEST_TRIAL_H
#define RONDO_TEST_TRIAL_H

#include "test/multirank/elements.h"
#include <stdio.h>
#include <stdlib.h>

enum collective {
    ALLREDUCE,
    REDUCE,
    REDUCE_SCATTER,
    SCAN,
    EXSCAN,
    BCAST,
    ALLGATHER,
    ALLGATHERV,
    ALLTOALL,
    ALLTOALLV,
    GATHER,
    SCATTER,
    ALLTONEXT,
    BARRIER,
    COLLECTIVES
};
/* In the library's words, which tell a collective's description. */
static const char *const collective_names[COLLECTIVES] = {"allreduce", "reduce",     "reduce_scatter_block",
                                                          "scan",      "exscan",     "bcast",
                                                          "allgather", "allgatherv", "alltoall",
                                                          "alltoallv", "gather",     "scatter",
                                                          "alltonext", "barrier"};

enum form { BLOCKING, NONBLOCKING, PERSISTENT, FORMS };
static const char *const form_names[FORMS] = {"blocking", "nonblocking", "persistent"};

enum { CANARY_BYTES = 64, CANARY = 0xa5, TRIAL_RANKS = 64 };

struct trial {
    enum collective what;
    rondo_datatype_t type;
    rondo_op_t op;
    size_t count;
    int root, in_place;
    uint64_t seed; /* the same number on all ranks of comm */
    rondo_comm_t comm;
    int rank, size;

    size_t element, send_elements, recv_elements;
    unsigned char *send_device, *recv_device; /* device memory of the areas' sizes, which the call is given */
    unsigned char *send_area, *recv_area;     /* the host's copies: what was written there, and what was read back */
    unsigned char *send_copy, *expected;
    size_t send_area_bytes, recv_area_bytes;
    size_t out_counts[TRIAL_RANKS], out_displs[TRIAL_RANKS], in_counts[TRIAL_RANKS], in_displs[TRIAL_RANKS];
};

/* The library's description: arguments and sizes. What a result must be this header computes by itself, from rondo.h's words,
 * so that it is a check of the library's table, too. */
static inline const rondo_collective_t *collective_rule(enum collective what)
{
    static _Thread_local const rondo_collective_t *known[COLLECTIVES];
    const rondo_collective_t *rule = known[what];
    for (int i = 0; rule == NULL && (rule = rondo_collective_describe(i)) != NULL; i++)
        if (strcmp(rule->name, collective_names[what]) != 0)
            rule = NULL;
    known[what] = rule;
    if (rule != NULL)
        return rule;
    printf("FAILED: the library does not describe %s\n", collective_names[what]);
    exit(1);
}
static inline int collective_reduces(enum collective what)
{
    return collective_rule(what)->reduces;
}
static inline int collective_has_root(enum collective what)
{
    return collective_rule(what)->rooted;
}
/* Whether the tests may call it in place and out of place. */
static inline int collective_in_place(enum collective what)
{
    rondo_placement_t placement = collective_rule(what)->placement;
    return placement != RONDO_PLACEMENT_APART && placement != RONDO_PLACEMENT_SHARED;
}
static inline int op_allowed(enum collective what, rondo_op_t op, rondo_datatype_t type)
{
    if (collective_reduces(what) && !op_takes(op, type))
        return 0;
    return !(op == RONDO_AVG && (what == SCAN || what == EXSCAN));
}

static inline void trial_describe(const struct trial *t, char *text, size_t bytes)
{
    snprintf(text, bytes, "%s type %s op %s count %zu root %d in place %d rank %d of %d seed %#llx", collective_names[t->what],
             type_table[t->type].name, op_names[t->op], t->count, t->root, t->in_place, t->rank, t->size,
             (unsigned long long) t->seed);
}

/* A payload starts just after the canary, aligned as the type is and to nothing more. */
static inline unsigned char *trial_payload(const struct trial *t, unsigned char *area)
{
    return area + CANARY_BYTES + type_table[t->type].alignment;
}
static inline int trial_uses_in_place(const struct trial *t)
{
    return t->in_place && (!collective_has_root(t->what) || t->rank == t->root);
}

static inline size_t v_count(const struct trial *t, int from, int to)
{
    return t->count == 0 ? 0 : (t->count + 5 * (size_t) from + 3 * (size_t) to) % (t->count + 3);
}

/* Places the blocks in rank order on even ranks and in reverse on odd ones, with a gap of one element here and there. */
static inline size_t lay_out(const struct trial *t, const size_t *counts, size_t *displs)
{
    size_t at = 0;
    for (int k = 0; k < t->size; k++) {
        int r = t->rank % 2 == 0 ? k : t->size - 1 - k;
        displs[r] = at;
        at += counts[r] + (size_t) (k % 2);
    }
    return at;
}

/* Sets the lengths and allocates. The caller has set all fields from what to comm. */
static inline void trial_prepare(struct trial *t)
{
    MUST(rondo_comm_rank(t->comm, &t->rank));
    MUST(rondo_comm_size(t->comm, &t->size));
    size_t size = (size_t) t->size, count = t->count;
    t->element = type_table[t->type].bytes;
    const rondo_collective_t *rule = collective_rule(t->what);
    t->send_elements = rule->send_extent == RONDO_EXTENT_BLOCKS ? size * count : count;
    t->recv_elements = rule->recv_extent == RONDO_EXTENT_BLOCKS ? size * count : count;
    if (t->what == REDUCE_SCATTER && t->in_place)
        t->recv_elements = size * count;
    if (t->what == ALLGATHERV) {
        for (int r = 0; r < t->size; r++)
            t->in_counts[r] = v_count(t, r, 0);
        t->recv_elements = lay_out(t, t->in_counts, t->in_displs);
        t->send_elements = t->in_counts[t->rank];
    }
    if (t->what == ALLTOALLV) {
        for (int r = 0; r < t->size; r++) {
            t->out_counts[r] = v_count(t, t->rank, r);
            t->in_counts[r] = v_count(t, r, t->rank);
        }
        t->send_elements = lay_out(t, t->out_counts, t->out_displs);
        t->recv_elements = lay_out(t, t->in_counts, t->in_displs);
    }
    if (rule->send_ranks == RONDO_RANKS_NONE || rule->placement == RONDO_PLACEMENT_SHARED ||
        (rule->send_ranks == RONDO_RANKS_ROOT && t->rank != t->root))
        t->send_elements = 0;
    if (rule->recv_ranks == RONDO_RANKS_NONE || (rule->recv_ranks == RONDO_RANKS_ROOT && t->rank != t->root))
        t->recv_elements = 0;
    t->send_area_bytes = 2 * CANARY_BYTES + t->element * (t->send_elements + 1);
    t->recv_area_bytes = 2 * CANARY_BYTES + t->element * (t->recv_elements + 1);
    t->send_device = ranks_allocate(t->send_area_bytes);
    t->recv_device = ranks_allocate(t->recv_area_bytes);
    t->send_area = malloc(t->send_area_bytes);
    t->send_copy = malloc(t->send_area_bytes);
    t->recv_area = malloc(t->recv_area_bytes);
    t->expected = malloc(t->recv_area_bytes);
    if (t->send_area == NULL || t->send_copy == NULL || t->recv_area == NULL || t->expected == NULL) {
        printf("FAILED: out of memory in the test\n");
        exit(1);
    }
}

static inline void trial_release(struct trial *t)
{
    ranks_release(t->send_device);
    ranks_release(t->recv_device);
    free(t->send_area);
    free(t->send_copy);
    free(t->recv_area);
    free(t->expected);
    t->send_device = t->recv_device = t->send_area = t->send_copy = t->recv_area = t->expected = NULL;
}

static inline uint64_t block_index(int block, size_t index)
{
    return (uint64_t) (block + 1) << 40 | index;
}

/* Element `index` (see block_index) of a rank's contribution to this round. */
static inline struct value reduced_input(const struct trial *t, int round, int rank, uint64_t index)
{
    uint64_t h = ranks_hash(ranks_hash(t->seed + 1000003u * (uint64_t) round) ^ ranks_hash(index) ^ (uint64_t) rank << 52);
    struct value v = make_value(t->type, t->op, h, rank, t->size);
    if (op_is_logical(t->op) && (t->size == 1 || t->what == SCAN || t->what == EXSCAN)) {
        /* The interface does not say whether the reduction of a single value is normalized to 0 or 1. */
        v.integer = v.integer != 0;
        v.real = v.real != 0;
    }
    return v;
}
static inline void write_input(const struct trial *t, int round, int rank, uint64_t index, unsigned char *element)
{
    if (collective_reduces(t->what)) {
        encode_value(t->type, reduced_input(t, round, rank, index), element);
        return;
    }
    /* Moved bits must arrive unchanged, whatever they mean in the type. */
    uint64_t bits = ranks_hash(ranks_hash(t->seed + 7919u * (uint64_t) round) ^ ranks_hash(index) ^ (uint64_t) rank << 52);
    for (size_t at = 0; at < t->element; at += sizeof(bits), bits = ranks_hash(bits))
        memcpy(element + at, &bits, t->element - at < sizeof(bits) ? t->element : sizeof(bits));
}
static inline void write_folded(const struct trial *t, int round, int first, int last, uint64_t index, unsigned char *element)
{
    struct value v = reduced_input(t, round, first, index);
    for (int r = first + 1; r <= last; r++)
        v = reduce_values(t->type, t->op, v, reduced_input(t, round, r, index));
    encode_value(t->type, t->op == RONDO_AVG ? divide_value(t->type, v, t->size) : v, element);
}

static inline void fill_inputs(const struct trial *t, int round, unsigned char *send, unsigned char *recv)
{
    const size_t e = t->element, count = t->count;
    int in_place = trial_uses_in_place(t);
    switch (t->what) {
    case BARRIER:
        return;
    case BCAST:
        for (size_t i = 0; t->rank == t->root && i < count; i++)
            write_input(t, round, t->rank, i, recv + i * e);
        return;
    case ALLTOALLV:
        for (int r = 0; r < t->size; r++)
            for (size_t i = 0; i < t->out_counts[r]; i++)
                write_input(t, round, t->rank, block_index(r, i), send + (t->out_displs[r] + i) * e);
        return;
    case REDUCE_SCATTER:
    case ALLTOALL:
    case SCATTER:
        if (t->what == SCATTER && t->rank != t->root)
            return;
        if (in_place && t->what != SCATTER)
            send = recv;
        for (int r = 0; r < t->size; r++)
            for (size_t i = 0; i < count; i++)
                write_input(t, round, t->rank, block_index(r, i), send + ((size_t) r * count + i) * e);
        return;
    case ALLGATHER:
    case ALLGATHERV:
    case GATHER:
        if (in_place)
            send = recv + (t->what == ALLGATHERV ? t->in_displs[t->rank] : (size_t) t->rank * count) * e;
        for (size_t i = 0; i < t->send_elements; i++)
            write_input(t, round, t->rank, i, send + i * e);
        return;
    default: /* allreduce, reduce, scan, exscan, alltonext */
        if (in_place)
            send = recv;
        for (size_t i = 0; i < count; i++)
            write_input(t, round, t->rank, i, send + i * e);
    }
}

static inline void fill_expected(const struct trial *t, int round, unsigned char *out)
{
    const size_t e = t->element, count = t->count;
    int first = 0, last = t->size - 1;
    switch (t->what) {
    case REDUCE_SCATTER:
        for (size_t i = 0; i < count; i++)
            write_folded(t, round, 0, last, block_index(t->rank, i), out + i * e);
        return;
    case BCAST:
        for (size_t i = 0; i < count; i++)
            write_input(t, round, t->root, i, out + i * e);
        return;
    case ALLGATHER:
    case GATHER:
        for (int r = 0; t->recv_elements != 0 && r < t->size; r++)
            for (size_t i = 0; i < count; i++)
                write_input(t, round, r, i, out + ((size_t) r * count + i) * e);
        return;
    case ALLGATHERV:
        for (int r = 0; r < t->size; r++)
            for (size_t i = 0; i < t->in_counts[r]; i++)
                write_input(t, round, r, i, out + (t->in_displs[r] + i) * e);
        return;
    case ALLTOALL:
        for (int r = 0; r < t->size; r++)
            for (size_t i = 0; i < count; i++)
                write_input(t, round, r, block_index(t->rank, i), out + ((size_t) r * count + i) * e);
        return;
    case ALLTOALLV:
        for (int r = 0; r < t->size; r++)
            for (size_t i = 0; i < t->in_counts[r]; i++)
                write_input(t, round, r, block_index(t->rank, i), out + (t->in_displs[r] + i) * e);
        return;
    case SCATTER:
        for (size_t i = 0; !trial_uses_in_place(t) && i < count; i++)
            write_input(t, round, t->root, block_index(t->rank, i), out + i * e);
        return;
    case ALLTONEXT:
        for (size_t i = 0; t->rank > 0 && i < count; i++)
            write_input(t, round, t->rank - 1, i, out + i * e);
        return;
    case BARRIER:
        return;
    default: /* allreduce, reduce, scan, exscan */
        if (t->what == SCAN)
            last = t->rank;
        if (t->what == EXSCAN)
            last = t->rank - 1;
        if (last < 0)
            return;
        for (size_t i = 0; i < t->recv_elements; i++)
            write_folded(t, round, first, last, i, out + i * e);
    }
}

/* Writes new input, and computes the expected result. */
static inline void trial_fill(struct trial *t, int round)
{
    memset(t->send_area, CANARY, t->send_area_bytes);
    memset(t->recv_area, CANARY, t->recv_area_bytes);
    fill_inputs(t, round, trial_payload(t, t->send_area), trial_payload(t, t->recv_area));
    memcpy(t->send_copy, t->send_area, t->send_area_bytes);
    memcpy(t->expected, t->recv_area, t->recv_area_bytes);
    fill_expected(t, round, trial_payload(t, t->expected));
    ranks_put(t->send_device, t->send_area, t->send_area_bytes);
    ranks_put(t->recv_device, t->recv_area, t->recv_area_bytes);
}

/* A blocking form performs the call. Other forms set *request; a persistent request still has to be started. */
static inline rondo_result_t trial_call(const struct trial *t, enum form form, const rondo_attr_t *attr,
                                        rondo_request_t *request)
{
#define IN_FORM(name, ...)                                                                                                     \
    (form == BLOCKING      ? rondo_##name(__VA_ARGS__)                                                                         \
     : form == NONBLOCKING ? rondo_i##name(__VA_ARGS__, request)                                                               \
                           : rondo_##name##_init(__VA_ARGS__, attr, request))
    const void *send = trial_uses_in_place(t) ? RONDO_IN_PLACE : trial_payload(t, t->send_device);
    void *recv = trial_payload(t, t->recv_device);
    int ignored_null = (t->seed & 1) != 0 && collective_has_root(t->what) && t->rank != t->root;
    switch (t->what) {
    case ALLREDUCE:
        return IN_FORM(allreduce, send, recv, t->count, t->type, t->op, t->comm);
    case REDUCE:
        return IN_FORM(reduce, send, ignored_null ? NULL : recv, t->count, t->type, t->op, t->root, t->comm);
    case REDUCE_SCATTER:
        return IN_FORM(reduce_scatter_block, send, recv, t->count, t->type, t->op, t->comm);
    case SCAN:
        return IN_FORM(scan, send, recv, t->count, t->type, t->op, t->comm);
    case EXSCAN:
        return IN_FORM(exscan, send, recv, t->count, t->type, t->op, t->comm);
    case BCAST:
        return IN_FORM(bcast, recv, t->count, t->type, t->root, t->comm);
    case ALLGATHER:
        return IN_FORM(allgather, send, recv, t->count, t->type, t->comm);
    case ALLGATHERV:
        return IN_FORM(allgatherv, send, t->send_elements, recv, t->in_counts, t->in_displs, t->type, t->comm);
    case ALLTOALL:
        return IN_FORM(alltoall, send, recv, t->count, t->type, t->comm);
    case ALLTOALLV:
        return IN_FORM(alltoallv, send, t->out_counts, t->out_displs, recv, t->in_counts, t->in_displs, t->type, t->comm);
    case GATHER:
        return IN_FORM(gather, send, ignored_null ? NULL : recv, t->count, t->type, t->root, t->comm);
    case SCATTER:
        if (trial_uses_in_place(t))
            return IN_FORM(scatter, trial_payload(t, t->send_device), RONDO_IN_PLACE, t->count, t->type, t->root, t->comm);
        return IN_FORM(scatter, ignored_null ? NULL : send, recv, t->count, t->type, t->root, t->comm);
    case ALLTONEXT:
        return IN_FORM(alltonext, send, recv, t->count, t->type, t->comm);
    default:
        return IN_FORM(barrier, t->comm);
    }
#undef IN_FORM
}

/* Compares both buffers, canaries included. Returns 1 if all bytes are as expected. */
static inline int trial_verify(const struct trial *t, const char *how, int round)
{
    char text[256];
    ranks_get(t->send_area, t->send_device, t->send_area_bytes);
    ranks_get(t->recv_area, t->recv_device, t->recv_area_bytes);
    /* In place, reduce_scatter leaves the input's other blocks undefined. */
    size_t skip_from = 0, skip_bytes = 0;
    if (t->what == REDUCE_SCATTER && t->in_place) {
        skip_from = CANARY_BYTES + type_table[t->type].alignment + t->element * t->count;
        skip_bytes = t->element * t->count * (size_t) (t->size - 1);
    }
    size_t bad = 0, first = 0;
    for (size_t i = 0; i < t->recv_area_bytes; i++) {
        if (i == skip_from && skip_bytes != 0)
            i += skip_bytes;
        if (t->recv_area[i] != t->expected[i] && bad++ == 0)
            first = i;
    }
    int sent_same = memcmp(t->send_area, t->send_copy, t->send_area_bytes) == 0;
    if (bad != 0 || !sent_same)
        trial_describe(t, text, sizeof(text));
    long long offset = (long long) first - (long long) (CANARY_BYTES + type_table[t->type].alignment);
    CHECK(bad == 0,
          "%s, %s, round %d: %zu wrong bytes, the first at byte %lld (element %lld) of the receive buffer: %#x, not %#x", text,
          how, round, bad, offset, offset / (long long) t->element, t->recv_area[first], t->expected[first]);
    CHECK(sent_same, "%s, %s, round %d: the send buffer was written to", text, how, round);
    return bad == 0 && sent_same;
}

#endif
