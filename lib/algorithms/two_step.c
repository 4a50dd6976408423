/*
 * All-to-all in two steps (GC3 figure 8): what the ranks of a host have for one rank of another host is collected at one of
 * them and sent at once, so that few large messages cross the slow links. Relies on hosts whose ranks lie side by side.
 */
#include "lib/algorithms/hosts.h"

rondo_result_t rondo_compose_two_step(const struct rondo_shape *shape, rondo_program_t *result)
{
    struct rondo_hosts h;
    rondo_result_t status = rondo_hosts_begin(&h, shape, "twostep", 1, 0, result);
    if (status != RONDO_SUCCESS)
        return status;
    for (int n = 0; n < h.hosts; n++)
        for (int g = 0; g < h.group; g++)
            for (int m = 0; m < h.hosts; m++) {
                for (int i = 0; i < h.group; i++) {
                    rondo_chunk_t c =
                        rondo_chunk(h.program, rondo_hosts_rank(&h, m, i), IN, (size_t) rondo_hosts_rank(&h, n, g), 1);
                    if (n == m)
                        rondo_chunk_copy(c, rondo_hosts_rank(&h, n, g), OUT, (size_t) rondo_hosts_rank(&h, m, i));
                    else
                        rondo_chunk_copy(c, rondo_hosts_rank(&h, m, g), SCRATCH, (size_t) rondo_hosts_rank(&h, n, i));
                }
                if (n != m)
                    rondo_chunk_copy(
                        rondo_chunk(h.program, rondo_hosts_rank(&h, m, g), SCRATCH, (size_t) (n * h.group), (size_t) h.group),
                        rondo_hosts_rank(&h, n, g), OUT, (size_t) (m * h.group));
            }
    rondo_program_serialize(h.program);
    return RONDO_SUCCESS;
}
