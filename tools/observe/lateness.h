/*
 * Which rank the others wait for: how much later than the first one each rank starts the same collectives, from the last
 * operations that states tell of. Clocks of different hosts are taken as equal.
 */
#ifndef RONDO_TOOLS_OBSERVE_LATENESS_H
#define RONDO_TOOLS_OBSERVE_LATENESS_H

#include <jansson.h>

struct lateness {
    int size;
    double *late, *calls; /* [rank]: seconds and collectives, of which older ones count less */
    json_t *seen;         /* by process group: the number of the last collective that has been counted */
};

/* Returns 0, or -1 without memory. */
int lateness_begin(struct lateness *lateness, int size);
void lateness_end(struct lateness *lateness);
/* Counts the collectives of a state (tools/observe/job.h) that all of their ranks have started and that were not counted
 * before. weight: 0 to 1, by which what was counted before counts now. */
void lateness_add(struct lateness *lateness, const json_t *state, double weight);
/* Mean seconds by which the rank is late; 0 if nothing was counted. */
double lateness_of(const struct lateness *lateness, int rank);
/* The rank that is latest; -1 if nothing was counted or no rank is later than the others. */
int lateness_worst(const struct lateness *lateness);

#endif
