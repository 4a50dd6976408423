/* See lib/program/plan.h. A builder notes failure and drops what follows; finish tells. */
#include "lib/program/plan.h"

#include "lib/base/error.h"

#include <stdlib.h>
#include <string.h>

struct list {
    char *items;
    size_t used, room;
};

struct rondo_plan_builder {
    struct list blocks, instructions, dependencies, connections;
    int failed;
};

static void *append(struct rondo_plan_builder *builder, struct list *list, const void *item, size_t bytes)
{
    if (list->used + bytes > list->room) {
        size_t room = list->room == 0 ? 16 * bytes : 2 * list->room;
        char *items = realloc(list->items, room);
        if (items == NULL) {
            builder->failed = 1;
            return NULL;
        }
        list->items = items;
        list->room = room;
    }
    memcpy(list->items + list->used, item, bytes);
    list->used += bytes;
    return list->items + list->used - bytes;
}

struct rondo_plan_builder *rondo_plan_builder_create(void)
{
    return calloc(1, sizeof(struct rondo_plan_builder));
}

static struct rondo_program_block *last_block(struct rondo_plan_builder *builder)
{
    return (struct rondo_program_block *) (void *) (builder->blocks.items + builder->blocks.used) - 1;
}

void rondo_plan_builder_block(struct rondo_plan_builder *builder)
{
    if (builder == NULL || builder->failed)
        return;
    struct rondo_program_block block = {0};
    block.instruction_first = (uint32_t) (builder->instructions.used / sizeof(struct rondo_instruction));
    block.end_first = (uint32_t) (builder->connections.used / sizeof(struct rondo_connection));
    append(builder, &builder->blocks, &block, sizeof(block));
}

uint8_t rondo_plan_builder_end(struct rondo_plan_builder *builder, int peer, int channel, enum rondo_direction direction,
                               enum rondo_protocol protocol)
{
    if (builder == NULL || builder->failed)
        return 0;
    struct rondo_program_block *block = last_block(builder);
    struct rondo_connection connection = {peer, (uint16_t) channel, (uint8_t) direction, (uint8_t) protocol};
    if (block->ends == RONDO_PROGRAM_ENDS_MAX) {
        builder->failed = 1;
        return 0;
    }
    append(builder, &builder->connections, &connection, sizeof(connection));
    return (uint8_t) block->ends++;
}

void rondo_plan_builder_add(struct rondo_plan_builder *builder, const struct rondo_instruction *instruction)
{
    if (builder == NULL || builder->failed)
        return;
    if (append(builder, &builder->instructions, instruction, sizeof(*instruction)) != NULL)
        last_block(builder)->instructions++;
}

void rondo_plan_builder_keep(struct rondo_plan_builder *builder, uint32_t source, uint32_t destination)
{
    const struct rondo_instruction copy = {.actions = RONDO_COPY,
                                           .source_index = source,
                                           .destination_buffer = RONDO_OUTPUT,
                                           .destination_index = destination,
                                           .count = 1};
    rondo_plan_builder_add(builder, &copy);
}

void rondo_plan_builder_depend(struct rondo_plan_builder *builder, int block, int step)
{
    if (builder == NULL || builder->failed)
        return;
    struct rondo_instruction *last =
        (struct rondo_instruction *) (void *) (builder->instructions.items + builder->instructions.used) - 1;
    struct rondo_dependency dependency = {(uint16_t) block, (uint16_t) step};
    if (block > UINT16_MAX || step > UINT16_MAX || builder->dependencies.used / sizeof(dependency) > UINT16_MAX) {
        builder->failed = 1;
        return;
    }
    if (last->dependencies == 0)
        last->dependency_first = (uint16_t) (builder->dependencies.used / sizeof(dependency));
    append(builder, &builder->dependencies, &dependency, sizeof(dependency));
    last->dependencies++;
}

static void free_builder(struct rondo_plan_builder *builder)
{
    if (builder == NULL)
        return;
    free(builder->blocks.items);
    free(builder->instructions.items);
    free(builder->dependencies.items);
    free(builder->connections.items);
    free(builder);
}

/* Stores what the whole plan has of its instructions' largest. */
static void summarize(struct rondo_plan *plan, const struct rondo_plan_builder *builder)
{
    const struct rondo_instruction *all = (const struct rondo_instruction *) (const void *) builder->instructions.items;
    size_t count = builder->instructions.used / sizeof(*all);
    plan->program->largest_count = 1;
    plan->largest_receive = 1;
    for (size_t i = 0; i < count; i++) {
        if (all[i].count > plan->program->largest_count)
            plan->program->largest_count = all[i].count;
        int in_slots = (all[i].actions & RONDO_RECEIVE) && !(all[i].flags & (RONDO_SIGNAL | RONDO_DIRECT_IN));
        if (in_slots && all[i].receive_count > plan->largest_receive)
            plan->largest_receive = all[i].receive_count;
        if (all[i].flags & (RONDO_DIRECT_IN | RONDO_DIRECT_OUT))
            plan->unsliced = 1;
    }
}

rondo_result_t rondo_plan_builder_finish(struct rondo_plan_builder *builder, const uint32_t chunks[RONDO_BUFFERS],
                                         struct rondo_plan **result)
{
    size_t bytes = 0;
    struct rondo_plan *plan = calloc(1, sizeof(*plan));
    if (builder == NULL || builder->failed || plan == NULL)
        goto fail;
    bytes = sizeof(struct rondo_program) + builder->blocks.used + builder->instructions.used + builder->dependencies.used;
    plan->program = calloc(1, bytes);
    plan->connections = calloc(1, builder->connections.used + 1);
    if (plan->program == NULL || plan->connections == NULL)
        goto fail;

    struct rondo_program *program = plan->program;
    char *image = (char *) program;
    program->bytes = (uint32_t) bytes;
    program->blocks = (uint32_t) (builder->blocks.used / sizeof(struct rondo_program_block));
    program->ends = (uint32_t) (builder->connections.used / sizeof(struct rondo_connection));
    program->block_offset = sizeof(*program); /* all are multiples of 16 bytes but the last */
    program->instruction_offset = program->block_offset + (uint32_t) builder->blocks.used;
    program->dependency_offset = program->instruction_offset + (uint32_t) builder->instructions.used;
    for (int b = 0; b < RONDO_BUFFERS; b++)
        program->chunks[b] = chunks[b];
    if (builder->blocks.used)
        memcpy(image + program->block_offset, builder->blocks.items, builder->blocks.used);
    if (builder->instructions.used)
        memcpy(image + program->instruction_offset, builder->instructions.items, builder->instructions.used);
    if (builder->dependencies.used)
        memcpy(image + program->dependency_offset, builder->dependencies.items, builder->dependencies.used);
    if (builder->connections.used)
        memcpy(plan->connections, builder->connections.items, builder->connections.used);
    summarize(plan, builder);
    free_builder(builder);
    *result = plan;
    return RONDO_SUCCESS;

fail:
    free_builder(builder);
    rondo_plan_free(plan);
    return rondo_fail(RONDO_ERR_MEMORY,
                      "cannot build a program: out of memory, or more than %d connectors in a block, or %d waits",
                      RONDO_PROGRAM_ENDS_MAX, UINT16_MAX);
}

void rondo_plan_free(struct rondo_plan *plan)
{
    /* ACQ_REL: whichever thread gives up the last share sees what the others did before they gave up theirs. */
    if (plan == NULL || __atomic_fetch_sub(&plan->shared, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    free(plan->program);
    free(plan->connections);
    free(plan->scratch_classes);
    free(plan);
}
