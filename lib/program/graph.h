/*
 * The compiler's graph: instructions (nodes) and what must come before what, at the granularity of chunks cut for the largest
 * number of instances. lib/program/lower.c makes it from the trace, lib/program/fuse.c makes fewer and larger nodes of it,
 * lib/program/schedule.c orders them and gives them channels and blocks, lib/program/emit.c writes the plans.
 */
#ifndef RONDO_LIB_PROGRAM_GRAPH_H
#define RONDO_LIB_PROGRAM_GRAPH_H

#include "lib/base/containers.h"
#include "lib/program/plan_set.h"
#include "lib/program/builder.h"

struct rondo_node {
    uint32_t rank, op;            /* op: place in the trace */
    uint32_t source, destination; /* chunks of the physical buffers */
    uint32_t count;
    uint32_t to, from;                 /* the node that receives what this one sends; that sends what it receives */
    uint32_t previous_first, previous; /* nodes of the rank that must come before */
    uint32_t consumers;                /* list of the nodes that read exactly what this one wrote */
    uint32_t clobbered;                /* the first op that overwrites something this one reads */
    uint32_t depth, height;            /* hops from the start, and to the end */
    uint32_t least_class;
    uint32_t merged; /* this node is dead: that one does its work */
    uint32_t block, position;
    uint32_t written_first; /* canonical place of the result */
    int32_t channel;
    uint16_t instance, instances;
    uint8_t actions, flags, source_buffer, destination_buffer, written_buffer;
    uint8_t needed;   /* the result is read by more than the consumers listed, or is part of the output */
    uint8_t directed; /* the channel is the user's */
    uint8_t multiple; /* heads a row of nodes that are one instruction */
    uint32_t next;    /* of that row */
};

struct rondo_link_list {
    uint32_t node, next;
};

struct rondo_place {
    uint32_t writer, readers; /* the last one; a list of those since */
    uint32_t class;           /* scratch: of what was written first */
};

struct rondo_graph {
    const struct rondo_program_builder *builder;
    const struct rondo_compile_options *options;
    struct rondo_conditions conditions; /* of the cut chunks */
    uint32_t cut;                       /* chunks for one of the trace's */
    int even;
    struct rondo_node *nodes;
    size_t node_count, node_room;
    uint32_t *previous; /* all nodes' lists */
    size_t previous_count, previous_room;
    struct rondo_link_list *links;
    size_t link_count, link_room;
    struct rondo_place *places;
    size_t *place_first; /* [rank][buffer] */
    uint32_t *scratch;   /* [rank]: the trace's scratch chunks, cut */
    uint32_t *mark;      /* [node]: for whom it was last seen */
    size_t mark_room;
    uint32_t *order; /* live nodes */
    size_t ordered;
    uint32_t *rank_blocks; /* [rank] */
    int failed;            /* out of memory */
};

rondo_result_t rondo_graph_lower(struct rondo_graph *graph);
void rondo_graph_fuse(struct rondo_graph *graph);
/* 0: it cannot be ordered with so few slots. */
int rondo_graph_order(struct rondo_graph *graph);
/* Before the order, and after it. */
rondo_result_t rondo_graph_channels(struct rondo_graph *graph);
rondo_result_t rondo_graph_place(struct rondo_graph *graph);
void rondo_graph_coalesce(struct rondo_graph *graph);
rondo_result_t rondo_graph_emit(struct rondo_graph *graph, int only, struct rondo_plan_set *set);
void rondo_graph_release(struct rondo_graph *graph);

static inline uint32_t rondo_node_find(const struct rondo_graph *graph, uint32_t node)
{
    while (graph->nodes[node].merged != RONDO_NONE)
        node = graph->nodes[node].merged;
    return node;
}
static inline int rondo_node_lives(const struct rondo_node *node)
{
    return node->merged == RONDO_NONE;
}
/* A connection between two ranks on a channel. */
static inline uint64_t rondo_connection_key(uint32_t source, uint32_t destination, int32_t channel)
{
    return (uint64_t) source << 40 | (uint64_t) destination << 16 | (uint64_t) (uint32_t) channel;
}

#endif
