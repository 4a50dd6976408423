/*
 * Makes instances of a whole program side by side (what rondo_program_parallelize around all of it asks for) of the plans of
 * one: instance k has blocks and connections of its own, and works the k-th of the parts that each chunk is cut into. The
 * result is as if all instances had been compiled. Relies on instructions of one chunk each: the parts of neighbouring chunks
 * are no neighbours.
 */
#include "lib/program/plan_set.h"

#include "lib/base/error.h"

#include <stdlib.h>

/* Adds block b of the plan as instance k has it. */
static void add_block(struct rondo_plan_builder *builder, const struct rondo_plan *plan, uint32_t b, uint32_t k,
                      uint32_t instances)
{
    const struct rondo_program *program = plan->program;
    const struct rondo_program_block *block = rondo_program_blocks(program) + b;
    rondo_plan_builder_block(builder);
    for (uint32_t e = 0; e < block->ends; e++) {
        const struct rondo_connection *end = &plan->connections[block->end_first + e];
        rondo_plan_builder_end(builder, end->peer, (int) (end->channel * instances + k), (enum rondo_direction) end->direction,
                               (enum rondo_protocol) end->protocol);
    }
    for (uint32_t i = 0; i < block->instructions; i++) {
        struct rondo_instruction instruction = rondo_program_instructions(program)[block->instruction_first + i];
        uint32_t first = instruction.dependency_first, waits = instruction.dependencies;
        instruction.source_index = instruction.source_index * instances + k;
        instruction.destination_index = instruction.destination_index * instances + k;
        instruction.dependency_first = instruction.dependencies = 0;
        rondo_plan_builder_add(builder, &instruction);
        for (uint32_t d = 0; d < waits; d++) {
            const struct rondo_dependency *on = rondo_program_dependencies(program) + first + d;
            rondo_plan_builder_depend(builder, (int) (k * program->blocks + on->block), on->step);
        }
    }
}

static rondo_result_t one_plan(struct rondo_plan **plan, uint32_t instances)
{
    struct rondo_plan *old = *plan, *more = NULL;
    uint32_t chunks[RONDO_BUFFERS], *classes = NULL, scratch = old->program->chunks[RONDO_SCRATCH];
    for (int b = 0; b < RONDO_BUFFERS; b++)
        chunks[b] = old->program->chunks[b] * instances;
    if (old->scratch_classes != NULL) {
        if ((classes = malloc(((size_t) scratch * instances + 1) * sizeof(*classes))) == NULL)
            return rondo_fail(RONDO_ERR_MEMORY, "no memory for %u instances of a plan", instances);
        for (uint32_t i = 0; i < scratch * instances; i++)
            classes[i] = old->scratch_classes[i / instances] * instances + i % instances;
    }
    struct rondo_plan_builder *builder = rondo_plan_builder_create();
    for (uint32_t k = 0; k < instances; k++)
        for (uint32_t b = 0; b < old->program->blocks; b++)
            add_block(builder, old, b, k, instances);
    rondo_result_t status = rondo_plan_builder_finish(builder, chunks, &more);
    if (status != RONDO_SUCCESS) {
        free(classes);
        return status;
    }
    more->largest_receive = old->largest_receive;
    more->even = old->even;
    more->block_chunks = old->block_chunks * instances;
    more->scratch_classes = classes;
    rondo_plan_free(old);
    *plan = more;
    return RONDO_SUCCESS;
}

rondo_result_t rondo_plans_multiply(struct rondo_plan_set *set, uint32_t instances)
{
    rondo_result_t status = RONDO_SUCCESS;
    for (uint32_t rank = 0; rank < set->conditions.ranks && status == RONDO_SUCCESS; rank++)
        if (set->plans[rank] != NULL)
            status = one_plan(&set->plans[rank], instances);
    set->conditions.block_chunks *= instances;
    return status;
}
