/*
 * Linear, by hand: messages straight between the root, or every rank, and each other rank: broadcast and reduce of small sizes,
 * gather, scatter, all-to-all. All sends of a tile come before its receives, so the buffers may be the same (in place), and
 * slots are all that a rank ever waits for. Written by hand because an all-to-all of given counts has blocks whose sizes only
 * the call knows.
 */
#include "lib/algorithms/peers.h"

struct exchange {
    const struct rondo_shape *shape;
    struct rondo_plan_builder *builder;
    struct rondo_peer_ends ends;
    uint32_t channel;
};

/* Whether each rank sends to each, and whether the root sends. */
static int is_both_ways(const struct rondo_shape *shape)
{
    return rondo_collective_of(shape->kind)->rule.postcondition == RONDO_POSTCONDITION_TRANSPOSED;
}

static int is_outwards(const struct rondo_shape *shape)
{
    return rondo_collective_of(shape->kind)->rule.send_ranks == RONDO_RANKS_ROOT;
}

/* Returns the channel's chunk of a rank's block. */
static uint32_t part(const struct exchange *exchange, int rank)
{
    return (uint32_t) rank * (uint32_t) exchange->shape->channels + exchange->channel;
}

static void send_to(const struct exchange *exchange, int peer, uint32_t source)
{
    struct rondo_instruction send = {.actions = RONDO_SEND,
                                     .source_index = source,
                                     .count = 1,
                                     .send_first =
                                         (uint8_t) (exchange->ends.out_first + rondo_peer_place(exchange->shape, peer)),
                                     .send_count = 1};
    rondo_plan_builder_add(exchange->builder, &send);
}

static void receive_from(const struct exchange *exchange, int peer, uint32_t destination)
{
    struct rondo_instruction receive = {.actions = RONDO_RECEIVE | RONDO_COPY,
                                        .destination_buffer = RONDO_OUTPUT,
                                        .destination_index = destination,
                                        .count = 1,
                                        .receive_first =
                                            (uint8_t) (exchange->ends.in_first + rondo_peer_place(exchange->shape, peer)),
                                        .receive_count = 1};
    rondo_plan_builder_add(exchange->builder, &receive);
}

/* Copies a chunk of the input to the output. */
static void keep(const struct exchange *exchange, uint32_t source, uint32_t destination)
{
    struct rondo_instruction copy = {.actions = RONDO_COPY,
                                     .source_index = source,
                                     .destination_buffer = RONDO_OUTPUT,
                                     .destination_index = destination,
                                     .count = 1};
    rondo_plan_builder_add(exchange->builder, &copy);
}

static void at_root(const struct exchange *exchange)
{
    const struct rondo_shape *shape = exchange->shape;
    uint32_t own = exchange->channel;
    struct rondo_instruction all = {.source_index = own,
                                    .destination_buffer = RONDO_OUTPUT,
                                    .destination_index = own,
                                    .count = 1,
                                    .receive_first = exchange->ends.in_first,
                                    .receive_count = exchange->ends.count,
                                    .send_first = exchange->ends.out_first,
                                    .send_count = exchange->ends.count,
                                    .local_place = (uint8_t) shape->rank};
    if (shape->kind == RONDO_KIND_BCAST) {
        all.actions = RONDO_SEND;
        rondo_plan_builder_add(exchange->builder, &all);
        return;
    }
    if (shape->kind == RONDO_KIND_REDUCE) {
        all.actions = RONDO_RECEIVE | RONDO_REDUCE | RONDO_COPY;
        all.flags = RONDO_FINISH;
        rondo_plan_builder_add(exchange->builder, &all);
        return;
    }
    const int gathers = !is_outwards(shape);
    keep(exchange, gathers ? own : part(exchange, shape->rank), gathers ? part(exchange, shape->rank) : own);
    for (int step = 1; step < shape->size; step++) {
        int peer = (shape->rank + step) % shape->size;
        if (gathers)
            receive_from(exchange, peer, part(exchange, peer));
        else
            send_to(exchange, peer, part(exchange, peer));
    }
}

static void one_channel(const struct exchange *exchange)
{
    const struct rondo_shape *shape = exchange->shape;
    const int outwards = is_outwards(shape);
    if (is_both_ways(shape)) {
        keep(exchange, part(exchange, shape->rank), part(exchange, shape->rank));
        for (int step = 1; step < shape->size; step++) {
            int peer = (shape->rank + step) % shape->size;
            send_to(exchange, peer, part(exchange, peer));
        }
        for (int step = 1; step < shape->size; step++) {
            int peer = (shape->rank - step + shape->size) % shape->size;
            receive_from(exchange, peer, part(exchange, peer));
        }
    } else if (shape->rank == shape->root) {
        at_root(exchange);
    } else if (outwards) {
        receive_from(exchange, shape->root, exchange->channel);
    } else {
        send_to(exchange, shape->root, exchange->channel);
    }
}

rondo_result_t rondo_build_linear(const struct rondo_shape *shape, struct rondo_plan **plan)
{
    uint32_t chunks[RONDO_BUFFERS];
    rondo_shape_chunks(shape, chunks);
    struct exchange exchange = {shape, rondo_plan_builder_create(), {0, 0, 0}, 0};
    const int both_ways = is_both_ways(shape), outwards = is_outwards(shape);
    for (int channel = 0; channel < shape->channels; channel++) {
        exchange.channel = (uint32_t) channel;
        rondo_plan_builder_block(exchange.builder);
        if (both_ways) {
            exchange.ends = rondo_add_peer_ends(exchange.builder, shape, channel);
        } else if (shape->rank == shape->root) {
            exchange.ends.count = (uint8_t) (shape->size - 1);
            exchange.ends.in_first = exchange.ends.out_first =
                rondo_add_ends(exchange.builder, shape, channel, outwards ? RONDO_OUTGOING : RONDO_INCOMING);
        } else { /* one end alone: the firsts are such that the root's number leads to it */
            uint8_t end = rondo_plan_builder_end(exchange.builder, shape->root, channel,
                                                 outwards ? RONDO_INCOMING : RONDO_OUTGOING, shape->protocol);
            exchange.ends.in_first = exchange.ends.out_first = (uint8_t) (end - rondo_peer_place(shape, shape->root));
        }
        one_channel(&exchange);
    }
    rondo_result_t result = rondo_plan_builder_finish(exchange.builder, chunks, plan);
    /* The root reduces what all others send at once, and their slices must be cut as its own are. */
    if (result == RONDO_SUCCESS && shape->kind == RONDO_KIND_REDUCE && shape->size > 2)
        (*plan)->largest_receive = (uint32_t) shape->size - 1;
    return result;
}
