/*
 * `rondo bench gradients`: the gradients of a ResNet-50, one persistent all-reduce a tensor, all of them in one iteration. Each
 * rank starts them in an order of its own that changes from iteration to iteration, or with --order same from the last layer to
 * the first, as they come out of the backward pass. The peer gets them in that order, the same on all ranks, as it must.
 */
#include "tools/bench/bench.h"

#include <stdlib.h>

enum { TENSORS = BENCH_TENSORS };

struct gradients {
    struct bench *bench;
    struct tensor {
        struct call call;
        struct check_buffers buffers;
        struct values values;
    } tensors[TENSORS];
    int order[TENSORS];
    uint64_t random; /* the state of this rank's generator */
};

/* The network: a 7 x 7 convolution, four stages of bottlenecks, a fully connected layer. Each convolution (without bias) is
 * followed by a batch normalization, which has a weight and a bias a channel. */
static int add_convolution(size_t *counts, int used, size_t from, size_t to, size_t width)
{
    counts[used++] = to * from * width * width;
    counts[used++] = to;
    counts[used++] = to;
    return used;
}

void bench_count_elements(size_t counts[TENSORS])
{
    static const int blocks[] = {3, 4, 6, 3};
    size_t in = 64;
    int used = add_convolution(counts, 0, 3, 64, 7);
    for (int stage = 0; stage < 4; stage++) {
        size_t narrow = (size_t) 64 << stage, wide = 4 * narrow;
        for (int block = 0; block < blocks[stage]; block++) {
            used = add_convolution(counts, used, in, narrow, 1);
            used = add_convolution(counts, used, narrow, narrow, 3);
            used = add_convolution(counts, used, narrow, wide, 1);
            if (block == 0) /* the shortcut changes its width too */
                used = add_convolution(counts, used, in, wide, 1);
            in = wide;
        }
    }
    counts[used++] = 1000 * in;
    counts[used++] = 1000;
}

static void choose_order(struct gradients *g)
{
    for (int i = 0; i < TENSORS; i++)
        g->order[i] = TENSORS - 1 - i;
    if (!g->bench->options->same_order)
        bench_shuffle(g->order, TENSORS, &g->random);
}

static rondo_result_t run(void *argument)
{
    struct gradients *g = argument;
    rondo_request_t requests[TENSORS];
    rondo_result_t code = RONDO_SUCCESS;
    choose_order(g);
    for (int i = 0; i < TENSORS && code == RONDO_SUCCESS; i++) {
        requests[i] = g->tensors[g->order[i]].call.requests[0];
        code = rondo_start(requests[i]);
    }
    return code == RONDO_SUCCESS ? rondo_waitall(TENSORS, requests) : code;
}

static rondo_result_t finish(void *argument)
{
    (void) argument;
    return RONDO_SUCCESS;
}

static int run_peer(void *argument, char *message, size_t bytes)
{
    struct gradients *g = argument;
    const struct peer *peer = g->bench->options->peer;
    for (int i = TENSORS - 1; i >= 0; i--) {
        if (peer->prepare(g->bench->peer, &g->tensors[i].call, message, bytes) != 0 ||
            peer->run(g->bench->peer, message, bytes) != 0)
            return 1;
    }
    return 0;
}

static rondo_result_t poison(void *argument)
{
    struct gradients *g = argument;
    rondo_result_t code = RONDO_SUCCESS;
    for (int i = 0; i < TENSORS && code == RONDO_SUCCESS; i++)
        code = check_poison(&g->tensors[i].call, &g->tensors[i].buffers);
    return code;
}

static rondo_result_t check(void *argument, uint64_t *wrong)
{
    struct gradients *g = argument;
    rondo_result_t code = RONDO_SUCCESS;
    for (int i = 0; i < TENSORS && code == RONDO_SUCCESS; i++)
        code = check_result(&g->tensors[i].call, &g->tensors[i].values, &g->tensors[i].buffers, wrong);
    return code;
}

/* Buffers of all tensors in two memories, each with its guards; data; requests. */
static rondo_result_t prepare(struct gradients *g, struct bench_row *row)
{
    struct bench *b = g->bench;
    size_t counts[TENSORS], starts[TENSORS], whole = 0;
    bench_count_elements(counts);
    for (int i = 0; i < TENSORS; i++) {
        starts[i] = whole;
        whole += (counts[i] * sizeof(double) + 2 * CHECK_GUARD + 511) / 512 * 512;
    }
    rondo_result_t code = bench_make_buffers(b, whole, whole);
    for (int i = 0; i < TENSORS && code == RONDO_SUCCESS; i++) {
        struct tensor *t = &g->tensors[i];
        size_t element;
        t->call = bench_call(b);
        if ((code = rondo_datatype_size(t->call.type, &element)) != RONDO_SUCCESS)
            return code;
        if (!call_shape(&t->call, counts[i] * element))
            return RONDO_ERR_MEMORY;
        t->buffers = (struct check_buffers){.device = b->buffers.device,
                                            .input = b->buffers.input + starts[i] + CHECK_GUARD,
                                            .output = b->buffers.output + starts[i] + CHECK_GUARD};
        t->values = (struct values){
            .type = t->call.type, .op = t->call.op, .reduces = true, .ranks = b->rank->size, .seed = 0x6AD0 + (uint64_t) i};
        values_prepare(&t->values, false);
        call_bind(&t->call, t->buffers.input, t->buffers.output);
        row->count += t->call.count;
        row->bytes += t->call.bytes;
        if ((code = check_fill(&t->call, &t->values, &t->buffers, false)) == RONDO_SUCCESS)
            code = call_open(&t->call, FORM_PERSISTENT);
    }
    return code;
}

static rondo_result_t measure(struct gradients *g, struct bench_row *row, const char **what)
{
    struct bench *b = g->bench;
    struct bench_work work = {.argument = g, .run = run, .finish = finish, .peer_run = run_peer};
    if (b->options->check) {
        work.before_last = poison;
        work.after_last = check;
    }
    *what = "prepare";
    rondo_result_t code = prepare(g, row);
    work.bytes = row->bytes;
    *what = "checked run";
    if (code == RONDO_SUCCESS && b->options->check && (code = run(g)) == RONDO_SUCCESS)
        code = check(g, &row->wrong);
    if (code == RONDO_SUCCESS)
        code = bench_time(b, &work, &row->timing, what);
    row->wrong += row->timing.wrong;
    if (code != RONDO_SUCCESS)
        return code;
    *what = "free";
    for (int i = 0; i < TENSORS && code == RONDO_SUCCESS; i++)
        code = call_close(&g->tensors[i].call, FORM_PERSISTENT);
    return code;
}

static int run_whole(struct bench *b, uint64_t *wrong)
{
    struct gradients *g = calloc(1, sizeof(*g));
    struct bench_row row = {0};
    const char *what = "memory";
    rondo_result_t code = RONDO_ERR_MEMORY;
    if (g != NULL) {
        g->bench = b;
        g->random = 1 + (uint64_t) b->rank->rank;
        code = measure(g, &row, &what);
        for (int i = 0; i < TENSORS; i++)
            call_release(&g->tensors[i].call);
    }
    *wrong += row.wrong;
    if (code == RONDO_SUCCESS)
        code = ranks_total(b->rank, &row.wrong, 1);
    free(g);
    if (code != RONDO_SUCCESS)
        return bench_fail(b, what, code);
    *wrong += row.wrong;
    row.algorithm_gbs = (double) row.bytes / row.timing.seconds * 1e-9;
    row.bus_gbs = row.algorithm_gbs * collective_bus_factor(b->options->collective, b->rank->size);
    bench_put_row(b, &row);
    return 0;
}

static int check_options(const struct bench_options *o)
{
    if (o->mode != FORM_PERSISTENT)
        return options_refuse("bench", "gradients are persistent: no --mode %s", bench_mode_name(o->mode));
    if (o->in_place)
        return options_refuse("bench", "gradients have no --in-place form");
    return 0;
}

const struct bench_whole bench_gradients = {.name = "gradients", .check = check_options, .run = run_whole};
