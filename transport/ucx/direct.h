/*
 * Slots in a GPU's memory for the ucx transport, which UCX reads and writes by itself where it was built for CUDA: by whatever
 * of dma-bufs, kernel modules and copies it finds. Only where RONDO_GPUDIRECT asks for it: over TCP, pinned memory of the host
 * is the shorter way, and UCX does not tell which way it takes.
 */
#ifndef RONDO_TRANSPORT_UCX_DIRECT_H
#define RONDO_TRANSPORT_UCX_DIRECT_H

#include "transport/memory/arena.h"
#include "transport/memory/cuda_direct.h"
#include "proxy/port.h"
#include "transport/memory/slot_memory.h"
#include "transport/ucx/library.h"

struct rondo_transport_context;

/* The first member of struct rondo_ucx, so that the network's functions below can take the state. */
struct rondo_ucx_direct {
    struct rondo_transport_context *context;
    enum rondo_slot_memory slots;
    enum rondo_cuda_flush flush;
    ucs_memory_type_t memory_type; /* of slots */
    int gpu;                       /* whose memory has the slots; -1: the host's has */
};

/* Before UCX starts: fills *direct with what the environment and the rank's device ask for. RONDO_ERR_ARGUMENT if
 * RONDO_GPUDIRECT says something else. */
rondo_result_t rondo_ucx_direct_wanted(struct rondo_ucx_direct *direct, struct rondo_transport_context *context);
/* Once UCX has started: whether it can do what is asked for; else RONDO_ERR_TRANSPORT with the reason. */
rondo_result_t rondo_ucx_direct_check(const struct rondo_ucx_direct *direct, const struct rondo_ucx_library *library,
                                      ucp_context_h ucp);
/* Around every call of UCX that may copy, because UCX copies from and to the GPU of the calling thread's context. enter returns
 * 0 if the GPU cannot be made current: then UCX may not be called, and there is no leave. */
int rondo_ucx_direct_enter(const struct rondo_ucx_direct *direct);
void rondo_ucx_direct_leave(const struct rondo_ucx_direct *direct);
/* Of struct rondo_network: slot_slabs and flush. state: a struct rondo_ucx_direct. */
const struct rondo_slab_source *rondo_ucx_direct_slabs(void *state);
int rondo_ucx_direct_flush(void *state, struct rondo_port *port);

#endif
