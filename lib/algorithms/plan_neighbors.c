/*
 * Neighbours, by hand: each rank sends along its edges and receives along the edges that end at it, on a communicator with a
 * graph. What two ranks send each other has a connector for each edge, whose channel is the edge's label. All sends of a tile
 * come before its receives. Where the edges are more than a block has ends for, further blocks take the rest; blocks wait for
 * nothing of each other, and send and receive buffers never overlap. Written by hand because a rank knows its own edges alone.
 */
#include "lib/algorithms/algorithms.h"

#include "lib/base/error.h"
#include "lib/call/graph.h"

/* The block's chunk of the output with an edge's label from this rank to itself; -1: there is none. */
static int own_source(const struct rondo_graph *graph, int rank, uint16_t label)
{
    for (int s = 0; s < graph->sources; s++)
        if (graph->from[s].peer == rank && graph->from[s].label == label)
            return s;
    return -1;
}

/* Adds an end for the edge, in a new block if the last one is full. ends: those of the last one. */
static uint8_t add_end(struct rondo_plan_builder *builder, const struct rondo_shape *shape, const struct rondo_edge *edge,
                       enum rondo_direction direction, int *ends)
{
    if (*ends == RONDO_PROGRAM_ENDS_MAX) {
        rondo_plan_builder_block(builder);
        *ends = 0;
    }
    ++*ends;
    return rondo_plan_builder_end(builder, edge->peer, edge->label, direction, shape->protocol);
}

static void send_along(struct rondo_plan_builder *builder, const struct rondo_shape *shape, const struct rondo_edge *edge,
                       uint32_t source, int *ends)
{
    struct rondo_instruction send = {.actions = RONDO_SEND, .source_index = source, .count = 1, .send_count = 1};
    send.send_first = add_end(builder, shape, edge, RONDO_OUTGOING, ends);
    rondo_plan_builder_add(builder, &send);
}

static void receive_along(struct rondo_plan_builder *builder, const struct rondo_shape *shape, const struct rondo_edge *edge,
                          uint32_t destination, int *ends)
{
    struct rondo_instruction receive = {.actions = RONDO_RECEIVE | RONDO_COPY,
                                        .destination_buffer = RONDO_OUTPUT,
                                        .destination_index = destination,
                                        .count = 1,
                                        .receive_count = 1};
    receive.receive_first = add_end(builder, shape, edge, RONDO_INCOMING, ends);
    rondo_plan_builder_add(builder, &receive);
}

rondo_result_t rondo_build_neighbors(const struct rondo_shape *shape, struct rondo_plan **plan)
{
    const struct rondo_graph *graph = shape->graph;
    const int differ = rondo_collective_of(shape->kind)->rule.postcondition == RONDO_POSTCONDITION_TRANSPOSED;
    if (graph == NULL)
        return rondo_fail(RONDO_ERR_INTERNAL, "%s without a graph", rondo_kind_name(shape->kind));
    const uint32_t chunks[RONDO_BUFFERS] = {
        [RONDO_INPUT] = differ ? (uint32_t) graph->destinations : 1, [RONDO_OUTPUT] = (uint32_t) graph->sources};
    struct rondo_plan_builder *builder = rondo_plan_builder_create();
    int ends = 0;
    rondo_plan_builder_block(builder);
    for (int d = 0; d < graph->destinations; d++) {
        const struct rondo_edge *edge = &graph->to[d];
        const uint32_t source = differ ? (uint32_t) d : 0;
        const int own = edge->peer == shape->rank ? own_source(graph, shape->rank, edge->label) : -1;
        if (own >= 0)
            rondo_plan_builder_keep(builder, source, (uint32_t) own);
        else if (edge->peer != RONDO_NO_NEIGHBOR)
            send_along(builder, shape, edge, source, &ends);
    }
    for (int s = 0; s < graph->sources; s++)
        if (graph->from[s].peer != RONDO_NO_NEIGHBOR && graph->from[s].peer != shape->rank)
            receive_along(builder, shape, &graph->from[s], (uint32_t) s, &ends);
    return rondo_plan_builder_finish(builder, chunks, plan);
}
