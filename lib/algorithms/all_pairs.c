/*
 * All pairs (GC3 section 7.1.2): everybody sends what the others need straight to them. One shot: all of the input, one step of
 * latency, and the bytes grow with the number of ranks; two shots (all-reduce): a part each, which its owner completes and
 * gives back, two steps and no more bytes than a ring. What arrives is folded in the order of ranks, so that one shot gives the
 * same bits on all of them. Everybody sends to somebody else first.
 */
#include "lib/algorithms/builders.h"

/* Everybody's chunk for each owner, or the same one for all, aside at the owner. */
static void send_to_owners(struct rondo_program_builder *p, int n, int same)
{
    for (int step = 1; step < n; step++)
        for (int r = 0; r < n; r++) {
            int owner = (r + step) % n;
            rondo_chunk_copy(rondo_chunk(p, r, IN, same ? 0 : rondo_traced_place(owner), 1), owner, SCRATCH,
                             rondo_traced_place(r));
        }
}

/* What has been sent to the owner, added to its own chunk. */
static void reduce(struct rondo_program_builder *p, int n, int owner, rondo_chunk_t own)
{
    for (int r = 0; r < n; r++)
        if (r != owner)
            own = rondo_chunk_reduce(own, rondo_chunk(p, owner, SCRATCH, rondo_traced_place(r), 1));
}

/* The owner's chunk, which all have a place for. */
static void give_to_all(struct rondo_program_builder *p, int n)
{
    for (int step = 1; step < n; step++)
        for (int r = 0; r < n; r++)
            rondo_chunk_copy(rondo_chunk(p, r, OUT, rondo_traced_place(r), 1), (r + step) % n, OUT, rondo_traced_place(r));
}

static void keep(struct rondo_program_builder *p, int n)
{
    for (int r = 0; r < n; r++)
        rondo_chunk_copy(rondo_chunk(p, r, IN, 0, 1), r, OUT, rondo_traced_place(r));
}

static void reduce_scatter(struct rondo_program_builder *p, int n)
{
    send_to_owners(p, n, 0);
    for (int r = 0; r < n; r++)
        reduce(p, n, r, rondo_chunk_copy(rondo_chunk(p, r, IN, rondo_traced_place(r), 1), r, OUT, 0));
}

/* Something from everybody, kept by nobody. */
static void barrier(struct rondo_program_builder *p, int n)
{
    for (int from = 0; from < n; from++)
        for (int to = 0; to < n; to++)
            if (to != from)
                rondo_chunk_copy(rondo_chunk(p, from, IN, 0, 1), to, SCRATCH, rondo_traced_place(from));
}

rondo_result_t rondo_compose_all_pairs(const struct rondo_shape *shape, struct rondo_program_builder **result)
{
    int n = shape->size;
    rondo_result_t status =
        rondo_program_builder_create_shaped(result, "allpairs", shape, 1, shape->kind == RONDO_KIND_ALLREDUCE);
    if (status != RONDO_SUCCESS)
        return status;
    struct rondo_program_builder *p = *result;
    rondo_program_parallelize(p, shape->channels);
    switch (shape->kind) {
    case RONDO_KIND_ALLREDUCE:
        send_to_owners(p, n, 1);
        for (int r = 0; r < n; r++)
            reduce(p, n, r, rondo_chunk(p, r, IN, 0, 1));
        break;
    case RONDO_KIND_REDUCE_SCATTER_BLOCK:
        reduce_scatter(p, n);
        break;
    case RONDO_KIND_BARRIER:
        barrier(p, n);
        break;
    default: /* all-gather */
        keep(p, n);
        give_to_all(p, n);
        break;
    }
    rondo_program_serialize(p);
    return RONDO_SUCCESS;
}

rondo_result_t rondo_compose_two_shot(const struct rondo_shape *shape, struct rondo_program_builder **result)
{
    int n = shape->size;
    rondo_result_t status = rondo_program_builder_create_shaped(result, "twoshot", shape, n, 1);
    if (status != RONDO_SUCCESS)
        return status;
    struct rondo_program_builder *p = *result;
    rondo_program_parallelize(p, shape->channels);
    send_to_owners(p, n, 0);
    for (int owner = 0; owner < n; owner++)
        reduce(p, n, owner, rondo_chunk(p, owner, IN, rondo_traced_place(owner), 1));
    give_to_all(p, n);
    rondo_program_serialize(p);
    return RONDO_SUCCESS;
}

/* One shot, for devices that run many blocks: compiled so that what passes between two ranks has blocks of its own, one a
 * direction, and waits for nothing else. So an all-gather sends what it was given, not what it has copied, but to the first. */
rondo_result_t rondo_compose_pairs(const struct rondo_shape *shape, struct rondo_program_builder **result)
{
    int n = shape->size, gathers = shape->kind == RONDO_KIND_ALLGATHER;
    rondo_result_t status = rondo_program_builder_create_shaped(result, "pairs", shape, 1, 0);
    if (status != RONDO_SUCCESS)
        return status;
    struct rondo_program_builder *p = *result;
    rondo_program_parallelize(p, shape->channels);
    if (shape->kind == RONDO_KIND_REDUCE_SCATTER_BLOCK) {
        reduce_scatter(p, n);
    } else {
        for (int r = 0; r < n; r++)
            rondo_chunk_copy(rondo_chunk(p, r, IN, gathers ? 0 : rondo_traced_place(r), 1), r, OUT, rondo_traced_place(r));
        for (int step = 1; step < n; step++)
            for (int r = 0; r < n; r++) {
                int to = (r + step) % n;
                rondo_chunk_t c = !gathers    ? rondo_chunk(p, r, IN, rondo_traced_place(to), 1)
                                  : step == 1 ? rondo_chunk(p, r, OUT, rondo_traced_place(r), 1)
                                              : rondo_chunk(p, r, IN, 0, 1);
                rondo_chunk_copy(c, to, OUT, rondo_traced_place(r));
            }
    }
    rondo_program_serialize(p);
    return RONDO_SUCCESS;
}
