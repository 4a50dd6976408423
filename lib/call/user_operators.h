/*
 * Operators of the user: one table of the process, from which an operator's number finds its function. A number is a place of
 * the table, the generation of the place, and whether the operator is commutative. A freed operator's number stands for
 * nothing, and no pointer is followed to find that out. Operations copy what the table holds when they are bound, so freeing an
 * operator does not disturb them. Relies on libc alone.
 */
#ifndef RONDO_LIB_CALL_USER_OPERATORS_H
#define RONDO_LIB_CALL_USER_OPERATORS_H

#include "rondo.h"

/* Bits of a number, from the lowest: place, generation, whether it is not commutative; then the mark of all such numbers. */
#define RONDO_OP_PLACE_BITS      16
#define RONDO_OP_GENERATION_BITS 13
#define RONDO_OP_ORDERED         (1u << (RONDO_OP_PLACE_BITS + RONDO_OP_GENERATION_BITS))
#define RONDO_OP_USER            (RONDO_OP_ORDERED << 1)

/* Whether the number can be an operator of the user; rondo_op_find says whether there is one. */
static inline int rondo_op_is_user(rondo_op_t op)
{
    return (unsigned) op >> (RONDO_OP_PLACE_BITS + RONDO_OP_GENERATION_BITS + 1) == 1 && op != RONDO_OP_NONE;
}
/* Whether contributions must be combined in the order of ranks. */
static inline int rondo_op_is_ordered(rondo_op_t op)
{
    return rondo_op_is_user(op) && ((unsigned) op & RONDO_OP_ORDERED) != 0;
}

/* Stores the operator's function and its argument, and returns 1; 0: there is no such operator (any more). Any thread, without
 * locks. */
int rondo_op_find(rondo_op_t op, rondo_op_function_t **function, void **argument);

#endif
