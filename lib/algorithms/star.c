/*
 * Star: messages straight between the root and every other rank; between all pairs where each rank has a block for each other;
 * chains for the scans. The simplest program of each collective, to compare with. Relies on the language alone.
 */
#include "lib/algorithms/builders.h"

/* Exscan: the combination of the ranks before passes along the ranks. */
static void prefixes(rondo_program_t p, int n)
{
    /* What arrives rests in scratch: in place, the output is the input that is still needed. */
    rondo_chunk_t before = rondo_chunk(p, 0, IN, 0, 1);
    for (int r = 1; r < n; r++) {
        rondo_chunk_t here = rondo_chunk_copy(before, r, SCRATCH, 0);
        if (r + 1 < n)
            before = rondo_chunk_reduce(rondo_chunk_copy(here, r, SCRATCH, 1), rondo_chunk(p, r, IN, 0, 1));
        rondo_chunk_copy(here, r, OUT, 0);
    }
}

rondo_result_t rondo_compose_star(const struct rondo_shape *shape, rondo_program_t *result)
{
    int n = shape->size, root = shape->root;
    rondo_result_t status = rondo_program_builder_create_shaped(result, "star", shape, 1, shape->kind == RONDO_KIND_SCAN);
    if (status != RONDO_SUCCESS)
        return status;
    rondo_program_t p = *result;
    rondo_program_parallelize(p, shape->channels);
    rondo_chunk_t c;
    for (int step = 0; step < n; step++) {
        int r = (root + step) % n;
        switch (shape->kind) {
        case RONDO_KIND_BCAST:
            if (step > 0)
                rondo_chunk_copy(rondo_chunk(p, root, IN, 0, 1), r, OUT, 0);
            break;
        case RONDO_KIND_GATHER:
            rondo_chunk_copy(rondo_chunk(p, r, IN, 0, 1), root, OUT, rondo_chunk_index(r));
            break;
        case RONDO_KIND_SCATTER:
            rondo_chunk_copy(rondo_chunk(p, root, IN, rondo_chunk_index(r), 1), r, OUT, 0);
            break;
        case RONDO_KIND_REDUCE:
            if (step > 0)
                rondo_chunk_copy(rondo_chunk(p, r, IN, 0, 1), root, SCRATCH, rondo_chunk_index(r));
            break;
        case RONDO_KIND_ALLTOALL:
            for (int from = 0; from < n; from++)
                rondo_chunk_copy(rondo_chunk(p, from, IN, rondo_chunk_index((from + step) % n), 1), (from + step) % n, OUT,
                                 rondo_chunk_index(from));
            break;
        case RONDO_KIND_ALLTONEXT:
            if (step + 1 < n)
                rondo_chunk_copy(rondo_chunk(p, step, IN, 0, 1), step + 1, OUT, 0);
            break;
        case RONDO_KIND_SCAN:
            if (step > 0)
                rondo_chunk_reduce(rondo_chunk(p, step, IN, 0, 1), rondo_chunk(p, step - 1, IN, 0, 1));
            break;
        default:
            break;
        }
    }
    if (shape->kind == RONDO_KIND_REDUCE) {
        c = rondo_chunk_copy(rondo_chunk(p, root, IN, 0, 1), root, OUT, 0);
        for (int r = 0; r < n; r++)
            if (r != root)
                c = rondo_chunk_reduce(c, rondo_chunk(p, root, SCRATCH, rondo_chunk_index(r), 1));
    }
    if (shape->kind == RONDO_KIND_EXSCAN)
        prefixes(p, n);
    rondo_program_serialize(p);
    return RONDO_SUCCESS;
}
