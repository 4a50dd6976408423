/*
 * All pairs (GC3 section 7.1.2): everybody sends to everybody at once. One shot: all of the input, one step; two shots: a part
 * each, which its owner completes and gives back, two steps and no more bytes than a ring. What arrives is folded in the order
 * of ranks, so that one shot gives the same bits on all of them.
 */
#include "programs/traced/traced.h"

/* Chunk `index` of all ranks, combined by `owner` in place. */
static rondo_chunk_t fold(struct rondo_trace *p, int n, int owner, rondo_chunk_t own)
{
    for (int r = 0; r < n; r++)
        if (r != owner)
            own = rondo_chunk_reduce(own, rondo_chunk(p, owner, SCRATCH, rondo_traced_place(r), 1));
    return own;
}

static void send_to(struct rondo_trace *p, int n, int owner, size_t index)
{
    for (int r = 0; r < n; r++)
        if (r != owner)
            rondo_chunk_copy(rondo_chunk(p, r, IN, index, 1), owner, SCRATCH, rondo_traced_place(r));
}

rondo_result_t rondo_trace_one_shot(const struct rondo_shape *shape, struct rondo_trace **result)
{
    int n = shape->size;
    rondo_result_t status = rondo_trace_create(result, "oneshot", shape, 1, shape->kind == RONDO_KIND_ALLREDUCE);
    if (status != RONDO_SUCCESS)
        return status;
    struct rondo_trace *p = *result;
    rondo_program_parallelize(p, shape->channels);
    for (int owner = 0; owner < n && shape->kind != RONDO_KIND_ALLGATHER; owner++)
        send_to(p, n, owner, shape->kind == RONDO_KIND_ALLREDUCE ? 0 : rondo_traced_place(owner));
    for (int r = 0; r < n; r++) {
        if (shape->kind == RONDO_KIND_ALLREDUCE) {
            fold(p, n, r, rondo_chunk(p, r, IN, 0, 1));
        } else if (shape->kind == RONDO_KIND_REDUCE_SCATTER) {
            fold(p, n, r, rondo_chunk_copy(rondo_chunk(p, r, IN, rondo_traced_place(r), 1), r, OUT, 0));
        } else {
            rondo_chunk_t c = rondo_chunk_copy(rondo_chunk(p, r, IN, 0, 1), r, OUT, rondo_traced_place(r));
            for (int to = 0; to < n; to++)
                if (to != r)
                    rondo_chunk_copy(c, to, OUT, rondo_traced_place(r));
        }
    }
    rondo_program_serialize(p);
    return RONDO_SUCCESS;
}

rondo_result_t rondo_trace_two_shot(const struct rondo_shape *shape, struct rondo_trace **result)
{
    int n = shape->size;
    rondo_result_t status = rondo_trace_create(result, "twoshot", shape, n, 1);
    if (status != RONDO_SUCCESS)
        return status;
    struct rondo_trace *p = *result;
    rondo_program_parallelize(p, shape->channels);
    for (int owner = 0; owner < n; owner++)
        send_to(p, n, owner, rondo_traced_place(owner));
    for (int owner = 0; owner < n; owner++) {
        rondo_chunk_t c = fold(p, n, owner, rondo_chunk(p, owner, IN, rondo_traced_place(owner), 1));
        for (int step = 1; step < n; step++)
            rondo_chunk_copy(c, (owner + step) % n, OUT, rondo_traced_place(owner));
    }
    rondo_program_serialize(p);
    return RONDO_SUCCESS;
}
