/* How an operation's chunks are cut: into slices, each of which travels in a slot, and tiles, a few slices that an instruction
 * moves before it is the next one's turn. */
#ifndef RONDO_LIB_SUBMISSION_SLICING_H
#define RONDO_LIB_SUBMISSION_SLICING_H

#include "lib/select/select.h"
#include "lib/submission/request.h"

struct rondo_plan;

static inline uint64_t rondo_divide_up(uint64_t value, uint64_t by)
{
    return (value + by - 1) / by;
}
static inline uint64_t rondo_round_up(uint64_t value, uint64_t multiple)
{
    return rondo_divide_up(value, multiple) * multiple;
}

/* Sets slice, slices, tile and tiles of request->operation, whose layouts, type and rate are there. largest: the most elements
 * of a chunk of each buffer. All ranks come to the same. RONDO_ERR_UNSUPPORTED: a slot cannot hold anything of as many chunks
 * as the program sends together. */
rondo_result_t rondo_slice_operation(struct rondo_request *request, const struct rondo_plan *plan,
                                     const struct rondo_choice *choice, const uint64_t largest[RONDO_BUFFERS]);

#endif
