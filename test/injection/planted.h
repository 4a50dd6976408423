/* Functions that do not stand a failed allocation, each in a way of its own: all-reduces of one number. */
#ifndef RONDO_TEST_INJECTION_PLANTED_H
#define RONDO_TEST_INJECTION_PLANTED_H

#include "rondo.h"

/* Writes to what malloc has returned, unchecked. */
rondo_result_t planted_unchecked(rondo_comm_t world, int32_t in, int32_t *out);
/* Does not free the first allocation if the second fails. */
rondo_result_t planted_leak(rondo_comm_t world, int32_t in, int32_t *out);
/* Returns an error, and the other ranks wait for this one. */
rondo_result_t planted_silence(rondo_comm_t world, int32_t in, int32_t *out);
/* Goes on with another value. */
rondo_result_t planted_wrong(rondo_comm_t world, int32_t in, int32_t *out);
/* Calls cudaMalloc three times, and adds 10, 100 or 1000 for each that finds no memory. */
rondo_result_t planted_cuda(rondo_comm_t world, int32_t in, int32_t *out);

#endif
