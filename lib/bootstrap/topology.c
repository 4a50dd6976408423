/* See lib/bootstrap/topology.h. */
#include "lib/bootstrap/topology.h"

#include "lib/base/containers.h"
#include "lib/base/error.h"

#include <stdlib.h>
#include <string.h>

/* Returns the number of the rank's host, `nodes` if it is a new one; -1 if memory is out. */
static int node_of(struct rondo_map *numbers, const char *const *hosts, const int *firsts, int nodes, int rank)
{
    uint64_t hash = rondo_hash(RONDO_HASH_BASIS, hosts[rank], strlen(hosts[rank]));
    for (;; hash = rondo_hash_word(hash, 1)) { /* again where another host has the same */
        uint32_t *number = rondo_map_at(numbers, hash % UINT64_MAX);
        if (number == NULL)
            return -1;
        if (*number == RONDO_NONE)
            return (int) (*number = (uint32_t) nodes);
        if (strcmp(hosts[firsts[*number]], hosts[rank]) == 0)
            return (int) *number;
    }
}

rondo_result_t rondo_topology_find(const char *const *hosts, int size, struct rondo_topology *topology)
{
    int *firsts = calloc((size_t) size, sizeof(*firsts)), *counts = calloc((size_t) size, sizeof(*counts));
    struct rondo_map numbers = {0};
    memset(topology, 0, sizeof(*topology));
    topology->node = calloc((size_t) size, sizeof(*topology->node));
    topology->local = calloc((size_t) size, sizeof(*topology->local));
    topology->ranks = calloc((size_t) size, sizeof(*topology->ranks));
    topology->counts = counts;
    rondo_result_t result = RONDO_SUCCESS;
    int found =
        firsts != NULL && counts != NULL && topology->node != NULL && topology->local != NULL && topology->ranks != NULL;
    for (int rank = 0; rank < size && found; rank++) {
        const int node = node_of(&numbers, hosts, firsts, topology->nodes, rank);
        found = node >= 0;
        if (!found)
            break;
        if (node == topology->nodes)
            firsts[topology->nodes++] = rank;
        topology->node[rank] = node;
        topology->local[rank] = counts[node]++;
    }
    if (!found) {
        result = rondo_fail(RONDO_ERR_MEMORY, "no memory for the topology of %d ranks", size);
        goto done;
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
    rondo_map_release(&numbers);
    free(firsts);
    if (result != RONDO_SUCCESS)
        rondo_topology_free(topology);
    return result;
}

void rondo_topology_free(struct rondo_topology *topology)
{
    free(topology->counts);
    free(topology->node);
    free(topology->local);
    free(topology->ranks);
    memset(topology, 0, sizeof(*topology));
}
