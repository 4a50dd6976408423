/*
 * Recursive doubling, by hand: pairs of ranks, ever farther apart, exchange all they have reduced so far, so that after log2 n
 * steps all ranks have the result (R. Thakur and W. Gropp 2003; with compression Q. Zhou et al. 2024, algorithm 2). If n is no
 * power of two, the first ranks begin in pairs: the even one sends its data to the odd one and receives the result from it.
 * Compressed, a rank goes on with what its partner has decoded, so that the two hold the same bits, and in the end all ranks.
 * Written by hand because residuals depend on how many ranks hold the same.
 */
#include "lib/algorithms/algorithms.h"

struct doubling {
    struct rondo_plan_builder *builder;
    const struct rondo_shape *shape;
    int power, paired; /* the largest power of two, and how many ranks are beyond it */
    int place;         /* number among the ranks that exchange; -1: an even rank of a pair */
    uint32_t chunk;    /* the channel's */
    int compresses;
    enum rondo_buffer from; /* where this rank's part of the sum is */
};

/* Returns the rank of the place-th of those that exchange. */
static int rank_of(const struct doubling *d, int place)
{
    return place < d->paired ? 2 * place + 1 : place + d->paired;
}

/* Adds an instruction on the channel's chunk, with an end to the peer for each direction it uses. */
static void add(struct doubling *d, int actions, int flags, int feedback, int peer, int local_place)
{
    struct rondo_instruction instruction = {.actions = (uint8_t) actions,
                                            .flags = (uint8_t) flags,
                                            .source_buffer = (uint8_t) d->from,
                                            .destination_buffer = RONDO_OUTPUT,
                                            .source_index = d->chunk,
                                            .destination_index = d->chunk,
                                            .count = 1,
                                            .local_place = (uint8_t) local_place,
                                            .feedback = (uint8_t) feedback};
    if (actions & RONDO_RECEIVE) {
        instruction.receive_first =
            rondo_plan_builder_end(d->builder, peer, (int) d->chunk, RONDO_INCOMING, d->shape->protocol);
        instruction.receive_count = 1;
    }
    if (actions & RONDO_SEND) {
        instruction.send_first = rondo_plan_builder_end(d->builder, peer, (int) d->chunk, RONDO_OUTGOING, d->shape->protocol);
        instruction.send_count = 1;
    }
    rondo_plan_builder_add(d->builder, &instruction);
    if (actions & RONDO_COPY)
        d->from = RONDO_OUTPUT;
}

/* Returns the feedback flag of the first use of a rank's own data, which adds the residual of earlier calls. */
static int taken(const struct doubling *d)
{
    return d->from == RONDO_INPUT ? RONDO_FEEDBACK_TAKE : 0;
}

static void exchange(struct doubling *d, int step, int last)
{
    int mask = 1 << step, peer = rank_of(d, d->place ^ mask), rest = d->compresses && d->paired > 0;
    /* 2^step ranks encode the same: each keeps its share of the residual. */
    int lost = RONDO_FEEDBACK_KEEP | (step > 0 ? RONDO_FEEDBACK_ADD : 0) | step << RONDO_FEEDBACK_SHIFT;
    add(d, RONDO_SEND | (d->compresses ? RONDO_COPY : 0), 0, taken(d) | lost, peer, 0);
    add(d, RONDO_RECEIVE | RONDO_REDUCE | RONDO_COPY, (last && !rest ? RONDO_FINISH : 0) | RONDO_ROUND, 0, peer,
        (d->place & mask) != 0);
}

static void one_channel(struct doubling *d)
{
    int rank = d->shape->rank, steps = 0, in_pair = rank < 2 * d->paired;
    while (1 << steps < d->power)
        steps++;
    if (d->place < 0) {
        add(d, RONDO_SEND, 0, RONDO_FEEDBACK_TAKE | RONDO_FEEDBACK_KEEP, rank + 1, 0);
        add(d, RONDO_RECEIVE | RONDO_COPY, 0, 0, rank + 1, 0);
        return;
    }
    if (in_pair)
        add(d, RONDO_RECEIVE | RONDO_REDUCE | RONDO_COPY, 0, taken(d), rank - 1, 1);
    for (int step = 0; step < steps; step++)
        exchange(d, step, step == steps - 1);
    if (d->paired == 0)
        return;
    int finish = d->compresses ? RONDO_FINISH : 0;
    int lost = RONDO_FEEDBACK_KEEP | RONDO_FEEDBACK_ADD | steps << RONDO_FEEDBACK_SHIFT;
    if (in_pair)
        add(d, RONDO_SEND | (d->compresses ? RONDO_COPY : 0), finish, lost, rank - 1, 0);
    else if (d->compresses) /* all other ranks store what the even ranks of the pairs decode */
        add(d, RONDO_COPY, finish | RONDO_ROUND, lost, 0, 0);
}

rondo_result_t rondo_build_doubling(const struct rondo_shape *shape, struct rondo_plan **plan)
{
    uint32_t channels = (uint32_t) shape->channels, chunks[RONDO_BUFFERS] = {channels, channels, 0};
    struct doubling d = {.builder = rondo_plan_builder_create(),
                         .shape = shape,
                         .power = 1,
                         .compresses = shape->protocol == RONDO_PROTOCOL_COMPRESSED};
    while (2 * d.power <= shape->size)
        d.power *= 2;
    d.paired = shape->size - d.power;
    d.place = shape->rank >= 2 * d.paired ? shape->rank - d.paired : shape->rank % 2 == 0 ? -1 : shape->rank / 2;
    for (d.chunk = 0; d.chunk < channels; d.chunk++) {
        d.from = RONDO_INPUT;
        rondo_plan_builder_block(d.builder);
        one_channel(&d);
    }
    return rondo_plan_builder_finish(d.builder, chunks, plan);
}
