/* The importer's side of shared GPU memory (transport/memory/cuda_memory.h). Mappings of other processes' memory are the
 * process's, as they are in CUDA: one list, whose lock is held for no driver call, because unmapping may wait for kernels that
 * wait for other ranks of the process. */
#include "transport/memory/cuda_shared.h"

#include "lib/base/error.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct rondo_cuda_mapping {
    struct rondo_cuda_mapping *next;
    struct rondo_cuda_shared handle; /* by which it was made */
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

static rondo_result_t use_here(int device_index, const struct rondo_cuda_shared *data, char **pointer)
{
    struct rondo_cuda_pointer now;
    rondo_result_t result = RONDO_SUCCESS;
    if (data->device != device_index && data->kind == RONDO_CUDA_ALLOCATION) {
        result = enable_peer(device_index, data->device);
    } else if (data->device != device_index) {
        result = rondo_cuda_inspect((void *) (uintptr_t) data->pointer, &now);
        if (result == RONDO_SUCCESS && !rondo_cuda_has_access(device_index, now.kind, now.pool, data->pointer))
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
    const struct rondo_cuda_shared *data = &mapping->handle;
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
    const int entered = rondo_cuda_enter(mapping->device) == RONDO_SUCCESS; /* or not: it is closed all the same */
    if (mapping->allocation != 0) {
        (void) driver->cuMemUnmap(mapping->base, mapping->handle.whole);
        (void) driver->cuMemAddressFree(mapping->base, mapping->handle.whole);
        (void) driver->cuMemRelease(mapping->allocation);
    } else {
        (void) driver->cuIpcCloseMemHandle(mapping->base);
    }
    if (entered)
        rondo_cuda_leave();
    free(mapping);
}

/* Whether two handles are of one allocation. Where the driver gives no number, each export has a mapping of its own. */
static int same_allocation(const struct rondo_cuda_shared *a, const struct rondo_cuda_shared *b)
{
    return a->kind == b->kind && a->buffer_id == b->buffer_id && a->whole == b->whole &&
           a->pointer - a->offset == b->pointer - b->offset && memcmp(a->process, b->process, sizeof(a->process)) == 0 &&
           (a->buffer_id != 0 || memcmp(&a->as, &b->as, sizeof(a->as)) == 0);
}

/* The mapping of that allocation, counted once more. Under the lock. */
static struct rondo_cuda_mapping *find(int device_index, const struct rondo_cuda_shared *data)
{
    for (struct rondo_cuda_mapping *mapping = mappings; mapping != NULL; mapping = mapping->next)
        if (mapping->device == device_index && same_allocation(&mapping->handle, data)) {
            mapping->count++;
            return mapping;
        }
    return NULL;
}

/* Under the lock. The driver would answer the same IPC handle with the mapping it has, which is of memory that was freed. */
static rondo_result_t refuse_stale(int device_index, const struct rondo_cuda_shared *data)
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

static int is_opened_alone(const struct rondo_cuda_shared *data)
{
    return data->kind != RONDO_CUDA_MAPPED; /* whose import waits for the owner to send a descriptor */
}

/* Under opening_lock, if is_opened_alone. */
static rondo_result_t find_or_open(int device_index, const struct rondo_cuda_shared *data, struct rondo_cuda_mapping **result)
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

static rondo_result_t import_outside(int device_index, const struct rondo_cuda_shared *data, struct rondo_cuda_mapping **result)
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
    struct rondo_cuda_shared data;
    unsigned char self[RONDO_PROCESS_TOKEN_BYTES];
    *mapping = NULL;
    *pointer = NULL;
    memcpy(&data, handle->bytes, sizeof(data));
    if (data.offset > data.whole || data.bytes > data.whole - data.offset || data.pointer < data.offset)
        return rondo_fail(RONDO_ERR_TRANSPORT, "not a handle of GPU memory: %llu bytes at %llu of %llu",
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

/* Returns whether this was the last use, and then takes the mapping off the list. */
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
