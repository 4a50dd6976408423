/* Slicing: an operation's chunks are cut into slices, each of which travels in a slot, and into tiles, the slices that one
 * instruction moves before the next instruction does. Relies on the layouts that lib/submission/bind.h has made. */
#ifndef RONDO_LIB_SUBMISSION_SLICING_H
#define RONDO_LIB_SUBMISSION_SLICING_H

#include "lib/select/select.h"
#include "lib/submission/request.h"

struct rondo_plan;

/* value / by, rounded up. by is not 0. */
static inline uint64_t rondo_divide_up(uint64_t value, uint64_t by)
{
    return (value + by - 1) / by;
}
/* The least multiple of multiple that is not less than value. */
static inline uint64_t rondo_round_up(uint64_t value, uint64_t multiple)
{
    return rondo_divide_up(value, multiple) * multiple;
}

/* Sets slice, slices, tile and tiles of request->operation, in elements and counts. The operation's layouts, type and rate are
 * set. largest: the most elements of a chunk of each buffer. All ranks compute the same values. Returns RONDO_ERR_UNSUPPORTED
 * if a slot is too small for the chunks that the program sends together. */
rondo_result_t rondo_slice_operation(struct rondo_request *request, const struct rondo_plan *plan,
                                     const struct rondo_choice *choice, const uint64_t largest[RONDO_BUFFERS]);

#endif
