/*
 * All-pairs: every rank sends what the others need straight to them. One shot: it folds what arrives in rank order, so that all
 * ranks compute the same bits; one step of latency, and the bytes grow with the number of ranks. Two shots (all-reduce): the
 * first gives every rank everybody's share of one part, the second spreads the results; twice the latency, and no more bytes
 * than a ring.
 */
#include "peers.h"

struct all_pairs {
    const struct rondo_shape *shape;
    struct rondo_builder *builder;
    struct rondo_peer_ends ends;
    int channel;
};

/* The chunk of a rank's part, or of the whole. */
static uint32_t chunk(const struct all_pairs *pairs, int part)
{
    return (uint32_t) (part * pairs->shape->channels + pairs->channel);
}

static struct rondo_instruction to_all(const struct all_pairs *pairs, uint32_t source)
{
    struct rondo_instruction send = {.actions = RONDO_SEND,
                                     .source_index = source,
                                     .destination_buffer = RONDO_OUTPUT,
                                     .count = 1,
                                     .send_first = pairs->ends.out_first,
                                     .send_count = pairs->ends.count};
    return send;
}

static struct rondo_instruction from_all(const struct all_pairs *pairs, uint32_t source, uint32_t destination)
{
    struct rondo_instruction receive = {.actions = RONDO_RECEIVE | RONDO_REDUCE | RONDO_COPY,
                                        .flags = RONDO_FINISH,
                                        .source_index = source,
                                        .destination_buffer = RONDO_OUTPUT,
                                        .destination_index = destination,
                                        .count = 1,
                                        .receive_first = pairs->ends.in_first,
                                        .receive_count = pairs->ends.count,
                                        .local_place = (uint8_t) pairs->shape->rank};
    return receive;
}

/* Each peer's part of the input to it; everybody sends to somebody else first. */
static void send_parts(const struct all_pairs *pairs)
{
    const struct rondo_shape *shape = pairs->shape;
    for (int step = 1; step < shape->size; step++) {
        int peer = (shape->rank + step) % shape->size;
        struct rondo_instruction send = to_all(pairs, chunk(pairs, peer));
        send.send_first = (uint8_t) (pairs->ends.out_first + rondo_peer_place(shape, peer));
        send.send_count = 1;
        rondo_builder_add(pairs->builder, &send);
    }
}

/* What each peer sends, as it is, to its part of the output. */
static void receive_parts(const struct all_pairs *pairs)
{
    const struct rondo_shape *shape = pairs->shape;
    for (int step = 1; step < shape->size; step++) {
        int peer = (shape->rank + shape->size - step) % shape->size;
        struct rondo_instruction receive = from_all(pairs, 0, chunk(pairs, peer));
        receive.actions = RONDO_RECEIVE | RONDO_COPY;
        receive.flags = 0;
        receive.receive_first = (uint8_t) (pairs->ends.in_first + rondo_peer_place(shape, peer));
        receive.receive_count = 1;
        rondo_builder_add(pairs->builder, &receive);
    }
}

static void all_reduce(const struct all_pairs *pairs)
{
    struct rondo_instruction send = to_all(pairs, (uint32_t) pairs->channel);
    struct rondo_instruction receive = from_all(pairs, (uint32_t) pairs->channel, (uint32_t) pairs->channel);
    if (pairs->shape->exchanges) {
        receive.actions |= RONDO_SEND;
        receive.flags |= RONDO_EXCHANGE;
        receive.send_first = send.send_first;
        receive.send_count = send.send_count;
    } else {
        rondo_builder_add(pairs->builder, &send);
    }
    rondo_builder_add(pairs->builder, &receive);
}

static void all_gather(const struct all_pairs *pairs)
{
    struct rondo_instruction send = to_all(pairs, (uint32_t) pairs->channel);
    send.actions |= RONDO_COPY;
    send.destination_index = chunk(pairs, pairs->shape->rank);
    rondo_builder_add(pairs->builder, &send);
    receive_parts(pairs);
}

/* An element from everybody, kept by nobody. */
static void barrier(const struct all_pairs *pairs)
{
    struct rondo_instruction send = to_all(pairs, 0), receive = from_all(pairs, 0, 0);
    rondo_builder_add(pairs->builder, &send);
    receive.actions = RONDO_RECEIVE;
    receive.flags = 0;
    receive.receive_count = 1;
    for (uint8_t peer = 0; peer < pairs->ends.count; peer++) {
        receive.receive_first = (uint8_t) (pairs->ends.in_first + peer);
        rondo_builder_add(pairs->builder, &receive);
    }
}

rondo_result_t rondo_build_all_pairs(const struct rondo_shape *shape, struct rondo_plan **plan)
{
    const uint32_t channels = (uint32_t) shape->channels, all = channels * (uint32_t) shape->size;
    int scatters = shape->kind == RONDO_KIND_REDUCE_SCATTER;
    int gathers = shape->kind == RONDO_KIND_ALLGATHER || shape->kind == RONDO_KIND_ALLGATHERV;
    uint32_t chunks[RONDO_BUFFERS] = {scatters ? all : channels, gathers ? all : channels, 0};
    struct all_pairs pairs = {shape, rondo_builder_create(), {0, 0, 0}, 0};
    for (pairs.channel = 0; pairs.channel < shape->channels; pairs.channel++) {
        rondo_builder_block(pairs.builder);
        pairs.ends = rondo_add_peer_ends(pairs.builder, shape, pairs.channel);
        if (scatters) {
            send_parts(&pairs);
            struct rondo_instruction receive = from_all(&pairs, chunk(&pairs, shape->rank), (uint32_t) pairs.channel);
            rondo_builder_add(pairs.builder, &receive);
        } else if (gathers) {
            all_gather(&pairs);
        } else if (shape->kind == RONDO_KIND_BARRIER) {
            barrier(&pairs);
        } else {
            all_reduce(&pairs);
        }
    }
    return rondo_builder_finish(pairs.builder, chunks, plan);
}

rondo_result_t rondo_build_two_shot(const struct rondo_shape *shape, struct rondo_plan **plan)
{
    const uint32_t all = (uint32_t) (shape->channels * shape->size), chunks[RONDO_BUFFERS] = {all, all, 0};
    struct all_pairs pairs = {shape, rondo_builder_create(), {0, 0, 0}, 0};
    for (pairs.channel = 0; pairs.channel < shape->channels; pairs.channel++) {
        uint32_t own = chunk(&pairs, shape->rank);
        rondo_builder_block(pairs.builder);
        pairs.ends = rondo_add_peer_ends(pairs.builder, shape, pairs.channel);
        send_parts(&pairs);
        struct rondo_instruction fold = from_all(&pairs, own, own);
        fold.actions |= RONDO_SEND;
        fold.send_first = pairs.ends.out_first;
        fold.send_count = pairs.ends.count;
        rondo_builder_add(pairs.builder, &fold);
        receive_parts(&pairs);
    }
    return rondo_builder_finish(pairs.builder, chunks, plan);
}
