/*
 * Binomial tree, by hand: gather and scatter of any number of ranks, each of which has connectors to at most log2 n others. In
 * the order that begins at the root, the subtree under rank v is the ranks from v on, as many as v's lowest bit says. Blocks
 * travel in that order, and inner ranks pass them on from slot to slot, so that none of them stores another's block. Written by
 * hand because it takes each rank but its own instructions: composing all ranks' takes memory for n * n chunks on each of them.
 */
#include "lib/algorithms/algorithms.h"

struct binomial {
    struct rondo_plan_builder *builder;
    const struct rondo_shape *shape;
    int place; /* this rank's, counted from the root */
    int channel;
};

static int rank_of(const struct binomial *b, int place)
{
    return (place + b->shape->root) % b->shape->size;
}

/* The distance to the parent, and one more than the farthest child's: the lowest bit; of the root more than all ranks. */
static int reach(const struct binomial *b)
{
    int reach = 1;
    while (reach < b->shape->size && !(b->place & reach))
        reach *= 2;
    return reach;
}

/* Ranks of the subtree under the child at that distance. */
static int subtree(const struct binomial *b, int distance)
{
    const int left = b->shape->size - b->place - distance;
    return left < distance ? left : distance;
}

static uint8_t end(const struct binomial *b, int place, enum rondo_direction direction)
{
    return rondo_plan_builder_end(b->builder, rank_of(b, place), b->channel, direction, b->shape->protocol);
}

/* The channel's chunk of the block of the rank at a place. */
static uint32_t part(const struct binomial *b, int place)
{
    return (uint32_t) (rank_of(b, place) * b->shape->channels + b->channel);
}

/* Adds an instruction on one chunk of the input and one of the output. */
static void add(const struct binomial *b, int actions, enum rondo_buffer source, uint32_t from, uint32_t to, uint8_t receive,
                uint8_t send)
{
    rondo_plan_builder_add(b->builder, &(struct rondo_instruction){.actions = (uint8_t) actions,
                                                                   .source_buffer = (uint8_t) source,
                                                                   .destination_buffer = RONDO_OUTPUT,
                                                                   .source_index = from,
                                                                   .destination_index = to,
                                                                   .count = 1,
                                                                   .receive_first = receive,
                                                                   .receive_count = actions & RONDO_RECEIVE ? 1 : 0,
                                                                   .send_first = send,
                                                                   .send_count = actions & RONDO_SEND ? 1 : 0});
}

static void gather(const struct binomial *b)
{
    const uint32_t own = (uint32_t) b->channel;
    const int up = reach(b);
    uint8_t parent = 0;
    if (b->place == 0) {
        add(b, RONDO_COPY, RONDO_INPUT, own, part(b, 0), 0, 0);
    } else {
        parent = end(b, b->place - up, RONDO_OUTGOING);
        add(b, RONDO_SEND, RONDO_INPUT, own, own, 0, parent);
    }
    for (int distance = 1; distance < up && b->place + distance < b->shape->size; distance *= 2) {
        const uint8_t child = end(b, b->place + distance, RONDO_INCOMING);
        for (int i = 0; i < subtree(b, distance); i++)
            if (b->place == 0) /* what is passed on is as long as this rank's own chunk, which is its source */
                add(b, RONDO_RECEIVE | RONDO_COPY, RONDO_INPUT, own, part(b, distance + i), child, 0);
            else
                add(b, RONDO_RECEIVE | RONDO_SEND, RONDO_INPUT, own, own, child, parent);
    }
}

static void scatter_from_root(const struct binomial *b)
{
    add(b, RONDO_COPY, RONDO_INPUT, part(b, 0), (uint32_t) b->channel, 0, 0);
    for (int distance = reach(b) / 2; distance > 0; distance /= 2) { /* the largest subtree first: it has the longest way */
        const uint8_t child = end(b, distance, RONDO_OUTGOING);
        for (int i = 0; i < subtree(b, distance); i++)
            add(b, RONDO_SEND, RONDO_INPUT, part(b, distance + i), 0, 0, child);
    }
}

static void scatter(const struct binomial *b)
{
    const uint32_t own = (uint32_t) b->channel;
    const int up = reach(b);
    const uint8_t parent = end(b, b->place - up, RONDO_INCOMING);
    add(b, RONDO_RECEIVE | RONDO_COPY, RONDO_OUTPUT, own, own, parent, 0);
    for (int distance = 1; distance < up && b->place + distance < b->shape->size; distance *= 2) {
        const uint8_t child = end(b, b->place + distance, RONDO_OUTGOING);
        for (int i = 0; i < subtree(b, distance); i++)
            add(b, RONDO_RECEIVE | RONDO_SEND, RONDO_OUTPUT, own, own, parent, child);
    }
}

rondo_result_t rondo_build_binomial(const struct rondo_shape *shape, struct rondo_plan **plan)
{
    uint32_t chunks[RONDO_BUFFERS];
    rondo_shape_chunks(shape, chunks);
    struct binomial b = {.builder = rondo_plan_builder_create(),
                         .shape = shape,
                         .place = (shape->rank - shape->root + shape->size) % shape->size};
    for (b.channel = 0; b.channel < shape->channels; b.channel++) {
        rondo_plan_builder_block(b.builder);
        if (shape->kind == RONDO_KIND_GATHER)
            gather(&b);
        else if (b.place == 0)
            scatter_from_root(&b);
        else
            scatter(&b);
    }
    return rondo_plan_builder_finish(b.builder, chunks, plan);
}
