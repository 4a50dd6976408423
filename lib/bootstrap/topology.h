/*
 * How a communicator's ranks lie on hosts. All members compute the same, from what ranks told each other at init, so programs
 * and their choice may depend on it.
 */
#ifndef RONDO_LIB_BOOTSTRAP_TOPOLOGY_H
#define RONDO_LIB_BOOTSTRAP_TOPOLOGY_H

#include "rondo.h"

struct rondo_topology {
    int nodes;  /* hosts with members, in the order of their first ranks */
    int locals; /* ranks of each; 0: hosts have different numbers */
    int *ranks; /* [node * locals + local]: in the communicator; NULL where locals is 0 */
    int *node;  /* [rank] */
    int *local; /* [rank]: its place among those of its host */
};

/* hosts: the host of each of the size members, as text; members of equal texts share a host. RONDO_ERR_MEMORY. */
rondo_result_t rondo_topology_find(const char *const *hosts, int size, struct rondo_topology *topology);
void rondo_topology_free(struct rondo_topology *topology);

#endif
