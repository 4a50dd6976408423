/* All-gather around a ring (GC3 figure 3b): every rank ends with all ranks' chunks. */
#include "programs.h"

void ring_all_gather(const struct place *p)
{
    struct ring all = {p, 0, 1, p->ranks};
    for (int r = 0; r < p->ranks; r++)
        copy(chunk(p, r, IN, 0, 1), r, OUT, r);
    all_gather(&all, OUT, 0, 1);
}
