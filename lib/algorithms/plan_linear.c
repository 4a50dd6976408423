/*
 * Linear, by hand: messages straight between the root, or every rank, and each other rank: broadcast and reduce of small sizes,
 * gather, scatter, all-to-all. The other ranks are shared out among blocks (rondo_peer_windows), each of which has connectors
 * to its own; blocks wait for nothing of each other. All sends of a block's tile come before its receives, so the buffers may
 * be the same (in place), and slots are all that a rank ever waits for. Written by hand because an all-to-all of given counts
 * has blocks whose sizes only the call knows.
 */
#include "lib/algorithms/algorithms.h"

/* A block's share of the other ranks. A rank's place among the others is its number in the order of ranks. */
struct exchange {
    const struct rondo_shape *shape;
    struct rondo_plan_builder *builder;
    int first, count;            /* places */
    uint8_t out_first, in_first; /* index of the end to, and from, the rank at the first place */
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

/* Returns the rank at a place. */
static int peer_at(const struct rondo_shape *shape, int place)
{
    return place + (place >= shape->rank);
}

/* Returns the window's place at which a rank is in its turn. Ranks begin at different places, each with the one after it. */
static int turn(const struct exchange *exchange, int step)
{
    return (exchange->shape->rank + step) % exchange->count;
}

/* Returns the channel's chunk of a rank's block. */
static uint32_t part(const struct exchange *exchange, int rank)
{
    return (uint32_t) rank * (uint32_t) exchange->shape->channels + exchange->channel;
}

/* Adds an end for each rank of the window. Returns the index of the first. */
static uint8_t add_ends(const struct exchange *exchange, enum rondo_direction direction)
{
    uint8_t first = 0;
    for (int i = 0; i < exchange->count; i++) {
        const uint8_t end = rondo_plan_builder_end(exchange->builder, peer_at(exchange->shape, exchange->first + i),
                                                   (int) exchange->channel, direction, exchange->shape->protocol);
        first = i == 0 ? end : first;
    }
    return first;
}

/* Sends a chunk to the rank that is i places after the window's first. */
static void send_to(const struct exchange *exchange, int i, uint32_t source)
{
    struct rondo_instruction send = {.actions = RONDO_SEND,
                                     .source_index = source,
                                     .count = 1,
                                     .send_first = (uint8_t) (exchange->out_first + i),
                                     .send_count = 1};
    rondo_plan_builder_add(exchange->builder, &send);
}

static void receive_from(const struct exchange *exchange, int i, uint32_t destination)
{
    struct rondo_instruction receive = {.actions = RONDO_RECEIVE | RONDO_COPY,
                                        .destination_buffer = RONDO_OUTPUT,
                                        .destination_index = destination,
                                        .count = 1,
                                        .receive_first = (uint8_t) (exchange->in_first + i),
                                        .receive_count = 1};
    rondo_plan_builder_add(exchange->builder, &receive);
}

/* Copies a chunk of the input to the output. Once: in the first window. */
static void keep(const struct exchange *exchange, uint32_t source, uint32_t destination)
{
    if (exchange->first == 0)
        rondo_plan_builder_keep(exchange->builder, source, destination);
}

static void at_root(const struct exchange *exchange)
{
    const struct rondo_shape *shape = exchange->shape;
    uint32_t own = exchange->channel;
    struct rondo_instruction all = {.source_index = own,
                                    .destination_buffer = RONDO_OUTPUT,
                                    .destination_index = own,
                                    .count = 1,
                                    .receive_first = exchange->in_first,
                                    .receive_count = (uint8_t) exchange->count,
                                    .send_first = exchange->out_first,
                                    .send_count = (uint8_t) exchange->count,
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
    for (int step = 0; step < exchange->count; step++) {
        const int i = turn(exchange, step), peer = peer_at(shape, exchange->first + i);
        if (gathers)
            receive_from(exchange, i, part(exchange, peer));
        else
            send_to(exchange, i, part(exchange, peer));
    }
}

/* What is sent to a rank and what is received from it are of one window, so that a rank's block is sent before what takes its
 * place is stored. */
static void both_ways(const struct exchange *exchange)
{
    const struct rondo_shape *shape = exchange->shape;
    keep(exchange, part(exchange, shape->rank), part(exchange, shape->rank));
    for (int step = 0; step < exchange->count; step++) {
        const int i = turn(exchange, step);
        send_to(exchange, i, part(exchange, peer_at(shape, exchange->first + i)));
    }
    for (int step = exchange->count - 1; step >= 0; step--) {
        const int i = turn(exchange, step);
        receive_from(exchange, i, part(exchange, peer_at(shape, exchange->first + i)));
    }
}

static void one_window(struct exchange *exchange)
{
    const struct rondo_shape *shape = exchange->shape;
    const int outwards = is_outwards(shape), at = is_both_ways(shape), root = shape->rank == shape->root;
    rondo_plan_builder_block(exchange->builder);
    if (at || outwards == root)
        exchange->out_first = add_ends(exchange, RONDO_OUTGOING);
    if (at || outwards != root)
        exchange->in_first = add_ends(exchange, RONDO_INCOMING);
    if (at)
        both_ways(exchange);
    else if (root)
        at_root(exchange);
    else if (outwards)
        receive_from(exchange, 0, exchange->channel);
    else
        send_to(exchange, 0, exchange->channel);
}

rondo_result_t rondo_build_linear(const struct rondo_shape *shape, struct rondo_plan **plan)
{
    uint32_t chunks[RONDO_BUFFERS];
    rondo_shape_chunks(shape, chunks);
    struct exchange exchange = {.shape = shape, .builder = rondo_plan_builder_create()};
    const int all = is_both_ways(shape) || shape->rank == shape->root, others = shape->size - 1;
    const int windows = all ? rondo_peer_windows(shape->kind, shape->size) : 1;
    for (exchange.channel = 0; exchange.channel < (uint32_t) shape->channels; exchange.channel++)
        for (int w = 0; w < windows; w++) {
            exchange.first = all ? others * w / windows : shape->root - (shape->root > shape->rank);
            exchange.count = all ? others * (w + 1) / windows - exchange.first : 1;
            one_window(&exchange);
        }
    rondo_result_t result = rondo_plan_builder_finish(exchange.builder, chunks, plan);
    /* The root reduces what all others send at once, and their slices must be cut as its own are. */
    if (result == RONDO_SUCCESS && shape->kind == RONDO_KIND_REDUCE && shape->size > 2)
        (*plan)->largest_receive = (uint32_t) shape->size - 1;
    return result;
}
