/*
 * Where a slice operation finds its data: which connectors an instruction uses, and how their positions, the chunks of a
 * buffer and a rate become addresses. Single source; a worker group resolves the addresses (device/engine/workers.h), on a GPU
 * all at once.
 */
#ifndef RONDO_DEVICE_ENGINE_USE_H
#define RONDO_DEVICE_ENGINE_USE_H

#include "device/move/low_latency.h"
#include "device/abi/slice_operation.h"
#include "device/abi/platform.h"
#include "device/abi/structures.h"
#include "device/codec/zfp_block.h"

/* The ends of an instruction have one protocol. */
struct rondo_use {
    uint8_t receive_first, received, send_first, sent;
    uint8_t direct_in, direct_out;
    uint8_t local_place; /* place of the local source among the received ones; received: after them, or there is none */
    uint8_t twice;       /* the only source counts as two */
    size_t slot_offset;
    uint64_t direct_in_offset, direct_out_offset; /* bytes from the start of the peer's input, and output */
    char *direct_write;                           /* where the data go; NULL: into slots, or as direct_out says */
    /* Of slice operations with a rate: the instruction, its chunk, and the element at which the slice begins. */
    uint32_t instruction, chunk;
    uint64_t start;
};

/* Address of the slot at a position. */
RONDO_FUNCTION char *rondo_slot_at(const struct rondo_end *end, uint64_t position)
{
    return end->slots + (position & (end->slot_count - 1)) * end->slot_bytes;
}

/* Whether the end's slots have their tails in them: in the line where the data begin, so that one line travels instead of two.
 */
RONDO_FUNCTION int rondo_has_tails_in_slots(const struct rondo_end *end)
{
    return end->protocol == RONDO_PROTOCOL_TINY || end->protocol == RONDO_PROTOCOL_MULTICAST_TINY;
}

/* Whether the slots are one sender's for several receivers. */
RONDO_FUNCTION int rondo_is_multicast(uint32_t protocol)
{
    return protocol == RONDO_PROTOCOL_MULTICAST || protocol == RONDO_PROTOCOL_MULTICAST_TINY;
}

/* Whether a receiver that has taken the end's slots up to its position tells the sender now. Rings of many slots give slots
 * back by the quarter: the sender then fetches the head's line less often while the ring is full, and the receiver seldom
 * stores it. It withholds less than a quarter of the slots, so a sender without a free one has filled more than the receiver
 * has taken: the receiver can go on, and comes to the end of the quarter. */
RONDO_FUNCTION int rondo_gives_back(const struct rondo_end *end)
{
#if defined(__CUDACC__)
    (void) end;
    return 1; /* such connectors are the host's */
#else
    const int by_quarters = rondo_has_tails_in_slots(end) || rondo_is_multicast(end->protocol);
    return !by_quarters || (end->position & (end->slot_count / 4 - 1)) == 0;
#endif
}

/* The word in which the sender announces a slot, and at which the receiver looks. beside: the tail of connectors whose slots
 * have none. A tail in a slot holds the same count. */
RONDO_FUNCTION uint64_t *rondo_tail(const struct rondo_end *end, uint64_t position, uint64_t *beside)
{
#if defined(__CUDACC__)
    (void) position;
    return beside; /* such connectors are the host's */
#else
    return rondo_has_tails_in_slots(end) ? (uint64_t *) (void *) (rondo_slot_at(end, position) - RONDO_TINY_HEAD) : beside;
#endif
}

/* Address in a slot at which a slice operation begins that is preceded by so many bytes of data. */
RONDO_FUNCTION char *rondo_slot_place(const struct rondo_end *end, uint64_t position, size_t offset)
{
    size_t place = end->protocol == RONDO_PROTOCOL_LL      ? 2 * offset
                   : end->protocol == RONDO_PROTOCOL_LL128 ? rondo_line_bytes(offset)
                                                           : offset;
    return rondo_slot_at(end, position) + place;
}

/* Resolves the i-th received source. position: the end's, of the slot that holds it. */
RONDO_FUNCTION void rondo_resolve_source(const struct rondo_use *use, const struct rondo_end *end, uint64_t position,
                                         uint32_t i, struct rondo_slice_op *slice_op)
{
    uint32_t place = i < use->local_place ? i : i + 1;
    const char *source =
        use->direct_in ? end->direct[RONDO_INPUT] + use->direct_in_offset : rondo_slot_place(end, position, use->slot_offset);
    slice_op->source[place] = source;
    slice_op->source_flags[place] = (uint32_t) (position + 1);
    if (use->twice) {
        slice_op->source[1] = source;
        slice_op->source_flags[1] = (uint32_t) (position + 1);
    }
}

/* Resolves the i-th remote. from: the end that has received the peer's signal, for direct_out; position: as above. */
RONDO_FUNCTION void rondo_resolve_remote(const struct rondo_use *use, const struct rondo_end *end, const struct rondo_end *from,
                                         uint64_t position, uint32_t i, struct rondo_slice_op *slice_op)
{
    slice_op->remote[i] = use->direct_write != NULL ? use->direct_write
                          : use->direct_out         ? from->direct[RONDO_OUTPUT] + use->direct_out_offset
                                                    : rondo_slot_place(end, position, use->slot_offset);
    slice_op->remote_flags[i] = (uint32_t) (position + 1);
}

/* Extent of a chunk of a buffer, in elements. */
RONDO_FUNCTION struct rondo_extent rondo_chunk_extent(const struct rondo_layout *layout, uint32_t index)
{
    struct rondo_extent extent;
    const struct rondo_extent *table = layout->table;
    uint64_t count = layout->group_count, most = layout->chunk_count, within = 0;
    uint32_t chunks = layout->group_chunks;
    if (table != NULL)
        return table[index];
    extent.offset = index * count;
    if (chunks > 1) { /* a division is slow */
        within = index % chunks * most;
        extent.offset = index / chunks * count + within;
    }
    extent.count = within >= count ? 0 : count - within < most ? count - within : most;
    return extent;
}

/* A word whose count (up to 64) lowest bits are 1. */
RONDO_FUNCTION uint64_t rondo_low_bits(uint32_t count)
{
    return count >= 64 ? UINT64_MAX : ((uint64_t) 1 << count) - 1;
}

/* Bytes, rounded up to where the next slice operation of a slot begins. */
RONDO_FUNCTION size_t rondo_slice_op_bytes(size_t bytes)
{
    return (bytes + RONDO_SLICE_OP_ALIGNMENT - 1) & ~(size_t) (RONDO_SLICE_OP_ALIGNMENT - 1);
}

/* Whether the end's slots carry flags, which announce them: they need no tail. */
RONDO_FUNCTION int rondo_is_flagged(const struct rondo_end *end)
{
    return end->protocol == RONDO_PROTOCOL_LL || end->protocol == RONDO_PROTOCOL_LL128;
}

/* Resolves what the codec has to do in a slice operation with a rate. Programs that compress have no direct ends. Returns
 * the bytes that compression saves: those of the elements sent less those of their streams, or 0. */
RONDO_FUNCTION size_t rondo_resolve_codec(const struct rondo_use *use, const struct rondo_instruction *instruction,
                                          const struct rondo_operation *operation, struct rondo_slice_op *slice_op)
{
    size_t plain = slice_op->count * slice_op->element_bytes,
           stream = rondo_slice_op_bytes(rondo_zfp_bytes(slice_op->count, slice_op->rate));
    int received = use->received, recodes = instruction->flags & RONDO_RECODE;
    uint64_t all = rondo_low_bits(slice_op->sources);
    slice_op->coded_sources = received == 0                   ? 0
                              : slice_op->sources == received ? all
                                                              : all & ~((uint64_t) 1 << use->local_place);
    slice_op->codec = 0;
    if (slice_op->remotes > 0 && received > 0 && slice_op->sources == 1 && !recodes)
        slice_op->codec = RONDO_CODEC_FORWARD;
    else if ((slice_op->remotes > 0 && !recodes) || ((instruction->flags & RONDO_ROUND) && received == 0))
        slice_op->codec = RONDO_CODEC_ROUND;
    if ((instruction->flags & RONDO_ROUND) && received > 0)
        slice_op->codec |= RONDO_CODEC_STORED;
    slice_op->feedback = instruction->feedback;
    slice_op->residual = NULL;
    if (operation->residual != NULL && instruction->feedback != 0) {
        size_t computed = operation->element_bytes == sizeof(double) ? sizeof(double) : sizeof(float);
        const struct rondo_layout *layout = &operation->layouts[instruction->source_buffer];
        uint64_t first = rondo_chunk_extent(layout, instruction->source_index + use->chunk).offset + use->start;
        slice_op->residual = operation->residual + first * computed;
    }
    return plain > stream ? (plain - stream) * slice_op->remotes : 0;
}

#endif
