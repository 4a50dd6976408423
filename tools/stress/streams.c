/*
 * The stream program of one rank: several communicators, each with a stream of its own, as training with more than one kind of
 * parallelism has them. The order of all-reduces on a communicator is the same on all ranks, as it must be; the order in which
 * a rank enqueues those of different communicators is its own. Where a collective holds on to the GPU until its peers have come
 * to theirs, that hangs.
 */
#include "tools/stress/stress.h"
#include "tools/stress/data.h"

#include <stdlib.h>

enum { ROUNDS = 3 }; /* of all operations that are enqueued before any is waited for */

struct lane {
    rondo_comm_t comm;
    void *stream;
};

struct program {
    struct rank *rank;
    const struct stress_options *options;
    struct stress_outcome *outcome;
    struct stress_data data;
    struct lane *lanes;
    struct stress_operation *operations; /* number k is on lane k modulo streams; their number is a multiple of streams */
    int *order;                          /* of ROUNDS * collectives; what is enqueued is the entry modulo collectives */
    uint64_t random;
};

static rondo_result_t prepare(struct program *p)
{
    int count = p->options->collectives;
    rondo_result_t code = RONDO_SUCCESS;
    p->lanes = calloc((size_t) p->options->streams, sizeof(*p->lanes));
    p->operations = calloc((size_t) count, sizeof(*p->operations));
    p->order = calloc((size_t) count * ROUNDS, sizeof(*p->order));
    if (p->lanes == NULL || p->operations == NULL || p->order == NULL)
        return RONDO_ERR_MEMORY;
    for (int i = 0; i < p->options->streams && code == RONDO_SUCCESS; i++) {
        code = rondo_comm_dup(p->rank->world, &p->lanes[i].comm);
        if (code == RONDO_SUCCESS)
            code = buffers_make_stream(&p->rank->buffers, &p->lanes[i].stream);
    }
    for (int k = 0; k < count && code == RONDO_SUCCESS; k++)
        code = stress_operation_open(&p->data, &p->operations[k], k, count);
    return code;
}

static rondo_result_t enqueue_all(struct program *p)
{
    int count = p->options->collectives, streams = p->options->streams;
    rondo_result_t code = RONDO_SUCCESS;
    for (int k = 0; k < ROUNDS * count; k++)
        p->order[k] = k;
    if (p->options->random_order)
        stress_interleave(p->order, ROUNDS * count, streams, &p->random);
    for (int k = 0; k < ROUNDS * count && code == RONDO_SUCCESS; k++) {
        const struct lane *lane = &p->lanes[p->order[k] % streams];
        const struct stress_operation *op = &p->operations[p->order[k] % count];
        code = rondo_allreduce_on_stream(op->send, op->receive, op->count, op->type, RONDO_SUM, lane->comm, lane->stream);
    }
    return code;
}

static rondo_result_t wait_all(struct program *p)
{
    rondo_result_t code = RONDO_SUCCESS;
    for (int i = 0; i < p->options->streams; i++)
        p->order[i] = i;
    stress_shuffle(p->order, p->options->streams, &p->random);
    for (int i = 0; i < p->options->streams && code == RONDO_SUCCESS; i++)
        code = buffers_wait(&p->rank->buffers, p->lanes[p->order[i]].stream, p->options->runtime.timeout);
    return code;
}

static rondo_result_t iterate(struct program *p)
{
    int count = p->options->collectives;
    rondo_result_t code = RONDO_SUCCESS;
    for (int iteration = 0; code == RONDO_SUCCESS && iteration < p->options->iterations; iteration++) {
        for (int k = 0; code == RONDO_SUCCESS && k < count; k++)
            code = stress_fill(&p->data, &p->operations[k], iteration);
        if (code == RONDO_SUCCESS)
            code = enqueue_all(p);
        if (code == RONDO_SUCCESS)
            code = wait_all(p);
        for (int k = 0; code == RONDO_SUCCESS && k < count; k++) {
            uint64_t wrong = 0;
            code = stress_check(&p->data, &p->operations[k], iteration, &wrong);
            atomic_fetch_add(&p->outcome->wrong, wrong);
            atomic_fetch_add(&p->outcome->finished, code == RONDO_SUCCESS);
        }
    }
    return code;
}

/* After a failure the communicators are left to the runtime's end, and the streams to the process's. */
static rondo_result_t release(struct program *p, bool failed)
{
    rondo_result_t first = RONDO_SUCCESS;
    for (int i = 0; p->lanes != NULL && !failed && i < p->options->streams; i++) {
        rondo_result_t code = rondo_comm_free(&p->lanes[i].comm);
        first = first != RONDO_SUCCESS ? first : code;
        buffers_free_stream(&p->rank->buffers, p->lanes[i].stream);
    }
    for (int k = 0; p->operations != NULL && k < p->options->collectives; k++) {
        ranks_free_later(p->rank, p->operations[k].send);
        ranks_free_later(p->rank, p->operations[k].receive);
    }
    free(p->lanes);
    free(p->operations);
    free(p->order);
    return first;
}

rondo_result_t stress_streams(struct rank *rank, const struct stress_options *options, struct stress_outcome *outcome,
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
    if (stopped)
        release(&p, true);
    return code;
}
