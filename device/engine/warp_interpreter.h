/*
 * The warp interpreter: executes a part of an operation on a stream that consists of slice operations in LL128 lines. Each
 * worker warp interprets the instructions by itself. Lines announce themselves by their flags, so a warp needs no word from
 * the leader that data have arrived, and the leader need not hand over slice operations, which costs more than a small one
 * takes. Meanwhile the leader tells the warps which slots are free, and tells the peers which slots all warps have taken.
 * Why the result is the engine's: a warp always has the same places of every slot and of every chunk, so what it reads was
 * stored by the warp itself or by the same warp of a peer; and it keeps the order of the list. Why no warp waits forever: take
 * the first instruction, in an order in which the program's verification executed them, that some warp has not finished. The
 * data or the free slot it waits for come from instructions before it, which all warps have finished.
 */
#ifndef RONDO_DEVICE_ENGINE_WARP_INTERPRETER_H
#define RONDO_DEVICE_ENGINE_WARP_INTERPRETER_H

#if !defined(__CUDACC__)
#error "__device__ code: nvcc alone compiles it"
#endif

#include "device/abi/platform.h"
#include "device/abi/structures.h"
#include "device/engine/run.h"
#include "device/engine/use.h"
#include "device/engine/workers_cuda.h"
#include "device/move/low_latency.h"
#include "device/move/move_ll128.h"
#include "device/move/narrow.h"

#define RONDO_WARP_POLLS 64 /* of a warp, between two looks at the stop word */

/* ---- instructions ---- */

/* Decodes an instruction into its step: what it does to its chunk, of which a tile covers a part. It has no slices and one
 * chunk. */
RONDO_FUNCTION void rondo_warp_decode(struct rondo_workers *workers, uint32_t index)
{
    const struct rondo_operation *operation = &workers->operation;
    const struct rondo_instruction *instruction = &workers->instructions[index];
    const uint32_t received = instruction->actions & RONDO_RECEIVE ? instruction->receive_count : 0;
    const int reduces = instruction->actions & RONDO_REDUCE;
    struct rondo_warp_step *step = &workers->interpreter.steps[index];
    step->receive_first = instruction->receive_first;
    step->received = (uint8_t) received;
    step->send_first = instruction->send_first;
    step->sent = instruction->actions & RONDO_SEND ? instruction->send_count : 0;
    step->has_own = reduces || received == 0;
    step->own_place = (uint8_t) (instruction->local_place < received ? instruction->local_place : received);
    step->sources = (uint8_t) (received > 0 ? received + (reduces != 0) : reduces ? 2 : 1);
    step->exchanges = (instruction->flags & RONDO_EXCHANGE) != 0;
    step->finishes = (instruction->flags & RONDO_FINISH) != 0;
    const struct rondo_extent own =
        rondo_chunk_extent(&operation->layouts[instruction->source_buffer], instruction->source_index);
    step->own = operation->buffers[instruction->source_buffer] + own.offset * operation->element_bytes;
    step->local = NULL;
    step->bytes = own.count * operation->element_bytes;
    if (instruction->actions & RONDO_COPY) {
        const struct rondo_extent result =
            rondo_chunk_extent(&operation->layouts[instruction->destination_buffer], instruction->destination_index);
        step->local = operation->buffers[instruction->destination_buffer] + result.offset * operation->element_bytes;
        step->bytes = result.count * operation->element_bytes;
    }
}

/* Number of times the instructions of a tile use an end, for sending or for receiving. */
RONDO_FUNCTION uint32_t rondo_warp_uses(const struct rondo_workers *workers, uint32_t end, int sends)
{
    uint32_t uses = 0;
    for (uint32_t i = 0; i < workers->part.instruction_count; i++) {
        const struct rondo_instruction *instruction = &workers->instructions[i];
        if (instruction->actions & (sends ? RONDO_SEND : RONDO_RECEIVE))
            uses += sends ? end - instruction->send_first < instruction->send_count
                          : end - instruction->receive_first < instruction->receive_count;
    }
    return uses;
}

/* Whether chunks may end within a vector. They all begin at one. */
RONDO_FUNCTION int rondo_warp_is_ragged(const struct rondo_operation *operation)
{
    uint64_t bits = 0;
#pragma unroll
    for (int b = 0; b < RONDO_BUFFERS; b++)
        bits |= operation->layouts[b].group_count;
    return bits * operation->element_bytes % RONDO_SLICE_OP_ALIGNMENT != 0;
}

/* To be called by all threads of a block when operation, part and instructions are in shared memory. The results are valid
 * after the next barrier. */
RONDO_FUNCTION void rondo_warp_prepare(struct rondo_workers *workers, uint32_t thread, uint32_t threads)
{
    for (uint32_t i = thread / RONDO_CUDA_WARP; i < workers->part.instruction_count; i += threads / RONDO_CUDA_WARP)
        if (thread % RONDO_CUDA_WARP == 0)
            rondo_warp_decode(workers, i);
    if (thread < RONDO_WARP_ENDS) { /* one warp */
        const uint32_t sent = rondo_warp_uses(workers, thread, 1), uses = sent + rondo_warp_uses(workers, thread, 0);
        const int many = thread < workers->part.end_count && uses * workers->operation.tiles > workers->ends[thread].slot_count;
        workers->interpreter.sends[thread] = sent > 0;
        workers->interpreter.moved[thread] = 0;
        workers->interpreter.gives_back = __any_sync(RONDO_CUDA_WHOLE_WARP, many);
    }
    if (thread < RONDO_INTERPRETER_WARPS)
        workers->interpreter.passed[thread] = 0;
    if (thread == 0) {
        workers->interpreter.ragged = rondo_warp_is_ragged(&workers->operation);
        workers->interpreter.stop = 0;
    }
}

/* Bytes of the step's chunk in the tile that begins at start; 0: the step uses no slots in it. */
RONDO_FUNCTION uint32_t rondo_warp_bytes(const struct rondo_warp_step *step, uint64_t start, uint64_t tile)
{
    const uint64_t left = step->bytes > start ? step->bytes - start : 0;
    return (uint32_t) (left < tile ? left : tile);
}

/* ---- the warps ---- */

/* Position of an end. The lane with the end's number knows how many of its slots the warp has filled or taken. */
RONDO_FUNCTION uint64_t rondo_warp_position(const struct rondo_workers *workers, uint32_t moved, uint32_t end)
{
    return workers->ends[end].position + __shfl_sync(RONDO_CUDA_WHOLE_WARP, moved, (int) end);
}

/* Describes the step's slice operation, each lane an end, and waits until every receiver has a free slot. The leader
 * acquires the heads (rondo_warp_make_room), and the control dependency keeps stores behind the wait. Returns 0 if the warps
 * shall stop. */
RONDO_FUNCTION int rondo_warp_describe(struct rondo_workers *workers, const struct rondo_warp_step *step, uint64_t start,
                                       struct rondo_slice_op *slice_op, uint32_t moved, uint32_t lane)
{
    const uint32_t in = (step->receive_first + (lane < step->received ? lane : 0)) % RONDO_WARP_ENDS;
    const uint32_t out = (step->send_first + (lane < step->sent ? lane : 0)) % RONDO_WARP_ENDS;
    const uint64_t from = rondo_warp_position(workers, moved, in), to = rondo_warp_position(workers, moved, out);
    if (lane < step->received) {
        const uint32_t place = step->has_own && lane >= step->own_place ? lane + 1 : lane;
        slice_op->source[place] = rondo_slot_at(&workers->ends[in], from);
        *rondo_cuda_source_flag_of(RONDO_WARP_WIDTH, slice_op, place) = (uint32_t) (from + 1);
    }
    if (lane < step->sent) {
        *rondo_cuda_remote_of(RONDO_WARP_WIDTH, slice_op, lane) = rondo_slot_at(&workers->ends[out], to);
        *rondo_cuda_remote_flag_of(RONDO_WARP_WIDTH, slice_op, lane) = (uint32_t) (to + 1);
    }
    if (lane == 0) {
        const uint64_t all = rondo_low_bits(step->sources);
        slice_op->average = step->finishes ? workers->operation.average : 0;
        slice_op->type = workers->operation.type;
        slice_op->sources = step->sources;
        slice_op->remotes = step->sent;
        slice_op->exchanges = step->exchanges;
        slice_op->ll_remotes = rondo_low_bits(step->sent);
        slice_op->ll_sources = step->received == 0 ? 0 : all & ~((uint64_t) step->has_own << step->own_place);
        slice_op->local = step->local != NULL ? step->local + start : NULL;
        if (step->has_own)
            slice_op->source[step->own_place] = step->own + start;
        if (step->received == 0 && step->sources == 2)
            slice_op->source[1] = slice_op->local;
    }
    while (!__all_sync(RONDO_CUDA_WHOLE_WARP,
                       lane >= step->sent || to - rondo_load_relaxed(&workers->ends[out].seen) < workers->ends[out].slot_count))
        if (rondo_load_relaxed32(&workers->interpreter.stop) != 0)
            return 0;
    __syncwarp();
    return 1;
}

/* Reads the ends' positions when it is the operation's turn. The workers read them side by side if only the stream has to be
 * waited for; else the leader has read them. */
RONDO_FUNCTION void rondo_warp_look(struct rondo_workers *workers, uint32_t thread, uint32_t threads)
{
    if (workers->interpreter.ahead) {
        rondo_after_stream();
        if (thread < workers->part.end_count) {
            struct rondo_end *end = &workers->ends[thread];
            const uint4 counts = rondo_load_late((const uint4 *) &rondo_part_end(&workers->part, thread)->position);
            const uint64_t seen = (uint64_t) counts.w << 32 | counts.z;
            rondo_store_relaxed(&end->position, (uint64_t) counts.y << 32 | counts.x);
            /* Like rondo_warp_make_room, which runs beside this: an older value only makes a sender wait for the next one. */
            rondo_store_relaxed(&end->seen, workers->interpreter.sends[thread] ? rondo_load_acquire(end->watched) : seen);
        }
    }
    rondo_workers_sync(threads);
}

/* After all warps have finished the part: writes the ends' positions back and gives the slots back, unless the leader has
 * done so. Each end by its thread. */
RONDO_FUNCTION void rondo_warp_leave(const struct rondo_workers *workers, uint32_t moved, uint32_t thread)
{
    if (thread >= workers->part.end_count)
        return;
    const struct rondo_end *end = &workers->ends[thread];
    struct rondo_end *home = rondo_part_end(&workers->part, thread);
    const uint64_t position = end->position + moved;
    if (!workers->interpreter.gives_back && moved > 0 && !workers->interpreter.sends[thread])
        rondo_publish_word(end->published, position);
    home->position = position;
    home->seen = rondo_load_relaxed(&end->seen);
}

/* Executes one instruction in the tile that begins at start. lines: this thread's part of the chunk's bytes in the tile.
 * Returns 0 if the warps shall stop. */
RONDO_FUNCTION int rondo_warp_instruction(struct rondo_workers *workers, const struct rondo_warp_step *step, uint64_t start,
                                          const struct rondo_cuda_lines *lines, uint32_t thread, int ragged, uint32_t *moved)
{
    const uint32_t lane = thread % RONDO_CUDA_WARP;
    struct rondo_slice_op *slice_op = (struct rondo_slice_op *) workers->interpreter.slice_ops[thread / RONDO_CUDA_WARP];
    uint32_t done = 0, sent = 0;
    if (lines->bytes == 0)
        return 1;
    if (!rondo_warp_describe(workers, step, start, slice_op, *moved, lane))
        return 0;
    while (done * lines->step < lines->bytes) {
        rondo_cuda_move_lines(RONDO_WARP_WIDTH, slice_op, lines, ragged, RONDO_WARP_POLLS, &done, &sent);
        if (done * lines->step < lines->bytes && rondo_load_relaxed32(&workers->interpreter.stop) != 0)
            return 0;
    }
    *moved += lane - step->receive_first < step->received;
    *moved += lane - step->send_first < step->sent;
    return 1;
}

/* To be called by each worker. ragged: a constant; 1 if chunks may end within a vector. Returns the same to all: 1 if all
 * warps have finished. */
RONDO_FUNCTION int rondo_warp_through(struct rondo_workers *workers, uint32_t thread, uint32_t threads, int ragged)
{
    const uint64_t tile = workers->operation.tile * workers->operation.element_bytes,
                   tiles_end = workers->operation.tiles * tile;
    uint32_t moved = 0, passed = 0;
    int goes_on = 1;
    rondo_warp_look(workers, thread, threads);
#pragma unroll 1
    for (uint64_t start = 0; start < tiles_end && goes_on; start += tile) {
#pragma unroll 1
        for (uint32_t i = 0; i < workers->part.instruction_count && goes_on; i++) {
            const struct rondo_warp_step *step = &workers->interpreter.steps[i];
            const struct rondo_cuda_lines lines = rondo_cuda_lines_of(rondo_warp_bytes(step, start, tile), thread, threads);
            goes_on = rondo_warp_instruction(workers, step, start, &lines, thread, ragged, &moved);
            /* The slots that the lanes have read are done with, so the peers may have them back. */
            __syncwarp();
            passed += goes_on;
            if (thread % RONDO_CUDA_WARP == 0)
                rondo_store_relaxed32(&workers->interpreter.passed[thread / RONDO_CUDA_WARP], passed);
        }
    }
    if (!rondo_workers_agree(goes_on, threads))
        return 0;
    rondo_warp_leave(workers, moved, thread);
    return 1;
}

/* A function of its own: its few additional instructions would slow down the other one. */
RONDO_RARE int rondo_warp_ragged(struct rondo_workers *workers, uint32_t thread, uint32_t threads)
{
    __builtin_assume(__isShared(workers));
    return rondo_warp_through(workers, thread, threads, 1);
}

/* Interprets the part. Not inlined: it would take registers from the rest. Returns the same to all workers: 1 if all warps
 * have finished. */
RONDO_RARE int rondo_warp_interpreter(struct rondo_workers *workers, uint32_t thread, uint32_t threads)
{
    __builtin_assume(__isShared(workers));
    return workers->interpreter.ragged ? rondo_warp_ragged(workers, thread, threads)
                                       : rondo_warp_through(workers, thread, threads, 0);
}

/* ---- the leader ---- */

/* Position of the slowest warp. */
struct rondo_warp_cursor {
    uint64_t start; /* bytes of a chunk before the tile */
    uint32_t instruction, passed;
    uint64_t primitives, sent; /* bytes */
};

/* Number of instructions that every warp has finished. */
RONDO_FUNCTION uint32_t rondo_warp_passed(const struct rondo_workers *workers)
{
    uint32_t least = UINT32_MAX;
#pragma unroll
    for (uint32_t w = 0; w < RONDO_INTERPRETER_WARPS; w++) {
        const uint32_t passed = rondo_load_relaxed32(&workers->interpreter.passed[w]);
        if (w < (rondo_workers_members() - 1) / RONDO_CUDA_WARP)
            least = passed < least ? passed : least;
    }
    return least;
}

/* Moves the cursor to the slowest warp, and gives back the slots that all warps have taken if the part uses slots more than
 * once. */
RONDO_FUNCTION void rondo_warp_follow(struct rondo_workers *workers, uint64_t tile, struct rondo_warp_cursor *cursor)
{
    for (const uint32_t passed = rondo_warp_passed(workers); cursor->passed != passed; cursor->passed++) {
        const struct rondo_warp_step *step = &workers->interpreter.steps[cursor->instruction];
        const uint32_t bytes = rondo_warp_bytes(step, cursor->start, tile);
        if (bytes > 0) {
            for (uint32_t e = step->receive_first; e < step->receive_first + step->received; e++) {
                workers->interpreter.moved[e]++;
                if (workers->interpreter.gives_back)
                    rondo_publish_word(workers->ends[e].published, workers->ends[e].position + workers->interpreter.moved[e]);
            }
            cursor->primitives++;
            cursor->sent += (uint64_t) bytes * step->sent;
        }
        if (++cursor->instruction == workers->part.instruction_count) {
            cursor->instruction = 0;
            cursor->start += tile;
        }
    }
}

/* The ends that send, one bit each. */
RONDO_FUNCTION uint32_t rondo_warp_senders(const struct rondo_workers *workers)
{
    uint32_t senders = 0;
    for (uint32_t e = 0; e < workers->part.end_count; e++)
        senders |= workers->interpreter.sends[e] << e;
    return senders;
}

/* Reads how many slots of one of the ends are free. ends: bits. Acquire pairs with the receiver's release: it has finished
 * reading before the warps store. Returns the remaining ends. */
RONDO_FUNCTION uint32_t rondo_warp_make_room(struct rondo_workers *workers, uint32_t ends)
{
    struct rondo_end *end = &workers->ends[__ffs((int) ends) - 1];
    rondo_store_relaxed(&end->seen, rondo_load_acquire(end->watched));
    return ends & (ends - 1);
}

/* The rank that the slowest warp seems to wait for: 1 + its number in the world. */
RONDO_FUNCTION int32_t rondo_warp_missing(const struct rondo_workers *workers, const struct rondo_warp_cursor *cursor)
{
    const struct rondo_warp_step *step = &workers->interpreter.steps[cursor->instruction];
    for (uint32_t e = step->receive_first; e < step->receive_first + step->received; e++) {
        const uint64_t position = workers->ends[e].position + workers->interpreter.moved[e];
        const uint64_t *first = (const uint64_t *) (const void *) rondo_slot_at(&workers->ends[e], position);
        if (rondo_load_relaxed(first + RONDO_LINE_DATA / sizeof(*first)) >> 32 != (uint32_t) (position + 1))
            return workers->ends[e].peer + 1;
    }
    return workers->ends[step->received > 0 ? step->receive_first : step->send_first].peer + 1;
}

#endif
