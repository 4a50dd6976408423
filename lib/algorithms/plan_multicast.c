/*
 * Multicast, by hand: a rank writes what all others need once, into slots that all of them read. One step of latency; what a
 * rank stores does not grow with the number of ranks. What arrives is reduced in the order of ranks, so all ranks get the same
 * bits. All sends of a tile come before its receives, so slots are all that a rank ever waits for. Each block of the arguments
 * is one chunk, in one block of the program, whatever the channels: it is for small data. Written by hand because a message of
 * the language has one receiver.
 */
#include "lib/algorithms/algorithms.h"

#include "device/engine/use.h"

struct multicast {
    const struct rondo_shape *shape;
    struct rondo_plan_builder *builder;
    enum rondo_protocol protocol;
};

static uint8_t end(const struct multicast *multicast, int peer, enum rondo_direction direction)
{
    return rondo_plan_builder_end(multicast->builder, peer, 0, direction, multicast->protocol);
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

/* Sends the first chunks of the input to all, in one slot. */
static void give(const struct multicast *multicast, int chunks)
{
    struct rondo_instruction send = {.actions = RONDO_SEND,
                                     .count = (uint16_t) chunks,
                                     .send_first = end(multicast, multicast->shape->rank, RONDO_OUTGOING),
                                     .send_count = 1};
    rondo_plan_builder_add(multicast->builder, &send);
}

/* Copies a chunk of the input to the output. */
static void keep(const struct multicast *multicast, int source, int destination)
{
    struct rondo_instruction copy = {.actions = RONDO_COPY,
                                     .source_index = (uint32_t) source,
                                     .destination_buffer = RONDO_OUTPUT,
                                     .destination_index = (uint32_t) destination,
                                     .count = 1};
    rondo_plan_builder_add(multicast->builder, &copy);
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

/* Reduces what all others have sent with this rank's own. */
static void reduce(const struct multicast *multicast)
{
    struct rondo_instruction all = {.actions = RONDO_RECEIVE | RONDO_REDUCE | RONDO_COPY,
                                    .flags = RONDO_FINISH,
                                    .destination_buffer = RONDO_OUTPUT,
                                    .count = 1,
                                    .receive_first = peer_ends(multicast),
                                    .receive_count = (uint8_t) (multicast->shape->size - 1),
                                    .local_place = (uint8_t) multicast->shape->rank};
    rondo_plan_builder_add(multicast->builder, &all);
}

/* Copies all ranks' blocks to the output; in each step all ranks read from different ones. */
static void gather(const struct multicast *multicast)
{
    const struct rondo_shape *shape = multicast->shape;
    keep(multicast, 0, shape->rank);
    for (int step = 1; step < shape->size; step++) {
        const int peer = (shape->rank + step) % shape->size;
        take(multicast, peer, 0, peer);
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

static void add_instructions(const struct multicast *multicast)
{
    const struct rondo_shape *shape = multicast->shape;
    const int scatters = shape->kind == RONDO_KIND_SCATTER, at_root = shape->rank == shape->root;
    if (!at_root && (scatters || shape->kind == RONDO_KIND_BCAST)) {
        take(multicast, shape->root, scatters ? shape->rank : 0, 0);
        return;
    }
    give(multicast, scatters ? shape->size : 1);
    switch (shape->kind) {
    case RONDO_KIND_ALLREDUCE:
        reduce(multicast);
        break;
    case RONDO_KIND_BARRIER:
        await_all(multicast);
        break;
    case RONDO_KIND_SCATTER:
        keep(multicast, shape->rank, 0);
        break;
    case RONDO_KIND_ALLGATHER:
    case RONDO_KIND_ALLGATHERV:
        gather(multicast);
        break;
    default: /* broadcast: the root has its output already */
        break;
    }
}

rondo_result_t rondo_build_multicast(const struct rondo_shape *shape, struct rondo_plan **plan)
{
    uint32_t chunks[RONDO_BUFFERS] = {1, 1, 0}; /* an all-reduce's, which the ranks do not divide among them */
    struct rondo_shape whole = *shape;
    whole.channels = 1;
    if (shape->kind != RONDO_KIND_ALLREDUCE)
        rondo_shape_chunks(&whole, chunks);
    struct multicast multicast = {shape, rondo_plan_builder_create(), shape->protocol};
    if (!rondo_is_multicast(multicast.protocol))
        multicast.protocol = RONDO_PROTOCOL_MULTICAST;
    rondo_plan_builder_block(multicast.builder);
    add_instructions(&multicast);
    rondo_result_t result = rondo_plan_builder_finish(multicast.builder, chunks, plan);
    if (result == RONDO_SUCCESS && shape->kind == RONDO_KIND_SCATTER) /* all ranks cut as the root does */
        (*plan)->program->largest_count = (uint32_t) shape->size;
    return result;
}
