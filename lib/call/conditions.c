/* See lib/call/conditions.h. */
#include "lib/call/conditions.h"

#include "lib/base/error.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

static const rondo_collective_t *rule_of(const struct rondo_conditions *c)
{
    return &rondo_collective_of(c->kind)->rule;
}

uint32_t rondo_conditions_chunks(const struct rondo_conditions *c, uint32_t rank, enum rondo_buffer buffer)
{
    const rondo_collective_t *rule = rule_of(c);
    if (c->kind == RONDO_KIND_CUSTOM)
        return (buffer == RONDO_INPUT ? c->inputs : c->outputs) * c->block_chunks;
    rondo_ranks_t ranks = buffer == RONDO_INPUT ? rule->send_ranks : rule->recv_ranks;
    if (ranks == RONDO_RANKS_ROOT && rank != c->root && !rondo_conditions_always_shared(c))
        return 0;
    return rondo_kind_blocks(c->kind, buffer, c->ranks) * c->block_chunks;
}

int rondo_conditions_given(const struct rondo_conditions *c, uint32_t rank)
{
    return rule_of(c)->send_ranks != RONDO_RANKS_ROOT || rank == c->root;
}

int rondo_conditions_always_shared(const struct rondo_conditions *c)
{
    return rule_of(c)->placement == RONDO_PLACEMENT_SHARED;
}

int rondo_conditions_may_share(const struct rondo_conditions *c)
{
    return rule_of(c)->placement != RONDO_PLACEMENT_APART && !rondo_kind_lies_across(c->kind);
}

/* Where the smaller buffer begins in the larger. 0: the rank has but one buffer, or they share nothing. */
static int overlap(const struct rondo_conditions *c, uint32_t rank, enum rondo_buffer *smaller, uint32_t *offset,
                   uint32_t *length)
{
    const rondo_collective_t *rule = rule_of(c);
    uint32_t input = rondo_conditions_chunks(c, rank, RONDO_INPUT), output = rondo_conditions_chunks(c, rank, RONDO_OUTPUT);
    int at_root = rule->placement == RONDO_PLACEMENT_SEND_AT_ROOT || rule->placement == RONDO_PLACEMENT_RECV_AT_ROOT;
    if (input == 0 || output == 0 || !rondo_conditions_may_share(c) || (at_root && rank != c->root))
        return 0;
    *smaller = output < input ? RONDO_OUTPUT : RONDO_INPUT;
    *length = output < input ? output : input;
    *offset = rule->own_block ? rank * c->block_chunks : 0;
    return 1;
}

void rondo_conditions_resolve(const struct rondo_conditions *c, int shared, uint32_t rank, enum rondo_buffer *buffer,
                              uint32_t *index)
{
    enum rondo_buffer smaller;
    uint32_t offset, length;
    if (!shared || *buffer == RONDO_SCRATCH || !overlap(c, rank, &smaller, &offset, &length) || *buffer != smaller)
        return;
    *buffer = smaller == RONDO_INPUT ? RONDO_OUTPUT : RONDO_INPUT;
    *index += offset;
}

int rondo_conditions_twin(const struct rondo_conditions *c, uint32_t rank, uint32_t input, uint32_t *output)
{
    enum rondo_buffer smaller;
    uint32_t offset, length;
    if (!overlap(c, rank, &smaller, &offset, &length))
        return 0;
    if (smaller == RONDO_INPUT) {
        *output = input + offset;
        return 1;
    }
    *output = input - offset;
    return input >= offset && input - offset < length;
}

uint32_t rondo_conditions_class(const struct rondo_conditions *c, uint32_t rank, enum rondo_buffer buffer, uint32_t index)
{
    const rondo_collective_t *rule = rule_of(c);
    const int sends = rule->send_extent == RONDO_EXTENT_COUNTS, receives = rule->recv_extent == RONDO_EXTENT_COUNTS;
    if (!sends && !receives)
        return index % c->block_chunks;
    if (sends != receives) /* as in the buffer that has a block for each rank */
        return (buffer == RONDO_INPUT) == receives ? rank * c->block_chunks + index : index;
    uint32_t other = index / c->block_chunks, part = index % c->block_chunks;
    return ((buffer == RONDO_INPUT ? rank : other) * c->ranks + (buffer == RONDO_INPUT ? other : rank)) * c->block_chunks +
           part;
}

int rondo_conditions_ordered(const struct rondo_conditions *c)
{
    return !rondo_kind_has_counts(c->kind);
}

int rondo_conditions_reduces(const struct rondo_conditions *c)
{
    return rule_of(c)->reduces && c->kind != RONDO_KIND_CUSTOM;
}

int rondo_conditions_whole(const struct rondo_conditions *c)
{
    rondo_postcondition_t postcondition = rule_of(c)->postcondition;
    return postcondition == RONDO_POSTCONDITION_REDUCED || postcondition == RONDO_POSTCONDITION_REDUCED_BLOCK;
}

static int is_prefix(const struct rondo_conditions *c)
{
    rondo_postcondition_t postcondition = rule_of(c)->postcondition;
    return postcondition == RONDO_POSTCONDITION_PREFIX || postcondition == RONDO_POSTCONDITION_PREFIX_BEFORE;
}

/* ---- values ---- */

/* Finalizer of splitmix64 (Steele, Lea, Flood 2014). */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

uint64_t rondo_value_salt(void)
{
    uint64_t salt;
    if (getrandom(&salt, sizeof(salt), GRND_NONBLOCK) != (ssize_t) sizeof(salt)) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        salt = mix((uint64_t) now.tv_nsec << 32 ^ (uint64_t) now.tv_sec ^ (uint64_t) (uintptr_t) &now);
    }
    return salt;
}

struct rondo_value rondo_value_input(uint64_t salt, uint32_t rank, uint32_t index)
{
    uint64_t place = (uint64_t) rank << 32 | index;
    uint64_t low = mix(salt + mix(place * 0x9e3779b97f4a7c15u + 1));
    struct rondo_value value = {{low, mix(low ^ mix(salt ^ ~place))}, 1, 0, rank, rank, 1};
    return value;
}

struct rondo_value rondo_value_combine(struct rondo_value a, struct rondo_value b)
{
    struct rondo_value value = {{a.sum[0] + b.sum[0], a.sum[1] + b.sum[1]}, a.count + b.count, 0, a.first, b.last, 0};
    value.ordered = a.ordered && b.ordered && b.first == a.last + 1;
    return value;
}

/* Fills in values[rank][chunk], of so many chunks before they are cut, for each part of the chunks that are listed. */
static void fill_in(const struct rondo_wants *wants, const struct rondo_holding *list, size_t count, uint32_t chunks,
                    struct rondo_value *values)
{
    const struct rondo_conditions *c = wants->conditions;
    for (size_t i = 0; i < count; i++)
        for (uint32_t part = 0; part < c->block_chunks; part++) {
            struct rondo_value value = {.count = 0};
            for (uint32_t t = 0; t < list[i].terms; t++) {
                const struct rondo_term *term = &c->terms[list[i].term_first + t];
                value = rondo_value_combine(value,
                                            rondo_value_input(wants->salt, term->rank, term->index * c->block_chunks + part));
            }
            values[((size_t) list[i].rank * chunks + list[i].chunk) * c->block_chunks + part] = value;
        }
}

static rondo_result_t prepare_custom(struct rondo_wants *wants)
{
    const struct rondo_conditions *c = wants->conditions;
    const size_t inputs = (size_t) c->inputs * c->block_chunks, outputs = (size_t) c->outputs * c->block_chunks;
    wants->custom = calloc(c->ranks * outputs + 1, sizeof(*wants->custom));
    if (c->assumption_count > 0)
        wants->assumed = calloc(c->ranks * inputs + 1, sizeof(*wants->assumed));
    if (wants->custom == NULL || (c->assumption_count > 0 && wants->assumed == NULL)) {
        rondo_wants_release(wants);
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for the conditions of %u ranks", c->ranks);
    }
    for (size_t i = 0; wants->assumed != NULL && i < c->ranks * inputs; i++)
        wants->assumed[i] = rondo_value_input(wants->salt, (uint32_t) (i / inputs), (uint32_t) (i % inputs));
    fill_in(wants, c->assumptions, c->assumption_count, c->inputs, wants->assumed);
    fill_in(wants, c->requirements, c->requirement_count, c->outputs, wants->custom);
    return RONDO_SUCCESS;
}

rondo_result_t rondo_wants_prepare(struct rondo_wants *wants, const struct rondo_conditions *c, uint64_t salt)
{
    memset(wants, 0, sizeof(*wants));
    wants->conditions = c;
    wants->salt = salt;
    if (c->kind == RONDO_KIND_CUSTOM)
        return prepare_custom(wants);
    if (!rondo_conditions_reduces(c))
        return RONDO_SUCCESS;
    /* Only scans ask for prefixes; the others need but the whole. */
    int scans = is_prefix(c);
    wants->indexes = rondo_conditions_chunks(c, 0, RONDO_INPUT);
    wants->prefixes = calloc((size_t) wants->indexes * (scans ? c->ranks : 1) + 1, sizeof(*wants->prefixes));
    if (wants->prefixes == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for the postcondition of %u ranks", c->ranks);
    for (uint32_t i = 0; i < wants->indexes; i++) {
        struct rondo_value value = {.count = 0};
        for (uint32_t rank = 0; rank < c->ranks; rank++) {
            value = rondo_value_combine(value, rondo_value_input(salt, rank, i));
            wants->prefixes[(size_t) (scans ? rank : 0) * wants->indexes + i] = value;
        }
    }
    return RONDO_SUCCESS;
}

void rondo_wants_release(struct rondo_wants *wants)
{
    free(wants->prefixes);
    free(wants->custom);
    free(wants->assumed);
    wants->prefixes = wants->custom = wants->assumed = NULL;
}

struct rondo_value rondo_wants_input(const struct rondo_wants *wants, uint32_t rank, uint32_t input)
{
    const struct rondo_conditions *c = wants->conditions;
    return wants->assumed != NULL ? wants->assumed[(size_t) rank * c->inputs * c->block_chunks + input]
                                  : rondo_value_input(wants->salt, rank, input);
}

int rondo_wants_at(const struct rondo_wants *wants, uint32_t rank, uint32_t output, struct rondo_value *value)
{
    const struct rondo_conditions *c = wants->conditions;
    const rondo_collective_t *rule = rule_of(c);
    uint32_t block = output / c->block_chunks, part = output % c->block_chunks;
    if (!rondo_ranks_include(rule->recv_ranks, (int) rank, (int) c->ranks, (int) c->root))
        return 0;
    switch (rule->postcondition) {
    case RONDO_POSTCONDITION_REQUIRED:
        *value = wants->custom[(size_t) rank * c->outputs * c->block_chunks + output];
        return value->count > 0;
    case RONDO_POSTCONDITION_REDUCED:
        *value = wants->prefixes[output];
        return 1;
    case RONDO_POSTCONDITION_REDUCED_BLOCK:
        *value = wants->prefixes[rank * c->block_chunks + output];
        return 1;
    case RONDO_POSTCONDITION_PREFIX:
        *value = wants->prefixes[(size_t) rank * wants->indexes + output];
        return 1;
    case RONDO_POSTCONDITION_PREFIX_BEFORE:
        *value = wants->prefixes[(size_t) (rank - 1) * wants->indexes + output];
        return 1;
    case RONDO_POSTCONDITION_ROOT:
        *value = rondo_value_input(wants->salt, c->root, output);
        return 1;
    case RONDO_POSTCONDITION_CONCATENATED:
        *value = rondo_value_input(wants->salt, block, part);
        return 1;
    case RONDO_POSTCONDITION_TRANSPOSED:
        *value = rondo_value_input(wants->salt, block, rank * c->block_chunks + part);
        return 1;
    case RONDO_POSTCONDITION_ROOT_BLOCK:
        *value = rondo_value_input(wants->salt, c->root, rank * c->block_chunks + output);
        return 1;
    case RONDO_POSTCONDITION_PREVIOUS:
        *value = rondo_value_input(wants->salt, rank - 1, output);
        return 1;
    case RONDO_POSTCONDITION_PEER: /* of one program only the receive's half is known */
    case RONDO_POSTCONDITION_NOTHING:
        break;
    }
    return 0;
}

int rondo_wants_complete(const struct rondo_wants *wants, uint32_t index, struct rondo_value value)
{
    const struct rondo_conditions *c = wants->conditions;
    if (wants->prefixes == NULL || value.count != c->ranks || index >= wants->indexes)
        return 0;
    int scans = is_prefix(c);
    return rondo_value_same(value, wants->prefixes[(size_t) (scans ? c->ranks - 1 : 0) * wants->indexes + index]);
}
