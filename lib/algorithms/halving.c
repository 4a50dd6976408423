/*
 * Recursive halving, and doubling after it (Rabenseifner 2004): all-reduce of any number of ranks, reduce-scatter and
 * all-gather of powers of two. Half of what is left goes to a partner in every step. Relies on the language alone.
 */
#include "lib/algorithms/builders.h"

struct halving {
    rondo_program_t program;
    int power, rest; /* even ranks below 2 * rest take no part in the exchanges */
};

/* Returns the rank of the k-th of those that exchange. */
static int real(const struct halving *h, int k)
{
    return k < h->rest ? 2 * k + 1 : k + h->rest;
}

/* Returns the first chunk of the part that rank k works on when parts are `size` chunks long. */
static size_t part(int k, int size)
{
    return (size_t) (k / size * size);
}

static void reduce_to(const struct halving *h, int to, int from, size_t first, int count)
{
    rondo_chunk_reduce(rondo_chunk(h->program, real(h, to), IN, first, (size_t) count),
                       rondo_chunk(h->program, real(h, from), IN, first, (size_t) count));
}

static void halve(const struct halving *h)
{
    for (int distance = h->power / 2; distance >= 1; distance /= 2)
        for (int k = 0; k < h->power; k++)
            reduce_to(h, k, k ^ distance, part(k, distance), distance);
}

static void gather(const struct halving *h, rondo_buffer_t buffer)
{
    for (int distance = 1; distance < h->power; distance *= 2)
        for (int k = 0; k < h->power; k++) {
            size_t first = part(k ^ distance, distance);
            rondo_chunk_copy(rondo_chunk(h->program, real(h, k ^ distance), buffer, first, (size_t) distance), real(h, k),
                             buffer, first);
        }
}

rondo_result_t rondo_compose_halving(const struct rondo_shape *shape, rondo_program_t *result)
{
    int n = shape->size, all = shape->kind == RONDO_KIND_ALLREDUCE;
    struct halving h = {NULL, 1, 0};
    while (2 * h.power <= n)
        h.power *= 2;
    h.rest = n - h.power;
    if (h.rest != 0 && !all)
        return rondo_fail(RONDO_ERR_UNSUPPORTED, "halving: %s of %d ranks, which is not a power of two",
                          rondo_kind_name(shape->kind), n);
    rondo_result_t status = rondo_program_builder_create_shaped(result, "halving", shape, all ? h.power : 1, all);
    if (status != RONDO_SUCCESS)
        return status;
    h.program = *result;
    rondo_program_parallelize(h.program, shape->channels);
    if (shape->kind == RONDO_KIND_ALLGATHER) {
        for (int r = 0; r < n; r++)
            rondo_chunk_copy(rondo_chunk(h.program, r, IN, 0, 1), r, OUT, rondo_chunk_index(r));
        gather(&h, OUT);
    } else {
        size_t whole = (size_t) h.power;
        for (int r = 0; r < 2 * h.rest; r += 2)
            rondo_chunk_reduce(rondo_chunk(h.program, r + 1, IN, 0, whole), rondo_chunk(h.program, r, IN, 0, whole));
        halve(&h);
        if (all)
            gather(&h, IN);
        for (int r = 0; r < 2 * h.rest; r += 2)
            rondo_chunk_copy(rondo_chunk(h.program, r + 1, IN, 0, whole), r, OUT, 0);
        for (int r = 0; !all && r < n; r++)
            rondo_chunk_copy(rondo_chunk(h.program, r, IN, rondo_chunk_index(r), 1), r, OUT, 0);
    }
    rondo_program_serialize(h.program);
    return RONDO_SUCCESS;
}
