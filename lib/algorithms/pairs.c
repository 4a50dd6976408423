/*
 * All pairs in one shot, for devices that run many blocks: compiled so that what passes between two ranks has blocks of its
 * own, one a direction, which wait for nothing else (struct rondo_algorithm, blocks_a_peer). So an all-gather sends its input
 * and not its copy of it, but to the first peer.
 */
#include "lib/algorithms/pair_steps.h"

rondo_result_t rondo_compose_pairs(const struct rondo_shape *shape, rondo_program_t *result)
{
    int n = shape->size, gathers = shape->kind == RONDO_KIND_ALLGATHER;
    rondo_result_t status = rondo_program_builder_create_shaped(result, "pairs", shape, 1, 0);
    if (status != RONDO_SUCCESS)
        return status;
    rondo_program_t p = *result;
    rondo_program_parallelize(p, shape->channels);
    if (rondo_kind_reduces(shape->kind)) {
        rondo_reduce_scatter_pairs(p, n);
    } else {
        for (int r = 0; r < n; r++)
            rondo_chunk_copy(rondo_chunk(p, r, IN, gathers ? 0 : rondo_chunk_index(r), 1), r, OUT, rondo_chunk_index(r));
        for (int step = 1; step < n; step++)
            for (int r = 0; r < n; r++) {
                int to = (r + step) % n;
                rondo_chunk_t c = !gathers    ? rondo_chunk(p, r, IN, rondo_chunk_index(to), 1)
                                  : step == 1 ? rondo_chunk(p, r, OUT, rondo_chunk_index(r), 1)
                                              : rondo_chunk(p, r, IN, 0, 1);
                rondo_chunk_copy(c, to, OUT, rondo_chunk_index(r));
            }
    }
    rondo_program_serialize(p);
    return RONDO_SUCCESS;
}
