/*
 * A part of an operation on a stream that is nothing but pieces in lines of LL128: each worker warp walks through its
 * instructions by itself. Lines announce themselves, so a warp needs nobody's word that data are there, and handing pieces over
 * from the leader, which costs more than a small one takes, falls away. The leader meanwhile tells the warps which slots are
 * free, and the peers which ones all warps have taken.
 *
 * Why that does what the engine does: a warp has the same places of every slot and of every chunk, so whatever it reads it has
 * stored itself, a peer's same warp has, or nobody does; and it keeps to the order of the list. Why nobody waits for ever: of
 * all instructions that are not over on all warps, take the first in an order in which the program's check played them through.
 * What it waits for, data or a free slot, comes with instructions before it, which are over on all warps.
 */
#ifndef RONDO_DEVICE_ENGINE_WARP_INTERPRETER_H
#define RONDO_DEVICE_ENGINE_WARP_INTERPRETER_H

#include "device/engine/engine.h"

#define RONDO_WALK_POLLS 64 /* of a warp, between looks whether it shall stop */

/* ---- what there is to do ---- */

/* What an instruction does to its chunk, of which a tile covers a part. There are no slices, and one chunk an instruction. */
RONDO_FUNCTION void rondo_walk_decode(struct rondo_team *team, uint32_t index)
{
    const struct rondo_operation *operation = &team->operation;
    const struct rondo_instruction *instruction = &team->instructions[index];
    const uint32_t received = instruction->actions & RONDO_RECEIVE ? instruction->receive_count : 0;
    const int reduces = instruction->actions & RONDO_REDUCE;
    struct rondo_walk_step *step = &team->walk.steps[index];
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

/* How often the instructions of a tile use an end, to send or to receive. */
RONDO_FUNCTION uint32_t rondo_walk_uses(const struct rondo_team *team, uint32_t end, int sends)
{
    uint32_t uses = 0;
    for (uint32_t i = 0; i < team->part.instruction_count; i++) {
        const struct rondo_instruction *instruction = &team->instructions[i];
        if (instruction->actions & (sends ? RONDO_SEND : RONDO_RECEIVE))
            uses += sends ? end - instruction->send_first < instruction->send_count
                          : end - instruction->receive_first < instruction->receive_count;
    }
    return uses;
}

/* Whether chunks may end within a vector. They all begin at one. */
RONDO_FUNCTION int rondo_walk_is_ragged(const struct rondo_operation *operation)
{
    uint64_t bits = 0;
#pragma unroll
    for (int b = 0; b < RONDO_BUFFERS; b++)
        bits |= operation->layouts[b].group_count;
    return bits * operation->element_bytes % RONDO_PIECE_ALIGNMENT != 0;
}

/* By all threads of a block, when operation, part and instructions are there; what they leave is there after the next barrier.
 */
RONDO_FUNCTION void rondo_walk_prepare(struct rondo_team *team, uint32_t thread, uint32_t threads)
{
    for (uint32_t i = thread / RONDO_CUDA_WARP; i < team->part.instruction_count; i += threads / RONDO_CUDA_WARP)
        if (thread % RONDO_CUDA_WARP == 0)
            rondo_walk_decode(team, i);
    if (thread < RONDO_WALK_ENDS) { /* a warp */
        const uint32_t sent = rondo_walk_uses(team, thread, 1), uses = sent + rondo_walk_uses(team, thread, 0);
        const int many = thread < team->part.end_count && uses * team->operation.tiles > team->ends[thread].slot_count;
        team->walk.sends[thread] = sent > 0;
        team->walk.moved[thread] = 0;
        team->walk.gives_back = __any_sync(RONDO_CUDA_WHOLE_WARP, many);
    }
    if (thread < RONDO_WALK_WARPS)
        team->walk.passed[thread] = 0;
    if (thread == 0) {
        team->walk.ragged = rondo_walk_is_ragged(&team->operation);
        team->walk.stop = 0;
    }
}

/* Of the step's chunk, bytes in a tile that begins there; 0: it uses no slots. */
RONDO_FUNCTION uint32_t rondo_walk_bytes(const struct rondo_walk_step *step, uint64_t start, uint64_t tile)
{
    const uint64_t left = step->bytes > start ? step->bytes - start : 0;
    return (uint32_t) (left < tile ? left : tile);
}

/* ---- the warps ---- */

/* Where the end stands, of which the lane with its number knows how many slots the warp has filled or taken. */
RONDO_FUNCTION uint64_t rondo_walk_position(const struct rondo_team *team, uint32_t moved, uint32_t end)
{
    return team->ends[end].position + __shfl_sync(RONDO_CUDA_WHOLE_WARP, moved, (int) end);
}

/* Describes the piece, each lane an end, when there is a free slot for each receiver. Acquire by the leader
 * (rondo_walk_make_room), and control: nothing is stored before. 0: it shall stop. */
RONDO_FUNCTION int rondo_walk_describe(struct rondo_team *team, const struct rondo_walk_step *step, uint64_t start,
                                       struct rondo_piece *piece, uint32_t moved, uint32_t lane)
{
    const uint32_t in = (step->receive_first + (lane < step->received ? lane : 0)) % RONDO_WALK_ENDS;
    const uint32_t out = (step->send_first + (lane < step->sent ? lane : 0)) % RONDO_WALK_ENDS;
    const uint64_t from = rondo_walk_position(team, moved, in), to = rondo_walk_position(team, moved, out);
    if (lane < step->received) {
        const uint32_t place = step->has_own && lane >= step->own_place ? lane + 1 : lane;
        piece->source[place] = rondo_slot_at(&team->ends[in], from);
        *rondo_cuda_source_flag_of(RONDO_WALK_WIDTH, piece, place) = (uint32_t) (from + 1);
    }
    if (lane < step->sent) {
        *rondo_cuda_remote_of(RONDO_WALK_WIDTH, piece, lane) = rondo_slot_at(&team->ends[out], to);
        *rondo_cuda_remote_flag_of(RONDO_WALK_WIDTH, piece, lane) = (uint32_t) (to + 1);
    }
    if (lane == 0) {
        const uint64_t all = rondo_low_bits(step->sources);
        piece->average = step->finishes ? team->operation.average : 0;
        piece->type = team->operation.type;
        piece->sources = step->sources;
        piece->remotes = step->sent;
        piece->exchanges = step->exchanges;
        piece->ll_remotes = rondo_low_bits(step->sent);
        piece->ll_sources = step->received == 0 ? 0 : all & ~((uint64_t) step->has_own << step->own_place);
        piece->local = step->local != NULL ? step->local + start : NULL;
        if (step->has_own)
            piece->source[step->own_place] = step->own + start;
        if (step->received == 0 && step->sources == 2)
            piece->source[1] = piece->local;
    }
    while (!__all_sync(RONDO_CUDA_WHOLE_WARP,
                       lane >= step->sent || to - rondo_load_relaxed(&team->ends[out].seen) < team->ends[out].slot_count))
        if (rondo_load_relaxed32(&team->walk.stop) != 0)
            return 0;
    __syncwarp();
    return 1;
}

/* Where the ends stand when it is the operation's turn. The workers look themselves, side by side, where nobody else has to be
 * waited for. */
RONDO_FUNCTION void rondo_walk_look(struct rondo_team *team, uint32_t thread, uint32_t threads)
{
    if (team->walk.ahead) {
        rondo_after_stream();
        if (thread < team->part.end_count) {
            struct rondo_end *end = &team->ends[thread];
            const uint4 counts = rondo_load_late((const uint4 *) &rondo_part_end(&team->part, thread)->position);
            const uint64_t seen = (uint64_t) counts.w << 32 | counts.z;
            rondo_store_relaxed(&end->position, (uint64_t) counts.y << 32 | counts.x);
            /* As rondo_walk_make_room, beside which this is: an older value only makes senders wait for the next. */
            rondo_store_relaxed(&end->seen, team->walk.sends[thread] ? rondo_load_acquire(end->watched) : seen);
        }
    }
    rondo_workers_sync(threads);
}

/* The part is over, for all warps: where the ends stand is noted, and the slots go back, unless the leader has seen to that.
 * Each by its thread. */
RONDO_FUNCTION void rondo_walk_leave(const struct rondo_team *team, uint32_t moved, uint32_t thread)
{
    if (thread >= team->part.end_count)
        return;
    const struct rondo_end *end = &team->ends[thread];
    struct rondo_end *home = rondo_part_end(&team->part, thread);
    const uint64_t position = end->position + moved;
    if (!team->walk.gives_back && moved > 0 && !team->walk.sends[thread])
        rondo_publish_word(end->published, position);
    home->position = position;
    home->seen = rondo_load_relaxed(&end->seen);
}

/* One instruction in the tile that begins at start. 0: it shall stop. */
RONDO_FUNCTION int rondo_walk_instruction(struct rondo_team *team, const struct rondo_walk_step *step, uint64_t start,
                                          uint64_t tile, uint32_t thread, uint32_t threads, int ragged, uint32_t *moved)
{
    const uint32_t lane = thread % RONDO_CUDA_WARP;
    const struct rondo_cuda_lines lines = rondo_cuda_lines_of(rondo_walk_bytes(step, start, tile), thread, threads);
    struct rondo_piece *piece = (struct rondo_piece *) team->walk.pieces[thread / RONDO_CUDA_WARP];
    uint32_t done = 0, sent = 0;
    if (lines.bytes == 0)
        return 1;
    if (!rondo_walk_describe(team, step, start, piece, *moved, lane))
        return 0;
    while (done * lines.step < lines.bytes) {
        rondo_cuda_move_lines(RONDO_WALK_WIDTH, piece, &lines, ragged, RONDO_WALK_POLLS, &done, &sent);
        if (done * lines.step < lines.bytes && rondo_load_relaxed32(&team->walk.stop) != 0)
            return 0;
    }
    *moved += lane - step->receive_first < step->received;
    *moved += lane - step->send_first < step->sent;
    return 1;
}

/* By each worker. ragged, a constant: chunks may end within a vector. Returns, to all, whether all warps came to the end. */
RONDO_FUNCTION int rondo_walk_through(struct rondo_team *team, uint32_t thread, uint32_t threads, int ragged)
{
    const uint64_t tile = team->operation.tile * team->operation.element_bytes, tiles_end = team->operation.tiles * tile;
    uint32_t moved = 0, passed = 0;
    int goes_on = 1;
    rondo_walk_look(team, thread, threads);
#pragma unroll 1
    for (uint64_t start = 0; start < tiles_end && goes_on; start += tile) {
#pragma unroll 1
        for (uint32_t i = 0; i < team->part.instruction_count && goes_on; i++) {
            goes_on = rondo_walk_instruction(team, &team->walk.steps[i], start, tile, thread, threads, ragged, &moved);
            /* What the lanes have read of the slots they have used by now; so the peers may have them back. */
            __syncwarp();
            passed += goes_on;
            if (thread % RONDO_CUDA_WARP == 0)
                rondo_store_relaxed32(&team->walk.passed[thread / RONDO_CUDA_WARP], passed);
        }
    }
    if (!rondo_workers_agree(goes_on, threads))
        return 0;
    rondo_walk_leave(team, moved, thread);
    return 1;
}

/* By itself: the few instructions more would take 2 to 20% of the speed of what is whole. */
RONDO_RARE int rondo_walk_ragged(struct rondo_team *team, uint32_t thread, uint32_t threads)
{
    __builtin_assume(__isShared(team));
    return rondo_walk_through(team, thread, threads, 1);
}

/* Called: it has so much that it would take registers from the rest. */
RONDO_RARE int rondo_walk(struct rondo_team *team, uint32_t thread, uint32_t threads)
{
    __builtin_assume(__isShared(team));
    return team->walk.ragged ? rondo_walk_ragged(team, thread, threads) : rondo_walk_through(team, thread, threads, 0);
}

/* ---- the leader ---- */

/* Where the last of the warps stands. */
struct rondo_walk_cursor {
    uint64_t start; /* of the tile */
    uint32_t instruction, passed;
    uint64_t primitives, sent; /* bytes */
};

RONDO_FUNCTION uint32_t rondo_walk_passed(const struct rondo_team *team)
{
    uint32_t least = UINT32_MAX;
#pragma unroll
    for (uint32_t w = 0; w < RONDO_WALK_WARPS; w++) {
        const uint32_t passed = rondo_load_relaxed32(&team->walk.passed[w]);
        if (w < (rondo_team_members() - 1) / RONDO_CUDA_WARP)
            least = passed < least ? passed : least;
    }
    return least;
}

/* The cursor follows the warps, and gives back the slots that all have taken, where the part needs them before it is over. */
RONDO_FUNCTION void rondo_walk_follow(struct rondo_team *team, uint64_t tile, struct rondo_walk_cursor *cursor)
{
    for (const uint32_t passed = rondo_walk_passed(team); cursor->passed != passed; cursor->passed++) {
        const struct rondo_walk_step *step = &team->walk.steps[cursor->instruction];
        const uint32_t bytes = rondo_walk_bytes(step, cursor->start, tile);
        if (bytes > 0) {
            for (uint32_t e = step->receive_first; e < step->receive_first + step->received; e++) {
                team->walk.moved[e]++;
                if (team->walk.gives_back)
                    rondo_publish_word(team->ends[e].published, team->ends[e].position + team->walk.moved[e]);
            }
            cursor->primitives++;
            cursor->sent += (uint64_t) bytes * step->sent;
        }
        if (++cursor->instruction == team->part.instruction_count) {
            cursor->instruction = 0;
            cursor->start += tile;
        }
    }
}

/* The ends that send, as bits. */
RONDO_FUNCTION uint32_t rondo_walk_senders(const struct rondo_team *team)
{
    uint32_t senders = 0;
    for (uint32_t e = 0; e < team->part.end_count; e++)
        senders |= team->walk.sends[e] << e;
    return senders;
}

/* Which slots are free, of one of the ends after the other. Acquire pairs with the receiver's giving them back: it has finished
 * reading before warps store. Returns those that are left. */
RONDO_FUNCTION uint32_t rondo_walk_make_room(struct rondo_team *team, uint32_t ends)
{
    struct rondo_end *end = &team->ends[__ffs((int) ends) - 1];
    rondo_store_relaxed(&end->seen, rondo_load_acquire(end->watched));
    return ends & (ends - 1);
}

/* Whom the slowest warp seems to wait for: 1 + a rank in the world. */
RONDO_FUNCTION int32_t rondo_walk_missing(const struct rondo_team *team, const struct rondo_walk_cursor *cursor)
{
    const struct rondo_walk_step *step = &team->walk.steps[cursor->instruction];
    for (uint32_t e = step->receive_first; e < step->receive_first + step->received; e++) {
        const uint64_t position = team->ends[e].position + team->walk.moved[e];
        const uint64_t *first = (const uint64_t *) (const void *) rondo_slot_at(&team->ends[e], position);
        if (rondo_load_relaxed(first + RONDO_LINE_DATA / sizeof(*first)) >> 32 != (uint32_t) (position + 1))
            return team->ends[e].peer + 1;
    }
    return team->ends[step->received > 0 ? step->receive_first : step->send_first].peer + 1;
}

#endif
