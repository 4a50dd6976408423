/* rondo_verify_plans: checks the form of the plans and prepares what the simulation needs. See lib/program/verify.h and
 * lib/program/plan_set.h. */
#include "lib/program/verify.h"

#include "lib/base/error.h"
#include "device/reduce/reduce.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct rondo_program *rondo_verification_program(const struct rondo_verification *c, uint32_t rank)
{
    return c->set->plans[rank]->program;
}

const struct rondo_instruction *rondo_verification_instruction(const struct rondo_verification *c, uint32_t instruction)
{
    const struct rondo_verify_block *block = &c->blocks[c->instructions[instruction].block];
    const struct rondo_program *program = rondo_verification_program(c, block->rank);
    return rondo_program_instructions(program) + rondo_program_blocks(program)[block->number].instruction_first +
           (instruction - block->first);
}

void rondo_verification_fail(struct rondo_verification *c, uint32_t instruction, const char *format, ...)
{
    if (c->result != RONDO_SUCCESS)
        return;
    const struct rondo_verify_block *block = &c->blocks[c->instructions[instruction].block];
    char reason[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof(reason), format, arguments);
    va_end(arguments);
    c->result = rondo_fail(RONDO_ERR_ARGUMENT, "program '%s': rank %u, block %u, step %u: %s", c->name, block->rank,
                           block->number, instruction - block->first, reason);
}

uint32_t rondo_verification_class(const struct rondo_verification *c, uint32_t rank, uint32_t buffer, uint32_t index)
{
    const struct rondo_plan *plan = c->set->plans[rank];
    if (buffer == RONDO_SCRATCH)
        return plan->scratch_classes != NULL ? plan->scratch_classes[index] : index % c->conditions->block_chunks;
    return rondo_conditions_class(c->conditions, rank, (enum rondo_buffer) buffer, index);
}

void rondo_verification_measured(const struct rondo_instruction *i, uint32_t *buffer, uint32_t *index)
{
    int to_destination = (i->actions & RONDO_COPY) != 0;
    *buffer = to_destination ? i->destination_buffer : i->source_buffer;
    *index = to_destination ? i->destination_index : i->source_index;
}

/* ---- form ---- */

static void check_chunks(struct rondo_verification *c, uint32_t instruction, uint32_t rank, const char *what, uint32_t buffer,
                         uint32_t index, uint32_t count)
{
    if (buffer >= RONDO_BUFFERS) {
        rondo_verification_fail(c, instruction, "%s: there is no buffer %u", what, buffer);
        return;
    }
    const struct rondo_program *program = rondo_verification_program(c, rank);
    uint32_t chunks = buffer == RONDO_SCRATCH ? program->chunks[RONDO_SCRATCH]
                                              : rondo_conditions_chunks(c->conditions, rank, (enum rondo_buffer) buffer);
    if (index >= chunks || count > chunks - index)
        rondo_verification_fail(c, instruction, "%s: chunks [%u, +%u) of %s, which has %u", what, index, count,
                                rondo_buffer_name((int) buffer), chunks);
}

/* Checks that ends [first, first + count) of the block exist, have the direction, and are of different connections. */
static void check_ends(struct rondo_verification *c, uint32_t instruction, uint32_t rank,
                       const struct rondo_program_block *block, uint32_t first, uint32_t count, int direction)
{
    const struct rondo_connection *connections = c->set->plans[rank]->connections + block->end_first;
    if (first + count > block->ends || count == 0 || count > RONDO_REDUCE_SOURCES_MAX) {
        rondo_verification_fail(c, instruction, "%s ends [%u, +%u) of %u",
                                direction == RONDO_INCOMING ? "receives from" : "sends to", first, count, block->ends);
        return;
    }
    for (uint32_t i = first; i < first + count; i++) {
        struct rondo_verify_connector *connector =
            &c->connectors[c->end_connectors[c->blocks[c->instructions[instruction].block].connectors + i]];
        for (uint32_t w = 0; w < (direction == RONDO_OUTGOING ? rondo_verify_fan(c, connector) : 1); w++)
            connector[w].used = 1;
        if (connections[i].direction != direction)
            rondo_verification_fail(c, instruction, "end %u, to rank %d, is of the other direction", i, connections[i].peer);
        for (uint32_t k = first; k < i; k++)
            if (connections[k].peer == connections[i].peer && connections[k].channel == connections[i].channel)
                rondo_verification_fail(c, instruction, "uses the connection with rank %d on channel %u twice",
                                        connections[i].peer, connections[i].channel);
    }
}

/* Checks that what a direct instruction reads from its peers' inputs, or writes to their outputs, exists there. */
static void check_remote(struct rondo_verification *c, uint32_t number, uint32_t rank, const struct rondo_program_block *block)
{
    const struct rondo_instruction *i = rondo_verification_instruction(c, number);
    for (int flag = RONDO_DIRECT_IN; flag <= RONDO_DIRECT_OUT; flag *= 2) {
        int reads = flag == RONDO_DIRECT_IN, used = i->actions & (reads ? RONDO_RECEIVE : RONDO_SEND);
        uint32_t peers = reads ? i->receive_count : i->send_count; /* it writes to the peers of its receiving ends */
        for (uint32_t e = 0; (i->flags & flag) && used && e < peers && c->result == RONDO_SUCCESS; e++) {
            uint32_t peer = (uint32_t) c->set->plans[rank]->connections[block->end_first + i->receive_first + e].peer;
            enum rondo_buffer buffer = reads ? RONDO_INPUT : RONDO_OUTPUT;
            uint32_t chunks = rondo_conditions_chunks(c->conditions, peer, buffer);
            if (i->remote_index >= chunks || i->count > chunks - i->remote_index)
                rondo_verification_fail(c, number, "rank %u's chunks [%u, +%u) of %s, which has %u", peer, i->remote_index,
                                        i->count, rondo_buffer_name((int) buffer), chunks);
        }
    }
}

static void check_instruction(struct rondo_verification *c, uint32_t number, uint32_t rank,
                              const struct rondo_program_block *block)
{
    const struct rondo_instruction *i = rondo_verification_instruction(c, number);
    const struct rondo_program *program = rondo_verification_program(c, rank);
    int receives = (i->actions & RONDO_RECEIVE) != 0, signal = (i->flags & RONDO_SIGNAL) != 0;
    /* RECODE and ROUND say how streams are made of the values, not which values: they change nothing that is verified here. */
    int coded = (i->flags & (RONDO_RECODE | RONDO_ROUND)) != 0;
    int uncoded = (i->flags & (RONDO_SIGNAL | RONDO_DIRECT_IN | RONDO_DIRECT_OUT | RONDO_EXCHANGE)) != 0;
    if (i->actions == 0 || i->actions > 15 || (coded && uncoded))
        rondo_verification_fail(c, number, "there is no primitive with actions %u and flags %u", i->actions, i->flags);
    if (receives || (i->flags & RONDO_DIRECT_OUT)) /* which also says whose outputs are written to */
        check_ends(c, number, rank, block, i->receive_first, i->receive_count, RONDO_INCOMING);
    if (i->actions & RONDO_SEND)
        check_ends(c, number, rank, block, i->send_first, i->send_count, RONDO_OUTGOING);
    if (i->count == 0 || i->count > program->largest_count)
        rondo_verification_fail(c, number, "%u chunks are not in [1, %u]", i->count, program->largest_count);
    int in_slots = receives && !signal && !(i->flags & RONDO_DIRECT_IN);
    if (in_slots && i->receive_count > c->set->plans[rank]->largest_receive)
        rondo_verification_fail(c, number, "receives from %u, more than %u", i->receive_count,
                                c->set->plans[rank]->largest_receive);
    if (receives && (i->actions & RONDO_REDUCE) && i->receive_count + 1 > RONDO_REDUCE_SOURCES_MAX)
        rondo_verification_fail(c, number, "reduces %u chunks, more than %d", i->receive_count + 1, RONDO_REDUCE_SOURCES_MAX);
    if ((i->flags & RONDO_DIRECT_OUT) && i->send_count > i->receive_count)
        rondo_verification_fail(c, number, "writes to peers whose signals it does not name");
    if ((i->flags & RONDO_EXCHANGE) &&
        (!receives || !(i->actions & RONDO_SEND) || (i->flags & ~(RONDO_EXCHANGE | RONDO_FINISH | RONDO_NOTIFY))))
        rondo_verification_fail(c, number, "an exchange sends and receives, through slots");
    if (i->slot_chunk != 0 && (!in_slots || (i->actions & RONDO_SEND)))
        rondo_verification_fail(c, number, "takes chunks from %u on of a slot, and does not only receive", i->slot_chunk);
    if (signal && (i->actions & (RONDO_REDUCE | RONDO_COPY)))
        rondo_verification_fail(c, number, "a signal moves no chunk");
    int reads_source = (i->actions & RONDO_REDUCE) || !receives;
    if (!signal) {
        if (reads_source || !(i->actions & RONDO_COPY) ||
            (i->flags & RONDO_EXCHANGE)) /* it decides how much is moved, even if it is not read */
            check_chunks(c, number, rank, "source", i->source_buffer, i->source_index, i->count);
        if ((i->actions & RONDO_COPY) || ((i->actions & RONDO_REDUCE) && !receives))
            check_chunks(c, number, rank, "destination", i->destination_buffer, i->destination_index, i->count);
        if ((i->actions & RONDO_COPY) && i->destination_buffer == RONDO_INPUT)
            rondo_verification_fail(c, number, "writes to the input");
    }
    check_remote(c, number, rank, block);
    for (uint32_t d = 0; d < i->dependencies && c->result == RONDO_SUCCESS; d++) {
        uint32_t at = (uint32_t) i->dependency_first + d;
        uint32_t all = (program->bytes - program->dependency_offset) / (uint32_t) sizeof(struct rondo_dependency);
        if (at >= all) {
            rondo_verification_fail(c, number, "has a wait outside of the list");
            return;
        }
        const struct rondo_dependency *on = rondo_program_dependencies(program) + at;
        if (on->block >= program->blocks || on->step >= rondo_program_blocks(program)[on->block].instructions) {
            rondo_verification_fail(c, number, "waits for step %u of block %u, which does not exist", on->step, on->block);
            return;
        }
        const struct rondo_instruction *other =
            rondo_program_instructions(program) + rondo_program_blocks(program)[on->block].instruction_first + on->step;
        if (!(other->flags & RONDO_NOTIFY))
            rondo_verification_fail(c, number, "waits for step %u of block %u, which does not notify", on->step, on->block);
    }
}

/* Finds or makes the connectors of a connection: one, or one to each rank but the source. Returns the first; RONDO_NONE if
 * memory is out. */
static uint32_t find_connectors(struct rondo_verification *c, uint32_t source, uint32_t destination,
                                const struct rondo_connection *what)
{
    const uint32_t ranks = c->conditions->ranks;
    const int multicast = rondo_is_multicast(what->protocol); /* in the map to the rank behind the last */
    uint32_t *found =
        rondo_map_at(&c->connector_map, rondo_connection_key(source, multicast ? ranks : destination, what->channel));
    if (found == NULL || *found != RONDO_NONE)
        return found == NULL ? RONDO_NONE : *found;
    const uint32_t first = (uint32_t) c->connector_count;
    for (uint32_t rank = multicast ? 0 : destination; rank < (multicast ? ranks : destination + 1); rank++) {
        if (rank == source)
            continue;
        if (!rondo_grow((void **) &c->connectors, c->connector_count, &c->connector_room, sizeof(*c->connectors)))
            return RONDO_NONE;
        c->connectors[c->connector_count++] = (struct rondo_verify_connector){.source = source,
                                                                              .destination = rank,
                                                                              .sending_block = RONDO_NONE,
                                                                              .receiving_block = RONDO_NONE,
                                                                              .channel = what->channel,
                                                                              .protocol = what->protocol};
    }
    return *found = first;
}

/* Finds or makes the connectors of an end. Each side of a connector is worked by one block. */
static void add_connectors(struct rondo_verification *c, uint32_t rank, uint32_t block, const struct rondo_connection *what,
                           uint32_t *at)
{
    const struct rondo_conditions *conditions = c->conditions;
    const int outgoing = what->direction == RONDO_OUTGOING, multicast = rondo_is_multicast(what->protocol);
    const int to_itself = what->peer >= 0 && (uint32_t) what->peer == rank;
    if (what->peer < 0 || (uint32_t) what->peer >= conditions->ranks || to_itself != (multicast && outgoing) ||
        what->protocol >= RONDO_PROTOCOLS || what->direction > RONDO_OUTGOING) {
        c->result = rondo_fail(RONDO_ERR_ARGUMENT, "program '%s': rank %u, block %u: a connection with rank %d, of %u", c->name,
                               rank, c->blocks[block].number, what->peer, conditions->ranks);
        return;
    }
    const uint32_t source = outgoing ? rank : (uint32_t) what->peer, destination = outgoing ? (uint32_t) what->peer : rank;
    const uint32_t first = find_connectors(c, source, destination, what);
    if (first == RONDO_NONE) {
        c->result = rondo_fail(RONDO_ERR_MEMORY, "no memory to check program '%s'", c->name);
        return;
    }
    *at = first + (multicast && !outgoing ? rank - (rank > source) : 0);
    for (uint32_t w = 0; w < (outgoing ? rondo_verify_fan(c, &c->connectors[first]) : 1); w++) {
        struct rondo_verify_connector *connector = &c->connectors[*at + w];
        uint32_t *side = outgoing ? &connector->sending_block : &connector->receiving_block;
        if (*side != RONDO_NONE && *side != block)
            c->result = rondo_fail(RONDO_ERR_ARGUMENT,
                                   "program '%s': rank %u: blocks %u and %u both work the connection %s rank %u on channel %u",
                                   c->name, rank, c->blocks[*side].number, c->blocks[block].number, outgoing ? "to" : "from",
                                   outgoing ? connector->destination : source, what->channel);
        if (connector->protocol != what->protocol)
            c->result = rondo_fail(RONDO_ERR_ARGUMENT, "program '%s': ranks %u and %u differ in the protocol of channel %u",
                                   c->name, source, connector->destination, what->channel);
        *side = block;
    }
}

static rondo_result_t check_rank(struct rondo_verification *c, uint32_t rank)
{
    const struct rondo_program *program = rondo_verification_program(c, rank), *zero = rondo_verification_program(c, 0);
    for (int b = RONDO_INPUT; b <= RONDO_OUTPUT; b++) {
        uint32_t chunks = rondo_conditions_chunks(c->conditions, rank, (enum rondo_buffer) b);
        if (chunks != 0 && program->chunks[b] != chunks)
            return rondo_fail(RONDO_ERR_ARGUMENT, "program '%s': rank %u's %s has %u chunks, not %u", c->name, rank,
                              rondo_buffer_name(b), program->chunks[b], chunks);
    }
    if (program->blocks == 0 || program->blocks > c->limits->blocks)
        return rondo_fail(RONDO_ERR_ARGUMENT, "program '%s': rank %u has %u blocks; 1 to %u are possible", c->name, rank,
                          program->blocks, c->limits->blocks);
    const struct rondo_plan *plan = c->set->plans[rank];
    if (program->largest_count != zero->largest_count || plan->largest_receive != c->set->plans[0]->largest_receive)
        return rondo_fail(RONDO_ERR_ARGUMENT, "program '%s': ranks 0 and %u would cut their chunks into different slices",
                          c->name, rank);
    for (uint32_t b = c->rank_first[rank]; b < c->rank_first[rank + 1] && c->result == RONDO_SUCCESS; b++) {
        const struct rondo_program_block *block = rondo_program_blocks(program) + c->blocks[b].number;
        for (uint32_t e = 0; e < block->ends && c->result == RONDO_SUCCESS; e++)
            add_connectors(c, rank, b, &c->set->plans[rank]->connections[block->end_first + e],
                           &c->end_connectors[c->blocks[b].connectors + e]);
        for (uint32_t i = 0; i < block->instructions && c->result == RONDO_SUCCESS; i++)
            check_instruction(c, c->blocks[b].first + i, rank, block);
    }
    return c->result;
}

rondo_result_t rondo_verify_form(struct rondo_verification *c)
{
    for (uint32_t rank = 0; rank < c->conditions->ranks && c->result == RONDO_SUCCESS; rank++)
        c->result = check_rank(c, rank);
    for (size_t w = 0; w < c->connector_count && c->result == RONDO_SUCCESS; w++) {
        const struct rondo_verify_connector *connector = &c->connectors[w];
        if (connector->used && (connector->sending_block == RONDO_NONE || connector->receiving_block == RONDO_NONE))
            c->result = rondo_fail(
                RONDO_ERR_ARGUMENT, "program '%s': rank %u %s rank %u on channel %u, but not the other way round", c->name,
                connector->sending_block == RONDO_NONE ? connector->destination : connector->source,
                connector->sending_block == RONDO_NONE ? "receives from" : "sends to",
                connector->sending_block == RONDO_NONE ? connector->source : connector->destination, connector->channel);
    }
    return c->result;
}

/* ---- what the simulation needs ---- */

static rondo_result_t number_instructions(struct rondo_verification *c)
{
    uint32_t ranks = c->conditions->ranks;
    c->rank_first = calloc((size_t) ranks + 1, sizeof(uint32_t));
    if (c->rank_first == NULL)
        return RONDO_ERR_MEMORY;
    uint64_t blocks = 0, instructions = 0, ends = 0;
    for (uint32_t rank = 0; rank < ranks; rank++) {
        const struct rondo_program *program = rondo_verification_program(c, rank);
        c->rank_first[rank] = (uint32_t) blocks;
        blocks += program->blocks;
        for (uint32_t b = 0; b < program->blocks; b++) {
            instructions += rondo_program_blocks(program)[b].instructions;
            ends += rondo_program_blocks(program)[b].ends;
        }
        if (blocks >= RONDO_NONE || instructions >= RONDO_NONE || ends >= RONDO_NONE)
            return rondo_fail(RONDO_ERR_ARGUMENT, "program '%s' has too many instructions", c->name);
    }
    c->rank_first[ranks] = (uint32_t) blocks;
    c->block_count = blocks;
    c->instruction_count = instructions;
    c->blocks = calloc(blocks + 1, sizeof(*c->blocks));
    c->instructions = calloc(instructions + 1, sizeof(*c->instructions));
    c->end_connectors = calloc(ends + 1, sizeof(uint32_t));
    c->ready = calloc(blocks + 1, sizeof(uint32_t));
    if (c->blocks == NULL || c->instructions == NULL || c->end_connectors == NULL || c->ready == NULL)
        return RONDO_ERR_MEMORY;
    uint32_t block = 0, instruction = 0, connector = 0;
    for (uint32_t rank = 0; rank < ranks; rank++) {
        const struct rondo_program *program = rondo_verification_program(c, rank);
        for (uint32_t b = 0; b < program->blocks; b++, block++) {
            const struct rondo_program_block *list = rondo_program_blocks(program) + b;
            c->blocks[block] = (struct rondo_verify_block){.rank = rank,
                                                           .number = b,
                                                           .first = instruction,
                                                           .count = list->instructions,
                                                           .connectors = connector,
                                                           .waiters = RONDO_NONE,
                                                           .wants = RONDO_NONE};
            connector += list->ends;
            for (uint32_t i = 0; i < list->instructions; i++, instruction++)
                c->instructions[instruction] = (struct rondo_verify_step){block, 0, 0, RONDO_NONE};
        }
    }
    return RONDO_SUCCESS;
}

static rondo_result_t make_chunks(struct rondo_verification *c)
{
    const struct rondo_conditions *conditions = c->conditions;
    size_t all = 0, words = ((size_t) conditions->ranks + 63) / 64;
    c->chunk_first = calloc((size_t) conditions->ranks * RONDO_BUFFERS + 1, sizeof(size_t));
    if (c->chunk_first == NULL)
        return RONDO_ERR_MEMORY;
    for (uint32_t rank = 0; rank < conditions->ranks; rank++)
        for (int b = 0; b < RONDO_BUFFERS; b++) {
            c->chunk_first[rank * RONDO_BUFFERS + (uint32_t) b] = all;
            all += b == RONDO_SCRATCH ? rondo_verification_program(c, rank)->chunks[b]
                                      : rondo_conditions_chunks(conditions, rank, (enum rondo_buffer) b);
        }
    const size_t largest = (size_t) rondo_verification_program(c, 0)->largest_count + 1;
    c->held = malloc((all + 1) * sizeof(*c->held));
    c->values = malloc(largest * sizeof(*c->values));
    c->classes = malloc(largest * sizeof(*c->classes));
    if (c->held == NULL || c->values == NULL || c->classes == NULL)
        return RONDO_ERR_MEMORY;
    for (size_t i = 0; i < all; i++)
        c->held[i] = (struct rondo_verify_chunk){.writer = RONDO_NONE, .readers = RONDO_NONE};
    for (uint32_t rank = 0; rank < conditions->ranks; rank++)
        for (uint32_t i = 0;
             rondo_conditions_given(conditions, rank) && i < rondo_conditions_chunks(conditions, rank, RONDO_INPUT); i++) {
            enum rondo_buffer buffer = RONDO_INPUT;
            uint32_t index = i;
            rondo_conditions_resolve(conditions, c->shared, rank, &buffer, &index);
            c->held[c->chunk_first[rank * RONDO_BUFFERS + buffer] + index].value = rondo_wants_input(&c->wants, rank, i);
        }
    for (uint32_t i = 0; i < c->instruction_count; i++) {
        const struct rondo_instruction *instruction = rondo_verification_instruction(c, i);
        uint32_t buffer, index, rank = c->blocks[c->instructions[i].block].rank, least = 0;
        rondo_verification_measured(instruction, &buffer, &index);
        for (uint32_t k = 0; k < instruction->count && !(instruction->flags & RONDO_SIGNAL); k++) {
            uint32_t class = rondo_verification_class(c, rank, buffer, index + k);
            least = k == 0 || class < least ? class : least;
        }
        c->instructions[i].least_class = least;
    }
    for (size_t b = 0; b < c->block_count && conditions->kind == RONDO_KIND_BARRIER; b++) {
        uint32_t rank = c->blocks[b].rank;
        if ((c->blocks[b].heard = calloc(words, sizeof(uint64_t))) == NULL)
            return RONDO_ERR_MEMORY;
        c->blocks[b].heard[rank / 64] |= (uint64_t) 1 << (rank % 64);
    }
    return RONDO_SUCCESS;
}

static void release(struct rondo_verification *c)
{
    for (size_t w = 0; w < c->connector_count; w++)
        for (struct rondo_verify_message *message = c->connectors[w].oldest, *next; message != NULL; message = next) {
            next = message->next;
            free(message);
        }
    for (size_t b = 0; c->blocks != NULL && b < c->block_count; b++)
        free(c->blocks[b].heard);
    rondo_wants_release(&c->wants);
    rondo_map_release(&c->connector_map);
    free(c->rank_first);
    free(c->blocks);
    free(c->instructions);
    free(c->connectors);
    free(c->end_connectors);
    free(c->held);
    free(c->values);
    free(c->classes);
    free(c->chunk_first);
    free(c->senders);
    free(c->links);
    free(c->ready);
    free(c->stack);
}

rondo_result_t rondo_verify_plans(const struct rondo_plan_set *set, const char *name, const struct rondo_verify_limits *limits,
                                  int shared)
{
    int ordered;
    return rondo_verify_order(set, name, limits, shared, &ordered);
}

rondo_result_t rondo_verify_order(const struct rondo_plan_set *set, const char *name, const struct rondo_verify_limits *limits,
                                  int shared, int *ordered)
{
    struct rondo_verification c = {.set = set,
                                   .conditions = &set->conditions,
                                   .limits = limits,
                                   .name = name,
                                   .shared = shared,
                                   .ordered = 1,
                                   .result = RONDO_SUCCESS};
    rondo_result_t status = RONDO_SUCCESS;
    for (uint32_t rank = 0; rank < set->conditions.ranks; rank++)
        if (set->plans[rank] == NULL)
            return rondo_fail(RONDO_ERR_ARGUMENT, "program '%s' has no part for rank %u", name, rank);
    if (limits->slots == 0 || limits->slots > 1024)
        return rondo_fail(RONDO_ERR_ARGUMENT, "%u slots are not in [1, 1024]", limits->slots);
    c.result = status = number_instructions(&c);
    if (status == RONDO_SUCCESS)
        status = rondo_verify_form(&c);
    if (status == RONDO_SUCCESS)
        status = rondo_wants_prepare(&c.wants, c.conditions, rondo_value_salt());
    if (status == RONDO_SUCCESS)
        status = make_chunks(&c);
    if (status == RONDO_SUCCESS)
        status = rondo_verify_simulate(&c);
    if (status == RONDO_ERR_MEMORY)
        rondo_fail(status, "no memory to check program '%s' of %u ranks", name, set->conditions.ranks);
    release(&c);
    *ordered = status == RONDO_SUCCESS && c.ordered;
    return status;
}
