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

/* A search backwards from an instruction for `before`. */
struct search {
    uint32_t before, block; /* before's */
    uint32_t class;
    size_t depth;    /* of c->stack */
    int found, lost; /* lost: memory or the steps of all searches are out */
};

/* The instruction comes before the one at hand. It need not be looked at if `before` is it or comes before it in its block. */
static void come_to(struct rondo_verification *c, struct search *s, uint32_t instruction)
{
    if (c->instructions[instruction].block == s->block && instruction >= s->before)
        s->found = 1;
    else if (!rondo_grow((void **) &c->stack, s->depth, &c->stack_room, sizeof(*c->stack)))
        s->lost = 1;
    else
        c->stack[s->depth++] = instruction;
}

static const struct rondo_dependency *waits_of(const struct rondo_verification *c, uint32_t rank,
                                               const struct rondo_instruction *i)
{
    const struct rondo_program *program = rondo_verification_program(c, rank);
    return rondo_program_dependencies(program) + i->dependency_first;
}

/* A message of an exchange says that the steps before it are over, not that the exchange is. */
static void come_to_sender(struct rondo_verification *c, struct search *s, uint32_t sender)
{
    if (!(rondo_verification_instruction(c, sender)->flags & RONDO_EXCHANGE))
        come_to(c, s, sender);
    else if (sender != c->blocks[c->instructions[sender].block].first)
        come_to(c, s, sender - 1);
}

/* Comes to all that the instruction waits for and receives from. */
static void look_at(struct rondo_verification *c, struct search *s, uint32_t instruction)
{
    if (++c->search_steps > STEPS_MAX)
        s->lost = 1;
    if (!counts(c, instruction, s->class))
        return;
    const struct rondo_instruction *i = rondo_verification_instruction(c, instruction);
    const struct rondo_verify_step *step = &c->instructions[instruction];
    const uint32_t rank = c->blocks[step->block].rank;
    const struct rondo_dependency *waits = waits_of(c, rank, i);
    for (uint32_t d = 0; d < i->dependencies; d++)
        come_to(c, s, c->blocks[c->rank_first[rank] + waits[d].block].first + waits[d].step);
    const int receives = (i->actions & RONDO_RECEIVE) && !(i->flags & RONDO_DIRECT_IN) && step->senders != RONDO_NONE;
    for (uint32_t r = 0; receives && r < i->receive_count; r++)
        come_to_sender(c, s, c->senders[step->senders + r]);
}

/* Searches backwards from `after`. The order of the simulation is an execution, so nothing simulated before `before` can lie
 * between the two. Returns 1 if `before` is found. */
static int search(struct rondo_verification *c, uint32_t before, uint32_t after, uint32_t class)
{
    const uint32_t least = c->instructions[before].order;
    struct search s = {.before = before, .block = c->instructions[before].block, .class = class};
    c->searches++;
    come_to(c, &s, after);
    while (s.depth > 0 && !s.found && !s.lost) {
        const uint32_t instruction = c->stack[--s.depth];
        struct rondo_verify_block *block = &c->blocks[c->instructions[instruction].block];
        const uint32_t floor = block->explored_by == c->searches ? block->explored : 0;
        uint32_t step = instruction - block->first + 1; /* explored: steps below it */
        if (step <= floor)
            continue;
        block->explored_by = c->searches;
        block->explored = step;
        for (; step > floor && c->instructions[block->first + step - 1].order >= least && !s.found && !s.lost; step--)
            look_at(c, &s, block->first + step - 1);
    }
    return s.found;
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
