/*
 * Recursive doubling, composed: all-reduce of any number of ranks (the ranks beyond a power of two first reduce into a
 * neighbour: algorithm 2 of Zhou et al., "Accelerating MPI AllReduce Communication with Efficient GPU-Based Compression
 * Schemes"), all-gather after Bruck, scan after Hillis and Steele. Relies on the language alone.
 */
#include "lib/algorithms/builders.h"

/* Sends a rank's chunk to the other's scratch chunk of this step. */
static rondo_chunk_t send_aside(rondo_program_t p, int from, int to, size_t place)
{
    return rondo_chunk_copy(rondo_chunk(p, from, IN, 0, 1), to, SCRATCH, place);
}

static void all_reduce(rondo_program_t p, int n)
{
    int power = 1;
    while (2 * power <= n)
        power *= 2;
    int rest = n - power; /* even ranks below 2 * rest take no part in the exchanges */
    for (int r = 0; r < 2 * rest; r += 2)
        rondo_chunk_reduce(rondo_chunk(p, r + 1, IN, 0, 1), rondo_chunk(p, r, IN, 0, 1));
    size_t place = 0;
    for (int distance = 1; distance < power; distance *= 2, place++) {
        for (int k = 0; k < power; k++) {
            int partner = k ^ distance, me = k < rest ? 2 * k + 1 : k + rest;
            send_aside(p, me, partner < rest ? 2 * partner + 1 : partner + rest, place);
        }
        for (int k = 0; k < power; k++) {
            int me = k < rest ? 2 * k + 1 : k + rest;
            rondo_chunk_reduce(rondo_chunk(p, me, IN, 0, 1), rondo_chunk(p, me, SCRATCH, place, 1));
        }
    }
    for (int r = 0; r < 2 * rest; r += 2)
        rondo_chunk_copy(rondo_chunk(p, r + 1, IN, 0, 1), r, OUT, 0);
}

/* After a step with distance d every rank r has blocks r .. r + 2d - 1, around the end. */
static void all_gather(rondo_program_t p, int n)
{
    for (int r = 0; r < n; r++)
        rondo_chunk_copy(rondo_chunk(p, r, IN, 0, 1), r, OUT, rondo_chunk_index(r));
    for (int distance = 1; distance < n; distance *= 2) {
        int blocks = distance < n - distance ? distance : n - distance;
        for (int r = 0; r < n; r++) {
            int from = (r + distance) % n, head = blocks < n - from ? blocks : n - from;
            rondo_chunk_copy(rondo_chunk(p, from, OUT, rondo_chunk_index(from), (size_t) head), r, OUT,
                             rondo_chunk_index(from));
            if (head < blocks)
                rondo_chunk_copy(rondo_chunk(p, from, OUT, 0, (size_t) (blocks - head)), r, OUT, 0);
        }
    }
}

static void scan(rondo_program_t p, int n)
{
    size_t place = 0;
    for (int distance = 1; distance < n; distance *= 2, place++) {
        for (int r = distance; r < n; r++)
            send_aside(p, r - distance, r, place);
        for (int r = distance; r < n; r++)
            rondo_chunk_reduce(rondo_chunk(p, r, IN, 0, 1), rondo_chunk(p, r, SCRATCH, place, 1));
    }
}

rondo_result_t rondo_compose_doubling(const struct rondo_shape *shape, rondo_program_t *result)
{
    rondo_result_t status =
        rondo_program_builder_create_shaped(result, "doubling", shape, 1, shape->kind != RONDO_KIND_ALLGATHER);
    if (status != RONDO_SUCCESS)
        return status;
    rondo_program_parallelize(*result, shape->channels);
    if (shape->kind == RONDO_KIND_ALLREDUCE)
        all_reduce(*result, shape->size);
    else if (shape->kind == RONDO_KIND_ALLGATHER)
        all_gather(*result, shape->size);
    else
        scan(*result, shape->size);
    rondo_program_serialize(*result);
    return RONDO_SUCCESS;
}
