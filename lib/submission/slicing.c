/* Slicing (lib/submission/slicing.h), for each protocol and kind of connection. Relies on values that all ranks of a
 * communicator agree on, because sender and receiver must cut alike. */
#include "lib/submission/slicing.h"

#include "device/engine/engine.h"
#include "lib/connection/lane.h"
#include "lib/base/error.h"

#define UNKNOWN_CHUNK        ((uint64_t) 1 << 40)
/* Of what is moved without slots. On a GPU they are whole rounds of a block, however many its sources are; a kernel on a
 * stream, which nothing preempts, takes long ones, because at the end of each a block waits for its last loads. */
#define DIRECT_SLICE_BYTES   ((uint64_t) 368640)
#define DIRECT_STREAM_SLICE  (12 * DIRECT_SLICE_BYTES)
/* Elements of a compressed slice, most and least. A GPU's block takes longer to code a slice than the link to move it, so peers
 * work on one slice while the block codes the next. Each slice has a fixed cost, so shorter ones do not pay
 * (docs/guide/compression.md). */
#define CODED_SLICE          ((uint64_t) 64 * 1024)
#define CODED_SLICE_MIN      ((uint64_t) 6 * 1024)
#define TMA_SLICES           32 /* most of a tile */
/* Least of a slice that GPUs pipeline: a shorter one takes longer to publish than to move. And least number of them where data
 * go from rank to rank, of which the last begins when the first slice has come to it. */
#define SLICE_BYTES_MIN      ((uint64_t) 96 * 1024)
#define CHAIN_SLICES         6
/* GPUs whose slots are in host memory: most bytes of all slots of a rank's operation, so that the slots stay in the processor's
 * cache. Compressed slots may have more, because they hold fewer bytes than their slices and have a larger cost per slice. */
#define HOST_SLOTS_BYTES     ((uint64_t) 4 << 20)
#define HOST_CODED_BYTES     ((uint64_t) 16 << 20) /* at most RONDO_HOST_CODED_BYTES a slot */
#define HOST_SLICE_BYTES_MIN ((uint64_t) 8 * 1024)

static uint64_t smaller(uint64_t one, uint64_t other)
{
    return one < other ? one : other;
}

static uint64_t larger(uint64_t one, uint64_t other)
{
    return one > other ? one : other;
}

/* ---- what a slot holds ---- */

/* A slot's share of the bytes that the slots of all connectors of a rank may have together in host memory. */
static uint64_t host_payload(const struct rondo_request *request, const struct rondo_choice *choice)
{
    const uint64_t all = choice->protocol == RONDO_PROTOCOL_COMPRESSED ? HOST_CODED_BYTES : HOST_SLOTS_BYTES;
    const uint64_t peers = choice->algorithm->reduces_all ? (uint64_t) request->comm->size - 1 : 1;
    return larger(all / ((uint64_t) choice->channels * peers * request->lane->slot_count), HOST_SLICE_BYTES_MIN);
}

/* Bytes of data that a slot holds, of all chunks that are sent together. */
static uint64_t slot_payload(const struct rondo_request *request, const struct rondo_plan *plan,
                             const struct rondo_choice *choice)
{
    const uint64_t slot = request->lane->slot_bytes[choice->protocol], chunks = plan->program->largest_count;
    switch (choice->protocol) {
    case RONDO_PROTOCOL_LL: /* half of it are flags; the host device unpacks what it receives into a staging buffer */
        return request->comm->gpus_only ? slot / 2 : smaller(slot / 2, RONDO_STAGING_BYTES / (plan->largest_receive + 1));
    case RONDO_PROTOCOL_LL128: /* each chunk has whole lines */
        return slot / RONDO_LINE_BYTES / chunks * chunks * RONDO_LINE_DATA;
    case RONDO_PROTOCOL_TINY:
    case RONDO_PROTOCOL_MULTICAST_TINY:
        return slot - RONDO_TINY_SLOT(0);
    case RONDO_PROTOCOL_SIMPLE:
    case RONDO_PROTOCOL_COMPRESSED:
        return request->comm->by_host ? smaller(slot, host_payload(request, choice)) : slot;
    default:
        return slot;
    }
}

/* Elements of each of so many chunks that fit into the payload; 0: none do. */
static uint64_t longest_slice(const struct rondo_operation *operation, uint64_t payload, uint64_t chunks)
{
    const uint64_t bytes = payload / chunks / RONDO_SLICE_OP_ALIGNMENT * RONDO_SLICE_OP_ALIGNMENT;
    if (operation->rate == 0)
        return bytes / operation->element_bytes;
    const uint64_t values = 8 * bytes / operation->rate; /* in whole groups of blocks, where there is room for one */
    return values - values % (values >= 64 ? 64 : RONDO_ZFP_VALUES);
}

/* ---- slices of a tile ---- */

/* The size of a slice if a chunk of most elements is cut into so many slices of one size. */
static uint64_t even_slice(uint64_t most, uint64_t slices)
{
    return rondo_round_up(rondo_divide_up(most, slices), RONDO_CACHE_LINE);
}

/* The size of a slice if a chunk of most elements is cut into as few slices of one size as it takes. Not more than slice,
 * because whole cache lines may be more than a slot holds. */
static uint64_t evened(uint64_t most, uint64_t slice)
{
    return smaller(even_slice(most, rondo_divide_up(most, slice)), slice);
}

/* Makes tiles of two slices: while the block's threads move one, the one before is published. */
static void two_a_tile(struct rondo_operation *operation, uint32_t slot_count)
{
    if (slot_count >= 4)
        operation->tile = 2 * operation->slice;
}

/* Cuts a chunk into slices of one size, an even number of them, and fewest at least as far as none is less than least. */
static void spread_slices(struct rondo_operation *operation, uint64_t most, uint64_t fewest, uint64_t least,
                          uint32_t slot_count)
{
    uint64_t slices = larger(rondo_divide_up(most, operation->slice), fewest);
    if (slices % 2 == 1)
        slices++;
    operation->slice = smaller(operation->slice, larger(even_slice(most, slices), least));
    two_a_tile(operation, slot_count);
}

/* The same for compressed slices, but a chunk that is too short for two is one slice. */
static void coded_slices(struct rondo_operation *operation, uint64_t most, uint32_t slot_count)
{
    uint64_t slices = rondo_divide_up(most, smaller(CODED_SLICE, operation->slice));
    if (slices % 2 == 1 && most >= (slices + 1) * CODED_SLICE_MIN)
        slices++;
    operation->slice = smaller(operation->slice, even_slice(most, slices));
    two_a_tile(operation, slot_count);
}

/* Cuts tiles into enough slices of one size that the next rank has passed the first one on when the last one has been sent. */
static void tma_slices(struct rondo_operation *operation, uint64_t most)
{
    uint64_t tiles = rondo_divide_up(most, TMA_SLICES * operation->slice);
    operation->tile = even_slice(most, tiles);
    operation->slices = (uint32_t) rondo_divide_up(operation->tile, operation->slice);
    operation->slice = evened(operation->tile, operation->slice);
}

/* Cuts tiles into slices of whole packets. The last slice of a tile may be longer, up to a whole slot, to take what is left. */
static void network_slices(struct rondo_operation *operation, uint64_t most, const struct rondo_runtime *runtime)
{
    uint64_t slot = operation->slice,
             whole = larger(RONDO_NETWORK_PACKETS * rondo_network_scale(runtime->size) / operation->element_bytes, 1);
    uint64_t slice = smaller(slot, whole);
    uint64_t longest = (rondo_network_slices(runtime) - 1) * slice + slot, tiles = rondo_divide_up(most, longest);
    operation->slice = slice;
    operation->tile = tiles == 1 ? most : smaller(rondo_round_up(rondo_divide_up(most, tiles), RONDO_CACHE_LINE), longest);
    operation->slices = operation->tile > slot ? 1 + (uint32_t) rondo_divide_up(operation->tile - slot, slice) : 1;
}

/* Sets slices and tiles of a communicator of GPUs. */
static void gpu_slices(struct rondo_request *request, const struct rondo_choice *choice, uint64_t most)
{
    struct rondo_operation *operation = request->operation;
    const int around =
        request->comm->by_host && !choice->algorithm->reduces_all; /* a ring: with shorter slices the next rank begins sooner */
    switch (choice->protocol) {
    case RONDO_PROTOCOL_LL:
    case RONDO_PROTOCOL_LL128:
        operation->slice = operation->tile = evened(most, operation->slice);
        break;
    case RONDO_PROTOCOL_TMA:
        tma_slices(operation, most);
        break;
    case RONDO_PROTOCOL_SIMPLE:
        spread_slices(operation, most, rondo_collective_of(request->call.kind)->rule.rooted ? CHAIN_SLICES : 1,
                      (around ? HOST_SLICE_BYTES_MIN : SLICE_BYTES_MIN) / operation->element_bytes, request->lane->slot_count);
        break;
    case RONDO_PROTOCOL_COMPRESSED:
        coded_slices(operation, most, request->lane->slot_count);
        break;
    default:
        break;
    }
}

/* Sets slices and tiles between hosts, in a communicator that is not of GPUs only. */
static void wide_slices(struct rondo_request *request, uint64_t most)
{
    struct rondo_operation *operation = request->operation;
    if (operation->rate == 0)
        network_slices(operation, most, request->runtime);
    else
        operation->tile = rondo_network_slices(request->runtime) * operation->slice;
}

rondo_result_t rondo_slice_operation(struct rondo_request *request, const struct rondo_plan *plan,
                                     const struct rondo_choice *choice, const uint64_t largest[RONDO_BUFFERS])
{
    struct rondo_operation *operation = request->operation;
    const struct rondo_comm *comm = request->comm;
    uint64_t longest = 1;
    for (int b = 0; b < RONDO_BUFFERS; b++)
        longest = larger(longest, largest[b]);
    /* Where a rank knows but its own chunks, ranks cut alike as if there were much longer ones. */
    const uint64_t most = rondo_kind_has_own_counts(request->call.kind) ? UNKNOWN_CHUNK : longest;
    operation->slices = 0;
    if (plan->unsliced) {
        operation->slice =
            (comm->gpus_only && request->streamed ? DIRECT_STREAM_SLICE : DIRECT_SLICE_BYTES) / operation->element_bytes;
        operation->tile = most;
    } else {
        operation->slice = longest_slice(operation, slot_payload(request, plan, choice), plan->program->largest_count);
        if (operation->slice == 0)
            return rondo_fail(RONDO_ERR_UNSUPPORTED, "a slot of %u bytes cannot hold a part of %u chunks",
                              request->lane->slot_bytes[choice->protocol], plan->program->largest_count);
        operation->tile = operation->slice;
        if (comm->gpus_only)
            gpu_slices(request, choice, most);
        else if (rondo_is_wide(comm) && rondo_algorithm_single(choice->algorithm))
            wide_slices(request, most);
    }
    operation->tiles = rondo_divide_up(longest, operation->tile);
    if (operation->slices == 0)
        operation->slices = (uint32_t) rondo_divide_up(operation->tile, operation->slice);
    return RONDO_SUCCESS;
}
