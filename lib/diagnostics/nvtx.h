/*
 * Ranges of NVTX: a profiler that has attached to the process sees each operation of a rank from its start to its completion,
 * by its name and with its bytes. Built where nvtx3's header is (make/detect.mk); without a profiler there is nothing. Source:
 * the NVIDIA Tools Extension's C interface, version 3.
 */
#ifndef RONDO_LIB_DIAGNOSTICS_NVTX_H
#define RONDO_LIB_DIAGNOSTICS_NVTX_H

#include "lib/call/collective.h"

#include <stdint.h>

struct rondo_nvtx;

/* Returns the rank's domain, "rondo rank N"; NULL: there is no profiler, or no memory for it, or no header when this was built.
 */
struct rondo_nvtx *rondo_nvtx_create(int rank);
/* NULL: nothing. */
void rondo_nvtx_destroy(struct rondo_nvtx *nvtx);

/* Begins the range of an operation that moves so many bytes of payload, and returns it. Any thread may end it. */
uint64_t rondo_nvtx_begin(const struct rondo_nvtx *nvtx, enum rondo_kind kind, uint64_t bytes);
void rondo_nvtx_end(const struct rondo_nvtx *nvtx, uint64_t range);
/* Marks that an operation has been enqueued to a stream. Its kernel shows when it runs. */
void rondo_nvtx_mark(const struct rondo_nvtx *nvtx, enum rondo_kind kind, uint64_t bytes);

#endif
