/*
 * How a communicator's ranks lie on hosts. All members compute the same from what the ranks told each other at init, so
 * programs and their choice may depend on it. Relies on nothing but the texts it is given.
 */
#ifndef RONDO_LIB_BOOTSTRAP_TOPOLOGY_H
#define RONDO_LIB_BOOTSTRAP_TOPOLOGY_H

#include "rondo.h"

struct rondo_topology {
    int nodes;   /* hosts with members, in the order of their first ranks */
    int locals;  /* ranks of each host; 0: hosts have different numbers */
    int *counts; /* [node]: its ranks */
    int *ranks;  /* [node * locals + local]: in the communicator; NULL where locals is 0 */
    int *node;   /* [rank] */
    int *local;  /* [rank]: its number among those of its host */
};

/* Fills *topology. hosts: for each of the size members, the id of its host; members of equal texts share a host.
 * RONDO_ERR_MEMORY, and *topology is then empty. */
rondo_result_t rondo_topology_find(const char *const *hosts, int size, struct rondo_topology *topology);
/* Frees what rondo_topology_find stored, and empties *topology. An empty one is left as it is. */
void rondo_topology_free(struct rondo_topology *topology);

#endif
