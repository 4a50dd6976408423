/*
 * One rank's part of a ring, by hand: the plan that the compiler makes of lib/algorithms/ring.c, instruction by instruction
 * (test/unit/test_program_library.c compares them). The compiler is given the program of all ranks, whose steps are in the
 * square of their number; this takes memory and time in their number, for communicators of many ranks.
 */
#include "lib/algorithms/algorithms.h"

struct ring {
    struct rondo_plan_builder *builder;
    int rank, size, channels, channel;
    uint8_t from, to; /* the ends of the chain */
};

static uint32_t chunk_of(const struct ring *ring, int rank)
{
    int wrapped = (rank % ring->size + ring->size) % ring->size;
    return (uint32_t) (wrapped * ring->channels + ring->channel);
}

static void add(const struct ring *ring, int actions, int flags, enum rondo_buffer source_buffer, uint32_t source,
                enum rondo_buffer destination_buffer, uint32_t destination)
{
    struct rondo_instruction instruction = {
        .actions = (uint8_t) actions,
        .flags = (uint8_t) flags,
        .source_buffer = (uint8_t) source_buffer,
        .destination_buffer = (uint8_t) destination_buffer,
        .source_index = source,
        .destination_index = destination,
        .count = 1,
        .receive_first = ring->from,
        .receive_count = actions & RONDO_RECEIVE ? 1 : 0,
        .send_first = ring->to,
        .send_count = actions & RONDO_SEND ? 1 : 0,
        .local_place = 1,
    };
    rondo_plan_builder_add(ring->builder, &instruction);
}

/* Chunk r - 1 leaves first, partial sums pass by, and chunk r arrives last and ends where the caller says. */
static void reduce_scatter(const struct ring *ring, int last_actions, uint32_t destination)
{
    int rank = ring->rank;
    add(ring, RONDO_SEND, 0, RONDO_INPUT, chunk_of(ring, rank - 1), RONDO_OUTPUT, 0);
    for (int step = 2; step < ring->size; step++)
        add(ring, RONDO_RECEIVE | RONDO_REDUCE | RONDO_SEND, 0, RONDO_INPUT, chunk_of(ring, rank - step), RONDO_OUTPUT, 0);
    add(ring, RONDO_RECEIVE | RONDO_REDUCE | RONDO_COPY | last_actions, RONDO_FINISH, RONDO_INPUT, chunk_of(ring, rank),
        RONDO_OUTPUT, destination);
}

/* Chunk r has left already; the others pass by, and the last one stays. */
static void gather_rest(const struct ring *ring)
{
    for (int step = 1; step < ring->size - 1; step++) {
        uint32_t chunk = chunk_of(ring, ring->rank - step);
        add(ring, RONDO_RECEIVE | RONDO_COPY | RONDO_SEND, 0, RONDO_OUTPUT, chunk, RONDO_OUTPUT, chunk);
    }
    uint32_t last = chunk_of(ring, ring->rank + 1);
    add(ring, RONDO_RECEIVE | RONDO_COPY, 0, RONDO_OUTPUT, last, RONDO_OUTPUT, last);
}

static void one_channel(const struct rondo_shape *shape, const struct ring *ring)
{
    uint32_t own = (uint32_t) ring->channel;
    int distance = (shape->rank - shape->root + shape->size) % shape->size; /* from the root along the ring */
    int is_last = distance == shape->size - 1;
    switch (shape->kind) {
    case RONDO_KIND_ALLREDUCE:
        reduce_scatter(ring, RONDO_SEND, chunk_of(ring, shape->rank));
        gather_rest(ring);
        break;
    case RONDO_KIND_REDUCE_SCATTER_BLOCK:
        reduce_scatter(ring, 0, own);
        break;
    case RONDO_KIND_ALLGATHER:
    case RONDO_KIND_ALLGATHERV:
        add(ring, RONDO_COPY | RONDO_SEND, 0, RONDO_INPUT, own, RONDO_OUTPUT, chunk_of(ring, shape->rank));
        gather_rest(ring);
        break;
    case RONDO_KIND_BCAST:
        if (distance == 0)
            add(ring, RONDO_SEND, 0, RONDO_INPUT, own, RONDO_OUTPUT, own);
        else
            add(ring, RONDO_RECEIVE | RONDO_COPY | (is_last ? 0 : RONDO_SEND), 0, RONDO_INPUT, own, RONDO_OUTPUT, own);
        break;
    default: /* reduce: starts after the root and ends there */
        if (distance == 0)
            add(ring, RONDO_RECEIVE | RONDO_REDUCE | RONDO_COPY, RONDO_FINISH, RONDO_INPUT, own, RONDO_OUTPUT, own);
        else
            add(ring, (distance == 1 ? 0 : RONDO_RECEIVE | RONDO_REDUCE) | RONDO_SEND, 0, RONDO_INPUT, own, RONDO_OUTPUT, own);
        break;
    }
}

rondo_result_t rondo_build_ring(const struct rondo_shape *shape, struct rondo_plan **plan)
{
    uint32_t chunks[RONDO_BUFFERS];
    rondo_shape_chunks(shape, chunks);
    struct ring ring = {rondo_plan_builder_create(), shape->rank, shape->size, shape->channels, 0, 0, 0};
    int distance = (shape->rank - shape->root + shape->size) % shape->size;
    int receives = shape->kind == RONDO_KIND_BCAST ? distance != 0 : shape->kind == RONDO_KIND_REDUCE ? distance != 1 : 1;
    int sends = shape->kind == RONDO_KIND_BCAST    ? distance != shape->size - 1
                : shape->kind == RONDO_KIND_REDUCE ? distance != 0
                                                   : 1;
    for (int channel = 0; channel < shape->channels; channel++) {
        ring.channel = channel;
        rondo_plan_builder_block(ring.builder);
        if (receives)
            ring.from = rondo_plan_builder_end(ring.builder, (shape->rank + shape->size - 1) % shape->size, channel,
                                               RONDO_INCOMING, shape->protocol);
        if (sends)
            ring.to =
                rondo_plan_builder_end(ring.builder, (shape->rank + 1) % shape->size, channel, RONDO_OUTGOING, shape->protocol);
        one_channel(shape, &ring);
    }
    return rondo_plan_builder_finish(ring.builder, chunks, plan);
}
