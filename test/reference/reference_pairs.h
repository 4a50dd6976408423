/*
 * All-pairs and pairs, written by hand instruction by instruction, for comparison with the compiler's plans. All-pairs has one
 * block for each channel; pairs has one for each direction between two ranks.
 */
#ifndef RONDO_TEST_REFERENCE_PAIRS_H
#define RONDO_TEST_REFERENCE_PAIRS_H

#include "lib/algorithms/peers.h"

struct all_pairs {
    const struct rondo_shape *shape;
    struct rondo_plan_builder *builder;
    struct rondo_peer_ends ends;
    int channel;
};

/* The chunk of a rank's part on this channel. Part 0 is also that of the whole. */
static inline uint32_t chunk(const struct all_pairs *pairs, int part)
{
    return (uint32_t) (part * pairs->shape->channels + pairs->channel);
}

static inline struct rondo_instruction to_all(const struct all_pairs *pairs, uint32_t source)
{
    struct rondo_instruction send = {.actions = RONDO_SEND,
                                     .source_index = source,
                                     .destination_buffer = RONDO_OUTPUT,
                                     .count = 1,
                                     .send_first = pairs->ends.out_first,
                                     .send_count = pairs->ends.count};
    return send;
}

static inline struct rondo_instruction from_all(const struct all_pairs *pairs, uint32_t source, uint32_t destination)
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

/* Sends each peer's part of the input to that peer. Each rank starts with another peer. */
static inline void send_parts(const struct all_pairs *pairs)
{
    const struct rondo_shape *shape = pairs->shape;
    for (int step = 1; step < shape->size; step++) {
        int peer = (shape->rank + step) % shape->size;
        struct rondo_instruction send = to_all(pairs, chunk(pairs, peer));
        send.send_first = (uint8_t) (pairs->ends.out_first + rondo_peer_place(shape, peer));
        send.send_count = 1;
        rondo_plan_builder_add(pairs->builder, &send);
    }
}

/* Receives what each peer sends into that peer's part of the output. */
static inline void receive_parts(const struct all_pairs *pairs)
{
    const struct rondo_shape *shape = pairs->shape;
    for (int step = 1; step < shape->size; step++) {
        int peer = (shape->rank + shape->size - step) % shape->size;
        struct rondo_instruction receive = from_all(pairs, 0, chunk(pairs, peer));
        receive.actions = RONDO_RECEIVE | RONDO_COPY;
        receive.flags = 0;
        receive.receive_first = (uint8_t) (pairs->ends.in_first + rondo_peer_place(shape, peer));
        receive.receive_count = 1;
        rondo_plan_builder_add(pairs->builder, &receive);
    }
}

static inline void all_reduce(const struct all_pairs *pairs)
{
    struct rondo_instruction send = to_all(pairs, (uint32_t) pairs->channel);
    struct rondo_instruction receive = from_all(pairs, (uint32_t) pairs->channel, (uint32_t) pairs->channel);
    if (pairs->shape->exchanges) {
        receive.actions |= RONDO_SEND;
        receive.flags |= RONDO_EXCHANGE;
        receive.send_first = send.send_first;
        receive.send_count = send.send_count;
    } else {
        rondo_plan_builder_add(pairs->builder, &send);
    }
    rondo_plan_builder_add(pairs->builder, &receive);
}

static inline void all_gather(const struct all_pairs *pairs)
{
    struct rondo_instruction send = to_all(pairs, (uint32_t) pairs->channel);
    send.actions |= RONDO_COPY;
    send.destination_index = chunk(pairs, pairs->shape->rank);
    rondo_plan_builder_add(pairs->builder, &send);
    receive_parts(pairs);
}

/* Receives an element from every peer and drops it. */
static inline void barrier(const struct all_pairs *pairs)
{
    struct rondo_instruction send = to_all(pairs, 0), receive = from_all(pairs, 0, 0);
    rondo_plan_builder_add(pairs->builder, &send);
    receive.actions = RONDO_RECEIVE;
    receive.flags = 0;
    receive.receive_count = 1;
    for (uint8_t peer = 0; peer < pairs->ends.count; peer++) {
        receive.receive_first = (uint8_t) (pairs->ends.in_first + peer);
        rondo_plan_builder_add(pairs->builder, &receive);
    }
}

static inline rondo_result_t reference_all_pairs(const struct rondo_shape *shape, struct rondo_plan **plan)
{
    const uint32_t channels = (uint32_t) shape->channels, all = channels * (uint32_t) shape->size;
    int scatters = shape->kind == RONDO_KIND_REDUCE_SCATTER_BLOCK;
    int gathers = shape->kind == RONDO_KIND_ALLGATHER || shape->kind == RONDO_KIND_ALLGATHERV;
    uint32_t chunks[RONDO_BUFFERS] = {scatters ? all : channels, gathers ? all : channels, 0};
    struct all_pairs pairs = {shape, rondo_plan_builder_create(), {0, 0, 0}, 0};
    for (pairs.channel = 0; pairs.channel < shape->channels; pairs.channel++) {
        rondo_plan_builder_block(pairs.builder);
        pairs.ends = rondo_add_peer_ends(pairs.builder, shape, pairs.channel);
        if (scatters) {
            send_parts(&pairs);
            struct rondo_instruction receive = from_all(&pairs, chunk(&pairs, shape->rank), (uint32_t) pairs.channel);
            rondo_plan_builder_add(pairs.builder, &receive);
        } else if (gathers) {
            all_gather(&pairs);
        } else if (shape->kind == RONDO_KIND_BARRIER) {
            barrier(&pairs);
        } else {
            all_reduce(&pairs);
        }
    }
    return rondo_plan_builder_finish(pairs.builder, chunks, plan);
}

static inline rondo_result_t reference_two_shot(const struct rondo_shape *shape, struct rondo_plan **plan)
{
    const uint32_t all = (uint32_t) (shape->channels * shape->size), chunks[RONDO_BUFFERS] = {all, all, 0};
    struct all_pairs pairs = {shape, rondo_plan_builder_create(), {0, 0, 0}, 0};
    for (pairs.channel = 0; pairs.channel < shape->channels; pairs.channel++) {
        uint32_t own = chunk(&pairs, shape->rank);
        rondo_plan_builder_block(pairs.builder);
        pairs.ends = rondo_add_peer_ends(pairs.builder, shape, pairs.channel);
        send_parts(&pairs);
        struct rondo_instruction reduce = from_all(&pairs, own, own);
        reduce.actions |= RONDO_SEND;
        reduce.send_first = pairs.ends.out_first;
        reduce.send_count = pairs.ends.count;
        rondo_plan_builder_add(pairs.builder, &reduce);
        receive_parts(&pairs);
    }
    return rondo_plan_builder_finish(pairs.builder, chunks, plan);
}

/* ---- pairs ---- */

struct pairs {
    const struct rondo_shape *shape;
    struct rondo_plan_builder *builder;
    int channel;
};

static inline uint32_t chunk_of_pair(const struct pairs *pairs, int part)
{
    return (uint32_t) (part * pairs->shape->channels + pairs->channel);
}

static inline uint8_t add_end(const struct pairs *pairs, int peer, enum rondo_direction direction)
{
    return rondo_plan_builder_end(pairs->builder, peer, pairs->channel, direction, pairs->shape->protocol);
}

/* keep: the chunk of the output that the source is also copied to; -1: none. */
static inline void send_to(const struct pairs *pairs, int peer, uint32_t source, int64_t keep)
{
    struct rondo_instruction send = {.actions = (uint8_t) (RONDO_SEND | (keep >= 0 ? RONDO_COPY : 0)),
                                     .source_index = source,
                                     .destination_buffer = RONDO_OUTPUT,
                                     .destination_index = keep >= 0 ? (uint32_t) keep : 0,
                                     .count = 1,
                                     .send_first = add_end(pairs, peer, RONDO_OUTGOING),
                                     .send_count = 1};
    rondo_plan_builder_add(pairs->builder, &send);
}

static inline void receive_from(const struct pairs *pairs, int peer, uint32_t destination)
{
    struct rondo_instruction receive = {.actions = RONDO_RECEIVE | RONDO_COPY,
                                        .destination_buffer = RONDO_OUTPUT,
                                        .destination_index = destination,
                                        .count = 1,
                                        .receive_first = add_end(pairs, peer, RONDO_INCOMING),
                                        .receive_count = 1};
    rondo_plan_builder_add(pairs->builder, &receive);
}

/* Copies the own part, in a block of its own. */
static inline void keep_own(const struct pairs *pairs, uint32_t source, uint32_t destination)
{
    struct rondo_instruction copy = {.actions = RONDO_COPY,
                                     .source_index = source,
                                     .destination_buffer = RONDO_OUTPUT,
                                     .destination_index = destination,
                                     .count = 1};
    rondo_plan_builder_block(pairs->builder);
    rondo_plan_builder_add(pairs->builder, &copy);
}

static inline void reduce_all(const struct pairs *pairs)
{
    const struct rondo_shape *shape = pairs->shape;
    struct rondo_instruction all = {.actions = RONDO_RECEIVE | RONDO_REDUCE | RONDO_COPY,
                                    .flags = RONDO_FINISH,
                                    .source_index = chunk_of_pair(pairs, shape->rank),
                                    .destination_buffer = RONDO_OUTPUT,
                                    .destination_index = (uint32_t) pairs->channel,
                                    .count = 1,
                                    .receive_count = (uint8_t) (shape->size - 1),
                                    .local_place = (uint8_t) shape->rank};
    rondo_plan_builder_block(pairs->builder);
    for (int peer = 0; peer < shape->size; peer++)
        if (peer != shape->rank)
            add_end(pairs, peer, RONDO_INCOMING);
    rondo_plan_builder_add(pairs->builder, &all);
}

/* Exchanges with the peers of a step. Each direction has a block, so that a receive never waits for a send. */
static inline void exchange(const struct pairs *pairs, int step)
{
    const struct rondo_shape *shape = pairs->shape;
    int peer = (shape->rank + step) % shape->size, gathers = shape->kind == RONDO_KIND_ALLGATHER;
    int64_t retained = gathers && step == 1 ? (int64_t) chunk_of_pair(pairs, shape->rank) : -1;
    rondo_plan_builder_block(pairs->builder);
    send_to(pairs, peer, gathers ? (uint32_t) pairs->channel : chunk_of_pair(pairs, peer), retained);
    if (shape->kind == RONDO_KIND_REDUCE_SCATTER_BLOCK)
        return;
    rondo_plan_builder_block(pairs->builder);
    receive_from(pairs, peer, chunk_of_pair(pairs, peer));
}

static inline rondo_result_t reference_pairs(const struct rondo_shape *shape, struct rondo_plan **plan)
{
    uint32_t chunks[RONDO_BUFFERS];
    rondo_shape_chunks(shape, chunks);
    struct pairs pairs = {shape, rondo_plan_builder_create(), 0};
    for (pairs.channel = 0; pairs.channel < shape->channels; pairs.channel++) {
        if (shape->kind == RONDO_KIND_REDUCE_SCATTER_BLOCK)
            reduce_all(&pairs);
        else if (shape->kind == RONDO_KIND_ALLTOALL)
            keep_own(&pairs, chunk_of_pair(&pairs, shape->rank), chunk_of_pair(&pairs, shape->rank));
        for (int step = 1; step < shape->size; step++)
            exchange(&pairs, step);
    }
    return rondo_plan_builder_finish(pairs.builder, chunks, plan);
}

#endif
