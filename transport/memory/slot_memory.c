/* See transport/memory/slot_memory.h. Memory of the GPU is from transport/memory/cuda_memory.h, of the host from the device. */
#include "transport/memory/slot_memory.h"

#include "transport/memory/cuda_direct.h"
#include "transport/memory/cuda_memory.h"
#include "device/device.h"
#include "lib/base/environment.h"
#include "lib/base/error.h"

#include <string.h>

#define GPU_PAGE ((size_t) 2 << 20) /* what the driver allocates whole, and so aligned as dma-bufs must be */

const char *const rondo_slot_memory_names[RONDO_SLOTS_KINDS] = {"off", "dmabuf", "peermem", "apart"};

rondo_result_t rondo_slot_memory_wanted(int *automatic, enum rondo_slot_memory *kind)
{
    int place; /* auto, then the kinds */
    rondo_result_t result = rondo_environment_choice("RONDO_GPUDIRECT", &place);
    if (result != RONDO_SUCCESS)
        return result;
    *automatic = place == 0;
    if (!*automatic)
        *kind = (enum rondo_slot_memory)(place - 1);
    return RONDO_SUCCESS;
}

int rondo_slot_memory_is_host(enum rondo_slot_memory kind, int gpu)
{
    return gpu < 0 || kind == RONDO_SLOTS_WITH_COUNTERS || kind == RONDO_SLOTS_APART;
}

static rondo_result_t allocate_gpu(enum rondo_slot_memory kind, int gpu, size_t bytes, char **base, size_t *whole, int *dmabuf)
{
    *whole = (bytes + GPU_PAGE - 1) & ~(GPU_PAGE - 1);
    rondo_result_t result = rondo_cuda_allocate(gpu, *whole, base);
    if (result != RONDO_SUCCESS)
        return result;
    result = rondo_cuda_zero(gpu, *base, *whole);
    if (result == RONDO_SUCCESS && kind == RONDO_SLOTS_DMABUF)
        result = rondo_cuda_dmabuf(gpu, *base, *whole, dmabuf);
    if (result != RONDO_SUCCESS)
        rondo_cuda_free(gpu, *base);
    return result;
}

rondo_result_t rondo_slot_memory_allocate(enum rondo_slot_memory kind, int gpu, struct rondo_device *device, size_t bytes,
                                          char **base, size_t *whole, int *dmabuf)
{
    *dmabuf = -1;
    *whole = bytes;
    if (!rondo_slot_memory_is_host(kind, gpu))
        return allocate_gpu(kind, gpu, bytes, base, whole, dmabuf);
    if (kind == RONDO_SLOTS_DMABUF || kind == RONDO_SLOTS_PEERMEM)
        return rondo_fail(RONDO_ERR_TRANSPORT, "%s is for the memory of GPUs, and this rank is on the host device",
                          rondo_slot_memory_names[kind]);
    *base = device->kind->allocate_host(device, bytes);
    return *base != NULL ? RONDO_SUCCESS : rondo_fail(RONDO_ERR_MEMORY, "no memory for %zu bytes of network slots", bytes);
}

void rondo_slot_memory_release(enum rondo_slot_memory kind, int gpu, struct rondo_device *device, char *base, size_t whole)
{
    if (!rondo_slot_memory_is_host(kind, gpu))
        rondo_cuda_free(gpu, base);
    else
        device->kind->release_host(device, base, whole);
}

rondo_result_t rondo_slot_memory_zero(enum rondo_slot_memory kind, int gpu, void *memory, size_t bytes)
{
    if (!rondo_slot_memory_is_host(kind, gpu))
        return rondo_cuda_zero(gpu, memory, bytes);
    memset(memory, 0, bytes);
    return RONDO_SUCCESS;
}
