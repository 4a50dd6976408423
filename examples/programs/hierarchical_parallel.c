/* Hierarchical all-reduce with directives (GC3 section 5.1): what moves within hosts runs as two instances, each on half of
 * every chunk, and each phase has a channel of its own, so that tiles of different phases overlap. */
#include "programs.h"

static void within_hosts(const struct place *p, int gathers)
{
    rondo_program_parallelize(p->program, 2);
    for (int n = 0; n < p->hosts; n++) {
        struct ring local = {p, n * p->group, 1, p->group};
        if (gathers)
            all_gather(&local, IN, 0, p->hosts);
        else
            reduce_scatter(&local, 0, p->hosts);
    }
    rondo_program_serialize(p->program);
}

void hierarchical_parallel(const struct place *p)
{
    rondo_program_channel(p->program, 0);
    within_hosts(p, 0);
    rondo_program_channel(p->program, 2);
    for (int g = 0; g < p->group; g++) {
        struct ring cross = {p, g, p->group, p->hosts};
        reduce_scatter(&cross, g * p->hosts, 1);
        all_gather(&cross, IN, g * p->hosts, 1);
    }
    rondo_program_channel(p->program, 3);
    within_hosts(p, 1);
}
