/*
 * Finds out whether two accesses are ordered: by their block, by a wait of the later instruction, or of one before it in its
 * block, on the earlier one, or by a way back through blocks, waits and messages of any ranks. An instruction on chunks that
 * have ended waits for nothing and receives nothing, so for a chunk of some class only those instructions count that still move
 * something when that chunk does. Relies on the order of the simulation, which is one execution.
 */
#include "lib/program/verify.h"

#include <stdlib.h>

#define STEPS_MAX ((uint64_t) 1 << 28) /* of all searches together */

/* Whether the instruction waits and receives whenever chunks of the class have elements. */
static int counts(const struct rondo_verification *c, uint32_t instruction, uint32_t class)
{
    if (c->set->even || rondo_conditions_ordered(c->conditions))
        return c->set->even || c->instructions[instruction].least_class <= class;
    const struct rondo_instruction *i = rondo_verification_instruction(c, instruction);
    uint32_t buffer, index, rank = c->blocks[c->instructions[instruction].block].rank;
    if (i->flags & RONDO_SIGNAL)
        return 1;
    rondo_verification_measured(i, &buffer, &index);
    for (uint32_t k = 0; k < i->count; k++)
        if (rondo_verification_class(c, rank, buffer, index + k) == class)
            return 1;
    return 0;
}

static int push(struct rondo_verification *c, size_t *depth, uint32_t instruction)
{
    if (!rondo_grow((void **) &c->stack, *depth, &c->stack_room, sizeof(*c->stack)))
        return 0;
    c->stack[(*depth)++] = instruction;
    return 1;
}

static const struct rondo_dependency *waits_of(const struct rondo_verification *c, uint32_t rank,
                                               const struct rondo_instruction *i)
{
    const struct rondo_program *program = rondo_verification_program(c, rank);
    return rondo_program_dependencies(program) + i->dependency_first;
}

/* A message of an exchange says that the steps before it are over, not that the exchange is. */
static int push_sender(struct rondo_verification *c, size_t *depth, uint32_t sender)
{
    if (!(rondo_verification_instruction(c, sender)->flags & RONDO_EXCHANGE))
        return push(c, depth, sender);
    return sender == c->blocks[c->instructions[sender].block].first || push(c, depth, sender - 1);
}

/* Searches backwards from `after`. The order of the simulation is an execution, so nothing simulated before `before` can lie
 * between the two. Returns 1 if `before` is found. */
static int search(struct rondo_verification *c, uint32_t before, uint32_t after, uint32_t class)
{
    uint32_t target = c->instructions[before].block, least = c->instructions[before].order;
    size_t depth = 0;
    c->searches++;
    if (!push(c, &depth, after))
        return 0;
    while (depth > 0) {
        uint32_t instruction = c->stack[--depth];
        struct rondo_verify_block *block = &c->blocks[c->instructions[instruction].block];
        uint32_t floor = block->explored_by == c->searches ? block->explored : 0;
        uint32_t step = instruction - block->first + 1; /* explored: steps below it */
        if (step <= floor)
            continue;
        block->explored_by = c->searches;
        block->explored = step;
        for (; step > floor; step--) {
            uint32_t at = block->first + step - 1;
            if (c->instructions[at].order < least)
                break;
            if (c->instructions[at].block == target && at >= before && at != after)
                return 1;
            if (++c->search_steps > STEPS_MAX)
                return 0;
            if (!counts(c, at, class))
                continue;
            const struct rondo_instruction *i = rondo_verification_instruction(c, at);
            const struct rondo_dependency *waits = waits_of(c, block->rank, i);
            for (uint32_t d = 0; d < i->dependencies; d++) {
                const struct rondo_verify_block *on = &c->blocks[c->rank_first[block->rank] + waits[d].block];
                if (!push(c, &depth, on->first + waits[d].step))
                    return 0;
            }
            int receives = (i->actions & RONDO_RECEIVE) && !(i->flags & RONDO_DIRECT_IN);
            for (uint32_t r = 0; receives && c->instructions[at].senders != RONDO_NONE && r < i->receive_count; r++)
                if (!push_sender(c, &depth, c->senders[c->instructions[at].senders + r]))
                    return 0;
        }
    }
    return 0;
}

int rondo_verify_ordered(struct rondo_verification *c, uint32_t before, uint32_t after, uint32_t class)
{
    const struct rondo_verify_step *b = &c->instructions[before], *a = &c->instructions[after];
    if (b->block == a->block)
        return before <= after;
    const struct rondo_verify_block *block = &c->blocks[a->block], *other = &c->blocks[b->block];
    if (block->rank == other->rank) {
        const struct rondo_instruction *i = rondo_verification_instruction(c, after);
        const struct rondo_dependency *waits = waits_of(c, block->rank, i);
        for (uint32_t d = 0; d < i->dependencies; d++)
            if (waits[d].block == other->number && other->first + waits[d].step >= before)
                return 1;
    }
    return search(c, before, after, class);
}
