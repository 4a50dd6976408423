/*
 * Steps to ever farther ranks, by hand: in the step of distance d (1, 2, 4, ...) each rank sends to the rank d after it and
 * receives from the rank d before it, so that it has connectors to log2 n others each way, whatever n is.
 *
 * - barrier by dissemination (Hensgen, Finkel, Manber 1988): after the step of distance d a rank has heard of the 2d - 1 before
 *   it
 * - all-to-all (Bruck et al. 1997): the block for the rank that is j places on takes the steps whose distances are the bits of
 *   j. Scratch has the blocks by j; each is sent, and the one that takes its place received, before the next one, so that a
 *   connector holds one of them at a time, and an all-to-all in place reads its input before it stores.
 *
 * Written by hand because it takes each rank but its own instructions: composing all ranks' takes memory for n * n chunks on
 * each of them.
 */
#include "lib/algorithms/algorithms.h"

struct bruck {
    struct rondo_plan_builder *builder;
    const struct rondo_shape *shape;
    int channel;
};

struct place {
    enum rondo_buffer buffer;
    uint32_t index;
};

static uint8_t end(const struct bruck *b, int distance, enum rondo_direction direction)
{
    return rondo_plan_builder_end(b->builder, (b->shape->rank + distance) % b->shape->size, b->channel, direction,
                                  b->shape->protocol);
}

/* Adds an instruction on one chunk, by one end. */
static void add(const struct bruck *b, int actions, struct place source, struct place destination, uint8_t by)
{
    rondo_plan_builder_add(b->builder, &(struct rondo_instruction){.actions = (uint8_t) actions,
                                                                   .source_buffer = (uint8_t) source.buffer,
                                                                   .destination_buffer = (uint8_t) destination.buffer,
                                                                   .source_index = source.index,
                                                                   .destination_index = destination.index,
                                                                   .count = 1,
                                                                   .receive_first = by,
                                                                   .receive_count = actions & RONDO_RECEIVE ? 1 : 0,
                                                                   .send_first = by,
                                                                   .send_count = actions & RONDO_SEND ? 1 : 0});
}

static void barrier(const struct bruck *b)
{
    const struct place nothing = {RONDO_INPUT, (uint32_t) b->channel};
    for (int distance = 1; distance < b->shape->size; distance *= 2) {
        add(b, RONDO_SEND, nothing, nothing, end(b, distance, RONDO_OUTGOING));
        add(b, RONDO_RECEIVE, nothing, nothing, end(b, b->shape->size - distance, RONDO_INCOMING));
    }
}

/* The channel's chunk of a block. */
static struct place part(const struct bruck *b, enum rondo_buffer buffer, int block)
{
    return (struct place){buffer, (uint32_t) (block * b->shape->channels + b->channel)};
}

static void all_to_all(const struct bruck *b)
{
    const int rank = b->shape->rank, size = b->shape->size;
    for (int j = 1; j < size; j++)
        add(b, RONDO_COPY, part(b, RONDO_INPUT, (rank + j) % size), part(b, RONDO_SCRATCH, j), 0);
    add(b, RONDO_COPY, part(b, RONDO_INPUT, rank), part(b, RONDO_OUTPUT, rank), 0);
    for (int distance = 1; distance < size; distance *= 2) {
        const uint8_t to = end(b, distance, RONDO_OUTGOING), from = end(b, size - distance, RONDO_INCOMING);
        for (int j = distance; j < size; j++) {
            if (!(j & distance))
                continue;
            const int arrives = j < 2 * distance; /* it takes no step any more: it is from the rank that is j places before */
            add(b, RONDO_SEND, part(b, RONDO_SCRATCH, j), part(b, RONDO_SCRATCH, j), to);
            add(b, RONDO_RECEIVE | RONDO_COPY, part(b, RONDO_SCRATCH, j),
                arrives ? part(b, RONDO_OUTPUT, (rank - j + size) % size) : part(b, RONDO_SCRATCH, j), from);
        }
    }
}

rondo_result_t rondo_build_bruck(const struct rondo_shape *shape, struct rondo_plan **plan)
{
    uint32_t chunks[RONDO_BUFFERS];
    rondo_shape_chunks(shape, chunks);
    if (shape->kind == RONDO_KIND_ALLTOALL)
        chunks[RONDO_SCRATCH] = chunks[RONDO_INPUT];
    struct bruck b = {.builder = rondo_plan_builder_create(), .shape = shape};
    for (b.channel = 0; b.channel < shape->channels; b.channel++) {
        rondo_plan_builder_block(b.builder);
        if (shape->kind == RONDO_KIND_BARRIER)
            barrier(&b);
        else
            all_to_all(&b);
    }
    rondo_result_t result = rondo_plan_builder_finish(b.builder, chunks, plan);
    if (result == RONDO_SUCCESS && shape->kind == RONDO_KIND_ALLTOALL)
        (*plan)->scratch_groups = (uint32_t) shape->size;
    return result;
}
