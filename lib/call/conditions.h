/*
 * What a collective is, to the compiler and the verifier: how many chunks each buffer has, which input and output chunks are
 * the same memory in place, which chunks are equally long, and what every output chunk must hold in the end. Derived from the
 * collective's row of the table; relies on it alone.
 */
#ifndef RONDO_LIB_CALL_CONDITIONS_H
#define RONDO_LIB_CALL_CONDITIONS_H

#include "lib/call/collective.h"

/* What a chunk of a custom program holds: the combination of terms, which lie in the conditions' list of terms; without terms,
 * nothing. Of an input chunk at the start (precondition), of an output chunk at the end (postcondition). */
struct rondo_holding {
    uint32_t rank, chunk, term_first, terms;
};
/* What chunk `index` of a rank's input holds where no precondition says otherwise. */
struct rondo_term {
    uint32_t rank, index;
};

struct rondo_conditions {
    enum rondo_kind kind;
    uint32_t ranks, root;
    uint32_t block_chunks;                            /* chunks of a block of the collective's arguments */
    uint32_t inputs, outputs;                         /* custom: chunks */
    struct rondo_holding *assumptions, *requirements; /* custom: pre- and postcondition */
    size_t assumption_count, assumption_room, requirement_count, requirement_room;
    struct rondo_term *terms;
    size_t term_count, term_room;
};

/* Chunks of a rank's input or output; 0 where it has none. */
uint32_t rondo_conditions_chunks(const struct rondo_conditions *conditions, uint32_t rank, enum rondo_buffer buffer);
/* The input chunks hold data at the start (not so where only the root gives any). */
int rondo_conditions_given(const struct rondo_conditions *conditions, uint32_t rank);

/* In place, the smaller of the two buffers lies in the larger: its chunk `index` is the other's. Changes what is given into the
 * larger one's name for it. shared 0: leaves all as it is. */
void rondo_conditions_resolve(const struct rondo_conditions *conditions, int shared, uint32_t rank, enum rondo_buffer *buffer,
                              uint32_t *index);
/* The other way: the output chunk that is the same memory as an input chunk in place. 0: there is none. */
int rondo_conditions_twin(const struct rondo_conditions *conditions, uint32_t rank, uint32_t input, uint32_t *output);
/* Only the one form exists: broadcast's one buffer. */
int rondo_conditions_always_shared(const struct rondo_conditions *conditions);
/* The collective has an in-place form at all. */
int rondo_conditions_may_share(const struct rondo_conditions *conditions);

/* The class of a chunk: chunks of one class are equally long. Where rondo_conditions_ordered, chunks of a lower class are no
 * shorter. */
uint32_t rondo_conditions_class(const struct rondo_conditions *conditions, uint32_t rank, enum rondo_buffer buffer,
                                uint32_t index);
int rondo_conditions_ordered(const struct rondo_conditions *conditions);
/* The operator is applied: results need its last step. */
int rondo_conditions_reduces(const struct rondo_conditions *conditions);
/* Every result combines the inputs of all ranks. */
int rondo_conditions_whole(const struct rondo_conditions *conditions);

/* ---- values ----
 * What a chunk holds, as a multiset of input chunks: their number, and the sum of a random 128-bit token for each. Two
 * multisets of equal sums are the same but with a probability of about 2^-100, whatever the program: tokens depend on a salt
 * that is drawn anew for every check. A value also knows whether it has kept the order of ranks: whether all combinations in it
 * were of a run of ranks and, to its right, the run that follows. */
struct rondo_value {
    uint64_t sum[2];
    uint32_t count; /* 0: uninitialized */
    uint32_t finished;
    uint32_t first, last; /* ranks of the run */
    uint32_t ordered;
};
/* A new salt, from the system's random numbers; the value of an untouched input chunk; the value of two chunks combined, a as
 * the left operand. */
uint64_t rondo_value_salt(void);
struct rondo_value rondo_value_input(uint64_t salt, uint32_t rank, uint32_t index);
struct rondo_value rondo_value_combine(struct rondo_value a, struct rondo_value b);
static inline int rondo_value_same(struct rondo_value a, struct rondo_value b)
{
    return a.sum[0] == b.sum[0] && a.sum[1] == b.sum[1] && a.count == b.count;
}

/* What every output chunk must hold; computed once. */
struct rondo_wants {
    const struct rondo_conditions *conditions;
    uint64_t salt;
    struct rondo_value *prefixes; /* [rank][index]: inputs of index of ranks 0 .. rank, for reductions */
    struct rondo_value *custom;   /* [rank][output] */
    struct rondo_value *assumed;  /* [rank][input]; NULL: no precondition */
    uint32_t indexes;
};
/* Computes the values; RONDO_ERR_MEMORY leaves nothing to release. The conditions must outlive wants. */
rondo_result_t rondo_wants_prepare(struct rondo_wants *wants, const struct rondo_conditions *conditions, uint64_t salt);
void rondo_wants_release(struct rondo_wants *wants);
/* What an input chunk of the rank holds at the start: as the precondition says, else data of its own. count 0: nothing. */
struct rondo_value rondo_wants_input(const struct rondo_wants *wants, uint32_t rank, uint32_t input);
/* Stores what an output chunk of the rank must hold, and returns 1; 0: anything will do. */
int rondo_wants_at(const struct rondo_wants *wants, uint32_t rank, uint32_t output, struct rondo_value *value);
/* The value is all ranks' contributions, to which nothing can be added. */
int rondo_wants_complete(const struct rondo_wants *wants, uint32_t index, struct rondo_value value);

#endif
