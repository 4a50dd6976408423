/* All-to-all in two steps (GC3 figure 8): what the ranks of host m have for rank (n, g) is collected at rank (m, g) and crosses
 * the network as one message. */
#include "programs.h"

void two_step_all_to_all(const struct place *p)
{
    const int G = p->group;
    for (int n = 0; n < p->hosts; n++)
        for (int g = 0; g < G; g++)
            for (int m = 0; m < p->hosts; m++) {
                for (int i = 0; i < G; i++) {
                    rondo_chunk_t c = chunk(p, m * G + i, IN, n * G + g, 1);
                    if (n == m)
                        copy(c, n * G + g, OUT, m * G + i);
                    else
                        copy(c, m * G + g, SCRATCH, n * G + i);
                }
                if (n != m)
                    copy(chunk(p, m * G + g, SCRATCH, n * G, G), n * G + g, OUT, m * G);
            }
}
