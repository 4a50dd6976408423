/* All-reduce by recursive halving and doubling, for a power of two ranks: half of what is left goes to a partner in every step,
 * and comes back complete. Chunks side by side travel as one message (GC3 section 5.1, aggregation). */
#include "programs.h"

void recursive_halving(const struct place *p)
{
    for (int distance = p->ranks / 2; distance >= 1; distance /= 2)
        for (int r = 0; r < p->ranks; r++) {
            int first = r / distance * distance;
            rondo_chunk_reduce(chunk(p, r, IN, first, distance), chunk(p, r ^ distance, IN, first, distance));
        }
    for (int distance = 1; distance < p->ranks; distance *= 2)
        for (int r = 0; r < p->ranks; r++) {
            int first = r / distance * distance;
            copy(chunk(p, r, IN, first, distance), r ^ distance, IN, first);
        }
}
