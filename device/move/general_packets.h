/*
 * The loops of move_general over data with flags, of any type, operator and alignment: LL packets or LL128 lines, packet by
 * packet of 8 bytes of data. Loops are inlined functions whose first arguments are constants.
 */
#ifndef RONDO_DEVICE_MOVE_GENERAL_PACKETS_H
#define RONDO_DEVICE_MOVE_GENERAL_PACKETS_H

#if !defined(__CUDACC__)
#error "__device__ code: nvcc alone compiles it"
#endif

#include "device/abi/cuda_access.h"
#include "device/abi/slice_operation.h"
#include "device/move/general_vectors.h"
#include "device/move/low_latency.h"
#include "device/reduce/cuda_elements.h"

/* A view for packets, made anew in a called function: an argument in memory would be far away. */
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

/* Offset of a packet in a slot. Of a line it is 8 bytes of data alone. */
RONDO_CUDA_INLINE uint64_t rondo_cuda_packet_place(const struct rondo_slice_op *slice_op, uint64_t packet)
{
    enum { OF_A_LINE = RONDO_LINE_DATA / RONDO_CUDA_PACKET_DATA };
    return slice_op->lines ? packet / OF_A_LINE * RONDO_LINE_BYTES + packet % OF_A_LINE * RONDO_CUDA_PACKET_DATA
                           : packet * RONDO_CUDA_PACKET;
}

/* Loads a packet's data into the first two words. Returns 0 if it has not arrived. Lines have been waited for. */
RONDO_CUDA_INLINE int rondo_cuda_take_packet(const struct rondo_slice_op *slice_op, uint32_t s, uint64_t packet,
                                             struct rondo_cuda_vector *v)
{
    const char *from = slice_op->source[s] + rondo_cuda_packet_place(slice_op, packet);
    if (!slice_op->lines)
        return rondo_cuda_load_packet(v, from, slice_op->source_flags[s]);
    asm volatile("ld.relaxed.sys.global.v2.u32 {%0, %1}, [%2];" : "=r"(v->word[0]), "=r"(v->word[1]) : "l"(from) : "memory");
    return 1;
}

/* Stores a packet. A line's data are its reader's only with the flag (rondo_cuda_flag_lines). */
RONDO_CUDA_INLINE void rondo_cuda_put_packet(const struct rondo_slice_op *slice_op, uint32_t r, uint64_t packet,
                                             struct rondo_cuda_vector v)
{
    char *to = slice_op->remote[r] + rondo_cuda_packet_place(slice_op, packet);
    if (slice_op->lines)
        rondo_cuda_store_whole_half(to, v);
    else
        rondo_cuda_store_packet(to, v, slice_op->remote_flags[r]);
}

/* Stores the flags of lines whose data have been stored one by one. By all workers. Each thread's fence comes between its
 * stores and the barrier, so a reader that sees a flag sees the line's data, whichever threads stored them (causality
 * order). */
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

/* Waits for this thread's share of the lines' flags; all threads together then know of all lines. Returns 0 if some have not
 * arrived. */
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

/* Waits for all packets of LL sources that this thread will reduce. Returns 0 if some have not arrived. */
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

/* Reduces packets first, first + threads, ... (deep of them) of all sources into wide. Waits for LL sources alone. Returns 0
 * if some have not arrived. */
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

/* The first half of an exchange: sends the local source. By the threads that will reduce the same packets, so local may be
 * the source. */
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

/* Stores one packet's data to all destinations. */
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

/* Stores the packets that rondo_cuda_reduce_packets has reduced. */
RONDO_CUDA_INLINE void rondo_cuda_deliver_packets(int type, int average, int deep, const struct rondo_cuda_view *view,
                                                  struct rondo_cuda_wide *wide, uint64_t first_packet, uint32_t threads)
{
#pragma unroll
    for (int u = 0; u < deep; u++)
        rondo_cuda_deliver_packet(view, rondo_cuda_finish(type, average, RONDO_CUDA_PACKET_WORDS, view->slice_op, &wide[u]),
                                  first_packet + (uint64_t) u * threads);
}

/* A slice operation that its threads can hold goes through registers at once; of a larger one, all packets are waited for
 * first, and then read. The thread that has seen a packet reads it, so it finds what it has seen. */
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

#endif
