/* AllToNext (GC3 section 7.4), a collective of its own: rank r's input becomes rank r + 1's output. Where the next rank is on
 * another host, every rank of the host carries a part of it, so that all of the host's links are used. */
#include "programs.h"

void all_to_next(const struct place *p)
{
    const int G = p->group;
    for (int r = 0; r + 1 < p->ranks; r++)
        for (int part = 0; part < G; part++) {
            size_t index = (size_t) part;
            rondo_program_require(p->program, r + 1, index, 1, &r, &index);
            rondo_chunk_t c = chunk(p, r, IN, part, 1);
            if (r % G == G - 1) { /* to rank `part` of this host, and across to that of the next */
                if (part != G - 1)
                    c = copy(c, r - G + 1 + part, SCRATCH, part);
                if (part != 0)
                    c = copy(c, r + 1 + part, SCRATCH, G + part);
            }
            copy(c, r + 1, OUT, part);
        }
}
