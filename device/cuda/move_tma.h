/*
 * move_tma: executes a part of an operation on a stream by bulk copies (PTX cp.async.bulk, from sm_90 on). Data flow through
 * cells in shared memory, slice operation by slice operation in the order of the engine. The loader, one thread, plans the
 * slice operations and loads their sources as soon as these are there and cells are free; the reducers, several warps, reduce
 * them where they lie; the storer, one thread, stores the results to the peers' slots and to this rank's buffers; the leader
 * publishes. The lanes of one warp poll what the peers publish, an end a lane. No thread touches data that are only copied,
 * and few blocks fill a link.
 * The number of a thread's instructions limits a block's rate: at 45 GB/s a slice operation takes 700 cycles, dependent
 * instructions take 5 each, an access to shared memory 30. So the loader, which has time, computes positions and addresses, in
 * registers where possible.
 * Order. Data arrive and leave by the async proxy. The completion of a store makes it visible to the storer (bulk groups),
 * which notes the finished slice operations (release); the leader reads that (acquire), fences, and publishes: causality order
 * is transitive. A peer's polling thread acquires the published word and notes it (release), its loader reads that (acquire),
 * and a proxy fence orders the bulk loads after it. A slot is given back when its slice operation is finished, for which all
 * its loads must have completed. A cell is loaded again when the store that read it has done so, which the storer says by
 * freed.
 * Why no thread waits forever: loading, reducing and storing each keep the engine's order, and slice operations are published
 * in that order, for which verification has shown that it ends; before the storer waits for anything, it finishes the stores
 * it has begun (rondo_tma_idle).
 */
#ifndef RONDO_DEVICE_CUDA_MOVE_TMA_H
#define RONDO_DEVICE_CUDA_MOVE_TMA_H

#if !defined(__CUDACC__)
#error "__device__ code: nvcc alone compiles it"
#endif

#include "device/abi/cuda_block.h"
#include "device/abi/platform.h"
#include "device/cuda/tma_memory.h"
#include "device/cuda/tma_order.h"
#include "device/engine/run.h"
#include "device/engine/use.h"
#include "device/engine/warp_interpreter.h"
#include "device/engine/workers_cuda.h"
#include "device/move/cuda_barrier.h"
#include "device/move/move_ll.h"

/* ---- the polling threads ---- */

/* Polls what the peers publish, a lane for each end, until the part is finished. Acquire pairs with the peers' publishing of
 * slots that they have filled, or read and given back. */
RONDO_FUNCTION void rondo_tma_poll(struct rondo_workers *workers, const struct rondo_tma *tma, uint32_t lane)
{
    const int has_end = lane < workers->part.end_count;
    struct rondo_end *end = &workers->ends[has_end ? lane : 0];
    const uint64_t *watched = end->watched;
    uint64_t seen = end->seen;
    while ((rondo_tma_look(&tma->finished) | rondo_tma_look(&tma->stop)) == 0) {
        const uint64_t now = has_end ? rondo_load_acquire(watched) : seen;
        if (now != seen)
            asm volatile("st.release.cta.shared.u64 [%0], %1;" ::"r"(rondo_shared_address(&end->seen)), "l"(now) : "memory");
        seen = now;
        __syncwarp();
    }
}

/* ---- the loader ---- */

/* How far the loader is, besides its cursor. */
struct rondo_tma_loads {
    uint32_t copies, reduces; /* number of slice operations of one source, and of several */
    uint32_t cells, cell;     /* number of cells given, and the next cell */
    uint32_t known_end;       /* the peer's word of this end has been read, and fenced for */
    uint64_t known;
};

/* Waits until the word has reached least. Returns 0 if the threads have to end. */
RONDO_FUNCTION int rondo_tma_await_word(const struct rondo_tma *tma, const uint32_t *word, uint32_t least)
{
    while ((int32_t) (rondo_tma_look(word) - least) < 0)
        if (rondo_tma_look(&tma->stop) != 0)
            return 0;
    return 1;
}

/* Waits until the peer has filled the slot, and orders the bulk load after that. Returns 0 if the threads have to end. */
RONDO_FUNCTION int rondo_tma_await_slot(const struct rondo_workers *workers, const struct rondo_tma *tma, uint32_t e,
                                        uint64_t position, struct rondo_tma_loads *loads)
{
    if (loads->known_end == e && loads->known > position)
        return 1;
    loads->known_end = e;
    while ((loads->known = rondo_tma_seen(&workers->ends[e])) <= position)
        if (rondo_tma_look(&tma->stop) != 0)
            return 0;
    rondo_tma_fence();
    return 1;
}

/* Writes the plan of a slice operation and announces it to the storer and the reducers. */
RONDO_FUNCTION void rondo_tma_plan(const struct rondo_workers *workers, struct rondo_tma *tma,
                                   const struct rondo_tma_cursor *at, const struct rondo_tma_loads *loads, uint32_t bytes)
{
    const struct rondo_warp_step *step = &at->step;
    struct rondo_tma_slice_op *slice_op = &tma->slice_ops[at->slice_ops % RONDO_TMA_RING];
    slice_op->bytes = bytes;
    slice_op->cells = loads->cells + step->sources;
    slice_op->cell = (uint8_t) loads->cell;
    slice_op->reduces = step->sources > 1;
    slice_op->waits = tma->waits[at->instruction];
    slice_op->send_first = step->send_first;
    slice_op->sent = step->sent;
    slice_op->local = step->local != NULL ? step->local + at->start : NULL;
    for (uint32_t r = 0; r < step->sent; r++) {
        const struct rondo_end *end = &workers->ends[step->send_first + r];
        const uint64_t position = end->position + tma->moved[step->send_first + r]++;
        slice_op->remote[r] = rondo_slot_at(end, position);
        slice_op->needed[r] = position + 1 > end->slot_count ? position + 1 - end->slot_count : 0;
    }
    if (step->sources > 1) {
        const struct rondo_tma_reduce reduce = {bytes, (uint8_t) loads->cell, step->sources, step->finishes};
        tma->reduces[loads->reduces % RONDO_TMA_RING] = reduce;
    }
    rondo_tma_say(&tma->planned, at->slice_ops + 1);
}

/* Loads the slice operation's sources to their cells. Returns 0 if the threads have to end: then the content of a slot does
 * not matter any more, but all bytes that were announced to the barrier will come. */
RONDO_FUNCTION int rondo_tma_load_slice_op(const struct rondo_workers *workers, struct rondo_tma *tma, char *cells,
                                           const struct rondo_tma_cursor *at, struct rondo_tma_loads *loads, uint32_t bytes)
{
    const struct rondo_warp_step *step = &at->step;
    uint64_t *barrier =
        step->sources > 1 ? &tma->gathered[loads->reduces % RONDO_TMA_RING] : &tma->landed[loads->copies % RONDO_TMA_RING];
    int goes_on = 1;
    rondo_tma_expect(barrier, bytes * step->sources);
    if (step->has_own)
        rondo_tma_copy_in(cells + rondo_tma_after(loads->cell, step->own_place) * RONDO_TMA_BYTES, step->own + at->start, bytes,
                          barrier);
    if (step->received == 0 && step->sources == 2)
        rondo_tma_copy_in(cells + rondo_tma_after(loads->cell, 1) * RONDO_TMA_BYTES, step->local + at->start, bytes, barrier);
    for (uint32_t i = 0; i < step->received; i++) {
        const uint32_t e = step->receive_first + i, place = step->has_own && i >= step->own_place ? i + 1 : i;
        const struct rondo_end *end = &workers->ends[e];
        const uint64_t position = end->position + tma->moved[e]++;
        goes_on = goes_on && rondo_tma_await_slot(workers, tma, e, position, loads);
        rondo_tma_copy_in(cells + rondo_tma_after(loads->cell, place) * RONDO_TMA_BYTES, rondo_slot_at(end, position), bytes,
                          barrier);
    }
    loads->reduces += step->sources > 1;
    loads->copies += step->sources == 1;
    loads->cells += step->sources;
    loads->cell = rondo_tma_after(loads->cell, step->sources);
    return goes_on;
}

/* Announces that there are no more slice operations. */
RONDO_FUNCTION void rondo_tma_end(struct rondo_tma *tma, const struct rondo_tma_cursor *at, const struct rondo_tma_loads *loads)
{
    tma->slice_ops[at->slice_ops % RONDO_TMA_RING].bytes = 0;
    tma->reduces[loads->reduces % RONDO_TMA_RING].bytes = 0;
    rondo_tma_say(&tma->planned, at->slice_ops + 1);
    rondo_tma_expect(&tma->gathered[loads->reduces % RONDO_TMA_RING], 0);
}

/* The loader: one thread. */
RONDO_FUNCTION void rondo_tma_load(struct rondo_workers *workers, struct rondo_tma *tma, char *cells)
{
    struct rondo_tma_cursor at = rondo_tma_begin(workers);
    struct rondo_tma_loads loads = {0, 0, 0, 0, RONDO_WARP_ENDS, 0};
    int goes_on = 1;
    rondo_tma_fence(); /* other kernels wrote what the stream held before this one */
    for (uint32_t bytes; goes_on && (bytes = rondo_tma_next(workers, &at)) != 0; rondo_tma_pass(workers, &at)) {
        if (!rondo_tma_await_word(tma, &tma->freed, loads.cells + at.step.sources - RONDO_TMA_CELLS))
            break;
        if (tma->waits[at.instruction]) {
            if (!rondo_tma_await_word(tma, &tma->stored, at.slice_ops))
                break;
            rondo_tma_fence();
        }
        rondo_tma_plan(workers, tma, &at, &loads, bytes);
        goes_on = rondo_tma_load_slice_op(workers, tma, cells, &at, &loads, bytes);
    }
    rondo_tma_end(tma, &at, &loads);
    /* Nothing may arrive in cells when the block has ended. */
    for (uint32_t p = loads.copies > RONDO_TMA_RING ? loads.copies - RONDO_TMA_RING : 0; p < loads.copies; p++)
        while (!rondo_tma_is_over(tma->landed, p, 1))
            ;
    for (uint32_t p = loads.reduces + 1 > RONDO_TMA_RING ? loads.reduces + 1 - RONDO_TMA_RING : 0; p <= loads.reduces; p++)
        while (!rondo_tma_is_over(tma->gathered, p, 1))
            ;
}

/* ---- the reducers ---- */

/* Reduces this thread's vectors into the first cell. */
RONDO_FUNCTION void rondo_tma_reduce_slice_op(const struct rondo_workers *workers, char *cells,
                                              const struct rondo_tma_reduce *reduce, uint32_t thread)
{
    enum { TOGETHER = 4, STRIDE = RONDO_TMA_REDUCERS * 16 };
    const int type = workers->operation.type;
    char *result = cells + reduce->cell * RONDO_TMA_BYTES;
#pragma unroll 1
    for (uint32_t first = thread * 16; first < reduce->bytes; first += TOGETHER * STRIDE) {
        struct rondo_cuda_wide sum[TOGETHER];
        struct rondo_cuda_vector loaded[TOGETHER] = {};
#pragma unroll 1
        for (uint32_t s = 0; s < reduce->sources; s++) {
            const char *source = cells + rondo_tma_after(reduce->cell, s) * RONDO_TMA_BYTES + first;
#pragma unroll
            for (uint32_t k = 0; k < TOGETHER; k++)
                if (first + k * STRIDE < reduce->bytes)
                    *(uint4 *) &loaded[k] = *(const uint4 *) (source + k * STRIDE);
            if (s == 0)
                rondo_cuda_reduce_held(type, TOGETHER, 4, 1, sum, loaded);
            else
                rondo_cuda_reduce_held(type, TOGETHER, 4, 0, sum, loaded);
        }
        rondo_cuda_finish_held(type, TOGETHER, 4, reduce->finishes ? workers->operation.average : 0, sum, loaded);
#pragma unroll
        for (uint32_t k = 0; k < TOGETHER; k++)
            if (first + k * STRIDE < reduce->bytes)
                *(uint4 *) (result + first + k * STRIDE) = *(const uint4 *) &loaded[k];
    }
}

/* Whether some slice operation of the part has several sources. */
RONDO_FUNCTION int rondo_tma_reduces(const struct rondo_workers *workers)
{
    int reduces = 0;
    for (uint32_t i = 0; i < workers->part.instruction_count; i++)
        reduces |= workers->interpreter.steps[i].sources > 1;
    return reduces;
}

/* The reducers: RONDO_TMA_REDUCERS threads, numbered from 0. */
RONDO_FUNCTION void rondo_tma_reduce(const struct rondo_workers *workers, struct rondo_tma *tma, char *cells, uint32_t thread)
{
    if (!rondo_tma_reduces(workers)) /* polling a barrier in vain would slow down the other threads */
        return;
    for (uint32_t f = 0;; f++) {
        while (!rondo_tma_is_over(tma->gathered, f, 1))
            if (rondo_tma_look(&tma->stop) != 0)
                return;
        const struct rondo_tma_reduce reduce = tma->reduces[f % RONDO_TMA_RING];
        if (reduce.bytes == 0)
            return;
        rondo_tma_reduce_slice_op(workers, cells, &reduce, thread);
        rondo_tma_fence_cells(); /* before the storer's bulk copies */
        rondo_barrier_arrive(&tma->reduced[f % RONDO_TMA_RING]);
    }
}

/* ---- the storer ---- */

struct rondo_tma_stores {
    uint32_t begun; /* number of groups, one for each slice operation */
    uint32_t open;  /* number of groups that may be unfinished */
    uint32_t cells; /* number of cells of all groups begun */
    uint32_t copies, reduces;
    uint32_t known_end; /* as in struct rondo_tma_loads */
    uint64_t known;
};

/* Waits until at most left groups are unfinished, and notes that the others are finished and their cells free. */
RONDO_FUNCTION void rondo_tma_retire(struct rondo_tma *tma, struct rondo_tma_stores *stores, uint32_t left)
{
    rondo_tma_await(left);
    stores->open = left;
    rondo_tma_say(&tma->stored, stores->begun - left);
    if (left == 0)
        rondo_tma_say(&tma->freed, stores->cells);
}

/* To be called while the storer waits: finishes one store more. Returns 0 if the threads have to end. */
RONDO_FUNCTION int rondo_tma_idle(struct rondo_tma *tma, struct rondo_tma_stores *stores)
{
    if (stores->open > 0)
        rondo_tma_retire(tma, stores, stores->open - 1);
    if (rondo_tma_look(&tma->stop) == 0)
        return 1;
    rondo_tma_await(0); /* nothing may read cells when the block has ended */
    return 0;
}

/* Waits until the slice operation's result is in its cell. Returns 0 if the threads have to end. */
RONDO_FUNCTION int rondo_tma_await_result(struct rondo_tma *tma, struct rondo_tma_stores *stores,
                                          const struct rondo_tma_slice_op *slice_op)
{
    const uint64_t *barriers = slice_op->reduces ? tma->reduced : tma->landed;
    const uint32_t index = slice_op->reduces ? stores->reduces++ : stores->copies++;
    while (!rondo_tma_is_over(barriers, index, slice_op->reduces ? RONDO_TMA_REDUCERS : 1))
        if (!rondo_tma_idle(tma, stores))
            return 0;
    return 1;
}

/* Waits until the receiver has read what was in the slot, and orders the bulk store after that. Returns 0 if the threads
 * have to end. */
RONDO_FUNCTION int rondo_tma_await_room(const struct rondo_workers *workers, struct rondo_tma *tma,
                                        struct rondo_tma_stores *stores, uint32_t e, uint64_t needed)
{
    if (stores->known_end == e && stores->known >= needed)
        return 1;
    stores->known_end = e;
    while ((stores->known = rondo_tma_seen(&workers->ends[e])) < needed)
        if (!rondo_tma_idle(tma, stores))
            return 0;
    rondo_tma_fence();
    return 1;
}

/* Stores a planned slice operation's result to all its destinations. Returns 0 if the threads have to end. */
RONDO_FUNCTION int rondo_tma_store_slice_op(const struct rondo_workers *workers, struct rondo_tma *tma, const char *cells,
                                            const struct rondo_tma_slice_op *slice_op, struct rondo_tma_stores *stores)
{
    const uint32_t bytes = slice_op->bytes, sent = slice_op->sent, before = stores->cells;
    const char *cell = cells + slice_op->cell * RONDO_TMA_BYTES;
    char *local = slice_op->local;
    if (!rondo_tma_await_result(tma, stores, slice_op))
        return 0;
    if (slice_op->waits)
        rondo_tma_retire(tma, stores, 0);
    for (uint32_t r = 0; r < sent; r++) {
        if (!rondo_tma_await_room(workers, tma, stores, slice_op->send_first + r, slice_op->needed[r]))
            return 0;
        rondo_tma_copy_out(slice_op->remote[r], cell, bytes);
    }
    if (local != NULL)
        rondo_tma_copy_out(local, cell, bytes);
    rondo_tma_close_group();
    stores->begun++;
    stores->open++;
    stores->cells = slice_op->cells;
    rondo_tma_await_reads();
    rondo_tma_say(&tma->freed, before);
    if (stores->open > RONDO_TMA_DEEP)
        rondo_tma_retire(tma, stores, RONDO_TMA_DEEP);
    return 1;
}

/* The storer: one thread. */
RONDO_FUNCTION void rondo_tma_store(const struct rondo_workers *workers, struct rondo_tma *tma, const char *cells)
{
    struct rondo_tma_stores stores = {0, 0, 0, 0, 0, RONDO_WARP_ENDS, 0};
    for (;;) {
        const struct rondo_tma_slice_op *slice_op = &tma->slice_ops[stores.begun % RONDO_TMA_RING];
        while (rondo_tma_look(&tma->planned) == stores.begun)
            if (!rondo_tma_idle(tma, &stores))
                return;
        if (slice_op->bytes == 0)
            break;
        if (!rondo_tma_store_slice_op(workers, tma, cells, slice_op, &stores))
            return;
    }
    rondo_tma_retire(tma, &stores, 0);
    rondo_tma_say(&tma->finished, 1);
}

/* ---- the leader ---- */

/* Publishes the finished slice operations: the slots that were filled, and those that were taken. */
RONDO_FUNCTION void rondo_tma_tell(const struct rondo_workers *workers, struct rondo_tma *tma, struct rondo_tma_cursor *at,
                                   uint32_t stored, uint64_t *sent)
{
    rondo_publish_begin();
    for (uint32_t bytes; at->slice_ops != stored && (bytes = rondo_tma_next(workers, at)) != 0; rondo_tma_pass(workers, at)) {
        const struct rondo_warp_step *step = &at->step;
        for (uint32_t i = 0; i < (uint32_t) step->sent + step->received; i++) {
            const uint32_t e = i < step->sent ? step->send_first + i : step->receive_first + i - step->sent;
            rondo_publish_word(workers->ends[e].published, workers->ends[e].position + ++tma->told[e]);
        }
        *sent += (uint64_t) bytes * step->sent;
    }
}

/* The rank for which the first unfinished slice operation seems to wait: 1 + its number in the world; 0: none. */
RONDO_FUNCTION int32_t rondo_tma_missing(const struct rondo_workers *workers, const struct rondo_tma *tma,
                                         const struct rondo_tma_cursor *at)
{
    const struct rondo_warp_step *step = &at->step;
    for (uint32_t e = step->receive_first; e < step->receive_first + step->received; e++)
        if (rondo_load_relaxed(workers->ends[e].watched) <= workers->ends[e].position + tma->told[e])
            return workers->ends[e].peer + 1;
    return step->received + step->sent == 0 ? 0
                                            : workers->ends[step->sent > 0 ? step->send_first : step->receive_first].peer + 1;
}

/* ---- before and after ---- */

RONDO_FUNCTION int rondo_tma_overlap(const char *one, const char *other, uint64_t bytes, uint64_t other_bytes)
{
    return one != NULL && other != NULL && one < other + other_bytes && other < one + bytes;
}

/* Whether an earlier instruction stores to what this one loads or stores in this rank's buffers. */
RONDO_FUNCTION int rondo_tma_waits(const struct rondo_workers *workers, uint32_t index)
{
    const struct rondo_warp_step *step = &workers->interpreter.steps[index];
    int waits = 0;
    for (uint32_t i = 0; i < index; i++) {
        const struct rondo_warp_step *before = &workers->interpreter.steps[i];
        waits |= (step->has_own && rondo_tma_overlap(step->own, before->local, step->bytes, before->bytes)) ||
                 rondo_tma_overlap(step->local, before->local, step->bytes, before->bytes);
    }
    return waits;
}

/* Initializes the block. To be called by all threads when operation, part and instructions are in shared memory, in two
 * halves with a barrier between them and one after. */
RONDO_FUNCTION void rondo_tma_decode(struct rondo_workers *workers, struct rondo_tma *tma, uint32_t thread, uint32_t threads)
{
    for (uint32_t i = thread / RONDO_CUDA_WARP; i < workers->part.instruction_count; i += threads / RONDO_CUDA_WARP)
        if (thread % RONDO_CUDA_WARP == 0)
            rondo_warp_decode(workers, i);
    if (thread < RONDO_TMA_RING) {
        rondo_barrier_begin(&tma->landed[thread], 1);
        rondo_barrier_begin(&tma->gathered[thread], 1);
        rondo_barrier_begin(&tma->reduced[thread], RONDO_TMA_REDUCERS);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    if (thread < RONDO_WARP_ENDS)
        tma->moved[thread] = tma->told[thread] = 0;
    if (thread == 0)
        tma->planned = tma->freed = tma->stored = tma->finished = tma->stop = 0;
}
RONDO_FUNCTION void rondo_tma_look_for_waits(const struct rondo_workers *workers, struct rondo_tma *tma, uint32_t thread)
{
    if (thread < workers->part.instruction_count)
        tma->waits[thread] = (uint8_t) rondo_tma_waits(workers, thread);
}

/* Reads the ends' positions when it is the operation's turn (arrive), and writes them back when the part is finished
 * (leave). Each end by its thread. */
RONDO_FUNCTION void rondo_tma_arrive(struct rondo_workers *workers, uint32_t thread)
{
    if (thread < workers->part.end_count)
        *(uint4 *) &workers->ends[thread].position =
            rondo_load_late((const uint4 *) &rondo_part_end(&workers->part, thread)->position);
}
RONDO_FUNCTION void rondo_tma_leave(const struct rondo_workers *workers, const struct rondo_tma *tma, uint32_t thread)
{
    if (thread < workers->part.end_count && tma->finished) {
        struct rondo_end *home = rondo_part_end(&workers->part, thread);
        home->position = workers->ends[thread].position + tma->moved[thread];
        home->seen = workers->ends[thread].seen;
    }
}

#endif
