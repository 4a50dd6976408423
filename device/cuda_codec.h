/*
 * Carries out a piece whose slots hold ZFP streams with the worker threads of a CUDA block: what device/codec.h does on the
 * host, to the same bits. A warp takes 128 elements at a time, a lane the four of a block: they are decoded, folded, encoded
 * and decoded again in registers, and streams go through the warp's stage in shared memory (zfp_warp.h).
 */
#ifndef RONDO_DEVICE_CUDA_CODEC_H
#define RONDO_DEVICE_CUDA_CODEC_H

#include "cuda_access.h"
#include "operators.h"
#include "piece.h"
#include "rondo.h"
#include "structures.h"
#include "zfp_warp.h"

#define RONDO_CODEC_WARPS    16 /* most of them that take part, of doubles half as many; others have nothing to do */
#define RONDO_CODEC_ELEMENTS (RONDO_ZFP_LANES * RONDO_ZFP_VALUES)

struct rondo_codec_tables {
    uint32_t codes[RONDO_ZFP_CODES], planes[RONDO_ZFP_PLANES];
};

static __constant__ struct rondo_codec_tables rondo_codec_constants = {{RONDO_ZFP_PLANE_CODES}, {RONDO_ZFP_CODE_PLANES}};

/* What a lane knows of the part of a piece that its warp has in hand. */
struct rondo_codec_part {
    const struct rondo_piece *piece;
    const struct rondo_codec_tables *tables;
    uint32_t *stage; /* the warp's */
    uint64_t first;  /* element of the part, and of the lane's four */
    uint64_t own;
    uint32_t blocks; /* of the part */
    uint32_t lane, mine;
    uint64_t stream_at; /* bytes, of the part's stream */
    uint32_t words;     /* of it */
};

/* The words of a part's stream into the stage. */
RONDO_CUDA_INLINE void rondo_codec_fetch(const struct rondo_codec_part *part, const char *stream)
{
    __syncwarp();
    for (uint32_t j = part->lane; j < part->words + 2; j += RONDO_ZFP_LANES)
        part->stage[j] = rondo_cuda_load_word_if(j < part->words, stream + part->stream_at + 4 * j);
    __syncwarp();
}

RONDO_CUDA_INLINE void rondo_codec_put_word(char *to, uint32_t word)
{
    asm volatile("st.global.u32 [%0], %1;" ::"l"(to), "r"(word) : "memory");
}

/* The stream in the stage as it came to all remotes. */
RONDO_CUDA_INLINE void rondo_codec_pass_on(const struct rondo_codec_part *part)
{
    for (uint32_t j = part->lane; j < part->words; j += RONDO_ZFP_LANES)
        for (uint32_t r = 0; r < part->piece->remotes; r++)
            rondo_codec_put_word(part->piece->remote[r] + part->stream_at + 4 * j, part->stage[j]);
}

/* The stream of what the lanes have staged. */
RONDO_CUDA_INLINE void rondo_codec_deliver(const struct rondo_codec_part *part, uint32_t stride)
{
    for (uint32_t j = part->lane; j < part->words; j += RONDO_ZFP_LANES) {
        uint32_t word = rondo_zfp_stream_word(part->stage, stride, part->blocks, part->piece->rate, j);
        for (uint32_t r = 0; r < part->piece->remotes; r++)
            rondo_codec_put_word(part->piece->remote[r] + part->stream_at + 4 * j, word);
    }
}

/* ---- values in memory ---- */

RONDO_CUDA_INLINE void rondo_codec_load_float(const struct rondo_piece *piece, const char *from, uint32_t mine, float *values)
{
    if (piece->type == RONDO_FLOAT && mine == 4 && ((uintptr_t) from & 15) == 0) {
        struct rondo_cuda_vector v = rondo_cuda_load(from);
        for (int i = 0; i < 4; i++)
            values[i] = rondo_float_of_bits(v.word[i]);
        return;
    }
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t low = 0;
        if (i < mine && piece->type == RONDO_FLOAT)
            low = *(const volatile uint32_t *) (from + 4 * i);
        else if (i < mine)
            low = *(const volatile uint16_t *) (from + 2 * i);
        values[i] = piece->type == RONDO_FLOAT     ? rondo_float_of_bits(low)
                    : piece->type == RONDO_FLOAT16 ? rondo_float16_to_float((uint16_t) low)
                                                   : rondo_bfloat16_to_float((uint16_t) low);
    }
}

RONDO_CUDA_INLINE uint16_t rondo_codec_narrow(const struct rondo_piece *piece, float value)
{
    return piece->type == RONDO_FLOAT16 ? rondo_float16_from_float(value) : rondo_bfloat16_from_float(value);
}

RONDO_CUDA_INLINE void rondo_codec_store_float(const struct rondo_piece *piece, char *to, uint32_t mine, const float *values)
{
    if (piece->type == RONDO_FLOAT && mine == 4 && ((uintptr_t) to & 15) == 0) {
        struct rondo_cuda_vector v;
        for (int i = 0; i < 4; i++)
            v.word[i] = rondo_float_bits(values[i]);
        rondo_cuda_store(to, v);
        return;
    }
    for (uint32_t i = 0; i < 4; i++)
        if (i < mine && piece->type == RONDO_FLOAT)
            *(volatile uint32_t *) (to + 4 * i) = rondo_float_bits(values[i]);
        else if (i < mine)
            *(volatile uint16_t *) (to + 2 * i) = rondo_codec_narrow(piece, values[i]);
}

RONDO_CUDA_INLINE void rondo_codec_round_float(const struct rondo_piece *piece, float *values)
{
    for (int i = 0; piece->type != RONDO_FLOAT && i < 4; i++) {
        uint16_t stored = rondo_codec_narrow(piece, values[i]);
        values[i] = piece->type == RONDO_FLOAT16 ? rondo_float16_to_float(stored) : rondo_bfloat16_to_float(stored);
    }
}

RONDO_CUDA_INLINE void rondo_codec_load_double(const struct rondo_piece *piece, const char *from, uint32_t mine, double *values)
{
    (void) piece;
    for (uint32_t i = 0; i < 4; i++)
        values[i] = rondo_double_of_bits(i < mine ? *(const volatile uint64_t *) (from + 8 * i) : 0);
}

RONDO_CUDA_INLINE void rondo_codec_store_double(const struct rondo_piece *piece, char *to, uint32_t mine, const double *values)
{
    (void) piece;
    for (uint32_t i = 0; i < 4; i++)
        if (i < mine)
            *(volatile uint64_t *) (to + 8 * i) = rondo_double_bits(values[i]);
}

RONDO_CUDA_INLINE void rondo_codec_round_double(const struct rondo_piece *piece, double *values)
{
    (void) piece;
    (void) values;
}

/* ---- parts ---- */

#define RONDO_CODEC_DEFINE(name, type)                                                                                         \
    RONDO_CUDA_INLINE type rondo_codec_apply_##name(int op, type a, type b)                                                    \
    {                                                                                                                          \
        return op == RONDO_SUM ? rondo_sum_##name(a, b) : op == RONDO_MIN ? rondo_min_##name(a, b) : rondo_max_##name(a, b);   \
    }                                                                                                                          \
    RONDO_CUDA_INLINE void rondo_codec_source_##name(const struct rondo_codec_part *part, int s, type *values)                 \
    {                                                                                                                          \
        const struct rondo_piece *piece = part->piece;                                                                         \
        if (piece->coded_sources >> s & 1) {                                                                                   \
            rondo_codec_fetch(part, piece->source[s]);                                                                         \
            if (part->lane < part->blocks)                                                                                     \
                rondo_zfp_unstage_##name(part->stage, part->lane *RONDO_ZFP_VALUES * piece->rate, piece->rate,                 \
                                         part->tables->planes, values);                                                        \
            if (piece->codec & RONDO_CODEC_STORED)                                                                             \
                rondo_codec_round_##name(piece, values);                                                                       \
            return;                                                                                                            \
        }                                                                                                                      \
        rondo_codec_load_##name(piece, piece->source[s] + part->own * piece->element_bytes, part->mine, values);               \
        if (piece->residual != NULL && (piece->feedback & RONDO_FEEDBACK_TAKE))                                                \
            for (uint32_t i = 0; i < 4; i++)                                                                                   \
                if (i < part->mine)                                                                                            \
                    values[i] += ((const volatile type *) piece->residual)[part->own + i];                                     \
    }                                                                                                                          \
    RONDO_CUDA_INLINE void rondo_codec_keep_##name(const struct rondo_codec_part *part, const type *values,                    \
                                                   const type *decoded)                                                        \
    {                                                                                                                          \
        const struct rondo_piece *piece = part->piece;                                                                         \
        volatile type *residual = (volatile type *) piece->residual + part->own;                                               \
        float scale =                                                                                                          \
            (piece->average != 0 ? (float) piece->average : 1.0f) / (float) (1u << (piece->feedback >> RONDO_FEEDBACK_SHIFT)); \
        for (uint32_t i = 0; i < 4; i++) {                                                                                     \
            if (i >= part->mine)                                                                                               \
                break;                                                                                                         \
            type lost = (values[i] - decoded[i]) * (type) scale + ((piece->feedback & RONDO_FEEDBACK_ADD) ? residual[i] : 0);  \
            residual[i] = lost - lost == 0 ? lost : 0; /* infinities and NaNs */                                               \
        }                                                                                                                      \
    }                                                                                                                          \
    RONDO_CUDA_INLINE void rondo_codec_part_##name(const struct rondo_codec_part *part)                                        \
    {                                                                                                                          \
        const struct rondo_piece *piece = part->piece;                                                                         \
        int keeps = piece->residual != NULL && (piece->feedback & RONDO_FEEDBACK_KEEP);                                        \
        type values[4] = {0, 0, 0, 0}, other[4] = {0, 0, 0, 0};                                                                \
        rondo_codec_source_##name(part, 0, values);                                                                            \
        if (piece->codec & RONDO_CODEC_FORWARD)                                                                                \
            rondo_codec_pass_on(part);                                                                                         \
        for (int s = 1; s < piece->sources; s++) {                                                                             \
            rondo_codec_source_##name(part, s, other);                                                                         \
            for (int i = 0; i < 4; i++)                                                                                        \
                values[i] = rondo_codec_apply_##name(piece->op, values[i], other[i]);                                          \
        }                                                                                                                      \
        for (int i = 0; piece->average != 0 && i < 4; i++)                                                                     \
            values[i] = rondo_mean_##name(values[i], (int) piece->average);                                                    \
        if (!(piece->codec & RONDO_CODEC_FORWARD) && (piece->remotes > 0 || (piece->codec & RONDO_CODEC_ROUND))) {             \
            type padded[4] = {values[0], part->mine > 1 ? values[1] : values[0],                                               \
                              part->mine > 2   ? values[2]                                                                     \
                              : part->mine > 1 ? values[1]                                                                     \
                                               : values[0],                                                                    \
                              part->mine > 3 ? values[3] : values[0]};                                                         \
            uint32_t *own = part->stage + part->lane * RONDO_ZFP_STRIDE_##name;                                                \
            __syncwarp();                                                                                                      \
            if (part->lane < part->blocks)                                                                                     \
                rondo_zfp_stage_##name(padded, piece->rate, part->tables->codes, own);                                         \
            __syncwarp();                                                                                                      \
            rondo_codec_deliver(part, RONDO_ZFP_STRIDE_##name);                                                                \
            if ((piece->codec & RONDO_CODEC_ROUND) && part->lane < part->blocks) {                                             \
                rondo_zfp_unstage_##name(own, 0, piece->rate, part->tables->planes, other);                                    \
                if (keeps)                                                                                                     \
                    rondo_codec_keep_##name(part, values, other);                                                              \
                for (int i = 0; i < 4; i++)                                                                                    \
                    values[i] = other[i];                                                                                      \
            }                                                                                                                  \
        }                                                                                                                      \
        if (piece->local != NULL)                                                                                              \
            rondo_codec_store_##name(piece, piece->local + part->own * piece->element_bytes, part->mine, values);              \
    }
RONDO_CODEC_DEFINE(float, float)
RONDO_CODEC_DEFINE(double, double)
#undef RONDO_CODEC_DEFINE

/* threads: whole warps, of which all threads call. */
RONDO_CUDA_INLINE int rondo_codec_carry_out_part(const struct rondo_piece *piece, uint32_t thread, uint32_t threads)
{
    __shared__ uint32_t stages[RONDO_CODEC_WARPS * RONDO_ZFP_STAGE_float];
    __shared__ struct rondo_codec_tables tables;
    uint32_t warp = thread / RONDO_ZFP_LANES, warps = threads / RONDO_ZFP_LANES;
    const uint32_t stage = piece->type == RONDO_DOUBLE ? RONDO_ZFP_STAGE_double : RONDO_ZFP_STAGE_float;
    if (warps > sizeof(stages) / sizeof(*stages) / stage)
        warps = sizeof(stages) / sizeof(*stages) / stage;
    if (warp >= warps)
        return 1;
    struct rondo_codec_part part = {piece, &tables, stages + warp * stage, 0, 0, 0, thread % RONDO_ZFP_LANES, 0, 0, 0};
    /* Every warp writes all of them, and so needs to wait for no other. */
    for (uint32_t i = part.lane; i < sizeof(tables) / 4; i += RONDO_ZFP_LANES)
        ((uint32_t *) &tables)[i] = ((const uint32_t *) &rondo_codec_constants)[i];
    __syncwarp();
    for (uint64_t first = (uint64_t) warp * RONDO_CODEC_ELEMENTS; first < piece->count;
         first += (uint64_t) warps * RONDO_CODEC_ELEMENTS) {
        uint64_t left = piece->count - first;
        uint32_t here = left < RONDO_CODEC_ELEMENTS ? (uint32_t) left : RONDO_CODEC_ELEMENTS, before = 4 * part.lane;
        part.first = first;
        part.own = first + before;
        part.mine = here <= before ? 0 : here - before < 4 ? here - before : 4;
        part.blocks = (here + RONDO_ZFP_VALUES - 1) / RONDO_ZFP_VALUES;
        part.stream_at = first / 8 * piece->rate;
        part.words = rondo_zfp_stream_words(part.blocks, piece->rate);
        if (piece->type == RONDO_DOUBLE)
            rondo_codec_part_double(&part);
        else
            rondo_codec_part_float(&part);
    }
    return 1;
}

#endif
