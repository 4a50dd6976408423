/*
 * The data of a check: random inputs that every rank can compute for every other, chosen so that the result of the operation
 * is exact in its type whatever the order of the reduction, and the result itself.
 *
 * Integers are of full range where wrapping makes that exact. Floats are small whole numbers: with so many ranks that even
 * those would not fit the type, only some ranks (others at each element) contribute a number other than zero.
 */
#ifndef RONDO_TOOLS_COMMON_VALUES_H
#define RONDO_TOOLS_COMMON_VALUES_H

#include "rondo.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct values {
    rondo_datatype_t type;
    rondo_op_t op;
    bool reduces; /* else the data is only copied, and op means nothing */
    int ranks;
    uint64_t seed;
    /* Set by values_prepare. */
    size_t bytes;          /* of an element */
    rondo_datatype_t part; /* of which an element has parts: complex numbers are two reals */
    size_t parts, part_bytes;
    bool is_real, is_signed, is_composite; /* composite: tools/common/composites.h */
    int bits;                              /* of an integer type */
    int contributors;                      /* ranks whose value at an element is not zero */
    uint64_t magnitude;                    /* values are 1..magnitude times unit, either sign where there is one */
    uint64_t unit;
    bool only_one_true; /* true is always 1: for operations in which some rank's result is a lone input */
};

/* Fills in the rest from type, op, reduces and ranks. prefix: the ranks that are combined differ from rank to rank. */
void values_prepare(struct values *values, bool prefix);

/* Writes elements first..first+count-1 of a rank's input to memory. */
void values_fill(const struct values *values, int rank, size_t first, size_t count, void *memory);

/* How many of actual's count elements differ in any bit from the combination of elements index.. of the inputs of ranks first
 * to last, both included. */
uint64_t values_differ(const struct values *values, int first, int last, size_t index, size_t count, const void *actual);

#endif
