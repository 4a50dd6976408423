/*
 * Large plain pieces of the types and the operator that are usual: whole aligned vectors, whose pointers stay in registers.
 * While a thread stores one tile's vectors the next one's are on their way. Everything else is cuda_move.h's, whose calls take
 * longer than 32 KiB do here.
 */
#ifndef RONDO_DEVICE_MOVE_MOVE_VECTOR_H
#define RONDO_DEVICE_MOVE_MOVE_VECTOR_H

#include "device/abi/cuda_access.h"
#include "device/reduce/cuda_elements.h"
#include "device/abi/slice_operation.h"

#define RONDO_STRAIGHT_VECTOR      16u
#define RONDO_STRAIGHT_ROW         (RONDO_CUDA_WARP * RONDO_STRAIGHT_VECTOR) /* bytes of one access by a warp */
#define RONDO_STRAIGHT_SOURCES_MAX 8

/* The first two pointers of each kind; of the others the piece knows. */
struct rondo_straight {
    const struct rondo_piece *piece;
    const char *first, *second;
    char *local, *remote;
    uint64_t bytes;
    uint32_t sources, remotes;
    uint32_t thread, threads;
};

/* By what is known before the addresses are. */
RONDO_CUDA_INLINE int rondo_straight_may(const struct rondo_piece *piece)
{
    const int sums = piece->op == RONDO_SUM && rondo_is_usual_type(piece->type);
    return (piece->ll_sources | piece->ll_remotes) == 0 && piece->rate == 0 && piece->average == 0 &&
           (piece->sources == 1 || (sums && piece->sources <= RONDO_STRAIGHT_SOURCES_MAX)) &&
           piece->count * piece->element_bytes % RONDO_STRAIGHT_VECTOR == 0;
}

/* 0: some buffer is not aligned, or there is nothing to store to. */
RONDO_CUDA_INLINE int rondo_straight_look(const struct rondo_piece *piece, uint32_t thread, uint32_t threads,
                                          struct rondo_straight *straight)
{
    uintptr_t bits = (uintptr_t) piece->local;
    straight->piece = piece;
    straight->sources = piece->sources;
    straight->remotes = piece->remotes;
    for (uint32_t s = 0; s < straight->sources; s++)
        bits |= (uintptr_t) piece->source[s];
    for (uint32_t r = 0; r < straight->remotes; r++)
        bits |= (uintptr_t) piece->remote[r];
    straight->first = piece->source[0];
    straight->second = piece->source[1];
    straight->local = piece->local;
    straight->remote = straight->remotes > 0 ? piece->remote[0] : NULL;
    straight->bytes = piece->count * piece->element_bytes;
    straight->thread = thread;
    straight->threads = threads;
    return bits % RONDO_STRAIGHT_VECTOR == 0 && (straight->local != NULL || straight->remote != NULL);
}

RONDO_CUDA_INLINE void rondo_straight_store(const struct rondo_straight *straight, uint64_t offset, int rows,
                                            const struct rondo_cuda_vector *result)
{
    if (straight->remote != NULL)
#pragma unroll
        for (int u = 0; u < rows; u++)
            rondo_cuda_store(straight->remote + offset + u * RONDO_STRAIGHT_ROW, result[u]);
    if (straight->local != NULL)
#pragma unroll
        for (int u = 0; u < rows; u++)
            rondo_cuda_store(straight->local + offset + u * RONDO_STRAIGHT_ROW, result[u]);
#pragma unroll 1
    for (uint32_t r = 1; r < straight->remotes; r++) {
        char *to = straight->piece->remote[r] + offset;
#pragma unroll
        for (int u = 0; u < rows; u++)
            rondo_cuda_store(to + u * RONDO_STRAIGHT_ROW, result[u]);
    }
}

RONDO_CUDA_INLINE void rondo_straight_load(const char *from, int rows, struct rondo_cuda_vector *loaded)
{
#pragma unroll
    for (int u = 0; u < rows; u++)
        loaded[u] = rondo_cuda_load(from + u * RONDO_STRAIGHT_ROW);
}

/* Of two sources, or of one (type < 0: a copy). */
RONDO_CUDA_INLINE void rondo_straight_fold_two(int type, int rows, const struct rondo_cuda_vector *a,
                                               const struct rondo_cuda_vector *b, struct rondo_cuda_vector *result)
{
#pragma unroll
    for (int u = 0; u < rows; u++)
        if (type < 0) {
            result[u] = a[u];
        } else {
            struct rondo_cuda_wide wide;
            rondo_cuda_widen(type, 4, &wide, a[u]);
            rondo_cuda_combine(type, RONDO_SUM, RONDO_SUM, 4, &wide, b[u]);
            result[u] = rondo_cuda_narrow(type, 4, &wide);
        }
}

/* Tiles of so many rows, a warp each; then what is left, a row at a time. type < 0: one source, else two. */
RONDO_CUDA_INLINE void rondo_straight_pass(int type, int rows, const struct rondo_straight *straight)
{
    const uint32_t warp = straight->thread / RONDO_CUDA_WARP, warps = straight->threads / RONDO_CUDA_WARP;
    const uint64_t size = rows * RONDO_STRAIGHT_ROW, tiles = straight->bytes / size, step = warps * size;
    const uint64_t own = straight->thread % RONDO_CUDA_WARP * RONDO_STRAIGHT_VECTOR, end = tiles * size;
    struct rondo_cuda_vector a[8], b[8], result[8];
    uint64_t at = warp * size;
    if (at < end) {
        rondo_straight_load(straight->first + at + own, rows, a);
        if (type >= 0)
            rondo_straight_load(straight->second + at + own, rows, b);
    }
#pragma unroll 1
    for (; at < end; at += step) {
        rondo_straight_fold_two(type, rows, a, b, result);
        if (at + step < end) {
            rondo_straight_load(straight->first + at + step + own, rows, a);
            if (type >= 0)
                rondo_straight_load(straight->second + at + step + own, rows, b);
        }
        rondo_straight_store(straight, at + own, rows, result);
    }
    for (uint64_t rest = end + straight->thread * RONDO_STRAIGHT_VECTOR; rest < straight->bytes;
         rest += straight->threads * RONDO_STRAIGHT_VECTOR) {
        rondo_straight_load(straight->first + rest, 1, a);
        if (type >= 0)
            rondo_straight_load(straight->second + rest, 1, b);
        rondo_straight_fold_two(type, 1, a, b, result);
        rondo_straight_store(straight, rest, 1, result);
    }
}

/* rows vectors of every source at offset. */
RONDO_CUDA_INLINE void rondo_straight_fold_many(int type, int rows, const struct rondo_straight *straight, uint64_t offset)
{
    enum { TOGETHER = 4 };
    const struct rondo_piece *piece = straight->piece;
    struct rondo_cuda_vector result[2];
    struct rondo_cuda_wide wide[2] = {};
#pragma unroll 1
    for (uint32_t first = 0; first < straight->sources; first += TOGETHER) {
        struct rondo_cuda_vector loaded[TOGETHER][2];
#pragma unroll
        for (uint32_t b = 0; b < TOGETHER; b++)
            if (first + b < straight->sources)
                rondo_straight_load(piece->source[first + b] + offset, rows, loaded[b]);
#pragma unroll
        for (uint32_t b = 0; b < TOGETHER; b++)
            if (first + b < straight->sources)
#pragma unroll
                for (int u = 0; u < rows; u++)
                    if (first + b == 0)
                        rondo_cuda_widen(type, 4, &wide[u], loaded[b][u]);
                    else
                        rondo_cuda_combine(type, RONDO_SUM, RONDO_SUM, 4, &wide[u], loaded[b][u]);
    }
#pragma unroll
    for (int u = 0; u < rows; u++)
        result[u] = rondo_cuda_narrow(type, 4, &wide[u]);
    rondo_straight_store(straight, offset, rows, result);
}

RONDO_CUDA_INLINE void rondo_straight_pass_many(int type, const struct rondo_straight *straight)
{
    enum { ROWS = 2 };
    const uint32_t warp = straight->thread / RONDO_CUDA_WARP, warps = straight->threads / RONDO_CUDA_WARP;
    const uint64_t size = ROWS * RONDO_STRAIGHT_ROW, end = straight->bytes / size * size;
    const uint64_t own = straight->thread % RONDO_CUDA_WARP * RONDO_STRAIGHT_VECTOR;
#pragma unroll 1
    for (uint64_t at = warp * size; at < end; at += warps * size)
        rondo_straight_fold_many(type, ROWS, straight, at + own);
    for (uint64_t rest = end + straight->thread * RONDO_STRAIGHT_VECTOR; rest < straight->bytes;
         rest += straight->threads * RONDO_STRAIGHT_VECTOR)
        rondo_straight_fold_many(type, 1, straight, rest);
}

RONDO_CUDA_INLINE void rondo_straight_sum(int type, const struct rondo_straight *straight)
{
    if (straight->sources == 2)
        rondo_straight_pass(type, 4, straight);
    else
        rondo_straight_pass_many(type, straight);
}

/* By all the worker threads. 0: not such a piece, and nothing has been done. */
RONDO_CUDA_INLINE int rondo_straight_carry_out(const struct rondo_piece *piece, uint32_t thread, uint32_t threads)
{
    struct rondo_straight straight;
    if (!rondo_straight_may(piece) || !rondo_straight_look(piece, thread, threads, &straight))
        return 0;
    if (straight.sources == 1)
        rondo_straight_pass(-1, 8, &straight);
    else if (piece->type == RONDO_FLOAT)
        rondo_straight_sum(RONDO_FLOAT, &straight);
    else if (piece->type == RONDO_FLOAT16)
        rondo_straight_sum(RONDO_FLOAT16, &straight);
    else if (piece->type == RONDO_BFLOAT16)
        rondo_straight_sum(RONDO_BFLOAT16, &straight);
    else
        rondo_straight_sum(RONDO_UINT32, &straight); /* whatever the sign */
    return 1;
}

#endif
