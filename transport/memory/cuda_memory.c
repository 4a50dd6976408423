/* See transport/memory/cuda_memory.h. Mappings of other processes' memory are the process's, as they are in CUDA: one list,
 * whose lock is held for no driver call, because unmapping may wait for kernels that wait for other ranks of the process. */
#include "transport/memory/cuda_memory.h"

#include "lib/base/thread.h"
#include "transport/memory/cuda_pointer.h"
#include "lib/base/error.h"
#include "transport/memory/segment.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct handle {
    unsigned char process[RONDO_PROCESS_TOKEN_BYTES]; /* the exporter's */
    uint64_t buffer_id;                               /* never the same for two allocations of that process */
    uint64_t pointer, bytes;                          /* there */
    uint64_t offset, whole;                           /* in the allocation, and its bytes */
    uint32_t kind;                                    /* enum rondo_cuda_kind */
    int32_t device;                                   /* there */
    uint64_t outside;                                 /* what follows is valid */
    union {
        CUipcMemHandle ipc;
        struct rondo_descriptor_offer offer;
    } as;
};
_Static_assert(sizeof(struct handle) <= sizeof(struct rondo_cuda_handle), "a handle must fit");

struct rondo_cuda_export {
    struct rondo_segments *segments;
    struct handle handle;
    CUmemoryPool pool;
    CUmemGenericAllocationHandle allocation; /* of cuMemMap memory: held, so that its number is not used again */
};

struct rondo_cuda_mapping {
    struct rondo_cuda_mapping *next;
    struct handle handle; /* by which it was made */
    int device;
    int count;
    CUdeviceptr base;
    CUmemGenericAllocationHandle allocation; /* of cuMemMap memory */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rondo_cuda_mapping *mappings;
/* Taken before the other. The driver takes an IPC handle for one that is mapped (CUDA_ERROR_ALREADY_MAPPED) while another
 * thread opens or closes it, so that is done by one thread at a time, and the list says what is open. */
static pthread_mutex_t opening_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- memory ---- */

rondo_result_t rondo_cuda_allocate(int device_index, size_t bytes, char **memory)
{
    CUdeviceptr pointer = 0;
    char what[96];
    *memory = NULL;
    rondo_result_t result = rondo_cuda_enter(device_index);
    if (result != RONDO_SUCCESS)
        return result;
    CUresult status = rondo_cuda_driver()->cuMemAlloc(&pointer, bytes == 0 ? 1 : bytes);
    rondo_cuda_leave();
    snprintf(what, sizeof(what), "no %zu bytes of memory on GPU %d", bytes, device_index);
    *memory = (char *) (uintptr_t) pointer;
    return rondo_cuda_result(status, status == CUDA_ERROR_OUT_OF_MEMORY ? RONDO_ERR_MEMORY : RONDO_ERR_DEVICE, what);
}

void rondo_cuda_free(int device_index, void *memory)
{
    if (memory == NULL || rondo_cuda_enter(device_index) != RONDO_SUCCESS)
        return;
    (void) rondo_cuda_driver()->cuMemFree((CUdeviceptr) (uintptr_t) memory);
    rondo_cuda_leave();
}

/* The device, entered, has one stream for zeros, which the process keeps. */
static rondo_result_t zero_stream(int device_index, CUstream *stream)
{
    static CUstream streams[RONDO_CUDA_DEVICES_MAX];
    static pthread_mutex_t stream_lock = PTHREAD_MUTEX_INITIALIZER;
    CUresult status = CUDA_SUCCESS;
    pthread_mutex_lock(&stream_lock);
    if (streams[device_index] == NULL)
        status = rondo_cuda_driver()->cuStreamCreate(&streams[device_index], CU_STREAM_NON_BLOCKING);
    *stream = streams[device_index];
    pthread_mutex_unlock(&stream_lock);
    return rondo_cuda_result(status, RONDO_ERR_DEVICE, "a stream");
}

rondo_result_t rondo_cuda_zero(int device_index, void *memory, size_t bytes)
{
    CUstream stream;
    rondo_result_t result = rondo_cuda_enter(device_index);
    if (result != RONDO_SUCCESS)
        return result;
    const struct rondo_cuda_driver *driver = rondo_cuda_driver();
    result = zero_stream(device_index, &stream);
    if (result == RONDO_SUCCESS)
        result = rondo_cuda_result(driver->cuMemsetD8Async((CUdeviceptr) (uintptr_t) memory, 0, bytes, stream),
                                   RONDO_ERR_DEVICE, "zeroing memory of the GPU");
    if (result == RONDO_SUCCESS)
        result = rondo_cuda_result(driver->cuStreamSynchronize(stream), RONDO_ERR_DEVICE, "zeroing memory of the GPU");
    rondo_cuda_leave();
    return result;
}

/* ---- the owner's side ---- */

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
    struct handle *data = &exported->handle;
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

/* Whether the device may load from and store to memory of this process that its owner has opened to it, or not. */
static int has_access(int device, enum rondo_cuda_kind kind, CUmemoryPool pool, uint64_t address)
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
    const struct handle *data = &exported->handle;
    CUdevice owner, other;
    int can = 0;
    if (!reader->present)
        return 0;
    if (data->kind != RONDO_CUDA_ALLOCATION)
        return has_access(reader->ordinal, (enum rondo_cuda_kind) data->kind, exported->pool, data->pointer);
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
        same = rondo_cuda_driver()->cuMemRetainAllocationHandle(&now, base) == CUDA_SUCCESS;
        if (same)
            (void) rondo_cuda_driver()->cuMemRelease(now);
        same = same && now == exported->allocation;
    }
    if (same)
        return RONDO_SUCCESS;
    return rondo_fail(RONDO_ERR_BUFFER, "%p was freed after it was opened to other ranks%s", base,
                      pointer.kind == RONDO_CUDA_UNKNOWN ? "" : "; what lies there now is another allocation");
}

/* ---- the importer's side ---- */

/* Between GPUs of one process. */
static rondo_result_t enable_peer(int device_index, int owner)
{
    rondo_result_t result = rondo_cuda_enter(owner); /* makes its context, if this process has none yet */
    if (result != RONDO_SUCCESS)
        return result;
    rondo_cuda_leave();
    result = rondo_cuda_enter(device_index);
    if (result != RONDO_SUCCESS)
        return result;
    CUresult status = rondo_cuda_driver()->cuCtxEnablePeerAccess(rondo_cuda_context(owner), 0);
    rondo_cuda_leave();
    if (status == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
        status = CUDA_SUCCESS;
    char what[96];
    snprintf(what, sizeof(what), "access from GPU %d to GPU %d", device_index, owner);
    return rondo_cuda_result(status, RONDO_ERR_TRANSPORT, what);
}

static rondo_result_t use_here(int device_index, const struct handle *data, char **pointer)
{
    struct rondo_cuda_pointer now;
    rondo_result_t result = RONDO_SUCCESS;
    if (data->device != device_index && data->kind == RONDO_CUDA_ALLOCATION) {
        result = enable_peer(device_index, data->device);
    } else if (data->device != device_index) {
        result = rondo_cuda_inspect((void *) (uintptr_t) data->pointer, &now);
        if (result == RONDO_SUCCESS && !has_access(device_index, now.kind, now.pool, data->pointer))
            result = rondo_fail(RONDO_ERR_TRANSPORT, "%p of GPU %d has not been opened to GPU %d (cuMemSetAccess)",
                                (void *) (uintptr_t) data->pointer, data->device, device_index);
    }
    *pointer = (char *) (uintptr_t) data->pointer;
    return result;
}

/* In the device's context. Maps what the descriptor stands for, and takes it. */
static rondo_result_t map_descriptor(struct rondo_cuda_mapping *mapping, int fd)
{
    const struct rondo_cuda_driver *driver = rondo_cuda_driver();
    size_t whole = mapping->handle.whole;
    CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = mapping->device},
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUdeviceptr base = 0;
    int mapped = 0;
    const char *what = "cuMemImportFromShareableHandle";
    CUresult status = driver->cuMemImportFromShareableHandle(&mapping->allocation, (void *) (uintptr_t) fd,
                                                             CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    close(fd);
    if (status != CUDA_SUCCESS) {
        mapping->allocation = 0;
    } else {
        what = "cuMemAddressReserve";
        status = driver->cuMemAddressReserve(&base, whole, 0, 0, 0);
    }
    if (status == CUDA_SUCCESS) {
        what = "cuMemMap";
        status = driver->cuMemMap(base, whole, 0, mapping->allocation, 0);
        mapped = status == CUDA_SUCCESS;
    }
    if (status == CUDA_SUCCESS) {
        what = "cuMemSetAccess";
        status = driver->cuMemSetAccess(base, whole, &access, 1);
    }
    if (status == CUDA_SUCCESS) {
        mapping->base = base;
        return RONDO_SUCCESS;
    }
    if (mapped)
        (void) driver->cuMemUnmap(base, whole);
    if (base != 0)
        (void) driver->cuMemAddressFree(base, whole);
    if (mapping->allocation != 0)
        (void) driver->cuMemRelease(mapping->allocation);
    return rondo_cuda_result(status, RONDO_ERR_TRANSPORT, what);
}

static rondo_result_t open_mapping(struct rondo_cuda_mapping *mapping)
{
    const struct handle *data = &mapping->handle;
    rondo_result_t result = RONDO_SUCCESS;
    int fd = -1;
    if (data->kind == RONDO_CUDA_MAPPED)
        result = rondo_descriptor_offer_take(&data->as.offer, &fd);
    if (result != RONDO_SUCCESS)
        return result;
    result = rondo_cuda_enter(mapping->device);
    if (result != RONDO_SUCCESS) {
        if (fd >= 0)
            close(fd);
        return result;
    }
    if (fd >= 0)
        result = map_descriptor(mapping, fd);
    else
        result = rondo_cuda_result(
            rondo_cuda_driver()->cuIpcOpenMemHandle(&mapping->base, data->as.ipc, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
            RONDO_ERR_TRANSPORT, "cuIpcOpenMemHandle");
    rondo_cuda_leave();
    return result;
}

static void close_mapping(struct rondo_cuda_mapping *mapping)
{
    const struct rondo_cuda_driver *driver = rondo_cuda_driver();
    if (rondo_cuda_enter(mapping->device) != RONDO_SUCCESS) {
        free(mapping);
        return;
    }
    if (mapping->allocation != 0) {
        (void) driver->cuMemUnmap(mapping->base, mapping->handle.whole);
        (void) driver->cuMemAddressFree(mapping->base, mapping->handle.whole);
        (void) driver->cuMemRelease(mapping->allocation);
    } else {
        (void) driver->cuIpcCloseMemHandle(mapping->base);
    }
    rondo_cuda_leave();
    free(mapping);
}

/* Whether two handles are of one allocation. Where the driver gives no number, each export has a mapping of its own. */
static int same_allocation(const struct handle *a, const struct handle *b)
{
    return a->kind == b->kind && a->buffer_id == b->buffer_id && a->whole == b->whole &&
           a->pointer - a->offset == b->pointer - b->offset && memcmp(a->process, b->process, sizeof(a->process)) == 0 &&
           (a->buffer_id != 0 || memcmp(&a->as, &b->as, sizeof(a->as)) == 0);
}

/* Under the lock: the mapping of that allocation, counted once more. */
static struct rondo_cuda_mapping *find(int device_index, const struct handle *data)
{
    for (struct rondo_cuda_mapping *mapping = mappings; mapping != NULL; mapping = mapping->next)
        if (mapping->device == device_index && same_allocation(&mapping->handle, data)) {
            mapping->count++;
            return mapping;
        }
    return NULL;
}

/* Under the lock. The driver would answer the same IPC handle with the mapping it has, which is of memory that was freed. */
static rondo_result_t refuse_stale(int device_index, const struct handle *data)
{
    for (const struct rondo_cuda_mapping *mapping = mappings; mapping != NULL; mapping = mapping->next)
        if (mapping->device == device_index && data->kind == RONDO_CUDA_ALLOCATION && mapping->handle.kind == data->kind &&
            memcmp(mapping->handle.process, data->process, sizeof(data->process)) == 0 &&
            memcmp(&mapping->handle.as.ipc, &data->as.ipc, sizeof(data->as.ipc)) == 0)
            return rondo_fail(RONDO_ERR_BUFFER,
                              "another rank's memory at %p was freed and allocated again while it was open to this rank",
                              (void *) (uintptr_t) data->pointer);
    return RONDO_SUCCESS;
}

static int is_opened_alone(const struct handle *data)
{
    return data->kind != RONDO_CUDA_MAPPED; /* which waits for its owner to send it */
}

/* Under opening_lock, where that is needed. */
static rondo_result_t find_or_open(int device_index, const struct handle *data, struct rondo_cuda_mapping **result)
{
    pthread_mutex_lock(&lock);
    struct rondo_cuda_mapping *known = find(device_index, data);
    rondo_result_t status = known == NULL ? refuse_stale(device_index, data) : RONDO_SUCCESS;
    pthread_mutex_unlock(&lock);
    *result = known;
    if (known != NULL || status != RONDO_SUCCESS)
        return status;
    struct rondo_cuda_mapping *mapping = calloc(1, sizeof(*mapping));
    if (mapping == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for an imported buffer");
    mapping->handle = *data;
    mapping->device = device_index;
    mapping->count = 1;
    status = open_mapping(mapping);
    if (status != RONDO_SUCCESS) {
        free(mapping);
        return status;
    }
    pthread_mutex_lock(&lock);
    known = find(device_index, data); /* another thread may have opened it meanwhile */
    if (known == NULL) {
        mapping->next = mappings;
        mappings = mapping;
    }
    pthread_mutex_unlock(&lock);
    *result = known != NULL ? known : mapping;
    if (known != NULL)
        close_mapping(mapping);
    return RONDO_SUCCESS;
}

static rondo_result_t import_outside(int device_index, const struct handle *data, struct rondo_cuda_mapping **result)
{
    const int alone = is_opened_alone(data);
    if (alone)
        pthread_mutex_lock(&opening_lock);
    rondo_result_t status = find_or_open(device_index, data, result);
    if (alone)
        pthread_mutex_unlock(&opening_lock);
    return status;
}

rondo_result_t rondo_cuda_import(int device_index, const struct rondo_cuda_handle *handle, struct rondo_cuda_mapping **mapping,
                                 char **pointer)
{
    struct handle data;
    unsigned char self[RONDO_PROCESS_TOKEN_BYTES];
    *mapping = NULL;
    *pointer = NULL;
    memcpy(&data, handle->bytes, sizeof(data));
    if (data.offset > data.whole || data.bytes > data.whole - data.offset || data.pointer < data.offset)
        return rondo_fail(RONDO_ERR_ARGUMENT, "not a handle of GPU memory: %llu bytes at %llu of %llu",
                          (unsigned long long) data.bytes, (unsigned long long) data.offset, (unsigned long long) data.whole);
    rondo_result_t result = rondo_process_token(self);
    if (result != RONDO_SUCCESS)
        return result;
    if (memcmp(self, data.process, sizeof(self)) == 0)
        return use_here(device_index, &data, pointer);
    if (!data.outside)
        return rondo_fail(RONDO_ERR_TRANSPORT, "memory of another process's GPU was exported to its own ranks only");
    result = import_outside(device_index, &data, mapping);
    if (result == RONDO_SUCCESS)
        *pointer = (char *) (uintptr_t) ((*mapping)->base + data.offset);
    return result;
}

uint64_t rondo_cuda_handle_bytes(const struct rondo_cuda_handle *handle)
{
    struct handle data;
    memcpy(&data, handle->bytes, sizeof(data));
    return data.bytes;
}

/* The last one takes it off the list. */
static int let_go(struct rondo_cuda_mapping *mapping)
{
    pthread_mutex_lock(&lock);
    int last = --mapping->count == 0;
    for (struct rondo_cuda_mapping **link = &mappings; last && *link != NULL; link = &(*link)->next)
        if (*link == mapping) {
            *link = mapping->next;
            break;
        }
    pthread_mutex_unlock(&lock);
    return last;
}

void rondo_cuda_release(struct rondo_cuda_mapping *mapping)
{
    if (mapping == NULL)
        return;
    const int alone = is_opened_alone(&mapping->handle);
    if (alone)
        pthread_mutex_lock(&opening_lock);
    if (let_go(mapping))
        close_mapping(mapping);
    if (alone)
        pthread_mutex_unlock(&opening_lock);
}

int rondo_cuda_mappings(void)
{
    int count = 0;
    pthread_mutex_lock(&lock);
    for (const struct rondo_cuda_mapping *mapping = mappings; mapping != NULL; mapping = mapping->next)
        count++;
    pthread_mutex_unlock(&lock);
    return count;
}
