/*
 * See device/reduce/reduce.h. Picks the kernels for this processor once, and cuts a reduction into parts that stay in
 * the first-level cache between the steps (widen, reduce, divide, narrow, copy out), unless one loop can do it all.
 */
#include "device/reduce/reduce.h"
#include "device/reduce/reduce_kernels.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#if defined(RONDO_VECTOR_AVX2) || defined(RONDO_VECTOR_AVX512)
#include <cpuid.h>
#endif

enum { LINE = RONDO_REDUCE_LINE };
enum { BLOCK_BYTES = 4096 }; /* bytes of a part, in the type that is computed */
enum { ALIGN_MIN = 1024 };   /* bytes from which storing whole lines pays for a loop over what stands before them */
enum { STREAM_MIN = 16384 }; /* bytes below which a destination is worth its place in the cache */

typedef void reduce_kernel(void *dst, const void *a, const void *b, size_t count);

static const uint8_t element_size[RONDO_DATATYPE_COUNT] = {
    [RONDO_INT8] = 1,          [RONDO_UINT8] = 1,           [RONDO_INT32] = 4,
    [RONDO_UINT32] = 4,        [RONDO_INT64] = 8,           [RONDO_UINT64] = 8,
    [RONDO_FLOAT16] = 2,       [RONDO_BFLOAT16] = 2,        [RONDO_FLOAT] = 4,
    [RONDO_DOUBLE] = 8,        [RONDO_FLOAT8E4M3] = 1,      [RONDO_FLOAT8E5M2] = 1,
    [RONDO_INT16] = 2,         [RONDO_UINT16] = 2,          [RONDO_BOOL] = 1,
    [RONDO_COMPLEX_FLOAT] = 8, [RONDO_COMPLEX_DOUBLE] = 16, [RONDO_LONG_DOUBLE] = 16,
    [RONDO_FLOAT_INT] = 8,     [RONDO_DOUBLE_INT] = 16,     [RONDO_LONG_INT] = 16,
    [RONDO_2INT] = 8,          [RONDO_SHORT_INT] = 8,       [RONDO_LONG_DOUBLE_INT] = 32};

/* Bytes of an element of the reduction. */
static size_t size_of(const struct rondo_reduction *reduction)
{
    return reduction->user != NULL ? reduction->user->bytes : element_size[reduction->type];
}

/* The one table in use: written with the same value by every thread that finds it unset, so relaxed order will do. */
static _Atomic(const struct rondo_reduce_kernels *) chosen;

#ifdef RONDO_VECTOR_AVX2
static int has_avx2(void)
{
    unsigned a, b, c, d;
    return __builtin_cpu_supports("avx2") && __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}
#endif
#ifdef RONDO_VECTOR_AVX512
static int has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}
#endif

const struct rondo_reduce_kernels *rondo_reduce_kernels_at(int i)
{
    const struct rondo_reduce_kernels *found[4] = {&rondo_reduce_kernels_baseline};
    int count = 1;
#ifdef RONDO_VECTOR_AVX2
    if (has_avx2())
        found[count++] = &rondo_reduce_kernels_avx2;
#endif
#ifdef RONDO_VECTOR_AVX512
    if (has_avx512())
        found[count++] = &rondo_reduce_kernels_avx512;
#endif
    return i >= 0 && i < count ? found[i] : NULL;
}

static __attribute__((noinline, cold)) const struct rondo_reduce_kernels *fastest(void)
{
    int last = 0;
    while (rondo_reduce_kernels_at(last + 1))
        last++;
    return rondo_reduce_kernels_at(last);
}

void rondo_reduce_force(const struct rondo_reduce_kernels *kernels)
{
    atomic_store_explicit(&chosen, kernels, memory_order_relaxed);
}

/* One call of rondo_reduce_elements. */
struct job {
    const struct rondo_reduce_kernels *kernels;
    void *const *dst;
    const void *const *src;
    int destinations, sources, average;
    size_t count, size;              /* elements; bytes of one as stored */
    rondo_datatype_t type, computed; /* as stored; as reduced */
    rondo_op_t op;
    int streaming; /* destination 0 goes past the cache */
};

struct scratch {
    _Alignas(LINE) char values[BLOCK_BYTES], other[BLOCK_BYTES];
};

static const char *source(const struct job *job, int s, size_t offset)
{
    return (const char *) job->src[s] + offset * job->size;
}

static char *destination(const struct job *job, int d, size_t offset)
{
    return (char *) job->dst[d] + offset * job->size;
}

/* Bytes that destination 0 lies beyond a line's start, there. */
static size_t beyond_line(const struct job *job, size_t offset)
{
    return (uintptr_t) destination(job, 0, offset) % LINE;
}

/* past: past the cache; the caller owes a fence. */
static void copy(const struct rondo_reduce_kernels *kernels, void *to, const void *from, size_t bytes, int past)
{
    if (past)
        kernels->copy_streaming(to, from, bytes);
    else
        memcpy(to, from, bytes);
}

/* Copies elements [offset, offset + count) of the result from where they are to where they are not yet. */
static void deliver(const struct job *job, size_t offset, size_t count, const char *result)
{
    for (int d = 0; d < job->destinations; d++) {
        char *to = destination(job, d, offset);
        if (to != result)
            copy(job->kernels, to, result, count * job->size, d == 0 && job->streaming);
    }
}

/* Leaves a part of the result in target, which may be the same part of any source: it is not written
 * before the others have been read. last is the kernel for the last step of types that are reduced as they are stored. */
static void reduce_block(const struct job *job, size_t offset, size_t count, reduce_kernel *last, void *target,
                         struct scratch *scratch)
{
    const struct rondo_reduce_kernels *kernels = job->kernels;
    reduce_kernel *reduce = kernels->reduce[job->computed][job->op];
    if (job->computed != job->type) {
        float *values = (float *) (void *) scratch->values, *other = (float *) (void *) scratch->other;
        kernels->widen[job->type](values, source(job, 0, offset), count);
        for (int s = 1; s < job->sources; s++) {
            kernels->widen[job->type](other, source(job, s, offset), count);
            reduce(values, values, other, count);
        }
        if (job->average > 0)
            kernels->divide[job->computed](values, job->average, count);
        kernels->narrow[job->type](target, values, count);
        return;
    }
    const void *reduced = source(job, 0, offset);
    for (int s = 1; s < job->sources - 1; s++) {
        reduce(scratch->values, reduced, source(job, s, offset), count);
        reduced = scratch->values;
    }
    if (job->sources > 1)
        last(target, reduced, source(job, job->sources - 1, offset), count);
    else if (target != reduced)
        memcpy(target, reduced, count * job->size);
    if (job->average > 0)
        kernels->divide[job->computed](target, job->average, count);
}

static void reduce_all(const struct job *job)
{
    const struct rondo_reduce_kernels *kernels = job->kernels;
    int direct = job->computed == job->type && job->average <= 0 && job->sources > 1;
    int sum = (job->op == RONDO_SUM || job->op == RONDO_AVG) && kernels->sum_twice[job->computed] != NULL;
    int twice = direct && sum && job->sources == 2 && job->destinations == 2 && !job->streaming;
    int store_streaming = direct && sum && job->destinations == 1 && job->streaming;
    /* With no step between reading and the only writing, one part will do. */
    int whole = twice || (direct && job->sources == 2 && job->destinations == 1 && (store_streaming || !job->streaming));
    size_t block_count = BLOCK_BYTES / element_size[job->computed];
    if (whole)
        block_count = job->count;
    reduce_kernel *reduce = kernels->reduce[job->computed][job->op];

    struct scratch scratch;
    _Alignas(LINE) char staged[BLOCK_BYTES];
    for (size_t offset = 0, n; offset < job->count; offset += n) {
        /* A short first part makes the others begin on a line of destination 0. */
        size_t beyond = job->count * job->size < ALIGN_MIN ? 0 : beyond_line(job, offset);
        n = beyond ? (LINE - beyond) / job->size : block_count;
        if (n == 0) /* a line ends in the middle of an element */
            n = block_count;
        if (n > job->count - offset)
            n = job->count - offset;
        char *first = destination(job, 0, offset);
        if (twice) {
            kernels->sum_twice[job->type](first, destination(job, 1, offset), source(job, 0, offset), source(job, 1, offset),
                                          n);
            continue;
        }
        char *target = !job->streaming || store_streaming ? first
                       : job->destinations > 1            ? destination(job, 1, offset)
                                                          : staged;
        reduce_kernel *last = store_streaming && !beyond ? kernels->sum_streaming[job->type] : reduce;
        reduce_block(job, offset, n, last, target, &scratch);
        deliver(job, offset, n, target);
    }
}

static void copy_all(const struct job *job)
{
    size_t block_count = BLOCK_BYTES / job->size;
    if (job->destinations == 1)
        block_count = job->count;
    for (size_t offset = 0, n; offset < job->count; offset += n) {
        n = block_count < job->count - offset ? block_count : job->count - offset;
        deliver(job, offset, n, source(job, 0, offset));
    }
}

static const struct rondo_reduce_kernels *kernels_in_use(void)
{
    const struct rondo_reduce_kernels *kernels = atomic_load_explicit(&chosen, memory_order_relaxed);
    if (!kernels) {
        kernels = fastest();
        atomic_store_explicit(&chosen, kernels, memory_order_relaxed);
    }
    return kernels;
}

void rondo_widen(float *dst, const void *src, size_t count, rondo_datatype_t type)
{
    const struct rondo_reduce_kernels *kernels = kernels_in_use();
    if (kernels->widen[type])
        kernels->widen[type](dst, src, count);
    else
        memcpy(dst, src, count * sizeof *dst);
}

void rondo_narrow(void *dst, const float *src, size_t count, rondo_datatype_t type)
{
    const struct rondo_reduce_kernels *kernels = kernels_in_use();
    if (kernels->narrow[type])
        kernels->narrow[type](dst, src, count);
    else
        memcpy(dst, src, count * sizeof *src);
}

/* Any reduction. Not inline: the compiler would prepare the job before it is known to be needed. */
static __attribute__((noinline)) void reduce_job(const struct rondo_reduction *reduction,
                                                 const struct rondo_reduce_kernels *kernels)
{
    struct job job = {.kernels = kernels,
                      .dst = reduction->dst,
                      .src = reduction->src,
                      .destinations = reduction->destinations,
                      .sources = reduction->sources,
                      .average = reduction->average,
                      .count = reduction->count,
                      .size = element_size[reduction->type],
                      .type = reduction->type,
                      .computed = kernels->widen[reduction->type] ? RONDO_FLOAT : reduction->type,
                      .op = reduction->op};
    job.streaming = reduction->streaming && job.count * job.size >= STREAM_MIN;
    /* The lines of a destination that is also a source come into the cache anyway. */
    for (int s = 0; s < job.sources && job.streaming; s++)
        job.streaming = job.src[s] != job.dst[0];

    if (job.sources == 1 && job.average <= 0) {
        copy_all(&job);
    } else {
        assert(kernels->reduce[job.computed][job.op]);
        reduce_all(&job);
    }
    if (job.streaming)
        kernels->fence();
}

/* Where C would align an object of so many bytes, at most. */
static size_t alignment_of(size_t bytes)
{
    const size_t natural = bytes & (~bytes + 1);
    return natural < 16 ? natural : 16;
}

/* By the user's operator, which takes the right operand and leaves the result there. A part of the last source becomes the
 * result, by a copy where a destination may be any of the sources; the others are combined into it from the last to the first.
 */
static __attribute__((noinline)) void reduce_by_user(const struct rondo_reduction *reduction)
{
    _Alignas(LINE) char result[RONDO_COMBINED_BYTES_MAX], aligned[RONDO_COMBINED_BYTES_MAX];
    const struct rondo_user_operator *user = reduction->user;
    const size_t size = user->bytes, block_count = sizeof(result) / size, alignment = alignment_of(size);
    const int last = reduction->sources - 1;
    for (size_t offset = 0, n; offset < reduction->count; offset += n) {
        n = block_count < reduction->count - offset ? block_count : reduction->count - offset;
        memcpy(result, (const char *) reduction->src[last] + offset * size, n * size);
        for (int s = last - 1; s >= 0; s--) {
            const void *in = (const char *) reduction->src[s] + offset * size;
            if ((uintptr_t) in % alignment != 0)
                in = memcpy(aligned, in, n * size);
            user->function(in, result, n, user->type, user->argument);
        }
        for (int d = 0; d < reduction->destinations; d++)
            memcpy((char *) reduction->dst[d] + offset * size, result, n * size);
    }
}

void rondo_reduce_elements(const struct rondo_reduction *reduction)
{
    if (__builtin_expect(reduction->user != NULL, 0)) {
        reduce_by_user(reduction);
        return;
    }
    const struct rondo_reduce_kernels *kernels = kernels_in_use();
    const size_t bytes = reduction->count * element_size[reduction->type];
    if (bytes < ALIGN_MIN && reduction->destinations == 1 && reduction->average <= 0) { /* what the job would come to */
        void *to = reduction->dst[0];
        const void *const *src = reduction->src;
        if (reduction->sources == 1) {
            if (to != src[0])
                memcpy(to, src[0], bytes);
            return;
        }
        if (reduction->sources == 2 && !kernels->widen[reduction->type]) {
            kernels->reduce[reduction->type][reduction->op](to, src[0], src[1], reduction->count);
            return;
        }
    }
    reduce_job(reduction, kernels);
}

enum { OUT_BLOCK = 32 * 1024 }; /* stays in the second-level cache with its sources */

void rondo_copy_out(void *const *dst, int destinations, void *local, const void *src, size_t bytes, int past)
{
    const struct rondo_reduce_kernels *kernels = kernels_in_use();
    for (size_t offset = 0, n; offset < bytes; offset += n) {
        const char *from = (const char *) src + offset;
        n = bytes - offset < OUT_BLOCK ? bytes - offset : OUT_BLOCK;
        if (local != NULL && local != src)
            from = memcpy((char *) local + offset, from, n);
        for (int d = 0; d < destinations; d++)
            copy(kernels, (char *) dst[d] + offset, from, n, past);
    }
    if (past)
        kernels->fence();
}

void rondo_reduce_out(const struct rondo_reduction *reduction, void *local, int past)
{
    _Alignas(LINE) char scratch[OUT_BLOCK];
    const void *from[RONDO_REDUCE_SOURCES_MAX];
    const size_t size = size_of(reduction), count = reduction->count;
    const size_t block_count = count * size <= OUT_BLOCK ? count : OUT_BLOCK / size; /* a division is slow */
    const struct rondo_reduce_kernels *kernels = kernels_in_use();
    for (size_t offset = 0; offset < count; offset += block_count) {
        size_t n = count - offset < block_count ? count - offset : block_count;
        void *target = local != NULL ? (char *) local + offset * size : scratch;
        for (int s = 0; s < reduction->sources; s++)
            from[s] = (const char *) reduction->src[s] + offset * size;
        rondo_reduce_elements(&(struct rondo_reduction){.dst = &target,
                                                        .src = from,
                                                        .destinations = 1,
                                                        .sources = reduction->sources,
                                                        .count = n,
                                                        .type = reduction->type,
                                                        .op = reduction->op,
                                                        .user = reduction->user,
                                                        .average = reduction->average});
        for (int r = 0; r < reduction->destinations; r++)
            copy(kernels, (char *) reduction->dst[r] + offset * size, target, n * size, past);
    }
    if (past)
        kernels->fence();
}
