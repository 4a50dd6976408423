/* Writes programs for reading: every instruction in a line, and the DAG of the operations as Graphviz draws it. Relies on the
 * compiler for the plans that it lists. */
#include "lib/program/graph.h"
#include "lib/program/program.h"
#include "lib/base/text.h"

#include "lib/base/error.h"

#include <stdio.h>

static void add_chunks(struct rondo_text *text, int buffer, uint32_t index, uint32_t count)
{
    if (count == 1)
        rondo_text_add(text, " %s[%u]", rondo_buffer_name(buffer), index);
    else
        rondo_text_add(text, " %s[%u..%u]", rondo_buffer_name(buffer), index, index + count - 1);
}

static void add_ends(struct rondo_text *text, const char *word, const struct rondo_connection *ends, uint32_t count)
{
    rondo_text_add(text, "%s", word);
    for (uint32_t e = 0; e < count; e++)
        rondo_text_add(text, "%s%d", e > 0 ? "," : " ", ends[e].peer);
    if (count > 0 && ends[0].channel > 0)
        rondo_text_add(text, " (channel %u)", ends[0].channel);
}

static void add_instruction(struct rondo_text *text, const struct rondo_plan *plan, const struct rondo_program_block *block,
                            uint32_t step, const struct rondo_instruction *i)
{
    static const char *const names[16] = {"nothing",   "receive",        "reduce",           "recv_reduce",
                                          "copy",      "recv",           "reduce",           "recv_reduce_copy",
                                          "send",      "recv_send",      "reduce_send",      "recv_reduce_send",
                                          "copy_send", "recv_copy_send", "reduce_copy_send", "recv_reduce_copy_send"};
    const struct rondo_connection *ends = plan->connections + block->end_first;
    int receives = (i->actions & RONDO_RECEIVE) != 0;
    rondo_text_add(text, "    %3u  %-22s", step, i->flags & RONDO_SIGNAL ? "signal" : names[i->actions & 15]);
    if (receives)
        add_ends(text, " from", ends + i->receive_first, i->receive_count);
    if (((i->actions & RONDO_REDUCE) || !receives) && !(i->flags & RONDO_SIGNAL)) {
        rondo_text_add(text, receives ? " with" : "");
        add_chunks(text, i->source_buffer, i->source_index, i->count);
    }
    if (i->actions & RONDO_COPY) {
        rondo_text_add(text, " to");
        add_chunks(text, i->destination_buffer, i->destination_index, i->count);
    }
    if (i->actions & RONDO_SEND)
        add_ends(text, ", send to", ends + i->send_first, i->send_count);
    if (i->flags & RONDO_FINISH)
        rondo_text_add(text, ", complete");
    if (i->dependencies > 0) {
        const struct rondo_dependency *on = rondo_program_dependencies(plan->program) + i->dependency_first;
        for (uint32_t d = 0; d < i->dependencies; d++)
            rondo_text_add(text, "%s block %u step %u", d == 0 ? ", after" : " and", on[d].block, on[d].step);
    }
    rondo_text_add(text, "\n");
}

static void add_rank(struct rondo_text *text, const struct rondo_plan_set *set, uint32_t rank)
{
    const struct rondo_plan *plan = set->plans[rank];
    const struct rondo_program *program = plan->program;
    rondo_text_add(text, "rank %u: %u block%s, %u scratch chunk%s\n", rank, program->blocks, program->blocks == 1 ? "" : "s",
                   program->chunks[RONDO_SCRATCH], program->chunks[RONDO_SCRATCH] == 1 ? "" : "s");
    for (uint32_t b = 0; b < program->blocks; b++) {
        const struct rondo_program_block *block = rondo_program_blocks(program) + b;
        const struct rondo_instruction *instructions = rondo_program_instructions(program) + block->instruction_first;
        rondo_text_add(text, "  block %u\n", b);
        for (uint32_t i = 0; i < block->instructions; i++)
            add_instruction(text, plan, block, i, &instructions[i]);
    }
}

rondo_result_t rondo_program_write_listing(rondo_program_t program, char **result)
{
    struct rondo_program_builder *builder;
    struct rondo_compile_options options = {
        .blocks = RONDO_COMPILE_BLOCKS, .slots = RONDO_COMPILE_SLOTS, .protocol = RONDO_PROTOCOL_SIMPLE};
    struct rondo_plan_set *set = NULL;
    struct rondo_text text = {0};
    if (result == NULL)
        return rondo_fail(RONDO_ERR_ARGUMENT, "rondo_program_write_listing: text is NULL");
    *result = NULL;
    rondo_result_t status = rondo_program_builder_of(program, "rondo_program_write_listing", &builder);
    if (status != RONDO_SUCCESS)
        return status;
    status = builder->ir == NULL ? rondo_program_builder_verify(builder) : RONDO_SUCCESS;
    if (status == RONDO_SUCCESS)
        status = rondo_program_compile(builder, &options, -1, &set);
    if (status != RONDO_SUCCESS)
        return status;
    const struct rondo_conditions *c = &set->conditions;
    rondo_text_add(&text, "program %s: %s on %u ranks, %u chunk%s a block%s\n", builder->name, rondo_kind_name(c->kind),
                   c->ranks, c->block_chunks, c->block_chunks == 1 ? "" : "s", set->even ? ", of equal length" : "");
    for (uint32_t rank = 0; rank < c->ranks; rank++)
        add_rank(&text, set, rank);
    rondo_plan_set_free(set);
    return rondo_text_finish(&text, RONDO_SUCCESS, result);
}

/* ---- the DAG ---- */

/* Adds the operations, and for each chunk an edge from the operation that wrote it last. */
static rondo_result_t add_graph(struct rondo_text *text, const struct rondo_program_builder *builder)
{
    struct rondo_map writers = {0};
    rondo_result_t status = RONDO_SUCCESS;
    for (uint32_t i = 0; i < builder->op_count && status == RONDO_SUCCESS; i++) {
        const struct rondo_op *op = &builder->ops[i];
        rondo_text_add(text, "  op%u [label=\"%s %u:%s[%u", i, op->reduces ? "reduce" : "copy", op->rank,
                       rondo_buffer_name(op->buffer), op->destination);
        if (op->count > 1)
            rondo_text_add(text, "..%u", op->destination + op->count - 1);
        rondo_text_add(text, "]\"%s];\n", op->reduces ? ", shape=box" : "");
        for (uint32_t k = 0; k < op->count && status == RONDO_SUCCESS; k++)
            for (int side = 0; side <= op->reduces; side++) {
                uint32_t rank = side == 0 ? op->source_rank : op->rank, at = (side == 0 ? op->source : op->destination) + k;
                uint64_t buffer = side == 0 ? op->source_buffer : op->buffer;
                uint32_t *writer = rondo_map_at(&writers, (uint64_t) rank << 34 | buffer << 32 | at);
                if (writer == NULL)
                    status = rondo_fail(RONDO_ERR_MEMORY, "no memory for the graph");
                else if (*writer == RONDO_NONE)
                    rondo_text_add(text, "  \"%u:%s[%u]\" [style=dotted];\n  \"%u:%s[%u]\" -> op%u;\n", rank,
                                   rondo_buffer_name((int) buffer), at, rank, rondo_buffer_name((int) buffer), at, i);
                else
                    rondo_text_add(text, "  op%u -> op%u%s;\n", *writer, i,
                                   op->source_rank == op->rank ? " [style=dashed]" : "");
            }
        for (uint32_t k = 0; k < op->count && status == RONDO_SUCCESS; k++) {
            uint32_t *writer =
                rondo_map_at(&writers, (uint64_t) op->rank << 34 | (uint64_t) op->buffer << 32 | (op->destination + k));
            if (writer == NULL)
                status = rondo_fail(RONDO_ERR_MEMORY, "no memory for the graph");
            else
                *writer = i;
        }
    }
    rondo_map_release(&writers);
    return status;
}

rondo_result_t rondo_program_write_dot(rondo_program_t program, char **result)
{
    struct rondo_program_builder *builder;
    struct rondo_text text = {0};
    if (result == NULL)
        return rondo_fail(RONDO_ERR_ARGUMENT, "rondo_program_write_dot: text is NULL");
    *result = NULL;
    rondo_result_t status = rondo_program_builder_of(program, "rondo_program_write_dot", &builder);
    if (status != RONDO_SUCCESS)
        return status;
    if (builder->ir != NULL)
        return rondo_fail(RONDO_ERR_UNSUPPORTED, "program '%s' was read from a file, which has its schedule and no DAG",
                          builder->name);
    if (builder->result != RONDO_SUCCESS)
        return rondo_fail(builder->result, "%s", builder->message);
    rondo_text_add(&text, "digraph \"%s\" {\n  node [fontname=monospace, fontsize=10];\n", builder->name);
    status = add_graph(&text, builder);
    rondo_text_add(&text, "}\n");
    return rondo_text_finish(&text, status, result);
}
