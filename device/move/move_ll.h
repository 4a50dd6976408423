/*
 * Slice operations with LL packets, of the types and the operator that are usual, and of more than one packet a thread: what a
 * thread reduces stays in registers until all has arrived, and the packets of a source are asked for all at once.
 */
#ifndef RONDO_DEVICE_MOVE_MOVE_LL_H
#define RONDO_DEVICE_MOVE_MOVE_LL_H

#if !defined(__CUDACC__)
#error "__device__ code: nvcc alone compiles it"
#endif

#include "device/abi/cuda_access.h"
#include "device/abi/slice_operation.h"
#include "device/move/mover_table.h"
#include "device/reduce/cuda_elements.h"

/* Rows of packets lie one after the other, the threads side by side. This thread's part: */
struct rondo_cuda_rows {
    uint64_t offset, stride; /* bytes of data: of the first packet, and from one to the next */
    uint32_t count;
};

/* What a thread has asked for of this rank's own data, before it is known where anything else lies. */
struct rondo_cuda_own {
    struct rondo_cuda_vector packets[RONDO_LL_ROWS];
};

/* One source's packets. They are asked for all at once, again and again until all are there. */
RONDO_CUDA_INLINE int rondo_cuda_receive_rows(const struct rondo_cuda_rows *rows, const char *source, uint32_t flag,
                                              uint64_t *polls, struct rondo_cuda_vector *loaded)
{
    for (;;) {
        const char *from = source + 2 * rows->offset;
        int here = 1;
#pragma unroll
        for (int k = 0; k < RONDO_LL_ROWS; k++, from += 2 * rows->stride)
            if ((uint32_t) k < rows->count)
                here &= rondo_cuda_load_packet(&loaded[k], from, flag);
        if (here || (*polls)-- == 0)
            return here;
    }
}

RONDO_CUDA_INLINE void rondo_cuda_read_rows(const struct rondo_cuda_rows *rows, const char *source,
                                            struct rondo_cuda_vector *loaded)
{
    const char *from = source + rows->offset;
#pragma unroll
    for (int k = 0; k < RONDO_LL_ROWS; k++, from += rows->stride)
        if ((uint32_t) k < rows->count)
            loaded[k] = rondo_cuda_load_whole_half(from);
}

RONDO_CUDA_INLINE void rondo_cuda_send_rows(const struct rondo_cuda_rows *rows, char *remote, uint32_t flag,
                                            const struct rondo_cuda_vector *values)
{
    char *to = remote + 2 * rows->offset;
#pragma unroll
    for (int k = 0; k < RONDO_LL_ROWS; k++, to += 2 * rows->stride)
        if ((uint32_t) k < rows->count)
            rondo_cuda_store_packet(to, values[k], flag);
}

RONDO_CUDA_INLINE void rondo_cuda_write_rows(const struct rondo_cuda_rows *rows, char *destination,
                                             const struct rondo_cuda_vector *values)
{
    char *to = destination + rows->offset;
#pragma unroll
    for (int k = 0; k < RONDO_LL_ROWS; k++, to += rows->stride)
        if ((uint32_t) k < rows->count)
            rondo_cuda_store_whole_half(to, values[k]);
}

/* Of so many vectors of so many words (constants), one source more. */
RONDO_CUDA_INLINE void rondo_cuda_reduce_held_as(int type, int vectors, int words, int first, struct rondo_cuda_wide *sum,
                                                 const struct rondo_cuda_vector *loaded)
{
#pragma unroll
    for (int k = 0; k < vectors; k++)
        if (first)
            rondo_cuda_widen(type, words, &sum[k], loaded[k]);
        else
            rondo_cuda_combine(type, RONDO_SUM, RONDO_SUM, words, &sum[k], loaded[k]);
}

RONDO_CUDA_INLINE void rondo_cuda_reduce_held(int type, int vectors, int words, int first, struct rondo_cuda_wide *sum,
                                              const struct rondo_cuda_vector *loaded)
{
    if (type == RONDO_FLOAT)
        rondo_cuda_reduce_held_as(RONDO_FLOAT, vectors, words, first, sum, loaded);
    else if (type == RONDO_FLOAT16)
        rondo_cuda_reduce_held_as(RONDO_FLOAT16, vectors, words, first, sum, loaded);
    else if (type == RONDO_BFLOAT16)
        rondo_cuda_reduce_held_as(RONDO_BFLOAT16, vectors, words, first, sum, loaded);
    else
        rondo_cuda_reduce_held_as(RONDO_UINT32, vectors, words, first, sum, loaded);
}

RONDO_CUDA_INLINE void rondo_cuda_finish_held_as(int type, int vectors, int words, uint32_t average,
                                                 struct rondo_cuda_wide *sum, struct rondo_cuda_vector *result)
{
#pragma unroll
    for (int k = 0; k < vectors; k++) {
        if (average != 0)
            rondo_cuda_divide(type, words, &sum[k], (int) average);
        result[k] = rondo_cuda_narrow(type, words, &sum[k]);
    }
}

/* average: 0 of integers. */
RONDO_CUDA_INLINE void rondo_cuda_finish_held(int type, int vectors, int words, uint32_t average, struct rondo_cuda_wide *sum,
                                              struct rondo_cuda_vector *result)
{
    if (type == RONDO_FLOAT16)
        rondo_cuda_finish_held_as(RONDO_FLOAT16, vectors, words, average, sum, result);
    else if (type == RONDO_BFLOAT16)
        rondo_cuda_finish_held_as(RONDO_BFLOAT16, vectors, words, average, sum, result);
    else
        rondo_cuda_finish_held_as(RONDO_FLOAT, vectors, words, average, sum, result);
}

RONDO_CUDA_INLINE void rondo_cuda_copy_rows(struct rondo_cuda_vector *to, const struct rondo_cuda_vector *from)
{
#pragma unroll
    for (int k = 0; k < RONDO_LL_ROWS; k++) {
        to[k].word[0] = from[k].word[0];
        to[k].word[1] = from[k].word[1];
    }
}

/* The first source that is not LL, if there is one. */
RONDO_CUDA_INLINE uint32_t rondo_cuda_own_source(const struct rondo_slice_op *slice_op)
{
    return __ffs(~(uint32_t) slice_op->ll_sources) - 1;
}

RONDO_CUDA_INLINE struct rondo_cuda_rows rondo_cuda_rows_of(const struct rondo_slice_op *slice_op, uint32_t thread,
                                                            uint32_t threads)
{
    const uint32_t bytes = (uint32_t) (slice_op->count * slice_op->element_bytes);
    const struct rondo_cuda_rows rows = {thread * 8, threads * 8,
                                         thread * 8 < bytes ? (bytes - thread * 8 + threads * 8 - 1) / (threads * 8) : 0};
    return rows;
}

/* Nothing is stored before all is there: returns 0 if it is not. */
RONDO_CUDA_INLINE int rondo_move_ll(const struct rondo_slice_op *slice_op, uint32_t thread, uint32_t threads, uint64_t polls,
                                    const struct rondo_cuda_own *asked)
{
    const uint32_t packed = (uint32_t) slice_op->ll_sources, sources = slice_op->sources, remotes = slice_op->remotes;
    const uint32_t own = rondo_cuda_own_source(slice_op);
    const struct rondo_cuda_rows rows = rondo_cuda_rows_of(slice_op, thread, threads);
    const struct rondo_cuda_vector *retained = asked->packets;
    struct rondo_cuda_vector loaded[RONDO_LL_ROWS] = {};
    struct rondo_cuda_wide sum[RONDO_LL_ROWS];
    int here = 1;
    for (uint32_t r = 0; slice_op->exchanges && !slice_op->sent && r < remotes; r++)
        rondo_cuda_send_rows(&rows, slice_op->remote[r], slice_op->remote_flags[r], retained);
#pragma unroll 1
    for (uint32_t s = 0; s < sources && here; s++) {
        if (packed >> s & 1)
            here = rondo_cuda_receive_rows(&rows, slice_op->source[s], slice_op->source_flags[s], &polls, loaded);
        else if (s != own)
            rondo_cuda_read_rows(&rows, slice_op->source[s], loaded);
        else
            rondo_cuda_copy_rows(loaded, retained);
        if (s == 0)
            rondo_cuda_reduce_held(slice_op->type, RONDO_LL_ROWS, 2, 1, sum, loaded);
        else
            rondo_cuda_reduce_held(slice_op->type, RONDO_LL_ROWS, 2, 0, sum, loaded);
    }
    if (packed != 0 && !rondo_cuda_all_agree(here, threads))
        return 0;
    if (sources > 1)
        rondo_cuda_finish_held(slice_op->type, RONDO_LL_ROWS, 2, 0, sum, loaded);
    for (uint32_t r = 0; !slice_op->exchanges && r < remotes; r++)
        if (slice_op->ll_remotes >> r & 1)
            rondo_cuda_send_rows(&rows, slice_op->remote[r], slice_op->remote_flags[r], loaded);
        else
            rondo_cuda_write_rows(&rows, slice_op->remote[r], loaded);
    if (slice_op->local != NULL)
        rondo_cuda_write_rows(&rows, slice_op->local, loaded);
    return 1;
}

#endif
