/*
 * The transitions of requests without the flight recorder. Linked into build/rondo-unrecorded in place of
 * lib/submission/state.c; `make recorder-cost` measures both.
 */
#include "lib/diagnostics/flight_recorder.h"

static inline uint64_t no_ticks(const struct rondo_flight_recorder *recorder)
{
    (void) recorder;
    return 0;
}

static inline uint64_t no_begin(struct rondo_flight_recorder *recorder, const struct rondo_flight_template *what,
                                uint64_t number, enum rondo_flight_family family, uint64_t started, uint64_t completed)
{
    (void) recorder;
    (void) what;
    (void) number;
    (void) family;
    (void) started;
    (void) completed;
    return 0;
}

#define rondo_flight_ticks no_ticks
#define rondo_flight_begin no_begin
#include "lib/submission/state.c"
