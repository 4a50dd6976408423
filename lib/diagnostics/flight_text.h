/*
 * What the flight recorder and the observer know, as text: the records with the fields of PyTorch's flight recorder, and what
 * active operations wait for. JSON.
 */
#ifndef RONDO_LIB_DIAGNOSTICS_FLIGHT_TEXT_H
#define RONDO_LIB_DIAGNOSTICS_FLIGHT_TEXT_H

#include "lib/base/text.h"
#include "lib/diagnostics/flight_recorder.h"
#include "lib/diagnostics/hang.h"

#define RONDO_FLIGHT_NAME_BYTES 64

/* Room to compose the text of all records in. Belongs to one thread at a time. */
struct rondo_flight_view {
    struct rondo_flight_entry entries[RONDO_FLIGHT_RECORDS];
    int ranks[RONDO_FLIGHT_RECORDS]; /* this rank in the communicator; -1: that one has been freed */
    struct rondo_hang_entry active[RONDO_HANG_ENTRIES];
};

/* Writes the name of the lane's process group and returns it. */
const char *rondo_flight_group(uint64_t comm, uint64_t lane, char name[RONDO_FLIGHT_NAME_BYTES]);
/* Nanoseconds from rondo_clock_ns to the time of day. */
int64_t rondo_flight_real_minus_clock(void);
/* Appends the member "active" and a comma: what active operations wait for, as the hang report knows it. active has room for
 * most entries. Takes the locks of rondo_hang_observe. */
void rondo_flight_write_active(struct rondo_runtime *runtime, struct rondo_hang_entry *active, size_t most,
                               struct rondo_text *text);
/* Composes the text of all records; the caller frees it. NULL if there is no memory. Takes the locks of rondo_hang_observe. */
char *rondo_flight_compose(struct rondo_runtime *runtime, struct rondo_flight_view *view);

#endif
