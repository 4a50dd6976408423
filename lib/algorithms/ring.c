/*
 * Rings: a chunk goes once around to be completed and once more to be given to all (GC3 figure 3b); broadcast and reduce use
 * the ring as a chain from, or to, the root. Compressed, partial sums are encoded at every hop; what is complete is encoded
 * once, stored as its receivers will decode it, and passed on as it came. Relies on the language; adapting relies on the
 * engine's flags for residuals.
 */
#include "lib/algorithms/builders.h"

/* Reduces chunk r on its way around the ring; returns it complete at rank r. */
static rondo_chunk_t around(rondo_program_t p, int n, int r)
{
    rondo_chunk_t c = rondo_chunk(p, (r + 1) % n, IN, rondo_chunk_index(r), 1);
    for (int step = 2; step <= n; step++)
        c = rondo_chunk_reduce(rondo_chunk(p, (r + step) % n, IN, rondo_chunk_index(r), 1), c);
    return c;
}

/* Copies a complete chunk around the ring from rank r to all others. */
static void give(rondo_chunk_t c, int n, int r, size_t index)
{
    for (int step = 1; step < n; step++)
        c = rondo_chunk_copy(c, (r + step) % n, OUT, index);
}

rondo_result_t rondo_compose_ring(const struct rondo_shape *shape, rondo_program_t *result)
{
    int n = shape->size, root = shape->root, all = shape->kind == RONDO_KIND_ALLREDUCE;
    rondo_result_t status = rondo_program_builder_create_shaped(result, "ring", shape, all ? n : 1, all);
    if (status != RONDO_SUCCESS)
        return status;
    rondo_program_t p = *result;
    rondo_chunk_t c;
    rondo_program_parallelize(p, shape->channels);
    switch (shape->kind) {
    case RONDO_KIND_ALLREDUCE:
        for (int r = 0; r < n; r++)
            give(around(p, n, r), n, r, rondo_chunk_index(r));
        break;
    case RONDO_KIND_REDUCE_SCATTER_BLOCK:
    case RONDO_KIND_REDUCE_SCATTER:
        for (int r = 0; r < n; r++)
            rondo_chunk_copy(around(p, n, r), r, shape->across ? SCRATCH : OUT, 0);
        for (int r = 0; r < n && shape->across; r++)
            rondo_chunk_copy(rondo_chunk(p, r, SCRATCH, 0, 1), r, OUT, 0);
        break;
    case RONDO_KIND_ALLGATHER:
    case RONDO_KIND_ALLGATHERV:
        for (int r = 0; r < n; r++)
            give(rondo_chunk_copy(rondo_chunk(p, r, IN, 0, 1), r, OUT, rondo_chunk_index(r)), n, r, rondo_chunk_index(r));
        break;
    case RONDO_KIND_BCAST:
        give(rondo_chunk(p, root, IN, 0, 1), n, root, 0);
        break;
    default: /* reduce: a chain that begins behind the root and ends there */
        c = rondo_chunk(p, (root + 1) % n, IN, 0, 1);
        for (int step = 2; step <= n; step++)
            c = rondo_chunk_reduce(rondo_chunk(p, (root + step) % n, IN, 0, 1), c);
        rondo_chunk_copy(c, root, OUT, 0);
        break;
    }
    rondo_program_serialize(p);
    return RONDO_SUCCESS;
}

/* ---- compression ---- */

/* Sets the flags of compression. hop: what arrives is encoded anew at every hop. keeps: a rank that encodes stores what the
 * others will decode. */
static void encode(struct rondo_plan *plan, int hop, int keeps)
{
    struct rondo_program *program = plan->program;
    struct rondo_instruction *i = (struct rondo_instruction *) (void *) ((char *) program + program->instruction_offset);
    const struct rondo_instruction *end = (const void *) ((const char *) program + program->dependency_offset);
    for (; i < end; i++) {
        int passes_on = (i->actions & (RONDO_RECEIVE | RONDO_REDUCE)) == RONDO_RECEIVE;
        if (hop) {
            i->flags |= RONDO_RECODE;
        } else if ((i->actions & RONDO_SEND) && !passes_on) {
            i->feedback = RONDO_FEEDBACK_TAKE | RONDO_FEEDBACK_KEEP;
            if (keeps) { /* a broadcast's root ends with what the others decode */
                i->actions |= RONDO_COPY;
                i->destination_buffer = RONDO_OUTPUT;
                i->destination_index = i->source_index;
            }
        }
    }
}

void rondo_adapt_ring(const struct rondo_shape *shape, struct rondo_plan *plan)
{
    if (shape->protocol == RONDO_PROTOCOL_COMPRESSED)
        encode(plan, 0, shape->kind == RONDO_KIND_BCAST);
}

/* For comparison only. */
void rondo_adapt_ring_hop(const struct rondo_shape *shape, struct rondo_plan *plan)
{
    if (shape->protocol == RONDO_PROTOCOL_COMPRESSED)
        encode(plan, 1, 0);
}
