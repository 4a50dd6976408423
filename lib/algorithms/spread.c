/*
 * All-to-next over all of a host's links (GC3 section 7.4): where the next rank is on another host, each rank of the host
 * carries a part of the message to its counterpart there. Relies on hosts whose ranks lie side by side.
 */
#include "lib/algorithms/hosts.h"

rondo_result_t rondo_compose_spread(const struct rondo_shape *shape, rondo_program_t *result)
{
    struct rondo_hosts h;
    int parts = rondo_group_size(shape);
    rondo_result_t status = rondo_hosts_begin(&h, shape, "spread", parts, 0, result);
    if (status != RONDO_SUCCESS)
        return status;
    for (int r = 0; r + 1 < shape->size; r++) {
        int host = r / h.group;
        if (host == (r + 1) / h.group) {
            rondo_chunk_copy(rondo_chunk(h.program, r, IN, 0, (size_t) parts), r + 1, OUT, 0);
            continue;
        }
        for (int g = 0; g < h.group; g++) {
            size_t part = (size_t) g;
            rondo_chunk_t c = rondo_chunk(h.program, r, IN, part, 1);
            if (rondo_hosts_rank(&h, host, g) != r)
                c = rondo_chunk_copy(c, rondo_hosts_rank(&h, host, g), SCRATCH, part);
            if (g != 0)
                c = rondo_chunk_copy(c, rondo_hosts_rank(&h, host + 1, g), SCRATCH, part + (size_t) h.group);
            rondo_chunk_copy(c, r + 1, OUT, part);
        }
    }
    rondo_program_serialize(h.program);
    return RONDO_SUCCESS;
}
