/*
 * move_general: carries out any slice operation (device/abi/slice_operation.h) with the worker threads of a CUDA block. Each
 * type and operator has its own copy of the loops of device/move/general_vectors.h and device/move/general_packets.h, called.
 */
#ifndef RONDO_DEVICE_MOVE_MOVE_GENERAL_H
#define RONDO_DEVICE_MOVE_MOVE_GENERAL_H

#if !defined(__CUDACC__)
#error "__device__ code: nvcc alone compiles it"
#endif

#include "device/abi/cuda_access.h"
#include "device/abi/slice_operation.h"
#include "device/abi/types.h"
#include "device/move/general_packets.h"
#include "device/move/general_vectors.h"
#include "device/reduce/cuda_elements.h"

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
/* Copies one source, whatever the type, to all destinations. */
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
RONDO_CUDA_DEFINE_SIGNED(INT16, int16)
RONDO_CUDA_DEFINE_SIGNED(INT32, int32)
RONDO_CUDA_DEFINE_SIGNED(INT64, int64)
RONDO_CUDA_DEFINE_TYPE(UINT8, uint8)
RONDO_CUDA_DEFINE_TYPE(UINT32, uint32)
RONDO_CUDA_DEFINE_TYPE(UINT64, uint64)
RONDO_CUDA_DEFINE_TYPE(FLOAT16, float16)
RONDO_CUDA_DEFINE_TYPE(BFLOAT16, bfloat16)
RONDO_CUDA_DEFINE_TYPE(FLOAT, float)
RONDO_CUDA_DEFINE_TYPE(DOUBLE, double)
/* Seldom used, so without the hot loops. */
RONDO_CUDA_DEFINE_RARE(UINT16, uint16)
RONDO_CUDA_DEFINE_REDUCE(uint16_sum, RONDO_UINT16, RONDO_SUM, 0)
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
/* Calls the function of the slice operation's type and operator. */
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
        RONDO_CUDA_CASE(INT16, int16, uint16)
        RONDO_CUDA_CASE(UINT16, uint16, uint16)
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
 * Carries out a slice operation that lies in shared memory, by all the worker threads (a multiple of 32, numbered from 0) of a
 * block. Returns the same on all of them: 1, done; 0, some LL source had not arrived after so many polls, and nothing has been
 * stored. Plain sources have been acquired by the control thread. What is stored here is not published: that takes a barrier
 * and a release by one thread.
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
    if (view.destinations == 0) /* no destination keeps it, but it may have to be waited for */
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
