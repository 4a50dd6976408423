/*
 * Short steps: a small operation of one block, worked out when it is bound: which bytes go where, by which ends. Between two
 * ranks most calls send or receive one line, and what the engine does to find out costs several times as long as that. A call
 * whose steps find what they wait for needs no context, no run and no device's copy of the operation; one that does not
 * goes on in the engine, at the instruction where it stands. The host's, by the thread that has claimed block 0.
 */
#ifndef RONDO_DEVICE_ENGINE_SHORT_STEPS_H
#define RONDO_DEVICE_ENGINE_SHORT_STEPS_H

#include "device/abi/structures.h"

#define RONDO_SHORT_STEPS       32   /* most of an operation: as an all-to-all of 16 ranks has */
#define RONDO_SHORT_STEPS_BYTES 2048 /* most of a step */

enum rondo_short_action { RONDO_SHORT_COPY, RONDO_SHORT_SEND, RONDO_SHORT_RECEIVE, RONDO_SHORT_REDUCE };

struct rondo_short_step {
    struct rondo_end *end; /* the first of them; not of a COPY */
    uint64_t from, to;     /* bytes from the start of the buffers */
    uint32_t bytes, slot_offset;
    uint8_t action;
    uint8_t source, destination; /* enum rondo_buffer */
    uint8_t end_first, ends;     /* RECEIVE and REDUCE: the part's ends, from which slots are taken together */
    uint8_t drops;               /* RECEIVE: what comes is not stored */
    uint8_t first, last;         /* of its instruction; a SEND's chunks go into one slot */
    const struct rondo_instruction *instruction;
};

struct rondo_short_steps {
    uint32_t count;                 /* 0: the operation has none */
    struct rondo_short_step *steps; /* [count]; owned */
};

/* Works out the steps of an operation that is bound; count is 0 where it is not of the kind, and without memory. */
void rondo_short_steps_find(const struct rondo_operation *operation, struct rondo_short_steps *found);
/* Frees them. */
void rondo_short_steps_forget(struct rondo_short_steps *found);

/* Carries out the steps as far as each finds what it waits for within so many looks (1 at least). Returns how many. */
uint32_t rondo_short_steps_run(const struct rondo_operation *operation, const struct rondo_short_steps *all, uint32_t looks);
/* Counts the first so many steps, which are done, as the engine counts their primitives. */
void rondo_short_steps_count(const struct rondo_short_steps *all, uint32_t done, struct rondo_block_statistics *statistics);

#endif
