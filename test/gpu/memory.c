/*
 * Sharing GPU memory on real GPUs: between two processes, and between threads of one process, with any number of GPUs (the two
 * roles use the first and the last one). Skips, and passes, without a GPU. Prints the failures, then "N passed, N failed".
 *
 * The children are forked before any use of CUDA, one for each scene. Owner and reader exchange lines on a socket pair: the
 * owner sends handles, the reader answers.
 */
#include "test/multirank/device_memory.h"
#include "lib/base/thread.h"
#include "lib/control/control.h"
#include "transport/memory/cuda_driver.h"
#include "transport/memory/cuda_memory.h"
#include "lib/base/error.h"
#include "transport/memory/segment.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((size_t) 1 << 20)

static int passed, failed;
static const char *role = "main";

static int expect(int truth, const char *what)
{
    if (truth)
        passed++;
    else
        printf("%s: FAILED: %s (last error: %s)\n", role, what, rondo_last_error());
    failed += !truth;
    fflush(stdout);
    return truth;
}

/* ---- one side ---- */

struct side {
    int socket, device;
    struct rondo_control *control;
    struct rondo_segments *segments;
};

static void ignore(void *argument, int source, uint32_t type, const void *data, size_t bytes)
{
    (void) argument;
    (void) source;
    (void) type;
    (void) data;
    (void) bytes;
}

/* Rank 0 owns the memory, rank 1 reads it. In one process the job has this rank alone. */
static int open_side(struct side *side, const char *job, int rank, int size)
{
    struct rondo_job_options options = {.rank = rank, .size = size, .job = job, .connect_timeout = 30};
    return rondo_control_connect(&side->control, &options, ignore, NULL) == RONDO_SUCCESS &&
           rondo_segments_create(&side->segments, side->control) == RONDO_SUCCESS;
}

static void close_side(struct side *side)
{
    rondo_segments_destroy(side->segments);
    rondo_control_close(side->control, 30);
}

static void put(int socket, const void *data, size_t bytes)
{
    if (write(socket, data, bytes) != (ssize_t) bytes)
        _exit(3);
}

static void get(int socket, void *data, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t got = read(socket, (char *) data + done, bytes - done);
        if (got <= 0)
            _exit(4);
        done += (size_t) got;
    }
}

static void step(int socket)
{
    char byte = 0;
    put(socket, &byte, 1);
}

static void await_step(int socket)
{
    char byte;
    get(socket, &byte, 1);
}

static void fill(void *memory, size_t bytes, int value)
{
    expect(cudaMemset(memory, value, bytes) == cudaSuccess && cudaDeviceSynchronize() == cudaSuccess, "filling memory");
}

/* ---- memory of the VMM API ---- */

struct mapped {
    CUdeviceptr base;
    size_t bytes;
    CUmemGenericAllocationHandle handle;
};

static int map_new(const struct side *side, size_t bytes, int exportable, struct mapped *mapped)
{
    const struct rondo_cuda_driver *driver = rondo_cuda_driver();
    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = side->device}};
    CUmemAccessDesc access = {.location = properties.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    if (exportable)
        properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    mapped->bytes = (bytes + 2 * MIB - 1) / (2 * MIB) * (2 * MIB);
    return driver->cuMemCreate(&mapped->handle, mapped->bytes, &properties, 0) == CUDA_SUCCESS &&
           driver->cuMemAddressReserve(&mapped->base, mapped->bytes, 0, 0, 0) == CUDA_SUCCESS &&
           driver->cuMemMap(mapped->base, mapped->bytes, 0, mapped->handle, 0) == CUDA_SUCCESS &&
           driver->cuMemSetAccess(mapped->base, mapped->bytes, &access, 1) == CUDA_SUCCESS;
}

static void unmap(const struct mapped *mapped)
{
    const struct rondo_cuda_driver *driver = rondo_cuda_driver();
    driver->cuMemUnmap(mapped->base, mapped->bytes);
    driver->cuMemAddressFree(mapped->base, mapped->bytes);
    driver->cuMemRelease(mapped->handle);
}

/* ---- no side effects on the application ---- */

static void test_manners(struct side *side)
{
    int before = -1, after = -1, count = 0;
    struct rondo_gpu_identity identity;
    char *memory;
    cudaGetDeviceCount(&count);
    cudaSetDevice(0);
    (void) cudaFree((void *) 16); /* an error of the application, which must stay visible to it */
    cudaError_t pending = cudaPeekAtLastError();
    cudaGetDevice(&before);
    rondo_gpu_identify(side->device, &identity);
    expect(identity.present && rondo_gpu_reaches(&identity, &identity), "a GPU identified, which reaches itself");
    expect(rondo_cuda_allocate(side->device, MIB, &memory) == RONDO_SUCCESS, "an allocation");
    expect(rondo_cuda_zero(side->device, memory, MIB) == RONDO_SUCCESS, "zeroing");
    rondo_cuda_free(side->device, memory);
    expect(rondo_cuda_allocate(side->device, (size_t) 1 << 50, &memory) == RONDO_ERR_MEMORY, "too large an allocation");
    expect(rondo_cuda_allocate(count, 1, &memory) == RONDO_ERR_DEVICE, "a GPU that there is not");
    cudaGetDevice(&after);
    expect(before == after, "the current device is as it was");
    expect(pending != cudaSuccess && cudaPeekAtLastError() == pending, "the application's last error is as it was");
    (void) cudaGetLastError();
    expect(rondo_cuda_allocate(side->device, (size_t) 1 << 50, &memory) == RONDO_ERR_MEMORY &&
               cudaPeekAtLastError() == cudaSuccess,
           "an error inside leaves none outside");
    cudaSetDevice(side->device);
}

static void test_arguments(struct side *side)
{
    int gpu = side->device;
    char *device, *pinned, *managed, pageable[64];
    void *pooled = NULL;
    int count = 0;
    cudaMalloc((void **) &device, 1000);
    cudaMallocHost((void **) &pinned, 1000);
    cudaMallocManaged((void **) &managed, 1000, cudaMemAttachGlobal);
    expect(rondo_buffer_check(gpu, device, 1000, "test") == RONDO_SUCCESS, "device memory");
    expect(rondo_buffer_check(gpu, device + 8, 992, "test") == RONDO_SUCCESS, "device memory at an offset");
    expect(rondo_buffer_check(gpu, device + 8, 1000, "test") == RONDO_ERR_BUFFER, "device memory and 8 bytes more");
    expect(rondo_buffer_check(gpu, pinned, 1000, "test") == RONDO_SUCCESS, "pinned memory");
    expect(rondo_buffer_check(gpu, managed, 1000, "test") == RONDO_SUCCESS, "managed memory");
    expect(rondo_buffer_check(gpu, pageable, 64, "test") == RONDO_ERR_BUFFER, "pageable memory");
    expect(strstr(rondo_last_error(), "pageable") != NULL, "the message says so");
    expect(rondo_buffer_check(gpu, pageable, 0, "test") == RONDO_SUCCESS, "nothing may be anywhere");
    if (cudaMallocAsync(&pooled, 1000, NULL) == cudaSuccess) {
        expect(rondo_buffer_check(gpu, pooled, 1000, "test") == RONDO_SUCCESS, "memory of a pool");
        cudaFreeAsync(pooled, NULL);
    } else {
        (void) cudaGetLastError();
    }
    expect(rondo_buffer_check(-1, pageable, 64, "test") == RONDO_SUCCESS, "pageable memory on the host device");
    expect(rondo_buffer_check(-1, pinned, 64, "test") == RONDO_SUCCESS, "pinned memory on the host device");
    expect(rondo_buffer_check(-1, device, 64, "test") == RONDO_ERR_BUFFER, "device memory on the host device");
    cudaGetDeviceCount(&count);
    if (count > 1) {
        gpu = (side->device + 1) % count;
        expect(rondo_buffer_check(gpu, device, 1000, "test") == RONDO_ERR_BUFFER, "memory of another GPU");
    }
    gpu = side->device;
    cudaFree(device);
    expect(rondo_buffer_check(gpu, device, 1000, "test") == RONDO_ERR_BUFFER, "memory that was good and has been freed");
    cudaFreeHost(pinned);
    cudaFree(managed);
    expect(cudaPeekAtLastError() == cudaSuccess, "no error left behind");
}

static void test_refusals(struct side *side)
{
    struct rondo_cuda_export *exported = NULL;
    struct rondo_cuda_handle handle;
    struct mapped mapped;
    char *pinned, *managed, *device, pageable[64];
    void *pooled = NULL;
    int own = side->device;
    cudaMallocHost((void **) &pinned, 1000);
    cudaMallocManaged((void **) &managed, 1000, cudaMemAttachGlobal);
    cudaMalloc((void **) &device, 1000);
    expect(rondo_cuda_export(side->segments, own, pinned, 10, 1, &exported, &handle) == RONDO_ERR_BUFFER, "no pinned memory");
    expect(rondo_cuda_export(side->segments, own, managed, 10, 1, &exported, &handle) == RONDO_ERR_BUFFER, "no managed memory");
    expect(rondo_cuda_export(side->segments, own, pageable, 10, 1, &exported, &handle) == RONDO_ERR_BUFFER,
           "no pageable memory");
    expect(rondo_cuda_export(side->segments, own, device, 1001, 1, &exported, &handle) == RONDO_ERR_BUFFER,
           "not more than there is");
    expect(rondo_cuda_export(side->segments, own + 1, device, 10, 1, &exported, &handle) == RONDO_ERR_BUFFER,
           "not as another GPU's");
    expect(exported == NULL, "nothing exported");
    if (cudaMallocAsync(&pooled, 1000, NULL) == cudaSuccess && cudaStreamSynchronize(NULL) == cudaSuccess) {
        expect(rondo_cuda_export(side->segments, own, pooled, 10, 1, &exported, &handle) == RONDO_ERR_BUFFER,
               "no memory of a pool to other processes");
        expect(rondo_cuda_export(side->segments, own, pooled, 10, 0, &exported, &handle) == RONDO_SUCCESS,
               "memory of a pool within the process");
        struct rondo_gpu_identity identity;
        rondo_gpu_identify(own, &identity);
        expect(rondo_cuda_reachable(exported, &identity), "its own GPU reaches it");
        rondo_cuda_unexport(exported);
        cudaFreeAsync(pooled, NULL);
    } else {
        (void) cudaGetLastError();
    }
    if (expect(map_new(side, MIB, 0, &mapped), "memory that may not be exported")) {
        expect(rondo_cuda_export(side->segments, own, (void *) (uintptr_t) mapped.base, 10, 1, &exported, &handle) ==
                   RONDO_ERR_BUFFER,
               "it is not");
        unmap(&mapped);
    }
    cudaFreeHost(pinned);
    cudaFree(managed);
    cudaFree(device);
    expect(cudaPeekAtLastError() == cudaSuccess, "no error left behind");
}

static void test_still(struct side *side)
{
    struct rondo_cuda_export *exported = NULL;
    struct rondo_cuda_handle handle;
    struct mapped mapped;
    char *first, *second;
    cudaMalloc((void **) &first, 8 * MIB);
    expect(rondo_cuda_export(side->segments, side->device, first + 512, MIB, 1, &exported, &handle) == RONDO_SUCCESS,
           "an export");
    expect(rondo_cuda_still(exported) == RONDO_SUCCESS, "it is still there");
    cudaFree(first);
    expect(rondo_cuda_still(exported) == RONDO_ERR_BUFFER, "it is freed");
    cudaMalloc((void **) &second, 8 * MIB);
    printf("%s: the second allocation is %s\n", role, second == first ? "at the same address" : "elsewhere");
    expect(rondo_cuda_still(exported) == RONDO_ERR_BUFFER, "another allocation is not the same");
    rondo_cuda_unexport(exported);
    cudaFree(second);
    if (!expect(map_new(side, MIB, 1, &mapped), "mapped memory"))
        return;
    void *base = (void *) (uintptr_t) mapped.base;
    expect(rondo_cuda_export(side->segments, side->device, base, MIB, 1, &exported, &handle) == RONDO_SUCCESS, "its export");
    expect(rondo_cuda_still(exported) == RONDO_SUCCESS, "it is still there");
    /* Other memory at the same address. */
    const struct rondo_cuda_driver *driver = rondo_cuda_driver();
    struct mapped other;
    if (expect(map_new(side, MIB, 1, &other), "more mapped memory")) {
        CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = side->device},
                                  .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
        driver->cuMemUnmap(mapped.base, mapped.bytes);
        expect(rondo_cuda_still(exported) == RONDO_ERR_BUFFER, "it is unmapped");
        expect(driver->cuMemMap(mapped.base, mapped.bytes, 0, other.handle, 0) == CUDA_SUCCESS &&
                   driver->cuMemSetAccess(mapped.base, mapped.bytes, &access, 1) == CUDA_SUCCESS,
               "mapping in its place");
        expect(rondo_cuda_still(exported) == RONDO_ERR_BUFFER, "what is in its place is not the same");
        unmap(&other);
    }
    rondo_cuda_unexport(exported);
    unmap(&mapped);
}

static double microseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double) now.tv_sec * 1e6 + (double) now.tv_nsec * 1e-3;
}

static void measure(struct side *side)
{
    enum { TIMES = 10000 };
    int gpu = side->device;
    struct rondo_cuda_export *exported;
    struct rondo_cuda_handle handle;
    char *memory;
    cudaMalloc((void **) &memory, MIB);
    if (!expect(rondo_cuda_export(side->segments, side->device, memory, MIB, 1, &exported, &handle) == RONDO_SUCCESS, "export"))
        return;
    double begun = microseconds();
    for (int i = 0; i < TIMES; i++)
        (void) rondo_cuda_still(exported);
    double middle = microseconds();
    for (int i = 0; i < TIMES; i++)
        (void) rondo_buffer_check(gpu, memory, MIB, "test");
    printf("%s: rondo_cuda_still %.2f us, rondo_buffer_check %.2f us\n", role, (middle - begun) / TIMES,
           (microseconds() - middle) / TIMES);
    rondo_cuda_unexport(exported);
    cudaFree(memory);
}

/* ---- two processes ---- */

static int export_to(struct side *side, const void *base, size_t bytes, struct rondo_cuda_export **exported)
{
    struct rondo_cuda_handle handle;
    memset(&handle, 0, sizeof(handle));
    int right = expect(rondo_cuda_export(side->segments, side->device, base, bytes, 1, exported, &handle) == RONDO_SUCCESS,
                       "an export to another process");
    put(side->socket, &handle, sizeof(handle));
    return right;
}

static void own_memory(struct side *side)
{
    struct rondo_cuda_export *exports[5] = {NULL};
    struct mapped mapped;
    char *first, *small, *second;
    /* One large allocation at two offsets, and an allocation that shares its driver block with others. */
    cudaMalloc((void **) &first, 8 * MIB);
    cudaMalloc((void **) &small, 300);
    fill(first, 8 * MIB, 1);
    fill(small, 300, 2);
    export_to(side, first, MIB, &exports[0]);
    export_to(side, first + 3 * MIB + 16, MIB, &exports[1]);
    export_to(side, small, 300, &exports[2]);
    await_step(side->socket); /* the reader has read, and has written 7 */
    expect(device_memory_holds(first + 3 * MIB + 16, MIB, 7) && device_memory_holds(first, MIB, 1),
           "what the reader wrote, where it wrote it");
    expect(device_memory_holds(small, 300, 7), "what the reader wrote into the small one");
    for (int i = 0; i < 3; i++)
        rondo_cuda_unexport(exports[i]);
    step(side->socket);
    await_step(side->socket); /* the reader has released all */

    /* Freed, and most likely allocated again at the same address. */
    cudaFree(first);
    cudaMalloc((void **) &second, 8 * MIB);
    printf("%s: the second allocation is %s\n", role, second == first ? "at the same address" : "elsewhere");
    fill(second, 8 * MIB, 3);
    export_to(side, second, 8 * MIB, &exports[0]);
    await_step(side->socket);

    /* The same while the reader still has the last one open. */
    cudaFree(second);
    cudaMalloc((void **) &first, 8 * MIB);
    fill(first, 8 * MIB, 4);
    export_to(side, first, 8 * MIB, &exports[1]);
    await_step(side->socket);
    expect(rondo_cuda_still(exports[0]) == RONDO_ERR_BUFFER, "the owner sees that it was freed");
    rondo_cuda_unexport(exports[0]);
    rondo_cuda_unexport(exports[1]);
    cudaFree(first);
    cudaFree(small);

    expect(map_new(side, 4 * MIB, 1, &mapped), "mapped memory");
    char *base = (char *) (uintptr_t) mapped.base;
    fill(base, mapped.bytes, 5);
    export_to(side, base + MIB, 2 * MIB, &exports[3]);
    export_to(side, base, MIB, &exports[4]);
    await_step(side->socket);
    expect(device_memory_holds(base + MIB, 2 * MIB, 8) && device_memory_holds(base, MIB, 5),
           "what the reader wrote into mapped memory");
    rondo_cuda_unexport(exports[3]);
    rondo_cuda_unexport(exports[4]);
    step(side->socket);
    await_step(side->socket);
    unmap(&mapped);
}

static rondo_result_t import_next(struct side *side, struct rondo_cuda_handle *handle, struct rondo_cuda_mapping **mapping,
                                  char **pointer)
{
    get(side->socket, handle, sizeof(*handle));
    return rondo_cuda_import(side->device, handle, mapping, pointer);
}

static void read_memory(struct side *side)
{
    struct rondo_cuda_handle handles[5];
    struct rondo_cuda_mapping *mappings[5] = {NULL}, *again = NULL;
    char *pointers[5] = {NULL}, *same = NULL;
    for (int i = 0; i < 3; i++)
        expect(import_next(side, &handles[i], &mappings[i], &pointers[i]) == RONDO_SUCCESS, "an import");
    expect(mappings[0] == mappings[1], "two offsets share a mapping");
    expect(pointers[1] - pointers[0] == (ptrdiff_t) (3 * MIB + 16), "at their offsets");
    expect(rondo_cuda_import(side->device, &handles[0], &again, &same) == RONDO_SUCCESS && same == pointers[0],
           "importing again gives the same");
    expect(rondo_cuda_mappings() == 2, "two mappings in all");
    expect(device_memory_holds(pointers[0], MIB, 1) && device_memory_holds(pointers[1], MIB, 1) &&
               device_memory_holds(pointers[2], 300, 2),
           "what the owner wrote");
    rondo_cuda_release(again);
    rondo_cuda_release(mappings[0]);
    expect(device_memory_holds(pointers[1], MIB, 1), "the mapping stays until its last reference");
    fill(pointers[1], MIB, 7);
    fill(pointers[2], 300, 7);
    struct rondo_cuda_handle wrong = handles[0];
    memset(wrong.bytes + 24, 0xff, 40);
    expect(rondo_cuda_import(side->device, &wrong, &again, &same) == RONDO_ERR_TRANSPORT, "no handle");
    step(side->socket);
    await_step(side->socket);
    rondo_cuda_release(mappings[1]);
    rondo_cuda_release(mappings[2]);
    expect(rondo_cuda_mappings() == 0, "no mapping is left");
    step(side->socket);

    expect(import_next(side, &handles[0], &mappings[0], &pointers[0]) == RONDO_SUCCESS, "the second allocation");
    expect(device_memory_holds(pointers[0], 8 * MIB, 3), "is what the owner has now");
    step(side->socket);
    rondo_result_t result = import_next(side, &handles[1], &mappings[1], &pointers[1]);
    printf("%s: an allocation in place of one that is still open: %s\n", role,
           result == RONDO_SUCCESS ? "imported" : rondo_last_error());
    if (result == RONDO_SUCCESS)
        expect(mappings[1] != mappings[0] && device_memory_holds(pointers[1], 8 * MIB, 4), "never an old mapping");
    else
        expect(result == RONDO_ERR_BUFFER, "it is refused");
    rondo_cuda_release(mappings[0]);
    if (result == RONDO_SUCCESS)
        rondo_cuda_release(mappings[1]);
    expect(rondo_cuda_mappings() == 0, "no mapping is left");
    step(side->socket);

    expect(import_next(side, &handles[3], &mappings[3], &pointers[3]) == RONDO_SUCCESS, "mapped memory");
    expect(import_next(side, &handles[4], &mappings[4], &pointers[4]) == RONDO_SUCCESS, "mapped memory at another offset");
    printf("%s: two exports of mapped memory have %d mapping(s)\n", role, rondo_cuda_mappings());
    expect(device_memory_holds(pointers[3], 2 * MIB, 5) && device_memory_holds(pointers[4], MIB, 5),
           "what the owner wrote there");
    fill(pointers[3], 2 * MIB, 8);
    step(side->socket);
    await_step(side->socket);
    rondo_cuda_release(mappings[3]);
    rondo_cuda_release(mappings[4]);
    expect(rondo_cuda_import(side->device, &handles[3], &again, &same) == RONDO_ERR_TRANSPORT, "it is withdrawn");
    expect(rondo_cuda_mappings() == 0 && cudaPeekAtLastError() == cudaSuccess, "nothing is left, no error either");
    step(side->socket);
}

/* ---- threads of one process ---- */

static void test_one_process(struct side *side)
{
    struct rondo_cuda_export *exported;
    struct rondo_cuda_handle handle;
    struct rondo_cuda_mapping *mapping;
    struct rondo_gpu_identity reader, owner;
    char *memory, *pointer;
    int count = 0;
    cudaGetDeviceCount(&count);
    cudaMalloc((void **) &memory, MIB);
    fill(memory, MIB, 1);
    expect(rondo_cuda_export(side->segments, side->device, memory + 64, 1024, 0, &exported, &handle) == RONDO_SUCCESS,
           "an export within the process");
    rondo_gpu_identify(side->device, &owner);
    for (int device = 0; device < count; device++) {
        rondo_gpu_identify(device, &reader);
        int reaches = rondo_gpu_reaches(&reader, &owner);
        expect(rondo_cuda_reachable(exported, &reader) == reaches, "reachable as far as the GPU reaches");
        if (!reaches)
            continue;
        for (int twice = 0; twice < 2; twice++)
            expect(rondo_cuda_import(device, &handle, &mapping, &pointer) == RONDO_SUCCESS && mapping == NULL &&
                       pointer == memory + 64,
                   "the owner's own address");
        if (device != side->device) {
            char *local;
            cudaSetDevice(device);
            cudaMalloc((void **) &local, 1024);
            expect(cudaMemcpyPeer(local, device, pointer, side->device, 1024) == cudaSuccess &&
                       device_memory_holds(local, 1024, 1),
                   "what is there");
            expect(cudaDeviceEnablePeerAccess(side->device, 0) == cudaErrorPeerAccessAlreadyEnabled, "peer access is enabled");
            (void) cudaGetLastError();
            cudaFree(local);
            cudaSetDevice(side->device);
        }
    }
    rondo_cuda_unexport(exported);
    cudaFree(memory);
    struct mapped mapped;
    if (!expect(map_new(side, MIB, 0, &mapped), "mapped memory"))
        return;
    expect(rondo_cuda_export(side->segments, side->device, (void *) (uintptr_t) mapped.base, MIB, 0, &exported, &handle) ==
               RONDO_SUCCESS,
           "its export within the process");
    for (int device = 0; device < count; device++) {
        rondo_gpu_identify(device, &reader);
        expect(rondo_cuda_reachable(exported, &reader) == (device == side->device), "reachable by whom its owner let have it");
        rondo_result_t result = rondo_cuda_import(device, &handle, &mapping, &pointer);
        expect(result == (device == side->device ? RONDO_SUCCESS : RONDO_ERR_TRANSPORT), "and usable by them");
    }
    rondo_cuda_unexport(exported);
    unmap(&mapped);
}

struct thread {
    pthread_t id;
    int device, wrong;
    struct rondo_cuda_handle handle;
};

static void *import_often(void *argument)
{
    struct thread *thread = argument;
    for (int i = 0; i < 50; i++) {
        struct rondo_cuda_mapping *mapping;
        char *pointer;
        if (rondo_cuda_import(thread->device, &thread->handle, &mapping, &pointer) != RONDO_SUCCESS) {
            printf("%s: a thread's import: %s\n", role, rondo_last_error());
            thread->wrong++;
            continue;
        }
        thread->wrong += !device_memory_holds(pointer, 4096, 9);
        rondo_cuda_release(mapping);
    }
    return NULL;
}

/* Many threads of the reader's process open and close one allocation at once. */
static void read_with_threads(struct side *side)
{
    struct thread threads[8];
    get(side->socket, &threads[0].handle, sizeof(threads[0].handle));
    for (int i = 0; i < 8; i++) {
        threads[i].handle = threads[0].handle;
        threads[i].device = side->device;
        threads[i].wrong = 0;
        pthread_create(&threads[i].id, NULL, import_often, &threads[i]);
    }
    int wrong = 0;
    for (int i = 0; i < 8; i++) {
        pthread_join(threads[i].id, NULL);
        wrong += threads[i].wrong;
    }
    expect(wrong == 0, "every thread's imports");
    expect(rondo_cuda_mappings() == 0, "no mapping is left");
    step(side->socket);
}

static void own_for_threads(struct side *side)
{
    struct rondo_cuda_export *exported;
    char *memory;
    cudaMalloc((void **) &memory, 4 * MIB);
    fill(memory, 4 * MIB, 9);
    export_to(side, memory, 4096, &exported);
    await_step(side->socket);
    rondo_cuda_unexport(exported);
    cudaFree(memory);
}

/* ---- */

enum scene { ALONE, OWNER, READER };

static int play(enum scene scene, int socket, const char *job)
{
    struct side side = {.socket = socket};
    role = scene == ALONE ? "alone" : scene == OWNER ? "owner" : "reader";
    if (rondo_cuda_driver() == NULL) {
        printf("%s: skipped: %s\n", role, rondo_last_error());
        return 0;
    }
    side.device = scene == READER ? rondo_cuda_device_count() - 1 : 0;
    cudaSetDevice(side.device);
    if (!expect(open_side(&side, job, scene == READER, scene == ALONE ? 1 : 2), "meeting"))
        return 1;
    if (scene == ALONE) {
        test_manners(&side);
        test_arguments(&side);
        test_refusals(&side);
        test_still(&side);
        test_one_process(&side);
        measure(&side);
    } else if (scene == OWNER) {
        own_memory(&side);
        own_for_threads(&side);
    } else {
        read_memory(&side);
        read_with_threads(&side);
    }
    close_side(&side);
    return 0;
}

int main(void)
{
    static const enum scene scenes[3] = {ALONE, OWNER, READER};
    pid_t children[3];
    int pair[2], pipes[3][2], status, total[2] = {0, 0};
    char job[64];
    snprintf(job, sizeof(job), "test-gpu-memory-%ld", (long) getpid());
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
        return 1;
    for (int i = 0; i < 3; i++) {
        if (pipe(pipes[i]) != 0 || (children[i] = fork()) < 0)
            return 1;
        if (children[i] == 0) {
            char own_job[80];
            snprintf(own_job, sizeof(own_job), "%s%s", job, scenes[i] == ALONE ? "-alone" : "");
            close(pair[scenes[i] == READER ? 0 : 1]);
            status = play(scenes[i], pair[scenes[i] == READER], own_job);
            int counts[2] = {passed, failed + status};
            put(pipes[i][1], counts, sizeof(counts));
            fflush(stdout);
            _exit(0);
        }
        close(pipes[i][1]);
    }
    close(pair[0]);
    close(pair[1]);
    for (int i = 0; i < 3; i++) {
        int counts[2] = {0, 1};
        if (read(pipes[i][0], counts, sizeof(counts)) != (ssize_t) sizeof(counts))
            printf("a child has ended early\n");
        waitpid(children[i], &status, 0);
        total[0] += counts[0];
        total[1] += counts[1];
    }
    printf("%d passed, %d failed\n", total[0], total[1]);
    return total[1] != 0;
}
