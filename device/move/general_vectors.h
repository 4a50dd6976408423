/*
 * The loops of move_general over plain data of any type, operator and alignment: a slice operation is cut into vectors of 16
 * bytes on a grid that begins at an aligned byte of one destination. Slice operations whose pointers all share that alignment
 * go through a loop of plain accesses, the rest and what is left over through one that shifts; the bytes before and after the
 * grid are partial vectors. The link's latency is hidden by bytes in flight alone, so a thread issues about 8 loads before it
 * needs the first. Loops are inlined functions whose first arguments are constants.
 */
#ifndef RONDO_DEVICE_MOVE_GENERAL_VECTORS_H
#define RONDO_DEVICE_MOVE_GENERAL_VECTORS_H

#if !defined(__CUDACC__)
#error "__device__ code: nvcc alone compiles it"
#endif

#include "device/abi/cuda_access.h"
#include "device/abi/slice_operation.h"
#include "device/abi/types.h"
#include "device/reduce/cuda_elements.h"

#define RONDO_CUDA_VECTOR       16u
#define RONDO_CUDA_PACKET       16u /* bytes of a packet, and of data in it */
#define RONDO_CUDA_PACKET_DATA  8u
#define RONDO_CUDA_PACKET_WORDS 2
#define RONDO_CUDA_ROW          (RONDO_CUDA_WARP * RONDO_CUDA_VECTOR) /* bytes of one access by a warp */

/* What a worker knows of the slice operation: the same on all workers but for warp and lane. */
struct rondo_cuda_view {
    const struct rondo_slice_op *slice_op;
    uint64_t bytes;
    uint64_t head;    /* bytes before the grid */
    uint64_t vectors; /* of the grid */
    uint32_t has_local, destinations;
    uint32_t warp, warps, lane;
    int packets; /* some source or remote has flags */
    int aligned; /* all pointers are aligned at the grid's first byte */
};

/* A copy in registers, for a called function. Tells the compiler that the slice operation is in shared memory. */
RONDO_CUDA_INLINE struct rondo_cuda_view rondo_cuda_seen(const struct rondo_cuda_view *given)
{
    struct rondo_cuda_view view = *given;
    __builtin_assume(__isShared(view.slice_op));
    return view;
}

/* The d-th destination: local, if there is one, then the remotes. */
RONDO_CUDA_INLINE char *rondo_cuda_destination(const struct rondo_cuda_view *view, uint32_t d)
{
    return d < view->has_local ? view->slice_op->local : view->slice_op->remote[d - view->has_local];
}

/* Bytes from the last aligned vector to the pointer. */
RONDO_CUDA_INLINE uint32_t rondo_cuda_beyond(const char *pointer)
{
    return (uint32_t) (uintptr_t) pointer % RONDO_CUDA_VECTOR;
}

/* Places the grid where a remote, or else local, is aligned. If another pointer is not aligned there, the grid keeps a
 * vector's distance from both ends, because the aligned words that cover its part of a source are larger than that part. */
RONDO_CUDA_INLINE void rondo_cuda_place_grid(struct rondo_cuda_view *view)
{
    const struct rondo_slice_op *slice_op = view->slice_op;
    const char *reference = slice_op->remotes > 0 ? slice_op->remote[0] : slice_op->local;
    uint32_t beyond = rondo_cuda_beyond(reference), different = 0, margin;
    for (uint32_t s = 0; s < slice_op->sources; s++)
        different |= rondo_cuda_beyond(slice_op->source[s]) ^ beyond;
    for (uint32_t d = 0; d < view->destinations; d++)
        different |= rondo_cuda_beyond(rondo_cuda_destination(view, d)) ^ beyond;
    view->aligned = different == 0;
    margin = view->aligned ? 0 : RONDO_CUDA_VECTOR;
    view->head = (RONDO_CUDA_VECTOR - beyond) % RONDO_CUDA_VECTOR + margin;
    view->vectors = 0;
    if (view->bytes > view->head + margin)
        view->vectors = (view->bytes - view->head - margin) / RONDO_CUDA_VECTOR;
    if (view->vectors == 0)
        view->head = view->bytes;
}

/* ---- plain slice operations ---- */

/* The last steps of a result in registers. */
RONDO_CUDA_INLINE struct rondo_cuda_vector
rondo_cuda_finish(int type, int average, int words, const struct rondo_slice_op *slice_op, struct rondo_cuda_wide *wide)
{
    if (average)
        rondo_cuda_divide(type, words, wide, (int) slice_op->average);
    return rondo_cuda_narrow(type, words, wide);
}

/* One partial vector: bytes [offset, offset + bytes) of the slice operation, by one thread. */
RONDO_CUDA_INLINE void rondo_cuda_reduce_part(int type, int op, int average, const struct rondo_cuda_view *view,
                                              uint64_t offset, uint32_t bytes)
{
    const struct rondo_slice_op *slice_op = view->slice_op;
    struct rondo_cuda_wide wide;
    rondo_cuda_widen(type, 4, &wide, rondo_cuda_load_part(slice_op->source[0] + offset, bytes));
#pragma unroll 1
    for (uint32_t s = 1; s < slice_op->sources; s++)
        rondo_cuda_combine(type, op, slice_op->op, 4, &wide, rondo_cuda_load_part(slice_op->source[s] + offset, bytes));
    struct rondo_cuda_vector result = rondo_cuda_finish(type, average, 4, slice_op, &wide);
#pragma unroll 1
    for (uint32_t d = 0; d < view->destinations; d++)
        rondo_cuda_store_part(rondo_cuda_destination(view, d) + offset, result, 0, bytes);
}

/* This thread's partial vector before or after the grid: a few of them, one for a lane of the last warp. Returns 0 if it has
 * none. */
RONDO_CUDA_INLINE int rondo_cuda_own_part(const struct rondo_cuda_view *view, uint64_t *offset, uint32_t *bytes)
{
    uint64_t in_head = (view->head + RONDO_CUDA_VECTOR - 1) / RONDO_CUDA_VECTOR, end = view->head;
    *offset = view->lane * RONDO_CUDA_VECTOR;
    if (view->warp != view->warps - 1)
        return 0;
    if (view->lane >= in_head) {
        *offset = view->head + (view->vectors + view->lane - in_head) * RONDO_CUDA_VECTOR;
        end = view->bytes;
    }
    if (*offset >= end)
        return 0;
    *bytes = end - *offset < RONDO_CUDA_VECTOR ? (uint32_t) (end - *offset) : RONDO_CUDA_VECTOR;
    return 1;
}

/* Reduces deep vectors of each of the batch's sources into as many accumulators. first: number of the batch's first source. */
RONDO_CUDA_INLINE void rondo_cuda_reduce_batch(int type, int op, int words, int batch, int deep,
                                               const struct rondo_slice_op *slice_op, int first, int sources,
                                               struct rondo_cuda_wide *wide, struct rondo_cuda_vector (*loaded)[8])
{
#pragma unroll
    for (int b = 0; b < batch; b++) {
        if (b == 0 && first == 0) {
#pragma unroll
            for (int u = 0; u < deep; u++)
                rondo_cuda_widen(type, words, &wide[u], loaded[b][u]);
        } else if (first + b < sources) {
#pragma unroll
            for (int u = 0; u < deep; u++)
                rondo_cuda_combine(type, op, slice_op->op, words, &wide[u], loaded[b][u]);
        }
    }
}

/*
 * Tiles of deep rows (of 32 vectors) per warp, all pointers aligned; batch: the sources that are loaded together. only: the
 * number of sources if that is known (at most batch), else 0. Returns how many tiles there were, for all warps together.
 */
RONDO_CUDA_INLINE uint64_t rondo_cuda_reduce_tiles(int type, int op, int average, int only, int batch, int deep,
                                                   const struct rondo_cuda_view *view)
{
    const struct rondo_slice_op *slice_op = view->slice_op;
    const int sources = only ? only : slice_op->sources;
    const uint64_t tiles = view->vectors / (RONDO_CUDA_WARP * deep);
#pragma unroll 1
    for (uint64_t tile = view->warp; tile < tiles; tile += view->warps) {
        uint64_t offset = view->head + tile * deep * RONDO_CUDA_ROW + view->lane * RONDO_CUDA_VECTOR;
        struct rondo_cuda_wide wide[8] = {}; /* set by the first batch; this keeps it from living on to the next tile */
#pragma unroll 1
        for (int first = 0; first < sources; first += batch) {
            struct rondo_cuda_vector loaded[8][8];
#pragma unroll
            for (int b = 0; b < batch; b++)
#pragma unroll
                for (int u = 0; u < deep; u++)
                    loaded[b][u] = rondo_cuda_nothing();
#pragma unroll
            for (int b = 0; b < batch; b++)
                if (first + b < sources) {
                    const char *from = slice_op->source[first + b] + offset;
#pragma unroll
                    for (int u = 0; u < deep; u++)
                        loaded[b][u] = rondo_cuda_load(from + u * RONDO_CUDA_ROW);
                }
            rondo_cuda_reduce_batch(type, op, 4, batch, deep, slice_op, first, sources, wide, loaded);
        }
        struct rondo_cuda_vector result[8];
#pragma unroll
        for (int u = 0; u < deep; u++)
            result[u] = rondo_cuda_finish(type, average, 4, slice_op, &wide[u]);
#pragma unroll 1
        for (uint32_t d = 0; d < view->destinations; d++) {
            char *to = rondo_cuda_destination(view, d) + offset;
#pragma unroll
            for (int u = 0; u < deep; u++)
                rondo_cuda_store(to + u * RONDO_CUDA_ROW, result[u]);
        }
    }
    return tiles;
}

/*
 * Loads a tile's rows of one source of any alignment: the aligned words that cover them, one for each lane and row, and after
 * the last row the first lane's of the next. left: number of the grid's vectors from the tile's first on.
 */
RONDO_CUDA_INLINE void rondo_cuda_load_shifted(int deep, struct rondo_cuda_vector *loaded, const char *from, uint32_t lane,
                                               uint32_t left)
{
    uint32_t beyond = rondo_cuda_beyond(from);
    uint32_t words = left + (beyond != 0);
    const char *at = from - beyond + lane * RONDO_CUDA_VECTOR;
#pragma unroll
    for (int u = 0; u < deep; u++)
        loaded[u] = rondo_cuda_load_if(u * RONDO_CUDA_WARP + lane < words, at + u * RONDO_CUDA_ROW);
    loaded[deep] = rondo_cuda_load_if(beyond != 0 && lane == 0 && deep * RONDO_CUDA_WARP < words, at + deep * RONDO_CUDA_ROW);
}

/* Shifts what rondo_cuda_load_shifted has loaded. By the whole warp. */
RONDO_CUDA_INLINE void rondo_cuda_unshift(int deep, struct rondo_cuda_vector *loaded, const char *from, uint32_t lane)
{
    uint32_t beyond = rondo_cuda_beyond(from);
    if (beyond == 0)
        return;
#pragma unroll
    for (int u = 0; u < deep; u++) {
        struct rondo_cuda_vector given = lane == 0 ? loaded[u + 1] : loaded[u];
        struct rondo_cuda_vector next = rondo_cuda_from_lane(given, (lane + 1) % RONDO_CUDA_WARP);
        loaded[u] = rondo_cuda_shift(loaded[u], next, beyond);
    }
}

/* Stores a tile's rows to a destination of any alignment. An aligned word holds the end of one lane's vector and the
 * beginning of the next one's; the next lane stores it, and the tile's first and last vector are stored in part. */
RONDO_CUDA_INLINE void rondo_cuda_store_shifted(int deep, const struct rondo_cuda_vector *result, char *to, uint32_t lane,
                                                uint32_t left)
{
    uint32_t beyond = rondo_cuda_beyond(to), last = left - 1;
    struct rondo_cuda_vector edge = result[0];
#pragma unroll
    for (int u = 0; u < deep; u++) {
        uint32_t index = u * RONDO_CUDA_WARP + lane;
        char *at = to + index * RONDO_CUDA_VECTOR;
        if (beyond == 0) {
            if (index < left)
                rondo_cuda_store(at, result[u]);
            continue;
        }
        struct rondo_cuda_vector given = u > 0 && lane == RONDO_CUDA_WARP - 1 ? result[u > 0 ? u - 1 : 0] : result[u];
        struct rondo_cuda_vector previous = rondo_cuda_from_lane(given, (lane - 1) % RONDO_CUDA_WARP);
        if (index > 0 && index < left)
            rondo_cuda_store(at - beyond, rondo_cuda_shift(previous, result[u], RONDO_CUDA_VECTOR - beyond));
        if (index == last)
            edge = result[u];
    }
    if (beyond == 0)
        return;
    if (lane == 0)
        rondo_cuda_store_part(to, result[0], 0, RONDO_CUDA_VECTOR - beyond);
    if (lane == last % RONDO_CUDA_WARP)
        rondo_cuda_store_part(to + last * RONDO_CUDA_VECTOR, edge, RONDO_CUDA_VECTOR - beyond, RONDO_CUDA_VECTOR);
}

/* Reduces vectors [start, vectors) of the grid, of any alignment; warp first_warp begins. A lane stores only bytes that it
 * alone has loaded for the same use, or that lanes of its warp have loaded before they met in a shuffle: local may be a
 * source. */
RONDO_CUDA_INLINE void rondo_cuda_reduce_shifted(int type, int op, int average, int batch, int deep,
                                                 const struct rondo_cuda_view *view, uint64_t start, uint32_t first_warp)
{
    const struct rondo_slice_op *slice_op = view->slice_op;
    const uint32_t size = deep * RONDO_CUDA_WARP;
    uint64_t tile = start + (view->warp + view->warps - first_warp) % view->warps * size;
#pragma unroll 1
    for (; tile < view->vectors; tile += view->warps * size) {
        uint64_t offset = view->head + tile * RONDO_CUDA_VECTOR;
        uint32_t left = view->vectors - tile < size ? (uint32_t) (view->vectors - tile) : size;
        struct rondo_cuda_wide wide[4] = {};
#pragma unroll 1
        for (int first = 0; first < slice_op->sources; first += batch) {
            struct rondo_cuda_vector loaded[4][8];
#pragma unroll
            for (int b = 0; b < batch; b++) {
                const char *from = first + b < slice_op->sources ? slice_op->source[first + b] + offset : NULL;
                rondo_cuda_load_shifted(deep, loaded[b], from, view->lane, from != NULL ? left : 0);
            }
#pragma unroll
            for (int b = 0; b < batch; b++)
                if (first + b < slice_op->sources)
                    rondo_cuda_unshift(deep, loaded[b], slice_op->source[first + b] + offset, view->lane);
            rondo_cuda_reduce_batch(type, op, 4, batch, deep, slice_op, first, slice_op->sources, wide, loaded);
        }
        struct rondo_cuda_vector result[4];
#pragma unroll
        for (int u = 0; u < deep; u++)
            result[u] = rondo_cuda_finish(type, average, 4, slice_op, &wide[u]);
        __syncwarp();
#pragma unroll 1
        for (uint32_t d = 0; d < view->destinations; d++)
            rondo_cuda_store_shifted(deep, result, rondo_cuda_destination(view, d) + offset, view->lane, left);
    }
}

#endif
