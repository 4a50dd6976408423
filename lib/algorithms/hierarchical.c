/*
 * For ranks on several hosts: within the hosts, between them, and within them again (GC3 figures 1 and 3), so that only what
 * has to crosses the slow links. Implements all-reduce, reduce-scatter and all-gather. Relies on hosts whose ranks lie side by
 * side.
 */
#include "lib/algorithms/hosts.h"

/* A ring of ranks that are `stride` apart. */
struct ring {
    const struct rondo_hosts *hosts;
    int first, stride, count;
};

static int ring_rank(const struct ring *r, int k)
{
    return r->first + k % r->count * r->stride;
}

static rondo_chunk_t ring_reduce(const struct ring *r, int owner, size_t index, size_t count)
{
    rondo_chunk_t c = rondo_chunk(r->hosts->program, ring_rank(r, owner + 1), IN, index, count);
    for (int step = 2; step <= r->count; step++)
        c = rondo_chunk_reduce(rondo_chunk(r->hosts->program, ring_rank(r, owner + step), IN, index, count), c);
    return c;
}

static void ring_give(const struct ring *r, int owner, rondo_buffer_t buffer, size_t index, size_t count)
{
    rondo_chunk_t c = rondo_chunk(r->hosts->program, ring_rank(r, owner), buffer, index, count);
    for (int step = 1; step < r->count; step++)
        c = rondo_chunk_copy(c, ring_rank(r, owner + step), buffer, index);
}

static void all_reduce(const struct rondo_hosts *h)
{
    rondo_program_channel(h->program, 0);
    for (int n = 0; n < h->hosts; n++)
        for (int g = 0; g < h->group; g++) {
            struct ring local = {h, rondo_hosts_rank(h, n, 0), 1, h->group};
            ring_reduce(&local, g, (size_t) (g * h->hosts), (size_t) h->hosts);
        }
    rondo_program_channel(h->program, 1);
    for (int g = 0; g < h->group; g++) {
        struct ring cross = {h, g, h->group, h->hosts};
        for (int n = 0; n < h->hosts; n++)
            ring_reduce(&cross, n, (size_t) (g * h->hosts + n), 1);
        for (int n = 0; n < h->hosts; n++)
            ring_give(&cross, n, IN, (size_t) (g * h->hosts + n), 1);
    }
    rondo_program_channel(h->program, 2);
    for (int n = 0; n < h->hosts; n++)
        for (int g = 0; g < h->group; g++) {
            struct ring local = {h, rondo_hosts_rank(h, n, 0), 1, h->group};
            ring_give(&local, g, IN, (size_t) (g * h->hosts), (size_t) h->hosts);
        }
}

static void reduce_scatter(const struct rondo_hosts *h)
{
    for (int n = 0; n < h->hosts; n++)
        for (int g = 0; g < h->group; g++)
            for (int to = 0; to < h->hosts; to++) {
                struct ring local = {h, rondo_hosts_rank(h, n, 0), 1, h->group};
                rondo_program_channel(h->program, 0);
                ring_reduce(&local, g, (size_t) rondo_hosts_rank(h, to, g), 1);
            }
    rondo_program_channel(h->program, 1);
    for (int g = 0; g < h->group; g++)
        for (int n = 0; n < h->hosts; n++) {
            struct ring cross = {h, g, h->group, h->hosts};
            rondo_chunk_copy(ring_reduce(&cross, n, (size_t) rondo_hosts_rank(h, n, g), 1), rondo_hosts_rank(h, n, g), OUT, 0);
        }
}

static void all_gather(const struct rondo_hosts *h)
{
    rondo_program_channel(h->program, 0);
    for (int r = 0; r < h->hosts * h->group; r++)
        rondo_chunk_copy(rondo_chunk(h->program, r, IN, 0, 1), r, OUT, rondo_chunk_index(r));
    for (int g = 0; g < h->group; g++)
        for (int n = 0; n < h->hosts; n++) {
            struct ring cross = {h, g, h->group, h->hosts};
            ring_give(&cross, n, OUT, (size_t) rondo_hosts_rank(h, n, g), 1);
        }
    rondo_program_channel(h->program, 1);
    for (int n = 0; n < h->hosts; n++)
        for (int g = 0; g < h->group; g++)
            for (int from = 0; from < h->hosts; from++) {
                struct ring local = {h, rondo_hosts_rank(h, n, 0), 1, h->group};
                ring_give(&local, g, OUT, (size_t) rondo_hosts_rank(h, from, g), 1);
            }
}

rondo_result_t rondo_compose_hierarchical(const struct rondo_shape *shape, rondo_program_t *result)
{
    struct rondo_hosts h;
    int all = shape->kind == RONDO_KIND_ALLREDUCE;
    rondo_result_t status = rondo_hosts_begin(&h, shape, "hierarchical", all ? shape->size : 1, all, result);
    if (status != RONDO_SUCCESS)
        return status;
    if (all)
        all_reduce(&h);
    else if (shape->kind == RONDO_KIND_REDUCE_SCATTER_BLOCK)
        reduce_scatter(&h);
    else
        all_gather(&h);
    rondo_program_serialize(h.program);
    return RONDO_SUCCESS;
}
