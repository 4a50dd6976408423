/* Hierarchical all-reduce (GC3 figure 3a), in one program and so in one kernel: reduce-scatter within hosts, reduce-scatter and
 * all-gather between them, all-gather within them. Only one chunk of each rank passes between hosts. */
#include "programs.h"

void hierarchical(const struct place *p)
{
    for (int n = 0; n < p->hosts; n++) {
        struct ring local = {p, n * p->group, 1, p->group};
        reduce_scatter(&local, 0, p->hosts);
    }
    for (int g = 0; g < p->group; g++) {
        struct ring cross = {p, g, p->group, p->hosts};
        reduce_scatter(&cross, g * p->hosts, 1);
        all_gather(&cross, IN, g * p->hosts, 1);
    }
    for (int n = 0; n < p->hosts; n++) {
        struct ring local = {p, n * p->group, 1, p->group};
        all_gather(&local, IN, 0, p->hosts);
    }
}
