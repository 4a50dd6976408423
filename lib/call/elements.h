/*
 * The elements of an operation: those of the call, or what they consist of, where that is combined or moved as elements of
 * another type. So a complex sum is a sum of floats, and devices move types that they do not know. Relies on lib/call/call.h.
 */
#ifndef RONDO_LIB_CALL_ELEMENTS_H
#define RONDO_LIB_CALL_ELEMENTS_H

#include "lib/call/call.h"

struct rondo_elements {
    rondo_datatype_t type; /* that devices know; with an operator of the user, type and op have no meaning */
    rondo_op_t op;         /* AVG is a sum, of which devices know the divisor */
    uint32_t bytes;        /* of an element of the operation */
    uint32_t factor;       /* elements of the operation that an element of the call consists of */
    int on_gpus;           /* GPUs can do it */
};

/* The elements of a call whose arguments have been checked. */
struct rondo_elements rondo_elements_of(const struct rondo_call *call);

#endif
