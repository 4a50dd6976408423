/* See transport/memory/cuda_pointer.h; and, because it asks the same, rondo_buffer_check of transport/memory/cuda_memory.h. */
#include "transport/memory/cuda_pointer.h"

#include "transport/memory/cuda_memory.h"
#include "lib/base/error.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>

/* The answers to one question about an address; what the driver has no answer to stays 0. */
struct answers {
    CUmemorytype type;
    unsigned is_managed, legacy_ipc;
    int device;
    CUdeviceptr on_device, start;
    size_t size;
    unsigned long long buffer_id, handle_types;
    CUmemoryPool pool;
};

static CUresult ask(__typeof__(cuPointerGetAttributes) *query, const void *address, struct answers *answers)
{
    CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                   CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                   CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
                                   CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                   CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                                   CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                                   CU_POINTER_ATTRIBUTE_RANGE_SIZE,
                                   CU_POINTER_ATTRIBUTE_BUFFER_ID,
                                   CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES,
                                   CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE};
    void *values[] = {&answers->type,  &answers->is_managed, &answers->legacy_ipc, &answers->device,       &answers->on_device,
                      &answers->start, &answers->size,       &answers->buffer_id,  &answers->handle_types, &answers->pool};
    memset(answers, 0, sizeof(*answers));
    return query(sizeof(names) / sizeof(names[0]), names, values, (CUdeviceptr) (uintptr_t) address);
}

static enum rondo_cuda_kind classify(const struct answers *answers)
{
    if (answers->type == 0)
        return RONDO_CUDA_UNKNOWN;
    if (answers->is_managed)
        return RONDO_CUDA_MANAGED;
    if (answers->type == CU_MEMORYTYPE_HOST)
        return RONDO_CUDA_HOST;
    if (answers->pool != NULL)
        return RONDO_CUDA_POOL;
    return answers->legacy_ipc ? RONDO_CUDA_ALLOCATION : RONDO_CUDA_MAPPED;
}

rondo_result_t rondo_cuda_inspect(const void *address, struct rondo_cuda_pointer *pointer)
{
    struct answers answers;
    const struct rondo_cuda_driver *driver = rondo_cuda_driver();
    if (driver == NULL)
        return RONDO_ERR_DEVICE;
    rondo_result_t result =
        rondo_cuda_result(ask(driver->cuPointerGetAttributes, address, &answers), RONDO_ERR_DEVICE, "cuPointerGetAttributes");
    *pointer = (struct rondo_cuda_pointer){.kind = classify(&answers),
                                           .device = answers.device,
                                           .on_device = answers.on_device,
                                           .start = answers.start,
                                           .size = answers.size,
                                           .buffer_id = answers.buffer_id,
                                           .handle_types = answers.handle_types,
                                           .pool = answers.pool};
    return result;
}

const char *rondo_cuda_describe(const struct rondo_cuda_pointer *pointer, char *text, size_t bytes)
{
    switch (pointer->kind) {
    case RONDO_CUDA_HOST:
        snprintf(text, bytes, "pinned host memory");
        break;
    case RONDO_CUDA_MANAGED:
        snprintf(text, bytes, "managed memory");
        break;
    case RONDO_CUDA_ALLOCATION:
        snprintf(text, bytes, "memory of GPU %d", pointer->device);
        break;
    case RONDO_CUDA_POOL:
        snprintf(text, bytes, "memory of GPU %d (cudaMallocAsync)", pointer->device);
        break;
    case RONDO_CUDA_MAPPED:
        snprintf(text, bytes, "memory of GPU %d (cuMemMap)", pointer->device);
        break;
    default:
        snprintf(text, bytes, "pageable host memory, or none at all");
    }
    return text;
}

/* ---- arguments ---- */

/* Stops at the first object: the count of objects ever loaded is the same for all. */
static int count_loaded(struct dl_phdr_info *info, size_t bytes, void *count)
{
    (void) bytes;
    *(unsigned long long *) count = info->dlpi_adds;
    return 1;
}

/* Whether anything may have been loaded since this thread last asked; it looks at every 16th call, which costs next to nothing,
 * where searching for a library costs microseconds. */
static int may_be_loaded(void)
{
    static _Thread_local unsigned long long known;
    static _Thread_local uint32_t calls;
    unsigned long long now = 0;
    if (calls++ % 16 != 0)
        return 0;
    dl_iterate_phdr(count_loaded, &now);
    int more = now != known;
    known = now;
    return more;
}

/* The driver's function if the application has loaded the driver: a rank on the host device neither loads nor starts it. */
static __typeof__(cuPointerGetAttributes) *query_if_loaded(void)
{
    static __typeof__(cuPointerGetAttributes) *query;
    __typeof__(cuPointerGetAttributes) *known = __atomic_load_n(&query, __ATOMIC_ACQUIRE);
    if (known != NULL || !may_be_loaded())
        return known;
    void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (library == NULL)
        return NULL;
    void *symbol = dlsym(library, "cuPointerGetAttributes");
    memcpy(&known, &symbol, sizeof(known));
    __atomic_store_n(&query, known, __ATOMIC_RELEASE);
    dlclose(library); /* the application's own reference keeps it */
    return known;
}

static rondo_result_t check_host(const void *buf, const char *function)
{
    struct answers answers;
    __typeof__(cuPointerGetAttributes) *query = query_if_loaded();
    if (query == NULL || ask(query, buf, &answers) != CUDA_SUCCESS)
        return RONDO_SUCCESS; /* what the driver does not know is not its memory */
    if (answers.type != CU_MEMORYTYPE_DEVICE || answers.is_managed)
        return RONDO_SUCCESS;
    return rondo_fail(RONDO_ERR_BUFFER, "%s: %p is memory of GPU %d, but this rank is on the host device", function, buf,
                      answers.device);
}

/* Allocations that this thread has found good lately. The driver's number tells whether one is still the same, by the cheapest
 * of its questions. */
struct good {
    enum rondo_cuda_kind kind;
    CUdeviceptr start;
    size_t size;
    uint64_t buffer_id;
    int device;
};
#define GOOD_ONES 4
static _Thread_local struct good good_ones[GOOD_ONES];
static _Thread_local unsigned next_good;

/* The one that the bytes are of, on whatever GPU; or NULL. */
static const struct good *find_good(const void *buf, size_t bytes)
{
    const CUdeviceptr address = (CUdeviceptr) (uintptr_t) buf;
    for (int i = 0; i < GOOD_ONES; i++) {
        const struct good *good = &good_ones[i];
        unsigned long long now = 0;
        if (address >= good->start && address - good->start < good->size &&
            bytes <= good->size - (size_t) (address - good->start))
            return rondo_cuda_driver()->cuPointerGetAttribute(&now, CU_POINTER_ATTRIBUTE_BUFFER_ID, address) == CUDA_SUCCESS &&
                           now == good->buffer_id
                       ? good
                       : NULL;
    }
    return NULL;
}

static int known_good(int device, const void *buf, size_t bytes)
{
    const struct good *good = find_good(buf, bytes);
    return good != NULL && good->device == device;
}

static void remember_good(const struct rondo_cuda_pointer *pointer)
{
    if ((pointer->kind != RONDO_CUDA_ALLOCATION && pointer->kind != RONDO_CUDA_POOL) || pointer->buffer_id == 0)
        return;
    unsigned place = next_good++ % GOOD_ONES;
    for (unsigned i = 0; i < GOOD_ONES; i++)
        if (good_ones[i].start == pointer->start) /* one that was there before */
            place = i;
    good_ones[place] = (struct good){pointer->kind, pointer->start, pointer->size, pointer->buffer_id, pointer->device};
}

rondo_result_t rondo_buffer_check(int gpu, const void *buf, size_t bytes, const char *function)
{
    struct rondo_cuda_pointer pointer;
    char where[64];
    if (bytes == 0)
        return RONDO_SUCCESS;
    if (gpu < 0)
        return check_host(buf, function);
    if (known_good(gpu, buf, bytes))
        return RONDO_SUCCESS;
    rondo_result_t result = rondo_cuda_inspect(buf, &pointer);
    if (result != RONDO_SUCCESS)
        return result;
    int mine = pointer.kind == RONDO_CUDA_ALLOCATION || pointer.kind == RONDO_CUDA_POOL || pointer.kind == RONDO_CUDA_MAPPED
                   ? pointer.device == gpu
                   : pointer.kind != RONDO_CUDA_UNKNOWN;
    rondo_cuda_describe(&pointer, where, sizeof(where));
    if (!mine)
        return rondo_fail(RONDO_ERR_BUFFER,
                          "%s: %p is %s; this rank is on GPU %d and takes memory of that GPU, managed memory, or pinned host "
                          "memory (cudaHostAlloc, cudaHostRegister)",
                          function, buf, where, gpu);
    if (pointer.kind == RONDO_CUDA_HOST && pointer.on_device != (CUdeviceptr) (uintptr_t) buf)
        return rondo_fail(RONDO_ERR_BUFFER, "%s: %p is pinned host memory that GPU %d has at another address, or not at all",
                          function, buf, gpu);
    /* Mappings may stand side by side; an allocation ends where it ends. */
    size_t before = (size_t) ((CUdeviceptr) (uintptr_t) buf - pointer.start);
    if (pointer.kind == RONDO_CUDA_ALLOCATION && (before > pointer.size || bytes > pointer.size - before))
        return rondo_fail(RONDO_ERR_BUFFER, "%s: %zu bytes at %p reach beyond their allocation, which has %zu after it",
                          function, bytes, buf, before > pointer.size ? 0 : pointer.size - before);
    remember_good(&pointer);
    return RONDO_SUCCESS;
}

int rondo_buffer_is_plain(const void *buf)
{
    struct rondo_cuda_pointer pointer;
    const struct good *good = find_good(buf, 1);
    if (good != NULL)
        return good->kind == RONDO_CUDA_ALLOCATION;
    return rondo_cuda_inspect(buf, &pointer) == RONDO_SUCCESS && pointer.kind == RONDO_CUDA_ALLOCATION;
}
