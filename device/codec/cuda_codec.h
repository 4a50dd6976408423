/*
 * Carries out a slice operation whose slots hold ZFP streams with the worker threads of a CUDA block: what device/codec/codec.h
 * does on the host, to the same bits. A warp takes 128 elements at a time, a lane the four of a block: they are decoded,
 * reduced, encoded and decoded again in registers, and streams go through the warp's stage in shared memory
 * (device/codec/zfp_warp.h). While it codes them the next 128 are on their way: a slot in the host's memory is two microseconds
 * off, and more while the link is busy.
 */
#ifndef RONDO_DEVICE_CODEC_CUDA_CODEC_H
#define RONDO_DEVICE_CODEC_CUDA_CODEC_H

#if !defined(__CUDACC__)
#error "__device__ code: nvcc alone compiles it"
#endif

#include "device/abi/cuda_access.h"
#include "device/reduce/operators.h"
#include "device/abi/slice_operation.h"
#include "rondo.h"
#include "device/abi/structures.h"
#include "device/codec/zfp_warp.h"

#define RONDO_CODEC_WARPS    16 /* most warps that take part, of doubles half as many; others have nothing to do */
#define RONDO_CODEC_ELEMENTS (RONDO_ZFP_LANES * RONDO_ZFP_VALUES)
#define RONDO_CODEC_AHEAD    4 /* words a lane of a stream that is loaded early: what floats have at the highest rate */

static __device__ const struct rondo_zfp_spread_tables rondo_codec_tables = rondo_zfp_spread_out();

/* A slice operation in registers: in shared memory it would be read again after each access to other memory. */
struct rondo_codec_job {
    const struct rondo_slice_op *slice_op; /* has all sources and remotes */
    const struct rondo_zfp_spread_tables *tables;
    uint32_t *stage; /* the warp's */
    const char *source[2];
    char *remote, *local, *residual;
    uint64_t coded_sources;
    uint32_t sources, remotes, rate, type, op, average, element_bytes, codec, feedback;
    uint32_t coded, plain; /* the first source of either kind; else RONDO_CODEC_NONE */
    uint32_t lane;
};
#define RONDO_CODEC_NONE 255u
static_assert((RONDO_CODEC_AHEAD + 1) * RONDO_ZFP_LANES <= RONDO_ZFP_STAGE_float, "a stage has room for a stream");

/* A lane's view of the part of a slice operation on which its warp works. */
struct rondo_codec_part {
    const struct rondo_codec_job *job;
    uint64_t own;  /* the first of the lane's four elements */
    uint32_t mine; /* number of them that exist */
    uint32_t blocks;
    uint64_t stream_at; /* bytes, of the part's stream */
    uint32_t words;     /* of it */
};

/* What has been loaded early of a part: of its first coded source and of its first other one. */
struct rondo_codec_ahead {
    uint32_t words[RONDO_CODEC_AHEAD];
    struct rondo_cuda_vector values;
    int has_values; /* else they are no vector */
};

RONDO_CUDA_INLINE struct rondo_codec_job rondo_codec_job_of(const struct rondo_slice_op *slice_op)
{
    const uint32_t coded = (uint32_t) __ffsll((long long) slice_op->coded_sources) - 1,
                   plain = (uint32_t) __ffsll((long long) ~slice_op->coded_sources) - 1;
    struct rondo_codec_job job = {};
    job.slice_op = slice_op;
    job.source[0] = slice_op->source[0];
    job.source[1] = slice_op->source[1];
    job.remote = slice_op->remote[0];
    job.local = slice_op->local;
    job.residual = slice_op->residual;
    job.coded_sources = slice_op->coded_sources;
    job.sources = slice_op->sources;
    job.remotes = slice_op->remotes;
    job.rate = slice_op->rate;
    job.type = slice_op->type;
    job.op = slice_op->op;
    job.average = slice_op->average;
    job.element_bytes = slice_op->element_bytes;
    job.codec = slice_op->codec;
    job.feedback = slice_op->feedback;
    job.coded = coded < job.sources && job.rate <= 8 * RONDO_CODEC_AHEAD ? coded : RONDO_CODEC_NONE;
    job.plain = plain < job.sources ? plain : RONDO_CODEC_NONE;
    return job;
}

RONDO_CUDA_INLINE const char *rondo_codec_source_of(const struct rondo_codec_job *job, uint32_t s)
{
    return s == 0 ? job->source[0] : s == 1 ? job->source[1] : job->slice_op->source[s];
}

/* Word j of the part's stream; zero behind its end. */
RONDO_CUDA_INLINE uint32_t rondo_codec_word(const struct rondo_codec_part *part, uint32_t source, uint32_t j)
{
    return rondo_cuda_load_word_if(j < part->words, rondo_codec_source_of(part->job, source) + part->stream_at + 4 * j);
}

/* Four floats that are one vector. */
RONDO_CUDA_INLINE int rondo_codec_is_vector(const struct rondo_codec_part *part, const char *from)
{
    return part->job->type == RONDO_FLOAT && part->mine == 4 && ((uintptr_t) from & 15) == 0;
}

RONDO_CUDA_INLINE const char *rondo_codec_own(const struct rondo_codec_part *part, uint32_t source)
{
    return rondo_codec_source_of(part->job, source) + part->own * part->job->element_bytes;
}

RONDO_CUDA_INLINE void rondo_codec_ask(const struct rondo_codec_part *part, struct rondo_codec_ahead *ahead)
{
    const struct rondo_codec_job *job = part->job;
#pragma unroll
    for (uint32_t i = 0; i < RONDO_CODEC_AHEAD; i++)
        if (job->coded != RONDO_CODEC_NONE && i * RONDO_ZFP_LANES < part->words)
            ahead->words[i] = rondo_codec_word(part, job->coded, job->lane + i * RONDO_ZFP_LANES);
    ahead->has_values = job->plain != RONDO_CODEC_NONE && rondo_codec_is_vector(part, rondo_codec_own(part, job->plain));
    if (ahead->has_values)
        ahead->values = rondo_cuda_load(rondo_codec_own(part, job->plain));
}

/* Loads the words of a part's stream into the stage, with two behind them that may be read. */
RONDO_CUDA_INLINE void rondo_codec_fetch(const struct rondo_codec_part *part, const struct rondo_codec_ahead *ahead,
                                         uint32_t source)
{
    const struct rondo_codec_job *job = part->job;
    uint32_t *stage = job->stage + job->lane;
    __syncwarp();
    if (source == job->coded) { /* a stage has room for so many whole rows */
#pragma unroll
        for (uint32_t i = 0; i <= RONDO_CODEC_AHEAD; i++)
            if (i * RONDO_ZFP_LANES < part->words + 2)
                stage[i * RONDO_ZFP_LANES] = i < RONDO_CODEC_AHEAD && i * RONDO_ZFP_LANES < part->words ? ahead->words[i] : 0;
    } else {
        for (uint32_t j = job->lane; j < part->words + 2; j += RONDO_ZFP_LANES)
            job->stage[j] = rondo_codec_word(part, source, j);
    }
    __syncwarp();
}

RONDO_CUDA_INLINE void rondo_codec_put_word(char *to, uint32_t word)
{
    asm volatile("st.global.u32 [%0], %1;" ::"l"(to), "r"(word) : "memory");
}

/* To all remotes. */
RONDO_CUDA_INLINE void rondo_codec_put(const struct rondo_codec_part *part, uint32_t j, uint32_t word)
{
    const struct rondo_codec_job *job = part->job;
    if (job->remotes > 0)
        rondo_codec_put_word(job->remote + part->stream_at + 4 * j, word);
    for (uint32_t r = 1; r < job->remotes; r++)
        rondo_codec_put_word(job->slice_op->remote[r] + part->stream_at + 4 * j, word);
}

/* Copies the stream in the stage to all remotes as it is. */
RONDO_CUDA_INLINE void rondo_codec_pass_on(const struct rondo_codec_part *part)
{
    for (uint32_t j = part->job->lane; j < part->words; j += RONDO_ZFP_LANES)
        rondo_codec_put(part, j, part->job->stage[j]);
}

/* Copies the stream of what the lanes have staged to all remotes. */
RONDO_CUDA_INLINE void rondo_codec_deliver(const struct rondo_codec_part *part, uint32_t stride)
{
    const struct rondo_codec_job *job = part->job;
    for (uint32_t j = job->lane; j < part->words; j += RONDO_ZFP_LANES)
        rondo_codec_put(part, j, rondo_zfp_stream_word(job->stage, stride, part->blocks, job->rate, j));
}

/* ---- values in memory ---- */

RONDO_CUDA_INLINE void rondo_codec_take_float(struct rondo_cuda_vector vector, float *values)
{
    for (int i = 0; i < 4; i++)
        values[i] = rondo_float_of_bits(vector.word[i]);
}

RONDO_CUDA_INLINE void rondo_codec_load_float(const struct rondo_codec_part *part, const char *from, float *values)
{
    if (rondo_codec_is_vector(part, from)) {
        rondo_codec_take_float(rondo_cuda_load(from), values);
        return;
    }
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t low = 0;
        if (i < part->mine && part->job->type == RONDO_FLOAT)
            low = *(const volatile uint32_t *) (from + 4 * i);
        else if (i < part->mine)
            low = *(const volatile uint16_t *) (from + 2 * i);
        values[i] = part->job->type == RONDO_FLOAT     ? rondo_float_of_bits(low)
                    : part->job->type == RONDO_FLOAT16 ? rondo_float16_to_float((uint16_t) low)
                                                       : rondo_bfloat16_to_float((uint16_t) low);
    }
}

RONDO_CUDA_INLINE uint16_t rondo_codec_narrow(const struct rondo_codec_job *job, float value)
{
    return job->type == RONDO_FLOAT16 ? rondo_float16_from_float(value) : rondo_bfloat16_from_float(value);
}

RONDO_CUDA_INLINE void rondo_codec_store_float(const struct rondo_codec_part *part, char *to, const float *values)
{
    if (rondo_codec_is_vector(part, to)) {
        struct rondo_cuda_vector v;
        for (int i = 0; i < 4; i++)
            v.word[i] = rondo_float_bits(values[i]);
        rondo_cuda_store(to, v);
        return;
    }
    for (uint32_t i = 0; i < 4; i++)
        if (i < part->mine && part->job->type == RONDO_FLOAT)
            *(volatile uint32_t *) (to + 4 * i) = rondo_float_bits(values[i]);
        else if (i < part->mine)
            *(volatile uint16_t *) (to + 2 * i) = rondo_codec_narrow(part->job, values[i]);
}

RONDO_CUDA_INLINE void rondo_codec_round_float(const struct rondo_codec_job *job, float *values)
{
    for (int i = 0; job->type != RONDO_FLOAT && i < 4; i++) {
        uint16_t stored = rondo_codec_narrow(job, values[i]);
        values[i] = job->type == RONDO_FLOAT16 ? rondo_float16_to_float(stored) : rondo_bfloat16_to_float(stored);
    }
}

/* Never asked for early. */
RONDO_CUDA_INLINE void rondo_codec_take_double(struct rondo_cuda_vector vector, double *values)
{
    (void) vector;
    (void) values;
}

RONDO_CUDA_INLINE void rondo_codec_load_double(const struct rondo_codec_part *part, const char *from, double *values)
{
    for (uint32_t i = 0; i < 4; i++)
        values[i] = rondo_double_of_bits(i < part->mine ? *(const volatile uint64_t *) (from + 8 * i) : 0);
}

RONDO_CUDA_INLINE void rondo_codec_store_double(const struct rondo_codec_part *part, char *to, const double *values)
{
    for (uint32_t i = 0; i < 4; i++)
        if (i < part->mine)
            *(volatile uint64_t *) (to + 8 * i) = rondo_double_bits(values[i]);
}

RONDO_CUDA_INLINE void rondo_codec_round_double(const struct rondo_codec_job *job, double *values)
{
    (void) job;
    (void) values;
}

/* ---- parts ---- */

#define RONDO_CODEC_DEFINE(name, type)                                                                                         \
    RONDO_CUDA_INLINE type rondo_codec_apply_##name(int op, type a, type b)                                                    \
    {                                                                                                                          \
        return op == RONDO_SUM ? rondo_sum_##name(a, b) : op == RONDO_MIN ? rondo_min_##name(a, b) : rondo_max_##name(a, b);   \
    }                                                                                                                          \
    RONDO_CUDA_INLINE void rondo_codec_source_##name(const struct rondo_codec_part *part,                                      \
                                                     const struct rondo_codec_ahead *ahead, uint32_t s, type *values)          \
    {                                                                                                                          \
        const struct rondo_codec_job *job = part->job;                                                                         \
        if (job->coded_sources >> s & 1) {                                                                                     \
            rondo_codec_fetch(part, ahead, s);                                                                                 \
            if (job->lane < part->blocks)                                                                                      \
                rondo_zfp_unstage_##name(job->stage, job->lane *RONDO_ZFP_VALUES * job->rate, job->rate, job->tables->planes,  \
                                         values);                                                                              \
            if (job->codec & RONDO_CODEC_STORED)                                                                               \
                rondo_codec_round_##name(job, values);                                                                         \
            return;                                                                                                            \
        }                                                                                                                      \
        if (s == job->plain && ahead->has_values)                                                                              \
            rondo_codec_take_##name(ahead->values, values);                                                                    \
        else                                                                                                                   \
            rondo_codec_load_##name(part, rondo_codec_own(part, s), values);                                                   \
        if (job->residual != NULL && (job->feedback & RONDO_FEEDBACK_TAKE))                                                    \
            for (uint32_t i = 0; i < 4; i++)                                                                                   \
                if (i < part->mine)                                                                                            \
                    values[i] += ((const volatile type *) job->residual)[part->own + i];                                       \
    }                                                                                                                          \
    RONDO_CUDA_INLINE void rondo_codec_keep_##name(const struct rondo_codec_part *part, const type *values,                    \
                                                   const type *decoded)                                                        \
    {                                                                                                                          \
        const struct rondo_codec_job *job = part->job;                                                                         \
        volatile type *residual = (volatile type *) job->residual + part->own;                                                 \
        float scale =                                                                                                          \
            (job->average != 0 ? (float) job->average : 1.0f) / (float) (1u << (job->feedback >> RONDO_FEEDBACK_SHIFT));       \
        for (uint32_t i = 0; i < 4; i++) {                                                                                     \
            if (i >= part->mine)                                                                                               \
                break;                                                                                                         \
            type lost = (values[i] - decoded[i]) * (type) scale + ((job->feedback & RONDO_FEEDBACK_ADD) ? residual[i] : 0);    \
            residual[i] = lost - lost == 0 ? lost : 0; /* infinities and NaNs */                                               \
        }                                                                                                                      \
    }                                                                                                                          \
    RONDO_CUDA_INLINE void rondo_codec_part_##name(const struct rondo_codec_part *part, const struct rondo_codec_ahead *ahead) \
    {                                                                                                                          \
        const struct rondo_codec_job *job = part->job;                                                                         \
        int keeps = job->residual != NULL && (job->feedback & RONDO_FEEDBACK_KEEP);                                            \
        type values[4] = {0, 0, 0, 0}, other[4] = {0, 0, 0, 0};                                                                \
        rondo_codec_source_##name(part, ahead, 0, values);                                                                     \
        if (job->codec & RONDO_CODEC_FORWARD)                                                                                  \
            rondo_codec_pass_on(part);                                                                                         \
        for (uint32_t s = 1; s < job->sources; s++) {                                                                          \
            rondo_codec_source_##name(part, ahead, s, other);                                                                  \
            for (int i = 0; i < 4; i++)                                                                                        \
                values[i] = rondo_codec_apply_##name(job->op, values[i], other[i]);                                            \
        }                                                                                                                      \
        for (int i = 0; job->average != 0 && i < 4; i++)                                                                       \
            values[i] = rondo_mean_##name(values[i], (int) job->average);                                                      \
        if (!(job->codec & RONDO_CODEC_FORWARD) && (job->remotes > 0 || (job->codec & RONDO_CODEC_ROUND))) {                   \
            type padded[4] = {values[0], part->mine > 1 ? values[1] : values[0],                                               \
                              part->mine > 2   ? values[2]                                                                     \
                              : part->mine > 1 ? values[1]                                                                     \
                                               : values[0],                                                                    \
                              part->mine > 3 ? values[3] : values[0]};                                                         \
            uint32_t *own = job->stage + job->lane * RONDO_ZFP_STRIDE_##name;                                                  \
            __syncwarp();                                                                                                      \
            if (job->lane < part->blocks)                                                                                      \
                rondo_zfp_stage_##name(padded, job->rate, job->tables->codes, own);                                            \
            __syncwarp();                                                                                                      \
            rondo_codec_deliver(part, RONDO_ZFP_STRIDE_##name);                                                                \
            if ((job->codec & RONDO_CODEC_ROUND) && job->lane < part->blocks) {                                                \
                rondo_zfp_unstage_##name(own, 0, job->rate, job->tables->planes, other);                                       \
                if (keeps)                                                                                                     \
                    rondo_codec_keep_##name(part, values, other);                                                              \
                for (int i = 0; i < 4; i++)                                                                                    \
                    values[i] = other[i];                                                                                      \
            }                                                                                                                  \
        }                                                                                                                      \
        if (job->local != NULL)                                                                                                \
            rondo_codec_store_##name(part, job->local + part->own * job->element_bytes, values);                               \
    }
RONDO_CODEC_DEFINE(float, float)
RONDO_CODEC_DEFINE(double, double)
#undef RONDO_CODEC_DEFINE

/* The part that begins with an element of the slice operation. */
RONDO_CUDA_INLINE struct rondo_codec_part rondo_codec_part_at(const struct rondo_codec_job *job, uint64_t count, uint64_t first)
{
    const uint64_t left = count - first;
    const uint32_t here = left < RONDO_CODEC_ELEMENTS ? (uint32_t) left : RONDO_CODEC_ELEMENTS;
    const uint32_t before = RONDO_ZFP_VALUES * job->lane;
    struct rondo_codec_part part;
    part.job = job;
    part.own = first + before;
    part.mine = here <= before ? 0 : here - before < RONDO_ZFP_VALUES ? here - before : RONDO_ZFP_VALUES;
    part.blocks = (here + RONDO_ZFP_VALUES - 1) / RONDO_ZFP_VALUES;
    part.stream_at = first / 8 * job->rate;
    part.words = rondo_zfp_stream_words(part.blocks, job->rate);
    return part;
}

/* Carries out a slice operation in shared memory. To be called by all threads of whole warps; thread and threads number
 * them. Returns 1. */
RONDO_CUDA_INLINE int rondo_codec_run_part(const struct rondo_slice_op *slice_op, uint32_t thread, uint32_t threads)
{
    __shared__ uint32_t stages[RONDO_CODEC_WARPS * RONDO_ZFP_STAGE_float];
    __shared__ struct rondo_zfp_spread_tables tables;
    uint32_t warp = thread / RONDO_ZFP_LANES, warps = threads / RONDO_ZFP_LANES;
    const uint32_t stage = slice_op->type == RONDO_DOUBLE ? RONDO_ZFP_STAGE_double : RONDO_ZFP_STAGE_float;
    if (warps > sizeof(stages) / sizeof(*stages) / stage)
        warps = sizeof(stages) / sizeof(*stages) / stage;
    const uint64_t step = (uint64_t) warps * RONDO_CODEC_ELEMENTS, count = slice_op->count;
    uint64_t first = (uint64_t) warp * RONDO_CODEC_ELEMENTS;
    if (warp >= warps || first >= count)
        return 1;
    struct rondo_codec_job job = rondo_codec_job_of(slice_op);
    job.tables = &tables;
    asm volatile("" : "+l"(job.tables)); /* kept in a register, or each use computes the address anew */
    __builtin_assume(__isShared(job.tables));
    job.stage = stages + warp * stage;
    job.lane = thread % RONDO_ZFP_LANES;
    struct rondo_codec_part next = rondo_codec_part_at(&job, count, first);
    struct rondo_codec_ahead asked = {};
    rondo_codec_ask(&next, &asked);
    /* Every warp writes all of them, and so needs to wait for no other. */
    for (uint32_t i = job.lane; i < sizeof(tables) / 16; i += RONDO_ZFP_LANES)
        ((uint4 *) &tables)[i] = ((const uint4 *) &rondo_codec_tables)[i];
    __syncwarp();
#pragma unroll 1
    for (; first < count; first += step) {
        const struct rondo_codec_part part = next;
        const struct rondo_codec_ahead ahead = asked;
        if (first + step < count) {
            next = rondo_codec_part_at(&job, count, first + step);
            rondo_codec_ask(&next, &asked);
        }
        if (job.type == RONDO_DOUBLE)
            rondo_codec_part_double(&part, &ahead);
        else
            rondo_codec_part_float(&part, &ahead);
    }
    return 1;
}

#endif
