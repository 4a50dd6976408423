/*
 * Verification: simulates a plan set once, chunk by chunk. lib/program/verify.c checks the form and drives the rest,
 * lib/program/verify_run.c simulates the instructions and keeps what every chunk holds, lib/program/verify_order.c finds out
 * whether two accesses are ordered. Their instructions, waits and connections are not trusted: none is used as an index before
 * rondo_verify_form has accepted it.
 *
 * One tile is enough: tiles touch different elements, every connector is empty between two of them, and blocks have no choices.
 * So simulating tile after tile is one execution; and all executions of processes without choices that communicate by queues
 * are alike (Kahn 1974): if one gets to the end, all do.
 */
#ifndef RONDO_LIB_PROGRAM_VERIFY_H
#define RONDO_LIB_PROGRAM_VERIFY_H

#include "device/engine/use.h"
#include "lib/program/graph.h"

/* What a slot holds. */
struct rondo_verify_message {
    struct rondo_verify_message *next; /* in the connector, sent after it */
    uint32_t sender;                   /* instruction */
    uint32_t count;                    /* of chunks */
    int is_signal;
    uint64_t *heard; /* barrier: bits of the ranks that the sender's block knows to have begun */
    struct {
        struct rondo_value value;
        uint32_t class;
    } chunks[];
};

/* A multicast connector counts as one to each other rank, side by side in the order of ranks: each receiver takes the slots by
 * itself, and the sender waits for all. */
struct rondo_verify_connector {
    uint32_t source, destination;            /* ranks */
    uint32_t sending_block, receiving_block; /* numbered through all ranks; RONDO_NONE */
    uint16_t channel;
    uint8_t used;                                 /* by some instruction */
    uint8_t protocol, signalled;                  /* signalled: the receiver knows where the sender's buffers are */
    uint32_t filled, taken;                       /* messages */
    struct rondo_verify_message *oldest, *newest; /* of those that are filled and not taken, if there are */
};

struct rondo_verify_block {
    uint32_t rank, number;          /* in its rank */
    uint32_t first, count;          /* instructions, numbered through all blocks */
    uint32_t at;                    /* the next step */
    uint32_t connectors;            /* first of its ends, in end_connectors */
    uint32_t explored, explored_by; /* of the search under way: steps below it, and the search's number */
    uint32_t waiters, next_waiter;  /* list of the blocks that wait for steps of this one; the next in the list of another */
    int listed;                     /* in such a list */
    uint32_t passed; /* of the ends of the step at hand, how many have what it waits for: those received from first, then those
                        sent to */
    uint32_t wants;  /* the connector that the step at hand waits for; RONDO_NONE: another thing, or nothing */
    int queued;      /* in the list of those that may be able to go on */
    int sent;        /* the exchange at hand has sent, and waits for what it receives */
    uint64_t *heard;
};

/* An instruction as it was simulated. */
struct rondo_verify_step {
    uint32_t block; /* numbered through all ranks */
    uint32_t order; /* from 1; 0: not yet */
    uint32_t least_class;
    uint32_t senders; /* first in the list of senders: of what it received, receive_count of them; RONDO_NONE */
};

/* What a chunk holds. */
struct rondo_verify_chunk {
    struct rondo_value value;
    uint32_t writer, readers; /* the last instruction that wrote it; a list of those that have read it since */
};

struct rondo_verification {
    const struct rondo_plan_set *set;
    const struct rondo_conditions *conditions;
    const struct rondo_verify_limits *limits;
    const char *name;
    int shared;
    struct rondo_wants wants;
    uint32_t *rank_first; /* [rank]: its first block */
    struct rondo_verify_block *blocks;
    struct rondo_verify_step *instructions;
    size_t block_count, instruction_count;
    struct rondo_verify_connector *connectors;
    size_t connector_count, connector_room;
    uint32_t *end_connectors; /* of all blocks' ends: the first of rondo_verify_fan */
    struct rondo_map connector_map;
    struct rondo_verify_chunk *held;
    size_t *chunk_first; /* [rank][buffer]: in held */
    uint32_t *senders;
    size_t sender_count, sender_room;
    struct rondo_value *values; /* of the step at hand: what its slots get, and how long each is; largest_count of them */
    uint32_t *classes;
    struct rondo_link_list *links;
    size_t link_count, link_room;
    uint32_t *ready; /* blocks that may be able to go on. The last goes first, while the caches have what it waited for. */
    size_t ready_count;
    uint32_t simulated, searches; /* instructions; of verify_order.c */
    uint64_t search_steps;
    uint32_t *stack;
    size_t stack_room;
    int ordered;           /* every result that has been checked keeps the order of ranks */
    rondo_result_t result; /* of the first error; its message is the last one of this thread */
};

/* The instruction by its number; the program of a rank. */
const struct rondo_instruction *rondo_verification_instruction(const struct rondo_verification *c, uint32_t instruction);
const struct rondo_program *rondo_verification_program(const struct rondo_verification *c, uint32_t rank);
/* The number of connectors that an end stands for which sends by this one: it and those beside it. */
static inline uint32_t rondo_verify_fan(const struct rondo_verification *c, const struct rondo_verify_connector *connector)
{
    return rondo_is_multicast(connector->protocol) ? c->conditions->ranks - 1 : 1;
}
/* Notes the first error in c->result; the message begins with program, rank, block and step. */
void rondo_verification_fail(struct rondo_verification *c, uint32_t instruction, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Checks all that can be checked without running: indexes, counts, ends, waits, and that both sides of each connection exist.
 * Makes the connectors. Returns c->result. */
rondo_result_t rondo_verify_form(struct rondo_verification *c);
/* Simulates plans of good form to their end, and checks every access and the result. Returns c->result. */
rondo_result_t rondo_verify_simulate(struct rondo_verification *c);
/* Returns 1 if instruction `after` comes after `before` in every execution, in tiles where chunks of the class have elements.
 * `before` has been simulated. 0 also if memory, or the steps that all searches may take, are out: the caller then reports a
 * race. */
int rondo_verify_ordered(struct rondo_verification *c, uint32_t before, uint32_t after, uint32_t class);

/* Returns the class (rondo_conditions_class) of a chunk of a plan's buffer. */
uint32_t rondo_verification_class(const struct rondo_verification *c, uint32_t rank, uint32_t buffer, uint32_t index);
/* Stores the first chunk of those whose length decides how much the instruction moves. */
void rondo_verification_measured(const struct rondo_instruction *i, uint32_t *buffer, uint32_t *index);

#endif
