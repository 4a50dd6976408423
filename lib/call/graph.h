/*
 * A rank's part of a communicator's graph: its edges from its sources and to its destinations, in the order of the blocks of
 * neighbourhood collectives. The two ends of an edge know it by one label, which no other edge between the two ranks in that
 * direction has; ranks know nothing of edges that do not end at them.
 */
#ifndef RONDO_LIB_CALL_GRAPH_H
#define RONDO_LIB_CALL_GRAPH_H

#include <stdint.h>

struct rondo_edge {
    int peer;       /* rank in the communicator, also the own one; RONDO_NO_NEIGHBOR: the block is not moved */
    uint16_t label; /* a connector's channel */
};
#define RONDO_NO_NEIGHBOR (-1)
#define RONDO_EDGES_MAX   127 /* from a rank, and to it: a program's block has an end for each */

struct rondo_graph {
    uint32_t shares; /* communicators that have it; atomic */
    int sources, destinations;
    struct rondo_edge *from, *to; /* [sources], [destinations] */
};

#endif
