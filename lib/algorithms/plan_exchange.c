/*
 * Exchange, by hand: an all-to-all in which a block and a peer's block send to each other, each in one instruction, so that
 * every block keeps a link busy where ranks write into each other's buffers (device/engine/direct_write.h); a few more blocks
 * copy what stays. Written by hand because the compiler gives each direction a block or joins more than two.
 */
#include "lib/algorithms/algorithms.h"

/* The channel's chunk of what goes to a rank, and of what comes from it. */
static uint32_t chunk_of(const struct rondo_shape *shape, int rank, int channel)
{
    return (uint32_t) (rank * shape->channels + channel);
}

/* Adds the block for a peer. */
static void both_ways(struct rondo_plan_builder *builder, const struct rondo_shape *shape, int peer, int channel)
{
    const uint32_t chunk = chunk_of(shape, peer, channel);
    rondo_plan_builder_block(builder);
    const struct rondo_instruction send = {.actions = RONDO_SEND,
                                           .source_index = chunk,
                                           .count = 1,
                                           .send_first =
                                               rondo_plan_builder_end(builder, peer, channel, RONDO_OUTGOING, shape->protocol),
                                           .send_count = 1};
    const struct rondo_instruction receive = {
        .actions = RONDO_RECEIVE | RONDO_COPY,
        .destination_buffer = RONDO_OUTPUT,
        .destination_index = chunk,
        .count = 1,
        .receive_first = rondo_plan_builder_end(builder, peer, channel, RONDO_INCOMING, shape->protocol),
        .receive_count = 1};
    rondo_plan_builder_add(builder, &send);
    rondo_plan_builder_add(builder, &receive);
}

/* Adds a block that copies the chunks of channels [first, end) that stay. */
static void keep(struct rondo_plan_builder *builder, const struct rondo_shape *shape, int first, int end)
{
    rondo_plan_builder_block(builder);
    for (int channel = first; channel < end; channel++)
        rondo_plan_builder_keep(builder, chunk_of(shape, shape->rank, channel), chunk_of(shape, shape->rank, channel));
}

rondo_result_t rondo_build_exchange(const struct rondo_shape *shape, struct rondo_plan **plan)
{
    const int n = shape->size, keepers = shape->channels < RONDO_EXCHANGE_KEEPERS ? shape->channels : RONDO_EXCHANGE_KEEPERS;
    uint32_t chunks[RONDO_BUFFERS];
    rondo_shape_chunks(shape, chunks);
    struct rondo_plan_builder *builder = rondo_plan_builder_create();
    for (int channel = 0; channel < shape->channels; channel++)
        for (int step = 1; step < n; step++) /* in the order of blocks all ranks have different peers */
            both_ways(builder, shape, (shape->rank + step) % n, channel);
    for (int k = 0; k < keepers; k++)
        keep(builder, shape, k * shape->channels / keepers, (k + 1) * shape->channels / keepers);
    return rondo_plan_builder_finish(builder, chunks, plan);
}
