/*
 * The engine: interprets one program block of an operation, one primitive after the other, until it is done or a wait outruns
 * its budget. Between two primitives the context says exactly where it stands, so it can stop and come back anywhere
 * (DESIGN sections 4 and 6). Single source: one thread of a block runs it, and has the pieces of work that it describes carried
 * out by the block's team (host_move.h, cuda_team.h).
 */
#ifndef RONDO_DEVICE_ENGINE_H
#define RONDO_DEVICE_ENGINE_H

#include "low_latency.h"
#include "piece.h"
#include "platform.h"
#include "structures.h"
#include "zfp_block.h"

#define RONDO_SOURCES_MAX     RONDO_FOLD_SOURCES_MAX
#define RONDO_PIECE_ALIGNMENT 16 /* of the pieces of a slot */

enum rondo_outcome { RONDO_OUTCOME_STUCK, RONDO_OUTCOME_FINISHED };

struct rondo_team;

/* What a run of a program block needs to know; lives in the block's team. */
struct rondo_run {
    const struct rondo_operation *home; /* where the operation is kept */
    /* Where the team has them at hand: */
    const struct rondo_operation *operation;
    const struct rondo_part *part;
    const struct rondo_instruction *instructions;
    struct rondo_end *const *ends;
    struct rondo_context *context;
    struct rondo_team *team;
    const struct rondo_instruction *unpublished; /* begun, but not told to anybody */
    uint64_t *semaphores;                        /* of the lane */
    uint64_t *waiting;                           /* of this context */
    struct rondo_block_statistics *statistics;
    const struct rondo_policy *policy;
    const struct rondo_queues *queues;
    const uint32_t *failed;     /* of the lane: ends waits that have no budget */
    const uint64_t *interrupts; /* the host's that the block has answered; others end waits without a budget too */
    uint64_t budget;
    uint32_t program_block;
    uint32_t fresh; /* the operation is not what it was when the team had it last */
    uint32_t advanced;
};

#if defined(__CUDACC__)
#include "cuda_team.h"
#else
#include "host_move.h"

/* Puts a part's operation, instructions and ends where they are quickly reached; here they are. */
RONDO_FUNCTION void rondo_team_load(struct rondo_team *team, struct rondo_run *run)
{
    (void) team;
    run->operation = run->home;
    run->part = &run->operation->parts[run->program_block];
    run->instructions = run->part->instructions;
    run->ends = run->part->ends;
}
RONDO_FUNCTION void rondo_team_unload(struct rondo_team *team, struct rondo_run *run)
{
    (void) team;
    (void) run;
}
#endif

/* The part of a piece that a team may leave until the slots it fills have been told of; before those it takes are given back.
 */
#if !defined(RONDO_TEAM_REST)
#define RONDO_TEAM_REST(team) ((void) (team))
#endif

RONDO_FUNCTION struct rondo_extent rondo_chunk_extent(const struct rondo_layout *layout, uint32_t index)
{
    struct rondo_extent extent;
    if (layout->table != NULL)
        return layout->table[index];
    uint64_t within = index % layout->group_chunks * layout->chunk_count;
    extent.offset = index / layout->group_chunks * layout->group_count + within;
    extent.count = within >= layout->group_count                        ? 0
                   : layout->group_count - within < layout->chunk_count ? layout->group_count - within
                                                                        : layout->chunk_count;
    return extent;
}

/* The part of a chunk that one slice of the current tile covers. */
RONDO_FUNCTION struct rondo_extent rondo_slice_extent(const struct rondo_operation *operation,
                                                      const struct rondo_context *context, uint32_t buffer, uint32_t index)
{
    struct rondo_extent chunk = rondo_chunk_extent(&operation->layouts[buffer], index);
    uint64_t in_tile = context->slice * operation->slice;
    uint64_t start = context->tile * operation->tile + in_tile;
    uint64_t most = operation->tile > in_tile ? operation->tile - in_tile : 0;
    if (most > operation->slice)
        most = operation->slice;
    uint64_t left = start < chunk.count ? chunk.count - start : 0;
    struct rondo_extent slice = {chunk.offset + start, left < most ? left : most};
    return slice;
}

/* The chunk whose length decides how much an instruction moves: all others it touches are as long. */
RONDO_FUNCTION void rondo_measured_chunk(const struct rondo_instruction *instruction, uint32_t *buffer, uint32_t *index)
{
    int to_destination = (instruction->actions & RONDO_COPY) != 0;
    *buffer = to_destination ? instruction->destination_buffer : instruction->source_buffer;
    *index = to_destination ? instruction->destination_index : instruction->source_index;
}

RONDO_FUNCTION size_t rondo_piece_bytes(size_t bytes)
{
    return (bytes + RONDO_PIECE_ALIGNMENT - 1) & ~(size_t) (RONDO_PIECE_ALIGNMENT - 1);
}

/* What so many elements take of a slot. */
RONDO_FUNCTION size_t rondo_payload_bytes(const struct rondo_operation *operation, uint64_t count)
{
    return operation->rate != 0 ? rondo_zfp_bytes(count, operation->rate) : count * operation->element_bytes;
}

/* What one slice of the instruction takes of a slot. */
RONDO_FUNCTION size_t rondo_slice_bytes(const struct rondo_run *run, const struct rondo_instruction *instruction)
{
    uint32_t buffer, index;
    size_t bytes = 0;
    rondo_measured_chunk(instruction, &buffer, &index);
    for (uint32_t k = 0; k < instruction->count; k++)
        bytes += rondo_piece_bytes(
            rondo_payload_bytes(run->operation, rondo_slice_extent(run->operation, run->context, buffer, index + k).count));
    return bytes;
}

/* ---- waiting ---- */

/* The slot the end fills or takes next. */
RONDO_FUNCTION char *rondo_slot(const struct rondo_end *end)
{
    return end->slots + (end->position & (end->slot_count - 1)) * end->slot_bytes;
}

/* A slot has arrived. The acquire makes everything its producer wrote before publishing the tail visible. */
RONDO_FUNCTION int rondo_arrived(struct rondo_end *end, size_t bytes)
{
    if (end->protocol == RONDO_PROTOCOL_LL)
        return RONDO_TEAM_POLLS_LL ||
               rondo_ll_ready((const uint64_t *) (const void *) rondo_slot(end), bytes, (uint32_t) (end->position + 1));
    if (end->seen <= end->position)
        end->seen = rondo_load_acquire(end->watched);
    return end->seen > end->position;
}

/* A slot is free. The acquire pairs with the consumer's release of head: it has finished reading before we overwrite. */
RONDO_FUNCTION int rondo_has_room(struct rondo_end *end)
{
    if (end->position - end->seen >= end->slot_count)
        end->seen = rondo_load_acquire(end->watched);
    return end->position - end->seen < end->slot_count;
}

RONDO_FUNCTION uint64_t rondo_semaphore_value(const struct rondo_run *run, uint32_t block, uint32_t step)
{
    const struct rondo_part *part = block == run->program_block ? run->part : &run->operation->parts[block];
    return run->context->operation << 32 | (uint32_t) (run->context->tile * part->instruction_count + step + 1);
}

/* NULL when the primitive can run; else what it waits for (a connector's end, or the run itself for another block). */
RONDO_FUNCTION const void *rondo_missing(struct rondo_run *run, const struct rondo_instruction *instruction, size_t bytes)
{
    if (run->context->slice == 0)
        for (uint32_t i = 0; i < instruction->dependencies; i++) {
            const struct rondo_dependency *on = run->part->dependencies + instruction->dependency_first + i;
            uint64_t wanted = rondo_semaphore_value(run, on->block, on->step);
            /* Acquire pairs with the release in rondo_notify: the other block's stores are visible. */
            uint64_t value = rondo_load_acquire_device(run->semaphores + on->block);
            if (value >> 32 != wanted >> 32 || value < wanted)
                return run;
        }
    if ((instruction->actions & RONDO_RECEIVE) && !(instruction->flags & RONDO_DIRECT_IN))
        for (uint32_t i = 0; i < instruction->receive_count; i++)
            if (!rondo_arrived(run->ends[instruction->receive_first + i], bytes))
                return run->ends[instruction->receive_first + i];
    if ((instruction->actions & RONDO_SEND) && !(instruction->flags & RONDO_DIRECT_OUT))
        for (uint32_t i = 0; i < instruction->send_count; i++)
            if (!rondo_has_room(run->ends[instruction->send_first + i]))
                return run->ends[instruction->send_first + i];
    return NULL;
}

RONDO_FUNCTION void rondo_report_missing(const struct rondo_run *run, const void *missing)
{
    rondo_store_relaxed(run->waiting, missing == run ? 0 : (uint64_t) ((const struct rondo_end *) missing)->peer + 1);
}

/* Whether a wait of so many polls has to end. Without preemption only the host and failure end one. */
RONDO_FUNCTION int rondo_outrun(const struct rondo_run *run, uint64_t polls)
{
    if (run->policy->preempt)
        return polls >= run->budget;
    return rondo_load_relaxed32(run->failed) != 0 || rondo_load_relaxed(&run->queues->interrupts) != *run->interrupts;
}

/* Waits within the task's budget. 0: stuck. */
RONDO_FUNCTION int rondo_wait_ready(struct rondo_run *run, const struct rondo_instruction *instruction, size_t bytes)
{
    const void *missing = NULL;
    for (uint64_t polls = 0;; polls++) {
        missing = rondo_missing(run, instruction, bytes);
        if (missing == NULL)
            return 1;
        if (rondo_outrun(run, polls))
            break;
        if (!run->policy->preempt)
            rondo_report_missing(run, missing);
        if (rondo_relax(polls, run->policy->yield_mask))
            polls += run->policy->yield_polls; /* it took as long as so many polls, and let others run */
    }
    rondo_report_missing(run, missing);
    return 0;
}

/* ---- moving ---- */

RONDO_FUNCTION char *rondo_local(const struct rondo_operation *operation, uint32_t buffer, uint64_t element)
{
    return operation->buffers[buffer] + element * operation->element_bytes;
}

/* The current slice of a chunk in the peer's memory. Layouts are the same on all ranks of a program with direct ends. */
RONDO_FUNCTION char *rondo_remote(const struct rondo_run *run, const struct rondo_end *end, uint32_t buffer, uint32_t index)
{
    uint64_t element = rondo_slice_extent(run->operation, run->context, buffer, index).offset;
    return end->direct[buffer] + element * run->operation->element_bytes;
}

/* The local chunk's place among the received sources. */
RONDO_FUNCTION void rondo_add_local(struct rondo_run *run, struct rondo_piece *piece, uint32_t buffer, uint32_t index,
                                    int place)
{
    uint64_t element = rondo_slice_extent(run->operation, run->context, buffer, index).offset;
    for (int i = piece->sources; i > place; i--) {
        piece->source[i] = piece->source[i - 1];
        piece->source_flags[i] = piece->source_flags[i - 1];
    }
    uint64_t below = ((uint64_t) 1 << place) - 1;
    piece->ll_sources = (piece->ll_sources & below) | (piece->ll_sources & ~below) << 1;
    piece->source[place] = rondo_local(run->operation, buffer, element);
    piece->sources++;
}

RONDO_FUNCTION void rondo_describe_sources(struct rondo_run *run, const struct rondo_instruction *instruction, uint32_t k,
                                           size_t slot_offset, struct rondo_piece *piece)
{
    int received = instruction->actions & RONDO_RECEIVE ? instruction->receive_count : 0;
    piece->sources = 0;
    piece->ll_sources = 0;
    for (int i = 0; i < received; i++) {
        const struct rondo_end *end = run->ends[instruction->receive_first + i];
        if (instruction->flags & RONDO_DIRECT_IN) {
            piece->source[i] = rondo_remote(run, end, RONDO_INPUT, instruction->remote_index + k);
        } else if (end->protocol == RONDO_PROTOCOL_LL) {
            piece->source[i] = rondo_slot(end) + 2 * slot_offset;
            piece->source_flags[i] = (uint32_t) (end->position + 1);
            piece->ll_sources |= (uint64_t) 1 << i;
        } else {
            piece->source[i] = rondo_slot(end) + slot_offset;
        }
        piece->sources++;
    }
    if ((instruction->actions & RONDO_REDUCE) || !received)
        rondo_add_local(run, piece, instruction->source_buffer, instruction->source_index + k,
                        instruction->local_place < received ? instruction->local_place : received);
    if ((instruction->actions & RONDO_REDUCE) && !received)
        rondo_add_local(run, piece, instruction->destination_buffer, instruction->destination_index + k, piece->sources);
}

RONDO_FUNCTION void rondo_describe_destinations(struct rondo_run *run, const struct rondo_instruction *instruction, uint32_t k,
                                                size_t slot_offset, uint64_t element, struct rondo_piece *piece)
{
    int sent = instruction->actions & RONDO_SEND ? instruction->send_count : 0;
    piece->local =
        instruction->actions & RONDO_COPY ? rondo_local(run->operation, instruction->destination_buffer, element) : NULL;
    piece->remotes = (uint8_t) sent;
    piece->ll_remotes = 0;
    for (int i = 0; i < sent; i++) {
        const struct rondo_end *end = run->ends[instruction->send_first + i];
        if (instruction->flags & RONDO_DIRECT_OUT) { /* the signal came in by the peer's other end */
            const struct rondo_end *from = run->ends[instruction->receive_first + i];
            piece->remote[i] = rondo_remote(run, from, RONDO_OUTPUT, instruction->remote_index + k);
        } else if (end->protocol == RONDO_PROTOCOL_LL) {
            piece->remote[i] = rondo_slot(end) + 2 * slot_offset;
            piece->remote_flags[i] = (uint32_t) (end->position + 1);
            piece->ll_remotes |= (uint64_t) 1 << i;
        } else {
            piece->remote[i] = rondo_slot(end) + slot_offset;
        }
    }
}

/* What the code has to do, once sources and destinations are known. Programs that compress have no direct ends. */
RONDO_FUNCTION void rondo_describe_codec(const struct rondo_run *run, const struct rondo_instruction *instruction, uint32_t k,
                                         struct rondo_piece *piece)
{
    const struct rondo_operation *operation = run->operation;
    int received = instruction->actions & RONDO_RECEIVE ? instruction->receive_count : 0;
    int place = instruction->local_place < received ? instruction->local_place : received;
    uint64_t all = ~(uint64_t) 0 >> (64 - piece->sources);
    int recodes = instruction->flags & RONDO_RECODE;
    piece->rate = (uint8_t) operation->rate;
    piece->coded_sources = received == 0 ? 0 : piece->sources == received ? all : all & ~((uint64_t) 1 << place);
    piece->codec = 0;
    if (piece->remotes > 0 && received > 0 && piece->sources == 1 && !recodes)
        piece->codec = RONDO_CODEC_FORWARD;
    else if ((piece->remotes > 0 && !recodes) || ((instruction->flags & RONDO_ROUND) && received == 0))
        piece->codec = RONDO_CODEC_ROUND;
    if ((instruction->flags & RONDO_ROUND) && received > 0)
        piece->codec |= RONDO_CODEC_STORED;
    piece->feedback = instruction->feedback;
    piece->residual = NULL;
    if (operation->residual != NULL && instruction->feedback != 0) {
        size_t computed = operation->element_bytes == sizeof(double) ? sizeof(double) : sizeof(float);
        piece->residual =
            operation->residual +
            rondo_slice_extent(operation, run->context, instruction->source_buffer, instruction->source_index + k).offset *
                computed;
    }
}

/* What the primitive does to the current slice of its k-th chunks. Pieces lie one after the other in a slot. */
RONDO_FUNCTION void rondo_describe(struct rondo_run *run, const struct rondo_instruction *instruction, uint32_t k,
                                   size_t slot_offset, struct rondo_extent extent, struct rondo_piece *piece)
{
    const struct rondo_operation *operation = run->operation;
    int finishes = instruction->flags & RONDO_FINISH;
    piece->count = extent.count;
    piece->average = finishes ? operation->average : 0;
    piece->type = operation->type;
    piece->op = operation->op;
    piece->element_bytes = operation->element_bytes;
    piece->streaming = operation->streaming;
    rondo_describe_sources(run, instruction, k, slot_offset, piece);
    rondo_describe_destinations(run, instruction, k, slot_offset, extent.offset, piece);
    piece->rate = 0;
    if (operation->rate != 0)
        rondo_describe_codec(run, instruction, k, piece);
    int logical = operation->op == RONDO_LAND || operation->op == RONDO_LOR || operation->op == RONDO_LXOR;
    if (logical && finishes && piece->sources == 1) { /* one contribution alone becomes 0 or 1 too: x or x */
        piece->source[1] = piece->source[0];
        piece->source_flags[1] = piece->source_flags[0];
        piece->ll_sources |= piece->ll_sources << 1;
        piece->sources = 2;
        piece->op = RONDO_LOR;
    }
}

/* Tells each receiver where this rank's buffers are, or learns it from each sender. */
RONDO_FUNCTION void rondo_exchange_signals(struct rondo_run *run, const struct rondo_instruction *instruction)
{
    const struct rondo_operation *operation = run->operation;
    if (instruction->actions & RONDO_SEND)
        for (uint32_t i = 0; i < instruction->send_count; i++) {
            struct rondo_signal *signal = (struct rondo_signal *) (void *) rondo_slot(run->ends[instruction->send_first + i]);
            for (int b = 0; b < 2; b++) {
                signal->window[b] = operation->windows[b][0];
                signal->offset[b] = operation->windows[b][1];
            }
        }
    if (instruction->actions & RONDO_RECEIVE)
        for (uint32_t i = 0; i < instruction->receive_count; i++) {
            struct rondo_end *end = run->ends[instruction->receive_first + i];
            const struct rondo_signal *signal = (const struct rondo_signal *) (const void *) rondo_slot(end);
            for (int b = 0; b < 2; b++)
                end->direct[b] = end->windows[signal->window[b]] + signal->offset[b];
        }
}

/* ---- publishing ---- */

/* The primitive's slots count as filled and taken from here on, though others are told later. */
RONDO_FUNCTION void rondo_commit(struct rondo_run *run, const struct rondo_instruction *instruction, size_t bytes)
{
    if ((instruction->actions & RONDO_SEND) && !(instruction->flags & RONDO_DIRECT_OUT)) {
        for (uint32_t i = 0; i < instruction->send_count; i++)
            run->ends[instruction->send_first + i]->position++;
        rondo_count(&run->statistics->bytes_sent, bytes * instruction->send_count);
    }
    if ((instruction->actions & RONDO_RECEIVE) && !(instruction->flags & RONDO_DIRECT_IN))
        for (uint32_t i = 0; i < instruction->receive_count; i++)
            run->ends[instruction->receive_first + i]->position++;
    run->unpublished = instruction;
    run->advanced = 1;
    run->budget = run->budget > run->policy->cap / run->policy->boost ? run->policy->cap : run->budget * run->policy->boost;
    rondo_count(&run->statistics->primitives, 1);
}

/* Tells the peers. Release: the payload before the tail, the end of our reading before the head. LL needs no tail (its flags
 * tell), only credits, and the values that were read through it have been used by now. */
RONDO_FUNCTION void rondo_publish(struct rondo_run *run)
{
    const struct rondo_instruction *instruction = run->unpublished;
    if (instruction == NULL)
        return;
    run->unpublished = NULL;
    int sends = (instruction->actions & RONDO_SEND) && !(instruction->flags & RONDO_DIRECT_OUT);
    int receives = (instruction->actions & RONDO_RECEIVE) && !(instruction->flags & RONDO_DIRECT_IN);
    if (sends && run->ends[instruction->send_first]->protocol != RONDO_PROTOCOL_LL) {
        rondo_publish_begin();
        for (uint32_t i = 0; i < instruction->send_count; i++) {
            struct rondo_end *end = run->ends[instruction->send_first + i];
            rondo_publish_word(end->published, end->position);
        }
    }
    RONDO_TEAM_REST(run->team);
    for (uint32_t i = 0; receives && i < instruction->receive_count; i++) {
        struct rondo_end *end = run->ends[instruction->receive_first + i];
        rondo_publish_word(end->published, end->position);
    }
}

/* Whatever has been begun is done, and told. */
RONDO_FUNCTION void rondo_settle(struct rondo_run *run)
{
    if (RONDO_TEAM_OVERLAPS)
        rondo_team_finish(run->team);
    rondo_publish(run);
}

/* ---- the interpreter ---- */

RONDO_FUNCTION int rondo_receives_ll(const struct rondo_run *run, const struct rondo_instruction *instruction)
{
    return (instruction->actions & RONDO_RECEIVE) && !(instruction->flags & RONDO_DIRECT_IN) &&
           instruction->receive_count > 0 && run->ends[instruction->receive_first]->protocol == RONDO_PROTOCOL_LL;
}

/* The piece's data have to be waited for by the team. It stores nothing before all are there. 0: stuck. */
RONDO_FUNCTION int rondo_begin_polling(struct rondo_run *run, const struct rondo_instruction *instruction)
{
    uint64_t most = run->policy->preempt && run->budget < 256 ? run->budget : 256, polls = most;
    rondo_team_begin(run->team, most);
    rondo_publish(run); /* of the primitive before: while the team polls */
    while (!rondo_team_finish(run->team)) {
        if (rondo_outrun(run, polls)) {
            rondo_report_missing(run, run->ends[instruction->receive_first]);
            return 0;
        }
        polls += most;
        rondo_team_repeat(run->team);
    }
    return 1;
}

/* One slice of the instruction: everything it waits for is there, but for LL data where the team looks for them. The last piece
 * may go on while the next slice is prepared. 0: stuck. */
RONDO_FUNCTION int rondo_move(struct rondo_run *run, const struct rondo_instruction *instruction)
{
    struct rondo_context *context = run->context;
    int polls = RONDO_TEAM_POLLS_LL && rondo_receives_ll(run, instruction);
    size_t slot_offset = 0;
    uint32_t buffer, index;
    rondo_measured_chunk(instruction, &buffer, &index);
    for (uint32_t k = 0; k < instruction->count; k++) {
        struct rondo_extent extent = rondo_slice_extent(run->operation, context, buffer, index + k);
        size_t bytes = extent.count * run->operation->element_bytes;
        if (bytes > 0 && k >= context->piece) {
            rondo_describe(run, instruction, k, slot_offset, extent, rondo_team_piece(run->team));
            rondo_team_finish(run->team); /* the piece before */
            if (polls && !rondo_begin_polling(run, instruction)) {
                run->advanced |= context->piece != k;
                context->piece = k;
                return 0;
            }
            if (!polls) {
                rondo_team_begin(run->team, 0);
                rondo_publish(run);
            }
        }
        slot_offset += rondo_piece_bytes(rondo_payload_bytes(run->operation, extent.count));
    }
    context->piece = 0;
    return 1;
}

/* 0: stuck. */
RONDO_FUNCTION int rondo_run_signal(struct rondo_run *run, const struct rondo_instruction *instruction)
{
    if (run->context->tile != 0)
        return 1;
    rondo_settle(run);
    if (!rondo_wait_ready(run, instruction, sizeof(struct rondo_signal)))
        return 0;
    rondo_exchange_signals(run, instruction);
    rondo_commit(run, instruction, sizeof(struct rondo_signal));
    rondo_publish(run);
    return 1;
}

/* What compression saved of the current slice: its elements' own bytes, less those of their streams. Rates above an element's
 * bits save nothing. */
RONDO_FUNCTION void rondo_count_saved(const struct rondo_run *run, const struct rondo_instruction *instruction, size_t bytes)
{
    uint32_t buffer, index;
    size_t plain = 0;
    rondo_measured_chunk(instruction, &buffer, &index);
    for (uint32_t k = 0; k < instruction->count; k++)
        plain += rondo_slice_extent(run->operation, run->context, buffer, index + k).count * run->operation->element_bytes;
    if (plain > bytes)
        rondo_count(&run->statistics->bytes_saved, (plain - bytes) * instruction->send_count);
}

/* All slices of the instruction in the current tile. 0: stuck; context->slice says at which. */
RONDO_FUNCTION int rondo_run_slices(struct rondo_run *run, const struct rondo_instruction *instruction)
{
    struct rondo_context *context = run->context;
    size_t bytes = rondo_slice_bytes(run, instruction);
    while (bytes > 0) {
        if (rondo_missing(run, instruction, bytes) != NULL) {
            rondo_settle(run); /* the peers may be waiting for it */
            if (!rondo_wait_ready(run, instruction, bytes))
                return 0;
        }
        if (!rondo_move(run, instruction))
            return 0;
        if (run->operation->rate != 0 && (instruction->actions & RONDO_SEND))
            rondo_count_saved(run, instruction, bytes);
        context->slice++;
        rondo_publish(run); /* of the primitive before, if this one moved nothing */
        rondo_commit(run, instruction, bytes);
        if (!RONDO_TEAM_OVERLAPS)
            rondo_publish(run);
        bytes = context->slice * run->operation->slice < run->operation->tile ? rondo_slice_bytes(run, instruction) : 0;
    }
    context->slice = 0;
    return 1;
}

RONDO_FUNCTION enum rondo_outcome rondo_interpret(struct rondo_run *run)
{
    struct rondo_context *context = run->context;
    while (context->tile < run->operation->tiles) {
        while (context->instruction < run->part->instruction_count) {
            const struct rondo_instruction *instruction = run->instructions + context->instruction;
            int done =
                instruction->flags & RONDO_SIGNAL ? rondo_run_signal(run, instruction) : rondo_run_slices(run, instruction);
            if (!done)
                return RONDO_OUTCOME_STUCK;
            if (instruction->flags & RONDO_NOTIFY) { /* release: this instruction's stores before its semaphore */
                rondo_settle(run);
                rondo_store_release_device(run->semaphores + run->program_block,
                                           rondo_semaphore_value(run, run->program_block, context->instruction));
            }
            context->instruction++;
            run->advanced = 1;
        }
        context->instruction = 0;
        context->tile++;
    }
    return RONDO_OUTCOME_FINISHED;
}

/* Runs on from the context until the block's list is done or a wait outruns the budget. */
RONDO_FUNCTION enum rondo_outcome rondo_engine_run(struct rondo_run *run)
{
    run->unpublished = NULL;
    run->advanced = 0;
    rondo_team_load(run->team, run);
    enum rondo_outcome outcome = rondo_interpret(run);
    rondo_settle(run);
    rondo_team_unload(run->team, run);
    return outcome;
}

#endif
