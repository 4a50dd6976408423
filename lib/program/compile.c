/* The compiler's passes one after the other; see lib/program/graph.h. A program whose fused form cannot be ordered with the
 * slots there are is compiled again without fusion, in the order in which it was written: that order needs one slot. */
#include "lib/program/graph.h"

#include "lib/base/error.h"

#include <stdlib.h>

void rondo_graph_release(struct rondo_graph *graph)
{
    free(graph->nodes);
    free(graph->previous);
    free(graph->links);
    free(graph->places);
    free(graph->place_first);
    free(graph->scratch);
    free(graph->mark);
    free(graph->order);
    free(graph->rank_blocks);
}

void rondo_plan_set_free(struct rondo_plan_set *set)
{
    if (set == NULL)
        return;
    for (uint32_t rank = 0; set->plans != NULL && rank < set->conditions.ranks; rank++)
        rondo_plan_free(set->plans[rank]);
    free(set->plans);
    free(set);
}

static int order_as_written(struct rondo_graph *graph)
{
    free(graph->order);
    graph->order = malloc((graph->node_count + 1) * sizeof(*graph->order));
    if (graph->order == NULL) {
        graph->failed = 1;
        return 0;
    }
    graph->ordered = 0;
    for (uint32_t i = 0; i < graph->node_count; i++)
        graph->order[graph->ordered++] = i;
    return 1;
}

/* Compiles into the set, fused or (plain) as written. *stuck becomes 1 if the fused form cannot be ordered; the set is then as
 * before. */
static rondo_result_t attempt(const struct rondo_program_builder *builder, const struct rondo_compile_options *options,
                              int only, int plain, int *stuck, struct rondo_plan_set *set)
{
    struct rondo_graph graph = {
        .builder = builder, .options = options, .conditions = builder->conditions, .cut = builder->granularity};
    graph.conditions.block_chunks *= graph.cut;
    rondo_result_t status = rondo_graph_lower(&graph);
    if (status == RONDO_SUCCESS && !plain)
        rondo_graph_fuse(&graph);
    if (status == RONDO_SUCCESS)
        status = rondo_graph_channels(&graph);
    if (status == RONDO_SUCCESS && !graph.failed)
        *stuck = plain ? !order_as_written(&graph) : !rondo_graph_order(&graph);
    if (status == RONDO_SUCCESS && !graph.failed && !*stuck)
        status = rondo_graph_place(&graph);
    if (status == RONDO_SUCCESS && !graph.failed && !*stuck && !plain)
        rondo_graph_coalesce(&graph);
    if (status == RONDO_SUCCESS && graph.failed)
        status =
            rondo_fail(RONDO_ERR_MEMORY, "program '%s': out of memory at %zu instructions", builder->name, graph.node_count);
    if (status == RONDO_SUCCESS && !*stuck) {
        set->conditions = graph.conditions;
        set->even = graph.even;
        status = rondo_graph_emit(&graph, only, set);
    }
    rondo_graph_release(&graph);
    return status;
}

rondo_result_t rondo_compile(const struct rondo_program_builder *builder, const struct rondo_compile_options *options, int only,
                             struct rondo_plan_set **result)
{
    struct rondo_plan_set *set = calloc(1, sizeof(*set));
    rondo_result_t status = RONDO_SUCCESS;
    int stuck = 0;
    if (set != NULL) {
        set->conditions = builder->conditions;
        set->plans = calloc(builder->conditions.ranks, sizeof(struct rondo_plan *));
    }
    if (set == NULL || set->plans == NULL)
        status = rondo_fail(RONDO_ERR_MEMORY, "no memory for the plans of %u ranks", builder->conditions.ranks);
    if (status == RONDO_SUCCESS)
        status = attempt(builder, options, only, options->plain, &stuck, set);
    if (status == RONDO_SUCCESS && stuck)
        status = attempt(builder, options, only, 1, &stuck, set);
    if (status != RONDO_SUCCESS) {
        rondo_plan_set_free(set);
        return status;
    }
    *result = set;
    return RONDO_SUCCESS;
}
