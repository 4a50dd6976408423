/*
 * The deadlock program of one rank: persistent all-reduces started in an order of the rank's own, with device synchronizations
 * in between, all waited for and verified in every iteration. Without preemption, ranks that hold on to different collectives
 * wait for each other for ever.
 */
#include "tools/stress/stress.h"
#include "tools/stress/data.h"

#include <stdlib.h>
#include <time.h>

static const double synchronizations_per_iteration = 2; /* on average */

struct persistent {
    struct stress_operation operation;
    rondo_request_t request;
    bool started;
};

struct program {
    struct rank *rank;
    const struct stress_options *options;
    struct stress_outcome *outcome;
    struct stress_data data;
    struct persistent *operations;
    int *order;
    uint64_t random; /* the state of this rank's generator */
};

static rondo_result_t prepare(struct program *p)
{
    int count = p->options->collectives;
    p->operations = calloc((size_t) count, sizeof(*p->operations));
    p->order = calloc((size_t) count, sizeof(*p->order));
    if (p->operations == NULL || p->order == NULL)
        return RONDO_ERR_MEMORY;
    rondo_result_t code = RONDO_SUCCESS;
    for (int k = 0; k < count && code == RONDO_SUCCESS; k++) {
        struct stress_operation *op = &p->operations[k].operation;
        rondo_attr_t attr = RONDO_ATTR_DEFAULT;
        code = stress_operation_open(&p->data, op, k, count);
        if (code == RONDO_SUCCESS)
            code = rondo_allreduce_init(op->send, op->receive, op->count, op->type, RONDO_SUM, p->rank->world, &attr,
                                        &p->operations[k].request);
    }
    return code;
}

static void choose_order(struct program *p)
{
    for (int k = 0; k < p->options->collectives; k++)
        p->order[k] = k;
    if (p->options->random_order)
        stress_shuffle(p->order, p->options->collectives, &p->random);
}

static rondo_result_t start_all(struct program *p)
{
    int count = p->options->collectives;
    for (int k = 0; k < count; k++) {
        struct persistent *op = &p->operations[p->order[k]];
        rondo_result_t code = rondo_start(op->request);
        if (code != RONDO_SUCCESS)
            return code;
        op->started = true;
        double draw = (double) (stress_random(&p->random) >> 11) * 0x1p-53;
        if (p->options->synchronize && draw * count < synchronizations_per_iteration)
            code = rondo_device_synchronize(p->rank->runtime);
        if (code != RONDO_SUCCESS)
            return code;
    }
    return RONDO_SUCCESS;
}

static uint64_t nanoseconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec;
}

static rondo_result_t fill_all(struct program *p, int iteration)
{
    rondo_result_t code = RONDO_SUCCESS;
    uint64_t since = nanoseconds(CLOCK_THREAD_CPUTIME_ID);
    for (int k = 0; code == RONDO_SUCCESS && k < p->options->collectives; k++)
        code = stress_fill(&p->data, &p->operations[k].operation, iteration);
    atomic_fetch_add(&p->outcome->fill_ns, nanoseconds(CLOCK_THREAD_CPUTIME_ID) - since);
    return code;
}

static rondo_result_t wait_all(struct program *p, int iteration)
{
    for (int k = 0; k < p->options->collectives; k++) {
        struct persistent *op = &p->operations[k];
        uint64_t wrong = 0;
        rondo_result_t code = rondo_wait(op->request);
        if (code != RONDO_SUCCESS)
            return code;
        op->started = false;
        uint64_t since = nanoseconds(CLOCK_THREAD_CPUTIME_ID);
        if ((code = stress_check(&p->data, &op->operation, iteration, &wrong)) != RONDO_SUCCESS)
            return code;
        atomic_fetch_add(&p->outcome->check_ns, nanoseconds(CLOCK_THREAD_CPUTIME_ID) - since);
        atomic_fetch_add(&p->outcome->finished, 1);
        atomic_fetch_add(&p->outcome->wrong, wrong);
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
    uint64_t since = nanoseconds(CLOCK_MONOTONIC);
    for (int iteration = 0; code == RONDO_SUCCESS && iteration < p->options->iterations; iteration++) {
        code = fill_all(p, iteration);
        choose_order(p);
        if (code == RONDO_SUCCESS)
            code = start_all(p);
        if (code == RONDO_SUCCESS)
            code = wait_all(p, iteration);
    }
    atomic_fetch_add(&p->outcome->program_ns, nanoseconds(CLOCK_MONOTONIC) - since);
    return code;
}

/* After a failure the requests are left to the runtime's end. */
static rondo_result_t release(struct program *p, bool failed)
{
    rondo_result_t first = RONDO_SUCCESS;
    for (int k = 0; p->operations != NULL && k < p->options->collectives; k++) {
        rondo_result_t code = failed ? RONDO_SUCCESS : rondo_request_free(&p->operations[k].request);
        first = first != RONDO_SUCCESS ? first : code;
        ranks_free_later(p->rank, p->operations[k].operation.send);
        ranks_free_later(p->rank, p->operations[k].operation.receive);
    }
    free(p->operations);
    free(p->order);
    return first;
}

rondo_result_t stress_program(struct rank *rank, const struct stress_options *options, struct stress_outcome *outcome,
                              char *message, size_t bytes)
{
    struct program p = {.rank = rank, .options = options, .outcome = outcome, .random = stress_seed(options->seed, rank->rank)};
    stress_data_open(&p.data, &rank->buffers, options->seed, rank->rank, rank->size);
    rondo_result_t code = prepare(&p);
    if (code == RONDO_SUCCESS)
        code = iterate(&p);
    bool stopped = code != RONDO_SUCCESS;
    if (!stopped)
        code = release(&p, false);
    if (code == RONDO_SUCCESS)
        return code;
    stress_note_failure(outcome, code, message, bytes);
    if (stopped && p.operations != NULL)
        count_finished(&p);
    if (stopped)
        release(&p, true);
    return code;
}
