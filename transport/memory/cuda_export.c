/* The owner's side of shared GPU memory (transport/memory/cuda_memory.h): what is exported, how, and whether it is still the
 * same allocation. An export keeps no lock and no list; it belongs to its caller. */
#include "transport/memory/cuda_shared.h"

#include "lib/base/error.h"

#include <stdlib.h>
#include <string.h>

struct rondo_cuda_export {
    struct rondo_segments *segments;
    struct rondo_cuda_shared handle;
    CUmemoryPool pool;
    CUmemGenericAllocationHandle allocation; /* of cuMemMap memory: held, so that its number is not used again */
};

static rondo_result_t export_ipc(struct rondo_cuda_export *exported, const struct rondo_cuda_pointer *pointer)
{
    CUresult status = rondo_cuda_driver()->cuIpcGetMemHandle(&exported->handle.as.ipc, pointer->start);
    return rondo_cuda_result(status, RONDO_ERR_BUFFER, "this memory has no CUDA IPC handle");
}

static rondo_result_t export_descriptor(struct rondo_cuda_export *exported, const struct rondo_cuda_pointer *pointer)
{
    int fd = -1;
    if ((pointer->handle_types & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) == 0)
        return rondo_fail(RONDO_ERR_BUFFER,
                          "memory of cuMemCreate that was made without CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR "
                          "cannot be opened to other processes");
    CUresult status = rondo_cuda_driver()->cuMemExportToShareableHandle(&fd, exported->allocation,
                                                                        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    rondo_result_t result = rondo_cuda_result(status, RONDO_ERR_BUFFER, "cuMemExportToShareableHandle");
    return result == RONDO_SUCCESS
               ? rondo_descriptor_offer_make(exported->segments, fd, pointer->size, &exported->handle.as.offer)
               : result;
}

/* In the device's context. */
static rondo_result_t export_outside(struct rondo_cuda_export *exported, const struct rondo_cuda_pointer *pointer)
{
    rondo_result_t result;
    if (pointer->kind == RONDO_CUDA_ALLOCATION)
        result = export_ipc(exported, pointer);
    else if (pointer->kind == RONDO_CUDA_MAPPED)
        result = export_descriptor(exported, pointer);
    else
        result = rondo_fail(RONDO_ERR_BUFFER, "memory of cudaMallocAsync cannot be opened to other processes");
    exported->handle.outside = result == RONDO_SUCCESS;
    return result;
}

/* What the driver says must be memory of this GPU, in one piece. */
static rondo_result_t look_at(int device_index, const void *base, size_t bytes, struct rondo_cuda_pointer *pointer)
{
    char where[64];
    rondo_result_t result = rondo_cuda_inspect(base, pointer);
    if (result != RONDO_SUCCESS)
        return result;
    rondo_cuda_describe(pointer, where, sizeof(where));
    if ((pointer->kind != RONDO_CUDA_ALLOCATION && pointer->kind != RONDO_CUDA_POOL && pointer->kind != RONDO_CUDA_MAPPED) ||
        pointer->device != device_index)
        return rondo_fail(RONDO_ERR_BUFFER, "%p cannot be opened to other ranks: it is %s, not of GPU %d", base, where,
                          device_index);
    size_t before = (size_t) ((CUdeviceptr) (uintptr_t) base - pointer->start);
    if (before > pointer->size || bytes > pointer->size - before)
        return rondo_fail(RONDO_ERR_BUFFER,
                          "%zu bytes at %p cannot be opened to other ranks: %s, but not in one piece (%zu bytes)", bytes, base,
                          where, pointer->size);
    return RONDO_SUCCESS;
}

rondo_result_t rondo_cuda_export(struct rondo_segments *segments, int device_index, const void *base, size_t bytes,
                                 int to_processes, struct rondo_cuda_export **result, struct rondo_cuda_handle *handle)
{
    struct rondo_cuda_pointer pointer;
    rondo_result_t status = look_at(device_index, base, bytes, &pointer);
    struct rondo_cuda_export *exported = status == RONDO_SUCCESS ? calloc(1, sizeof(*exported)) : NULL;
    *result = NULL;
    if (status != RONDO_SUCCESS)
        return status;
    if (exported == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory to describe an exported buffer");
    struct rondo_cuda_shared *data = &exported->handle;
    exported->segments = segments;
    exported->pool = pointer.pool;
    data->buffer_id = pointer.buffer_id;
    data->pointer = (uint64_t) (uintptr_t) base;
    data->bytes = bytes;
    data->offset = data->pointer - pointer.start;
    data->whole = pointer.size;
    data->kind = (uint32_t) pointer.kind;
    data->device = device_index;
    status = rondo_process_token(data->process);
    if (status == RONDO_SUCCESS && (status = rondo_cuda_enter(device_index)) == RONDO_SUCCESS) {
        if (pointer.kind == RONDO_CUDA_MAPPED)
            status = rondo_cuda_result(
                rondo_cuda_driver()->cuMemRetainAllocationHandle(&exported->allocation, (void *) (uintptr_t) pointer.start),
                RONDO_ERR_BUFFER, "cuMemRetainAllocationHandle");
        if (status == RONDO_SUCCESS && to_processes)
            status = export_outside(exported, &pointer);
        rondo_cuda_leave();
    }
    if (status != RONDO_SUCCESS) {
        rondo_cuda_unexport(exported);
        return status;
    }
    memset(handle, 0, sizeof(*handle));
    memcpy(handle->bytes, data, sizeof(*data));
    *result = exported;
    return RONDO_SUCCESS;
}

void rondo_cuda_unexport(struct rondo_cuda_export *exported)
{
    if (exported == NULL)
        return;
    if (exported->handle.kind == RONDO_CUDA_MAPPED && exported->handle.outside)
        rondo_descriptor_offer_withdraw(exported->segments, &exported->handle.as.offer);
    if (exported->allocation != 0)
        (void) rondo_cuda_driver()->cuMemRelease(exported->allocation);
    free(exported);
}

int rondo_cuda_has_access(int device, enum rondo_cuda_kind kind, CUmemoryPool pool, uint64_t address)
{
    const struct rondo_cuda_driver *driver = rondo_cuda_driver();
    CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
    if (kind == RONDO_CUDA_POOL) {
        CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
        return driver->cuMemPoolGetAccess(&flags, pool, &location) == CUDA_SUCCESS &&
               flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    }
    unsigned long long flags = 0;
    return driver->cuMemGetAccess(&flags, &location, (CUdeviceptr) address) == CUDA_SUCCESS &&
           flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
}

int rondo_cuda_reachable(const struct rondo_cuda_export *exported, const struct rondo_gpu_identity *reader)
{
    const struct rondo_cuda_driver *driver = rondo_cuda_driver();
    const struct rondo_cuda_shared *data = &exported->handle;
    CUdevice owner, other;
    int can = 0;
    if (!reader->present)
        return 0;
    if (data->kind != RONDO_CUDA_ALLOCATION)
        return rondo_cuda_has_access(reader->ordinal, (enum rondo_cuda_kind) data->kind, exported->pool, data->pointer);
    if (reader->ordinal == data->device)
        return 1;
    return driver->cuDeviceGet(&owner, data->device) == CUDA_SUCCESS &&
           driver->cuDeviceGet(&other, reader->ordinal) == CUDA_SUCCESS &&
           driver->cuDeviceCanAccessPeer(&can, other, owner) == CUDA_SUCCESS && can;
}

rondo_result_t rondo_cuda_still(const struct rondo_cuda_export *exported)
{
    struct rondo_cuda_pointer pointer;
    if (exported == NULL)
        return RONDO_SUCCESS;
    void *base = (void *) (uintptr_t) exported->handle.pointer;
    rondo_result_t result = rondo_cuda_inspect(base, &pointer);
    if (result != RONDO_SUCCESS)
        return result;
    int same = (uint32_t) pointer.kind == exported->handle.kind && pointer.buffer_id == exported->handle.buffer_id;
    if (same && exported->allocation != 0) {
        CUmemGenericAllocationHandle now = 0;
        CUresult status = rondo_cuda_driver()->cuMemRetainAllocationHandle(&now, base);
        if (status != CUDA_SUCCESS && status != CUDA_ERROR_INVALID_VALUE) /* it says nothing of the memory */
            return rondo_cuda_result(status, RONDO_ERR_DEVICE, "cuMemRetainAllocationHandle");
        if (status == CUDA_SUCCESS)
            (void) rondo_cuda_driver()->cuMemRelease(now);
        same = status == CUDA_SUCCESS && now == exported->allocation;
    }
    if (same)
        return RONDO_SUCCESS;
    return rondo_fail(RONDO_ERR_BUFFER, "%p was freed after it was opened to other ranks%s", base,
                      pointer.kind == RONDO_CUDA_UNKNOWN ? "" : "; what lies there now is another allocation");
}

uint64_t rondo_cuda_handle_bytes(const struct rondo_cuda_handle *handle)
{
    struct rondo_cuda_shared data;
    memcpy(&data, handle->bytes, sizeof(data));
    return data.bytes;
}
