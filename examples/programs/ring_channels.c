/* Ring all-reduce whose one logical ring lies on several channels (GC3 section 7.1.1): sends and receives of different chunks
 * overlap, because each channel has blocks of its own. */
#include "programs.h"

void ring_channels(const struct place *p)
{
    const int channels = 2;
    for (int r = 0; r < p->ranks; r++) {
        rondo_program_channel(p->program, r % channels);
        rondo_chunk_t c = chunk(p, (r + 1) % p->ranks, IN, r, 1);
        for (int step = 2; step <= p->ranks; step++)
            c = rondo_chunk_reduce(chunk(p, (r + step) % p->ranks, IN, r, 1), c);
        for (int step = 1; step < p->ranks; step++)
            c = copy(c, (r + step) % p->ranks, IN, r);
    }
}
