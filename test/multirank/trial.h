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
    REDUCE_SCATTER_BLOCK,
    REDUCE_SCATTER,
    SCAN,
    EXSCAN,
    BCAST,
    ALLGATHER,
    ALLGATHERV,
    ALLTOALL,
    ALLTOALLV,
    ALLTOALLW,
    GATHER,
    GATHERV,
    SCATTER,
    SCATTERV,
    ALLTONEXT,
    BARRIER,
    NEIGHBOR_ALLGATHER,
    NEIGHBOR_ALLGATHERV,
    NEIGHBOR_ALLTOALL,
    NEIGHBOR_ALLTOALLV,
    NEIGHBOR_ALLTOALLW,
    COLLECTIVES
};
/* In the library's words, which tell a collective's description. */
static const char *const collective_names[COLLECTIVES] = {"allreduce",
                                                          "reduce",
                                                          "reduce_scatter_block",
                                                          "reduce_scatter",
                                                          "scan",
                                                          "exscan",
                                                          "bcast",
                                                          "allgather",
                                                          "allgatherv",
                                                          "alltoall",
                                                          "alltoallv",
                                                          "alltoallw",
                                                          "gather",
                                                          "gatherv",
                                                          "scatter",
                                                          "scatterv",
                                                          "alltonext",
                                                          "barrier",
                                                          "neighbor_allgather",
                                                          "neighbor_allgatherv",
                                                          "neighbor_alltoall",
                                                          "neighbor_alltoallv",
                                                          "neighbor_alltoallw"};

enum form { BLOCKING, NONBLOCKING, PERSISTENT, FORMS };
static const char *const form_names[FORMS] = {"blocking", "nonblocking", "persistent"};

enum { CANARY_BYTES = 64, CANARY = 0xa5, TRIAL_RANKS = 260, TRIAL_EDGES = 16 /* of a rank, each way */ };

/* A communicator's graph, as rondo.h's words say: each end of an edge has the rank at the other end (-1: there is none) and the
 * edge's place in that rank's list. */
struct edge {
    int peer, place;
};
struct graph {
    int outs[TRIAL_RANKS], ins[TRIAL_RANKS];
    struct edge out[TRIAL_RANKS][TRIAL_EDGES], in[TRIAL_RANKS][TRIAL_EDGES];
};

struct trial {
    const struct graph *graph; /* comm's; NULL: none, and no neighbourhood collective is called */
    int outs, ins;             /* blocks of the input and the output, where there are some */
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
    /* What alltoallw is given instead: types, elements of them, and bytes. */
    size_t w_out_counts[TRIAL_RANKS], w_out_displs[TRIAL_RANKS], w_in_counts[TRIAL_RANKS], w_in_displs[TRIAL_RANKS];
    rondo_datatype_t out_types[TRIAL_RANKS], in_types[TRIAL_RANKS];
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

/* Whether the ranks' devices execute the collective with this operator, which is allowed. If not, calls are refused. */
static inline int op_runs(enum collective what, rondo_op_t op, rondo_datatype_t type)
{
    return ranks_device() == RONDO_DEVICE_HOST || !collective_reduces(what) || op_runs_on_gpus(op, type);
}

static inline void trial_describe(const struct trial *t, char *text, size_t bytes)
{
    snprintf(text, bytes, "%s type %s op %s count %zu root %d in place %d rank %d of %d seed %#llx", collective_names[t->what],
             type_table[t->type].name, op_names[t->op], t->count, t->root, t->in_place, t->rank, t->size,
             (unsigned long long) t->seed);
}

static inline int is_neighborhood(enum collective what)
{
    return what >= NEIGHBOR_ALLGATHER && what <= NEIGHBOR_ALLTOALLW;
}

/* ---- graphs ---- */

static inline void add_edge(struct graph *graph, int from, int to)
{
    if (graph->outs[from] == TRIAL_EDGES || graph->ins[to] == TRIAL_EDGES)
        return;
    graph->out[from][graph->outs[from]] = (struct edge){to, graph->ins[to]};
    graph->in[to][graph->ins[to]++] = (struct edge){from, graph->outs[from]++};
}

/* Up to three edges from each rank, also several to one, and to itself. */
static inline void random_edges(struct graph *graph, int size, uint64_t plan)
{
    memset(graph, 0, sizeof(*graph));
    for (int round = 0; round < 3; round++)
        for (int from = 0; from < size; from++)
            if (ranks_below(&plan, 3) > 0)
                add_edge(graph, from, ranks_below(&plan, size));
}

/* Neighbours in a grid: its points in row-major order, each with two edges a dimension. */
static inline void grid_edges(struct graph *graph, int ndims, const int *dims, const int *periods)
{
    int size = 1;
    memset(graph, 0, sizeof(*graph));
    for (int d = 0; d < ndims; d++)
        size *= dims[d];
    for (int rank = 0; rank < size; rank++) {
        int stride = size;
        for (int d = 0; d < ndims; d++) {
            stride /= dims[d];
            const int at = rank / stride % dims[d], below = rank - at * stride;
            for (int up = 0; up < 2; up++) {
                int to = up ? at + 1 : at - 1;
                int peer = to >= 0 && to < dims[d] ? below + to * stride
                           : periods[d]            ? below + (up ? 0 : dims[d] - 1) * stride
                                                   : -1;
                graph->out[rank][graph->outs[rank]++] = (struct edge){peer, 2 * d + !up};
                graph->in[rank][graph->ins[rank]++] = (struct edge){peer, 2 * d + !up};
            }
        }
    }
}

/* Makes a communicator of all ranks of another, with a graph of a kind that the seed says, and fills in the graph. */
static inline void make_graph(rondo_comm_t comm, uint64_t seed, struct graph *graph, rondo_comm_t *made)
{
    int rank, size, sources[TRIAL_EDGES], destinations[TRIAL_EDGES];
    MUST(rondo_comm_rank(comm, &rank));
    MUST(rondo_comm_size(comm, &size));
    if (seed % 2 == 0) {
        int two = size % 2 == 0 ? 2 : 1, kind = (int) (seed / 2 % 4);
        const int dims[3] = {kind % 2 == 0 ? two : size, kind % 2 == 0 ? size / two : 1, 1};
        const int periods[3] = {kind < 2, kind != 2, 1}, ndims = kind == 3 ? 1 : 3;
        grid_edges(graph, ndims, dims, periods);
        MUST(rondo_cart_create(comm, ndims, dims, periods, made));
        return;
    }
    random_edges(graph, size, seed);
    for (int i = 0; i < graph->ins[rank]; i++)
        sources[i] = graph->in[rank][i].peer;
    for (int i = 0; i < graph->outs[rank]; i++)
        destinations[i] = graph->out[rank][i].peer;
    MUST(rondo_graph_create(comm, graph->ins[rank], sources, graph->outs[rank], destinations, made));
}

/* ---- trials ---- */

/* A payload starts just after the canary, aligned as the type is and to nothing more. */
static inline unsigned char *trial_payload(const struct trial *t, unsigned char *area)
{
    return area + CANARY_BYTES + type_table[t->type].alignment;
}
static inline int trial_uses_in_place(const struct trial *t)
{
    return t->in_place && (!collective_has_root(t->what) || t->rank == t->root);
}

/* Elements of a block, where blocks have sizes of their own: some of about one size, all of one size, one rank's alone, or a
 * few large ones among many small and empty ones. */
static inline size_t v_count(const struct trial *t, int from, int to)
{
    const size_t a = (size_t) from, b = (size_t) to;
    switch (t->count == 0 ? 4 : t->seed / 2 % 4) {
    case 0:
        return (t->count + 5 * a + 3 * b) % (t->count + 3);
    case 1:
        return t->count;
    case 2:
        return (a + b) % (size_t) t->size == t->seed / 8 % (size_t) t->size ? t->count : 0;
    case 3:
        return 4 * t->count >> 4 * ((a + b + t->seed / 8) % 5);
    default:
        return 0;
    }
}

/* The same between two ranks that send each other as much. */
static inline size_t v_count_between(const struct trial *t, int one, int other)
{
    return t->in_place ? v_count(t, one < other ? one : other, one < other ? other : one) : v_count(t, one, other);
}

/* Whether blocks of sizes of their own are sent to each rank, or neighbour. */
static inline int is_uneven_alltoall(const struct trial *t)
{
    return t->what == ALLTOALLV || t->what == ALLTOALLW || t->what == NEIGHBOR_ALLTOALLV || t->what == NEIGHBOR_ALLTOALLW;
}

/* The rank that gives the block of the output, and the block of its input that this is; rank -1: the block is not written. */
static inline struct edge origin_of(const struct trial *t, int block)
{
    return is_neighborhood(t->what) ? t->graph->in[t->rank][block] : (struct edge){block, t->rank};
}
/* The number by which a block's size is computed: the other rank's, or the edge's. */
static inline size_t out_count(const struct trial *t, int from, int block)
{
    return is_neighborhood(t->what) ? v_count(t, from, block) : v_count_between(t, from, block);
}

/* Places the blocks in rank order on even ranks and in reverse on odd ones, with a gap of one element here and there. */
static inline size_t lay_out(const struct trial *t, int blocks, const size_t *counts, size_t *displs)
{
    size_t at = 0;
    for (int k = 0; k < blocks; k++) {
        int r = t->rank % 2 == 0 ? k : blocks - 1 - k;
        displs[r] = at;
        at += counts[r] + (size_t) (k % 2);
    }
    return at;
}

/* Each block has the trial's type or, for a third of the pairs on one of their sides, is as many single bytes. */
static inline void give_types(struct trial *t)
{
    for (int r = 0; r < t->outs; r++) {
        const int bytes = (t->rank + 2 * r) % 3 == 0;
        t->out_types[r] = bytes ? RONDO_UINT8 : t->type;
        t->w_out_counts[r] = t->out_counts[r] * (bytes ? t->element : 1);
        t->w_out_displs[r] = t->out_displs[r] * t->element;
    }
    for (int r = 0; r < t->ins; r++) {
        const int bytes = (r + 2 * t->rank + 1) % 3 == 0;
        t->in_types[r] = bytes ? RONDO_UINT8 : t->type;
        t->w_in_counts[r] = t->in_counts[r] * (bytes ? t->element : 1);
        t->w_in_displs[r] = t->in_displs[r] * t->element;
    }
}

/* Sets the lengths and allocates. The caller has set all fields from what to comm. */
static inline void trial_prepare(struct trial *t)
{
    MUST(rondo_comm_rank(t->comm, &t->rank));
    MUST(rondo_comm_size(t->comm, &t->size));
    size_t size = (size_t) t->size, count = t->count;
    t->outs = is_neighborhood(t->what) ? t->graph->outs[t->rank] : t->size;
    t->ins = is_neighborhood(t->what) ? t->graph->ins[t->rank] : t->size;
    t->element = type_table[t->type].bytes;
    const rondo_collective_t *rule = collective_rule(t->what);
    t->send_elements = rule->send_extent == RONDO_EXTENT_BLOCKS ? (size_t) t->outs * count : count;
    t->recv_elements = rule->recv_extent == RONDO_EXTENT_BLOCKS ? (size_t) t->ins * count : count;
    if (t->what == REDUCE_SCATTER_BLOCK && t->in_place)
        t->recv_elements = size * count;
    if (t->what == ALLGATHERV || t->what == GATHERV) {
        for (int r = 0; r < t->size; r++)
            t->in_counts[r] = v_count(t, r, 0);
        t->recv_elements = lay_out(t, t->size, t->in_counts, t->in_displs);
        t->send_elements = t->in_counts[t->rank];
    }
    if (t->what == NEIGHBOR_ALLGATHERV) {
        for (int l = 0; l < t->ins; l++)
            t->in_counts[l] = origin_of(t, l).peer < 0 ? 3 : v_count(t, origin_of(t, l).peer, 0);
        t->recv_elements = lay_out(t, t->ins, t->in_counts, t->in_displs);
        t->send_elements = v_count(t, t->rank, 0);
    }
    if (t->what == SCATTERV) {
        for (int r = 0; r < t->size; r++)
            t->out_counts[r] = v_count(t, 0, r);
        t->send_elements = lay_out(t, t->size, t->out_counts, t->out_displs);
        t->recv_elements = t->out_counts[t->rank];
    }
    if (t->what == REDUCE_SCATTER) {
        t->send_elements = 0;
        for (int r = 0; r < t->size; r++) {
            t->in_counts[r] = v_count(t, r, 0);
            t->out_displs[r] = t->send_elements;
            t->send_elements += t->in_counts[r];
        }
        t->recv_elements = t->in_place ? t->send_elements : t->in_counts[t->rank];
    }
    if (is_uneven_alltoall(t)) {
        for (int r = 0; r < t->outs; r++)
            t->out_counts[r] = out_count(t, t->rank, r);
        for (int r = 0; r < t->ins; r++)
            t->in_counts[r] = origin_of(t, r).peer < 0 ? 3 : out_count(t, origin_of(t, r).peer, origin_of(t, r).place);
        t->send_elements = lay_out(t, t->outs, t->out_counts, t->out_displs);
        t->recv_elements = lay_out(t, t->ins, t->in_counts, t->in_displs);
        give_types(t);
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

/* What the elements of a rank's block are drawn from. block: of the rank's contribution, or WHOLE_INPUT if it has but one. */
enum { WHOLE_INPUT = -1 };
static inline uint64_t block_key(const struct trial *t, int round, int block)
{
    return ranks_hash(ranks_hash(t->seed + 1000003u * (uint64_t) round) ^ ranks_hash((uint64_t) (block + 1) << 40));
}

/* Element `index` of a rank's contribution to a reduction. */
static inline struct value reduced_input(const struct trial *t, rondo_datatype_t type, rondo_op_t op, int size, uint64_t key,
                                         int rank, size_t index)
{
    struct value v = make_value(type, op, ranks_hash((key ^ (uint64_t) rank << 52) + index), rank, size);
    if (op_is_logical(op) && (size == 1 || t->what == SCAN || t->what == EXSCAN)) {
        /* The interface does not say whether the reduction of a single value is normalized to 0 or 1. */
        v.integer = v.integer != 0;
        v.real = v.real != 0;
    }
    return v;
}

/* Writes count elements, each reduced from those of the ranks from first to last. divided: by their number, too, if op is the
 * average. */
static inline __attribute__((always_inline)) void write_reduced_as(const struct trial *t, rondo_datatype_t type, rondo_op_t op,
                                                                   int divided, uint64_t key, int first, int last, size_t count,
                                                                   unsigned char *out)
{
    const int size = t->size;
    for (size_t i = 0; i < count; i++) {
        struct value v = reduced_input(t, type, op, size, key, first, i);
        for (int r = first + 1; r <= last; r++)
            v = reduce_values(type, op, v, reduced_input(t, type, op, size, key, r, i));
        encode_value(type, divided && op == RONDO_AVG ? divide_value(type, v, size) : v, out + i * type_table[type].bytes);
    }
}

/* The same, compiled for each of the types that have the longest buffers: most of a test's time goes here. */
static inline void write_reduced(const struct trial *t, int divided, uint64_t key, int first, int last, size_t count,
                                 unsigned char *out)
{
#define COMPILED_FOR(sum)                                                                                                      \
    case sum:                                                                                                                  \
        write_reduced_as(t, sum, RONDO_SUM, 0, key, first, last, count, out);                                                  \
        return
    switch (t->op == RONDO_SUM ? (int) t->type : -1) {
        COMPILED_FOR(RONDO_INT8);
        COMPILED_FOR(RONDO_UINT64);
        COMPILED_FOR(RONDO_FLOAT16);
        COMPILED_FOR(RONDO_FLOAT);
        COMPILED_FOR(RONDO_FLOAT8E4M3);
    default:
        write_reduced_as(t, t->type, t->op, divided, key, first, last, count, out);
    }
#undef COMPILED_FOR
}

/* Writes count elements of a rank's contribution, the first ones of a block. */
static inline void write_input(const struct trial *t, int round, int rank, int block, size_t count, unsigned char *out)
{
    const uint64_t key = block_key(t, round, block);
    if (collective_reduces(t->what)) {
        write_reduced(t, 0, key, rank, rank, count, out);
        return;
    }
    /* Moved bits must arrive unchanged, whatever they mean in the type. */
    const size_t bytes = count * t->element;
    for (size_t at = 0; at < bytes; at += sizeof(uint64_t)) {
        uint64_t bits = ranks_hash((key ^ (uint64_t) rank << 52) + at);
        memcpy(out + at, &bits, bytes - at < sizeof(bits) ? bytes - at : sizeof(bits));
    }
}

/* Writes the results of count elements of a block, from the contributions of the ranks from first to last. */
static inline void write_folded(const struct trial *t, int round, int first, int last, int block, size_t count,
                                unsigned char *out)
{
    write_reduced(t, 1, block_key(t, round, block), first, last, count, out);
}

static inline void fill_inputs(const struct trial *t, int round, unsigned char *send, unsigned char *recv)
{
    const size_t e = t->element, count = t->count;
    int in_place = trial_uses_in_place(t);
    switch (t->what) {
    case BARRIER:
        return;
    case BCAST:
        if (t->rank == t->root)
            write_input(t, round, t->rank, WHOLE_INPUT, count, recv);
        return;
    case ALLTOALLV:
    case ALLTOALLW:
    case NEIGHBOR_ALLTOALLV:
    case NEIGHBOR_ALLTOALLW:
    case SCATTERV:
        if (t->what == SCATTERV && t->rank != t->root)
            return;
        if (in_place && t->what != SCATTERV) /* where the blocks of the same ranks are received */
            send = recv;
        for (int r = 0; r < t->outs; r++)
            write_input(t, round, t->rank, r, t->out_counts[r], send + t->out_displs[r] * e);
        return;
    case REDUCE_SCATTER:
        for (int r = 0; r < t->size; r++)
            write_input(t, round, t->rank, r, t->in_counts[r], (in_place ? recv : send) + t->out_displs[r] * e);
        return;
    case REDUCE_SCATTER_BLOCK:
    case ALLTOALL:
    case NEIGHBOR_ALLTOALL:
    case SCATTER:
        if (t->what == SCATTER && t->rank != t->root)
            return;
        if (in_place && t->what != SCATTER)
            send = recv;
        for (int r = 0; r < t->outs; r++)
            write_input(t, round, t->rank, r, count, send + (size_t) r * count * e);
        return;
    case ALLGATHER:
    case ALLGATHERV:
    case GATHER:
    case GATHERV:
    case NEIGHBOR_ALLGATHER:
    case NEIGHBOR_ALLGATHERV:
        if (in_place)
            send = recv + (t->what == ALLGATHERV || t->what == GATHERV ? t->in_displs[t->rank] : (size_t) t->rank * count) * e;
        write_input(t, round, t->rank, WHOLE_INPUT, t->send_elements, send);
        return;
    default: /* allreduce, reduce, scan, exscan, alltonext */
        if (in_place)
            send = recv;
        write_input(t, round, t->rank, WHOLE_INPUT, count, send);
    }
}

static inline void fill_expected(const struct trial *t, int round, unsigned char *out)
{
    const size_t e = t->element, count = t->count;
    int first = 0, last = t->size - 1;
    switch (t->what) {
    case REDUCE_SCATTER_BLOCK:
    case REDUCE_SCATTER:
        write_folded(t, round, 0, last, t->rank, t->what == REDUCE_SCATTER ? t->in_counts[t->rank] : count, out);
        return;
    case BCAST:
        write_input(t, round, t->root, WHOLE_INPUT, count, out);
        return;
    case ALLGATHER:
    case GATHER:
        for (int r = 0; t->recv_elements != 0 && r < t->size; r++)
            write_input(t, round, r, WHOLE_INPUT, count, out + (size_t) r * count * e);
        return;
    case ALLGATHERV:
    case GATHERV:
        for (int r = 0; (t->what == ALLGATHERV || t->rank == t->root) && r < t->size; r++)
            write_input(t, round, r, WHOLE_INPUT, t->in_counts[r], out + t->in_displs[r] * e);
        return;
    case ALLTOALL:
        for (int r = 0; r < t->size; r++)
            write_input(t, round, r, t->rank, count, out + (size_t) r * count * e);
        return;
    case ALLTOALLV:
    case ALLTOALLW:
    case NEIGHBOR_ALLTOALLV:
    case NEIGHBOR_ALLTOALLW:
        for (int r = 0; r < t->ins; r++)
            if (origin_of(t, r).peer >= 0)
                write_input(t, round, origin_of(t, r).peer, origin_of(t, r).place, t->in_counts[r], out + t->in_displs[r] * e);
        return;
    case NEIGHBOR_ALLTOALL:
    case NEIGHBOR_ALLGATHER:
        for (int r = 0; r < t->ins; r++)
            if (origin_of(t, r).peer >= 0)
                write_input(t, round, origin_of(t, r).peer, t->what == NEIGHBOR_ALLGATHER ? WHOLE_INPUT : origin_of(t, r).place,
                            count, out + (size_t) r * count * e);
        return;
    case NEIGHBOR_ALLGATHERV:
        for (int r = 0; r < t->ins; r++)
            if (origin_of(t, r).peer >= 0)
                write_input(t, round, origin_of(t, r).peer, WHOLE_INPUT, t->in_counts[r], out + t->in_displs[r] * e);
        return;
    case SCATTER:
    case SCATTERV:
        if (!trial_uses_in_place(t))
            write_input(t, round, t->root, t->rank, t->what == SCATTERV ? t->out_counts[t->rank] : count, out);
        return;
    case ALLTONEXT:
        if (t->rank > 0)
            write_input(t, round, t->rank - 1, WHOLE_INPUT, count, out);
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
        write_folded(t, round, first, last, WHOLE_INPUT, t->recv_elements, out);
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
    int ignored = collective_has_root(t->what) && t->rank != t->root, ignored_null = (t->seed & 1) != 0 && ignored;
    /* Arrays that only the root's are significant of, and in place what is sent is not said again. */
    static const size_t senseless[TRIAL_RANKS] = {[0 ... TRIAL_RANKS - 1] = (size_t) -7};
    const size_t *null_or_senseless = ignored_null || (t->seed & 1) != 0 ? NULL : senseless;
#define UNLESS(condition, array) ((condition) ? null_or_senseless : (array))
    const int in_place = trial_uses_in_place(t);
    switch (t->what) {
    case ALLREDUCE:
        return IN_FORM(allreduce, send, recv, t->count, t->type, t->op, t->comm);
    case REDUCE:
        return IN_FORM(reduce, send, ignored_null ? NULL : recv, t->count, t->type, t->op, t->root, t->comm);
    case REDUCE_SCATTER:
        return IN_FORM(reduce_scatter, send, recv, t->in_counts, t->type, t->op, t->comm);
    case REDUCE_SCATTER_BLOCK:
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
        return IN_FORM(alltoallv, send, UNLESS(in_place, t->out_counts), UNLESS(in_place, t->out_displs), recv, t->in_counts,
                       t->in_displs, t->type, t->comm);
    case ALLTOALLW:
        return IN_FORM(alltoallw, send, UNLESS(in_place, t->w_out_counts), UNLESS(in_place, t->w_out_displs),
                       in_place ? NULL : t->out_types, recv, t->w_in_counts, t->w_in_displs, t->in_types, t->comm);
    case GATHERV:
        return IN_FORM(gatherv, send, in_place ? 12345 : t->in_counts[t->rank], ignored_null ? NULL : recv,
                       UNLESS(ignored, t->in_counts), UNLESS(ignored, t->in_displs), t->type, t->root, t->comm);
    case SCATTERV:
        if (in_place)
            return IN_FORM(scatterv, trial_payload(t, t->send_device), t->out_counts, t->out_displs, RONDO_IN_PLACE, 12345,
                           t->type, t->root, t->comm);
        return IN_FORM(scatterv, ignored_null ? NULL : send, UNLESS(ignored, t->out_counts), UNLESS(ignored, t->out_displs),
                       recv, t->out_counts[t->rank], t->type, t->root, t->comm);
    case GATHER:
        return IN_FORM(gather, send, ignored_null ? NULL : recv, t->count, t->type, t->root, t->comm);
    case SCATTER:
        if (trial_uses_in_place(t))
            return IN_FORM(scatter, trial_payload(t, t->send_device), RONDO_IN_PLACE, t->count, t->type, t->root, t->comm);
        return IN_FORM(scatter, ignored_null ? NULL : send, recv, t->count, t->type, t->root, t->comm);
    case NEIGHBOR_ALLGATHER:
        return IN_FORM(neighbor_allgather, send, recv, t->count, t->type, t->comm);
    case NEIGHBOR_ALLGATHERV:
        return IN_FORM(neighbor_allgatherv, send, t->send_elements, recv, t->in_counts, t->in_displs, t->type, t->comm);
    case NEIGHBOR_ALLTOALL:
        return IN_FORM(neighbor_alltoall, send, recv, t->count, t->type, t->comm);
    case NEIGHBOR_ALLTOALLV:
        return IN_FORM(neighbor_alltoallv, send, t->out_counts, t->out_displs, recv, t->in_counts, t->in_displs, t->type,
                       t->comm);
    case NEIGHBOR_ALLTOALLW:
        return IN_FORM(neighbor_alltoallw, send, t->w_out_counts, t->w_out_displs, t->out_types, recv, t->w_in_counts,
                       t->w_in_displs, t->in_types, t->comm);
    case ALLTONEXT:
        return IN_FORM(alltonext, send, recv, t->count, t->type, t->comm);
    default:
        return IN_FORM(barrier, t->comm);
    }
#undef UNLESS
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
    if ((t->what == REDUCE_SCATTER_BLOCK || t->what == REDUCE_SCATTER) && t->in_place) {
        const size_t result = t->what == REDUCE_SCATTER ? t->in_counts[t->rank] : t->count;
        skip_from = CANARY_BYTES + type_table[t->type].alignment + t->element * result;
        skip_bytes = t->element * (t->recv_elements - result);
    }
    size_t bad = 0, first = 0, skip_end = skip_from + skip_bytes;
    int received_same = memcmp(t->recv_area, t->expected, skip_from) == 0 &&
                        memcmp(t->recv_area + skip_end, t->expected + skip_end, t->recv_area_bytes - skip_end) == 0;
    for (size_t i = 0; !received_same && i < t->recv_area_bytes; i++) {
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
