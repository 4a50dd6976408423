/*
 * Chain, by hand: scan and exscan (a partial result passes from rank to rank, pipelined by tiles), reduce and reduce-scatter of
 * any number of ranks in their order (likewise, and the last rank sends what is complete), all-to-next, and a single send or
 * receive. Each channel has blocks of its own; so have sending and receiving where nothing orders them. Written by hand
 * because a send and a receive are programs of two ranks that the others do not know of.
 */
#include "lib/algorithms/algorithms.h"

static uint8_t end(struct rondo_plan_builder *builder, const struct rondo_shape *shape, int peer, int channel,
                   enum rondo_direction direction)
{
    return rondo_plan_builder_end(builder, peer, channel, direction, shape->protocol);
}

/* Adds a block that only sends, or only receives, the channel's chunk. */
static void one_way(struct rondo_plan_builder *builder, const struct rondo_shape *shape, int peer, int channel,
                    enum rondo_direction direction)
{
    struct rondo_instruction instruction = {.source_index = (uint32_t) channel,
                                            .destination_buffer = RONDO_OUTPUT,
                                            .destination_index = (uint32_t) channel,
                                            .count = 1,
                                            .receive_count = 1,
                                            .send_count = 1};
    rondo_plan_builder_block(builder);
    end(builder, shape, peer, channel, direction);
    instruction.actions = direction == RONDO_OUTGOING ? RONDO_SEND : RONDO_RECEIVE | RONDO_COPY;
    rondo_plan_builder_add(builder, &instruction);
}

/* Adds a channel's block of a scan or exscan. */
static void scan(struct rondo_plan_builder *builder, const struct rondo_shape *shape, int channel)
{
    int first = shape->rank == 0, last = shape->rank == shape->size - 1;
    struct rondo_instruction step = {.source_index = (uint32_t) channel,
                                     .destination_buffer = RONDO_OUTPUT,
                                     .destination_index = (uint32_t) channel,
                                     .count = 1,
                                     .receive_count = 1,
                                     .send_count = 1,
                                     .local_place = 1};
    rondo_plan_builder_block(builder);
    if (!first)
        step.receive_first = end(builder, shape, shape->rank - 1, channel, RONDO_INCOMING);
    if (!last)
        step.send_first = end(builder, shape, shape->rank + 1, channel, RONDO_OUTGOING);
    int send = last ? 0 : RONDO_SEND;

    if (shape->kind == RONDO_KIND_SCAN) {
        step.actions = (uint8_t) (RONDO_COPY | send | (first ? 0 : RONDO_RECEIVE | RONDO_REDUCE));
        step.flags = RONDO_FINISH;
        rondo_plan_builder_add(builder, &step);
    } else if (first) {
        step.actions = RONDO_SEND;
        rondo_plan_builder_add(builder, &step);
    } else if (last) {
        step.actions = RONDO_RECEIVE | RONDO_COPY;
        step.flags = RONDO_FINISH;
        rondo_plan_builder_add(builder, &step);
    } else { /* the prefix stays in scratch, because in place the output is the input that is still needed */
        struct rondo_instruction take = step, pass_on = step, store = step;
        take.actions = RONDO_RECEIVE | RONDO_COPY;
        take.destination_buffer = RONDO_SCRATCH;
        rondo_plan_builder_add(builder, &take);
        pass_on.actions = RONDO_REDUCE | RONDO_SEND;
        pass_on.source_buffer = RONDO_SCRATCH;
        pass_on.destination_buffer = RONDO_INPUT; /* its second source */
        rondo_plan_builder_add(builder, &pass_on);
        store.actions = RONDO_COPY;
        store.flags = RONDO_FINISH;
        store.source_buffer = RONDO_SCRATCH;
        rondo_plan_builder_add(builder, &store);
    }
}

/* Adds the step of a reduction by which this rank adds its contribution to the partial result of the ranks before it. owner:
 * the rank that gets the result; source: the chunk of the input; notifies: another block waits for the step. */
static void add_contribution(struct rondo_plan_builder *builder, const struct rondo_shape *shape, int channel, int owner,
                             uint32_t source, uint8_t receive, uint8_t send, int notifies)
{
    int first = shape->rank == 0, last = shape->rank == shape->size - 1, stays = last && owner == shape->rank;
    struct rondo_instruction step = {
        .actions = (uint8_t) ((first ? 0 : RONDO_RECEIVE | RONDO_REDUCE) | (stays ? RONDO_COPY : RONDO_SEND)),
        .flags = (uint8_t) ((last ? RONDO_FINISH : 0) | (notifies ? RONDO_NOTIFY : 0)),
        .source_index = source,
        .destination_buffer = RONDO_OUTPUT,
        .destination_index = (uint32_t) channel,
        .count = 1,
        .receive_first = receive,
        .receive_count = 1,
        .send_first = send,
        .send_count = 1,
        .local_place = 1};
    rondo_plan_builder_add(builder, &step);
}

/* Adds an instruction that takes a finished result. receive: the end; wait: the block whose last step comes first; -1: none. */
static void take_result(struct rondo_plan_builder *builder, int channel, uint8_t receive, int wait, int step)
{
    struct rondo_instruction take = {.actions = RONDO_RECEIVE | RONDO_COPY,
                                     .destination_buffer = RONDO_OUTPUT,
                                     .destination_index = (uint32_t) channel,
                                     .count = 1,
                                     .receive_first = receive,
                                     .receive_count = 1};
    rondo_plan_builder_add(builder, &take);
    if (wait >= 0)
        rondo_plan_builder_depend(builder, wait, step);
}

/* Adds the block by which results come back along the chain: this rank passes on those of the ranks before it, then takes its
 * own. In place that is where its input was, all of which the block before this one has sent. */
static void bring_back(struct rondo_plan_builder *builder, const struct rondo_shape *shape, int channel)
{
    const int forward = 2 * channel, steps = shape->size;
    rondo_plan_builder_block(builder);
    const uint8_t receive = end(builder, shape, shape->rank + 1, channel, RONDO_INCOMING);
    const uint8_t send = shape->rank > 0 ? end(builder, shape, shape->rank - 1, channel, RONDO_OUTGOING) : 0;
    for (int owner = 0; owner < shape->rank; owner++) {
        struct rondo_instruction pass_on = {.actions = RONDO_RECEIVE | RONDO_SEND,
                                            .source_index = (uint32_t) (owner * shape->channels + channel), /* as long */
                                            .count = 1,
                                            .receive_first = receive,
                                            .receive_count = 1,
                                            .send_first = send,
                                            .send_count = 1};
        rondo_plan_builder_add(builder, &pass_on);
    }
    take_result(builder, channel, receive, forward, steps - 1);
}

/* Adds a channel's blocks of a reduce or reduce-scatter. A rank gets its result from the last one when it has passed on all
 * that comes before in the tile, so a slot for each is enough. Where the last one cannot have a connector to each, results come
 * back along the chain, and each rests in a slot of the rank that it is for. */
static void reduce(struct rondo_plan_builder *builder, const struct rondo_shape *shape, int channel)
{
    const int final = shape->size - 1, last = shape->rank == final, scatters = shape->kind != RONDO_KIND_REDUCE;
    const int from = scatters ? 0 : shape->root, to = scatters ? final : shape->root; /* the ranks that get results */
    const int back = scatters && shape->size > RONDO_PROGRAM_ENDS_MAX,
              takes = !last && shape->rank >= from && shape->rank <= to;
    uint8_t receive = 0, send = 0, result = 0;
    rondo_plan_builder_block(builder);
    if (shape->rank > 0)
        receive = end(builder, shape, shape->rank - 1, channel, RONDO_INCOMING);
    if (!last || back)
        send = end(builder, shape, last ? final - 1 : shape->rank + 1, channel, RONDO_OUTGOING);
    if (takes && !back)
        result = end(builder, shape, final, channel, RONDO_INCOMING);
    for (int owner = from; owner <= to; owner++) {
        if (last && owner != final && !back)
            send = end(builder, shape, owner, channel, RONDO_OUTGOING);
        add_contribution(builder, shape, channel, owner, (uint32_t) (scatters ? owner * shape->channels + channel : channel),
                         receive, send, back && owner == to && !last);
    }
    if (takes && back)
        bring_back(builder, shape, channel);
    else if (takes)
        take_result(builder, channel, result, -1, 0);
}

rondo_result_t rondo_build_chain(const struct rondo_shape *shape, struct rondo_plan **plan)
{
    uint32_t chunks[RONDO_BUFFERS];
    rondo_shape_chunks(shape, chunks);
    struct rondo_plan_builder *builder = rondo_plan_builder_create();
    for (int channel = 0; channel < shape->channels; channel++) {
        switch (shape->kind) {
        case RONDO_KIND_SEND_TO:
            one_way(builder, shape, shape->root, channel, RONDO_OUTGOING);
            break;
        case RONDO_KIND_RECEIVE_FROM:
            one_way(builder, shape, shape->root, channel, RONDO_INCOMING);
            break;
        case RONDO_KIND_ALLTONEXT:
            if (shape->rank < shape->size - 1)
                one_way(builder, shape, shape->rank + 1, channel, RONDO_OUTGOING);
            if (shape->rank > 0)
                one_way(builder, shape, shape->rank - 1, channel, RONDO_INCOMING);
            break;
        case RONDO_KIND_REDUCE:
        case RONDO_KIND_REDUCE_SCATTER_BLOCK:
        case RONDO_KIND_REDUCE_SCATTER:
            reduce(builder, shape, channel);
            break;
        default:
            scan(builder, shape, channel);
            break;
        }
    }
    return rondo_plan_builder_finish(builder, chunks, plan);
}
