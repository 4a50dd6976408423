/* All-pairs all-reduce (GC3 section 7.1.2): rank r gets chunk r of every rank, adds them up, and gives the sum to every rank.
 * Two steps, whatever the number of ranks. */
#include "programs.h"

void all_pairs(const struct place *p)
{
    for (int r = 0; r < p->ranks; r++)
        for (int from = 0; from < p->ranks; from++)
            if (from != r)
                copy(chunk(p, from, IN, r, 1), r, SCRATCH, from);
    for (int r = 0; r < p->ranks; r++) {
        rondo_chunk_t sum = chunk(p, r, IN, r, 1);
        for (int from = 0; from < p->ranks; from++)
            if (from != r)
                sum = rondo_chunk_reduce(sum, chunk(p, r, SCRATCH, from, 1));
        for (int to = 0; to < p->ranks; to++)
            if (to != r)
                copy(sum, to, IN, r);
    }
}
