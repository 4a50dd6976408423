/*
 * The deadlock program of one rank: persistent all-reduces started in an order of the rank's own, with device synchronizations
 * in between, all waited for and verified in every iteration. Without preemption, ranks that hold on to different collectives
 * wait for each other for ever.
 *
 * The data: element i of rank r is noise(i) + weight(r), whole numbers small enough for the sum to be exact in a float, so the
 * expected sum needs no look at each rank's data. Both change from one collective and iteration to the next, and the weights
 * tell the ranks apart.
 */
#include "stress.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double smallest_bytes = 256, largest_bytes = 1 << 20;
static const double synchronizations_per_iteration = 2; /* on average */

struct operation {
    rondo_request_t request;
    rondo_datatype_t type; /* float and double take turns */
    size_t count;
    void *send, *receive;
    bool started;
};

struct program {
    struct rank *rank;
    const struct stress_options *options;
    struct stress_outcome *outcome;
    struct operation *operations;
    int *order;
    uint64_t random; /* the state of this rank's generator */
    uint32_t spread; /* noise is below it, a power of two; weights up to it */
};

static uint64_t scramble(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

static uint64_t next_random(struct program *p)
{
    return scramble(p->random += 0x9E3779B97F4A7C15u);
}

/* 32-bit arithmetic throughout, which compilers vectorize. */
static uint32_t noise(uint32_t salt, uint32_t index, uint32_t spread)
{
    uint32_t x = (index ^ salt) * 0x9E3779B1u;
    x = (x ^ (x >> 15)) * 0x85EBCA77u;
    return (x ^ (x >> 13)) & (spread - 1);
}

/* The collective's and iteration's own. */
static uint64_t salt_of(const struct program *p, int operation, int iteration)
{
    return scramble(p->options->seed ^ scramble(((uint64_t) iteration << 16) + (uint64_t) operation + 1));
}

static uint32_t weight_of(const struct program *p, uint64_t salt, int rank)
{
    return 1 + (uint32_t) (scramble(salt + (uint64_t) rank + 1) & (p->spread - 1));
}

static void fill(const struct program *p, struct operation *op, uint64_t salt)
{
    uint32_t weight = weight_of(p, salt, p->rank->rank), salt32 = (uint32_t) salt, count = (uint32_t) op->count;
    float *singles = op->send;
    double *doubles = op->send;
    if (op->type == RONDO_FLOAT) {
        for (uint32_t i = 0; i < count; i++)
            singles[i] = (float) (int32_t) (noise(salt32, i, p->spread) + weight);
    } else {
        for (uint32_t i = 0; i < count; i++)
            doubles[i] = (double) (int32_t) (noise(salt32, i, p->spread) + weight);
    }
    memset(op->receive, 0xA5, op->count * (op->type == RONDO_FLOAT ? sizeof(float) : sizeof(double)));
}

static uint64_t count_wrong(const struct program *p, const struct operation *op, uint64_t salt)
{
    uint32_t weights = 0, salt32 = (uint32_t) salt, count = (uint32_t) op->count, ranks = (uint32_t) p->rank->size, wrong = 0;
    for (int r = 0; r < p->rank->size; r++)
        weights += weight_of(p, salt, r);
    const float *singles = op->receive;
    const double *doubles = op->receive;
    if (op->type == RONDO_FLOAT) {
        for (uint32_t i = 0; i < count; i++)
            wrong += singles[i] != (float) (int32_t) (ranks * noise(salt32, i, p->spread) + weights);
    } else {
        for (uint32_t i = 0; i < count; i++)
            wrong += doubles[i] != (double) (int32_t) (ranks * noise(salt32, i, p->spread) + weights);
    }
    return wrong;
}

static rondo_result_t prepare(struct program *p)
{
    int count = p->options->collectives;
    /* The largest sum, ranks * (spread - 1 + spread), must stay below 2^24. */
    p->spread = 1u << 22;
    while (p->spread > 1 && (uint64_t) p->spread * (uint64_t) p->rank->size > 1u << 22)
        p->spread >>= 1;
    p->operations = calloc((size_t) count, sizeof(*p->operations));
    p->order = calloc((size_t) count, sizeof(*p->order));
    if (p->operations == NULL || p->order == NULL)
        return RONDO_ERR_MEMORY;
    for (int k = 0; k < count; k++) {
        struct operation *op = &p->operations[k];
        double part = count > 1 ? (double) k / (count - 1) : 1.0;
        double bytes = smallest_bytes * pow(largest_bytes / smallest_bytes, part);
        op->type = k % 2 == 0 ? RONDO_FLOAT : RONDO_DOUBLE;
        size_t element = op->type == RONDO_FLOAT ? sizeof(float) : sizeof(double);
        op->count = (size_t) (bytes + 0.5) / element;
        if ((op->send = malloc(op->count * element)) == NULL || (op->receive = malloc(op->count * element)) == NULL)
            return RONDO_ERR_MEMORY;
        rondo_attr_t attr = RONDO_ATTR_DEFAULT;
        rondo_result_t code =
            rondo_allreduce_init(op->send, op->receive, op->count, op->type, RONDO_SUM, p->rank->world, &attr, &op->request);
        if (code != RONDO_SUCCESS)
            return code;
    }
    return RONDO_SUCCESS;
}

static void choose_order(struct program *p)
{
    int count = p->options->collectives;
    for (int k = 0; k < count; k++)
        p->order[k] = k;
    if (!p->options->random_order)
        return;
    for (int k = count - 1; k > 0; k--) {
        int other = (int) (next_random(p) % (uint64_t) (k + 1)), kept = p->order[k];
        p->order[k] = p->order[other];
        p->order[other] = kept;
    }
}

static rondo_result_t start_all(struct program *p)
{
    int count = p->options->collectives;
    for (int k = 0; k < count; k++) {
        struct operation *op = &p->operations[p->order[k]];
        rondo_result_t code = rondo_start(op->request);
        if (code != RONDO_SUCCESS)
            return code;
        op->started = true;
        double draw = (double) (next_random(p) >> 11) * 0x1p-53;
        if (p->options->synchronize && draw * count < synchronizations_per_iteration)
            code = rondo_device_synchronize(p->rank->runtime);
        if (code != RONDO_SUCCESS)
            return code;
    }
    return RONDO_SUCCESS;
}

static rondo_result_t wait_all(struct program *p, int iteration)
{
    for (int k = 0; k < p->options->collectives; k++) {
        struct operation *op = &p->operations[k];
        rondo_result_t code = rondo_wait(op->request);
        if (code != RONDO_SUCCESS)
            return code;
        op->started = false;
        atomic_fetch_add(&p->outcome->finished, 1);
        atomic_fetch_add(&p->outcome->wrong, count_wrong(p, op, salt_of(p, k, iteration)));
    }
    return RONDO_SUCCESS;
}

/* After a failure: what has finished nevertheless counts. */
static void count_finished(struct program *p)
{
    for (int k = 0; k < p->options->collectives; k++) {
        int done = 0;
        if (p->operations[k].started && rondo_test(p->operations[k].request, &done) == RONDO_SUCCESS && done)
            atomic_fetch_add(&p->outcome->finished, 1);
    }
}

static rondo_result_t iterate(struct program *p)
{
    rondo_result_t code = RONDO_SUCCESS;
    for (int iteration = 0; code == RONDO_SUCCESS && iteration < p->options->iterations; iteration++) {
        for (int k = 0; k < p->options->collectives; k++)
            fill(p, &p->operations[k], salt_of(p, k, iteration));
        choose_order(p);
        code = start_all(p);
        if (code == RONDO_SUCCESS)
            code = wait_all(p, iteration);
    }
    return code;
}

/* After a failure the requests are left to the runtime's end. */
static rondo_result_t release(struct program *p, bool failed)
{
    rondo_result_t first = RONDO_SUCCESS;
    for (int k = 0; p->operations != NULL && k < p->options->collectives; k++) {
        rondo_result_t code = failed ? RONDO_SUCCESS : rondo_request_free(&p->operations[k].request);
        first = first != RONDO_SUCCESS ? first : code;
        ranks_free_later(p->rank, p->operations[k].send);
        ranks_free_later(p->rank, p->operations[k].receive);
    }
    free(p->operations);
    free(p->order);
    return first;
}

rondo_result_t stress_program(struct rank *rank, const struct stress_options *options, struct stress_outcome *outcome,
                              char *message, size_t bytes)
{
    struct program p = {.rank = rank,
                        .options = options,
                        .outcome = outcome,
                        .random = scramble(options->seed + (uint64_t) rank->rank * 0xD1342543DE82EF95u)};
    rondo_result_t code = prepare(&p);
    if (code == RONDO_SUCCESS)
        code = iterate(&p);
    bool stopped = code != RONDO_SUCCESS;
    if (!stopped)
        code = release(&p, false);
    if (code == RONDO_SUCCESS)
        return code;
    snprintf(message, bytes, "%s", rondo_last_error());
    atomic_fetch_add(&outcome->failed, 1);
    if (code == RONDO_ERR_TIMEOUT)
        atomic_fetch_add(&outcome->deadlock, 1);
    if (stopped && p.operations != NULL)
        count_finished(&p);
    if (stopped)
        release(&p, true);
    return code;
}
