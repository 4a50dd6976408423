/*
 * What the members of an agreement send each other: contributions, proposals, decisions and who has stored a proposal, in one
 * structure with sets of ranks, a bit for each rank of the communicator. Combining is idempotent, so a value may be combined
 * twice. Used by lib/communicator/agreement.c alone.
 */
#ifndef RONDO_LIB_COMMUNICATOR_AGREEMENT_VALUE_H
#define RONDO_LIB_COMMUNICATOR_AGREEMENT_VALUE_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* What a message is. */
enum kind {
    CONTRIBUTION = 1, /* to the parent: what the covered ranks contribute */
    PROPOSAL,         /* from the parent */
    ACCEPTED,         /* to the parent: the covered ranks have stored the ballot's proposal */
    DECISION          /* from the parent; to it, if it may have missed the decision because a rank has gone */
};

enum set {
    FAILED,       /* ranks that have gone */
    ACKNOWLEDGED, /* ranks whose failure is acknowledged */
    COVERED,      /* ranks that have contributed, or stored the proposal */
    SETS
};

/* A message, and a value on its own. Plain data: transmitted as bytes. */
struct value {
    uint64_t comm, number;
    uint32_t kind;
    uint32_t size;        /* ranks of the communicator */
    int32_t flag;         /* counts in all but ACCEPTED */
    int32_t ballot;       /* rank of the root that has proposed; 0 in a contribution */
    unsigned char sets[]; /* by enum set */
};

static inline int has(const unsigned char *set, int rank)
{
    return set[rank / 8] >> rank % 8 & 1;
}

static inline void insert(unsigned char *set, int rank)
{
    set[rank / 8] |= (unsigned char) (1 << rank % 8);
}

static inline size_t set_bytes(uint32_t size)
{
    return ((size_t) size + 7) / 8;
}

static inline size_t value_bytes(uint32_t size)
{
    return sizeof(struct value) + SETS * set_bytes(size);
}

static inline unsigned char *set_of(struct value *value, enum set which)
{
    return value->sets + which * set_bytes(value->size);
}

/* The caller frees it. NULL: out of memory. */
static inline struct value *copy_of(const struct value *value)
{
    struct value *copy = malloc(value_bytes(value->size));
    if (copy != NULL)
        memcpy(copy, value, value_bytes(value->size));
    return copy;
}

/* Makes a set of value the union with that of more, which is of the same size. */
static inline void unite(struct value *value, const struct value *more, enum set which)
{
    const size_t bytes = set_bytes(value->size), first = which * bytes;
    for (size_t i = first; i < first + bytes; i++)
        value->sets[i] |= more->sets[i];
}

static inline void add_contribution(struct value *gathered, const struct value *more)
{
    const size_t bytes = set_bytes(gathered->size), first = ACKNOWLEDGED * bytes;
    gathered->flag &= more->flag;
    for (size_t i = first; i < first + bytes; i++)
        gathered->sets[i] &= more->sets[i];
    unite(gathered, more, FAILED);
    unite(gathered, more, COVERED);
}

/* Of several ballots the latest counts: makes accepted about this one unless it is about a later one. Returns whether it is
 * about this one then. */
static inline int count_for(struct value *accepted, int32_t ballot)
{
    if (accepted->ballot < ballot) {
        memset(set_of(accepted, COVERED), 0, set_bytes(accepted->size));
        accepted->ballot = ballot;
    }
    return accepted->ballot == ballot;
}

static inline void add_accepted(struct value *accepted, const struct value *more)
{
    if (count_for(accepted, more->ballot))
        unite(accepted, more, COVERED);
}

#endif
