/*
 * Describing: turns the slice of an instruction into a slice operation (device/abi/slice_operation.h) and a use of connectors
 * (device/engine/use.h), all but where the connectors stand. Single source; by the thread that runs the engine.
 */
#ifndef RONDO_DEVICE_ENGINE_DESCRIBE_H
#define RONDO_DEVICE_ENGINE_DESCRIBE_H

#include "device/abi/slice_operation.h"
#include "device/engine/run.h"
#include "device/engine/slices.h"
#include "device/engine/use.h"

/* Address of the stretch of a chunk in one of this rank's buffers. */
RONDO_FUNCTION char *rondo_local(const struct rondo_run *run, uint32_t buffer, struct rondo_extent chunk,
                                 struct rondo_stretch stretch)
{
    return run->operation->buffers[buffer] + (chunk.offset + stretch.start) * run->element_bytes;
}

/* The same, of the chunk with this index. */
RONDO_FUNCTION char *rondo_local_chunk(const struct rondo_run *run, uint32_t buffer, uint32_t index,
                                       struct rondo_stretch stretch)
{
    return rondo_local(run, buffer, rondo_chunk_extent(&run->operation->layouts[buffer], index), stretch);
}

/* Bytes from a buffer's start to the stretch of a chunk. */
RONDO_FUNCTION uint64_t rondo_chunk_bytes(const struct rondo_run *run, uint32_t buffer, uint32_t index,
                                          struct rondo_stretch stretch)
{
    return (rondo_chunk_extent(&run->operation->layouts[buffer], index).offset + stretch.start) * run->element_bytes;
}

/* The part of a slice that one slice operation moves. */
struct rondo_slice_part {
    uint32_t k;                   /* of the instruction's chunks */
    size_t slot_offset;           /* bytes of data that earlier slice operations of the slice take of each slot */
    struct rondo_extent measured; /* extent of the k-th measured chunk */
    struct rondo_stretch stretch; /* what the slice covers of it */
};

/* Describes what the instruction does to a part of a slice: fills in *slice_op and *use. Addresses of slots are resolved later
 * (rondo_resolve_source, rondo_resolve_remote). */
RONDO_FUNCTION void rondo_describe(const struct rondo_run *run, const struct rondo_instruction *instruction,
                                   struct rondo_slice_part part, struct rondo_slice_op *slice_op, struct rondo_use *use)
{
    const struct rondo_operation *operation = run->operation;
    const uint8_t actions = instruction->actions, flags = instruction->flags;
    const int finishes = flags & RONDO_FINISH, receives = actions & RONDO_RECEIVE, copies = actions & RONDO_COPY;
    const uint8_t received = receives ? instruction->receive_count : 0,
                  sent = actions & RONDO_SEND ? instruction->send_count : 0;
    uint8_t sources = received, op = operation->op;
    use->receive_first = instruction->receive_first;
    use->received = received;
    use->send_first = instruction->send_first;
    use->sent = sent;
    use->direct_in = (flags & RONDO_DIRECT_IN) != 0;
    use->direct_out = (flags & RONDO_DIRECT_OUT) != 0;
    use->local_place = received;
    use->slot_offset = part.slot_offset;
    use->direct_write = NULL;
    /* Layouts are the same on all ranks of a program with direct ends. */
    if (receives && use->direct_in)
        use->direct_in_offset = rondo_chunk_bytes(run, RONDO_INPUT, instruction->remote_index + part.k, part.stretch);
    if (sent > 0 && use->direct_out)
        use->direct_out_offset = rondo_chunk_bytes(run, RONDO_OUTPUT, instruction->remote_index + part.k, part.stretch);
    slice_op->count = rondo_covered(part.measured, part.stretch);
    slice_op->average = finishes ? operation->average : 0;
    slice_op->type = operation->type;
    slice_op->element_bytes = run->element_bytes;
#if !defined(__CUDACC__)
    slice_op->user = operation->op == RONDO_BY_USER ? operation->user : NULL;
#endif
    slice_op->streaming = operation->streaming;
    slice_op->far = receives && use->direct_in;
    slice_op->local = copies ? rondo_local(run, instruction->destination_buffer, part.measured, part.stretch) : NULL;
    slice_op->exchanges = (flags & RONDO_EXCHANGE) != 0;
    if ((actions & RONDO_REDUCE) || !receives) {
        uint8_t buffer = instruction->source_buffer;
        use->local_place = instruction->local_place < received ? instruction->local_place : received;
        slice_op->source[use->local_place] =
            copies ? rondo_local_chunk(run, buffer, instruction->source_index + part.k, part.stretch)
                   : rondo_local(run, buffer, part.measured, part.stretch);
        sources++;
    }
    if ((actions & RONDO_REDUCE) && !receives)
        slice_op->source[sources++] =
            rondo_local_chunk(run, instruction->destination_buffer, instruction->destination_index + part.k, part.stretch);
    int logical = op == RONDO_LAND || op == RONDO_LOR || op == RONDO_LXOR;
    use->twice = logical && finishes && sources == 1; /* one contribution alone becomes 0 or 1 too: x or x */
    if (use->twice) {
        if (!receives)
            slice_op->source[1] = slice_op->source[0];
        sources = 2;
        op = RONDO_LOR;
    }
    slice_op->op = op;
    slice_op->sources = sources;
    slice_op->remotes = sent;
    slice_op->ll_sources = slice_op->ll_remotes = 0;
    slice_op->lines = 0;
    slice_op->sent = (uint8_t) run->sent;
    if (received > 0 && !use->direct_in && rondo_is_flagged(rondo_end_of(run, use->receive_first))) {
        slice_op->lines = rondo_end_of(run, use->receive_first)->protocol == RONDO_PROTOCOL_LL128;
        uint64_t all = rondo_low_bits(received), below = rondo_low_bits(use->local_place);
        slice_op->ll_sources = use->twice ? 3 : (all & below) | (use->local_place < received ? (all & ~below) << 1 : 0);
    }
    if (sent > 0 && !use->direct_out && rondo_is_flagged(rondo_end_of(run, use->send_first))) {
        slice_op->lines = rondo_end_of(run, use->send_first)->protocol == RONDO_PROTOCOL_LL128;
        slice_op->ll_remotes = rondo_low_bits(sent);
    }
    slice_op->rate = (uint8_t) operation->rate;
    if (operation->rate != 0) {
        use->instruction = run->instruction;
        use->chunk = part.k;
        use->start = part.stretch.start;
    }
}

#endif
