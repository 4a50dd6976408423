/* Memory of the rdma transport: slabs that every rail has registered. Counters and sizes lie in the host's memory, which the
 * proxy reads; slots behind them, or apart in memory that NICs reach by themselves (transport/memory/slot_memory.h). */
#include "transport/rdma/rdma.h"

#include "device/device.h"
#include "lib/base/error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define SLAB_BYTES ((size_t) 8 << 20)
#define ACCESS     (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

struct registered {
    struct ibv_mr *regions[RONDO_RDMA_RAILS];
};

/* A device that has gone registers nothing, and no queue pair is made there any more. */
static int is_dead(const struct rondo_rdma_rail *rail)
{
    return __atomic_load_n(&rail->dead, __ATOMIC_RELAXED) != 0;
}

struct ibv_mr *rondo_rdma_keys(const struct rondo_region *region, int rail)
{
    return ((const struct registered *) region->slab->own)->regions[rail];
}

static void unregister(const struct rondo_rdma *rdma, struct registered *registered)
{
    for (int i = 0; i < rdma->rail_count; i++)
        if (registered->regions[i] != NULL)
            rdma->library->ibv_dereg_mr(registered->regions[i]);
    free(registered);
}

static rondo_result_t refuse(const struct rondo_rdma_rail *rail, size_t bytes)
{
    struct rlimit limit = {0, 0};
    int error = errno;
    getrlimit(RLIMIT_MEMLOCK, &limit);
    if (error == ENOMEM || error == EAGAIN)
        return rondo_fail(
            RONDO_ERR_MEMORY,
            "rdma: %s cannot lock %zu bytes of memory for slots: %s (this process may lock %llu bytes: ulimit -l)", rail->name,
            bytes, strerror(error), (unsigned long long) limit.rlim_cur);
    return rondo_fail(RONDO_ERR_TRANSPORT, "rdma: %s cannot register %zu bytes of memory: %s", rail->name, bytes,
                      strerror(error));
}

/* ---- with the counters ---- */

static rondo_result_t allocate(void *argument, size_t bytes, struct rondo_slab *slab)
{
    struct rondo_rdma *rdma = argument;
    struct rondo_device *device = rdma->context->device;
    struct registered *registered = calloc(1, sizeof(*registered));
    char *base = registered != NULL ? device->kind->allocate_host(device, bytes) : NULL;
    rondo_result_t result = RONDO_SUCCESS;
    if (base == NULL) {
        free(registered);
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for %zu bytes of network slots", bytes);
    }
    for (int i = 0; i < rdma->rail_count && result == RONDO_SUCCESS; i++) {
        if (is_dead(&rdma->rails[i]))
            continue;
        registered->regions[i] = rdma->library->ibv_reg_mr(rdma->rails[i].domain, base, bytes, ACCESS);
        if (registered->regions[i] == NULL)
            result = refuse(&rdma->rails[i], bytes);
    }
    if (result != RONDO_SUCCESS) {
        unregister(rdma, registered);
        device->kind->release_host(device, base, bytes);
        return result;
    }
    *slab = (struct rondo_slab){base, bytes, registered};
    return RONDO_SUCCESS;
}

static void release(void *argument, struct rondo_slab *slab)
{
    struct rondo_rdma *rdma = argument;
    struct rondo_device *device = rdma->context->device;
    unregister(rdma, slab->own);
    device->kind->release_host(device, slab->base, slab->bytes);
}

static rondo_result_t zero(void *argument, void *memory, size_t bytes)
{
    (void) argument;
    memset(memory, 0, bytes);
    return RONDO_SUCCESS;
}

const struct rondo_slab_source rondo_rdma_slabs = {SLAB_BYTES, allocate, release, zero};

/* ---- slots apart ---- */

/* Whether the NIC's driver takes dma-bufs at all: one that does looks at the descriptor, and finds that there is none. */
static rondo_result_t ask_for_dmabufs(const struct rondo_rdma *rdma, const struct rondo_rdma_rail *rail)
{
    if (rdma->library->ibv_reg_dmabuf_mr == NULL)
        return rondo_fail(RONDO_ERR_TRANSPORT, "libibverbs is older than 1.12 and has no ibv_reg_dmabuf_mr");
    struct ibv_mr *none = rdma->library->ibv_reg_dmabuf_mr(rail->domain, 0, 4096, 0, -1, ACCESS);
    int error = errno;
    if (none != NULL)
        rdma->library->ibv_dereg_mr(none);
    else if (error == EOPNOTSUPP || error == EPROTONOSUPPORT || error == ENOSYS)
        return rondo_fail(RONDO_ERR_TRANSPORT, "the driver of %s registers no dma-bufs (%s)", rail->name, strerror(error));
    return RONDO_SUCCESS;
}

static rondo_result_t refuse_gpu(const struct rondo_rdma_rail *rail, enum rondo_slot_memory kind, size_t bytes)
{
    int error = errno;
    if (kind == RONDO_SLOTS_PEERMEM && access("/sys/module/nvidia_peermem", F_OK) != 0 &&
        access("/sys/module/nv_peer_mem", F_OK) != 0)
        return rondo_fail(RONDO_ERR_TRANSPORT, "the kernel module nvidia_peermem is not loaded (%s: %s)", rail->name,
                          strerror(error));
    return rondo_fail(RONDO_ERR_TRANSPORT, "%s cannot register %zu bytes of the GPU's memory: %s", rail->name, bytes,
                      strerror(error));
}

/* Readable from elsewhere, too, since this rank flushes by reading (transport/rdma/flush.c). */
static rondo_result_t register_part(struct rondo_rdma *rdma, enum rondo_slot_memory kind, const struct rondo_rdma_rail *rail,
                                    char *base, size_t bytes, int dmabuf, struct ibv_mr **keys)
{
    int rights = ACCESS | IBV_ACCESS_REMOTE_READ;
    if (dmabuf >= 0)
        *keys = rdma->library->ibv_reg_dmabuf_mr(rail->domain, 0, bytes, (uint64_t) (uintptr_t) base, dmabuf, rights);
    else
        *keys = rdma->library->ibv_reg_mr(rail->domain, base, bytes, rights);
    if (*keys != NULL)
        return RONDO_SUCCESS;
    return rondo_slot_memory_is_host(kind, rdma->gpu) ? refuse(rail, bytes) : refuse_gpu(rail, kind, bytes);
}

static rondo_result_t allocate_kind(struct rondo_rdma *rdma, enum rondo_slot_memory kind, int first, int rails, size_t bytes,
                                    struct rondo_slab *slab)
{
    struct rondo_device *device = rdma->context != NULL ? rdma->context->device : NULL;
    struct registered *registered = calloc(1, sizeof(*registered));
    char *base = NULL;
    size_t whole = 0;
    int dmabuf = -1;
    rondo_result_t result = registered != NULL ? RONDO_SUCCESS : rondo_fail(RONDO_ERR_MEMORY, "no memory to describe a slab");
    for (int i = first; i < first + rails && result == RONDO_SUCCESS && kind == RONDO_SLOTS_DMABUF; i++)
        result = ask_for_dmabufs(rdma, &rdma->rails[i]);
    if (result == RONDO_SUCCESS)
        result = rondo_slot_memory_allocate(kind, rdma->gpu, device, bytes, &base, &whole, &dmabuf);
    if (result != RONDO_SUCCESS) {
        free(registered);
        return result;
    }
    for (int i = first; i < first + rails && result == RONDO_SUCCESS; i++)
        if (!is_dead(&rdma->rails[i]))
            result = register_part(rdma, kind, &rdma->rails[i], base, whole, dmabuf, &registered->regions[i]);
    if (dmabuf >= 0)
        close(dmabuf); /* the registrations hold the memory */
    if (result != RONDO_SUCCESS) {
        unregister(rdma, registered);
        rondo_slot_memory_release(kind, rdma->gpu, device, base, whole);
        return result;
    }
    *slab = (struct rondo_slab){base, whole, registered};
    return RONDO_SUCCESS;
}

static void release_kind(struct rondo_rdma *rdma, enum rondo_slot_memory kind, struct rondo_slab *slab)
{
    unregister(rdma, slab->own);
    rondo_slot_memory_release(kind, rdma->gpu, rdma->context != NULL ? rdma->context->device : NULL, slab->base, slab->bytes);
}

rondo_result_t rondo_rdma_try_slots(struct rondo_rdma *rdma, enum rondo_slot_memory kind, int first_rail, int rails)
{
    struct rondo_slab slab;
    rondo_result_t result = allocate_kind(rdma, kind, first_rail, rails, 1, &slab);
    if (result == RONDO_SUCCESS)
        release_kind(rdma, kind, &slab);
    return result;
}

static rondo_result_t allocate_apart(void *argument, size_t bytes, struct rondo_slab *slab)
{
    struct rondo_rdma *rdma = argument;
    return allocate_kind(rdma, rdma->slots, 0, rdma->rail_count, bytes, slab);
}

static void release_apart(void *argument, struct rondo_slab *slab)
{
    struct rondo_rdma *rdma = argument;
    release_kind(rdma, rdma->slots, slab);
}

static rondo_result_t zero_apart(void *argument, void *memory, size_t bytes)
{
    const struct rondo_rdma *rdma = argument;
    return rondo_slot_memory_zero(rdma->slots, rdma->gpu, memory, bytes);
}

const struct rondo_slab_source rondo_rdma_slots_apart = {SLAB_BYTES, allocate_apart, release_apart, zero_apart};

/* ---- tickets ---- */

rondo_result_t rondo_rdma_prepare(void *state, struct rondo_port *port)
{
    const struct rondo_rdma *rdma = state;
    const struct rondo_region *slots = port->slot_region.slab != NULL ? &port->slot_region : &port->region;
    for (int i = 0; i < rdma->rail_count; i++) {
        const struct ibv_mr *counter_keys = rondo_rdma_keys(&port->region, i), *slot_keys = rondo_rdma_keys(slots, i);
        port->access[i] = counter_keys != NULL ? counter_keys->rkey : 0;
        port->slot_access[i] = slot_keys != NULL ? slot_keys->rkey : 0;
    }
    return RONDO_SUCCESS;
}
