/*
 * A part of an operation on a stream whose pieces are moved by bulk copies (PTX cp.async.bulk, from sm_90 on): its data flow
 * through cells in shared memory, piece by piece in the order of the engine. The loader, one thread, plans the pieces and loads
 * what each is made of as soon as that is there and cells are free; warps fold it where it lies; the storer, one thread, stores
 * the result to the peers' slots and to this rank's buffers; the leader tells the peers. A warp of scouts looks at what the
 * peers tell, an end a lane. No thread touches data that are only copied, and few blocks fill a link.
 *
 * A thread's instructions are what a block's rate hangs on: at 45 GB/s a piece takes 700 cycles, and one instruction after the
 * other takes 5, an access to shared memory 30. So positions and addresses are the loader's, who has time, and in registers
 * where they can be.
 *
 * Order. Data arrive and leave by the async proxy. A store's completion makes it visible to the storer (bulk groups), which
 * notes the pieces that are over (release); the leader takes note (acquire), fences, and tells the peers: causality order is
 * transitive. A peer's scout acquires the word and notes it (release), its loader takes note (acquire), and a proxy fence
 * orders the bulk loads after that. Slots are given back, too, when the piece is over, for which all its loads had to land. A
 * cell is loaded anew when the store that read it has done so, as the storer says by freed.
 *
 * Why nobody waits for ever: loading, folding and storing each keep to the engine's order, and the peers are told of each piece
 * as the engine tells them, whose order has been checked to come to its end; before the storer waits for anything, what it has
 * begun is seen to its end (rondo_bulk_idle).
 */
#ifndef RONDO_DEVICE_CUDA_MOVE_TMA_H
#define RONDO_DEVICE_CUDA_MOVE_TMA_H

#include "device/move/cuda_barrier.h"
#include "device/cuda/kernels.h"
#include "device/engine/warp_interpreter.h"

#define RONDO_BULK_FOLDERS  (RONDO_BULK_THREADS - 3 * RONDO_CUDA_WARP - RONDO_CUDA_CONTROL) /* threads */
#define RONDO_BULK_RING     16   /* places of pieces that are planned and not over: more than there can be */
#define RONDO_BULK_DEEP     8    /* pieces whose stores are under way */
#define RONDO_BULK_PATIENCE 8192 /* the leader's looks at pieces that do not come on: about a millisecond */

static_assert(RONDO_BULK_RING > RONDO_BULK_CELLS, "each piece has a cell, and the last place says that there are no more");
static_assert(RONDO_BULK_CELLS >= RONDO_WALK_WIDTH, "the sources of a piece have cells");

/* What the storer does. */
struct rondo_bulk_piece {
    uint32_t bytes; /* 0: there are no more */
    uint32_t cells; /* given to the pieces up to this one, in all */
    uint8_t cell;   /* where the result is */
    uint8_t folds;  /* it has to be folded first */
    uint8_t waits;  /* for all stores before */
    uint8_t send_first, sent;
    char *local;                       /* NULL: nowhere here */
    char *remote[RONDO_WALK_WIDTH];    /* slots, */
    uint64_t needed[RONDO_WALK_WIDTH]; /* which are free when so many have been given back */
} __attribute__((aligned(16)));

/* What those who fold do. */
struct rondo_bulk_fold {
    uint32_t bytes; /* 0: there are no more */
    uint8_t cell;   /* of the first source; the others' come next */
    uint8_t sources, finishes;
};

/* In shared memory, beside the team. */
struct rondo_bulk {
    uint64_t landed[RONDO_BULK_RING];   /* barriers: of pieces of one source, the next one each: it is there */
    uint64_t gathered[RONDO_BULK_RING]; /* of those of several: all are, as the loader announces, who alone arrives at these, */
    uint64_t folded[RONDO_BULK_RING];   /* and the result is, as all who fold say */
    struct rondo_bulk_piece pieces[RONDO_BULK_RING];
    struct rondo_bulk_fold folds[RONDO_BULK_RING];
    uint32_t planned;                       /* pieces; the loader's */
    uint32_t freed;                         /* cells, in all; the storer's */
    uint32_t stored;                        /* pieces whose stores are over; the storer's */
    uint32_t finished;                      /* all are; the storer's */
    uint32_t stop;                          /* all shall leave off; the leader's */
    uint8_t waits[RONDO_WALK_INSTRUCTIONS]; /* an instruction before stores what this one loads or stores here */
    uint32_t moved[RONDO_WALK_ENDS];        /* slots of each end that are planned with; the loader's */
    uint32_t told[RONDO_WALK_ENDS];         /* of which the peer knows; the leader's */
};

/* ---- shared memory ---- */

RONDO_FUNCTION uint32_t rondo_bulk_look(const uint32_t *word)
{
    uint32_t value;
    asm volatile("ld.acquire.cta.shared.u32 %0, [%1];" : "=r"(value) : "r"(rondo_shared_address(word)) : "memory");
    return value;
}

RONDO_FUNCTION void rondo_bulk_say(uint32_t *word, uint32_t value)
{
    asm volatile("st.release.cta.shared.u32 [%0], %1;" ::"r"(rondo_shared_address(word)), "r"(value) : "memory");
}

/* What an end's peer has told. */
RONDO_FUNCTION uint64_t rondo_bulk_seen(const struct rondo_end *end)
{
    uint64_t value;
    asm volatile("ld.acquire.cta.shared.u64 %0, [%1];" : "=l"(value) : "r"(rondo_shared_address(&end->seen)) : "memory");
    return value;
}

/* Whether the index-th use of barriers that are used in turn is over. A barrier tells a phase from the next one only, so
 * whoever asks has waited for all before. */
RONDO_FUNCTION int rondo_bulk_is_over(const uint64_t *barriers, uint32_t index, uint32_t arrivals)
{
    return rondo_barrier_is_over(&barriers[index % RONDO_BULK_RING], index / RONDO_BULK_RING, arrivals);
}

RONDO_FUNCTION void rondo_bulk_expect(uint64_t *barrier, uint32_t bytes)
{
    asm volatile(
        "{ .reg .b64 state; mbarrier.arrive.expect_tx.shared.b64 state, [%0], %1; }" ::"r"(rondo_shared_address(barrier)),
        "r"(bytes)
        : "memory");
}

/* ---- bulk copies, of multiples of 16 bytes ---- */

RONDO_FUNCTION void rondo_bulk_copy_in(char *cell, const char *from, uint32_t bytes, uint64_t *barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     rondo_shared_address(cell)),
                 "l"(from), "r"(bytes), "r"(rondo_shared_address(barrier))
                 : "memory");
}

RONDO_FUNCTION void rondo_bulk_copy_out(char *to, const char *cell, uint32_t bytes)
{
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(rondo_shared_address(cell)),
                 "r"(bytes)
                 : "memory");
}

RONDO_FUNCTION void rondo_bulk_close_group(void)
{
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

/* Of the groups but the last one, all cells have been read. */
RONDO_FUNCTION void rondo_bulk_await_reads(void)
{
    asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
}

/* All groups but the last so many (at most RONDO_BULK_DEEP) are over. */
RONDO_FUNCTION void rondo_bulk_await(uint32_t left)
{
#define RONDO_BULK_AWAIT(count)                                                                                                \
    case count:                                                                                                                \
        asm volatile("cp.async.bulk.wait_group %0;" ::"n"(count) : "memory");                                                  \
        break;
    switch (left) {
        RONDO_BULK_AWAIT(0)
        RONDO_BULK_AWAIT(1)
        RONDO_BULK_AWAIT(2)
        RONDO_BULK_AWAIT(3)
        RONDO_BULK_AWAIT(4)
        RONDO_BULK_AWAIT(5)
        RONDO_BULK_AWAIT(6)
        RONDO_BULK_AWAIT(7)
        RONDO_BULK_AWAIT(RONDO_BULK_DEEP)
    }
#undef RONDO_BULK_AWAIT
}
static_assert(RONDO_BULK_DEEP == 8, "as many cases as groups");

/* Between what was learnt of global memory, or stored to cells, and bulk copies. */
RONDO_FUNCTION void rondo_bulk_fence(void)
{
    asm volatile("fence.proxy.async.global;" ::: "memory");
}
RONDO_FUNCTION void rondo_bulk_fence_cells(void)
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* ---- the order of the pieces ---- */

/* The engine's, but that a last instruction that only receives takes turns with the next tile's first one that only sends,
 * slice by slice: all blocks come there at about the same time, and the links would be idle. No peer can tell, for on every
 * connector the order is the same; and as what is received late is a tile's slices at most, nobody waits for ever who would not
 * with so many slots fewer, which the check allows for (RONDO_BULK_SLOTS). */
struct rondo_bulk_cursor {
    uint64_t tile_bytes, slice_bytes, end; /* bytes of a chunk */
    uint64_t tile, start, limit;           /* before the tile, before the piece, and before what the instruction leaves out */
    uint64_t other;                        /* start of the instruction that this one takes turns with */
    struct rondo_walk_step step;           /* the instruction */
    uint32_t instruction, instructions;
    uint32_t pieces;      /* before this one */
    uint32_t weaves;      /* such instructions there are, */
    uint32_t turns, over; /* and take turns now; the next tile's first one is over */
};

RONDO_FUNCTION void rondo_bulk_take(const struct rondo_team *team, struct rondo_bulk_cursor *at, uint64_t start)
{
    at->step = team->walk.steps[at->instruction];
    at->start = start;
    at->limit = at->step.bytes < at->tile + at->tile_bytes ? at->step.bytes : at->tile + at->tile_bytes;
}

RONDO_FUNCTION struct rondo_bulk_cursor rondo_bulk_begin(const struct rondo_team *team)
{
    const struct rondo_operation *operation = &team->operation;
    struct rondo_bulk_cursor at = {};
    at.tile_bytes = operation->tile * operation->element_bytes;
    at.slice_bytes = operation->slice * operation->element_bytes;
    at.end = operation->tiles * at.tile_bytes;
    at.instructions = team->part.instruction_count;
    at.weaves = at.instructions > 1 && team->walk.steps[at.instructions - 1].sent == 0 && team->walk.steps[0].received == 0;
    rondo_bulk_take(team, &at, 0);
    return at;
}

RONDO_FUNCTION void rondo_bulk_change(const struct rondo_team *team, struct rondo_bulk_cursor *at)
{
    const uint64_t start = at->other;
    at->other = at->start;
    at->tile = at->instruction == 0 ? at->tile - at->tile_bytes : at->tile + at->tile_bytes;
    at->instruction = at->instruction == 0 ? at->instructions - 1 : 0;
    rondo_bulk_take(team, at, start);
}

/* 0: there are no more. */
RONDO_FUNCTION int rondo_bulk_advance(const struct rondo_team *team, struct rondo_bulk_cursor *at)
{
    if (at->turns) { /* the rest of the other one */
        at->turns = 0;
        at->over = at->instruction == 0;
        rondo_bulk_change(team, at);
        return 1;
    }
    if (++at->instruction == at->instructions) {
        at->instruction = at->over;
        at->over = 0;
        at->tile += at->tile_bytes;
    }
    if (at->tile >= at->end)
        return 0;
    rondo_bulk_take(team, at, at->tile);
    at->turns = at->weaves && at->instruction + 1 == at->instructions && at->tile + at->tile_bytes < at->end;
    at->other = at->tile + at->tile_bytes;
    return 1;
}

/* Goes on to where there is something to move, and returns how many bytes; 0: that was all. */
RONDO_FUNCTION uint32_t rondo_bulk_next(const struct rondo_team *team, struct rondo_bulk_cursor *at)
{
    while (at->start >= at->limit)
        if (!rondo_bulk_advance(team, at))
            return 0;
    return (uint32_t) (at->limit - at->start < at->slice_bytes ? at->limit - at->start : at->slice_bytes);
}

RONDO_FUNCTION void rondo_bulk_pass(const struct rondo_team *team, struct rondo_bulk_cursor *at)
{
    at->start += at->slice_bytes;
    at->pieces++;
    if (at->turns)
        rondo_bulk_change(team, at);
}

/* Cells are used in turn. */
RONDO_FUNCTION uint32_t rondo_bulk_after(uint32_t cell, uint32_t count)
{
    return cell + count < RONDO_BULK_CELLS ? cell + count : cell + count - RONDO_BULK_CELLS;
}

/* ---- the scouts ---- */

/* Acquire pairs with the peers' telling of slots that they have filled, or read and given back. */
RONDO_FUNCTION void rondo_bulk_scout(struct rondo_team *team, const struct rondo_bulk *bulk, uint32_t lane)
{
    const int has_end = lane < team->part.end_count;
    struct rondo_end *end = &team->ends[has_end ? lane : 0];
    const uint64_t *watched = end->watched;
    uint64_t seen = end->seen;
    while ((rondo_bulk_look(&bulk->finished) | rondo_bulk_look(&bulk->stop)) == 0) {
        const uint64_t now = has_end ? rondo_load_acquire(watched) : seen;
        if (now != seen)
            asm volatile("st.release.cta.shared.u64 [%0], %1;" ::"r"(rondo_shared_address(&end->seen)), "l"(now) : "memory");
        seen = now;
        __syncwarp();
    }
}

/* ---- the loader ---- */

/* How far it is besides the cursor. */
struct rondo_bulk_loads {
    uint32_t copies, folds; /* pieces of one source, and of several */
    uint32_t cells, cell;   /* given, in all, and the next one */
    uint32_t known_end;     /* of this end the peer's word has been seen, and fenced for: */
    uint64_t known;
};

/* 0: it shall stop. */
RONDO_FUNCTION int rondo_bulk_await_word(const struct rondo_bulk *bulk, const uint32_t *word, uint32_t least)
{
    while ((int32_t) (rondo_bulk_look(word) - least) < 0)
        if (rondo_bulk_look(&bulk->stop) != 0)
            return 0;
    return 1;
}

/* Until the peer has filled the slot; and the bulk load comes after. */
RONDO_FUNCTION int rondo_bulk_await_slot(const struct rondo_team *team, const struct rondo_bulk *bulk, uint32_t e,
                                         uint64_t position, struct rondo_bulk_loads *loads)
{
    if (loads->known_end == e && loads->known > position)
        return 1;
    loads->known_end = e;
    while ((loads->known = rondo_bulk_seen(&team->ends[e])) <= position)
        if (rondo_bulk_look(&bulk->stop) != 0)
            return 0;
    rondo_bulk_fence();
    return 1;
}

/* For the storer. It looks at it when the loader says that it is planned. */
RONDO_FUNCTION void rondo_bulk_plan(const struct rondo_team *team, struct rondo_bulk *bulk, const struct rondo_bulk_cursor *at,
                                    const struct rondo_bulk_loads *loads, uint32_t bytes)
{
    const struct rondo_walk_step *step = &at->step;
    struct rondo_bulk_piece *piece = &bulk->pieces[at->pieces % RONDO_BULK_RING];
    piece->bytes = bytes;
    piece->cells = loads->cells + step->sources;
    piece->cell = (uint8_t) loads->cell;
    piece->folds = step->sources > 1;
    piece->waits = bulk->waits[at->instruction];
    piece->send_first = step->send_first;
    piece->sent = step->sent;
    piece->local = step->local != NULL ? step->local + at->start : NULL;
    for (uint32_t r = 0; r < step->sent; r++) {
        const struct rondo_end *end = &team->ends[step->send_first + r];
        const uint64_t position = end->position + bulk->moved[step->send_first + r]++;
        piece->remote[r] = rondo_slot_at(end, position);
        piece->needed[r] = position + 1 > end->slot_count ? position + 1 - end->slot_count : 0;
    }
    if (step->sources > 1) {
        const struct rondo_bulk_fold fold = {bytes, (uint8_t) loads->cell, step->sources, step->finishes};
        bulk->folds[loads->folds % RONDO_BULK_RING] = fold;
    }
    rondo_bulk_say(&bulk->planned, at->pieces + 1);
}

/* The piece's sources, each to its cell. When it shall stop what a slot holds does not matter any more, but what has been
 * announced to the barrier comes. */
RONDO_FUNCTION int rondo_bulk_load_piece(const struct rondo_team *team, struct rondo_bulk *bulk, char *cells,
                                         const struct rondo_bulk_cursor *at, struct rondo_bulk_loads *loads, uint32_t bytes)
{
    const struct rondo_walk_step *step = &at->step;
    uint64_t *barrier =
        step->sources > 1 ? &bulk->gathered[loads->folds % RONDO_BULK_RING] : &bulk->landed[loads->copies % RONDO_BULK_RING];
    int goes_on = 1;
    rondo_bulk_expect(barrier, bytes * step->sources);
    if (step->has_own)
        rondo_bulk_copy_in(cells + rondo_bulk_after(loads->cell, step->own_place) * RONDO_BULK_BYTES, step->own + at->start,
                           bytes, barrier);
    if (step->received == 0 && step->sources == 2)
        rondo_bulk_copy_in(cells + rondo_bulk_after(loads->cell, 1) * RONDO_BULK_BYTES, step->local + at->start, bytes,
                           barrier);
    for (uint32_t i = 0; i < step->received; i++) {
        const uint32_t e = step->receive_first + i, place = step->has_own && i >= step->own_place ? i + 1 : i;
        const struct rondo_end *end = &team->ends[e];
        const uint64_t position = end->position + bulk->moved[e]++;
        goes_on = goes_on && rondo_bulk_await_slot(team, bulk, e, position, loads);
        rondo_bulk_copy_in(cells + rondo_bulk_after(loads->cell, place) * RONDO_BULK_BYTES, rondo_slot_at(end, position), bytes,
                           barrier);
    }
    loads->folds += step->sources > 1;
    loads->copies += step->sources == 1;
    loads->cells += step->sources;
    loads->cell = rondo_bulk_after(loads->cell, step->sources);
    return goes_on;
}

RONDO_FUNCTION void rondo_bulk_end(struct rondo_bulk *bulk, const struct rondo_bulk_cursor *at,
                                   const struct rondo_bulk_loads *loads)
{
    bulk->pieces[at->pieces % RONDO_BULK_RING].bytes = 0;
    bulk->folds[loads->folds % RONDO_BULK_RING].bytes = 0;
    rondo_bulk_say(&bulk->planned, at->pieces + 1);
    rondo_bulk_expect(&bulk->gathered[loads->folds % RONDO_BULK_RING], 0);
}

RONDO_FUNCTION void rondo_bulk_load(struct rondo_team *team, struct rondo_bulk *bulk, char *cells)
{
    struct rondo_bulk_cursor at = rondo_bulk_begin(team);
    struct rondo_bulk_loads loads = {0, 0, 0, 0, RONDO_WALK_ENDS, 0};
    int goes_on = 1;
    rondo_bulk_fence(); /* what the stream held before this kernel was written by others */
    for (uint32_t bytes; goes_on && (bytes = rondo_bulk_next(team, &at)) != 0; rondo_bulk_pass(team, &at)) {
        if (!rondo_bulk_await_word(bulk, &bulk->freed, loads.cells + at.step.sources - RONDO_BULK_CELLS))
            break;
        if (bulk->waits[at.instruction]) {
            if (!rondo_bulk_await_word(bulk, &bulk->stored, at.pieces))
                break;
            rondo_bulk_fence();
        }
        rondo_bulk_plan(team, bulk, &at, &loads, bytes);
        goes_on = rondo_bulk_load_piece(team, bulk, cells, &at, &loads, bytes);
    }
    rondo_bulk_end(bulk, &at, &loads);
    /* Nothing may land in cells when the block is gone. */
    for (uint32_t p = loads.copies > RONDO_BULK_RING ? loads.copies - RONDO_BULK_RING : 0; p < loads.copies; p++)
        while (!rondo_bulk_is_over(bulk->landed, p, 1))
            ;
    for (uint32_t p = loads.folds + 1 > RONDO_BULK_RING ? loads.folds + 1 - RONDO_BULK_RING : 0; p <= loads.folds; p++)
        while (!rondo_bulk_is_over(bulk->gathered, p, 1))
            ;
}

/* ---- those who fold ---- */

/* The vectors of this thread, into the first cell. */
RONDO_FUNCTION void rondo_bulk_fold_piece(const struct rondo_team *team, char *cells, const struct rondo_bulk_fold *fold,
                                          uint32_t thread)
{
    enum { TOGETHER = 4, STRIDE = RONDO_BULK_FOLDERS * 16 };
    const int type = team->operation.type;
    char *result = cells + fold->cell * RONDO_BULK_BYTES;
#pragma unroll 1
    for (uint32_t first = thread * 16; first < fold->bytes; first += TOGETHER * STRIDE) {
        struct rondo_cuda_wide sum[TOGETHER];
        struct rondo_cuda_vector loaded[TOGETHER] = {};
#pragma unroll 1
        for (uint32_t s = 0; s < fold->sources; s++) {
            const char *source = cells + rondo_bulk_after(fold->cell, s) * RONDO_BULK_BYTES + first;
#pragma unroll
            for (uint32_t k = 0; k < TOGETHER; k++)
                if (first + k * STRIDE < fold->bytes)
                    *(uint4 *) &loaded[k] = *(const uint4 *) (source + k * STRIDE);
            if (s == 0)
                rondo_cuda_fold_held(type, TOGETHER, 4, 1, sum, loaded);
            else
                rondo_cuda_fold_held(type, TOGETHER, 4, 0, sum, loaded);
        }
        rondo_cuda_finish_held(type, TOGETHER, 4, fold->finishes ? team->operation.average : 0, sum, loaded);
#pragma unroll
        for (uint32_t k = 0; k < TOGETHER; k++)
            if (first + k * STRIDE < fold->bytes)
                *(uint4 *) (result + first + k * STRIDE) = *(const uint4 *) &loaded[k];
    }
}

RONDO_FUNCTION int rondo_bulk_folds(const struct rondo_team *team)
{
    int folds = 0;
    for (uint32_t i = 0; i < team->part.instruction_count; i++)
        folds |= team->walk.steps[i].sources > 1;
    return folds;
}

RONDO_FUNCTION void rondo_bulk_fold(const struct rondo_team *team, struct rondo_bulk *bulk, char *cells, uint32_t thread)
{
    if (!rondo_bulk_folds(team)) /* to look at a barrier for nothing would keep others from theirs */
        return;
    for (uint32_t f = 0;; f++) {
        while (!rondo_bulk_is_over(bulk->gathered, f, 1))
            if (rondo_bulk_look(&bulk->stop) != 0)
                return;
        const struct rondo_bulk_fold fold = bulk->folds[f % RONDO_BULK_RING];
        if (fold.bytes == 0)
            return;
        rondo_bulk_fold_piece(team, cells, &fold, thread);
        rondo_bulk_fence_cells(); /* before the storer's bulk copies */
        rondo_barrier_arrive(&bulk->folded[f % RONDO_BULK_RING]);
    }
}

/* ---- the storer ---- */

struct rondo_bulk_stores {
    uint32_t begun; /* groups, one a piece */
    uint32_t open;  /* of which so many may not be over */
    uint32_t cells; /* of those that are begun, in all */
    uint32_t copies, folds;
    uint32_t known_end; /* as the loader's */
    uint64_t known;
};

/* Notes those that are over when no more than so many are left; all cells but theirs are free. */
RONDO_FUNCTION void rondo_bulk_retire(struct rondo_bulk *bulk, struct rondo_bulk_stores *stores, uint32_t left)
{
    rondo_bulk_await(left);
    stores->open = left;
    rondo_bulk_say(&bulk->stored, stores->begun - left);
    if (left == 0)
        rondo_bulk_say(&bulk->freed, stores->cells);
}

/* Something that is waited for is not there: meanwhile one store more is seen to its end. 0: all shall stop. */
RONDO_FUNCTION int rondo_bulk_idle(struct rondo_bulk *bulk, struct rondo_bulk_stores *stores)
{
    if (stores->open > 0)
        rondo_bulk_retire(bulk, stores, stores->open - 1);
    if (rondo_bulk_look(&bulk->stop) == 0)
        return 1;
    rondo_bulk_await(0); /* nothing may read cells when the block is gone */
    return 0;
}

RONDO_FUNCTION int rondo_bulk_await_result(struct rondo_bulk *bulk, struct rondo_bulk_stores *stores,
                                           const struct rondo_bulk_piece *piece)
{
    const uint64_t *barriers = piece->folds ? bulk->folded : bulk->landed;
    const uint32_t index = piece->folds ? stores->folds++ : stores->copies++;
    while (!rondo_bulk_is_over(barriers, index, piece->folds ? RONDO_BULK_FOLDERS : 1))
        if (!rondo_bulk_idle(bulk, stores))
            return 0;
    return 1;
}

/* Until the receiver has read what was in the slot; and the bulk store comes after. 0: all shall stop. */
RONDO_FUNCTION int rondo_bulk_await_room(const struct rondo_team *team, struct rondo_bulk *bulk,
                                         struct rondo_bulk_stores *stores, uint32_t e, uint64_t needed)
{
    if (stores->known_end == e && stores->known >= needed)
        return 1;
    stores->known_end = e;
    while ((stores->known = rondo_bulk_seen(&team->ends[e])) < needed)
        if (!rondo_bulk_idle(bulk, stores))
            return 0;
    rondo_bulk_fence();
    return 1;
}

/* 0: all shall stop. */
RONDO_FUNCTION int rondo_bulk_store_piece(const struct rondo_team *team, struct rondo_bulk *bulk, const char *cells,
                                          const struct rondo_bulk_piece *piece, struct rondo_bulk_stores *stores)
{
    const uint32_t bytes = piece->bytes, sent = piece->sent, before = stores->cells;
    const char *cell = cells + piece->cell * RONDO_BULK_BYTES;
    char *local = piece->local;
    if (!rondo_bulk_await_result(bulk, stores, piece))
        return 0;
    if (piece->waits)
        rondo_bulk_retire(bulk, stores, 0);
    for (uint32_t r = 0; r < sent; r++) {
        if (!rondo_bulk_await_room(team, bulk, stores, piece->send_first + r, piece->needed[r]))
            return 0;
        rondo_bulk_copy_out(piece->remote[r], cell, bytes);
    }
    if (local != NULL)
        rondo_bulk_copy_out(local, cell, bytes);
    rondo_bulk_close_group();
    stores->begun++;
    stores->open++;
    stores->cells = piece->cells;
    rondo_bulk_await_reads();
    rondo_bulk_say(&bulk->freed, before);
    if (stores->open > RONDO_BULK_DEEP)
        rondo_bulk_retire(bulk, stores, RONDO_BULK_DEEP);
    return 1;
}

RONDO_FUNCTION void rondo_bulk_store(const struct rondo_team *team, struct rondo_bulk *bulk, const char *cells)
{
    struct rondo_bulk_stores stores = {0, 0, 0, 0, 0, RONDO_WALK_ENDS, 0};
    for (;;) {
        const struct rondo_bulk_piece *piece = &bulk->pieces[stores.begun % RONDO_BULK_RING];
        while (rondo_bulk_look(&bulk->planned) == stores.begun)
            if (!rondo_bulk_idle(bulk, &stores))
                return;
        if (piece->bytes == 0)
            break;
        if (!rondo_bulk_store_piece(team, bulk, cells, piece, &stores))
            return;
    }
    rondo_bulk_retire(bulk, &stores, 0);
    rondo_bulk_say(&bulk->finished, 1);
}

/* ---- the leader ---- */

/* Peers are told of the pieces that are over: of the slots filled, and of those taken, which go back. */
RONDO_FUNCTION void rondo_bulk_tell(const struct rondo_team *team, struct rondo_bulk *bulk, struct rondo_bulk_cursor *at,
                                    uint32_t stored, uint64_t *sent)
{
    rondo_publish_begin();
    for (uint32_t bytes; at->pieces != stored && (bytes = rondo_bulk_next(team, at)) != 0; rondo_bulk_pass(team, at)) {
        const struct rondo_walk_step *step = &at->step;
        for (uint32_t i = 0; i < (uint32_t) step->sent + step->received; i++) {
            const uint32_t e = i < step->sent ? step->send_first + i : step->receive_first + i - step->sent;
            rondo_publish_word(team->ends[e].published, team->ends[e].position + ++bulk->told[e]);
        }
        *sent += (uint64_t) bytes * step->sent;
    }
}

/* Whom the first piece that is not over seems to wait for: 1 + a rank in the world; 0: nobody. */
RONDO_FUNCTION int32_t rondo_bulk_missing(const struct rondo_team *team, const struct rondo_bulk *bulk,
                                          const struct rondo_bulk_cursor *at)
{
    const struct rondo_walk_step *step = &at->step;
    for (uint32_t e = step->receive_first; e < step->receive_first + step->received; e++)
        if (rondo_load_relaxed(team->ends[e].watched) <= team->ends[e].position + bulk->told[e])
            return team->ends[e].peer + 1;
    return step->received + step->sent == 0 ? 0 : team->ends[step->sent > 0 ? step->send_first : step->receive_first].peer + 1;
}

/* ---- before and after ---- */

RONDO_FUNCTION int rondo_bulk_overlap(const char *one, const char *other, uint64_t bytes, uint64_t other_bytes)
{
    return one != NULL && other != NULL && one < other + other_bytes && other < one + bytes;
}

/* Whether an instruction before stores to what this one loads or stores in this rank's buffers. */
RONDO_FUNCTION int rondo_bulk_waits(const struct rondo_team *team, uint32_t index)
{
    const struct rondo_walk_step *step = &team->walk.steps[index];
    int waits = 0;
    for (uint32_t i = 0; i < index; i++) {
        const struct rondo_walk_step *before = &team->walk.steps[i];
        waits |= (step->has_own && rondo_bulk_overlap(step->own, before->local, step->bytes, before->bytes)) ||
                 rondo_bulk_overlap(step->local, before->local, step->bytes, before->bytes);
    }
    return waits;
}

/* By all threads, when operation, part and instructions are there; in two halves with a barrier between and after. */
RONDO_FUNCTION void rondo_bulk_decode(struct rondo_team *team, struct rondo_bulk *bulk, uint32_t thread, uint32_t threads)
{
    for (uint32_t i = thread / RONDO_CUDA_WARP; i < team->part.instruction_count; i += threads / RONDO_CUDA_WARP)
        if (thread % RONDO_CUDA_WARP == 0)
            rondo_walk_decode(team, i);
    if (thread < RONDO_BULK_RING) {
        rondo_barrier_begin(&bulk->landed[thread], 1);
        rondo_barrier_begin(&bulk->gathered[thread], 1);
        rondo_barrier_begin(&bulk->folded[thread], RONDO_BULK_FOLDERS);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    if (thread < RONDO_WALK_ENDS)
        bulk->moved[thread] = bulk->told[thread] = 0;
    if (thread == 0)
        bulk->planned = bulk->freed = bulk->stored = bulk->finished = bulk->stop = 0;
}
RONDO_FUNCTION void rondo_bulk_look_for_waits(const struct rondo_team *team, struct rondo_bulk *bulk, uint32_t thread)
{
    if (thread < team->part.instruction_count)
        bulk->waits[thread] = (uint8_t) rondo_bulk_waits(team, thread);
}

/* Where an end stands is brought here when it is the operation's turn, and noted when it is over. Each by its thread. */
RONDO_FUNCTION void rondo_bulk_arrive(struct rondo_team *team, uint32_t thread)
{
    if (thread < team->part.end_count)
        *(uint4 *) &team->ends[thread].position =
            rondo_load_late((const uint4 *) &rondo_part_end(&team->part, thread)->position);
}
RONDO_FUNCTION void rondo_bulk_leave(const struct rondo_team *team, const struct rondo_bulk *bulk, uint32_t thread)
{
    if (thread < team->part.end_count && bulk->finished) {
        struct rondo_end *home = rondo_part_end(&team->part, thread);
        home->position = team->ends[thread].position + bulk->moved[thread];
        home->seen = team->ends[thread].seen;
    }
}

#endif
