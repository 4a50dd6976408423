/*
 * Slots in a GPU's memory, and when the GPU may trust what lies there (proxy/arrival.h): at once, where the GPU sees NICs'
 * writes in order; after the driver has flushed them; or after a read of the slots by the NIC that wrote them, on a queue pair
 * from this rank to itself, because on its way to the memory a read does not overtake the NIC's earlier writes.
 */
#include "transport/rdma/rdma.h"

#include "lib/base/error.h"

#include <errno.h>
#include <string.h>

static void post_read(struct rondo_rdma *rdma, struct rondo_rdma_queue *loop, struct rondo_port *port)
{
    struct rondo_rdma_rail *rail = &rdma->rails[loop->rail];
    struct ibv_send_wr request = {.opcode = IBV_WR_RDMA_READ};
    if (rail->sink == NULL)
        rail->sink = rdma->library->ibv_reg_mr(rail->domain, &rdma->sink, sizeof(rdma->sink), IBV_ACCESS_LOCAL_WRITE);
    if (rail->sink == NULL) {
        rondo_rdma_lose(rdma, port->peer, strerror(errno));
        return;
    }
    request.wr.rdma.remote_addr = (uint64_t) (uintptr_t) port->slots;
    request.wr.rdma.rkey = port->slot_access[loop->rail];
    if (rondo_rdma_post(loop, &request,
                        (struct ibv_sge){(uint64_t) (uintptr_t) &rdma->sink, sizeof(rdma->sink), rail->sink->lkey}, 1))
        port->flush_post = loop->posted;
}

static int flush_by_read(struct rondo_rdma *rdma, struct rondo_port *port)
{
    struct rondo_rdma_queue *came_by = rondo_rdma_queue_of(rdma, port);
    struct rondo_rdma_queue *loop = came_by != NULL ? rondo_rdma_loop(rdma, came_by->rail) : NULL;
    if (rdma->peers[port->peer].lost || rdma->peers[rdma->rank].lost) {
        port->flush_post = 0; /* a read that may still be on its way ends in the sink */
        return -1;
    }
    if (loop == NULL)
        return 0;
    if (port->flush_post == 0) {
        if (rondo_rdma_room(loop) >= 4)
            post_read(rdma, loop, port);
        return 0; /* a post that is refused is made again on the next queue pair */
    }
    if (loop->completed < port->flush_post)
        return 0;
    port->flush_post = 0;
    return 1;
}

int rondo_rdma_flush(void *state, struct rondo_port *port)
{
    struct rondo_rdma *rdma = state;
    if (rdma->flush == RONDO_CUDA_FLUSH_READ)
        return flush_by_read(rdma, port);
    if (rdma->flush == RONDO_CUDA_FLUSH_NONE || rondo_cuda_flush(rdma->gpu) == RONDO_SUCCESS)
        return 1;
    rondo_rdma_lose(rdma, port->peer, rondo_last_error());
    return -1;
}
