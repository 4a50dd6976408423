/*
 * Hang reports. When an operation is stuck longer than the timeout, the collector, which is the lowest rank that has not gone,
 * asks every rank for a statement of its operations and composes one report: which operations are stuck, which ranks have not
 * started them, and which rank waits for which. Every rank logs the report and ends the stuck communicators with
 * RONDO_ERR_TIMEOUT. rondo_report or a signal asks for a report at any time; that one lists all active operations, goes to the
 * rank that asked, and ends nothing. If the collector goes before it has answered, the next one is asked. Relies on the control
 * plane.
 */
#ifndef RONDO_LIB_DIAGNOSTICS_HANG_H
#define RONDO_LIB_DIAGNOSTICS_HANG_H

#include "lib/context/failure.h"
#include "lib/context/runtime.h"
#include "lib/diagnostics/hang_report.h"

/* Functions of the room that knows this rank's operations (lib/submission/observe.c). */
struct rondo_hang_observer {
    /* Fills at most `most` entries: what every active operation waits for, and how many operations idle lanes have started.
     * Returns their number. */
    size_t (*observe)(struct rondo_runtime *runtime, struct rondo_hang_entry *entries, size_t most);
    /* Whether an operation has been stuck for the whole timeout at the time now (rondo_clock_ns), on a communicator that has
     * not failed, whose id is then in *comm. */
    int (*overdue)(struct rondo_runtime *runtime, uint64_t now, uint64_t *comm);
    /* Reads the counts of rondo_get_stats. RONDO_ERR_DEVICE. */
    rondo_result_t (*count)(struct rondo_runtime *runtime, rondo_stats_t *stats);
};

/* Creates the state of hang reports. Called once, during init. RONDO_ERR_MEMORY if there is no memory. */
rondo_result_t rondo_hang_create(struct rondo_hang **hang, const struct rondo_hang_observer *observer);
/* Frees it. The poller and the control thread must have ended. */
void rondo_hang_destroy(struct rondo_runtime *runtime);
/* Checks for overdue operations, demands and expired waits. The poller calls it at every tick, without locks. Does not wait. */
void rondo_hang_check(struct rondo_runtime *runtime);
/* What every active operation of this rank waits for, by the observer. Takes the runtime lock and the queue lock. */
size_t rondo_hang_observe(struct rondo_runtime *runtime, struct rondo_hang_entry *entries, size_t most);
/* The counts of rondo_get_stats, by the observer. Takes the runtime lock and the queue lock, one after the other. */
rondo_result_t rondo_hang_count(struct rondo_runtime *runtime, rondo_stats_t *stats);
/* Asks for a report of all active operations of the job. *number: of the demand, never 0. Does not wait. RONDO_ERR_PEER: no
 * rank can be reached. */
rondo_result_t rondo_hang_demand(struct rondo_runtime *runtime, uint64_t *number);
/* The report that answers the demand, or a later one; the caller frees it. NULL: it has not come, or there is no memory. */
char *rondo_hang_answer(struct rondo_runtime *runtime, uint64_t number);
/* Ends the wait of rondo_report for a rank that has gone. */
extern const struct rondo_failure_listener rondo_hang_failure;
/* Handles a message of one of the types RONDO_MESSAGE_HANG_* from rank source. Called on the control thread. */
void rondo_hang_message(struct rondo_runtime *runtime, int source, uint32_t type, const void *data, size_t bytes);

#endif
