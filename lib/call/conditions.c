/* See lib/call/conditions.h. */
#include "lib/call/conditions.h"

#include "lib/base/error.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

/* Blocks of the arguments in a buffer, on a rank that has it. */
static uint32_t blocks(const struct rondo_conditions *c, enum rondo_buffer buffer)
{
    switch (c->kind) {
    case RONDO_KIND_REDUCE_SCATTER_BLOCK:
    case RONDO_KIND_SCATTER:
        return buffer == RONDO_INPUT ? c->ranks : 1;
    case RONDO_KIND_ALLGATHER:
    case RONDO_KIND_ALLGATHERV:
    case RONDO_KIND_GATHER:
        return buffer == RONDO_OUTPUT ? c->ranks : 1;
    case RONDO_KIND_ALLTOALL:
    case RONDO_KIND_ALLTOALLV:
        return c->ranks;
    default:
        return 1;
    }
}

uint32_t rondo_conditions_chunks(const struct rondo_conditions *c, uint32_t rank, enum rondo_buffer buffer)
{
    if (c->kind == RONDO_KIND_CUSTOM)
        return (buffer == RONDO_INPUT ? c->inputs : c->outputs) * c->block_chunks;
    int rooted_output = c->kind == RONDO_KIND_REDUCE || c->kind == RONDO_KIND_GATHER;
    if ((buffer == RONDO_OUTPUT && rooted_output && rank != c->root) ||
        (buffer == RONDO_INPUT && c->kind == RONDO_KIND_SCATTER && rank != c->root))
        return 0;
    return blocks(c, buffer) * c->block_chunks;
}

int rondo_conditions_given(const struct rondo_conditions *c, uint32_t rank)
{
    return (c->kind != RONDO_KIND_BCAST && c->kind != RONDO_KIND_SCATTER) || rank == c->root;
}

int rondo_conditions_always_shared(const struct rondo_conditions *c)
{
    return c->kind == RONDO_KIND_BCAST;
}

int rondo_conditions_may_share(const struct rondo_conditions *c)
{
    return c->kind != RONDO_KIND_ALLTOALLV && c->kind != RONDO_KIND_ALLTONEXT && c->kind != RONDO_KIND_BARRIER &&
           c->kind != RONDO_KIND_CUSTOM;
}

/* Where the smaller buffer begins in the larger. 0: the rank has but one buffer, or they share nothing. */
static int overlap(const struct rondo_conditions *c, uint32_t rank, enum rondo_buffer *smaller, uint32_t *offset,
                   uint32_t *length)
{
    uint32_t input = rondo_conditions_chunks(c, rank, RONDO_INPUT), output = rondo_conditions_chunks(c, rank, RONDO_OUTPUT);
    if (input == 0 || output == 0 || !rondo_conditions_may_share(c))
        return 0;
    int rooted = c->kind == RONDO_KIND_GATHER || c->kind == RONDO_KIND_SCATTER || c->kind == RONDO_KIND_REDUCE;
    if (rooted && rank != c->root)
        return 0;
    *smaller = output < input ? RONDO_OUTPUT : RONDO_INPUT;
    *length = output < input ? output : input;
    *offset = 0;
    if (c->kind == RONDO_KIND_ALLGATHER || c->kind == RONDO_KIND_ALLGATHERV || c->kind == RONDO_KIND_GATHER ||
        c->kind == RONDO_KIND_SCATTER)
        *offset = rank * c->block_chunks;
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
    if (c->kind == RONDO_KIND_ALLGATHERV)
        return buffer == RONDO_INPUT ? rank * c->block_chunks + index : index;
    if (c->kind == RONDO_KIND_ALLTOALLV) {
        uint32_t other = index / c->block_chunks, part = index % c->block_chunks;
        return ((buffer == RONDO_INPUT ? rank : other) * c->ranks + (buffer == RONDO_INPUT ? other : rank)) * c->block_chunks +
               part;
    }
    return index % c->block_chunks;
}

int rondo_conditions_ordered(const struct rondo_conditions *c)
{
    return c->kind != RONDO_KIND_ALLGATHERV && c->kind != RONDO_KIND_ALLTOALLV;
}

int rondo_conditions_reduces(const struct rondo_conditions *c)
{
    return c->kind == RONDO_KIND_ALLREDUCE || c->kind == RONDO_KIND_REDUCE || c->kind == RONDO_KIND_REDUCE_SCATTER_BLOCK ||
           c->kind == RONDO_KIND_SCAN || c->kind == RONDO_KIND_EXSCAN;
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
    struct rondo_value value = {{low, mix(low ^ mix(salt ^ ~place))}, 1, 0};
    return value;
}

struct rondo_value rondo_value_combine(struct rondo_value a, struct rondo_value b)
{
    struct rondo_value value = {{a.sum[0] + b.sum[0], a.sum[1] + b.sum[1]}, a.count + b.count, 0};
    return value;
}

static rondo_result_t prepare_custom(struct rondo_wants *wants)
{
    const struct rondo_conditions *c = wants->conditions;
    uint32_t outputs = c->outputs * c->block_chunks;
    wants->custom = calloc((size_t) c->ranks * outputs + 1, sizeof(*wants->custom));
    if (wants->custom == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for the postcondition of %u ranks", c->ranks);
    for (size_t r = 0; r < c->requirement_count; r++) {
        const struct rondo_requirement *wish = &c->requirements[r];
        for (uint32_t part = 0; part < c->block_chunks; part++) {
            struct rondo_value value = {{0, 0}, 0, 0};
            for (uint32_t t = 0; t < wish->terms; t++) {
                const struct rondo_term *term = &c->terms[wish->term_first + t];
                value = rondo_value_combine(value,
                                            rondo_value_input(wants->salt, term->rank, term->index * c->block_chunks + part));
            }
            wants->custom[(size_t) wish->rank * outputs + wish->output * c->block_chunks + part] = value;
        }
    }
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
    int scans = c->kind == RONDO_KIND_SCAN || c->kind == RONDO_KIND_EXSCAN;
    wants->indexes = rondo_conditions_chunks(c, 0, RONDO_INPUT);
    wants->prefixes = calloc((size_t) wants->indexes * (scans ? c->ranks : 1) + 1, sizeof(*wants->prefixes));
    if (wants->prefixes == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for the postcondition of %u ranks", c->ranks);
    for (uint32_t i = 0; i < wants->indexes; i++) {
        struct rondo_value value = {{0, 0}, 0, 0};
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
    wants->prefixes = wants->custom = NULL;
}

int rondo_wants_at(const struct rondo_wants *wants, uint32_t rank, uint32_t output, struct rondo_value *value)
{
    const struct rondo_conditions *c = wants->conditions;
    uint32_t block = output / c->block_chunks, part = output % c->block_chunks;
    switch (c->kind) {
    case RONDO_KIND_CUSTOM:
        *value = wants->custom[(size_t) rank * c->outputs * c->block_chunks + output];
        return value->count > 0;
    case RONDO_KIND_REDUCE:
        if (rank != c->root)
            return 0;
        *value = wants->prefixes[output];
        return 1;
    case RONDO_KIND_ALLREDUCE:
        *value = wants->prefixes[output];
        return 1;
    case RONDO_KIND_REDUCE_SCATTER_BLOCK:
        *value = wants->prefixes[rank * c->block_chunks + output];
        return 1;
    case RONDO_KIND_SCAN:
        *value = wants->prefixes[(size_t) rank * wants->indexes + output];
        return 1;
    case RONDO_KIND_EXSCAN:
        if (rank > 0)
            *value = wants->prefixes[(size_t) (rank - 1) * wants->indexes + output];
        return rank > 0;
    case RONDO_KIND_BCAST:
        *value = rondo_value_input(wants->salt, c->root, output);
        return 1;
    case RONDO_KIND_GATHER:
        if (rank != c->root)
            return 0;
        *value = rondo_value_input(wants->salt, block, part);
        return 1;
    case RONDO_KIND_ALLGATHER:
    case RONDO_KIND_ALLGATHERV:
        *value = rondo_value_input(wants->salt, block, part);
        return 1;
    case RONDO_KIND_ALLTOALL:
    case RONDO_KIND_ALLTOALLV:
        *value = rondo_value_input(wants->salt, block, rank * c->block_chunks + part);
        return 1;
    case RONDO_KIND_SCATTER:
        *value = rondo_value_input(wants->salt, c->root, rank * c->block_chunks + output);
        return 1;
    case RONDO_KIND_ALLTONEXT:
        if (rank > 0)
            *value = rondo_value_input(wants->salt, rank - 1, output);
        return rank > 0;
    default:
        return 0;
    }
}

int rondo_wants_complete(const struct rondo_wants *wants, uint32_t index, struct rondo_value value)
{
    const struct rondo_conditions *c = wants->conditions;
    if (wants->prefixes == NULL || value.count != c->ranks || index >= wants->indexes)
        return 0;
    int scans = c->kind == RONDO_KIND_SCAN || c->kind == RONDO_KIND_EXSCAN;
    return rondo_value_same(value, wants->prefixes[(size_t) (scans ? c->ranks - 1 : 0) * wants->indexes + index]);
}
