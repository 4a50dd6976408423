/* What all ranks derive alike from what each has told of itself, so that they need not tell each other again. Relies on
 * runtime->peers. Called by the thread that runs rondo_init. */
#ifndef RONDO_LIB_RUNTIME_COMMON_SETTINGS_H
#define RONDO_LIB_RUNTIME_COMMON_SETTINGS_H

#include "lib/context/runtime.h"

/* The number of ranks on the rank's host, itself included. After rondo_common_settings, as all below. */
uint32_t rondo_neighbours(const struct rondo_runtime *runtime, int rank);
/* Whether there are ranks on other hosts than this rank's, which takes a proxy. */
int rondo_spans_hosts(const struct rondo_runtime *runtime);
/* The number of blocks of the rank's daemon, at least 1. near: its neighbours. */
uint32_t rondo_blocks_of(const struct rondo_runtime *runtime, int rank, uint32_t near);
/* Sets the values that all ranks must agree on, by the same computation over the same data: hosts, channels, slots, blocks of
 * kernels on streams, copy engines, and whether the tuning table is used. RONDO_ERR_MEMORY. */
rondo_result_t rondo_common_settings(struct rondo_runtime *runtime);

#endif
