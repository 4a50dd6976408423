/*
 * Windows (lib/connection/window.h), rondo_comm_register and rondo_comm_deregister; also rondo_alloc and rondo_free, whose
 * memory other processes can map. Relies on transport/memory for segments and on lib/connection/exchange.h.
 */
#include "lib/connection/window.h"

#include "lib/connection/copy_engine.h"
#include "lib/connection/exchange.h"
#include "lib/context/handles.h"
#include "lib/base/error.h"
#include "lib/connection/comm_connections.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct offer {
    uint64_t bytes, window, mappable;
    uint64_t offset; /* in the segment */
    union {
        struct rondo_segment_handle segment;
        struct rondo_cuda_handle gpu;
    } memory;
};

static int on_gpu(const struct rondo_runtime *runtime)
{
    return runtime->device_type == RONDO_DEVICE_CUDA;
}

/* ---- memory of the runtime's device ---- */

static rondo_result_t allocate(struct rondo_runtime *runtime, size_t bytes, struct rondo_allocation *allocation)
{
    size_t least = bytes == 0 ? 1 : bytes;
    rondo_result_t result;
    allocation->bytes = bytes;
    if (on_gpu(runtime)) {
        allocation->reserved = least;
        return rondo_cuda_allocate(runtime->device_index, least, &allocation->base);
    }
    result = rondo_segment_allocate(runtime->segments, least, &allocation->segment);
    if (result == RONDO_SUCCESS) {
        allocation->base = allocation->segment->base;
        allocation->reserved = allocation->segment->bytes;
    }
    return result;
}

rondo_result_t rondo_alloc(rondo_t handle, size_t bytes, void **memory)
{
    struct rondo_runtime *runtime;
    rondo_result_t result = rondo_runtime_of(handle, "rondo_alloc", &runtime);
    if (result != RONDO_SUCCESS)
        return result;
    if (memory == NULL)
        return rondo_fail(RONDO_ERR_ARGUMENT, "rondo_alloc: memory is NULL");
    *memory = NULL;
    if (bytes > PTRDIFF_MAX)
        return rondo_fail(RONDO_ERR_ARGUMENT, "rondo_alloc: %zu bytes are more than an object can have", bytes);
    struct rondo_allocation *allocation = calloc(1, sizeof(*allocation));
    if (allocation == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory to describe an allocation");
    result = allocate(runtime, bytes, allocation);
    if (result != RONDO_SUCCESS) {
        free(allocation);
        return rondo_fail(result, "rondo_alloc: %s", rondo_last_error());
    }
    pthread_mutex_lock(&runtime->lock);
    allocation->next = runtime->allocations;
    runtime->allocations = allocation;
    pthread_mutex_unlock(&runtime->lock);
    *memory = allocation->base;
    return RONDO_SUCCESS;
}

static rondo_result_t free_allocation(struct rondo_runtime *runtime, void *memory)
{
    pthread_mutex_lock(&runtime->lock);
    struct rondo_allocation **link = &runtime->allocations;
    while (*link != NULL && (*link)->base != memory)
        link = &(*link)->next;
    struct rondo_allocation *allocation = *link;
    if (allocation != NULL)
        *link = allocation->next;
    pthread_mutex_unlock(&runtime->lock);
    if (allocation == NULL)
        return rondo_fail(RONDO_ERR_BUFFER, "rondo_free: %p is not memory of rondo_alloc on this runtime", memory);
    if (allocation->segment != NULL)
        rondo_segment_release(runtime->segments, allocation->segment);
    else
        rondo_cuda_free(runtime->device_index, allocation->base);
    free(allocation);
    return RONDO_SUCCESS;
}

rondo_result_t rondo_free(rondo_t handle, void *memory)
{
    struct rondo_runtime *runtime;
    rondo_result_t result = rondo_runtime_of(handle, "rondo_free", &runtime);
    return result != RONDO_SUCCESS || memory == NULL ? result : free_allocation(runtime, memory);
}

void rondo_allocations_free(struct rondo_runtime *runtime)
{
    while (runtime->allocations != NULL)
        free_allocation(runtime, runtime->allocations->base);
}

int rondo_is_allocated(struct rondo_runtime *runtime, const char *base, size_t bytes, struct rondo_segment_handle *handle,
                       uint64_t *offset)
{
    int found = 0;
    pthread_mutex_lock(&runtime->lock);
    for (struct rondo_allocation *a = runtime->allocations; a != NULL && !found; a = a->next) {
        const char *start = a->base;
        if (a->segment != NULL && base >= start && base <= start + a->bytes && bytes <= a->bytes - (size_t) (base - start)) {
            rondo_segment_export(a->segment, handle);
            *offset = (uint64_t) (base - start);
            found = 1;
        }
    }
    pthread_mutex_unlock(&runtime->lock);
    return found;
}

/* ---- windows ---- */

/* Checks that [buf, +bytes) can be a buffer: on the host device, all of it is memory of this process. */
static rondo_result_t check_range(const struct rondo_runtime *runtime, void *buf, size_t bytes)
{
    const uintptr_t page = (uintptr_t) sysconf(_SC_PAGESIZE), start = (uintptr_t) buf;
    if (bytes == 0)
        return RONDO_SUCCESS;
    if (buf == NULL)
        return rondo_fail(RONDO_ERR_BUFFER, "rondo_comm_register: buf is NULL for %zu bytes", bytes);
    if (bytes > PTRDIFF_MAX)
        return rondo_fail(RONDO_ERR_ARGUMENT, "rondo_comm_register: %zu bytes are more than an object can have", bytes);
    if (start > UINTPTR_MAX - bytes)
        return rondo_fail(RONDO_ERR_BUFFER, "rondo_comm_register: buf %p + %zu bytes wraps around the address space", buf,
                          bytes);
    /* msync with MS_ASYNC does nothing but find out whether the pages are mapped. */
    const uintptr_t first = start / page * page;
    if (!on_gpu(runtime) && msync((void *) first, start + bytes - first, MS_ASYNC) != 0 && errno == ENOMEM)
        return rondo_fail(RONDO_ERR_BUFFER, "rondo_comm_register: not all of the %zu bytes at %p are memory of this process",
                          bytes, buf);
    return RONDO_SUCCESS;
}

/* Allocates a window number. Runtime lock held. */
static uint32_t take_window(struct rondo_comm *comm)
{
    for (uint32_t window = 1; window < RONDO_WINDOWS_MAX; window++) {
        const struct rondo_registration *user = comm->connections->registrations;
        while (user != NULL && user->window != window)
            user = user->next;
        if (user == NULL)
            return window;
    }
    return 0;
}

/* Maps a member's offer; the result is the address by which this rank accesses it. */
static rondo_result_t import(struct rondo_comm *comm, struct rondo_registration *registration, const struct offer *offer,
                             int rank, char **address)
{
    struct rondo_runtime *runtime = comm->runtime;
    if (on_gpu(runtime))
        return rondo_cuda_import(runtime->device_index, &offer->memory.gpu, &registration->mappings[rank], address);
    rondo_result_t result = rondo_segment_import(runtime->segments, &offer->memory.segment, &registration->imported[rank]);
    if (result != RONDO_SUCCESS)
        return result;
    const struct rondo_segment *segment = registration->imported[rank];
    if (offer->offset > segment->bytes || offer->bytes > segment->bytes - offer->offset)
        return rondo_fail(RONDO_ERR_TRANSPORT, "rank %d offers %llu bytes at %llu of a segment of %zu", rank,
                          (unsigned long long) offer->bytes, (unsigned long long) offer->offset, segment->bytes);
    *address = segment->base + offer->offset;
    return RONDO_SUCCESS;
}

static rondo_result_t map_members(struct rondo_comm *comm, struct rondo_registration *registration, const struct offer *offers)
{
    struct rondo_device *device = comm->runtime->device;
    rondo_result_t result = RONDO_SUCCESS;
    for (int rank = 0; rank < comm->size && result == RONDO_SUCCESS; rank++) {
        const struct offer *offer = &offers[rank];
        char *address = NULL;
        if (rank == comm->rank)
            registration->spans[rank] = (struct rondo_span){registration->base, registration->bytes};
        if (rank == comm->rank || offer->bytes == 0)
            continue;
        if (offer->window >= RONDO_WINDOWS_MAX)
            return rondo_fail(RONDO_ERR_TRANSPORT, "rank %d offers window %llu", rank, (unsigned long long) offer->window);
        result = import(comm, registration, offer, rank, &address);
        if (result == RONDO_SUCCESS)
            registration->spans[rank] = (struct rondo_span){address, offer->bytes};
        if (result == RONDO_SUCCESS)
            result =
                device->kind->upload(device, &comm->connections->windows[(size_t) rank * RONDO_WINDOWS_MAX + offer->window],
                                     &address, sizeof(address));
    }
    return result;
}

/* Whether all members' GPUs can access this rank's memory. A member of the same process uses its address; another imports it.
 */
static int members_reach(const struct rondo_comm *comm, const struct rondo_cuda_export *exported)
{
    const struct rondo_peer *peers = comm->runtime->peers, *self = &peers[comm->runtime->rank];
    for (int i = 0; i < comm->size; i++) {
        const struct rondo_peer *peer = &peers[comm->members[i]];
        int here = memcmp(peer->process, self->process, sizeof(self->process)) == 0;
        if (here ? !rondo_cuda_reachable(exported, &peer->gpu) : !rondo_gpu_reaches(&peer->gpu, &self->gpu))
            return 0;
    }
    return 1;
}

static int offer_gpu_memory(struct rondo_comm *comm, struct rondo_registration *registration, struct offer *offer)
{
    struct rondo_runtime *runtime = comm->runtime;
    const struct rondo_peer *self = &runtime->peers[runtime->rank];
    int to_processes = 0;
    for (int i = 0; i < comm->size; i++) {
        const struct rondo_peer *peer = &runtime->peers[comm->members[i]];
        if (!peer->gpu.present)
            return 0; /* a rank on the host device cannot access GPU memory */
        to_processes |= memcmp(peer->process, self->process, sizeof(self->process)) != 0;
    }
    if (rondo_cuda_export(runtime->segments, runtime->device_index, registration->base, registration->bytes, to_processes,
                          &registration->exported, &offer->memory.gpu) != RONDO_SUCCESS) {
        rondo_log(RONDO_LOG_INFO, runtime->rank, "a buffer is not opened to other ranks: %s", rondo_last_error());
        return 0;
    }
    return members_reach(comm, registration->exported);
}

/* Fills in this rank's offer. Returns whether all other members can map it. */
static int make_offer(struct rondo_comm *comm, struct rondo_registration *registration, struct offer *offer)
{
    offer->bytes = registration->bytes;
    offer->window = registration->window;
    if (comm->same_process || offer->bytes == 0)
        return 1;
    if (offer->window == 0 || !comm->same_host)
        return 0;
    if (on_gpu(comm->runtime))
        return offer_gpu_memory(comm, registration, offer);
    for (int i = 0; i < comm->size; i++)
        if (comm->runtime->peers[comm->members[i]].gpu.present)
            return 0;
    return rondo_is_allocated(comm->runtime, registration->base, registration->bytes, &offer->memory.segment, &offer->offset);
}

rondo_result_t rondo_window_open(struct rondo_comm *comm, char *base, size_t bytes, struct rondo_registration **result)
{
    struct rondo_registration *registration = calloc(1, sizeof(*registration));
    struct offer mine, *offers = calloc((size_t) comm->size, sizeof(*offers));
    rondo_result_t status = RONDO_SUCCESS;
    memset(&mine, 0, sizeof(mine));
    if (registration != NULL) {
        registration->imported = calloc((size_t) comm->size, sizeof(struct rondo_segment *));
        registration->mappings = calloc((size_t) comm->size, sizeof(struct rondo_cuda_mapping *));
        registration->spans = calloc((size_t) comm->size, sizeof(*registration->spans));
    }
    if (registration == NULL || offers == NULL || registration->imported == NULL || registration->mappings == NULL ||
        registration->spans == NULL) {
        status = rondo_fail(RONDO_ERR_MEMORY, "no memory to register a buffer");
        goto fail;
    }
    registration->base = base;
    registration->bytes = bytes;
    /* It is in the list at once, which reserves its window. rondo_window_find ignores it until it is usable, on which all
     * members agree. */
    pthread_mutex_lock(&comm->runtime->lock);
    registration->window = take_window(comm);
    registration->next = comm->connections->registrations;
    __atomic_store_n(&comm->connections->registrations, registration, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&comm->runtime->lock);
    mine.mappable = (uint64_t) make_offer(comm, registration, &mine);
    status = rondo_exchange(comm, "register", &mine, sizeof(mine), offers);
    if (status != RONDO_SUCCESS)
        goto fail;
    int usable = 1;
    for (int rank = 0; rank < comm->size; rank++)
        usable &= offers[rank].mappable != 0;
    if (usable && !comm->same_process)
        status = map_members(comm, registration, offers);
    if (status != RONDO_SUCCESS)
        goto fail;
    pthread_mutex_lock(&comm->runtime->lock);
    registration->usable = usable;
    pthread_mutex_unlock(&comm->runtime->lock);
    free(offers);
    *result = registration;
    return RONDO_SUCCESS;

fail:
    status = rondo_comm_conclude(comm, "register", status); /* at once, because the other members wait */
    free(offers);
    if (registration != NULL)
        rondo_window_close(comm, registration);
    return status;
}

void rondo_window_close(struct rondo_comm *comm, struct rondo_registration *registration)
{
    pthread_mutex_lock(&comm->runtime->lock);
    for (struct rondo_registration **link = &comm->connections->registrations; *link != NULL; link = &(*link)->next)
        if (*link == registration) {
            *link = registration->next;
            break;
        }
    pthread_mutex_unlock(&comm->runtime->lock);
    for (int rank = 0; registration->imported != NULL && rank < comm->size; rank++)
        if (registration->imported[rank] != NULL)
            rondo_segment_release(comm->runtime->segments, registration->imported[rank]);
    for (int rank = 0; registration->mappings != NULL && rank < comm->size; rank++)
        rondo_cuda_release(registration->mappings[rank]);
    rondo_cuda_unexport(registration->exported);
    free(registration->spans);
    free(registration->mappings);
    free(registration->imported);
    free(registration);
}

static int holds(const struct rondo_registration *registration, const char *base, size_t bytes)
{
    return base >= registration->base && base <= registration->base + registration->bytes &&
           bytes <= registration->bytes - (size_t) (base - registration->base);
}

rondo_result_t rondo_window_still(const struct rondo_registration *registration)
{
    return registration == NULL || !registration->usable ? RONDO_SUCCESS : rondo_cuda_still(registration->exported);
}

rondo_result_t rondo_windows_still(const struct rondo_comm *comm, const char *base, size_t bytes)
{
    rondo_result_t result = RONDO_SUCCESS;
    if (!on_gpu(comm->runtime) || __atomic_load_n(&comm->connections->registrations, __ATOMIC_RELAXED) == NULL)
        return RONDO_SUCCESS;
    pthread_mutex_lock(&comm->runtime->lock);
    const struct rondo_registration *r = comm->connections->registrations;
    while (r != NULL && !(r->by_user && r->usable && holds(r, base, bytes)))
        r = r->next;
    result = rondo_window_still(r);
    pthread_mutex_unlock(&comm->runtime->lock);
    return result;
}

int rondo_window_find(const struct rondo_comm *comm, const char *base, size_t bytes, uint64_t window[2])
{
    int found = 0;
    if (__atomic_load_n(&comm->connections->registrations, __ATOMIC_RELAXED) == NULL)
        return 0; /* without registrations, no lock is taken */
    pthread_mutex_lock(&comm->runtime->lock);
    for (const struct rondo_registration *r = comm->connections->registrations; r != NULL && !found; r = r->next)
        if (r->by_user && r->usable && holds(r, base, bytes)) {
            window[0] = r->window;
            window[1] = (uint64_t) (base - r->base);
            found = 1;
        }
    pthread_mutex_unlock(&comm->runtime->lock);
    return found;
}

int rondo_window_spans(const struct rondo_comm *comm, const char *base, size_t bytes, const struct rondo_span **spans,
                       size_t *offset)
{
    pthread_mutex_lock(&comm->runtime->lock);
    const struct rondo_registration *r = comm->connections->registrations;
    while (r != NULL && !(r->by_user && r->usable && holds(r, base, bytes)))
        r = r->next;
    if (r != NULL) {
        *spans = r->spans;
        *offset = (size_t) (base - r->base);
    }
    pthread_mutex_unlock(&comm->runtime->lock);
    return r != NULL;
}

rondo_result_t rondo_comm_register(rondo_comm_t handle, void *buf, size_t bytes)
{
    struct rondo_comm *comm;
    struct rondo_registration *registration;
    rondo_result_t result = rondo_comm_of(handle, "rondo_comm_register", &comm), agreed;
    if (result == RONDO_SUCCESS)
        result = check_range(comm->runtime, buf, bytes);
    if (result != RONDO_SUCCESS)
        return result;
    int refused;
    if (rondo_comm_failure(comm) != RONDO_SUCCESS)
        return rondo_fail(rondo_comm_failure(comm), "rondo_comm_register: %s", comm->failure);
    result = rondo_copy_engine_open(comm);
    if (result != RONDO_SUCCESS)
        return result;
    result = rondo_window_open(comm, buf, bytes, &registration);
    if (result == RONDO_SUCCESS) { /* after the exchange, in which the peers needed this rank's part */
        result = rondo_buffer_check(comm->runtime->device_index, buf, bytes, "rondo_comm_register");
        if (result != RONDO_SUCCESS)
            rondo_window_close(comm, registration);
    }
    /* All members must learn that one cannot map a peer's memory, because the registrations decide how calls are executed. */
    const int known = comm->same_process || (result != RONDO_SUCCESS && rondo_comm_failure(comm) != RONDO_SUCCESS);
    agreed = known ? result : rondo_agree(comm, "rondo_comm_register", result, &refused);
    if (result == RONDO_SUCCESS && agreed != RONDO_SUCCESS)
        rondo_window_close(comm, registration);
    if (agreed != RONDO_SUCCESS)
        return agreed;
    pthread_mutex_lock(&comm->runtime->lock);
    registration->by_user = 1;
    pthread_mutex_unlock(&comm->runtime->lock);
    if (!registration->usable)
        rondo_log(RONDO_LOG_INFO, comm->runtime->rank, "a registered buffer of %zu bytes is not reachable by all ranks (%s)",
                  bytes,
                  on_gpu(comm->runtime) ? "it must be memory of this GPU, of cudaMalloc, and so for all ranks" : "rondo_alloc");
    return result;
}

rondo_result_t rondo_comm_deregister(rondo_comm_t handle, void *buf)
{
    struct rondo_comm *comm;
    rondo_result_t result = rondo_comm_of(handle, "rondo_comm_deregister", &comm);
    if (result != RONDO_SUCCESS)
        return result;
    pthread_mutex_lock(&comm->runtime->lock);
    struct rondo_registration *registration = comm->connections->registrations;
    while (registration != NULL && !(registration->by_user && registration->base == buf))
        registration = registration->next;
    pthread_mutex_unlock(&comm->runtime->lock);
    if (registration == NULL)
        return rondo_fail(RONDO_ERR_BUFFER, "rondo_comm_deregister: %p is not registered on this communicator", buf);
    rondo_window_close(comm, registration);
    return RONDO_SUCCESS;
}
