/*
 * Carries out a piece (device/abi/slice_operation.h) with the worker threads of a CUDA block. A piece without LL packets is cut
 * into vectors of 16 bytes on a grid that begins at an aligned byte of one destination: pieces whose pointers all share that
 * alignment go through a loop of plain accesses, the rest and what is left over through one that shifts, and the bytes before
 * and after the grid are partial vectors. A piece with LL packets, or lines, goes packet by packet. The link's latency is
 * hidden by bytes in flight alone, so a thread issues about 8 loads before it needs the first. Loops are inlined functions
 * whose first arguments are constants; each type and operator has its own copy, called.
 */
#ifndef RONDO_DEVICE_MOVE_MOVE_GENERAL_H
#define RONDO_DEVICE_MOVE_MOVE_GENERAL_H

#include "device/abi/cuda_access.h"
#include "device/reduce/cuda_elements.h"
#include "device/move/low_latency.h"
#include "device/abi/slice_operation.h"
#include "device/abi/types.h"

#define RONDO_CUDA_VECTOR       16u
#define RONDO_CUDA_PACKET       16u /* bytes of a packet, and of data in it */
#define RONDO_CUDA_PACKET_DATA  8u
#define RONDO_CUDA_PACKET_WORDS 2
#define RONDO_CUDA_ROW          (RONDO_CUDA_WARP * RONDO_CUDA_VECTOR) /* bytes of one access by a warp */

/* What a worker knows about the piece; the same on all but for warp and lane. */
struct rondo_cuda_view {
    const struct rondo_slice_op *slice_op;
    uint64_t bytes;
    uint64_t head;    /* bytes before the grid */
    uint64_t vectors; /* of the grid */
    uint32_t has_local, destinations;
    uint32_t warp, warps, lane;
    int packets; /* LL, some */
    int aligned; /* every pointer is, at the grid's first byte */
};

/* A called function's copy in registers. The compiler is told what it cannot see: that the piece is in shared memory. */
RONDO_CUDA_INLINE struct rondo_cuda_view rondo_cuda_seen(const struct rondo_cuda_view *given)
{
    struct rondo_cuda_view view = *given;
    __builtin_assume(__isShared(view.slice_op));
    return view;
}

RONDO_CUDA_INLINE char *rondo_cuda_destination(const struct rondo_cuda_view *view, uint32_t d)
{
    return d < view->has_local ? view->slice_op->local : view->slice_op->remote[d - view->has_local];
}

RONDO_CUDA_INLINE uint32_t rondo_cuda_beyond(const char *pointer)
{
    return (uint32_t) (uintptr_t) pointer % RONDO_CUDA_VECTOR;
}

/* Puts the grid where a remote, or else local, is aligned. If another pointer is not, the grid keeps a vector's distance from
 * both ends, because the aligned words that cover its part of a source are larger than that part. */
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

/* ---- plain pieces ---- */

/* The last steps of a result in registers. */
RONDO_CUDA_INLINE struct rondo_cuda_vector
rondo_cuda_finish(int type, int average, int words, const struct rondo_slice_op *slice_op, struct rondo_cuda_wide *wide)
{
    if (average)
        rondo_cuda_divide(type, words, wide, (int) slice_op->average);
    return rondo_cuda_narrow(type, words, wide);
}

/* One partial vector: bytes [offset, offset + bytes) of the piece, by one thread. */
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

/* What lies before and after the grid is a few partial vectors, one for a lane of the last warp; 0: none for this thread. */
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

/* Folds deep vectors of each of the batch's sources, of which the first is numbered so, into as many accumulators. */
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
 * Loads a tile's rows of one source of any alignment: the aligned words that cover them, one a lane and row, and after the last
 * row the first lane's of the next. left: vectors of the grid from the tile's first on.
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

/* The vectors that were loaded so. Called by the whole warp. */
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

/* Stores a tile's rows to a destination of any alignment. Aligned words hold the end of one lane's vector and the beginning of
 * the next one's; the next one stores them, and the tile's first and last vector are stored in part. */
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

/* Vectors [start, vectors) of the grid, any alignment; the warp numbered first begins. Every lane stores no bytes but those
 * that it alone has loaded for the same use, or that lanes of its warp have loaded before they met in a shuffle: local may be a
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

/* ---- pieces with LL packets ---- */

/* What these need of a view, made anew in a called function: an argument in memory would be far away. */
RONDO_CUDA_INLINE struct rondo_cuda_view rondo_cuda_packet_view(const struct rondo_slice_op *slice_op)
{
    struct rondo_cuda_view view = {};
    __builtin_assume(__isShared(slice_op));
    view.slice_op = slice_op;
    view.bytes = slice_op->count * slice_op->element_bytes;
    view.has_local = slice_op->local != NULL;
    view.destinations = view.has_local + slice_op->remotes;
    return view;
}

/* Bytes of data in a packet; 0 past the last. */
RONDO_CUDA_INLINE uint32_t rondo_cuda_packet_bytes(const struct rondo_cuda_view *view, uint64_t packet)
{
    uint64_t offset = packet * RONDO_CUDA_PACKET_DATA;
    return offset >= view->bytes                           ? 0
           : view->bytes - offset < RONDO_CUDA_PACKET_DATA ? (uint32_t) (view->bytes - offset)
                                                           : RONDO_CUDA_PACKET_DATA;
}

/* Where a packet lies. Of a line it is 8 bytes of data alone. */
RONDO_CUDA_INLINE uint64_t rondo_cuda_packet_place(const struct rondo_slice_op *slice_op, uint64_t packet)
{
    enum { OF_A_LINE = RONDO_LINE_DATA / RONDO_CUDA_PACKET_DATA };
    return slice_op->lines ? packet / OF_A_LINE * RONDO_LINE_BYTES + packet % OF_A_LINE * RONDO_CUDA_PACKET_DATA
                           : packet * RONDO_CUDA_PACKET;
}

/* Leaves the data in the first two words; 0: it has not arrived. Lines have been waited for. */
RONDO_CUDA_INLINE int rondo_cuda_take_packet(const struct rondo_slice_op *slice_op, uint32_t s, uint64_t packet,
                                             struct rondo_cuda_vector *v)
{
    const char *from = slice_op->source[s] + rondo_cuda_packet_place(slice_op, packet);
    if (!slice_op->lines)
        return rondo_cuda_load_packet(v, from, slice_op->source_flags[s]);
    asm volatile("ld.relaxed.sys.global.v2.u32 {%0, %1}, [%2];" : "=r"(v->word[0]), "=r"(v->word[1]) : "l"(from) : "memory");
    return 1;
}

/* A line's data are its reader's only with the flag (rondo_cuda_flag_lines). */
RONDO_CUDA_INLINE void rondo_cuda_put_packet(const struct rondo_slice_op *slice_op, uint32_t r, uint64_t packet,
                                             struct rondo_cuda_vector v)
{
    char *to = slice_op->remote[r] + rondo_cuda_packet_place(slice_op, packet);
    if (slice_op->lines)
        rondo_cuda_store_whole_half(to, v);
    else
        rondo_cuda_store_packet(to, v, slice_op->remote_flags[r]);
}

/* By all workers, when the data of lines have been stored one by one. Each thread's fence comes between its stores and the
 * barrier, so whoever sees a flag sees the line's data, whichever threads stored them (causality order). */
RONDO_CUDA_CALLED void rondo_cuda_flag_lines(const struct rondo_slice_op *slice_op, uint32_t thread, uint32_t threads)
{
    const uint64_t bytes = slice_op->count * slice_op->element_bytes, lines = (bytes + RONDO_LINE_DATA - 1) / RONDO_LINE_DATA;
    __threadfence_system();
    rondo_cuda_all_agree(1, threads);
    for (uint32_t r = 0; r < slice_op->remotes; r++)
        for (uint64_t line = thread; (slice_op->ll_remotes >> r & 1) && line < lines; line += threads)
            rondo_cuda_store_line(slice_op->remote[r] + line * RONDO_LINE_BYTES + RONDO_LINE_DATA,
                                  rondo_cuda_line_flag(slice_op->remote_flags[r]));
}

/* Waits, on this thread, for its share of the lines' flags; all together then know of all. */
RONDO_CUDA_CALLED int rondo_cuda_await_flags(const struct rondo_slice_op *slice_op, uint32_t thread, uint32_t threads,
                                             uint64_t polls)
{
    const uint64_t bytes = slice_op->count * slice_op->element_bytes, lines = (bytes + RONDO_LINE_DATA - 1) / RONDO_LINE_DATA;
    for (uint32_t s = 0; s < slice_op->sources; s++) {
        uint64_t line = thread;
        while ((slice_op->ll_sources >> s & 1) && line < lines)
            if (rondo_cuda_load_line(slice_op->source[s] + line * RONDO_LINE_BYTES + RONDO_LINE_DATA).word[3] ==
                slice_op->source_flags[s])
                line += threads;
            else if (polls-- == 0)
                return 0;
    }
    return 1;
}

/* Waits, on this thread, until all packets of all LL sources have arrived that the thread will fold. 0: some have not. */
RONDO_CUDA_CALLED int rondo_cuda_await_packets(const struct rondo_slice_op *slice_op, uint32_t thread, uint32_t threads,
                                               uint64_t polls)
{
    enum { TOGETHER = 8 };
    uint64_t packets = (slice_op->count * slice_op->element_bytes + RONDO_CUDA_PACKET_DATA - 1) / RONDO_CUDA_PACKET_DATA;
    if (slice_op->lines)
        return rondo_cuda_await_flags(slice_op, thread, threads, polls);
    for (uint32_t s = 0; s < slice_op->sources; s++) {
        uint64_t p = thread;
        while ((slice_op->ll_sources >> s & 1) && p < packets) {
            struct rondo_cuda_vector ignored;
            int here = 1;
#pragma unroll
            for (int i = 0; i < TOGETHER; i++)
                if (p + (uint64_t) i * threads < packets)
                    here &=
                        rondo_cuda_load_packet(&ignored, slice_op->source[s] + (p + (uint64_t) i * threads) * RONDO_CUDA_PACKET,
                                               slice_op->source_flags[s]);
            if (here)
                p += (uint64_t) TOGETHER * threads;
            else if (polls-- == 0)
                return 0;
        }
    }
    return 1;
}

/* Folds packets first, first + threads, ... (deep of them) of all sources into wide. 0: some have not arrived; but for LL
 * sources, nothing is waited for. */
RONDO_CUDA_INLINE int rondo_cuda_reduce_packets(int type, int op, int batch, int deep, const struct rondo_cuda_view *view,
                                                struct rondo_cuda_wide *wide, uint64_t first_packet, uint32_t threads,
                                                uint64_t polls)
{
    const struct rondo_slice_op *slice_op = view->slice_op;
#pragma unroll 1
    for (int first = 0; first < slice_op->sources; first += batch) {
        struct rondo_cuda_vector loaded[8][8];
        uint64_t packed = slice_op->ll_sources >> first;
#pragma unroll
        for (int b = 0; b < batch; b++)
#pragma unroll
            for (int u = 0; u < deep; u++)
                loaded[b][u] = rondo_cuda_nothing();
#pragma unroll
        for (int b = 0; b < batch; b++)
            if (first + b < slice_op->sources && !(packed >> b & 1)) {
#pragma unroll
                for (int u = 0; u < deep; u++) {
                    uint64_t packet = first_packet + (uint64_t) u * threads;
                    loaded[b][u] = rondo_cuda_load_half(slice_op->source[first + b] + packet * RONDO_CUDA_PACKET_DATA,
                                                        rondo_cuda_packet_bytes(view, packet));
                }
            }
        for (;;) {
            int here = 1;
#pragma unroll
            for (int b = 0; b < batch; b++)
                if (first + b < slice_op->sources && (packed >> b & 1)) {
#pragma unroll
                    for (int u = 0; u < deep; u++) {
                        uint64_t packet = first_packet + (uint64_t) u * threads;
                        if (rondo_cuda_packet_bytes(view, packet) > 0)
                            here &= rondo_cuda_take_packet(slice_op, first + b, packet, &loaded[b][u]);
                    }
                }
            if (here)
                break;
            if (polls-- == 0)
                return 0;
        }
        rondo_cuda_reduce_batch(type, op, RONDO_CUDA_PACKET_WORDS, batch, deep, slice_op, first, slice_op->sources, wide,
                                loaded);
    }
    return 1;
}

/* An exchange's first half: by the threads that will fold the same packets, so local may be the source. */
RONDO_CUDA_CALLED void rondo_cuda_send_packets(const struct rondo_slice_op *slice_op, uint32_t thread, uint32_t threads)
{
    uint64_t bytes = slice_op->count * slice_op->element_bytes, s = 0;
    while (slice_op->ll_sources >> s & 1)
        s++;
#pragma unroll 4
    for (uint64_t offset = thread * RONDO_CUDA_PACKET_DATA; offset < bytes; offset += threads * RONDO_CUDA_PACKET_DATA) {
        uint32_t left = bytes - offset < RONDO_CUDA_PACKET_DATA ? (uint32_t) (bytes - offset) : RONDO_CUDA_PACKET_DATA;
        struct rondo_cuda_vector v = rondo_cuda_load_half(slice_op->source[s] + offset, left);
        for (uint32_t r = 0; r < slice_op->remotes; r++)
            rondo_cuda_put_packet(slice_op, r, offset / RONDO_CUDA_PACKET_DATA, v);
    }
    if (slice_op->lines)
        rondo_cuda_flag_lines(slice_op, thread, threads);
}

/* Stores one packet's data everywhere. */
RONDO_CUDA_INLINE void rondo_cuda_deliver_packet(const struct rondo_cuda_view *view, struct rondo_cuda_vector result,
                                                 uint64_t packet)
{
    const struct rondo_slice_op *slice_op = view->slice_op;
    uint32_t bytes = rondo_cuda_packet_bytes(view, packet);
    if (bytes == 0)
        return;
    if (slice_op->local != NULL)
        rondo_cuda_store_half(slice_op->local + packet * RONDO_CUDA_PACKET_DATA, result, bytes);
#pragma unroll 1
    for (uint32_t r = 0; !slice_op->exchanges && r < slice_op->remotes; r++)
        if (slice_op->ll_remotes >> r & 1)
            rondo_cuda_put_packet(slice_op, r, packet, result);
        else
            rondo_cuda_store_half(slice_op->remote[r] + packet * RONDO_CUDA_PACKET_DATA, result, bytes);
}

RONDO_CUDA_INLINE void rondo_cuda_deliver_packets(int type, int average, int deep, const struct rondo_cuda_view *view,
                                                  struct rondo_cuda_wide *wide, uint64_t first_packet, uint32_t threads)
{
#pragma unroll
    for (int u = 0; u < deep; u++)
        rondo_cuda_deliver_packet(view, rondo_cuda_finish(type, average, RONDO_CUDA_PACKET_WORDS, view->slice_op, &wide[u]),
                                  first_packet + (uint64_t) u * threads);
}

/* A piece that its threads can hold goes through registers at once; a larger one is first seen to have arrived, and then read.
 * The thread that looked at a packet reads it, so it finds there what it has seen. */
RONDO_CUDA_INLINE int rondo_cuda_packets(int type, int op, int average, int batch, int deep, const struct rondo_cuda_view *view,
                                         uint32_t thread, uint32_t threads, uint64_t polls)
{
    uint64_t packets = (view->bytes + RONDO_CUDA_PACKET_DATA - 1) / RONDO_CUDA_PACKET_DATA;
    uint64_t chunk = (uint64_t) threads * deep;
    int waits = view->slice_op->ll_sources != 0, fits = packets <= chunk && !view->slice_op->lines;
    if (waits && !fits && !rondo_cuda_all_agree(rondo_cuda_await_packets(view->slice_op, thread, threads, polls), threads))
        return 0;
#pragma unroll 1
    for (uint64_t first = thread; first < packets + thread; first += chunk) {
        struct rondo_cuda_wide wide[4] = {};
        int here = rondo_cuda_reduce_packets(type, op, batch, deep, view, wide, first, threads, polls);
        if (waits && fits && !rondo_cuda_all_agree(here, threads))
            return 0;
        rondo_cuda_deliver_packets(type, average, deep, view, wide, first, threads);
    }
    if (view->slice_op->lines && !view->slice_op->exchanges && view->slice_op->ll_remotes != 0)
        rondo_cuda_flag_lines(view->slice_op, thread, threads);
    return 1;
}

/* ---- one set of functions per type and operator ---- */

/*
 * Every loop is a function of its own: together they would keep more alive than there are registers.
 */
#define RONDO_CUDA_DEFINE_TILES(name, type, op, only, batch, deep)                                                             \
    RONDO_CUDA_CALLED uint64_t name(const struct rondo_cuda_view *given)                                                       \
    {                                                                                                                          \
        const struct rondo_cuda_view view = rondo_cuda_seen(given);                                                            \
        return rondo_cuda_reduce_tiles(type, op, 0, only, batch, deep, &view);                                                 \
    }
#define RONDO_CUDA_DEFINE_SHIFTED(name, type, op, average, batch, deep)                                                        \
    RONDO_CUDA_CALLED void name(const struct rondo_cuda_view *given, uint64_t start, uint32_t first_warp)                      \
    {                                                                                                                          \
        const struct rondo_cuda_view view = rondo_cuda_seen(given);                                                            \
        rondo_cuda_reduce_shifted(type, op, average, batch, deep, &view, start, first_warp);                                   \
    }
#define RONDO_CUDA_DEFINE_PART(name, type, op, average)                                                                        \
    RONDO_CUDA_CALLED void name(const struct rondo_cuda_view *view, uint64_t offset, uint32_t bytes)                           \
    {                                                                                                                          \
        rondo_cuda_reduce_part(type, op, average, view, offset, bytes);                                                        \
    }
#define RONDO_CUDA_DEFINE_PACKETS(name, type, op, average, batch, deep)                                                        \
    RONDO_CUDA_CALLED int name(const struct rondo_slice_op *slice_op, uint32_t thread, uint32_t threads, uint64_t polls)       \
    {                                                                                                                          \
        const struct rondo_cuda_view view = rondo_cuda_packet_view(slice_op);                                                  \
        return rondo_cuda_packets(type, op, average, batch, deep, &view, thread, threads, polls);                              \
    }

/* One modest loop does it all, which is several times less code than the hot operators have. */
#define RONDO_CUDA_DEFINE_REDUCE(name, type, op, average)                                                                      \
    RONDO_CUDA_DEFINE_SHIFTED(rondo_cuda_shifted_##name, type, op, average, 2, 2)                                              \
    RONDO_CUDA_DEFINE_PART(rondo_cuda_part_##name, type, op, average)                                                          \
    RONDO_CUDA_DEFINE_PACKETS(rondo_cuda_packets_##name, type, op, average, 2, 1)                                              \
    RONDO_CUDA_INLINE int rondo_cuda_reduce_##name(const struct rondo_cuda_view *view, uint32_t thread, uint32_t threads,      \
                                                   uint64_t polls)                                                             \
    {                                                                                                                          \
        uint64_t offset;                                                                                                       \
        uint32_t bytes;                                                                                                        \
        if (view->packets)                                                                                                     \
            return rondo_cuda_packets_##name(view->slice_op, thread, threads, polls);                                          \
        rondo_cuda_shifted_##name(view, 0, 0);                                                                                 \
        if (rondo_cuda_own_part(view, &offset, &bytes))                                                                        \
            rondo_cuda_part_##name(view, offset, bytes);                                                                       \
        return 1;                                                                                                              \
    }

/* Loops for 2 sources and for more that keep more bytes in flight. */
#define RONDO_CUDA_DEFINE_HOT_REDUCE(name, type, op)                                                                           \
    RONDO_CUDA_DEFINE_TILES(rondo_cuda_tiles_of_two_##name, type, op, 2, 2, 4)                                                 \
    RONDO_CUDA_DEFINE_TILES(rondo_cuda_tiles_##name, type, op, 0, 4, 2)                                                        \
    RONDO_CUDA_DEFINE_SHIFTED(rondo_cuda_shifted_##name, type, op, 0, 2, 2)                                                    \
    RONDO_CUDA_DEFINE_PART(rondo_cuda_part_##name, type, op, 0)                                                                \
    RONDO_CUDA_DEFINE_PACKETS(rondo_cuda_packets_of_two_##name, type, op, 0, 2, 4)                                             \
    RONDO_CUDA_DEFINE_PACKETS(rondo_cuda_packets_##name, type, op, 0, 8, 1)                                                    \
    RONDO_CUDA_INLINE int rondo_cuda_reduce_##name(const struct rondo_cuda_view *view, uint32_t thread, uint32_t threads,      \
                                                   uint64_t polls)                                                             \
    {                                                                                                                          \
        const int two = view->slice_op->sources == 2;                                                                          \
        uint64_t offset, tiles = 0;                                                                                            \
        uint32_t bytes;                                                                                                        \
        if (view->packets && two)                                                                                              \
            return rondo_cuda_packets_of_two_##name(view->slice_op, thread, threads, polls);                                   \
        if (view->packets)                                                                                                     \
            return rondo_cuda_packets_##name(view->slice_op, thread, threads, polls);                                          \
        if (view->aligned)                                                                                                     \
            tiles = two ? rondo_cuda_tiles_of_two_##name(view) : rondo_cuda_tiles_##name(view);                                \
        rondo_cuda_shifted_##name(view, tiles *(two ? 4 : 2) * RONDO_CUDA_WARP, (uint32_t) tiles % view->warps);               \
        if (rondo_cuda_own_part(view, &offset, &bytes))                                                                        \
            rondo_cuda_part_##name(view, offset, bytes);                                                                       \
        return 1;                                                                                                              \
    }

/* A copy, whatever the type: of the operator nothing is left. */
RONDO_CUDA_DEFINE_TILES(rondo_cuda_copy_tiles, RONDO_UINT32, RONDO_SUM, 1, 1, 8)
RONDO_CUDA_DEFINE_SHIFTED(rondo_cuda_copy_shifted, RONDO_UINT32, RONDO_SUM, 0, 1, 4)
RONDO_CUDA_DEFINE_PART(rondo_cuda_copy_part, RONDO_UINT32, RONDO_SUM, 0)
RONDO_CUDA_DEFINE_PACKETS(rondo_cuda_copy_packets, RONDO_UINT32, RONDO_SUM, 0, 1, 4)
RONDO_CUDA_INLINE int rondo_cuda_copy(const struct rondo_cuda_view *view, uint32_t thread, uint32_t threads, uint64_t polls)
{
    uint64_t offset, tiles = 0;
    uint32_t bytes;
    if (view->packets)
        return rondo_cuda_copy_packets(view->slice_op, thread, threads, polls);
    if (view->aligned)
        tiles = rondo_cuda_copy_tiles(view);
    rondo_cuda_copy_shifted(view, tiles * 8 * RONDO_CUDA_WARP, (uint32_t) tiles % view->warps);
    if (rondo_cuda_own_part(view, &offset, &bytes))
        rondo_cuda_copy_part(view, offset, bytes);
    return 1;
}

/* Sums, products and logical operators of integers do not depend on the sign. */
#define RONDO_CUDA_DEFINE_SIGNED(TYPE, name)                                                                                   \
    RONDO_CUDA_DEFINE_REDUCE(name##_mean, RONDO_##TYPE, RONDO_SUM, 1)                                                          \
    RONDO_CUDA_DEFINE_REDUCE(name##_min, RONDO_##TYPE, RONDO_MIN, 0)                                                           \
    RONDO_CUDA_DEFINE_REDUCE(name##_max, RONDO_##TYPE, RONDO_MAX, 0)
#define RONDO_CUDA_DEFINE_RARE(TYPE, name)                                                                                     \
    RONDO_CUDA_DEFINE_SIGNED(TYPE, name)                                                                                       \
    RONDO_CUDA_DEFINE_REDUCE(name##_prod, RONDO_##TYPE, RONDO_PROD, 0)                                                         \
    RONDO_CUDA_DEFINE_REDUCE(name##_logical, RONDO_##TYPE, RONDO_CUDA_LOGICAL, 0)
#define RONDO_CUDA_DEFINE_TYPE(TYPE, name)                                                                                     \
    RONDO_CUDA_DEFINE_RARE(TYPE, name)                                                                                         \
    RONDO_CUDA_DEFINE_HOT_REDUCE(name##_sum, RONDO_##TYPE, RONDO_SUM)
RONDO_CUDA_DEFINE_SIGNED(INT8, int8)
RONDO_CUDA_DEFINE_SIGNED(INT32, int32)
RONDO_CUDA_DEFINE_SIGNED(INT64, int64)
RONDO_CUDA_DEFINE_TYPE(UINT8, uint8)
RONDO_CUDA_DEFINE_TYPE(UINT32, uint32)
RONDO_CUDA_DEFINE_TYPE(UINT64, uint64)
RONDO_CUDA_DEFINE_TYPE(FLOAT16, float16)
RONDO_CUDA_DEFINE_TYPE(BFLOAT16, bfloat16)
RONDO_CUDA_DEFINE_TYPE(FLOAT, float)
RONDO_CUDA_DEFINE_TYPE(DOUBLE, double)
/* 16 accumulators a vector leave no registers for the hot loops. */
RONDO_CUDA_DEFINE_RARE(FLOAT8E4M3, float8e4m3)
RONDO_CUDA_DEFINE_RARE(FLOAT8E5M2, float8e5m2)
RONDO_CUDA_DEFINE_REDUCE(float8e4m3_sum, RONDO_FLOAT8E4M3, RONDO_SUM, 0)
RONDO_CUDA_DEFINE_REDUCE(float8e5m2_sum, RONDO_FLOAT8E5M2, RONDO_SUM, 0)
/* Of any integer type. */
RONDO_CUDA_DEFINE_REDUCE(band, RONDO_UINT32, RONDO_BAND, 0)
RONDO_CUDA_DEFINE_REDUCE(bor, RONDO_UINT32, RONDO_BOR, 0)
RONDO_CUDA_DEFINE_REDUCE(bxor, RONDO_UINT32, RONDO_BXOR, 0)
#undef RONDO_CUDA_DEFINE_TILES
#undef RONDO_CUDA_DEFINE_SHIFTED
#undef RONDO_CUDA_DEFINE_PART
#undef RONDO_CUDA_DEFINE_PACKETS
#undef RONDO_CUDA_DEFINE_REDUCE
#undef RONDO_CUDA_DEFINE_HOT_REDUCE
#undef RONDO_CUDA_DEFINE_SIGNED
#undef RONDO_CUDA_DEFINE_RARE
#undef RONDO_CUDA_DEFINE_TYPE

#define RONDO_CUDA_CALL(name) return rondo_cuda_reduce_##name(view, thread, threads, polls)
#define RONDO_CUDA_CASE(TYPE, name, unsigned_name)                                                                             \
    case RONDO_##TYPE:                                                                                                         \
        if ((op == RONDO_SUM || op == RONDO_AVG) && view->slice_op->average != 0)                                              \
            RONDO_CUDA_CALL(name##_mean);                                                                                      \
        if (op == RONDO_SUM || op == RONDO_AVG)                                                                                \
            RONDO_CUDA_CALL(unsigned_name##_sum);                                                                              \
        if (op == RONDO_PROD)                                                                                                  \
            RONDO_CUDA_CALL(unsigned_name##_prod);                                                                             \
        if (op == RONDO_MIN)                                                                                                   \
            RONDO_CUDA_CALL(name##_min);                                                                                       \
        if (op == RONDO_MAX)                                                                                                   \
            RONDO_CUDA_CALL(name##_max);                                                                                       \
        RONDO_CUDA_CALL(unsigned_name##_logical);
RONDO_CUDA_INLINE int rondo_cuda_reduce_any(const struct rondo_cuda_view *view, uint32_t thread, uint32_t threads,
                                            uint64_t polls)
{
    const int op = view->slice_op->op;
    if (op == RONDO_BAND)
        RONDO_CUDA_CALL(band);
    if (op == RONDO_BOR)
        RONDO_CUDA_CALL(bor);
    if (op == RONDO_BXOR)
        RONDO_CUDA_CALL(bxor);
    switch (view->slice_op->type) {
        RONDO_CUDA_CASE(INT8, int8, uint8)
        RONDO_CUDA_CASE(UINT8, uint8, uint8)
        RONDO_CUDA_CASE(INT32, int32, uint32)
        RONDO_CUDA_CASE(UINT32, uint32, uint32)
        RONDO_CUDA_CASE(INT64, int64, uint64)
        RONDO_CUDA_CASE(UINT64, uint64, uint64)
        RONDO_CUDA_CASE(FLOAT16, float16, float16)
        RONDO_CUDA_CASE(BFLOAT16, bfloat16, bfloat16)
        RONDO_CUDA_CASE(FLOAT, float, float)
        RONDO_CUDA_CASE(DOUBLE, double, double)
        RONDO_CUDA_CASE(FLOAT8E4M3, float8e4m3, float8e4m3)
        RONDO_CUDA_CASE(FLOAT8E5M2, float8e5m2, float8e5m2)
    }
    return 1;
}
#undef RONDO_CUDA_CASE
#undef RONDO_CUDA_CALL

/*
 * Carries out a piece that lies in shared memory, by all the worker threads (a multiple of 32, numbered from 0) of a block.
 * Returns the same on all of them: 1, done; 0, some LL source had not arrived after so many polls, and nothing has been stored.
 * Plain sources have been acquired by the control thread. What is stored here is not published: that takes a barrier and a
 * release by one thread.
 */
static __device__ int rondo_move_general(const struct rondo_slice_op *slice_op, uint32_t thread, uint32_t threads,
                                         uint64_t polls)
{
    struct rondo_cuda_view view;
    view.slice_op = slice_op;
    view.bytes = slice_op->count * slice_op->element_bytes;
    view.has_local = slice_op->local != NULL;
    view.destinations = view.has_local + slice_op->remotes;
    view.warp = thread / RONDO_CUDA_WARP;
    view.warps = threads / RONDO_CUDA_WARP;
    view.lane = thread % RONDO_CUDA_WARP;
    if (view.bytes == 0)
        return 1;
    if (view.destinations == 0) /* nobody keeps it; but it may have to be waited for */
        return slice_op->ll_sources == 0 ||
               rondo_cuda_all_agree(rondo_cuda_await_packets(slice_op, thread, threads, polls), threads);
    view.packets = (slice_op->ll_sources | slice_op->ll_remotes) != 0;
    if (slice_op->exchanges && !slice_op->sent)
        rondo_cuda_send_packets(slice_op, thread, threads);
    if (!view.packets)
        rondo_cuda_place_grid(&view);
    if (slice_op->sources == 1 && slice_op->average == 0)
        return rondo_cuda_copy(&view, thread, threads, polls);
    return rondo_cuda_reduce_any(&view, thread, threads, polls);
}

#endif
