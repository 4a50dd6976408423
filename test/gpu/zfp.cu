/*
 * Tests device/codec/cuda_codec.h on a GPU: random slice operations whose slots hold ZFP streams, many at a time, against
 * rondo_codec_run on the host, bit by bit and with every byte around them. With --speed it measures the code alone instead.
 * Usage: zfp [--seed N] [--rounds N] | --speed.
 */
extern "C" {
#include "device/codec/codec.h"
#include "device/codec/zfp_stream.h"
#include "device/reduce/reduce.h"
}
#include "device/codec/cuda_codec.h"

#include <cuda_runtime.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(call)                                                                                                            \
    do {                                                                                                                       \
        cudaError_t error_ = (call);                                                                                           \
        if (error_ != cudaSuccess) {                                                                                           \
            printf("line %d: %s\n", __LINE__, cudaGetErrorString(error_));                                                     \
            exit(1);                                                                                                           \
        }                                                                                                                      \
    } while (0)

enum { THREADS = 512, CASES = 256, ARENA = 64 << 20, GUARD = 64, SOURCES = 4, REMOTES = 3 };

__global__ void __launch_bounds__(THREADS, 1) run(const struct rondo_slice_op *slice_ops, uint32_t threads)
{
    __shared__ struct rondo_slice_op slice_op;
    if (threadIdx.x == 0)
        slice_op = slice_ops[blockIdx.x];
    __syncthreads();
    if (threadIdx.x < threads)
        rondo_codec_run_part(&slice_op, threadIdx.x, threads);
}

/* ---- random slice operations ---- */

static uint64_t random_state = 88172645463325252u;

static uint64_t random_bits(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state * 2685821657736338717u;
}

static uint32_t random_below(uint32_t limit)
{
    return (uint32_t) ((random_bits() >> 33) % limit);
}

static double random_value(int style)
{
    double value = (double) (int64_t) random_bits() / 9.3e18;
    if (style == 1)
        value = ldexp(value, (int) random_below(60) - 30);
    if (style == 2 && random_below(10) == 0)
        value = random_below(2) ? (double) NAN : HUGE_VAL;
    return style == 3 ? 0 : value;
}

static char *before, *wanted;
static size_t used;

static size_t reserve(size_t bytes, size_t alignment, size_t beyond)
{
    size_t at = (used + GUARD + alignment - 1) / alignment * alignment + beyond;
    used = at + bytes + GUARD;
    if (used > ARENA) {
        printf("the test's arena is too small\n");
        exit(1);
    }
    return at;
}

static const rondo_datatype_t types[] = {RONDO_FLOAT, RONDO_DOUBLE, RONDO_FLOAT16, RONDO_BFLOAT16};
static const uint8_t bytes_of[] = {4, 8, 2, 2};
static const uint32_t rates[] = {32, 64, 16, 16};
static const rondo_op_t ops[] = {RONDO_SUM, RONDO_MIN, RONDO_MAX};

static void fill(size_t at, uint64_t count, int type, int style)
{
    for (uint64_t i = 0; i < count; i++) {
        float single = (float) random_value(style);
        double real = random_value(style);
        if (type == 0)
            memcpy(before + at + 4 * i, &single, 4);
        else if (type == 1)
            memcpy(before + at + 8 * i, &real, 8);
        else
            rondo_narrow(before + at + 2 * i, &single, 1, types[type]);
    }
}

/* rondo_zfp_bytes is a device function here. */
static size_t stream_bytes(uint64_t count, uint32_t rate)
{
    return ((count + 3) / 4 * 4 * rate + 63) / 64 * 8;
}

/* Makes a slice operation whose addresses are offsets into the arena; place() turns them into addresses. */
static struct rondo_slice_op make_slice_op(void)
{
    struct rondo_slice_op slice_op;
    memset(&slice_op, 0, sizeof slice_op);
    int type = (int) random_below(4), style = (int) random_below(4);
    slice_op.count = 1 + (random_below(4) ? random_below(700) : random_below(20000));
    slice_op.type = (uint8_t) types[type];
    slice_op.element_bytes = bytes_of[type];
    slice_op.op = (uint8_t) ops[random_below(3)];
    slice_op.rate = (uint8_t) (RONDO_ZFP_RATE_MIN + random_below(rates[type] - RONDO_ZFP_RATE_MIN + 1));
    size_t stream = stream_bytes(slice_op.count, slice_op.rate), plain = slice_op.count * slice_op.element_bytes;
    size_t computed = type == 1 ? 8 : 4;
    int forwards = random_below(4) == 0;
    slice_op.sources = (uint8_t) (forwards ? 1 : 1 + random_below(SOURCES));
    slice_op.remotes = (uint8_t) (forwards ? 1 + random_below(REMOTES) : random_below(REMOTES + 1));
    uint32_t local = forwards ? SOURCES : random_below(SOURCES + 1);
    for (uint32_t s = 0; s < slice_op.sources; s++) {
        if (s == local) {
            size_t at = reserve(plain, 16, bytes_of[type] * (random_below(2) ? random_below(4) : 0));
            fill(at, slice_op.count, type, style);
            slice_op.source[s] = (char *) at;
            continue;
        }
        size_t at = reserve(stream, 16, 0), values = reserve(slice_op.count * computed, 16, 0);
        fill(values, slice_op.count, type == 1 ? 1 : 0, style);
        rondo_zfp_encode(before + at, before + values, slice_op.count, slice_op.rate, type == 1 ? RONDO_DOUBLE : RONDO_FLOAT);
        if (style == 0) /* arbitrary bits decode to some value */
            for (size_t i = 0; random_below(4) == 0 && i < stream; i++)
                before[at + i] = (char) random_bits();
        slice_op.source[s] = (char *) at;
        slice_op.coded_sources |= (uint64_t) 1 << s;
    }
    for (uint32_t r = 0; r < slice_op.remotes; r++)
        slice_op.remote[r] = (char *) reserve(stream, 16, 0);
    if (forwards) {
        slice_op.codec = RONDO_CODEC_FORWARD;
    } else {
        slice_op.codec =
            (uint8_t) ((random_below(2) ? RONDO_CODEC_ROUND : 0) | (random_below(3) == 0 ? RONDO_CODEC_STORED : 0));
        slice_op.average = slice_op.op == RONDO_SUM && random_below(3) == 0 ? 2 + random_below(7) : 0;
    }
    if (random_below(3) != 0 || (slice_op.remotes == 0 && slice_op.coded_sources == 0))
        slice_op.local = (char *) reserve(plain, 16, bytes_of[type] * (random_below(2) ? random_below(4) : 0));
    if (local < slice_op.sources && (slice_op.codec & RONDO_CODEC_ROUND) && random_below(2)) {
        size_t at = reserve(slice_op.count * computed, 16, 0);
        fill(at, slice_op.count, type == 1 ? 1 : 0, 0);
        slice_op.residual = (char *) at;
        slice_op.feedback = (uint8_t) (random_below(8) | random_below(4) << RONDO_FEEDBACK_SHIFT);
    }
    return slice_op;
}

static struct rondo_slice_op place(struct rondo_slice_op slice_op, char *base)
{
    for (int s = 0; s < slice_op.sources; s++)
        slice_op.source[s] = base + (size_t) slice_op.source[s];
    for (int r = 0; r < slice_op.remotes; r++)
        slice_op.remote[r] = base + (size_t) slice_op.remote[r];
    if (slice_op.local != NULL)
        slice_op.local = base + (size_t) slice_op.local;
    if (slice_op.residual != NULL)
        slice_op.residual = base + (size_t) slice_op.residual;
    return slice_op;
}

static void run_on_host(const struct rondo_slice_op *slice_op)
{
    if (slice_op->codec & RONDO_CODEC_FORWARD) {
        rondo_codec_forward(slice_op);
        rondo_codec_keep(slice_op);
    } else {
        rondo_codec_run(slice_op);
    }
}

static void report(const struct rondo_slice_op *slice_op, size_t at)
{
    printf(
        "FAILED: byte %zu of the arena; a slice operation of %llu elements of type %d, rate %d, %d sources (streams %llx), %d remotes, "
        "codec %d, average %u, feedback %d, local %zu\n",
        at, (unsigned long long) slice_op->count, slice_op->type, slice_op->rate, slice_op->sources,
        (unsigned long long) slice_op->coded_sources, slice_op->remotes, slice_op->codec, slice_op->average, slice_op->feedback,
        (size_t) slice_op->local);
}

static int test(int rounds)
{
    static struct rondo_slice_op slice_ops[CASES], placed[CASES];
    struct rondo_slice_op *device_ops;
    char *device, *found = (char *) malloc(ARENA);
    size_t starts[CASES + 1];
    before = (char *) malloc(ARENA);
    wanted = (char *) malloc(ARENA);
    CHECK(cudaMalloc(&device, ARENA));
    CHECK(cudaMalloc(&device_ops, sizeof slice_ops));
    for (int round = 0; round < rounds; round++) {
        uint32_t threads = round % 3 == 0 ? THREADS : 32 * (1 + random_below(THREADS / 32));
        used = 0;
        for (size_t i = 0; i < ARENA; i++)
            before[i] = (char) (i * 131 >> 3);
        for (int c = 0; c < CASES; c++) {
            starts[c] = used;
            slice_ops[c] = make_slice_op();
            placed[c] = place(slice_ops[c], device);
        }
        starts[CASES] = used;
        memcpy(wanted, before, used);
        for (int c = 0; c < CASES; c++) {
            struct rondo_slice_op here = place(slice_ops[c], wanted);
            run_on_host(&here);
        }
        CHECK(cudaMemcpy(device, before, used, cudaMemcpyHostToDevice));
        CHECK(cudaMemcpy(device_ops, placed, sizeof placed, cudaMemcpyHostToDevice));
        run<<<CASES, THREADS>>>(device_ops, threads);
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaMemcpy(found, device, used, cudaMemcpyDeviceToHost));
        for (int c = 0; c < CASES; c++)
            for (size_t i = starts[c]; i < starts[c + 1]; i++)
                if (found[i] != wanted[i]) {
                    report(&slice_ops[c], i);
                    return 1;
                }
    }
    printf("zfp: %d slice operations as on the host\n", rounds * CASES);
    return 0;
}

/* ---- speed ---- */

/* Like run(), with fewer registers and more blocks on a multiprocessor. */
__global__ void __launch_bounds__(THREADS, 2) code_only(const struct rondo_slice_op *slice_ops)
{
    __shared__ struct rondo_slice_op slice_op;
    if (threadIdx.x == 0)
        slice_op = slice_ops[blockIdx.x];
    __syncthreads();
    rondo_codec_run_part(&slice_op, threadIdx.x, THREADS);
}

/* Returns GB/s of uncompressed values: one block for each slice operation, all of them at once, on many times the size of the
 * level-2 cache. */
static double measure(int blocks, int type, uint32_t rate, int decodes)
{
    const uint64_t count = 1 << 20;
    size_t plain = count * bytes_of[type], stream = stream_bytes(count, rate);
    struct rondo_slice_op *slice_ops = (struct rondo_slice_op *) calloc((size_t) blocks, sizeof *slice_ops), *device_ops;
    char *values, *streams, *slice_op_values = (char *) malloc(plain), *slice_op_stream = (char *) malloc(stream);
    before = slice_op_values;
    fill(0, count, type, 0);
    if (type < 2)
        rondo_zfp_encode(slice_op_stream, slice_op_values, count, rate, types[type]);
    CHECK(cudaMalloc(&values, plain * (size_t) blocks));
    CHECK(cudaMalloc(&streams, stream * (size_t) blocks));
    CHECK(cudaMalloc(&device_ops, sizeof *slice_ops * (size_t) blocks));
    for (int b = 0; b < blocks; b++) {
        struct rondo_slice_op *slice_op = &slice_ops[b];
        char *here = values + (size_t) b * plain, *there = streams + (size_t) b * stream;
        CHECK(cudaMemcpy(here, slice_op_values, plain, cudaMemcpyHostToDevice));
        CHECK(cudaMemcpy(there, slice_op_stream, stream, cudaMemcpyHostToDevice));
        slice_op->count = count;
        slice_op->type = (uint8_t) types[type];
        slice_op->element_bytes = bytes_of[type];
        slice_op->op = RONDO_SUM;
        slice_op->rate = (uint8_t) rate;
        slice_op->sources = 1;
        if (decodes) {
            slice_op->source[0] = there;
            slice_op->coded_sources = 1;
            slice_op->local = here;
        } else {
            slice_op->source[0] = here;
            slice_op->remotes = 1;
            slice_op->remote[0] = there;
        }
    }
    CHECK(cudaMemcpy(device_ops, slice_ops, sizeof *slice_ops * (size_t) blocks, cudaMemcpyHostToDevice));
    cudaEvent_t start, stop;
    float milliseconds, best = 1e9f;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    for (int i = 0; i < 5; i++) {
        CHECK(cudaEventRecord(start));
        code_only<<<blocks, THREADS>>>(device_ops);
        CHECK(cudaEventRecord(stop));
        CHECK(cudaEventSynchronize(stop));
        CHECK(cudaEventElapsedTime(&milliseconds, start, stop));
        best = milliseconds < best ? milliseconds : best;
    }
    CHECK(cudaFree(values));
    CHECK(cudaFree(streams));
    CHECK(cudaFree(device_ops));
    free(slice_ops);
    free(slice_op_values);
    free(slice_op_stream);
    return (double) blocks * (double) plain / best / 1e6;
}

static int speed(void)
{
    static const uint32_t float_rates[] = {4, 8, 12, 16, 24, 32}, double_rates[] = {8, 16, 32, 64};
    int processors;
    CHECK(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0));
    int blocks = processors * 4;
    printf("GB/s of uncompressed values, %d blocks of %d threads; and 1 block\n", blocks, THREADS);
    for (int type = 0; type < 2; type++)
        for (size_t i = 0; i < (type == 0 ? 6 : 4); i++) {
            uint32_t rate = type == 0 ? float_rates[i] : double_rates[i];
            printf("%-6s rate %2u: encode %7.1f %6.1f, decode %7.1f %6.1f\n", type == 0 ? "float" : "double", rate,
                   measure(blocks, type, rate, 0), measure(1, type, rate, 0), measure(blocks, type, rate, 1),
                   measure(1, type, rate, 1));
            fflush(stdout);
        }
    return 0;
}

int main(int argc, char **argv)
{
    int rounds = 20;
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--speed") == 0)
            return speed();
        else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
            random_state ^= strtoull(argv[++i], NULL, 0) * 2654435761u;
        else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
            rounds = atoi(argv[++i]);
    return test(rounds);
}
