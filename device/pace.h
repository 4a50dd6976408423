/*
 * How the host device stores what another core is going to read: through the caches, or past them. Where the two cores share a
 * cache, stores that stay in it are the fastest way. Where they do not, every line that one has written and the other wants
 * travels by itself, and takes its time, while what was stored past the caches comes out of the memory as fast as it can be
 * asked for: 2 GB/s and 10 to 20 between two core complexes of an AMD EPYC, 9 to 12 and 10 to 14 within one; an Intel Xeon does
 * not care up to 32 KiB, and moves 15 and 9 beyond. Nobody says which it is, and in a virtual machine it changes from minute to
 * minute; so it is measured, now and then, by how long a copy through the caches takes who makes it: there 1.5 to 2.5 GB/s
 * and 6.5 to 12, on the Xeon 7 to 19, and 5 where two ranks share a core.
 */
#ifndef RONDO_DEVICE_PACE_H
#define RONDO_DEVICE_PACE_H

#include "structures.h"

#include <stddef.h>
#include <stdint.h>

#define RONDO_PACE_BYTES 4096 /* less is neither measured nor stored past the caches */
#define RONDO_PACE_SPEED 3    /* bytes a nanosecond: the cores share a cache if a copy is no slower */
#define RONDO_PACE_SLOW  3    /* so many slow copies, one after the other, are no accident */

/* One copy in so many is measured: while they go through the caches, and past them. */
#define RONDO_PACE_SAMPLE 8
#define RONDO_PACE_PROBE  128

enum rondo_pace_way { RONDO_PACE_THROUGH, RONDO_PACE_MEASURED, RONDO_PACE_PAST };

/* For the next copy. MEASURED: through the caches, and rondo_pace_learn is told how long it took. pace: NULL: nobody keeps one.
 */
static inline enum rondo_pace_way rondo_pace_way(struct rondo_pace *pace, size_t bytes)
{
    if (pace == NULL || bytes < RONDO_PACE_BYTES)
        return RONDO_PACE_THROUGH;
    const int past = pace->slow >= RONDO_PACE_SLOW;
    if (++pace->copies % (past ? RONDO_PACE_PROBE : RONDO_PACE_SAMPLE) == 0)
        return RONDO_PACE_MEASURED;
    return past ? RONDO_PACE_PAST : RONDO_PACE_THROUGH;
}

static inline void rondo_pace_learn(struct rondo_pace *pace, size_t bytes, uint64_t ns)
{
    if (bytes >= ns * RONDO_PACE_SPEED)
        pace->slow = 0;
    else if (pace->slow < RONDO_PACE_SLOW)
        pace->slow++;
}

#endif
