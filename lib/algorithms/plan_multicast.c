/*
 * Multicast, by hand: a rank writes what all others need once, into slots that all of them read. One step of latency; what a
 * rank stores does not grow with the number of ranks. Where ranks need different chunks, a slot has those for all of them, and
 * each takes its own. What arrives is reduced in the order of ranks, so all ranks get the same bits. Two-shot: each rank
 * reduces a part and gives it to all, a step more for fewer bytes. All sends of a tile come before the receives that need them,
 * so slots are all that a rank ever waits for. Each block of the arguments is one chunk (two-shot: of an all-reduce one a
 * rank), in one block of the program, whatever the channels: it is for small data. Written by hand because a message of the
 * language has one receiver.
 */
#include "lib/algorithms/algorithms.h"

#include "device/engine/use.h"

struct multicast {
    const struct rondo_shape *shape;
    struct rondo_plan_builder *builder;
    enum rondo_protocol protocol;
    int channel; /* of the next ends */
};

static uint8_t end(const struct multicast *multicast, int peer, enum rondo_direction direction)
{
    return rondo_plan_builder_end(multicast->builder, peer, multicast->channel, direction, multicast->protocol);
}

static uint8_t own_end(const struct multicast *multicast)
{
    return end(multicast, multicast->shape->rank, RONDO_OUTGOING);
}

/* Adds ends to the slots of all other ranks, in the order of ranks. Returns the first. */
static uint8_t peer_ends(const struct multicast *multicast)
{
    const int rank = multicast->shape->rank;
    uint8_t first = 0;
    for (int peer = 0; peer < multicast->shape->size; peer++)
        if (peer != rank) {
            const uint8_t added = end(multicast, peer, RONDO_INCOMING);
            first = peer == (rank == 0 ? 1 : 0) ? added : first;
        }
    return first;
}

/* Sends consecutive chunks to all, in one slot. */
static void give(const struct multicast *multicast, enum rondo_buffer buffer, int source, int chunks)
{
    struct rondo_instruction send = {.actions = RONDO_SEND,
                                     .source_buffer = (uint8_t) buffer,
                                     .source_index = (uint32_t) source,
                                     .count = (uint16_t) chunks,
                                     .send_first = own_end(multicast),
                                     .send_count = 1};
    rondo_plan_builder_add(multicast->builder, &send);
}

/* Copies a chunk of the peer's slot to the output. */
static void take(const struct multicast *multicast, int peer, int slot_chunk, int destination)
{
    struct rondo_instruction receive = {.actions = RONDO_RECEIVE | RONDO_COPY,
                                        .destination_buffer = RONDO_OUTPUT,
                                        .destination_index = (uint32_t) destination,
                                        .count = 1,
                                        .receive_first = end(multicast, peer, RONDO_INCOMING),
                                        .receive_count = 1,
                                        .slot_chunk = (uint32_t) slot_chunk};
    rondo_plan_builder_add(multicast->builder, &receive);
}

/* Reduces a chunk of the input with what all others have sent of it. part: every slot has a chunk for each rank; else one. */
static void reduce(const struct multicast *multicast, int part, int destination)
{
    const int rank = multicast->shape->rank;
    const uint32_t chunk = part ? (uint32_t) rank : 0;
    struct rondo_instruction all = {.actions = RONDO_RECEIVE | RONDO_REDUCE | RONDO_COPY,
                                    .flags = RONDO_FINISH,
                                    .source_index = chunk,
                                    .destination_buffer = RONDO_OUTPUT,
                                    .destination_index = (uint32_t) destination,
                                    .count = 1,
                                    .receive_first = peer_ends(multicast),
                                    .receive_count = (uint8_t) (multicast->shape->size - 1),
                                    .local_place = (uint8_t) rank,
                                    .slot_chunk = chunk};
    rondo_plan_builder_add(multicast->builder, &all);
}

/* Copies what all others have sent to the output; in each step all ranks read from different ones. */
static void gather(const struct multicast *multicast, int slot_chunk)
{
    const struct rondo_shape *shape = multicast->shape;
    for (int step = 1; step < shape->size; step++) {
        const int peer = (shape->rank + step) % shape->size;
        take(multicast, peer, slot_chunk, peer);
    }
}

/* Waits for a slot of every other rank, and leaves alone what is in it. */
static void await_all(const struct multicast *multicast)
{
    const int others = multicast->shape->size - 1, most = RONDO_REDUCE_SOURCES_MAX - 1;
    const uint8_t first = peer_ends(multicast);
    for (int done = 0; done < others; done += most) {
        struct rondo_instruction some = {.actions = RONDO_RECEIVE,
                                         .count = 1,
                                         .receive_first = (uint8_t) (first + done),
                                         .receive_count = (uint8_t) (others - done < most ? others - done : most)};
        rondo_plan_builder_add(multicast->builder, &some);
    }
}

/* Whether ranks need different chunks of what a rank sends. */
static int is_in_parts(enum rondo_kind kind)
{
    return kind == RONDO_KIND_SCATTER || kind == RONDO_KIND_ALLTOALL || kind == RONDO_KIND_REDUCE_SCATTER_BLOCK;
}

static void add_instructions(const struct multicast *multicast)
{
    const struct rondo_shape *shape = multicast->shape;
    const int rank = shape->rank, rooted = shape->kind == RONDO_KIND_SCATTER || shape->kind == RONDO_KIND_BCAST;
    const int parts = is_in_parts(shape->kind);
    if (rooted && rank != shape->root) {
        take(multicast, shape->root, parts ? rank : 0, 0);
        return;
    }
    give(multicast, RONDO_INPUT, 0, parts ? shape->size : 1);
    switch (shape->kind) {
    case RONDO_KIND_ALLREDUCE:
    case RONDO_KIND_REDUCE_SCATTER_BLOCK:
        reduce(multicast, parts, 0);
        break;
    case RONDO_KIND_BARRIER:
        await_all(multicast);
        break;
    case RONDO_KIND_SCATTER:
        rondo_plan_builder_keep(multicast->builder, (uint32_t) rank, 0);
        break;
    case RONDO_KIND_ALLGATHER:
    case RONDO_KIND_ALLGATHERV:
        rondo_plan_builder_keep(multicast->builder, 0, (uint32_t) rank);
        gather(multicast, 0);
        break;
    case RONDO_KIND_ALLTOALL:
        rondo_plan_builder_keep(multicast->builder, (uint32_t) rank, (uint32_t) rank);
        gather(multicast, rank);
        break;
    default: /* broadcast: the root has its output already */
        break;
    }
}

/* parts: slots have a chunk for each rank; all ranks cut as those that fill them do. */
static rondo_result_t finish(const struct multicast *multicast, const uint32_t chunks[RONDO_BUFFERS], int parts,
                             struct rondo_plan **plan)
{
    rondo_result_t result = rondo_plan_builder_finish(multicast->builder, chunks, plan);
    if (result == RONDO_SUCCESS && parts)
        (*plan)->program->largest_count = (uint32_t) multicast->shape->size;
    return result;
}

static struct multicast begin(const struct rondo_shape *shape)
{
    struct multicast multicast = {shape, rondo_plan_builder_create(),
                                  rondo_is_multicast(shape->protocol) ? shape->protocol : RONDO_PROTOCOL_MULTICAST, 0};
    rondo_plan_builder_block(multicast.builder);
    return multicast;
}

rondo_result_t rondo_build_multicast(const struct rondo_shape *shape, struct rondo_plan **plan)
{
    uint32_t chunks[RONDO_BUFFERS] = {1, 1, 0}; /* an all-reduce's, which the ranks do not divide among them */
    struct rondo_shape whole = *shape;
    whole.channels = 1;
    if (shape->kind != RONDO_KIND_ALLREDUCE)
        rondo_shape_chunks(&whole, chunks);
    const struct multicast multicast = begin(shape);
    add_instructions(&multicast);
    return finish(&multicast, chunks, is_in_parts(shape->kind), plan);
}

rondo_result_t rondo_build_multicast_two_shot(const struct rondo_shape *shape, struct rondo_plan **plan)
{
    const uint32_t size = (uint32_t) shape->size, chunks[RONDO_BUFFERS] = {size, size, 0};
    struct multicast multicast = begin(shape);
    give(&multicast, RONDO_INPUT, 0, shape->size);
    reduce(&multicast, 1, shape->rank);
    multicast.channel = 1; /* slots of results */
    give(&multicast, RONDO_OUTPUT, shape->rank, 1);
    gather(&multicast, 0);
    rondo_result_t result = finish(&multicast, chunks, 1, plan);
    if (result == RONDO_SUCCESS)
        (*plan)->even = 1; /* a receiver finds its chunk of a slot by its own chunk's length */
    return result;
}
