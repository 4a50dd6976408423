/*
 * Whether a call did what it must: its inputs are drawn and its output and the bytes around its buffers poisoned before it, and
 * all of them compared after it. Results are those of tools/common/values.h, wherever call_origin says that they come from.
 * Memory of a GPU is written and read a window at a time.
 */
#ifndef RONDO_TOOLS_COMMON_CHECK_H
#define RONDO_TOOLS_COMMON_CHECK_H

#include "tools/common/collectives.h"
#include "tools/common/ranks.h"
#include "tools/common/values.h"

/* The memory of a rank's calls, with a guard of CHECK_GUARD bytes before and after each buffer. */
enum { CHECK_GUARD = 4096 };
struct check_buffers {
    struct buffers *device;
    char *input, *output; /* where the buffers begin, behind their guards */
    size_t input_bytes, output_bytes;
};

/* Writes fresh inputs for the call and poisons everything that it must write or must leave alone. repeat: a long input may
 * repeat its first part, for it will not be checked. */
rondo_result_t check_fill(const struct call *call, const struct values *values, const struct check_buffers *buffers,
                          bool repeat);
/* Whether the call can be repeated with the same result, because no rank's input is overwritten. The same on all ranks. */
bool check_repeats(const struct call *call);
/* Poisons the output again, unless it holds the input. */
rondo_result_t check_poison(const struct call *call, const struct check_buffers *buffers);
/* Adds the elements that are not as they must be: of the output, of the input (which must not change), and of the guards. */
rondo_result_t check_result(const struct call *call, const struct values *values, const struct check_buffers *buffers,
                            uint64_t *wrong);
/* Whether a barrier lets any rank out before the last has come in; *wrong is 1 if so. Collective. */
rondo_result_t check_barrier(struct rank *rank, struct call *call, enum form mode, uint64_t seed, uint64_t *wrong);

#endif
