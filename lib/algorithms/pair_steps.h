/* The steps that the algorithms between all pairs of ranks share. p: the program; n: its ranks. Relies on the language alone.
 */
#ifndef RONDO_LIB_ALGORITHMS_PAIR_STEPS_H
#define RONDO_LIB_ALGORITHMS_PAIR_STEPS_H

#include "lib/algorithms/builders.h"

/* Every rank r sends its chunk for each owner (same: its chunk 0 for all) to chunk r of the owner's scratch. In each step all
 * ranks send to different owners. */
static inline void rondo_send_to_owners(rondo_program_t p, int n, int same)
{
    for (int step = 1; step < n; step++)
        for (int r = 0; r < n; r++) {
            int owner = (r + step) % n;
            rondo_chunk_copy(rondo_chunk(p, r, IN, same ? 0 : rondo_chunk_index(owner), 1), owner, SCRATCH,
                             rondo_chunk_index(r));
        }
}

/* The owner reduces what it was sent into its own chunk, in the order of ranks. */
static inline void rondo_reduce_at_owner(rondo_program_t p, int n, int owner, rondo_chunk_t own)
{
    for (int r = 0; r < n; r++)
        if (r != owner)
            own = rondo_chunk_reduce(own, rondo_chunk(p, owner, SCRATCH, rondo_chunk_index(r), 1));
}

/* Every rank r copies chunk r of its output to all others. */
static inline void rondo_give_to_all(rondo_program_t p, int n)
{
    for (int step = 1; step < n; step++)
        for (int r = 0; r < n; r++)
            rondo_chunk_copy(rondo_chunk(p, r, OUT, rondo_chunk_index(r), 1), (r + step) % n, OUT, rondo_chunk_index(r));
}

/* Reduce-scatter with two buffers: every rank owns one chunk. */
static inline void rondo_reduce_scatter_pairs(rondo_program_t p, int n)
{
    rondo_send_to_owners(p, n, 0);
    for (int r = 0; r < n; r++)
        rondo_reduce_at_owner(p, n, r, rondo_chunk_copy(rondo_chunk(p, r, IN, rondo_chunk_index(r), 1), r, OUT, 0));
}

#endif
