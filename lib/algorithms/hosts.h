/* Ranks on hosts with equally many ranks each, for the algorithms that work within hosts and between them: rank (host, g) is
 * the g-th of its host. Relies on lib/algorithms/builders.h for the number of ranks of a host. */
#ifndef RONDO_LIB_ALGORITHMS_HOSTS_H
#define RONDO_LIB_ALGORITHMS_HOSTS_H

#include "lib/algorithms/builders.h"

struct rondo_hosts {
    rondo_program_t program;
    int hosts, group; /* group: ranks of each host */
};

static inline int rondo_hosts_rank(const struct rondo_hosts *h, int host, int g)
{
    return host * h->group + g;
}

/* Begins a program with so many chunks a block, as rondo_program_builder_create_shaped, parallelized over the shape's channels.
 * The caller adds the operations and rondo_program_serialize. */
static inline rondo_result_t rondo_hosts_begin(struct rondo_hosts *h, const struct rondo_shape *shape, const char *name,
                                               int chunks, int in_place, rondo_program_t *result)
{
    h->group = rondo_group_size(shape);
    h->hosts = shape->size / h->group;
    rondo_result_t status = rondo_program_builder_create_shaped(result, name, shape, chunks, in_place);
    h->program = *result;
    if (status == RONDO_SUCCESS)
        rondo_program_parallelize(h->program, shape->channels);
    return status;
}

#endif
