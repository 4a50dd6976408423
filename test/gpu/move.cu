/*
 * Tests the GPU's movers by themselves: random slice operations, many at a time, against rondo_reduce_elements on the host, bit
 * by bit and with every byte around them. Each is carried out as device/engine/worker_loop.h does, by the row of
 * device/move/mover_table.h that the kernel chooses, and the test fails if some row was never chosen; the codec's row has a
 * case of its own, against rondo_codec_run (test/gpu/zfp.cu tests it further). With --speed it measures the main shapes
 * instead. Usage: move [--seed N] [--rounds N] | --speed
 */
extern "C" {
#include "device/codec/codec.h"
#include "device/codec/zfp_stream.h"
#include "device/reduce/reduce.h"
}
#include "device/abi/structures.h"
#include "device/codec/cuda_codec.cu"
#include "device/engine/worker_loop.h"
#include "device/move/mover_table.h"
#include "device/move/movers.cu"

#include <cuda_runtime.h>
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

enum { THREADS = 544, CASES_MAX = 1024, ARENA = 96 << 20, GUARD = 64, POLLS = 50, WORKS_NOT = -1 };

struct task {
    struct rondo_slice_op slice_op;
    uint32_t threads;
    uint32_t all_lines; /* it has lines, and the kernel's other flags are lines, too */
    uint32_t again;     /* number of executions, each further on by step bytes, of so many in all (0: the same again) */
    uint64_t step, wrap;
    char *late; /* a byte of a line's flag, which is corrected before the slice operation runs once more */
};

/* As rondo_workers_run_slice_op, with addresses that are known from the beginning. *row: what the table says. */
static __device__ int work(const struct rondo_slice_op *slice_op, int all_lines, uint32_t thread, uint32_t threads,
                           uint8_t *progress, int *row)
{
    const int flagged = rondo_mover_is_flagged(slice_op);
    const struct rondo_mover_facts facts = {threads, flagged, slice_op->lines};
    const enum rondo_mover mover = rondo_mover_choose(slice_op, facts, RONDO_MOVER_LL_SMALL, RONDO_MOVER_RESOLVED);
    *row =
        mover != RONDO_MOVER_RESOLVED ? mover : rondo_mover_choose(slice_op, facts, RONDO_MOVER_RESOLVED, RONDO_MOVERS_COUNT);
    if (flagged) {
        struct rondo_cuda_own own;
        if (thread >= rondo_workers_members_of(slice_op, flagged, threads))
            return WORKS_NOT;
        const struct rondo_flagged_data data = {&own, progress};
        rondo_flagged_load_own(slice_op, mover, thread, threads, &own);
        return all_lines ? rondo_move_flagged(slice_op, mover, 1, thread, threads, POLLS, data)
                         : rondo_move_flagged(slice_op, mover, 0, thread, threads, POLLS, data);
    }
    if (rondo_mover_run_vector(slice_op, thread, threads))
        return 1;
    return rondo_mover_run_other(slice_op, thread, threads, POLLS);
}

/* One block per task; answers[2 * task] is the least and [.. + 1] the greatest of what the workers returned;
 * rows[task] by which mover they did it. */
__global__ void __launch_bounds__(THREADS, 1) run(const struct task *tasks, int *answers, int *rows)
{
    __shared__ struct rondo_slice_op slice_op;
    __shared__ uint8_t progress[RONDO_PROGRESS];
    const struct task *task = tasks + blockIdx.x;
    uint64_t at = 0;
    for (uint32_t i = 0; i < task->again; i++) {
        __syncthreads();
        if (threadIdx.x == 0) {
            slice_op = task->slice_op;
            memset(progress, 0, sizeof(progress));
            for (int s = 0; s < slice_op.sources; s++)
                slice_op.source[s] += at;
            for (int r = 0; r < slice_op.remotes; r++)
                slice_op.remote[r] += at;
            if (slice_op.local != NULL)
                slice_op.local += at;
        }
        __syncthreads();
        if (threadIdx.x < task->threads) {
            int row, answer = work(&slice_op, task->all_lines, threadIdx.x, task->threads, progress, &row);
            if (i == 0 && threadIdx.x == 0)
                rows[blockIdx.x] = row;
            if (i == 0 && answer != WORKS_NOT) {
                atomicMin(answers + 2 * blockIdx.x, answer);
                atomicMax(answers + 2 * blockIdx.x + 1, answer);
            }
        }
        if (task->late != NULL) {
            __syncthreads();
            if (threadIdx.x == 0)
                *task->late ^= 1;
            __threadfence();
            __syncthreads();
            int row;
            if (threadIdx.x < task->threads)
                work(&slice_op, task->all_lines, threadIdx.x, task->threads, progress, &row);
        }
        at = at + task->step < task->wrap ? at + task->step : 0;
    }
}

/* ---- random numbers ---- */

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

/* Small numbers are as likely as large ones. */
static uint64_t random_count(uint64_t most)
{
    uint64_t limit = 1;
    for (uint32_t doublings = random_below(18); doublings > 0 && limit < most; doublings--)
        limit *= 2;
    return 1 + random_below((uint32_t) (limit < most ? limit : most));
}

/* ---- cases ---- */

/* Of the types that GPUs combine, the first ones. */
enum { TYPES = RONDO_UINT16 + 1 };
static const uint8_t element_bytes[TYPES] = {1, 1, 4, 4, 8, 8, 2, 2, 4, 8, 1, 1, 2, 2};

struct expected {
    struct task task; /* with offsets into the arena in the place of pointers */
    size_t begin, end;
    int arrives;
};

static char *arena, *wanted; /* contents before; contents after */
static size_t arena_used;

static size_t reserve(size_t bytes, size_t alignment, size_t beyond)
{
    size_t unit = alignment > 16 ? alignment : 16,
           at = (arena_used + GUARD + unit - 1) / unit * unit + beyond / alignment * alignment;
    arena_used = at + bytes + GUARD;
    if (arena_used > ARENA) {
        printf("failed: a case needs more than the arena has: %zu of %zu bytes\n", arena_used, (size_t) ARENA);
        exit(1);
    }
    return at;
}

static int is_floating(int type)
{
    return type >= RONDO_FLOAT16 && type <= RONDO_FLOAT8E5M2;
}

static void fill_elements(char *to, uint64_t count, int type)
{
    /* Any bits, NaNs and infinities among them, or values whose sums stay finite. */
    int tame = is_floating(type) && random_below(2);
    for (uint64_t i = 0; i < count * element_bytes[type]; i += 8) {
        uint64_t bits = random_bits();
        size_t left = (size_t) (count * element_bytes[type] - i);
        if (tame && element_bytes[type] == 8)
            bits = (bits & 0x800fffffffffffffu) | (uint64_t) (1010 + random_below(20)) << 52;
        else if (tame && type == RONDO_FLOAT)
            bits = (bits & 0x807fffff807fffffu) | 0x3f8000003f000000u;
        else if (tame && type == RONDO_BFLOAT16)
            bits = (bits & 0x80ff80ff80ff80ffu) | 0x3f003f003f803f00u;
        else if (tame)
            bits &= element_bytes[type] == 2 ? 0xbfffbfffbfffbfffu : 0xbfbfbfbfbfbfbfbfu;
        memcpy(to + i, &bits, left < 8 ? left : 8);
    }
}

static size_t packet_bytes(uint64_t bytes)
{
    return (size_t) ((bytes + 7) / 8 * 16);
}

static void write_packets(char *to, const char *data, uint64_t bytes, uint32_t flag)
{
    for (uint64_t i = 0; i < (bytes + 7) / 8 * 2; i++) {
        uint32_t word = 0;
        if (4 * i < bytes)
            memcpy(&word, data + 4 * i, bytes - 4 * i < 4 ? (size_t) (bytes - 4 * i) : 4);
        memcpy(to + 8 * i, &word, 4);
        memcpy(to + 8 * i + 4, &flag, 4);
    }
}

static size_t line_bytes(uint64_t bytes)
{
    return (size_t) ((bytes + RONDO_LINE_DATA - 1) / RONDO_LINE_DATA * RONDO_LINE_BYTES);
}

static void write_lines(char *to, const char *data, uint64_t bytes, uint32_t flag)
{
    for (uint64_t i = 0; i < line_bytes(bytes) / 4; i++) {
        uint64_t at = 4 * i / RONDO_LINE_BYTES * RONDO_LINE_DATA + 4 * i % RONDO_LINE_BYTES;
        uint32_t word = 0;
        if (4 * i % RONDO_LINE_BYTES >= RONDO_LINE_DATA)
            word = flag;
        else if (at < bytes)
            memcpy(&word, data + at, bytes - at < 4 ? (size_t) (bytes - at) : 4);
        memcpy(to + 4 * i, &word, 4);
    }
}

static size_t flagged_bytes(const struct rondo_slice_op *slice_op)
{
    uint64_t bytes = slice_op->count * slice_op->element_bytes;
    return slice_op->lines ? line_bytes(bytes) : packet_bytes(bytes);
}

static void write_flagged(const struct rondo_slice_op *slice_op, char *to, const char *data, uint32_t flag)
{
    uint64_t bytes = slice_op->count * slice_op->element_bytes;
    if (slice_op->lines)
        write_lines(to, data, bytes, flag);
    else
        write_packets(to, data, bytes, flag);
}

/* The misalignment of a pointer beyond 16 bytes. The operation's style is that all are aligned, all alike, or each
 * different. */
static size_t random_beyond(int style, size_t common)
{
    return style == 0 ? 0 : style == 1 ? common : random_below(16);
}

static int random_operator(int type, uint32_t *average)
{
    int op;
    do
        op = (int) random_below(RONDO_OP_COUNT);
    while (op == RONDO_MINLOC || op == RONDO_MAXLOC || /* those of pairs are the host's */
           (is_floating(type) && (op == RONDO_BAND || op == RONDO_BOR || op == RONDO_BXOR)));
    *average = 0;
    if (random_below(3) == 0)
        op = RONDO_SUM;
    if (op != RONDO_AVG)
        return op;
    *average = 1 + random_below(300);
    return RONDO_SUM;
}

static void make_sources(struct expected *e, int style, size_t common, uint32_t packed, const void **values)
{
    struct rondo_slice_op *slice_op = &e->task.slice_op;
    size_t bytes = (size_t) (slice_op->count * slice_op->element_bytes);
    for (int s = 0; s < slice_op->sources; s++) {
        char *value = (char *) malloc(bytes + 8);
        fill_elements(value, slice_op->count, slice_op->type);
        values[s] = value;
        if (random_below(4) < packed) {
            size_t at = reserve(flagged_bytes(slice_op), 128, 0);
            slice_op->source[s] = (const char *) at;
            slice_op->ll_sources |= (uint64_t) 1 << s;
            slice_op->source_flags[s] = (uint32_t) random_bits();
            write_flagged(slice_op, arena + at, value, slice_op->source_flags[s]);
        } else {
            size_t at = reserve(bytes, slice_op->element_bytes, random_beyond(style, common));
            slice_op->source[s] = (const char *) at;
            memcpy(arena + at, value, bytes);
        }
    }
}

static void make_destinations(struct expected *e, int style, size_t common, uint32_t packed, int has_local)
{
    struct rondo_slice_op *slice_op = &e->task.slice_op;
    size_t bytes = (size_t) (slice_op->count * slice_op->element_bytes);
    int same = random_below(3) == 0 ? (int) random_below(slice_op->sources) : -1;
    slice_op->local = NULL;
    if (has_local && same >= 0 && !(slice_op->ll_sources >> same & 1))
        slice_op->local = (char *) slice_op->source[same];
    else if (has_local)
        slice_op->local = (char *) reserve(bytes, slice_op->element_bytes, random_beyond(style, common));
    for (int r = 0; r < slice_op->remotes; r++)
        if (random_below(4) < packed) {
            slice_op->ll_remotes |= (uint64_t) 1 << r;
            slice_op->remote_flags[r] = (uint32_t) random_bits();
            slice_op->remote[r] = (char *) reserve(flagged_bytes(slice_op), 128, 0);
        } else {
            slice_op->remote[r] = (char *) reserve(bytes, slice_op->element_bytes, random_beyond(style, common));
        }
}

/* Makes one flag of one source wrong. */
static void lose_a_packet(struct expected *e)
{
    struct rondo_slice_op *slice_op = &e->task.slice_op;
    int s = (int) random_below(slice_op->sources);
    if (!(slice_op->ll_sources >> s & 1))
        return;
    size_t unit = slice_op->lines ? RONDO_LINE_BYTES : 8, units = flagged_bytes(slice_op) / unit;
    size_t lost = (size_t) slice_op->source[s] + (random_below((uint32_t) units) + 1) * unit - 4;
    arena[lost] ^= 1;
    e->arrives = 0;
    if (slice_op->lines)
        e->task.late = (char *) lost;
}

/* Writes the result to its place in the expected arena. */
static void expect_result(const struct expected *e, const void *const *values)
{
    const struct rondo_slice_op *slice_op = &e->task.slice_op;
    size_t bytes = (size_t) (slice_op->count * slice_op->element_bytes);
    char *result = (char *) malloc(bytes + 8);
    void *destination = result;
    const struct rondo_reduction reduction = {&destination,
                                              values,
                                              1,
                                              slice_op->sources,
                                              (size_t) slice_op->count,
                                              (rondo_datatype_t) slice_op->type,
                                              (rondo_op_t) slice_op->op,
                                              NULL,
                                              (int) slice_op->average,
                                              0};
    rondo_reduce_elements(&reduction);
    if (slice_op->local != NULL)
        memcpy(wanted + (size_t) slice_op->local, result, bytes);
    for (int r = 0; r < slice_op->remotes; r++)
        if (slice_op->ll_remotes >> r & 1)
            write_flagged(slice_op, wanted + (size_t) slice_op->remote[r], result, slice_op->remote_flags[r]);
        else
            memcpy(wanted + (size_t) slice_op->remote[r], result, bytes);
    free(result);
}

/* Makes the slice operation one that a row of flagged or plain sums takes. Returns the row; RONDO_MOVERS_COUNT: left as it is.
 */
static int shape_for_row(struct task *task)
{
    static const uint8_t usual[] = {RONDO_INT32, RONDO_UINT32, RONDO_FLOAT16, RONDO_BFLOAT16, RONDO_FLOAT};
    struct rondo_slice_op *slice_op = &task->slice_op;
    const int row = (int) random_below(2 * RONDO_MOVER_CODEC);
    if (row >= RONDO_MOVER_CODEC)
        return RONDO_MOVERS_COUNT;
    const uint32_t packets = task->threads * (row == RONDO_MOVER_LL ? RONDO_LL_ROWS : 1);
    slice_op->type = usual[random_below(sizeof usual)];
    slice_op->element_bytes = element_bytes[slice_op->type];
    slice_op->op = RONDO_SUM;
    slice_op->average = row == RONDO_MOVER_LL128 && slice_op->type >= RONDO_FLOAT16 ? random_below(3) : 0;
    slice_op->sources = (uint8_t) (1 + (slice_op->average != 0) + random_below(7));
    slice_op->remotes = slice_op->remotes < 8 ? slice_op->remotes : 8; /* of long rows no more than a case may need (test) */
    slice_op->lines = row == RONDO_MOVER_LL128;
    if (row == RONDO_MOVER_LL_SMALL)
        slice_op->count = 1 + random_below(packets * 8 / slice_op->element_bytes);
    else if (row == RONDO_MOVER_LL)
        slice_op->count = (task->threads + 1 + random_below(packets - task->threads)) * 8 / slice_op->element_bytes;
    else
        slice_op->count = (1 + random_below(40000)) * 16 / slice_op->element_bytes;
    return row;
}

static void make_case(struct expected *e)
{
    struct rondo_slice_op *slice_op = &e->task.slice_op;
    const void *values[RONDO_REDUCE_SOURCES_MAX];
    memset(e, 0, sizeof *e);
    e->arrives = 1;
    e->begin = arena_used;
    e->task.threads = 64u << random_below(4);
    e->task.again = 1;
    slice_op->type = (uint8_t) random_below(TYPES);
    slice_op->element_bytes = element_bytes[slice_op->type];
    slice_op->op = (uint8_t) random_operator(slice_op->type, &slice_op->average);
    slice_op->sources = (uint8_t) (1 + random_below(random_below(12) == 0 ? 64 : 8));
    slice_op->remotes = (uint8_t) random_below(random_below(12) == 0 ? 65 : random_below(2) ? 3 : 8);
    slice_op->count = random_count(slice_op->sources + slice_op->remotes > 16 ? 3000 : 100000);
    int has_local = slice_op->remotes == 0 || random_below(2);
    int style = (int) random_below(4);
    size_t common = random_below(16);
    /* How many of 4 sources and of 4 destinations are LL. */
    uint32_t packed_in = random_below(2) ? 0 : random_below(5), packed_out = random_below(2) ? 0 : random_below(5);
    slice_op->lines = (uint8_t) random_below(2);
    const int row = shape_for_row(&e->task);
    if (row < RONDO_MOVERS_COUNT) {
        style = row == RONDO_MOVER_LL_SMALL ? style : 0;
        packed_in = row == RONDO_MOVER_VECTOR ? 0 : 1 + random_below(4);
        packed_out = row == RONDO_MOVER_VECTOR ? 0 : random_below(5);
    }
    e->task.all_lines = slice_op->lines && random_below(2);

    make_sources(e, style, common, packed_in, values);
    make_destinations(e, style, common, packed_out, has_local);
    if (random_below(5) == 0)
        lose_a_packet(e);
    e->end = arena_used;
    memcpy(wanted + e->begin, arena + e->begin, e->end - e->begin);
    if (e->task.late != NULL)
        wanted[(size_t) e->task.late] ^= 1;
    if (e->arrives || e->task.late != NULL)
        expect_result(e, values);
    for (int s = 0; s < slice_op->sources; s++)
        free((void *) values[s]);
}

/* Turns offsets into addresses in the device's copy of the arena. */
static void place(struct task *task, char *base)
{
    for (int s = 0; s < task->slice_op.sources; s++)
        task->slice_op.source[s] = base + (size_t) task->slice_op.source[s];
    for (int r = 0; r < task->slice_op.remotes; r++)
        task->slice_op.remote[r] = base + (size_t) task->slice_op.remote[r];
    if (task->slice_op.local != NULL)
        task->slice_op.local = base + (size_t) task->slice_op.local;
    if (task->late != NULL)
        task->late = base + (size_t) task->late;
}

/* ---- checking ---- */

/* The bytes after the data in a destination's last packet may be anything. */
static void forgive_padding(const struct expected *e, const char *found)
{
    const struct rondo_slice_op *slice_op = &e->task.slice_op;
    uint64_t bytes = slice_op->count * slice_op->element_bytes;
    for (int r = 0; r < slice_op->remotes; r++)
        for (uint64_t i = bytes, end = slice_op->lines ? line_bytes(bytes) / 8 * 7 : (bytes + 7) / 8 * 8;
             (slice_op->ll_remotes >> r & 1) && i < end; i++) {
            size_t at = (size_t) slice_op->remote[r] +
                        (slice_op->lines ? i / RONDO_LINE_DATA * RONDO_LINE_BYTES + i % RONDO_LINE_DATA : i / 4 * 8 + i % 4);
            wanted[at] = found[at];
        }
}

static int check_case(const struct expected *e, const char *found, const int *answers)
{
    const struct rondo_slice_op *slice_op = &e->task.slice_op;
    size_t bad = e->begin;
    if (e->arrives || e->task.late != NULL)
        forgive_padding(e, found);
    while (bad < e->end && found[bad] == wanted[bad])
        bad++;
    if (bad == e->end && answers[0] == e->arrives && answers[1] == e->arrives)
        return 1;
    printf("failed: type %d op %d average %u count %llu sources %d (LL %llx) local %d remotes %d (LL %llx) threads %u arrives "
           "%d: returned %d..%d",
           slice_op->type, slice_op->op, slice_op->average, (unsigned long long) slice_op->count, slice_op->sources,
           (unsigned long long) slice_op->ll_sources, slice_op->local != NULL, slice_op->remotes,
           (unsigned long long) slice_op->ll_remotes, e->task.threads, e->arrives, answers[0], answers[1]);
    if (bad < e->end) {
        printf("; byte %zu is %02x, not %02x; local at %zu, sources at", bad, (uint8_t) found[bad], (uint8_t) wanted[bad],
               (size_t) slice_op->local);
        for (int s = 0; s < slice_op->sources && s < 4; s++)
            printf(" %zu", (size_t) slice_op->source[s]);
        printf(", remotes at");
        for (int r = 0; r < slice_op->remotes && r < 4; r++)
            printf(" %zu", (size_t) slice_op->remote[r]);
    }
    printf("\n");
    return 0;
}

/* ---- rows ---- */

#define ROW_NAME(name, condition, text) #name,
#define ROW_TEXT(name, condition, text) text,
static const char *const row_names[] = {RONDO_MOVERS(ROW_NAME)}, *const row_texts[] = {RONDO_MOVERS(ROW_TEXT)};

/* Floats are encoded to a remote, and rounded to what its reader gets. 1: by the codec's row, and as on the host. */
static int test_codec_row(void)
{
    enum { COUNT = 4000, RATE = 11, BYTES = COUNT * 4 };
    char *host = (char *) calloc(3, BYTES), *found = (char *) calloc(3, BYTES), *device;
    struct task task = {}, *device_task;
    struct rondo_slice_op *slice_op = &task.slice_op;
    int answers[2] = {2, -1}, row = RONDO_MOVERS_COUNT, *device_answers, *device_row;
    for (int i = 0; i < COUNT; i++)
        ((float *) host)[i] = 1.0f + (float) (i % 97) / 64.0f;
    slice_op->type = RONDO_FLOAT;
    slice_op->op = RONDO_SUM;
    slice_op->element_bytes = 4;
    slice_op->count = COUNT;
    slice_op->sources = slice_op->remotes = 1;
    slice_op->rate = RATE;
    slice_op->codec = RONDO_CODEC_ROUND;
    task.threads = 512;
    task.again = 1;
    CHECK(cudaMalloc(&device, 3 * BYTES));
    CHECK(cudaMalloc(&device_task, sizeof task));
    CHECK(cudaMalloc(&device_answers, sizeof answers));
    CHECK(cudaMalloc(&device_row, sizeof row));
    CHECK(cudaMemcpy(device, host, 3 * BYTES, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(device_answers, answers, sizeof answers, cudaMemcpyHostToDevice));
    slice_op->source[0] = device;
    slice_op->local = device + BYTES;
    slice_op->remote[0] = device + 2 * BYTES;
    CHECK(cudaMemcpy(device_task, &task, sizeof task, cudaMemcpyHostToDevice));
    run<<<1, THREADS>>>(device_task, device_answers, device_row);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(found, device, 3 * BYTES, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(answers, device_answers, sizeof answers, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(&row, device_row, sizeof row, cudaMemcpyDeviceToHost));
    slice_op->source[0] = host;
    slice_op->local = host + BYTES;
    slice_op->remote[0] = host + 2 * BYTES;
    rondo_codec_run(slice_op);
    const int alike = memcmp(host, found, 3 * BYTES) == 0;
    if (!alike || answers[0] != 1 || answers[1] != 1 || row != RONDO_MOVER_CODEC)
        printf("failed: the codec's case: row %d, returned %d..%d, bytes %s\n", row, answers[0], answers[1],
               alike ? "as on the host" : "differ");
    return alike && answers[0] == 1 && answers[1] == 1 && row == RONDO_MOVER_CODEC;
}

static int test(int rounds)
{
    struct expected *cases = (struct expected *) calloc(CASES_MAX, sizeof *cases);
    struct task *tasks = (struct task *) calloc(CASES_MAX, sizeof *tasks), *device_tasks;
    int *answers = (int *) calloc(2 * CASES_MAX, sizeof *answers), *device_answers, passed = 0, failed = 0;
    int *rows = (int *) calloc(CASES_MAX, sizeof *rows), *device_rows, chosen[RONDO_MOVERS_COUNT] = {};
    char *found = (char *) malloc(ARENA), *device_arena;
    arena = (char *) malloc(ARENA);
    wanted = (char *) malloc(ARENA);
    CHECK(cudaMalloc(&device_arena, ARENA));
    CHECK(cudaMalloc(&device_tasks, CASES_MAX * sizeof *tasks));
    CHECK(cudaMalloc(&device_answers, 2 * CASES_MAX * sizeof *answers));
    CHECK(cudaMalloc(&device_rows, CASES_MAX * sizeof *rows));
    for (int round = 0; round < rounds; round++) {
        int count = 0;
        arena_used = 0;
        for (size_t i = 0; i < ARENA; i += 8) {
            uint64_t poison = random_bits();
            memcpy(arena + i, &poison, 8);
        }
        /* The largest case: 16 plain or packed operands of 100000 elements of 8 bytes. */
        while (count < CASES_MAX && arena_used + 16 * 1700000 < ARENA) {
            make_case(&cases[count]);
            tasks[count] = cases[count].task;
            place(&tasks[count], device_arena);
            answers[2 * count] = 2;
            answers[2 * count + 1] = -1;
            count++;
        }
        CHECK(cudaMemcpy(device_arena, arena, ARENA, cudaMemcpyHostToDevice));
        CHECK(cudaMemcpy(device_tasks, tasks, count * sizeof *tasks, cudaMemcpyHostToDevice));
        CHECK(cudaMemcpy(device_answers, answers, 2 * count * sizeof *answers, cudaMemcpyHostToDevice));
        run<<<count, THREADS>>>(device_tasks, device_answers, device_rows);
        CHECK(cudaGetLastError());
        CHECK(cudaMemcpy(answers, device_answers, 2 * count * sizeof *answers, cudaMemcpyDeviceToHost));
        CHECK(cudaMemcpy(found, device_arena, ARENA, cudaMemcpyDeviceToHost));
        CHECK(cudaMemcpy(rows, device_rows, count * sizeof *rows, cudaMemcpyDeviceToHost));
        for (int i = 0; i < count; i++)
            chosen[rows[i]]++;
        for (int i = 0; i < count; i++)
            if (check_case(&cases[i], found, answers + 2 * i))
                passed++;
            else
                failed++;
        if (failed > 20)
            break;
    }
    const int codec = test_codec_row();
    chosen[RONDO_MOVER_CODEC] += codec;
    failed += !codec;
    printf("%d passed, %d failed\n", passed + codec, failed);
    for (int row = 0; row < RONDO_MOVERS_COUNT; row++) {
        printf("row %-8s %7d slice operations (%s)\n", row_names[row], chosen[row], row_texts[row]);
        failed += chosen[row] == 0;
    }
    return failed > 0;
}

/* ---- speed ---- */

enum { BLOCKS = 16, BUFFERS = 9, PART = 4 << 20 }; /* bytes of a buffer for each block */

struct shape {
    const char *name;
    int sources, destinations;
};

static char *buffers[2][BUFFERS]; /* on the first device and on its peer */

enum place { LOCAL, FROM_PEER, TO_PEER };

/* Returns GB/s of payload. Every source (destination) but the first of several is at a peer. */
static double measure(struct shape shape, enum place where, int blocks, uint64_t bytes, size_t beyond_sources,
                      size_t beyond_destinations)
{
    struct task tasks[BLOCKS] = {}, *device_tasks;
    int *answers, *rows;
    cudaEvent_t start, stop;
    float milliseconds, best = 1e9f;
    for (int b = 0; b < blocks; b++) {
        struct task *task = &tasks[b];
        struct rondo_slice_op *slice_op = &task->slice_op;
        slice_op->type = RONDO_FLOAT;
        slice_op->op = RONDO_SUM;
        slice_op->element_bytes = 4;
        slice_op->count = bytes / 4;
        slice_op->sources = (uint8_t) shape.sources;
        slice_op->remotes = (uint8_t) shape.destinations;
        for (int s = 0; s < shape.sources; s++)
            slice_op->source[s] =
                buffers[where == FROM_PEER && (s > 0 || shape.sources == 1)][s] + (size_t) b * PART + beyond_sources;
        for (int d = 0; d < shape.destinations; d++)
            slice_op->remote[d] = buffers[where == TO_PEER && (d > 0 || shape.destinations == 1)][4 + d] + (size_t) b * PART +
                                  beyond_destinations;
        task->threads = 512;
        task->again = (uint32_t) ((128u << 20) / bytes);
        task->step = bytes;
        task->wrap = PART - bytes;
    }
    CHECK(cudaMalloc(&device_tasks, sizeof tasks));
    CHECK(cudaMalloc(&answers, 2 * BLOCKS * sizeof *answers));
    CHECK(cudaMalloc(&rows, BLOCKS * sizeof *rows));
    CHECK(cudaMemcpy(device_tasks, tasks, sizeof tasks, cudaMemcpyHostToDevice));
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    for (int i = 0; i < 4; i++) {
        CHECK(cudaEventRecord(start));
        run<<<blocks, THREADS>>>(device_tasks, answers, rows);
        CHECK(cudaEventRecord(stop));
        CHECK(cudaEventSynchronize(stop));
        CHECK(cudaEventElapsedTime(&milliseconds, start, stop));
        best = milliseconds < best ? milliseconds : best;
    }
    CHECK(cudaFree(device_tasks));
    CHECK(cudaFree(answers));
    CHECK(cudaFree(rows));
    return (double) blocks * tasks[0].again * (double) bytes / best / 1e6;
}

static int speed(void)
{
    static const struct shape shapes[] = {{"copy 1->1", 1, 1}, {"copy 1->2", 1, 2}, {"sum 2->1", 2, 1},
                                          {"sum 2->2", 2, 2},  {"sum 4->1", 4, 1},  {"sum 4->4", 4, 4}};
    static const char *const places[] = {"local", "from peer", "to peer"};
    static const uint64_t sizes[] = {16 << 10, 128 << 10, 512 << 10};
    int devices;
    CHECK(cudaGetDeviceCount(&devices));
    for (int device = 0; device < devices && device < 2; device++) {
        CHECK(cudaSetDevice(device));
        for (int i = 0; i < BUFFERS; i++)
            CHECK(cudaMalloc(&buffers[device][i], (size_t) BLOCKS * PART + 64));
        for (int i = 0; i < BUFFERS; i++)
            CHECK(cudaMemset(buffers[device][i], 0, (size_t) BLOCKS * PART + 64));
        CHECK(cudaDeviceSynchronize());
    }
    CHECK(cudaSetDevice(0));
    if (devices > 1)
        CHECK(cudaDeviceEnablePeerAccess(1, 0));
    printf("GB/s of payload: 1 block, 16 blocks; aligned, all 4 bytes off, sources 4 bytes off\n");
    for (int where = LOCAL; where <= (devices > 1 ? TO_PEER : LOCAL); where++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
            for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
                printf("%-10s %-9s %4llu KiB:", shapes[i].name, places[where], (unsigned long long) sizes[k] >> 10);
                for (int off = 0; off < 3; off++)
                    printf("  %6.1f %7.1f", measure(shapes[i], (enum place) where, 1, sizes[k], off ? 4 : 0, off == 1 ? 4 : 0),
                           measure(shapes[i], (enum place) where, BLOCKS, sizes[k], off ? 4 : 0, off == 1 ? 4 : 0));
                printf("\n");
                fflush(stdout);
            }
    return 0;
}

int main(int argc, char **argv)
{
    int rounds = 40;
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--speed") == 0)
            return speed();
        else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
            random_state ^= strtoull(argv[++i], NULL, 0) * 2654435761u;
        else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
            rounds = atoi(argv[++i]);
    return test(rounds);
}
