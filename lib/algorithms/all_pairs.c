/*
 * All pairs in one shot (GC3 section 7.1.2): every rank sends all that the others need straight to them. One step of latency;
 * the bytes grow with the number of ranks. What arrives is reduced in the order of ranks, so all ranks get the same bits. In
 * each step all ranks send to different ranks.
 */
#include "lib/algorithms/pair_steps.h"

static void keep(rondo_program_t p, int n)
{
    for (int r = 0; r < n; r++)
        rondo_chunk_copy(rondo_chunk(p, r, IN, 0, 1), r, OUT, rondo_chunk_index(r));
}

/* Every rank sends to every other a message that none stores. */
static void barrier(rondo_program_t p, int n)
{
    for (int from = 0; from < n; from++)
        for (int to = 0; to < n; to++)
            if (to != from)
                rondo_chunk_copy(rondo_chunk(p, from, IN, 0, 1), to, SCRATCH, rondo_chunk_index(from));
}

rondo_result_t rondo_compose_all_pairs(const struct rondo_shape *shape, rondo_program_t *result)
{
    int n = shape->size;
    rondo_result_t status =
        rondo_program_builder_create_shaped(result, "allpairs", shape, 1, shape->kind == RONDO_KIND_ALLREDUCE);
    if (status != RONDO_SUCCESS)
        return status;
    rondo_program_t p = *result;
    rondo_program_parallelize(p, shape->channels);
    switch (shape->kind) {
    case RONDO_KIND_ALLREDUCE:
        rondo_send_to_owners(p, n, 1);
        for (int r = 0; r < n; r++)
            rondo_reduce_at_owner(p, n, r, rondo_chunk(p, r, IN, 0, 1));
        break;
    case RONDO_KIND_REDUCE_SCATTER_BLOCK:
    case RONDO_KIND_REDUCE_SCATTER:
        rondo_reduce_scatter_pairs(p, n);
        break;
    case RONDO_KIND_BARRIER:
        barrier(p, n);
        break;
    default: /* all-gather */
        keep(p, n);
        rondo_give_to_all(p, n);
        break;
    }
    rondo_program_serialize(p);
    return RONDO_SUCCESS;
}
