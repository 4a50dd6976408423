/*
 * Direct, push and push-chain, by hand: move every byte once, from the peers' inputs and into their outputs, with signals
 * around. The first signal says that a rank's buffers are ready and where they are, the last one that the rank will not access
 * the peer's buffers any more. When the last signals of all peers have arrived, no peer will access this rank's buffers, and
 * the operation is complete. What is not reduced is read by its receiver (direct) or written by its sender (push; push-chain:
 * from rank to rank, in parts with a signal each). Written by hand because the language has messages and no signals.
 */
#include "lib/algorithms/peers.h"

struct direct {
    const struct rondo_shape *shape;
    struct rondo_plan_builder *builder;
    struct rondo_peer_ends ends;
    int channel;
    int pushes; /* senders write */
};

#define CHAIN_PARTS 16 /* of what goes from rank to rank: the links idle for as many of them as there are ranks */

/* Returns the channel's chunk of a rank's block. */
static uint32_t part(const struct direct *direct, int rank)
{
    return (uint32_t) (rank * direct->shape->channels + direct->channel);
}

/* Adds a signal to or from the peers [first, first + count), in the order of ranks. */
static void signal(const struct direct *direct, int action, uint8_t first, uint8_t count)
{
    struct rondo_instruction instruction = {.actions = (uint8_t) action,
                                            .flags = RONDO_SIGNAL,
                                            .count = 1,
                                            .receive_first = (uint8_t) (direct->ends.in_first + first),
                                            .receive_count = count,
                                            .send_first = (uint8_t) (direct->ends.out_first + first),
                                            .send_count = count};
    rondo_plan_builder_add(direct->builder, &instruction);
}

static void read_from(const struct direct *direct, int peer, uint32_t remote, uint32_t destination)
{
    struct rondo_instruction instruction = {.actions = RONDO_RECEIVE | RONDO_COPY,
                                            .flags = RONDO_DIRECT_IN,
                                            .destination_buffer = RONDO_OUTPUT,
                                            .destination_index = destination,
                                            .count = 1,
                                            .receive_first =
                                                (uint8_t) (direct->ends.in_first + rondo_peer_place(direct->shape, peer)),
                                            .receive_count = 1,
                                            .remote_index = remote};
    rondo_plan_builder_add(direct->builder, &instruction);
}

/* Writes a chunk of this rank's buffer to a peer's output. */
static void write_to(const struct direct *direct, int peer, enum rondo_buffer buffer, uint32_t source, uint32_t remote)
{
    const uint8_t place = rondo_peer_place(direct->shape, peer);
    struct rondo_instruction instruction = {.actions = RONDO_SEND,
                                            .flags = RONDO_DIRECT_OUT,
                                            .source_buffer = (uint8_t) buffer,
                                            .source_index = source,
                                            .count = 1,
                                            .receive_first = (uint8_t) (direct->ends.in_first + place),
                                            .receive_count = 1,
                                            .send_first = (uint8_t) (direct->ends.out_first + place),
                                            .send_count = 1,
                                            .remote_index = remote};
    rondo_plan_builder_add(direct->builder, &instruction);
}

/* Reduces all ranks' parts for this rank, and (pushes: all-reduce) writes the result to all outputs. */
static void reduce(const struct direct *direct, int pushes)
{
    const struct rondo_shape *shape = direct->shape;
    uint32_t own = part(direct, shape->rank);
    struct rondo_instruction instruction = {
        .actions = (uint8_t) (RONDO_RECEIVE | RONDO_REDUCE | RONDO_COPY | (pushes ? RONDO_SEND : 0)),
        .flags = (uint8_t) (RONDO_FINISH | RONDO_DIRECT_IN | (pushes ? RONDO_DIRECT_OUT : 0)),
        .source_index = own,
        .destination_buffer = RONDO_OUTPUT,
        .destination_index = pushes ? own : (uint32_t) direct->channel,
        .count = 1,
        .receive_first = direct->ends.in_first,
        .receive_count = direct->ends.count,
        .send_first = direct->ends.out_first,
        .send_count = direct->ends.count,
        .local_place = (uint8_t) shape->rank,
        .remote_index = own};
    rondo_plan_builder_add(direct->builder, &instruction);
}

static void write_to_all(const struct direct *direct)
{
    const struct rondo_shape *shape = direct->shape;
    const uint8_t root = rondo_peer_place(shape, shape->root);
    const uint32_t own = (uint32_t) direct->channel;
    if (shape->rank != shape->root) {
        signal(direct, RONDO_SEND, root, 1);
        signal(direct, RONDO_RECEIVE, root, 1);
        return;
    }
    signal(direct, RONDO_RECEIVE, 0, direct->ends.count);
    for (int step = 1; step < shape->size; step++)
        write_to(direct, (shape->rank + step) % shape->size, RONDO_INPUT, own, own);
    signal(direct, RONDO_SEND, 0, direct->ends.count);
}

/* Every rank but the last hands the parts on to the next one, which has them in its output then. */
static void write_to_next(const struct direct *direct)
{
    const struct rondo_shape *shape = direct->shape;
    const int n = shape->size, place = (shape->rank - shape->root + n) % n, next = (shape->rank + 1) % n;
    const uint8_t before = rondo_peer_place(shape, (shape->rank + n - 1) % n), after = rondo_peer_place(shape, next);
    if (place > 0)
        signal(direct, RONDO_SEND, before, 1);
    if (place + 1 < n)
        signal(direct, RONDO_RECEIVE, after, 1);
    for (int k = 0; k < CHAIN_PARTS; k++) {
        const uint32_t chunk = (uint32_t) (direct->channel * CHAIN_PARTS + k);
        if (place > 0)
            signal(direct, RONDO_RECEIVE, before, 1);
        if (place + 1 < n) {
            write_to(direct, next, place > 0 ? RONDO_OUTPUT : RONDO_INPUT, chunk, chunk);
            signal(direct, RONDO_SEND, after, 1);
        }
    }
}

static void read_from_root(const struct direct *direct)
{
    const struct rondo_shape *shape = direct->shape;
    if (shape->rank == shape->root) {
        signal(direct, RONDO_SEND, 0, direct->ends.count);
        signal(direct, RONDO_RECEIVE, 0, direct->ends.count);
        return;
    }
    uint8_t root = rondo_peer_place(shape, shape->root);
    signal(direct, RONDO_RECEIVE, root, 1);
    read_from(direct, shape->root, (uint32_t) direct->channel, (uint32_t) direct->channel);
    signal(direct, RONDO_SEND, root, 1);
}

static void one_channel(const struct direct *direct)
{
    const struct rondo_shape *shape = direct->shape;
    int rank = shape->rank;
    if (shape->kind == RONDO_KIND_BCAST) {
        direct->pushes ? write_to_all(direct) : read_from_root(direct);
        return;
    }
    signal(direct, RONDO_SEND, 0, direct->ends.count);
    signal(direct, RONDO_RECEIVE, 0, direct->ends.count);
    if (shape->kind == RONDO_KIND_ALLREDUCE || shape->kind == RONDO_KIND_REDUCE_SCATTER_BLOCK) {
        reduce(direct, shape->kind == RONDO_KIND_ALLREDUCE);
    } else {
        int gathers = shape->kind == RONDO_KIND_ALLGATHER;
        uint32_t own = gathers ? (uint32_t) direct->channel : part(direct, rank);
        rondo_plan_builder_keep(direct->builder, own, part(direct, rank));
        for (int step = 1; step < shape->size; step++) { /* in each step all ranks have different peers */
            int peer = (rank + step) % shape->size;
            if (direct->pushes)
                write_to(direct, peer, RONDO_INPUT, gathers ? own : part(direct, peer), part(direct, rank));
            else
                read_from(direct, peer, own, part(direct, peer));
        }
    }
    signal(direct, RONDO_SEND, 0, direct->ends.count);
    signal(direct, RONDO_RECEIVE, 0, direct->ends.count);
}

static rondo_result_t build(const struct rondo_shape *shape, int pushes, void (*one)(const struct direct *), uint32_t parts,
                            struct rondo_plan **plan)
{
    uint32_t chunks[RONDO_BUFFERS];
    rondo_shape_chunks(shape, chunks);
    for (int b = 0; b < RONDO_BUFFERS; b++)
        chunks[b] *= parts;
    struct direct direct = {shape, rondo_plan_builder_create(), {0, 0, 0}, 0, pushes};
    for (int channel = 0; channel < shape->channels; channel++) {
        direct.channel = channel;
        rondo_plan_builder_block(direct.builder);
        direct.ends = rondo_add_peer_ends(direct.builder, shape, channel);
        one(&direct);
    }
    return rondo_plan_builder_finish(direct.builder, chunks, plan);
}

rondo_result_t rondo_build_direct(const struct rondo_shape *shape, struct rondo_plan **plan)
{
    return build(shape, 0, one_channel, 1, plan);
}

rondo_result_t rondo_build_push(const struct rondo_shape *shape, struct rondo_plan **plan)
{
    return build(shape, 1, one_channel, 1, plan);
}

rondo_result_t rondo_build_push_chain(const struct rondo_shape *shape, struct rondo_plan **plan)
{
    return build(shape, 1, write_to_next, CHAIN_PARTS, plan);
}
