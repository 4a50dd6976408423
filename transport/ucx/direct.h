/*
 * Slots in a GPU's memory for the ucx transport, which UCX reads and writes by itself where it was built for CUDA: by whatever
 * of dma-bufs, kernel modules and copies it finds. Only where RONDO_GPUDIRECT asks for it: over TCP, pinned memory of the host
 * is the shorter way, and which way UCX takes it does not tell.
 */
#ifndef RONDO_TRANSPORT_UCX_DIRECT_H
#define RONDO_TRANSPORT_UCX_DIRECT_H

#include "transport/memory/arena.h"
#include "transport/memory/cuda_direct.h"
#include "proxy/port.h"
#include "transport/memory/slot_memory.h"
#include "transport/ucx/library.h"

struct rondo_transport_context;

/* The ucx network's state begins with this. */
struct rondo_ucx_direct {
    struct rondo_transport_context *context;
    enum rondo_slot_memory slots;
    enum rondo_cuda_flush flush;
    ucs_memory_type_t memory_type; /* of slots */
    int gpu;                       /* that the slots are in the memory of; -1: of the host */
};

/* Before UCX starts: what is asked for. RONDO_ERR_ARGUMENT. */
rondo_result_t rondo_ucx_direct_wanted(struct rondo_ucx_direct *direct, struct rondo_transport_context *context);
/* Whether it can be, with that context: else RONDO_ERR_TRANSPORT with the reason. */
rondo_result_t rondo_ucx_direct_check(const struct rondo_ucx_direct *direct, const struct rondo_ucx_library *library,
                                      ucp_context_h ucp);
/* UCX copies from and to the GPU of the calling thread's context: around every call that may. enter: 0 if it cannot be. */
int rondo_ucx_direct_enter(const struct rondo_ucx_direct *direct);
void rondo_ucx_direct_leave(const struct rondo_ucx_direct *direct);
/* Of struct rondo_network. */
const struct rondo_slab_source *rondo_ucx_direct_slabs(void *state);
int rondo_ucx_direct_flush(void *state, struct rondo_port *port);

#endif
