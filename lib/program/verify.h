/*
 * The checker's state: a plan set played through once, chunk by chunk. check.c looks at the form and drives,
 * lib/program/verify_run.c plays and keeps what every chunk holds, lib/program/verify_order.c finds out whether two accesses
 * are ordered.
 *
 * One tile is enough: tiles touch different elements, every connector is empty between two of them, and blocks have no choices.
 * So playing tile after tile is one execution, and all executions of processes without choices that communicate by queues are
 * alike (Kahn 1974): if one gets to the end, all do.
 */
#ifndef RONDO_LIB_PROGRAM_VERIFY_H
#define RONDO_LIB_PROGRAM_VERIFY_H

#include "lib/program/graph.h"

/* What travels in a slot. */
struct rondo_parcel {
    uint32_t sender; /* instruction */
    uint32_t count;
    int is_signal;
    uint64_t *heard; /* barrier: ranks that the sender's block knows to have begun */
    struct {
        struct rondo_value value;
        uint32_t class;
    } chunks[];
};

struct rondo_verify_connector {
    uint32_t source, destination;            /* ranks */
    uint32_t sending_block, receiving_block; /* global numbers; RONDO_NONE */
    uint16_t channel;
    uint8_t used;                /* by some instruction */
    uint8_t protocol, signalled; /* the receiver knows where the sender's buffers are */
    uint32_t filled, taken;
    struct rondo_parcel **slots;
};

struct rondo_simulated_block {
    uint32_t rank, number;          /* in its rank */
    uint32_t first, count;          /* instructions, numbered through */
    uint32_t at;                    /* the next step */
    uint32_t connectors;            /* first of its ends' wires */
    uint32_t explored, explored_by; /* of the search under way */
    int queued;
    int sent; /* the exchange at hand has sent, and waits for what it receives */
    uint64_t *heard;
};

/* An instruction that was played. */
struct rondo_simulated {
    uint32_t block; /* global number */
    uint32_t order; /* from 1; 0: not yet */
    uint32_t least_class;
    uint32_t senders; /* in the list: of what it received, receive_count of them */
};

struct rondo_state {
    struct rondo_value value;
    uint32_t writer, readers; /* instruction; list */
};

struct rondo_verification {
    const struct rondo_plan_set *set;
    const struct rondo_conditions *conditions;
    const struct rondo_verify_limits *limits;
    const char *name;
    int shared;
    struct rondo_wants wants;
    uint32_t *rank_first; /* [rank]: its first block */
    struct rondo_simulated_block *blocks;
    struct rondo_simulated *instructions;
    size_t block_count, instruction_count;
    struct rondo_verify_connector *connectors;
    size_t connector_count, connector_room;
    uint32_t *end_connectors; /* all ends' */
    struct rondo_map connector_map;
    struct rondo_state *states;
    size_t *state_first; /* [rank][buffer] */
    uint32_t *senders;
    size_t sender_count, sender_room;
    struct rondo_link_list *links;
    size_t link_count, link_room;
    uint32_t *queue; /* blocks to look at: a ring */
    size_t queue_head, queue_count;
    uint32_t played, searches;
    uint64_t search_steps;
    uint32_t *stack;
    size_t stack_room;
    rondo_result_t result; /* its message is the last error */
};

const struct rondo_instruction *rondo_verification_instruction(const struct rondo_verification *c, uint32_t instruction);
const struct rondo_program *rondo_verification_program(const struct rondo_verification *c, uint32_t rank);
/* Keeps the first; the message begins with program, rank, block and step. */
void rondo_verification_fail(struct rondo_verification *c, uint32_t instruction, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

rondo_result_t rondo_verify_form(struct rondo_verification *c);
rondo_result_t rondo_verify_play(struct rondo_verification *c);
/* Instruction `after` comes after `before` in every execution, in tiles where chunks of the class have elements. */
int rondo_verify_ordered(struct rondo_verification *c, uint32_t before, uint32_t after, uint32_t class);

/* The class of a chunk of a physical buffer. */
uint32_t rondo_verification_class(const struct rondo_verification *c, uint32_t rank, uint32_t buffer, uint32_t index);
/* The chunk that decides how much the instruction moves. */
void rondo_verification_measured(const struct rondo_instruction *i, uint32_t *buffer, uint32_t *index);

#endif
