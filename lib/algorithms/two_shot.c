/*
 * All-reduce between all pairs in two shots (GC3 section 7.1.2): every rank owns a part, completes it and gives it back. Two
 * steps of latency, and no more bytes than a ring.
 */
#include "lib/algorithms/pair_steps.h"

rondo_result_t rondo_compose_two_shot(const struct rondo_shape *shape, rondo_program_t *result)
{
    int n = shape->size;
    rondo_result_t status = rondo_program_builder_create_shaped(result, "twoshot", shape, n, 1);
    if (status != RONDO_SUCCESS)
        return status;
    rondo_program_t p = *result;
    rondo_program_parallelize(p, shape->channels);
    rondo_send_to_owners(p, n, 0);
    for (int owner = 0; owner < n; owner++)
        rondo_reduce_at_owner(p, n, owner, rondo_chunk(p, owner, IN, rondo_chunk_index(owner), 1));
    rondo_give_to_all(p, n);
    rondo_program_serialize(p);
    return RONDO_SUCCESS;
}
