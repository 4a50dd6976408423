/*
 * The values of elements that are not one number: complex products, and pairs of a value and its index. Chosen and combined as
 * tools/common/values.h says, whose file calls this one.
 */
#ifndef RONDO_TOOLS_COMMON_COMPOSITES_H
#define RONDO_TOOLS_COMMON_COMPOSITES_H

#include "rondo.h"

#include <stdbool.h>
#include <stdint.h>

struct composite {
    double real, imaginary; /* complex numbers */
    int32_t value, index;   /* pairs */
};

/* Whether elements of the type, combined by the operator (RONDO_OP_NONE: moved), are composites. */
bool composites_are(rondo_datatype_t type, rondo_op_t op);
/* An input from 64 random bits. contributes: else it changes no product. */
struct composite composites_value(rondo_datatype_t type, uint64_t random, bool contributes);
struct composite composites_combine(rondo_datatype_t type, rondo_op_t op, struct composite a, struct composite b);
/* Writes an element, which has zeros where C pads it. */
void composites_store(rondo_datatype_t type, struct composite value, void *element);
/* Whether two elements have different values; zeros of two signs are one value. */
bool composites_differ(rondo_datatype_t type, const void *a, const void *b);

#endif
