/*
 * The file of the flight recorder (RONDO_FLIGHT_RECORDER): the last operations of this rank, as JSON with the fields of
 * PyTorch's flight recorder. It is written when a communicator fails and when a report of the job is asked for, and replaced as
 * a whole, so that a reader never finds half of one. What goes wrong with it is a warning. Relies on lib/base/file.h.
 */
#ifndef RONDO_LIB_DIAGNOSTICS_FLIGHT_DUMP_H
#define RONDO_LIB_DIAGNOSTICS_FLIGHT_DUMP_H

#include "lib/context/failure.h"
#include "lib/context/runtime.h"

/* Reads RONDO_FLIGHT_RECORDER. *dump is NULL if it is unset. RONDO_ERR_ARGUMENT, RONDO_ERR_MEMORY. */
rondo_result_t rondo_flight_dump_create(struct rondo_flight_dump **dump);
void rondo_flight_dump_destroy(struct rondo_flight_dump *dump);
/* The functions below do nothing without a file. */
/* Has the poller write the file at its next tick. Any thread; takes no lock. */
void rondo_flight_dump_ask(struct rondo_runtime *runtime);
/* Writes the file if it was asked for. Called by the poller, without locks. */
void rondo_flight_dump_check(struct rondo_runtime *runtime);
/* From here on no failure writes the file: ranks leave, and nothing is under way. Called by rondo_finalize. */
void rondo_flight_dump_close(struct rondo_runtime *runtime);
/* Writes the file before any thread learns of the failure, because the program may end then, and while operations are under
 * way. */
extern const struct rondo_failure_listener rondo_flight_dump_failure;

#endif
