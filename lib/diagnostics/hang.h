/*
 * Hang reports: when an operation is stuck beyond the timeout, rank 0 asks every rank what it is doing, says in one report
 * which operations are stuck, who has not started them and who waits for whom, and every rank logs that report and ends the
 * stuck communicators with RONDO_ERR_TIMEOUT. The same can be asked for at any time, by rondo_report or a signal: then all
 * operations that are active are told, to the rank that asked, and nothing is ended.
 */
#ifndef RONDO_LIB_DIAGNOSTICS_HANG_H
#define RONDO_LIB_DIAGNOSTICS_HANG_H

#include "lib/context/runtime.h"

rondo_result_t rondo_hang_create(struct rondo_hang **hang);
void rondo_hang_destroy(struct rondo_runtime *runtime);
/* From the poller, every tick. */
void rondo_hang_check(struct rondo_runtime *runtime);
void rondo_hang_message(struct rondo_runtime *runtime, int source, uint32_t type, const void *data, size_t bytes);

#endif
