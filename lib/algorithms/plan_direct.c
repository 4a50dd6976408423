/*
 * Direct, by hand: moves every byte once, from the peers' inputs and into their outputs, with signals around. The first signal
 * says that a rank's buffers are ready and where they are, the last one that the rank will not access the peer's buffers any
 * more. When the last signals of all peers have arrived, no peer will access this rank's buffers, and the operation is
 * complete. Written by hand because the language has messages and no signals.
 */
#include "lib/algorithms/peers.h"

struct direct {
    const struct rondo_shape *shape;
    struct rondo_plan_builder *builder;
    struct rondo_peer_ends ends;
    int channel;
};

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

/* Copies a chunk of the input to the output. */
static void keep(const struct direct *direct, uint32_t source, uint32_t destination)
{
    struct rondo_instruction copy = {.actions = RONDO_COPY,
                                     .source_index = source,
                                     .destination_buffer = RONDO_OUTPUT,
                                     .destination_index = destination,
                                     .count = 1};
    rondo_plan_builder_add(direct->builder, &copy);
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

static void broadcast(const struct direct *direct)
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
        broadcast(direct);
        return;
    }
    signal(direct, RONDO_SEND, 0, direct->ends.count);
    signal(direct, RONDO_RECEIVE, 0, direct->ends.count);
    if (shape->kind == RONDO_KIND_ALLREDUCE || shape->kind == RONDO_KIND_REDUCE_SCATTER_BLOCK) {
        reduce(direct, shape->kind == RONDO_KIND_ALLREDUCE);
    } else {
        int gathers = shape->kind == RONDO_KIND_ALLGATHER;
        uint32_t remote = gathers ? (uint32_t) direct->channel : part(direct, rank);
        keep(direct, remote, part(direct, rank));
        for (int step = 1; step < shape->size; step++) { /* in each step all ranks read from different peers */
            int peer = (rank + step) % shape->size;
            read_from(direct, peer, remote, part(direct, peer));
        }
    }
    signal(direct, RONDO_SEND, 0, direct->ends.count);
    signal(direct, RONDO_RECEIVE, 0, direct->ends.count);
}

rondo_result_t rondo_build_direct(const struct rondo_shape *shape, struct rondo_plan **plan)
{
    uint32_t chunks[RONDO_BUFFERS];
    rondo_shape_chunks(shape, chunks);
    struct direct direct = {shape, rondo_plan_builder_create(), {0, 0, 0}, 0};
    for (int channel = 0; channel < shape->channels; channel++) {
        direct.channel = channel;
        rondo_plan_builder_block(direct.builder);
        direct.ends = rondo_add_peer_ends(direct.builder, shape, channel);
        one_channel(&direct);
    }
    return rondo_plan_builder_finish(direct.builder, chunks, plan);
}
