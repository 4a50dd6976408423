/* All-to-all straight between all pairs of ranks, the baseline of GC3 section 7.3. */
#include "programs.h"

void one_step_all_to_all(const struct place *p)
{
    for (int from = 0; from < p->ranks; from++)
        for (int to = 0; to < p->ranks; to++)
            copy(chunk(p, from, IN, to, 1), to, OUT, from);
}
