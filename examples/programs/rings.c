/* The two helpers of GC3 figure 3b. A chunk that is passed on as it comes, or once something is added, becomes one instruction
 * of each rank: receive, (reduce,) copy, send. */
#include "programs.h"

void reduce_scatter(const struct ring *ring, int offset, int count)
{
    for (int r = 0; r < ring->count; r++) {
        int index = offset + r * count;
        rondo_chunk_t c = chunk(ring->place, ring_rank(ring, r + 1), IN, index, count);
        for (int step = 2; step <= ring->count; step++)
            c = rondo_chunk_reduce(chunk(ring->place, ring_rank(ring, r + step), IN, index, count), c);
    }
}

void all_gather(const struct ring *ring, rondo_buffer_t buffer, int offset, int count)
{
    for (int r = 0; r < ring->count; r++) {
        int index = offset + r * count;
        rondo_chunk_t c = chunk(ring->place, ring_rank(ring, r), buffer, index, count);
        for (int step = 1; step < ring->count; step++)
            c = copy(c, ring_rank(ring, r + step), buffer, index);
    }
}
