/*
 * Pairs: what passes between two ranks has blocks of its own, one a direction, and waits for nothing else: all-gather,
 * all-to-all, and reduce-scatter, whose parts are folded by one more block a channel, in rank order. For devices that run many
 * blocks. In place, an all-gather only: what it sends is overwritten by nobody.
 */
#include "peers.h"

struct pairs {
    const struct rondo_shape *shape;
    struct rondo_builder *builder;
    int channel;
};

static uint32_t chunk(const struct pairs *pairs, int part)
{
    return (uint32_t) (part * pairs->shape->channels + pairs->channel);
}

static uint8_t add_end(const struct pairs *pairs, int peer, enum rondo_direction direction)
{
    return rondo_builder_end(pairs->builder, peer, pairs->channel, direction, pairs->shape->protocol);
}

/* keep: also to this chunk of the output; -1: only to the peer. */
static void send_to(const struct pairs *pairs, int peer, uint32_t source, int64_t keep)
{
    struct rondo_instruction send = {.actions = (uint8_t) (RONDO_SEND | (keep >= 0 ? RONDO_COPY : 0)),
                                     .source_index = source,
                                     .destination_buffer = RONDO_OUTPUT,
                                     .destination_index = keep >= 0 ? (uint32_t) keep : 0,
                                     .count = 1,
                                     .send_first = add_end(pairs, peer, RONDO_OUTGOING),
                                     .send_count = 1};
    rondo_builder_add(pairs->builder, &send);
}

static void receive_from(const struct pairs *pairs, int peer, uint32_t destination)
{
    struct rondo_instruction receive = {.actions = RONDO_RECEIVE | RONDO_COPY,
                                        .destination_buffer = RONDO_OUTPUT,
                                        .destination_index = destination,
                                        .count = 1,
                                        .receive_first = add_end(pairs, peer, RONDO_INCOMING),
                                        .receive_count = 1};
    rondo_builder_add(pairs->builder, &receive);
}

/* By a block of its own. */
static void keep(const struct pairs *pairs, uint32_t source, uint32_t destination)
{
    struct rondo_instruction copy = {.actions = RONDO_COPY,
                                     .source_index = source,
                                     .destination_buffer = RONDO_OUTPUT,
                                     .destination_index = destination,
                                     .count = 1};
    rondo_builder_block(pairs->builder);
    rondo_builder_add(pairs->builder, &copy);
}

static void fold(const struct pairs *pairs)
{
    const struct rondo_shape *shape = pairs->shape;
    struct rondo_instruction all = {.actions = RONDO_RECEIVE | RONDO_REDUCE | RONDO_COPY,
                                    .flags = RONDO_FINISH,
                                    .source_index = chunk(pairs, shape->rank),
                                    .destination_buffer = RONDO_OUTPUT,
                                    .destination_index = (uint32_t) pairs->channel,
                                    .count = 1,
                                    .receive_count = (uint8_t) (shape->size - 1),
                                    .local_place = (uint8_t) shape->rank};
    rondo_builder_block(pairs->builder);
    for (int peer = 0; peer < shape->size; peer++)
        if (peer != shape->rank)
            add_end(pairs, peer, RONDO_INCOMING);
    rondo_builder_add(pairs->builder, &all);
}

/* A block for each direction: nothing received has to wait for what is sent. */
static void exchange(const struct pairs *pairs, int step)
{
    const struct rondo_shape *shape = pairs->shape;
    int peer = (shape->rank + step) % shape->size, gathers = shape->kind == RONDO_KIND_ALLGATHER;
    int64_t kept = gathers && step == 1 ? (int64_t) chunk(pairs, shape->rank) : -1;
    rondo_builder_block(pairs->builder);
    send_to(pairs, peer, gathers ? (uint32_t) pairs->channel : chunk(pairs, peer), kept);
    if (shape->kind == RONDO_KIND_REDUCE_SCATTER)
        return;
    rondo_builder_block(pairs->builder);
    receive_from(pairs, peer, chunk(pairs, peer));
}

rondo_result_t rondo_build_pairs(const struct rondo_shape *shape, struct rondo_plan **plan)
{
    uint32_t chunks[RONDO_BUFFERS];
    rondo_shape_chunks(shape, chunks);
    struct pairs pairs = {shape, rondo_builder_create(), 0};
    for (pairs.channel = 0; pairs.channel < shape->channels; pairs.channel++) {
        if (shape->kind == RONDO_KIND_REDUCE_SCATTER)
            fold(&pairs);
        else if (shape->kind == RONDO_KIND_ALLTOALL)
            keep(&pairs, chunk(&pairs, shape->rank), chunk(&pairs, shape->rank));
        for (int step = 1; step < shape->size; step++)
            exchange(&pairs, step);
    }
    return rondo_builder_finish(pairs.builder, chunks, plan);
}
