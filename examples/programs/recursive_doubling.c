/* All-reduce by recursive doubling, for a power of two ranks: in each step partners at twice the distance exchange what they
 * have and add it up. */
#include "programs.h"

void recursive_doubling(const struct place *p)
{
    for (int distance = 1, step = 0; distance < p->ranks; distance *= 2, step++) {
        for (int r = 0; r < p->ranks; r++)
            copy(chunk(p, r, IN, 0, 1), r ^ distance, SCRATCH, step);
        for (int r = 0; r < p->ranks; r++)
            rondo_chunk_reduce(chunk(p, r, IN, 0, 1), chunk(p, r, SCRATCH, step, 1));
    }
}
