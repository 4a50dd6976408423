/* See transport/ucx/direct.h. Relies on transport/memory/slot_memory.h for the memory and on transport/memory/cuda_direct.h for
 * what makes arrivals visible to the GPU. */
#include "transport/ucx/direct.h"

#include "transport/memory/cuda_memory.h"
#include "lib/base/error.h"
#include "proxy/proxy.h"
#include "transport/context.h"

#if RONDO_WITH_CUDA
#include "transport/memory/cuda_driver.h"
#endif

#define SLAB_BYTES ((size_t) 8 << 20)

rondo_result_t rondo_ucx_direct_wanted(struct rondo_ucx_direct *direct, struct rondo_transport_context *context)
{
    int automatic;
    direct->context = context;
    direct->slots = RONDO_SLOTS_WITH_COUNTERS;
    direct->memory_type = UCS_MEMORY_TYPE_HOST;
    direct->gpu = -1;
    rondo_result_t result = rondo_slot_memory_wanted(&automatic, &direct->slots);
    if (result != RONDO_SUCCESS || context->device_type != RONDO_DEVICE_CUDA)
        return result;
    if (!rondo_slot_memory_is_host(direct->slots, context->device_index)) {
        direct->gpu = context->device_index;
        direct->memory_type = UCS_MEMORY_TYPE_CUDA;
        direct->flush = rondo_cuda_flush_of(direct->gpu);
    }
    return RONDO_SUCCESS;
}

rondo_result_t rondo_ucx_direct_check(const struct rondo_ucx_direct *direct, const struct rondo_ucx_library *library,
                                      ucp_context_h ucp)
{
    const char *wish = rondo_slot_memory_names[direct->slots];
    ucp_context_attr_t attributes = {.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES};
    if (direct->gpu >= 0 && direct->context->encrypts)
        return rondo_fail(RONDO_ERR_TRANSPORT,
                          "RONDO_GPUDIRECT=%s and RONDO_ENCRYPT=1: slots in the memory of GPU %d cannot be encrypted", wish,
                          direct->gpu);
    if (direct->gpu < 0)
        return direct->slots == RONDO_SLOTS_WITH_COUNTERS || direct->slots == RONDO_SLOTS_APART
                   ? RONDO_SUCCESS
                   : rondo_fail(RONDO_ERR_TRANSPORT,
                                "RONDO_GPUDIRECT=%s is for the memory of GPUs, and this rank is on the host device", wish);
    ucs_status_t status = library->ucp_context_query(ucp, &attributes);
    if (status != UCS_OK)
        return rondo_fail(RONDO_ERR_TRANSPORT, "RONDO_GPUDIRECT=%s: UCX does not say what memory it reaches: %s", wish,
                          library->ucs_status_string(status));
    if ((attributes.memory_types & UCS_BIT(UCS_MEMORY_TYPE_CUDA)) == 0)
        return rondo_fail(RONDO_ERR_TRANSPORT, "RONDO_GPUDIRECT=%s: this UCX was built without CUDA, or finds no GPU", wish);
    if (direct->flush == RONDO_CUDA_FLUSH_READ)
        return rondo_fail(RONDO_ERR_TRANSPORT,
                          "RONDO_GPUDIRECT=%s: only a NIC can flush what has been written into the memory of GPU %d, and UCX "
                          "offers no way to ask it to",
                          wish, direct->gpu);
    rondo_log(RONDO_LOG_INFO, direct->context->rank, "ucx: slots lie in the memory of GPU %d", direct->gpu);
    return RONDO_SUCCESS;
}

int rondo_ucx_direct_enter(const struct rondo_ucx_direct *direct)
{
#if RONDO_WITH_CUDA
    return direct->gpu < 0 || rondo_cuda_enter(direct->gpu) == RONDO_SUCCESS;
#else
    (void) direct;
    return 1;
#endif
}

void rondo_ucx_direct_leave(const struct rondo_ucx_direct *direct)
{
#if RONDO_WITH_CUDA
    if (direct->gpu >= 0)
        rondo_cuda_leave();
#else
    (void) direct;
#endif
}

/* UCX registers memory when it needs to, so no dma-buf is made for it. */
static enum rondo_slot_memory kind_of(const struct rondo_ucx_direct *direct)
{
    return direct->slots == RONDO_SLOTS_DMABUF ? RONDO_SLOTS_PEERMEM : direct->slots;
}

static rondo_result_t allocate(void *argument, size_t bytes, struct rondo_slab *slab)
{
    const struct rondo_ucx_direct *direct = argument;
    int none;
    slab->own = NULL;
    return rondo_slot_memory_allocate(kind_of(direct), direct->gpu, direct->context->device, bytes, &slab->base, &slab->bytes,
                                      &none);
}

static void release(void *argument, struct rondo_slab *slab)
{
    const struct rondo_ucx_direct *direct = argument;
    rondo_slot_memory_release(kind_of(direct), direct->gpu, direct->context->device, slab->base, slab->bytes);
}

static rondo_result_t zero(void *argument, void *memory, size_t bytes)
{
    const struct rondo_ucx_direct *direct = argument;
    return rondo_slot_memory_zero(kind_of(direct), direct->gpu, memory, bytes);
}

const struct rondo_slab_source *rondo_ucx_direct_slabs(void *state)
{
    static const struct rondo_slab_source apart = {SLAB_BYTES, allocate, release, zero};
    return ((const struct rondo_ucx_direct *) state)->slots != RONDO_SLOTS_WITH_COUNTERS ? &apart : NULL;
}

/* What UCX has written into the memory of the host is there when UCX says so. */
int rondo_ucx_direct_flush(void *state, struct rondo_port *port)
{
    const struct rondo_ucx_direct *direct = state;
    if (direct->gpu < 0 || direct->flush == RONDO_CUDA_FLUSH_NONE)
        return 1;
    if (port->flush_post == 0) {
        if (rondo_cuda_flush(direct->gpu) == RONDO_SUCCESS)
            return 1;
        rondo_proxy_lose(port->proxy, port->peer, "ucx", rondo_last_error());
        port->flush_post = 1; /* reported once */
    }
    return -1;
}
