/* Reduce-scatter around a ring (GC3 figure 3b): rank r ends with chunk r. */
#include "programs.h"

void ring_reduce_scatter(const struct place *p)
{
    struct ring all = {p, 0, 1, p->ranks};
    reduce_scatter(&all, 0, 1);
    for (int r = 0; r < p->ranks; r++)
        copy(chunk(p, r, IN, r, 1), r, OUT, 0);
}
