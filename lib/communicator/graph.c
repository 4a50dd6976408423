/*
 * Communicators with a graph: any (rondo_graph_create), or a Cartesian grid (rondo_cart_create). Each rank has but its own
 * edges (lib/call/graph.h). That the two ends of all edges fit each other is seen by sums: each rank adds up hashes of the
 * edges that leave it and of those that reach it, and over all ranks the two sums are equal.
 */
#include "lib/communicator/graph.h"

#include "lib/base/error.h"
#include "lib/communicator/comm.h"
#include "lib/connection/exchange.h"
#include "lib/context/handles.h"

#include <stdlib.h>
#include <string.h>

/* What a rank says before the communicator is made. */
struct summary {
    uint64_t leaving, reaching; /* sums of hashes of edges, which wrap */
    uint64_t kind;              /* hash of what all ranks give alike */
    uint64_t cannot;            /* the rank's code, if it has no memory */
};

struct rondo_graph *rondo_graph_share(struct rondo_graph *graph)
{
    if (graph != NULL)
        __atomic_add_fetch(&graph->shares, 1, __ATOMIC_RELAXED);
    return graph;
}

void rondo_graph_free(struct rondo_graph *graph)
{
    /* ACQ_REL: the last one sees what the others did before. */
    if (graph == NULL || __atomic_sub_fetch(&graph->shares, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    free(graph->from);
    free(graph);
}

/* A graph without edges yet; NULL: no memory. */
static struct rondo_graph *create(int sources, int destinations)
{
    struct rondo_graph *graph = calloc(1, sizeof(*graph));
    if (graph == NULL)
        return NULL;
    graph->shares = 1;
    graph->sources = sources;
    graph->destinations = destinations;
    graph->from = calloc((size_t) sources + (size_t) destinations + 1, sizeof(*graph->from));
    graph->to = graph->from + sources;
    if (graph->from != NULL)
        return graph;
    free(graph);
    return NULL;
}

/* Finalizer of splitmix64 (Steele, Lea, Flood 2014). */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static uint64_t edge_hash(int from, int to, uint16_t label)
{
    return mix(mix((uint64_t) (uint32_t) from << 32 | (uint32_t) to) + label + 1);
}

static void add_up(const struct rondo_graph *graph, int rank, struct summary *mine)
{
    for (int s = 0; s < graph->sources; s++)
        if (graph->from[s].peer != RONDO_NO_NEIGHBOR)
            mine->reaching += edge_hash(graph->from[s].peer, rank, graph->from[s].label);
    for (int d = 0; d < graph->destinations; d++)
        if (graph->to[d].peer != RONDO_NO_NEIGHBOR)
            mine->leaving += edge_hash(rank, graph->to[d].peer, graph->to[d].label);
}

/* Compares what the ranks say. The same on all ranks. */
static rondo_result_t judge(const struct summary *all, int size, const char *function)
{
    uint64_t leaving = 0, reaching = 0;
    for (int rank = 0; rank < size; rank++) {
        if (all[rank].cannot != RONDO_SUCCESS)
            return rondo_fail((rondo_result_t) all[rank].cannot, "%s: rank %d has no memory for its edges", function, rank);
        if (all[rank].kind != all[0].kind)
            return rondo_fail(RONDO_ERR_MISMATCH, "%s: ranks 0 and %d give different dimensions, or call different functions",
                              function, rank);
        leaving += all[rank].leaving;
        reaching += all[rank].reaching;
    }
    if (leaving != reaching)
        return rondo_fail(RONDO_ERR_MISMATCH,
                          "%s: some rank names a destination that does not name it as a source, or the other "
                          "way round, or not as often",
                          function);
    return RONDO_SUCCESS;
}

/* Makes the communicator of the ranks that are a member, each with its graph, once the ranks agree. graph NULL: there was no
 * memory for it. Takes the graph, also on failure. Collective over comm. */
static rondo_result_t make(struct rondo_comm *comm, const char *function, struct rondo_graph *graph, int member, uint64_t kind,
                           rondo_comm_t *result_comm)
{
    struct summary mine = {.kind = kind, .cannot = graph == NULL ? RONDO_ERR_MEMORY : RONDO_SUCCESS};
    struct summary *all = calloc((size_t) comm->size, sizeof(*all));
    struct rondo_comm *made;
    rondo_result_t result = RONDO_SUCCESS;
    if (graph != NULL)
        add_up(graph, comm->rank, &mine);
    if (all == NULL)
        result = rondo_comm_conclude(comm, function, rondo_fail(RONDO_ERR_MEMORY, "no memory for %d ranks", comm->size));
    if (result == RONDO_SUCCESS)
        result = rondo_exchange(comm, function, &mine, sizeof(mine), all);
    if (result == RONDO_SUCCESS)
        result = judge(all, comm->size, function);
    if (result == RONDO_SUCCESS)
        result = rondo_comm_divide(comm->handle, function, member ? 0 : -1, 0, result_comm);
    if (result == RONDO_SUCCESS && member)
        result = rondo_comm_of(*result_comm, function, &made);
    if (result == RONDO_SUCCESS && member)
        made->graph = graph;
    else
        rondo_graph_free(graph);
    free(all);
    return result;
}

/* Finds a communicator that has not failed. */
static rondo_result_t find(rondo_comm_t handle, const char *function, const rondo_comm_t *out, struct rondo_comm **comm)
{
    rondo_result_t result = rondo_comm_of(handle, function, comm);
    if (result == RONDO_SUCCESS && out == NULL)
        result = rondo_fail(RONDO_ERR_ARGUMENT, "%s: the result pointer is NULL", function);
    if (result == RONDO_SUCCESS && rondo_comm_failure(*comm) != RONDO_SUCCESS)
        result = rondo_fail(rondo_comm_failure(*comm), "%s: %s", function, (*comm)->failure);
    return result;
}

/* ---- any graph ---- */

static rondo_result_t check_list(const struct rondo_comm *comm, const char *name, int count, const int *ranks)
{
    if (count < 0 || count > RONDO_EDGES_MAX)
        return rondo_fail(RONDO_ERR_ARGUMENT, "rondo_graph_create: %d %s; 0 to %d are allowed", count, name, RONDO_EDGES_MAX);
    if (count > 0 && ranks == NULL)
        return rondo_fail(RONDO_ERR_ARGUMENT, "rondo_graph_create: the list of %d %s is NULL", count, name);
    for (int i = 0; i < count; i++)
        if (ranks[i] < 0 || ranks[i] >= comm->size)
            return rondo_fail(RONDO_ERR_ARGUMENT, "rondo_graph_create: entry %d of the %s, %d, is not a rank of %d", i, name,
                              ranks[i], comm->size);
    return RONDO_SUCCESS;
}

/* Labels are the number of the edges with the same ends before: the n-th from a rank to another is the n-th on both. before:
 * size entries of 0. */
static void fill_edges(struct rondo_edge *edges, const int *ranks, int count, uint16_t *before)
{
    for (int i = 0; i < count; i++)
        edges[i] = (struct rondo_edge){ranks[i], before[ranks[i]]++};
}

rondo_result_t rondo_graph_create(rondo_comm_t handle, int indegree, const int *sources, int outdegree, const int *destinations,
                                  rondo_comm_t *result_comm)
{
    static const char function[] = "rondo_graph_create";
    struct rondo_comm *comm;
    rondo_result_t result = find(handle, function, result_comm, &comm);
    if (result == RONDO_SUCCESS)
        result = check_list(comm, "sources", indegree, sources);
    if (result == RONDO_SUCCESS)
        result = check_list(comm, "destinations", outdegree, destinations);
    if (result != RONDO_SUCCESS)
        return result;
    *result_comm = NULL;
    uint16_t *before = calloc(2 * (size_t) comm->size, sizeof(*before));
    struct rondo_graph *graph = before != NULL ? create(indegree, outdegree) : NULL;
    if (graph != NULL) {
        fill_edges(graph->from, sources, indegree, before);
        fill_edges(graph->to, destinations, outdegree, before + comm->size);
    }
    free(before);
    return make(comm, function, graph, 1, 1, result_comm);
}

/* ---- grids ---- */

static rondo_result_t check_grid(const struct rondo_comm *comm, int ndims, const int *dims, const int *periods)
{
    long long ranks = 1;
    if (ndims < 0 || 2 * ndims > RONDO_EDGES_MAX)
        return rondo_fail(RONDO_ERR_ARGUMENT, "rondo_cart_create: %d dimensions; 0 to %d are allowed", ndims,
                          RONDO_EDGES_MAX / 2);
    if (ndims > 0 && (dims == NULL || periods == NULL))
        return rondo_fail(RONDO_ERR_ARGUMENT, "rondo_cart_create: dims or periods are NULL");
    for (int d = 0; d < ndims; d++) {
        if (dims[d] < 1)
            return rondo_fail(RONDO_ERR_ARGUMENT, "rondo_cart_create: dimension %d has %d ranks", d, dims[d]);
        ranks *= dims[d];
        if (ranks > comm->size)
            return rondo_fail(RONDO_ERR_ARGUMENT, "rondo_cart_create: a grid of %lld ranks or more in a communicator of %d",
                              ranks, comm->size);
    }
    return RONDO_SUCCESS;
}

/* The rank that is so many steps further in a dimension whose neighbours are stride ranks apart. */
static int shifted(int rank, int stride, int extent, int periodic, int steps)
{
    const int at = rank / stride % extent, to = at + steps;
    if (!periodic && (to < 0 || to >= extent))
        return RONDO_NO_NEIGHBOR;
    return rank + ((to + extent) % extent - at) * stride;
}

/* What is sent in the negative direction is received as from the positive one, also where both neighbours are one rank: a
 * label is the direction in which the data go. */
static void fill_grid(struct rondo_graph *graph, int rank, int ndims, const int *dims, const int *periods)
{
    for (int d = ndims - 1, stride = 1; d >= 0; stride *= dims[d--])
        for (int positive = 0; positive < 2; positive++) {
            const int edge = 2 * d + positive;
            graph->from[edge].peer = graph->to[edge].peer = shifted(rank, stride, dims[d], periods[d] != 0, positive ? 1 : -1);
            graph->to[edge].label = (uint16_t) edge;
            graph->from[edge].label = (uint16_t) (edge ^ 1);
        }
}

rondo_result_t rondo_cart_create(rondo_comm_t handle, int ndims, const int *dims, const int *periods, rondo_comm_t *result_comm)
{
    static const char function[] = "rondo_cart_create";
    struct rondo_comm *comm;
    int ranks = 1;
    uint64_t kind = mix(2 + (uint64_t) (unsigned) ndims);
    rondo_result_t result = find(handle, function, result_comm, &comm);
    if (result == RONDO_SUCCESS)
        result = check_grid(comm, ndims, dims, periods);
    if (result != RONDO_SUCCESS)
        return result;
    *result_comm = NULL;
    for (int d = 0; d < ndims; d++) {
        ranks *= dims[d];
        kind = mix(kind ^ ((uint64_t) (unsigned) dims[d] << 1 | (periods[d] != 0)));
    }
    const int member = comm->rank < ranks;
    struct rondo_graph *graph = create(member ? 2 * ndims : 0, member ? 2 * ndims : 0);
    if (graph != NULL && member)
        fill_grid(graph, comm->rank, ndims, dims, periods);
    return make(comm, function, graph, member, kind, result_comm);
}
