/*
 * GPU memory that ended communicators leave to the next ones. Freeing would wait for all that runs on the GPU, and launches
 * wait for it meanwhile: a communicator that ends in the background would then keep a rank from launching what another rank's
 * kernel, on the same GPU or on one that waits in turn, already waits for. No program could prevent that, because it does not
 * see when its communicators end.
 */
#include "compat/nccl/shim.h"

#include <stdlib.h>

#define SPARE_MOST ((size_t) 4 << 20) /* larger memory is freed: a program may need it, and takes it by graphs alone */

struct spare {
    struct spare *next;
    void *memory;
    enum rondo_nccl_memory kind;
    size_t bytes;
    int device;
};

static struct {
    pthread_mutex_t lock;
    struct spare *first;
} spares = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Takes out the first one of the GPU that has so many bytes, and at most twice as many; any of that GPU for 0 bytes. */
static struct spare *take(int device, enum rondo_nccl_memory kind, size_t bytes)
{
    pthread_mutex_lock(&spares.lock);
    struct spare **link = &spares.first, *found;
    while ((found = *link) != NULL && (found->device != device || (bytes != 0 && (found->kind != kind || found->bytes < bytes ||
                                                                                  found->bytes / 2 > bytes))))
        link = &found->next;
    if (found != NULL)
        *link = found->next;
    pthread_mutex_unlock(&spares.lock);
    return found;
}

static cudaError_t allocate(enum rondo_nccl_memory kind, size_t bytes, void **memory)
{
    return kind == RONDO_NCCL_MANAGED ? cudaMallocManaged(memory, bytes, cudaMemAttachGlobal) : cudaMalloc(memory, bytes);
}

cudaError_t rondo_nccl_obtain(int device, enum rondo_nccl_memory kind, size_t bytes, void **memory)
{
    int current = device;
    bytes = bytes > 0 ? bytes : 1;
    struct spare *spare = take(device, kind, bytes);
    if (spare != NULL) {
        *memory = spare->memory;
        free(spare);
        return cudaSuccess;
    }
    cudaGetDevice(&current);
    cudaSetDevice(device);
    cudaError_t error = allocate(kind, bytes, memory);
    while (error == cudaErrorMemoryAllocation && (spare = take(device, kind, 0)) != NULL) {
        cudaFree(spare->memory);
        free(spare);
        cudaGetLastError();
        error = allocate(kind, bytes, memory);
    }
    cudaSetDevice(current);
    return error;
}

void rondo_nccl_leave(int device, enum rondo_nccl_memory kind, size_t bytes, void *memory)
{
    struct spare *spare = bytes <= SPARE_MOST ? calloc(1, sizeof(*spare)) : NULL;
    if (spare == NULL) {
        cudaFree(memory);
        return;
    }
    *spare = (struct spare){.memory = memory, .kind = kind, .bytes = bytes > 0 ? bytes : 1, .device = device};
    pthread_mutex_lock(&spares.lock);
    spare->next = spares.first;
    spares.first = spare;
    pthread_mutex_unlock(&spares.lock);
}

cudaError_t rondo_nccl_retain(struct ncclComm *comm, enum rondo_nccl_memory kind, size_t bytes, void **memory)
{
    struct rondo_nccl_retained *retained = calloc(1, sizeof(*retained));
    cudaError_t error = cudaErrorMemoryAllocation;
    *memory = NULL;
    if (retained == NULL || (error = rondo_nccl_obtain(comm->device, kind, bytes, memory)) != cudaSuccess) {
        free(retained);
        return error;
    }
    retained->memory = *memory;
    retained->kind = kind;
    retained->bytes = bytes;
    retained->next = __atomic_load_n(&comm->retained, __ATOMIC_RELAXED);
    /* Release: what was written to the entry comes before it. The list is only added to until the communicator is deleted. */
    while (!__atomic_compare_exchange_n(&comm->retained, &retained->next, retained, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ;
    return cudaSuccess;
}

void rondo_nccl_leave_retained(struct ncclComm *comm)
{
    while (comm->retained != NULL) {
        struct rondo_nccl_retained *retained = comm->retained;
        comm->retained = retained->next;
        rondo_nccl_leave(comm->device, retained->kind, retained->bytes, retained->memory);
        free(retained);
    }
}
