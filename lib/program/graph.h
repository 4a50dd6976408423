/*
 * The compiler's graph: instructions (nodes) and what must come before what, at the granularity of chunks cut for the largest
 * number of instances. lib/program/lower.c makes it of the program's operations, lib/program/fuse.c makes fewer and larger
 * nodes, lib/program/channels.c and lib/program/schedule.c give the nodes channels, an order and blocks, lib/program/coalesce.c
 * joins neighbours, lib/program/emit.c writes the plans; lib/program/compile.c calls one after the other. A graph belongs to
 * one thread.
 */
#ifndef RONDO_LIB_PROGRAM_GRAPH_H
#define RONDO_LIB_PROGRAM_GRAPH_H

#include "lib/base/containers.h"
#include "lib/program/plan_set.h"
#include "lib/program/builder.h"

/* Nodes, links and operations are named by their index; RONDO_NONE: none. */
struct rondo_node {
    uint32_t rank, op;            /* op: place among the program's operations */
    uint32_t source, destination; /* chunks of the buffers of the plan */
    uint32_t count;
    uint32_t to, from;                 /* the node that receives what this one sends; that sends what it receives */
    uint32_t previous_first, previous; /* nodes of the rank that must come before: first in graph->previous, and their number */
    uint32_t consumers;                /* list of the nodes that read exactly what this one wrote */
    uint32_t clobbered;                /* the first operation that overwrites something this node reads */
    union {
        struct {
            uint32_t depth, height; /* until nodes are placed: hops from the start, and to the end */
        };
        struct {
            uint32_t block, position; /* from then on: in the rank; in the order of all nodes */
        };
    };
    uint32_t least_class; /* of its chunks: the longest one's, where classes are in order */
    uint32_t merged;      /* this node is dead: that one does its work */
    int32_t channel;
    uint16_t instance, instances;
    uint8_t actions, flags, source_buffer, destination_buffer, written_buffer;
    uint8_t needed;   /* the result is read by more than the consumers listed, or is part of the output */
    uint8_t directed; /* the channel is the user's */
    union {
        uint32_t written_first; /* while nodes are made: canonical place of the result, with written_buffer */
        uint32_t next;          /* of a row: the nodes that became one instruction, whose head does their work */
    };
};

/* An element of a list of nodes, in graph->links. */
struct rondo_link_list {
    uint32_t node, next;
};

/* What is known of a chunk while nodes are made. */
struct rondo_place {
    uint32_t writer, readers; /* the last node that wrote it; a list of those that have read it since */
    uint32_t class;           /* scratch: of what was written first */
};

struct rondo_graph {
    const struct rondo_program_builder *builder;
    const struct rondo_compile_options *options;
    struct rondo_conditions conditions; /* of the cut chunks */
    uint32_t cut;                       /* chunks for one of the program's */
    int even;                           /* all chunks must be equally long */
    struct rondo_node *nodes;
    size_t node_count, node_room;
    uint32_t *previous; /* all nodes' lists */
    size_t previous_count, previous_room;
    struct rondo_link_list *links;
    size_t link_count, link_room;
    struct rondo_place *places;
    size_t *place_first; /* [rank][buffer]: in places */
    uint32_t *scratch;   /* [rank]: the program's scratch chunks, cut */
    uint32_t *mark;      /* while nodes are made. [node]: the node for which it was last seen */
    size_t mark_room;
    uint32_t *order; /* live nodes; after coalescing the heads of rows */
    size_t ordered;
    uint32_t *rank_blocks; /* [rank]: number of blocks */
    int failed;            /* memory was out; what was called then is without effect */
};

/* ---- the passes, in this order ---- */

/* Makes the nodes. The caller has set builder, options, conditions and cut. RONDO_ERR_ARGUMENT: too many chunks;
 * RONDO_ERR_MEMORY. */
rondo_result_t rondo_graph_lower(struct rondo_graph *graph);
/* Merges nodes. Sets graph->failed if memory is out. */
void rondo_graph_fuse(struct rondo_graph *graph);
/* Gives every message a channel. RONDO_ERR_MEMORY. */
rondo_result_t rondo_graph_channels(struct rondo_graph *graph);
/* Orders the nodes. Returns 0 if they cannot be ordered with options->slots, or if memory is out (graph->failed). */
int rondo_graph_order(struct rondo_graph *graph);
/* Gives every ordered node a block. RONDO_ERR_UNSUPPORTED: more connections than blocks can serve; RONDO_ERR_MEMORY. */
rondo_result_t rondo_graph_place(struct rondo_graph *graph);
/* Joins neighbours of a block into one instruction. Sets graph->failed if memory is out. */
void rondo_graph_coalesce(struct rondo_graph *graph);
/* Stores the plans of rank `only`, or of all ranks if that is -1, in set->plans. RONDO_ERR_UNSUPPORTED: a block has too many
 * instructions or ends; RONDO_ERR_MEMORY. The set's owner frees what was stored. */
rondo_result_t rondo_graph_emit(struct rondo_graph *graph, int only, struct rondo_plan_set *set);
/* Frees all that the passes have allocated. */
void rondo_graph_release(struct rondo_graph *graph);

/* Returns the live node that does the node's work: itself if it is live. */
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
/* The key, for a rondo_map, of the connection between two ranks on a channel. Ranks are below 2^24, channels below 2^16. */
static inline uint64_t rondo_connection_key(uint32_t source, uint32_t destination, int32_t channel)
{
    return (uint64_t) source << 40 | (uint64_t) destination << 16 | (uint64_t) (uint32_t) channel;
}

#endif
