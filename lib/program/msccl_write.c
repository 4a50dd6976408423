/*
 * Writes compiled plans as MSCCL's XML. Relies on plans that were compiled with rondo_compile_options.msccl, which have only
 * instructions and thread blocks that the format has; other plans are refused.
 */
#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/call/call.h"
#include "lib/program/builder.h"
#include "lib/program/program.h"

#include <stdlib.h>
#include <string.h>

struct writing {
    struct rondo_text text;
    const struct rondo_plan_set *set;
    const struct rondo_plan *plan;
    uint32_t **places; /* [block][step]: the number in the file, where waits are steps of their own */
};

static const struct rondo_program_block *block_at(const struct rondo_plan *plan, uint32_t b)
{
    return rondo_program_blocks(plan->program) + b;
}

static const struct rondo_instruction *instruction_at(const struct rondo_plan *plan, uint32_t b, uint32_t i)
{
    return rondo_program_instructions(plan->program) + block_at(plan, b)->instruction_first + i;
}

static const struct rondo_dependency *dependency_at(const struct rondo_plan *plan, uint32_t d)
{
    return rondo_program_dependencies(plan->program) + d;
}

static const char *type_of(const struct rondo_instruction *i)
{
    static const char *const names[16] = {[RONDO_SEND] = "s",
                                          [RONDO_RECEIVE | RONDO_COPY] = "r",
                                          [RONDO_RECEIVE | RONDO_COPY | RONDO_SEND] = "rcs",
                                          [RONDO_RECEIVE | RONDO_REDUCE | RONDO_COPY] = "rrc",
                                          [RONDO_RECEIVE | RONDO_REDUCE | RONDO_SEND] = "rrs",
                                          [RONDO_RECEIVE | RONDO_REDUCE | RONDO_COPY | RONDO_SEND] = "rrcs",
                                          [RONDO_COPY] = "cpy",
                                          [RONDO_REDUCE | RONDO_COPY] = "re"};
    return i->actions < 16 && i->receive_count <= 1 && i->send_count <= 1 ? names[i->actions] : NULL;
}

/* Numbers the steps of a block as the file has them: an instruction with several waits has a step without actions for all but
 * one. */
static rondo_result_t number_steps(struct writing *w, uint32_t b)
{
    const struct rondo_program_block *block = block_at(w->plan, b);
    uint32_t at = 0;
    w->places[b] = calloc((size_t) block->instructions + 1, sizeof(uint32_t));
    if (w->places[b] == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory to write a program");
    for (uint32_t i = 0; i < block->instructions; i++) {
        const struct rondo_instruction *instruction = instruction_at(w->plan, b, i);
        at += instruction->dependencies > 1 ? instruction->dependencies - 1u : 0;
        w->places[b][i] = at++;
    }
    return RONDO_SUCCESS;
}

static void write_wait(struct writing *w, const struct rondo_dependency *on, int notifies)
{
    if (on == NULL)
        rondo_text_add(&w->text, " depid=\"-1\" deps=\"-1\" hasdep=\"%d\"/>\n", notifies);
    else
        rondo_text_add(&w->text, " depid=\"%u\" deps=\"%u\" hasdep=\"%d\"/>\n", on->block, w->places[on->block][on->step],
                       notifies);
}

static rondo_result_t write_block(struct writing *w, uint32_t rank, uint32_t b)
{
    const struct rondo_program_block *block = block_at(w->plan, b);
    const struct rondo_connection *ends = w->plan->connections + block->end_first;
    int send = -1, receive = -1, channel = -1;
    for (uint32_t e = 0; e < block->ends; e++) {
        int *peer = ends[e].direction == RONDO_OUTGOING ? &send : &receive;
        if ((*peer >= 0 && *peer != ends[e].peer) || (channel >= 0 && channel != ends[e].channel))
            return rondo_fail(RONDO_ERR_UNSUPPORTED,
                              "rank %u, block %u: MSCCL's thread blocks have one peer in each direction, on one channel", rank,
                              b);
        *peer = ends[e].peer;
        channel = ends[e].channel;
    }
    rondo_text_add(&w->text, "    <tb id=\"%u\" send=\"%d\" recv=\"%d\" chan=\"%d\">\n", b, send, receive,
                   channel < 0 ? 0 : channel);
    for (uint32_t i = 0; i < block->instructions; i++) {
        const struct rondo_instruction *instruction = instruction_at(w->plan, b, i);
        const char *type = type_of(instruction);
        uint32_t waits = instruction->dependencies, at = w->places[b][i] - (waits > 1 ? waits - 1 : 0);
        if (type == NULL || instruction->flags & (RONDO_SIGNAL | RONDO_DIRECT_IN | RONDO_DIRECT_OUT))
            return rondo_fail(RONDO_ERR_UNSUPPORTED, "rank %u, block %u, step %u: MSCCL has no such instruction", rank, b, i);
        for (uint32_t d = 1; d < waits; d++) {
            rondo_text_add(&w->text,
                           "      <step s=\"%u\" type=\"nop\" srcbuf=\"i\" srcoff=\"-1\" dstbuf=\"o\" dstoff=\"-1\" cnt=\"0\"",
                           at++);
            write_wait(w, dependency_at(w->plan, instruction->dependency_first + d), 0);
        }
        int plain_receive = (instruction->actions & (RONDO_RECEIVE | RONDO_REDUCE)) == RONDO_RECEIVE;
        int stores = (instruction->actions & RONDO_COPY) != 0;
        uint8_t from = plain_receive ? instruction->destination_buffer : instruction->source_buffer;
        uint8_t to = stores ? instruction->destination_buffer : instruction->source_buffer;
        rondo_text_add(&w->text,
                       "      <step s=\"%u\" type=\"%s\" srcbuf=\"%c\" srcoff=\"%u\" dstbuf=\"%c\" dstoff=\"%u\" cnt=\"%u\"",
                       at, type, "ios"[from], plain_receive ? instruction->destination_index : instruction->source_index,
                       "ios"[to], stores ? instruction->destination_index : instruction->source_index, instruction->count);
        write_wait(w, waits > 0 ? dependency_at(w->plan, instruction->dependency_first) : NULL,
                   (instruction->flags & RONDO_NOTIFY) != 0);
    }
    rondo_text_add(&w->text, "    </tb>\n");
    return RONDO_SUCCESS;
}

static rondo_result_t write_rank(struct writing *w, uint32_t rank)
{
    const struct rondo_conditions *c = &w->set->conditions;
    rondo_result_t status = RONDO_SUCCESS;
    w->plan = w->set->plans[rank];
    uint32_t blocks = w->plan->program->blocks;
    w->places = calloc((size_t) blocks + 1, sizeof(*w->places));
    if (w->places == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory to write a program");
    for (uint32_t b = 0; b < blocks && status == RONDO_SUCCESS; b++)
        status = number_steps(w, b);
    rondo_text_add(&w->text, "  <gpu id=\"%u\" i_chunks=\"%u\" o_chunks=\"%u\" s_chunks=\"%u\">\n", rank,
                   rondo_conditions_chunks(c, rank, RONDO_INPUT), rondo_conditions_chunks(c, rank, RONDO_OUTPUT),
                   w->plan->program->chunks[RONDO_SCRATCH]);
    for (uint32_t b = 0; b < blocks && status == RONDO_SUCCESS; b++)
        status = write_block(w, rank, b);
    rondo_text_add(&w->text, "  </gpu>\n");
    for (uint32_t b = 0; b < blocks; b++)
        free(w->places[b]);
    free(w->places);
    return status;
}

static const char *protocol_of(const struct rondo_directives *directives)
{
    const char *name = directives->protocol;
    return name == NULL || strcmp(name, "simple") == 0 ? "Simple" : strcmp(name, "ll") == 0 ? "LL" : "LL128";
}

rondo_result_t rondo_program_write_xml(rondo_program_t program, char **text)
{
    struct rondo_program_builder *builder;
    struct rondo_compile_options options = {
        .blocks = RONDO_COMPILE_BLOCKS_MAX, .slots = RONDO_COMPILE_SLOTS, .protocol = RONDO_PROTOCOL_SIMPLE, .msccl = 1};
    struct rondo_plan_set *set = NULL;
    if (text == NULL)
        return rondo_fail(RONDO_ERR_ARGUMENT, "rondo_program_write_xml: text is NULL");
    *text = NULL;
    rondo_result_t status = rondo_program_builder_of(program, "rondo_program_write_xml", &builder);
    if (status != RONDO_SUCCESS)
        return status;
    status = builder->ir == NULL ? rondo_program_builder_verify(builder) : RONDO_SUCCESS;
    if (status == RONDO_SUCCESS)
        status = rondo_program_compile(builder, &options, -1, &set);
    if (status != RONDO_SUCCESS)
        return status;
    struct writing w = {.set = set};
    const struct rondo_conditions *c = &set->conditions;
    const char *collective = rondo_collective_of(c->kind)->msccl_name;
    if (collective == NULL)
        status = rondo_fail(RONDO_ERR_UNSUPPORTED, "MSCCL's files have no word for %s", rondo_kind_name(c->kind));
    const struct rondo_directives *own = &builder->directives;
    uint32_t channels = 1, most = 1;
    for (uint32_t rank = 0; rank < c->ranks; rank++) {
        for (uint32_t e = 0; e < set->plans[rank]->program->ends; e++)
            if (set->plans[rank]->connections[e].channel + 1u > channels)
                channels = set->plans[rank]->connections[e].channel + 1u;
        for (int b = RONDO_INPUT; b <= RONDO_OUTPUT; b++)
            if (rondo_conditions_chunks(c, rank, (enum rondo_buffer) b) > most)
                most = rondo_conditions_chunks(c, rank, (enum rondo_buffer) b);
    }
    rondo_text_add(&w.text,
                   "<algo name=\"%s\" proto=\"%s\" nchannels=\"%u\" nchunksperloop=\"%u\" ngpus=\"%u\" coll=\"%s\" "
                   "inplace=\"%d\" outofplace=\"%d\" minBytes=\"%zu\" maxBytes=\"%zu\" root=\"%u\"",
                   builder->name, protocol_of(own), channels, most, c->ranks, collective != NULL ? collective : "",
                   rondo_conditions_always_shared(c) || own->in_place_only, !own->in_place_only, own->min_bytes,
                   own->max_bytes > 0 ? own->max_bytes : (size_t) 1 << 40, c->root);
    if (own->op >= 0)
        rondo_text_add(&w.text, " redop=\"%s\"", rondo_op_name((rondo_op_t) own->op));
    rondo_text_add(&w.text, ">\n");
    for (uint32_t rank = 0; rank < c->ranks && status == RONDO_SUCCESS; rank++)
        status = write_rank(&w, rank);
    rondo_text_add(&w.text, "</algo>\n");
    rondo_plan_set_free(set);
    return rondo_text_finish(&w.text, status, text);
}
