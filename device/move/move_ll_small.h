/*
 * Pieces with LL packets, of the types and the operator that are usual, inlined into the kernels. The functions that carry out
 * all the others (cuda_move.h) are called, and what that costs is more than a small piece takes.
 */
#ifndef RONDO_DEVICE_MOVE_MOVE_LL_SMALL_H
#define RONDO_DEVICE_MOVE_MOVE_LL_SMALL_H

#include "device/abi/cuda_access.h"
#include "device/reduce/cuda_elements.h"
#include "device/move/move_ll128.h"
#include "device/move/move_ll.h"
#include "device/move/movers.h"

#define RONDO_CUDA_SMALL_SOURCES 8

RONDO_CUDA_INLINE int rondo_cuda_is_usual(const struct rondo_piece *piece)
{
    int sums = piece->op == RONDO_SUM && rondo_is_usual_type(piece->type);
    int averages = piece->lines && piece->type != RONDO_INT32 && piece->type != RONDO_UINT32;
    return (piece->ll_sources | piece->ll_remotes) != 0 && (piece->average == 0 || (averages && piece->sources > 1)) &&
           (piece->sources == 1 || (sums && piece->sources <= RONDO_CUDA_SMALL_SOURCES));
}

/* The packet that begins at offset: its bytes of data, 0 past the last. */
RONDO_CUDA_INLINE uint32_t rondo_cuda_small_bytes(uint64_t bytes, uint64_t offset)
{
    return offset >= bytes ? 0 : bytes - offset < 8 ? (uint32_t) (bytes - offset) : 8;
}

RONDO_CUDA_INLINE struct rondo_cuda_vector rondo_cuda_small_sum(int type, const struct rondo_cuda_vector *loaded,
                                                                uint32_t sources)
{
    struct rondo_cuda_wide wide;
    rondo_cuda_widen(type, 2, &wide, loaded[0]);
#pragma unroll
    for (uint32_t s = 1; s < RONDO_CUDA_SMALL_SOURCES; s++)
        if (s < sources)
            rondo_cuda_combine(type, RONDO_SUM, RONDO_SUM, 2, &wide, loaded[s]);
    return rondo_cuda_narrow(type, 2, &wide);
}

/* Loads a packet of every source that is LL; 0: some are not there. */
RONDO_CUDA_INLINE int rondo_cuda_small_receive(const struct rondo_piece *piece, uint64_t offset,
                                               struct rondo_cuda_vector *loaded)
{
    const uint32_t packed = (uint32_t) piece->ll_sources;
    int here = 1;
#pragma unroll
    for (uint32_t s = 0; s < RONDO_CUDA_SMALL_SOURCES; s++)
        if (packed >> s & 1)
            here &= rondo_cuda_load_packet(&loaded[s], piece->source[s] + 2 * offset, piece->source_flags[s]);
    return here;
}

/* Those that are not; an exchange sends them on. */
RONDO_CUDA_INLINE void rondo_cuda_small_read(const struct rondo_piece *piece, uint64_t offset, uint32_t bytes, int exchanges,
                                             const struct rondo_cuda_own *asked, struct rondo_cuda_vector *loaded)
{
    const uint32_t packed = (uint32_t) piece->ll_sources, sources = piece->sources, own = rondo_cuda_own_source(piece);
#pragma unroll
    for (uint32_t s = 0; s < RONDO_CUDA_SMALL_SOURCES; s++)
        if (s < sources && !(packed >> s & 1)) {
            loaded[s] = s == own ? asked->packets[0] : rondo_cuda_load_half(piece->source[s] + offset, bytes);
            for (uint32_t r = 0; exchanges && r < piece->remotes; r++)
                rondo_cuda_store_packet(piece->remote[r] + 2 * offset, loaded[s], piece->remote_flags[r]);
        }
}

RONDO_CUDA_INLINE void rondo_cuda_small_deliver(const struct rondo_piece *piece, uint64_t offset, uint32_t bytes,
                                                const struct rondo_cuda_vector *loaded)
{
    const uint32_t sources = piece->sources;
    struct rondo_cuda_vector result = loaded[0];
    if (sources > 1)
        switch (piece->type) {
        case RONDO_FLOAT:
            result = rondo_cuda_small_sum(RONDO_FLOAT, loaded, sources);
            break;
        case RONDO_FLOAT16:
            result = rondo_cuda_small_sum(RONDO_FLOAT16, loaded, sources);
            break;
        case RONDO_BFLOAT16:
            result = rondo_cuda_small_sum(RONDO_BFLOAT16, loaded, sources);
            break;
        default:
            result = rondo_cuda_small_sum(RONDO_UINT32, loaded, sources);
            break;
        }
    if (piece->local != NULL)
        rondo_cuda_store_half(piece->local + offset, result, bytes);
    for (uint32_t r = 0; !piece->exchanges && r < piece->remotes; r++)
        if (piece->ll_remotes >> r & 1)
            rondo_cuda_store_packet(piece->remote[r] + 2 * offset, result, piece->remote_flags[r]);
        else
            rondo_cuda_store_half(piece->remote[r] + offset, result, bytes);
}

/* One packet a thread at most: it stays in registers. */
RONDO_CUDA_INLINE int rondo_cuda_carry_out_small(const struct rondo_piece *piece, uint32_t thread, uint32_t threads,
                                                 uint64_t polls, const struct rondo_cuda_own *asked)
{
    const uint64_t bytes = piece->count * piece->element_bytes, offset = thread * 8;
    const uint32_t mine = rondo_cuda_small_bytes(bytes, offset);
    struct rondo_cuda_vector loaded[RONDO_CUDA_SMALL_SOURCES];
    int here = 1;
    if (mine > 0) {
        rondo_cuda_small_read(piece, offset, mine, piece->exchanges, asked, loaded);
        do
            here = rondo_cuda_small_receive(piece, offset, loaded);
        while (!here && polls-- > 0);
    }
    /* Nothing is stored before all is there; one warp agrees faster, and is the one that answers. */
    if (piece->ll_sources != 0)
        here = bytes <= RONDO_CUDA_WARP * 8 ? __all_sync(RONDO_CUDA_WHOLE_WARP, here) : rondo_cuda_all_agree(here, threads);
    if (here && mine > 0)
        rondo_cuda_small_deliver(piece, offset, mine, loaded);
    return here;
}

enum rondo_cuda_way { RONDO_CUDA_SMALL, RONDO_CUDA_IN_ROWS, RONDO_CUDA_IN_LINES, RONDO_CUDA_ANY_WAY };

/* How a usual piece is carried out. Its LL slots need not be known. all_lines: a constant; all pieces with flags are lines. */
RONDO_CUDA_INLINE enum rondo_cuda_way rondo_cuda_way_of(const struct rondo_piece *piece, int all_lines, uint32_t threads)
{
    const uint64_t bytes = piece->count * piece->element_bytes;
    if (all_lines || piece->lines)
        return rondo_cuda_fits_lines(piece) ? RONDO_CUDA_IN_LINES : RONDO_CUDA_ANY_WAY;
    return bytes <= threads * 8                   ? RONDO_CUDA_SMALL
           : rondo_cuda_fits_rows(piece, threads) ? RONDO_CUDA_IN_ROWS
                                                  : RONDO_CUDA_ANY_WAY;
}

/* Asks for the thread's part of this rank's own data. */
RONDO_CUDA_INLINE void rondo_cuda_ask(const struct rondo_piece *piece, enum rondo_cuda_way way, uint32_t thread,
                                      uint32_t threads, struct rondo_cuda_own *own)
{
    const uint32_t source = rondo_cuda_own_source(piece);
    if (source >= piece->sources || way == RONDO_CUDA_IN_LINES || way == RONDO_CUDA_ANY_WAY)
        return;
    if (way == RONDO_CUDA_IN_ROWS) {
        const struct rondo_cuda_rows rows = rondo_cuda_rows_of(piece, thread, threads);
        rondo_cuda_read_rows(&rows, piece->source[source], own->packets);
    } else {
        const uint32_t mine = rondo_cuda_small_bytes(piece->count * piece->element_bytes, thread * 8);
        if (mine > 0)
            own->packets[0] = rondo_cuda_load_half(piece->source[source] + thread * 8, mine);
    }
}

/* progress: the warps', of the piece as far as it has been carried out; 0 of a new one. */
RONDO_CUDA_INLINE int rondo_cuda_work_usual(const struct rondo_piece *piece, enum rondo_cuda_way way, int all_lines,
                                            uint32_t thread, uint32_t threads, uint64_t polls, const struct rondo_cuda_own *own,
                                            uint8_t *progress)
{
    if (all_lines && way == RONDO_CUDA_IN_LINES)
        return rondo_cuda_carry_out_lines(piece, thread, threads, polls, progress);
    if (all_lines)
        return rondo_cuda_work(piece, thread, threads, polls);
    if (way == RONDO_CUDA_SMALL)
        return rondo_cuda_carry_out_small(piece, thread, threads, polls, own);
    if (way == RONDO_CUDA_IN_ROWS)
        return rondo_cuda_carry_out_rows(piece, thread, threads, polls, own);
    if (way == RONDO_CUDA_IN_LINES)
        return rondo_cuda_call_lines(piece, thread, threads, polls, progress);
    return rondo_cuda_work(piece, thread, threads, polls);
}

#endif
