/*
 * Hang reports: when an operation is stuck beyond the timeout, rank 0 asks every rank what it is doing, says in one report
 * which operations are stuck, who has not started them and who waits for whom, and every rank logs that report and ends the
 * stuck communicators with RONDO_ERR_TIMEOUT. The same can be asked for at any time, by rondo_report or a signal: then all
 * operations that are active are told, to the rank that asked, and nothing is ended.
 */
#ifndef RONDO_LIB_DIAGNOSTICS_HANG_H
#define RONDO_LIB_DIAGNOSTICS_HANG_H

#include "lib/context/runtime.h"
#include "lib/diagnostics/hang_report.h"

/* What hang reports ask of the room that knows this rank's operations (lib/submission/observe.c). */
struct rondo_hang_observer {
    /* States what every active operation waits for, and how far idle lanes are: at most `most` entries. Returns how many. */
    size_t (*observe)(struct rondo_runtime *runtime, struct rondo_hang_entry *entries, size_t most);
    /* Whether an operation has been stuck for the whole timeout at the time now (rondo_clock_ns), on a communicator that has
     * not failed, whose id is then in *comm. */
    int (*overdue)(struct rondo_runtime *runtime, uint64_t now, uint64_t *comm);
};

rondo_result_t rondo_hang_create(struct rondo_hang **hang, const struct rondo_hang_observer *observer);
void rondo_hang_destroy(struct rondo_runtime *runtime);
/* From the poller, every tick. */
void rondo_hang_check(struct rondo_runtime *runtime);
void rondo_hang_message(struct rondo_runtime *runtime, int source, uint32_t type, const void *data, size_t bytes);

#endif
