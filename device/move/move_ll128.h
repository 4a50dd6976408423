/*
 * Slice operations with lines of LL128, of the types and the operator that are usual, whose other buffers are aligned to 16
 * bytes. A warp moves four lines with one access, each lane its 16 bytes of them: of every eight lanes the last has the line's
 * flag, the others data.
 */
#ifndef RONDO_DEVICE_MOVE_MOVE_LL128_H
#define RONDO_DEVICE_MOVE_MOVE_LL128_H

#if !defined(__CUDACC__)
#error "__device__ code: nvcc alone compiles it"
#endif

#include "device/abi/cuda_access.h"
#include "device/abi/slice_operation.h"
#include "device/move/low_latency.h"
#include "device/move/move_ll.h"
#include "device/move/narrow.h"
#include "device/reduce/cuda_elements.h"

#define RONDO_CUDA_LINES_DEEP  4 /* a thread's accesses under way, at most RONDO_LL_ROWS */
#define RONDO_CUDA_LINES_AHEAD 4 /* that often it may send before it waits for what it has sent first */

/* A thread's part of so many bytes. */
struct rondo_cuda_lines {
    uint32_t data, slot; /* its first access: bytes from where data, and lines, begin (of a flag's lane: where its line does) */
    uint32_t data_stride, slot_stride;
    uint32_t bytes; /* of data, in all */
    uint32_t step;  /* its warp goes through so many at a time */
    uint32_t has_flag;
};

RONDO_CUDA_INLINE struct rondo_cuda_lines rondo_cuda_lines_of(uint64_t bytes, uint32_t thread, uint32_t threads)
{
    const uint32_t line = thread / 8, place = thread % 8;
    struct rondo_cuda_lines lines;
    lines.has_flag = place == 7;
    lines.data = line * RONDO_LINE_DATA + (lines.has_flag ? 0 : place * 16);
    lines.slot = thread * 16;
    lines.data_stride = threads / 8 * RONDO_LINE_DATA;
    lines.slot_stride = threads * 16;
    lines.bytes = (uint32_t) bytes;
    lines.step = RONDO_CUDA_LINES_DEEP * lines.data_stride;
    return lines;
}

/* Whether one of the thread's accesses from first on is the last vector of all. */
RONDO_CUDA_INLINE int rondo_cuda_ends_here(const struct rondo_cuda_lines *lines, uint32_t first)
{
    const uint32_t last = (lines->bytes - 1) & ~15u;
    uint32_t data = lines->data + first * lines->data_stride;
    int here = 0;
#pragma unroll
    for (int k = 0; k < RONDO_CUDA_LINES_DEEP; k++, data += lines->data_stride)
        here |= data == last;
    return here && !lines->has_flag;
}

/* Asks for the accesses from first on of data that are in no lines. ragged, a constant: they may end within a vector, whose
 * rest is then 0. */
RONDO_CUDA_INLINE void rondo_cuda_read_lines(const struct rondo_cuda_lines *lines, uint32_t first, const char *source,
                                             int ragged, struct rondo_cuda_vector *loaded)
{
    const uint32_t whole = ragged ? lines->bytes & ~15u : lines->bytes;
    uint32_t data = lines->data + first * lines->data_stride;
#pragma unroll
    for (int k = 0; k < RONDO_CUDA_LINES_DEEP; k++) {
        if (!lines->has_flag && data < whole)
            loaded[k] = rondo_cuda_load(source + data);
        data += lines->data_stride;
    }
    if (!ragged || whole == lines->bytes || !rondo_cuda_ends_here(lines, first))
        return;
    const struct rondo_cuda_vector end = rondo_cuda_load_end(source + whole, lines->bytes - whole);
    data = lines->data + first * lines->data_stride;
#pragma unroll
    for (int k = 0; k < RONDO_CUDA_LINES_DEEP; k++, data += lines->data_stride)
        if (data == whole)
            loaded[k] = end;
}

/* The same of any source. */
RONDO_CUDA_INLINE void rondo_cuda_ask_for_lines(const struct rondo_slice_op *slice_op, const struct rondo_cuda_lines *lines,
                                                uint32_t first, uint32_t s, int ragged, struct rondo_cuda_vector *loaded)
{
    const char *from = slice_op->source[s] + lines->slot + first * lines->slot_stride;
    uint32_t data = lines->data + first * lines->data_stride;
    if (!(slice_op->ll_sources >> s & 1)) {
        rondo_cuda_read_lines(lines, first, slice_op->source[s], ragged, loaded);
        return;
    }
#pragma unroll
    for (int k = 0; k < RONDO_CUDA_LINES_DEEP; k++) {
        if (data < lines->bytes)
            loaded[k] = rondo_cuda_load_line(from);
        from += lines->slot_stride;
        data += lines->data_stride;
    }
}

/* What was asked for is there, or asked for again until it is. By whole warps. 0: it is not. */
RONDO_CUDA_INLINE int rondo_cuda_have_lines(uint32_t width, const struct rondo_slice_op *slice_op,
                                            const struct rondo_cuda_lines *lines, uint32_t first, uint32_t s, uint64_t *polls,
                                            struct rondo_cuda_vector *loaded)
{
    while (slice_op->ll_sources >> s & 1) {
        uint32_t data = lines->data + first * lines->data_stride;
        int here = 1;
#pragma unroll
        for (int k = 0; k < RONDO_CUDA_LINES_DEEP; k++) {
            if (lines->has_flag && data < lines->bytes)
                here &= loaded[k].word[3] == rondo_cuda_source_flag(width, slice_op, s);
            data += lines->data_stride;
        }
        if (__all_sync(RONDO_CUDA_WHOLE_WARP, here))
            break;
        if ((*polls)-- == 0)
            return 0;
        rondo_cuda_ask_for_lines(slice_op, lines, first, s, 0, loaded); /* lines are whole */
    }
    return 1;
}

RONDO_CUDA_INLINE void rondo_cuda_send_lines(const struct rondo_cuda_lines *lines, uint32_t first, char *remote, uint32_t flag,
                                             const struct rondo_cuda_vector *values)
{
    char *to = remote + lines->slot + first * lines->slot_stride;
    uint32_t data = lines->data + first * lines->data_stride;
#pragma unroll
    for (int k = 0; k < RONDO_CUDA_LINES_DEEP; k++) {
        if (data < lines->bytes)
            rondo_cuda_store_line(to, lines->has_flag ? rondo_cuda_line_flag(flag) : values[k]);
        to += lines->slot_stride;
        data += lines->data_stride;
    }
}

RONDO_CUDA_INLINE void rondo_cuda_write_lines(const struct rondo_cuda_lines *lines, uint32_t first, char *destination,
                                              int ragged, const struct rondo_cuda_vector *values)
{
    const uint32_t whole = ragged ? lines->bytes & ~15u : lines->bytes;
    uint32_t data = lines->data + first * lines->data_stride;
#pragma unroll
    for (int k = 0; k < RONDO_CUDA_LINES_DEEP; k++) {
        if (!lines->has_flag && data < whole)
            rondo_cuda_store(destination + data, values[k]);
        data += lines->data_stride;
    }
    if (!ragged || whole == lines->bytes || !rondo_cuda_ends_here(lines, first))
        return;
    struct rondo_cuda_vector end = values[0];
    data = lines->data + first * lines->data_stride;
#pragma unroll
    for (int k = 0; k < RONDO_CUDA_LINES_DEEP; k++, data += lines->data_stride)
        if (data == whole)
            end = values[k];
    rondo_cuda_store_end(destination + whole, end, lines->bytes - whole);
}

/* The accesses from first on, of all sources and to all destinations. 0: some have not come, and nothing has been stored. Two
 * sources are on their way at a time. */
RONDO_CUDA_INLINE int rondo_cuda_reduce_some_lines(uint32_t width, const struct rondo_slice_op *slice_op,
                                                   const struct rondo_cuda_lines *lines, uint32_t first, int ragged,
                                                   uint64_t *polls)
{
    const uint32_t sources = slice_op->sources;
    struct rondo_cuda_vector loaded[RONDO_CUDA_LINES_DEEP] = {}, more[RONDO_CUDA_LINES_DEEP] = {};
    struct rondo_cuda_wide sum[RONDO_CUDA_LINES_DEEP];
#pragma unroll 1
    for (uint32_t s = 0; s < sources; s += 2) {
        rondo_cuda_ask_for_lines(slice_op, lines, first, s, ragged, loaded);
        if (s + 1 < sources)
            rondo_cuda_ask_for_lines(slice_op, lines, first, s + 1, ragged, more);
        if (!rondo_cuda_have_lines(width, slice_op, lines, first, s, polls, loaded))
            return 0;
        if (sources > 1)
            rondo_cuda_reduce_held(slice_op->type, RONDO_CUDA_LINES_DEEP, 4, s == 0, sum, loaded);
        if (s + 1 == sources)
            break;
        if (!rondo_cuda_have_lines(width, slice_op, lines, first, s + 1, polls, more))
            return 0;
        rondo_cuda_reduce_held(slice_op->type, RONDO_CUDA_LINES_DEEP, 4, 0, sum, more);
    }
    if (sources > 1)
        rondo_cuda_finish_held(slice_op->type, RONDO_CUDA_LINES_DEEP, 4, slice_op->average, sum, loaded);
#pragma unroll 1
    for (uint32_t r = 0; !slice_op->exchanges && r < slice_op->remotes; r++)
        if (slice_op->ll_remotes >> r & 1)
            rondo_cuda_send_lines(lines, first, rondo_cuda_remote(width, slice_op, r),
                                  rondo_cuda_remote_flag(width, slice_op, r), loaded);
        else
            rondo_cuda_write_lines(lines, first, rondo_cuda_remote(width, slice_op, r), ragged, loaded);
    if (slice_op->local != NULL)
        rondo_cuda_write_lines(lines, first, slice_op->local, ragged, loaded);
    return 1;
}

/* The warp goes on through its steps, of which it has done so many and (an exchange) sent so many. An exchange sends so far
 * ahead of what it waits for, and nothing is overwritten before it has been sent. Ends early when something has not come. */
RONDO_CUDA_INLINE void rondo_cuda_move_lines(uint32_t width, const struct rondo_slice_op *slice_op,
                                             const struct rondo_cuda_lines *lines, int ragged, uint64_t polls, uint32_t *done,
                                             uint32_t *sent)
{
#pragma unroll 1
    for (; *done * lines->step < lines->bytes; (*done)++) {
#pragma unroll 1
        for (; slice_op->exchanges && *sent * lines->step < lines->bytes && *sent <= *done + RONDO_CUDA_LINES_AHEAD;
             (*sent)++) {
            const uint32_t first = *sent * RONDO_CUDA_LINES_DEEP;
            struct rondo_cuda_vector loaded[RONDO_CUDA_LINES_DEEP] = {};
            rondo_cuda_read_lines(lines, first, slice_op->source[rondo_cuda_own_source(slice_op)], ragged, loaded);
#pragma unroll 1
            for (uint32_t r = 0; r < slice_op->remotes; r++)
                rondo_cuda_send_lines(lines, first, rondo_cuda_remote(width, slice_op, r),
                                      rondo_cuda_remote_flag(width, slice_op, r), loaded);
        }
        if (!rondo_cuda_reduce_some_lines(width, slice_op, lines, *done * RONDO_CUDA_LINES_DEEP, ragged, &polls))
            return;
    }
}

/*
 * Each warp goes its own way through its accesses, some at a time, and notes in progress how often it has done so when others'
 * data have not come: it goes on from there when the slice operation is carried out again. A slot is fewer than 256 of a warp's
 * steps. Returns the same on all threads; 0: go on later.
 */
RONDO_CUDA_INLINE int rondo_move_ll128(const struct rondo_slice_op *slice_op, uint32_t thread, uint32_t threads, uint64_t polls,
                                       uint8_t *progress)
{
    const struct rondo_cuda_lines lines = rondo_cuda_lines_of(slice_op->count * slice_op->element_bytes, thread, threads);
    const uint32_t warp = thread / RONDO_CUDA_WARP;
    const int waits = slice_op->ll_sources != 0;
    const int first_lane = thread % RONDO_CUDA_WARP == 0;
    uint32_t done = __shfl_sync(RONDO_CUDA_WHOLE_WARP, waits && first_lane ? progress[warp] : 0, 0);
    uint32_t sent = slice_op->sent ? done + RONDO_CUDA_LINES_AHEAD + 1 : done;
    rondo_cuda_move_lines(RONDO_REDUCE_SOURCES_MAX, slice_op, &lines, 0, polls, &done, &sent);
    if (!waits)
        return 1;
    if (first_lane)
        progress[warp] = (uint8_t) done;
    return rondo_cuda_all_agree(done * lines.step >= lines.bytes, threads);
}

/* For kernels that have the ways of other slice operations, too: together they would need more registers than there are. The
 * call costs a microsecond. */
RONDO_CUDA_CALLED int rondo_move_ll128_called(const struct rondo_slice_op *slice_op, uint32_t thread, uint32_t threads,
                                              uint64_t polls, uint8_t *progress)
{
    __builtin_assume(__isShared(slice_op));
    return rondo_move_ll128(slice_op, thread, threads, polls, progress);
}

#endif
