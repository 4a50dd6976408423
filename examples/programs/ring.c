/* Ring all-reduce (GC3 section 7.1.1): a reduce-scatter and an all-gather around all ranks, on as many chunks as ranks. */
#include "programs.h"

void ring_all_reduce(const struct place *p)
{
    struct ring all = {p, 0, 1, p->ranks};
    reduce_scatter(&all, 0, 1);
    all_gather(&all, IN, 0, 1);
}
