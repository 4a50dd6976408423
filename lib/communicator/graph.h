/* The graphs of communicators: shares of them. lib/communicator/graph.c makes them. */
#ifndef RONDO_LIB_COMMUNICATOR_GRAPH_H
#define RONDO_LIB_COMMUNICATOR_GRAPH_H

#include "lib/call/graph.h"

/* The graph with one more share. NULL: NULL. */
struct rondo_graph *rondo_graph_share(struct rondo_graph *graph);
/* Gives up one share; the last one frees it. NULL: nothing. */
void rondo_graph_free(struct rondo_graph *graph);

#endif
