/*
 * A part of an operation on a stream whose slice operations are moved by bulk copies (PTX cp.async.bulk, from sm_90 on): its
 * data flow through cells in shared memory, slice operation by slice operation in the order of the engine. The loader, one
 * thread, plans the slice operations and loads what each is made of as soon as that is there and cells are free; warps reduce
 * it where it lies; the storer, one thread, stores the result to the peers' slots and to this rank's buffers; the leader tells
 * the peers. A warp of polling threads looks at what the peers tell, an end a lane. No thread touches data that are only
 * copied, and few blocks fill a link.
 *
 * A thread's instructions are what a block's rate hangs on: at 45 GB/s a slice operation takes 700 cycles, and one instruction
 * after the other takes 5, an access to shared memory 30. So positions and addresses are the loader's, who has time, and in
 * registers where they can be.
 *
 * Order. Data arrive and leave by the async proxy. A store's completion makes it visible to the storer (bulk groups), which
 * notes the slice operations that are over (release); the leader takes note (acquire), fences, and tells the peers: causality
 * order is transitive. A peer's polling thread acquires the word and notes it (release), its loader takes note (acquire), and a
 * proxy fence orders the bulk loads after that. Slots are given back, too, when the slice operation is over, for which all its
 * loads had to land. A cell is loaded anew when the store that read it has done so, as the storer says by freed.
 *
 * Why nobody waits for ever: loading, reducing and storing each keep to the engine's order, and the peers are told of each
 * slice operation as the engine tells them, whose order has been checked to come to its end; before the storer waits for
 * anything, what it has begun is seen to its end (rondo_tma_idle).
 */
#ifndef RONDO_DEVICE_CUDA_MOVE_TMA_H
#define RONDO_DEVICE_CUDA_MOVE_TMA_H

#if !defined(__CUDACC__)
#error "__device__ code: nvcc alone compiles it"
#endif

#include "device/abi/cuda_block.h"
#include "device/abi/platform.h"
#include "device/engine/run.h"
#include "device/engine/use.h"
#include "device/engine/warp_interpreter.h"
#include "device/engine/workers_cuda.h"
#include "device/move/cuda_barrier.h"
#include "device/move/move_ll.h"

#define RONDO_TMA_REDUCERS (RONDO_TMA_THREADS - 3 * RONDO_CUDA_WARP - RONDO_CUDA_CONTROL) /* threads */
#define RONDO_TMA_RING     16   /* places of slice operations that are planned and not over: more than there can be */
#define RONDO_TMA_DEEP     8    /* slice operations whose stores are under way */
#define RONDO_TMA_PATIENCE 8192 /* the leader's looks at slice operations that do not come on: about a millisecond */

static_assert(RONDO_TMA_RING > RONDO_TMA_CELLS, "each piece has a cell, and the last place says that there are no more");
static_assert(RONDO_TMA_CELLS >= RONDO_WARP_WIDTH, "the sources of a piece have cells");

/* What the storer does. */
struct rondo_tma_slice_op {
    uint32_t bytes;  /* 0: there are no more */
    uint32_t cells;  /* given to the slice operations up to this one, in all */
    uint8_t cell;    /* where the result is */
    uint8_t reduces; /* it has to be reduced first */
    uint8_t waits;   /* for all stores before */
    uint8_t send_first, sent;
    char *local;                       /* NULL: nowhere here */
    char *remote[RONDO_WARP_WIDTH];    /* slots, */
    uint64_t needed[RONDO_WARP_WIDTH]; /* which are free when so many have been given back */
} __attribute__((aligned(16)));

/* What those who reduce do. */
struct rondo_tma_reduce {
    uint32_t bytes; /* 0: there are no more */
    uint8_t cell;   /* of the first source; the others' come next */
    uint8_t sources, finishes;
};

/* In shared memory, beside the worker group. */
struct rondo_tma {
    uint64_t landed[RONDO_TMA_RING];   /* barriers: of slice operations of one source, the next one each: it is there */
    uint64_t gathered[RONDO_TMA_RING]; /* of those of several: all are, as the loader announces, who alone arrives at these, */
    uint64_t reduced[RONDO_TMA_RING];  /* and the result is, as all who reduce say */
    struct rondo_tma_slice_op slice_ops[RONDO_TMA_RING];
    struct rondo_tma_reduce reduces[RONDO_TMA_RING];
    uint32_t planned;                       /* slice operations; the loader's */
    uint32_t freed;                         /* cells, in all; the storer's */
    uint32_t stored;                        /* slice operations whose stores are over; the storer's */
    uint32_t finished;                      /* all are; the storer's */
    uint32_t stop;                          /* all shall leave off; the leader's */
    uint8_t waits[RONDO_WARP_INSTRUCTIONS]; /* an instruction before stores what this one loads or stores here */
    uint32_t moved[RONDO_WARP_ENDS];        /* slots of each end that are planned with; the loader's */
    uint32_t told[RONDO_WARP_ENDS];         /* of which the peer knows; the leader's */
};

/* ---- shared memory ---- */

RONDO_FUNCTION uint32_t rondo_tma_look(const uint32_t *word)
{
    uint32_t value;
    asm volatile("ld.acquire.cta.shared.u32 %0, [%1];" : "=r"(value) : "r"(rondo_shared_address(word)) : "memory");
    return value;
}

RONDO_FUNCTION void rondo_tma_say(uint32_t *word, uint32_t value)
{
    asm volatile("st.release.cta.shared.u32 [%0], %1;" ::"r"(rondo_shared_address(word)), "r"(value) : "memory");
}

/* What an end's peer has told. */
RONDO_FUNCTION uint64_t rondo_tma_seen(const struct rondo_end *end)
{
    uint64_t value;
    asm volatile("ld.acquire.cta.shared.u64 %0, [%1];" : "=l"(value) : "r"(rondo_shared_address(&end->seen)) : "memory");
    return value;
}

/* Whether the index-th use of barriers that are used in turn is over. A barrier tells a phase from the next one only, so
 * whoever asks has waited for all before. */
RONDO_FUNCTION int rondo_tma_is_over(const uint64_t *barriers, uint32_t index, uint32_t arrivals)
{
    return rondo_barrier_is_over(&barriers[index % RONDO_TMA_RING], index / RONDO_TMA_RING, arrivals);
}

RONDO_FUNCTION void rondo_tma_expect(uint64_t *barrier, uint32_t bytes)
{
    asm volatile(
        "{ .reg .b64 state; mbarrier.arrive.expect_tx.shared.b64 state, [%0], %1; }" ::"r"(rondo_shared_address(barrier)),
        "r"(bytes)
        : "memory");
}

/* ---- bulk copies, of multiples of 16 bytes ---- */

RONDO_FUNCTION void rondo_tma_copy_in(char *cell, const char *from, uint32_t bytes, uint64_t *barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     rondo_shared_address(cell)),
                 "l"(from), "r"(bytes), "r"(rondo_shared_address(barrier))
                 : "memory");
}

RONDO_FUNCTION void rondo_tma_copy_out(char *to, const char *cell, uint32_t bytes)
{
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(rondo_shared_address(cell)),
                 "r"(bytes)
                 : "memory");
}

RONDO_FUNCTION void rondo_tma_close_group(void)
{
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

/* Of the groups but the last one, all cells have been read. */
RONDO_FUNCTION void rondo_tma_await_reads(void)
{
    asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
}

/* All groups but the last so many (at most RONDO_TMA_DEEP) are over. */
RONDO_FUNCTION void rondo_tma_await(uint32_t left)
{
#define RONDO_TMA_AWAIT(count)                                                                                                 \
    case count:                                                                                                                \
        asm volatile("cp.async.bulk.wait_group %0;" ::"n"(count) : "memory");                                                  \
        break;
    switch (left) {
        RONDO_TMA_AWAIT(0)
        RONDO_TMA_AWAIT(1)
        RONDO_TMA_AWAIT(2)
        RONDO_TMA_AWAIT(3)
        RONDO_TMA_AWAIT(4)
        RONDO_TMA_AWAIT(5)
        RONDO_TMA_AWAIT(6)
        RONDO_TMA_AWAIT(7)
        RONDO_TMA_AWAIT(RONDO_TMA_DEEP)
    }
#undef RONDO_TMA_AWAIT
}
static_assert(RONDO_TMA_DEEP == 8, "as many cases as groups");

/* Between what was learnt of global memory, or stored to cells, and bulk copies. */
RONDO_FUNCTION void rondo_tma_fence(void)
{
    asm volatile("fence.proxy.async.global;" ::: "memory");
}
RONDO_FUNCTION void rondo_tma_fence_cells(void)
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* ---- the order of the slice operations ---- */

/* The engine's, but that a last instruction that only receives takes turns with the next tile's first one that only sends,
 * slice by slice: all blocks come there at about the same time, and the links would be idle. No peer can tell, for on every
 * connector the order is the same; and as what is received late is a tile's slices at most, nobody waits for ever who would not
 * with so many slots fewer, which the check allows for (RONDO_TMA_SLOTS). */
struct rondo_tma_cursor {
    uint64_t tile_bytes, slice_bytes, end; /* bytes of a chunk */
    uint64_t tile, start, limit; /* before the tile, before the slice operation, and before what the instruction leaves out */
    uint64_t other;              /* start of the instruction that this one takes turns with */
    struct rondo_warp_step step; /* the instruction */
    uint32_t instruction, instructions;
    uint32_t slice_ops;   /* before this one */
    uint32_t weaves;      /* such instructions there are, */
    uint32_t turns, over; /* and take turns now; the next tile's first one is over */
};

RONDO_FUNCTION void rondo_tma_take(const struct rondo_workers *workers, struct rondo_tma_cursor *at, uint64_t start)
{
    at->step = workers->interpreter.steps[at->instruction];
    at->start = start;
    at->limit = at->step.bytes < at->tile + at->tile_bytes ? at->step.bytes : at->tile + at->tile_bytes;
}

RONDO_FUNCTION struct rondo_tma_cursor rondo_tma_begin(const struct rondo_workers *workers)
{
    const struct rondo_operation *operation = &workers->operation;
    struct rondo_tma_cursor at = {};
    at.tile_bytes = operation->tile * operation->element_bytes;
    at.slice_bytes = operation->slice * operation->element_bytes;
    at.end = operation->tiles * at.tile_bytes;
    at.instructions = workers->part.instruction_count;
    at.weaves = at.instructions > 1 && workers->interpreter.steps[at.instructions - 1].sent == 0 &&
                workers->interpreter.steps[0].received == 0;
    rondo_tma_take(workers, &at, 0);
    return at;
}

RONDO_FUNCTION void rondo_tma_change(const struct rondo_workers *workers, struct rondo_tma_cursor *at)
{
    const uint64_t start = at->other;
    at->other = at->start;
    at->tile = at->instruction == 0 ? at->tile - at->tile_bytes : at->tile + at->tile_bytes;
    at->instruction = at->instruction == 0 ? at->instructions - 1 : 0;
    rondo_tma_take(workers, at, start);
}

/* 0: there are no more. */
RONDO_FUNCTION int rondo_tma_advance(const struct rondo_workers *workers, struct rondo_tma_cursor *at)
{
    if (at->turns) { /* the rest of the other one */
        at->turns = 0;
        at->over = at->instruction == 0;
        rondo_tma_change(workers, at);
        return 1;
    }
    if (++at->instruction == at->instructions) {
        at->instruction = at->over;
        at->over = 0;
        at->tile += at->tile_bytes;
    }
    if (at->tile >= at->end)
        return 0;
    rondo_tma_take(workers, at, at->tile);
    at->turns = at->weaves && at->instruction + 1 == at->instructions && at->tile + at->tile_bytes < at->end;
    at->other = at->tile + at->tile_bytes;
    return 1;
}

/* Goes on to where there is something to move, and returns how many bytes; 0: that was all. */
RONDO_FUNCTION uint32_t rondo_tma_next(const struct rondo_workers *workers, struct rondo_tma_cursor *at)
{
    while (at->start >= at->limit)
        if (!rondo_tma_advance(workers, at))
            return 0;
    return (uint32_t) (at->limit - at->start < at->slice_bytes ? at->limit - at->start : at->slice_bytes);
}

RONDO_FUNCTION void rondo_tma_pass(const struct rondo_workers *workers, struct rondo_tma_cursor *at)
{
    at->start += at->slice_bytes;
    at->slice_ops++;
    if (at->turns)
        rondo_tma_change(workers, at);
}

/* Cells are used in turn. */
RONDO_FUNCTION uint32_t rondo_tma_after(uint32_t cell, uint32_t count)
{
    return cell + count < RONDO_TMA_CELLS ? cell + count : cell + count - RONDO_TMA_CELLS;
}

/* ---- the polling threads ---- */

/* Acquire pairs with the peers' telling of slots that they have filled, or read and given back. */
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

/* How far it is besides the cursor. */
struct rondo_tma_loads {
    uint32_t copies, reduces; /* slice operations of one source, and of several */
    uint32_t cells, cell;     /* given, in all, and the next one */
    uint32_t known_end;       /* of this end the peer's word has been seen, and fenced for: */
    uint64_t known;
};

/* 0: it shall stop. */
RONDO_FUNCTION int rondo_tma_await_word(const struct rondo_tma *tma, const uint32_t *word, uint32_t least)
{
    while ((int32_t) (rondo_tma_look(word) - least) < 0)
        if (rondo_tma_look(&tma->stop) != 0)
            return 0;
    return 1;
}

/* Until the peer has filled the slot; and the bulk load comes after. */
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

/* For the storer. It looks at it when the loader says that it is planned. */
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

/* The slice operation's sources, each to its cell. When it shall stop what a slot holds does not matter any more, but what has
 * been announced to the barrier comes. */
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

RONDO_FUNCTION void rondo_tma_end(struct rondo_tma *tma, const struct rondo_tma_cursor *at, const struct rondo_tma_loads *loads)
{
    tma->slice_ops[at->slice_ops % RONDO_TMA_RING].bytes = 0;
    tma->reduces[loads->reduces % RONDO_TMA_RING].bytes = 0;
    rondo_tma_say(&tma->planned, at->slice_ops + 1);
    rondo_tma_expect(&tma->gathered[loads->reduces % RONDO_TMA_RING], 0);
}

RONDO_FUNCTION void rondo_tma_load(struct rondo_workers *workers, struct rondo_tma *tma, char *cells)
{
    struct rondo_tma_cursor at = rondo_tma_begin(workers);
    struct rondo_tma_loads loads = {0, 0, 0, 0, RONDO_WARP_ENDS, 0};
    int goes_on = 1;
    rondo_tma_fence(); /* what the stream held before this kernel was written by others */
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
    /* Nothing may land in cells when the block is gone. */
    for (uint32_t p = loads.copies > RONDO_TMA_RING ? loads.copies - RONDO_TMA_RING : 0; p < loads.copies; p++)
        while (!rondo_tma_is_over(tma->landed, p, 1))
            ;
    for (uint32_t p = loads.reduces + 1 > RONDO_TMA_RING ? loads.reduces + 1 - RONDO_TMA_RING : 0; p <= loads.reduces; p++)
        while (!rondo_tma_is_over(tma->gathered, p, 1))
            ;
}

/* ---- those who reduce ---- */

/* The vectors of this thread, into the first cell. */
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

RONDO_FUNCTION int rondo_tma_reduces(const struct rondo_workers *workers)
{
    int reduces = 0;
    for (uint32_t i = 0; i < workers->part.instruction_count; i++)
        reduces |= workers->interpreter.steps[i].sources > 1;
    return reduces;
}

RONDO_FUNCTION void rondo_tma_reduce(const struct rondo_workers *workers, struct rondo_tma *tma, char *cells, uint32_t thread)
{
    if (!rondo_tma_reduces(workers)) /* to look at a barrier for nothing would keep others from theirs */
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
    uint32_t begun; /* groups, one a slice operation */
    uint32_t open;  /* of which so many may not be over */
    uint32_t cells; /* of those that are begun, in all */
    uint32_t copies, reduces;
    uint32_t known_end; /* as the loader's */
    uint64_t known;
};

/* Notes those that are over when no more than so many are left; all cells but theirs are free. */
RONDO_FUNCTION void rondo_tma_retire(struct rondo_tma *tma, struct rondo_tma_stores *stores, uint32_t left)
{
    rondo_tma_await(left);
    stores->open = left;
    rondo_tma_say(&tma->stored, stores->begun - left);
    if (left == 0)
        rondo_tma_say(&tma->freed, stores->cells);
}

/* Something that is waited for is not there: meanwhile one store more is seen to its end. 0: all shall stop. */
RONDO_FUNCTION int rondo_tma_idle(struct rondo_tma *tma, struct rondo_tma_stores *stores)
{
    if (stores->open > 0)
        rondo_tma_retire(tma, stores, stores->open - 1);
    if (rondo_tma_look(&tma->stop) == 0)
        return 1;
    rondo_tma_await(0); /* nothing may read cells when the block is gone */
    return 0;
}

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

/* Until the receiver has read what was in the slot; and the bulk store comes after. 0: all shall stop. */
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

/* 0: all shall stop. */
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

/* Peers are told of the slice operations that are over: of the slots filled, and of those taken, which go back. */
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

/* Whom the first slice operation that is not over seems to wait for: 1 + a rank in the world; 0: nobody. */
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

/* Whether an instruction before stores to what this one loads or stores in this rank's buffers. */
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

/* By all threads, when operation, part and instructions are there; in two halves with a barrier between and after. */
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

/* Where an end stands is brought here when it is the operation's turn, and noted when it is over. Each by its thread. */
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
