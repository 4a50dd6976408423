/*
 * move_vector: large plain slice operations of the usual types and operator, in whole aligned vectors, whose pointers stay in
 * registers. While a thread stores one tile's vectors, the loads of the next tile are under way. Other slice operations go to
 * device/move/move_general.h, whose calls take longer than 32 KiB do here.
 */
#ifndef RONDO_DEVICE_MOVE_MOVE_VECTOR_H
#define RONDO_DEVICE_MOVE_MOVE_VECTOR_H

#if !defined(__CUDACC__)
#error "__device__ code: nvcc alone compiles it"
#endif

#include "device/abi/cuda_access.h"
#include "device/abi/slice_operation.h"
#include "device/move/mover_table.h"
#include "device/reduce/cuda_elements.h"

#define RONDO_VECTOR_ROW          (RONDO_CUDA_WARP * RONDO_VECTOR_BYTES) /* bytes of one access by a warp */
/* Rows of a warp's tile, by the number of sources. Of two that come from a peer, as many as the registers have room for: their
 * loads take microseconds. With more than four rows of two near ones the link carries 2% less. */
#define RONDO_VECTOR_ROWS_ONE     8
#define RONDO_VECTOR_ROWS_TWO     4
#define RONDO_VECTOR_ROWS_TWO_FAR 6
#define RONDO_VECTOR_ROWS_MANY    2

/* A thread's view of the slice operation; the first two pointers of each kind are in registers. */
struct rondo_vector {
    const struct rondo_slice_op *slice_op;
    const char *first, *second;
    char *local, *remote;
    uint64_t bytes;
    uint32_t sources, remotes;
    uint32_t thread, threads;
};

/* Reduces two sources, or copies one (type < 0). */
RONDO_CUDA_INLINE struct rondo_vector rondo_vector_of(const struct rondo_slice_op *slice_op, uint32_t thread, uint32_t threads)
{
    struct rondo_vector vector;
    vector.slice_op = slice_op;
    vector.sources = slice_op->sources;
    vector.remotes = slice_op->remotes;
    vector.first = slice_op->source[0];
    vector.second = slice_op->source[1];
    vector.local = slice_op->local;
    vector.remote = vector.remotes > 0 ? slice_op->remote[0] : NULL;
    vector.bytes = slice_op->count * slice_op->element_bytes;
    vector.thread = thread;
    vector.threads = threads;
    return vector;
}

/* Stores rows of results to all destinations. */
RONDO_CUDA_INLINE void rondo_vector_store(const struct rondo_vector *vector, uint64_t offset, int rows,
                                          const struct rondo_cuda_vector *result)
{
    if (vector->remote != NULL)
#pragma unroll
        for (int u = 0; u < rows; u++)
            rondo_cuda_store(vector->remote + offset + u * RONDO_VECTOR_ROW, result[u]);
    if (vector->local != NULL)
#pragma unroll
        for (int u = 0; u < rows; u++)
            rondo_cuda_store(vector->local + offset + u * RONDO_VECTOR_ROW, result[u]);
#pragma unroll 1
    for (uint32_t r = 1; r < vector->remotes; r++) {
        char *to = vector->slice_op->remote[r] + offset;
#pragma unroll
        for (int u = 0; u < rows; u++)
            rondo_cuda_store(to + u * RONDO_VECTOR_ROW, result[u]);
    }
}

/* Loads rows of a source. */
RONDO_CUDA_INLINE void rondo_vector_load(const char *from, int rows, struct rondo_cuda_vector *loaded)
{
#pragma unroll
    for (int u = 0; u < rows; u++)
        loaded[u] = rondo_cuda_load(from + u * RONDO_VECTOR_ROW);
}

/* Moves tiles of so many rows, a warp each; then what is left, a row at a time. type < 0: one source, else two. */
RONDO_CUDA_INLINE void rondo_vector_reduce_two(int type, int rows, const struct rondo_cuda_vector *a,
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

/* Reduces rows vectors of every source at offset. */
RONDO_CUDA_INLINE void rondo_vector_pass(int type, int rows, const struct rondo_vector *vector)
{
    const uint32_t warp = vector->thread / RONDO_CUDA_WARP, warps = vector->threads / RONDO_CUDA_WARP;
    const uint64_t size = rows * RONDO_VECTOR_ROW, tiles = vector->bytes / size, step = warps * size;
    const uint64_t own = vector->thread % RONDO_CUDA_WARP * RONDO_VECTOR_BYTES, end = tiles * size;
    struct rondo_cuda_vector a[RONDO_VECTOR_ROWS_ONE], b[RONDO_VECTOR_ROWS_ONE], result[RONDO_VECTOR_ROWS_ONE];
    uint64_t at = warp * size;
    if (at < end) {
        rondo_vector_load(vector->first + at + own, rows, a);
        if (type >= 0)
            rondo_vector_load(vector->second + at + own, rows, b);
    }
#pragma unroll 1
    for (; at < end; at += step) {
        rondo_vector_reduce_two(type, rows, a, b, result);
        if (at + step < end) {
            rondo_vector_load(vector->first + at + step + own, rows, a);
            if (type >= 0)
                rondo_vector_load(vector->second + at + step + own, rows, b);
        }
        rondo_vector_store(vector, at + own, rows, result);
    }
    for (uint64_t rest = end + vector->thread * RONDO_VECTOR_BYTES; rest < vector->bytes;
         rest += vector->threads * RONDO_VECTOR_BYTES) {
        rondo_vector_load(vector->first + rest, 1, a);
        if (type >= 0)
            rondo_vector_load(vector->second + rest, 1, b);
        rondo_vector_reduce_two(type, 1, a, b, result);
        rondo_vector_store(vector, rest, 1, result);
    }
}

/* Sources of a slice operation of more than two whose loads are under way together. */
#define RONDO_VECTOR_TOGETHER 4

/* Loads rows of the sources [first, first + RONDO_VECTOR_TOGETHER), as far as there are so many. */
RONDO_CUDA_INLINE void rondo_vector_load_some(const struct rondo_vector *vector, uint32_t first, uint64_t offset, int rows,
                                              struct rondo_cuda_vector (*loaded)[RONDO_VECTOR_ROWS_MANY])
{
#pragma unroll
    for (uint32_t b = 0; b < RONDO_VECTOR_TOGETHER; b++)
        if (first + b < vector->sources)
            rondo_vector_load(vector->slice_op->source[first + b] + offset, rows, loaded[b]);
}

/* Adds what rondo_vector_load_some has loaded. */
RONDO_CUDA_INLINE void rondo_vector_add_some(int type, const struct rondo_vector *vector, uint32_t first, int rows,
                                             const struct rondo_cuda_vector (*loaded)[RONDO_VECTOR_ROWS_MANY],
                                             struct rondo_cuda_wide *wide)
{
#pragma unroll
    for (uint32_t b = 0; b < RONDO_VECTOR_TOGETHER; b++)
        if (first + b < vector->sources)
#pragma unroll
            for (int u = 0; u < rows; u++)
                if (first + b == 0)
                    rondo_cuda_widen(type, 4, &wide[u], loaded[b][u]);
                else
                    rondo_cuda_combine(type, RONDO_SUM, RONDO_SUM, 4, &wide[u], loaded[b][u]);
}

/* Reduces rows vectors of every source at offset. */
RONDO_CUDA_INLINE void rondo_vector_reduce_many(int type, int rows, const struct rondo_vector *vector, uint64_t offset)
{
    struct rondo_cuda_vector loaded[RONDO_VECTOR_TOGETHER][RONDO_VECTOR_ROWS_MANY], result[RONDO_VECTOR_ROWS_MANY];
    struct rondo_cuda_wide wide[RONDO_VECTOR_ROWS_MANY] = {};
#pragma unroll 1
    for (uint32_t first = 0; first < vector->sources; first += RONDO_VECTOR_TOGETHER) {
        rondo_vector_load_some(vector, first, offset, rows, loaded);
        rondo_vector_add_some(type, vector, first, rows, loaded, wide);
    }
#pragma unroll
    for (int u = 0; u < rows; u++)
        result[u] = rondo_cuda_narrow(type, 4, &wide[u]);
    rondo_vector_store(vector, offset, rows, result);
}

/* Moves tiles of at most RONDO_VECTOR_TOGETHER sources, a warp each: the next tile's loads, which take microseconds from a
 * peer, are under way while this one is stored. */
RONDO_CUDA_INLINE void rondo_vector_tiles_of_few(int type, const struct rondo_vector *vector, uint64_t at, uint64_t step,
                                                 uint64_t end)
{
    struct rondo_cuda_vector loaded[RONDO_VECTOR_TOGETHER][RONDO_VECTOR_ROWS_MANY], result[RONDO_VECTOR_ROWS_MANY];
    if (at < end)
        rondo_vector_load_some(vector, 0, at, RONDO_VECTOR_ROWS_MANY, loaded);
#pragma unroll 1
    for (; at < end; at += step) {
        struct rondo_cuda_wide wide[RONDO_VECTOR_ROWS_MANY];
        rondo_vector_add_some(type, vector, 0, RONDO_VECTOR_ROWS_MANY, loaded, wide);
#pragma unroll
        for (int u = 0; u < RONDO_VECTOR_ROWS_MANY; u++)
            result[u] = rondo_cuda_narrow(type, 4, &wide[u]);
        if (at + step < end)
            rondo_vector_load_some(vector, 0, at + step, RONDO_VECTOR_ROWS_MANY, loaded);
        rondo_vector_store(vector, at, RONDO_VECTOR_ROWS_MANY, result);
    }
}

/* Moves a slice operation of more than two sources. */
RONDO_CUDA_INLINE void rondo_vector_pass_many(int type, const struct rondo_vector *vector)
{
    const uint32_t warp = vector->thread / RONDO_CUDA_WARP, warps = vector->threads / RONDO_CUDA_WARP;
    const uint64_t size = RONDO_VECTOR_ROWS_MANY * RONDO_VECTOR_ROW, tiles_end = vector->bytes / size * size;
    const uint64_t own = vector->thread % RONDO_CUDA_WARP * RONDO_VECTOR_BYTES, step = warps * size;
    if (vector->sources <= RONDO_VECTOR_TOGETHER)
        rondo_vector_tiles_of_few(type, vector, warp * size + own, step, tiles_end);
    else
#pragma unroll 1
        for (uint64_t at = warp * size; at < tiles_end; at += step)
            rondo_vector_reduce_many(type, RONDO_VECTOR_ROWS_MANY, vector, at + own);
    for (uint64_t rest = tiles_end + vector->thread * RONDO_VECTOR_BYTES; rest < vector->bytes;
         rest += vector->threads * RONDO_VECTOR_BYTES)
        rondo_vector_reduce_many(type, 1, vector, rest);
}

/* Moves a slice operation of several sources. */
RONDO_CUDA_INLINE void rondo_vector_sum(int type, const struct rondo_vector *vector)
{
    if (vector->sources == 2 && vector->slice_op->far)
        rondo_vector_pass(type, RONDO_VECTOR_ROWS_TWO_FAR, vector);
    else if (vector->sources == 2)
        rondo_vector_pass(type, RONDO_VECTOR_ROWS_TWO, vector);
    else
        rondo_vector_pass_many(type, vector);
}

/* Carries out a slice operation that rondo_mover_takes_vector takes, by all the worker threads. */
RONDO_CUDA_INLINE void rondo_move_vector(const struct rondo_vector *vector)
{
    if (vector->sources == 1)
        rondo_vector_pass(-1, RONDO_VECTOR_ROWS_ONE, vector);
    else if (vector->slice_op->type == RONDO_FLOAT)
        rondo_vector_sum(RONDO_FLOAT, vector);
    else if (vector->slice_op->type == RONDO_FLOAT16)
        rondo_vector_sum(RONDO_FLOAT16, vector);
    else if (vector->slice_op->type == RONDO_BFLOAT16)
        rondo_vector_sum(RONDO_BFLOAT16, vector);
    else
        rondo_vector_sum(RONDO_UINT32, vector); /* signed sums have the same bits */
}

#endif
