/*
 * Simulates plans with numbers, independently of the verifier: blocks take turns at random, chunks of some classes are empty,
 * and the final step of the operator multiplies by three, so that a missing or repeated final step shows.
 */
#ifndef RONDO_TEST_PLANS_H
#define RONDO_TEST_PLANS_H

#include "device/engine/use.h"
#include "lib/algorithms/algorithms.h"
#include "lib/call/conditions.h"
#include "lib/program/builder.h"
#include "lib/program/plan_set.h"
#include "lib/program/program.h"

#include <stdlib.h>
#include <string.h>

/* rondo_program_compile of the program of a handle. */
static inline rondo_result_t plans_compile(rondo_program_t program, const struct rondo_compile_options *options, int only,
                                           struct rondo_plan_set **set)
{
    struct rondo_program_builder *builder;
    rondo_result_t result = rondo_program_builder_of(program, "plans_compile", &builder);
    return result == RONDO_SUCCESS ? rondo_program_compile(builder, options, only, set) : result;
}

#define PLAYED_SLOTS 4
#define PLAYED_WIRES 4096

struct played_wire {
    uint32_t source, destination, channel;
    uint64_t filled, taken;
    uint64_t *slots[PLAYED_SLOTS];
};

struct played {
    const struct rondo_plan_set *set;
    int shared;
    uint32_t least_empty; /* chunks of this class and above are empty */
    uint64_t *memory[256][3];
    struct played_wire wires[PLAYED_WIRES];
    uint32_t wire_count;
    uint32_t at[256][64], notified[256][64];
    uint8_t sent[256][64]; /* whether the current exchange has sent */
};

static inline uint64_t played_random(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static inline uint64_t played_input(uint32_t rank, uint32_t index)
{
    uint64_t state = (uint64_t) rank << 32 | index;
    return played_random(&state);
}

/* Stores what an input chunk holds at the start: as a custom program's precondition says, else data of its own. Returns 0 if it
 * holds nothing. */
static inline int played_start(const struct rondo_conditions *c, uint32_t rank, uint32_t i, uint64_t *value)
{
    for (size_t a = c->assumption_count; a-- > 0;) {
        const struct rondo_holding *given = &c->assumptions[a];
        if (given->rank != rank || given->chunk != i / c->block_chunks)
            continue;
        *value = 0;
        for (uint32_t t = 0; t < given->terms; t++) {
            const struct rondo_term *term = &c->terms[given->term_first + t];
            *value += played_input(term->rank, term->index * c->block_chunks + i % c->block_chunks);
        }
        return given->terms > 0;
    }
    *value = played_input(rank, i);
    return 1;
}

static inline const struct rondo_program_block *played_block(const struct rondo_plan *plan, uint32_t b)
{
    return rondo_program_blocks(plan->program) + b;
}

static inline struct rondo_instruction *played_instruction(const struct rondo_plan *plan, uint32_t b, uint32_t i)
{
    return (struct rondo_instruction *) (void *) ((char *) plan->program + plan->program->instruction_offset) +
           played_block(plan, b)->instruction_first + i;
}

static inline uint32_t played_class(const struct played *p, uint32_t rank, uint32_t buffer, uint32_t index)
{
    const struct rondo_plan *plan = p->set->plans[rank];
    if (buffer == RONDO_SCRATCH)
        return plan->scratch_classes != NULL ? plan->scratch_classes[index] : index % p->set->conditions.block_chunks;
    return rondo_conditions_class(&p->set->conditions, rank, (enum rondo_buffer) buffer, index);
}

static inline int played_empty(const struct played *p, uint32_t rank, uint32_t buffer, uint32_t index)
{
    return !p->set->even && rondo_conditions_ordered(&p->set->conditions) &&
           played_class(p, rank, buffer, index) >= p->least_empty;
}

static inline uint64_t *played_chunk(struct played *p, uint32_t rank, uint32_t buffer, uint32_t index)
{
    enum rondo_buffer where = (enum rondo_buffer) buffer;
    rondo_conditions_resolve(&p->set->conditions, p->shared, rank, &where, &index);
    return &p->memory[rank][where][index];
}

static inline const struct rondo_connection *played_end(const struct played *p, uint32_t rank, uint32_t block, uint32_t end)
{
    const struct rondo_plan *plan = p->set->plans[rank];
    return plan->connections + played_block(plan, block)->end_first + end;
}

/* The wire between two ranks. Those of multicast connectors are apart from those of the others. */
static inline struct played_wire *played_wire_between(struct played *p, uint32_t source, uint32_t destination,
                                                      const struct rondo_connection *c)
{
    const uint32_t channel = c->channel + (rondo_is_multicast(c->protocol) ? 0x10000u : 0);
    for (uint32_t w = 0; w < p->wire_count; w++)
        if (p->wires[w].source == source && p->wires[w].destination == destination && p->wires[w].channel == channel)
            return &p->wires[w];
    if (p->wire_count == PLAYED_WIRES)
        abort();
    p->wires[p->wire_count] = (struct played_wire){.source = source, .destination = destination, .channel = channel};
    return &p->wires[p->wire_count++];
}

/* The wire from which an end receives. */
static inline struct played_wire *played_wire(struct played *p, uint32_t rank, uint32_t block, uint32_t end)
{
    const struct rondo_connection *c = played_end(p, rank, block, end);
    return played_wire_between(p, (uint32_t) c->peer, rank, c);
}

/* The w-th wire to which an end sends: a multicast end has one to every other rank. NULL: there are no more. */
static inline struct played_wire *played_wire_out(struct played *p, uint32_t rank, uint32_t block, uint32_t end, uint32_t w)
{
    const struct rondo_connection *c = played_end(p, rank, block, end);
    if (!rondo_is_multicast(c->protocol))
        return w > 0 ? NULL : played_wire_between(p, rank, (uint32_t) c->peer, c);
    return w == p->set->conditions.ranks - 1 ? NULL : played_wire_between(p, rank, w + (w >= rank), c);
}

static inline int played_has_room(struct played *p, uint32_t rank, uint32_t b, const struct rondo_instruction *i)
{
    const struct played_wire *wire;
    for (uint32_t s = 0; s < i->send_count; s++)
        for (uint32_t w = 0; (wire = played_wire_out(p, rank, b, i->send_first + s, w)) != NULL; w++)
            if (wire->filled - wire->taken == PLAYED_SLOTS)
                return 0;
    return 1;
}

static inline void played_send(struct played *p, uint32_t rank, uint32_t b, const struct rondo_instruction *i,
                               const uint64_t *values)
{
    struct played_wire *wire;
    for (uint32_t s = 0; s < i->send_count; s++)
        for (uint32_t w = 0; (wire = played_wire_out(p, rank, b, i->send_first + s, w)) != NULL; w++) {
            uint64_t *slot = malloc(i->count * sizeof(*slot));
            memcpy(slot, values, i->count * sizeof(*slot));
            wire->slots[wire->filled++ % PLAYED_SLOTS] = slot;
        }
}

/* An exchange sends its source, and then acts as a reduction that sends nothing. */
static inline void played_exchange(struct played *p, uint32_t rank, uint32_t b, const struct rondo_instruction *i)
{
    uint64_t *values = calloc(i->count, sizeof(*values));
    for (uint32_t k = 0; k < i->count; k++)
        values[k] = *played_chunk(p, rank, i->source_buffer, i->source_index + k);
    played_send(p, rank, b, i, values);
    free(values);
    p->sent[rank][b] = 1;
}

/* Runs one step of a block if it can run. Returns whether it has. */
static inline int played_step(struct played *p, uint32_t rank, uint32_t b)
{
    const struct rondo_plan *plan = p->set->plans[rank];
    const struct rondo_program_block *block = played_block(plan, b);
    if (p->at[rank][b] == block->instructions)
        return 0;
    const struct rondo_instruction *i = played_instruction(plan, b, p->at[rank][b]);
    uint32_t buffer = i->actions & RONDO_COPY ? i->destination_buffer : i->source_buffer;
    uint32_t index = i->actions & RONDO_COPY ? i->destination_index : i->source_index;
    int moves = 0, receives = i->actions & RONDO_RECEIVE ? i->receive_count : 0;
    for (uint32_t k = 0; k < i->count; k++)
        moves |= !played_empty(p, rank, buffer, index + k);
    if (moves) {
        const struct rondo_dependency *on = rondo_program_dependencies(plan->program) + i->dependency_first;
        for (uint32_t d = 0; d < i->dependencies; d++)
            if (p->notified[rank][on[d].block] <= on[d].step)
                return 0;
        int sends = (i->actions & RONDO_SEND) && !p->sent[rank][b];
        if (sends && !played_has_room(p, rank, b, i))
            return 0;
        if (sends && (i->flags & RONDO_EXCHANGE)) {
            played_exchange(p, rank, b, i);
            return 1;
        }
        for (int r = 0; r < receives; r++) {
            struct played_wire *w = played_wire(p, rank, b, i->receive_first + (uint32_t) r);
            if (w->filled == w->taken)
                return 0;
        }
        p->sent[rank][b] = 0;
        uint64_t *result = calloc(i->count, sizeof(*result));
        for (uint32_t k = 0; k < i->count; k++) {
            if (played_empty(p, rank, buffer, index + k))
                continue;
            for (int r = 0; r < receives; r++) {
                struct played_wire *w = played_wire(p, rank, b, i->receive_first + (uint32_t) r);
                result[k] += w->slots[w->taken % PLAYED_SLOTS][i->slot_chunk + k];
            }
            if ((i->actions & RONDO_REDUCE) || receives == 0)
                result[k] += *played_chunk(p, rank, i->source_buffer, i->source_index + k);
            if ((i->actions & RONDO_REDUCE) && receives == 0)
                result[k] += *played_chunk(p, rank, i->destination_buffer, i->destination_index + k);
            if (i->flags & RONDO_FINISH)
                result[k] *= 3;
            if (i->actions & RONDO_COPY)
                *played_chunk(p, rank, i->destination_buffer, i->destination_index + k) = result[k];
        }
        for (int r = 0; r < receives; r++) {
            struct played_wire *w = played_wire(p, rank, b, i->receive_first + (uint32_t) r);
            free(w->slots[w->taken++ % PLAYED_SLOTS]);
        }
        if (sends)
            played_send(p, rank, b, i, result);
        free(result);
    }
    p->at[rank][b]++;
    if (i->flags & RONDO_NOTIFY)
        p->notified[rank][b] = p->at[rank][b];
    return 1;
}

/* The expected value that a custom program requires. */
static inline int played_wish(const struct rondo_conditions *c, uint32_t rank, uint32_t i, uint64_t *value)
{
    for (size_t r = c->requirement_count; r-- > 0;) { /* of two for one chunk, the later one counts */
        const struct rondo_holding *wish = &c->requirements[r];
        if (wish->rank != rank || wish->chunk != i / c->block_chunks)
            continue;
        *value = 0;
        for (uint32_t t = 0; t < wish->terms; t++) {
            const struct rondo_term *term = &c->terms[wish->term_first + t];
            *value += played_input(term->rank, term->index * c->block_chunks + i % c->block_chunks);
        }
        return 1;
    }
    return 0;
}

/* The expected value of an output chunk. Returns 0 if it may be anything. */
static inline int played_expected(const struct rondo_conditions *c, uint32_t rank, uint32_t i, uint64_t *value)
{
    uint32_t p = c->block_chunks, first = 0, last = c->ranks - 1, index = i, factor = 3;
    switch (c->kind) {
    case RONDO_KIND_ALLREDUCE:
        break;
    case RONDO_KIND_REDUCE:
        if (rank != c->root)
            return 0;
        break;
    case RONDO_KIND_REDUCE_SCATTER_BLOCK:
    case RONDO_KIND_REDUCE_SCATTER:
        index = rank * p + i;
        break;
    case RONDO_KIND_ALLGATHER:
    case RONDO_KIND_ALLGATHERV:
    case RONDO_KIND_GATHER:
    case RONDO_KIND_GATHERV:
        if ((c->kind == RONDO_KIND_GATHER || c->kind == RONDO_KIND_GATHERV) && rank != c->root)
            return 0;
        first = last = i / p, index = i % p, factor = 1;
        break;
    case RONDO_KIND_ALLTOALL:
    case RONDO_KIND_ALLTOALLV:
    case RONDO_KIND_ALLTOALLW:
        first = last = i / p, index = rank * p + i % p, factor = 1;
        break;
    case RONDO_KIND_BCAST:
        first = last = c->root, factor = 1;
        break;
    case RONDO_KIND_SCATTER:
    case RONDO_KIND_SCATTERV:
        first = last = c->root, index = rank * p + i, factor = 1;
        break;
    case RONDO_KIND_ALLTONEXT:
        if (rank == 0)
            return 0;
        first = last = rank - 1, factor = 1;
        break;
    case RONDO_KIND_CUSTOM:
        return played_wish(c, rank, i, value);
    default:
        return 0; /* partial results of scans may be completed or not */
    }
    *value = 0;
    for (uint32_t r = first; r <= last; r++)
        *value += played_input(r, index);
    *value *= factor;
    return 1;
}

/* The plans of a hand-written algorithm. NULL: it cannot be built. */
static inline struct rondo_plan_set *plans_by_hand(const struct rondo_algorithm *algorithm, const struct rondo_shape *shape)
{
    struct rondo_plan_set *set = calloc(1, sizeof(*set));
    set->plans = calloc((size_t) shape->size, sizeof(struct rondo_plan *));
    set->conditions = (struct rondo_conditions){
        .kind = shape->kind, .ranks = (uint32_t) shape->size, .root = (uint32_t) shape->root, .block_chunks = 1};
    for (int rank = 0; rank < shape->size; rank++) {
        struct rondo_shape own = *shape;
        own.rank = rank;
        if (algorithm->build(&own, &set->plans[rank]) != RONDO_SUCCESS) {
            rondo_plan_set_free(set);
            return NULL;
        }
    }
    uint32_t groups = rondo_conditions_chunks(&set->conditions, set->conditions.root, RONDO_INPUT);
    set->conditions.block_chunks = set->plans[shape->root]->program->chunks[RONDO_INPUT] / groups;
    set->even = set->plans[shape->root]->even;
    return set;
}

/* Returns 1 if the result is right in random turns; 0 if it is wrong or the plan gets stuck. */
static inline int plans_play(const struct rondo_plan_set *set, int shared, uint32_t least_empty, uint64_t seed)
{
    const struct rondo_conditions *c = &set->conditions;
    struct played *p = calloc(1, sizeof(*p));
    int right = 1;
    p->set = set, p->shared = shared, p->least_empty = least_empty;
    for (uint32_t rank = 0; rank < c->ranks; rank++) {
        for (int b = 0; b < 3; b++) {
            uint32_t chunks = b == RONDO_SCRATCH ? set->plans[rank]->program->chunks[b]
                                                 : rondo_conditions_chunks(c, rank, (enum rondo_buffer) b);
            p->memory[rank][b] = malloc(((size_t) chunks + 1) * sizeof(uint64_t));
            for (uint32_t i = 0; i < chunks; i++)
                p->memory[rank][b][i] = played_random(&seed);
        }
        for (uint32_t i = 0; rondo_conditions_given(c, rank) && i < rondo_conditions_chunks(c, rank, RONDO_INPUT); i++)
            played_start(c, rank, i, played_chunk(p, rank, RONDO_INPUT, i));
    }
    for (int idle = 0; idle < 4000;) {
        uint32_t rank = (uint32_t) (played_random(&seed) % c->ranks);
        uint32_t b = (uint32_t) (played_random(&seed) % set->plans[rank]->program->blocks);
        int steps = (int) (played_random(&seed) % 8) + 1, moved = 0;
        while (steps-- > 0 && played_step(p, rank, b))
            moved = 1;
        idle = moved ? 0 : idle + 1;
    }
    for (uint32_t rank = 0; rank < c->ranks; rank++)
        for (uint32_t b = 0; b < set->plans[rank]->program->blocks; b++)
            right &= p->at[rank][b] == played_block(set->plans[rank], b)->instructions;
    for (uint32_t rank = 0; rank < c->ranks; rank++)
        for (uint32_t i = 0; i < rondo_conditions_chunks(c, rank, RONDO_OUTPUT); i++) {
            uint64_t value;
            if (!played_empty(p, rank, RONDO_OUTPUT, i) && played_expected(c, rank, i, &value))
                right &= *played_chunk(p, rank, RONDO_OUTPUT, i) == value;
        }
    for (uint32_t w = 0; w < p->wire_count; w++)
        for (; p->wires[w].taken < p->wires[w].filled; p->wires[w].taken++)
            free(p->wires[w].slots[p->wires[w].taken % PLAYED_SLOTS]);
    for (uint32_t rank = 0; rank < c->ranks; rank++)
        for (int b = 0; b < 3; b++)
            free(p->memory[rank][b]);
    free(p);
    return right;
}

#endif
