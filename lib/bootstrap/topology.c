/* See lib/bootstrap/topology.h. */
#include "lib/bootstrap/topology.h"

#include "lib/base/error.h"

#include <stdlib.h>
#include <string.h>

/* Returns the number of the rank's host, or `nodes` if it is a new one. Ranks of a host mostly have neighbouring numbers, so
 * the host that was found last is compared first. */
static int node_of(const char *const *hosts, const int *firsts, int nodes, int rank)
{
    for (int node = nodes - 1; node >= 0; node--)
        if (strcmp(hosts[firsts[node]], hosts[rank]) == 0)
            return node;
    return nodes;
}

rondo_result_t rondo_topology_find(const char *const *hosts, int size, struct rondo_topology *topology)
{
    int *firsts = calloc((size_t) size, sizeof(*firsts)), *counts = calloc((size_t) size, sizeof(*counts));
    memset(topology, 0, sizeof(*topology));
    topology->node = calloc((size_t) size, sizeof(*topology->node));
    topology->local = calloc((size_t) size, sizeof(*topology->local));
    topology->ranks = calloc((size_t) size, sizeof(*topology->ranks));
    rondo_result_t result = RONDO_SUCCESS;
    if (firsts == NULL || counts == NULL || topology->node == NULL || topology->local == NULL || topology->ranks == NULL) {
        result = rondo_fail(RONDO_ERR_MEMORY, "no memory for the topology of %d ranks", size);
        goto done;
    }
    for (int rank = 0; rank < size; rank++) {
        int node = node_of(hosts, firsts, topology->nodes, rank);
        if (node == topology->nodes)
            firsts[topology->nodes++] = rank;
        topology->node[rank] = node;
        topology->local[rank] = counts[node]++;
    }
    topology->locals = counts[0];
    for (int node = 1; node < topology->nodes; node++)
        if (counts[node] != topology->locals)
            topology->locals = 0;
    for (int rank = 0; topology->locals > 0 && rank < size; rank++)
        topology->ranks[topology->node[rank] * topology->locals + topology->local[rank]] = rank;
    if (topology->locals == 0) {
        free(topology->ranks);
        topology->ranks = NULL;
    }
done:
    free(firsts);
    free(counts);
    if (result != RONDO_SUCCESS)
        rondo_topology_free(topology);
    return result;
}

void rondo_topology_free(struct rondo_topology *topology)
{
    free(topology->node);
    free(topology->local);
    free(topology->ranks);
    memset(topology, 0, sizeof(*topology));
}
