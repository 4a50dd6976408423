/*
 * For ranks on several hosts: within the hosts, between them, and within them again (GC3 figures 1 and 3), so that only what
 * has to crosses the slow links; the two-step all-to-all (figure 8), which sends what one host has for another's rank at once;
 * and all-to-next over all of a host's links (section 7.4). Rank (n, g) is the g-th of host n.
 */
#include "lib/algorithms/builders.h"

struct hosts {
    struct rondo_program_builder *program;
    int hosts, group;
};

static int rank_of(const struct hosts *h, int host, int g)
{
    return host * h->group + g;
}

/* A ring of ranks that are `stride` apart. */
struct ring {
    const struct hosts *hosts;
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

static void all_reduce(const struct hosts *h)
{
    rondo_program_channel(h->program, 0);
    for (int n = 0; n < h->hosts; n++)
        for (int g = 0; g < h->group; g++) {
            struct ring local = {h, rank_of(h, n, 0), 1, h->group};
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
            struct ring local = {h, rank_of(h, n, 0), 1, h->group};
            ring_give(&local, g, IN, (size_t) (g * h->hosts), (size_t) h->hosts);
        }
}

static void reduce_scatter(const struct hosts *h)
{
    for (int n = 0; n < h->hosts; n++)
        for (int g = 0; g < h->group; g++)
            for (int to = 0; to < h->hosts; to++) {
                struct ring local = {h, rank_of(h, n, 0), 1, h->group};
                rondo_program_channel(h->program, 0);
                ring_reduce(&local, g, (size_t) rank_of(h, to, g), 1);
            }
    rondo_program_channel(h->program, 1);
    for (int g = 0; g < h->group; g++)
        for (int n = 0; n < h->hosts; n++) {
            struct ring cross = {h, g, h->group, h->hosts};
            rondo_chunk_copy(ring_reduce(&cross, n, (size_t) rank_of(h, n, g), 1), rank_of(h, n, g), OUT, 0);
        }
}

static void all_gather(const struct hosts *h)
{
    rondo_program_channel(h->program, 0);
    for (int r = 0; r < h->hosts * h->group; r++)
        rondo_chunk_copy(rondo_chunk(h->program, r, IN, 0, 1), r, OUT, rondo_traced_place(r));
    for (int g = 0; g < h->group; g++)
        for (int n = 0; n < h->hosts; n++) {
            struct ring cross = {h, g, h->group, h->hosts};
            ring_give(&cross, n, OUT, (size_t) rank_of(h, n, g), 1);
        }
    rondo_program_channel(h->program, 1);
    for (int n = 0; n < h->hosts; n++)
        for (int g = 0; g < h->group; g++)
            for (int from = 0; from < h->hosts; from++) {
                struct ring local = {h, rank_of(h, n, 0), 1, h->group};
                ring_give(&local, g, OUT, (size_t) rank_of(h, from, g), 1);
            }
}

static rondo_result_t begin(const struct rondo_shape *shape, const char *name, int chunks, int in_place, struct hosts *h,
                            struct rondo_program_builder **result)
{
    h->group = rondo_traced_group(shape);
    h->hosts = shape->size / h->group;
    rondo_result_t status = rondo_program_builder_create_shaped(result, name, shape, chunks, in_place);
    h->program = *result;
    if (status == RONDO_SUCCESS)
        rondo_program_parallelize(h->program, shape->channels);
    return status;
}

rondo_result_t rondo_compose_hierarchical(const struct rondo_shape *shape, struct rondo_program_builder **result)
{
    struct hosts h;
    int all = shape->kind == RONDO_KIND_ALLREDUCE;
    rondo_result_t status = begin(shape, "hierarchical", all ? shape->size : 1, all, &h, result);
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

rondo_result_t rondo_compose_two_step(const struct rondo_shape *shape, struct rondo_program_builder **result)
{
    struct hosts h;
    rondo_result_t status = begin(shape, "twostep", 1, 0, &h, result);
    if (status != RONDO_SUCCESS)
        return status;
    for (int n = 0; n < h.hosts; n++)
        for (int g = 0; g < h.group; g++)
            for (int m = 0; m < h.hosts; m++) {
                for (int i = 0; i < h.group; i++) {
                    rondo_chunk_t c = rondo_chunk(h.program, rank_of(&h, m, i), IN, (size_t) rank_of(&h, n, g), 1);
                    if (n == m)
                        rondo_chunk_copy(c, rank_of(&h, n, g), OUT, (size_t) rank_of(&h, m, i));
                    else
                        rondo_chunk_copy(c, rank_of(&h, m, g), SCRATCH, (size_t) rank_of(&h, n, i));
                }
                if (n != m)
                    rondo_chunk_copy(
                        rondo_chunk(h.program, rank_of(&h, m, g), SCRATCH, (size_t) (n * h.group), (size_t) h.group),
                        rank_of(&h, n, g), OUT, (size_t) (m * h.group));
            }
    rondo_program_serialize(h.program);
    return RONDO_SUCCESS;
}

rondo_result_t rondo_compose_spread(const struct rondo_shape *shape, struct rondo_program_builder **result)
{
    struct hosts h;
    int parts = rondo_traced_group(shape);
    rondo_result_t status = begin(shape, "spread", parts, 0, &h, result);
    if (status != RONDO_SUCCESS)
        return status;
    for (int r = 0; r + 1 < shape->size; r++) {
        int host = r / h.group;
        if (host == (r + 1) / h.group) {
            rondo_chunk_copy(rondo_chunk(h.program, r, IN, 0, (size_t) parts), r + 1, OUT, 0);
            continue;
        }
        for (int g = 0; g < h.group; g++) {
            size_t part = (size_t) g;
            rondo_chunk_t c = rondo_chunk(h.program, r, IN, part, 1);
            if (rank_of(&h, host, g) != r)
                c = rondo_chunk_copy(c, rank_of(&h, host, g), SCRATCH, part);
            if (g != 0)
                c = rondo_chunk_copy(c, rank_of(&h, host + 1, g), SCRATCH, part + (size_t) h.group);
            rondo_chunk_copy(c, r + 1, OUT, part);
        }
    }
    rondo_program_serialize(h.program);
    return RONDO_SUCCESS;
}
