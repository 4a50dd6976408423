/* All-reduce on a binary tree: rank r's parent is (r - 1) / 2. Sums go up to rank 0, the result comes down; on two chunks, so
 * that the one goes up while the other comes down. */
#include "programs.h"

void tree(const struct place *p)
{
    for (int half = 0; half < 2; half++) {
        for (int r = p->ranks - 1; r > 0; r--)
            rondo_chunk_reduce(chunk(p, (r - 1) / 2, IN, half, 1), chunk(p, r, IN, half, 1));
        for (int r = 1; r < p->ranks; r++)
            copy(chunk(p, (r - 1) / 2, IN, half, 1), r, IN, half);
    }
}
