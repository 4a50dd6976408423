/*
 * Slots in GPU memory as they would be given to a NIC: dma-buf export, on every GPU. A driver without dma-bufs is not a
 * failure, but reported in a NOTE with its reason; a driver that claims dma-bufs must export them. What a NIC does with them
 * needs a NIC (docs/guide/networks.md). Prints the failures, then "N passed, N failed".
 */
#include "test/multirank/device_memory.h"
#include "transport/memory/cuda_direct.h"
#include "transport/memory/cuda_driver.h"
#include "transport/memory/cuda_memory.h"
#include "lib/base/error.h"
#include "transport/memory/slot_memory.h"

#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SLAB ((size_t) 8 << 20) /* the size that the rdma transport allocates */

static int passed, failed;

static int expect(int truth, int gpu, const char *what)
{
    if (truth)
        passed++;
    else
        printf("GPU %d: FAILED: %s (last error: %s)\n", gpu, what, rondo_last_error());
    failed += !truth;
    fflush(stdout);
    return truth;
}

/* Checks with the kernel: a dma-buf names itself in /proc, and its length is that of the memory. */
static void look_at(int gpu, int descriptor, size_t bytes)
{
    char path[64], name[128] = "";
    snprintf(path, sizeof(path), "/proc/self/fd/%d", descriptor);
    expect(fcntl(descriptor, F_GETFD) >= 0, gpu, "the descriptor is open");
    expect(readlink(path, name, sizeof(name) - 1) > 0 && strstr(name, "dmabuf") != NULL, gpu, "the descriptor is a dma-buf's");
    expect(lseek(descriptor, 0, SEEK_END) == (off_t) bytes, gpu, "the dma-buf is as long as the memory");
    printf("NOTE GPU %d: dma-buf of %zu bytes: %s\n", gpu, bytes, name);
}

/* Whether the driver, or the kernel of a container, refuses, rather than that the request was wrong. */
static int is_refusal(const char *why)
{
    char unsupported[32], system[32];
    snprintf(unsupported, sizeof(unsupported), "(CUDA error %d)", (int) CUDA_ERROR_NOT_SUPPORTED);
    snprintf(system, sizeof(system), "(CUDA error %d)", (int) CUDA_ERROR_OPERATING_SYSTEM);
    return strstr(why, unsupported) != NULL || strstr(why, system) != NULL;
}

static void try_slots(int gpu, enum rondo_slot_memory kind, size_t bytes)
{
    char *base;
    size_t whole;
    int descriptor;
    rondo_result_t result = rondo_slot_memory_allocate(kind, gpu, NULL, bytes, &base, &whole, &descriptor);
    if (kind == RONDO_SLOTS_DMABUF && !rondo_cuda_has_dmabuf(gpu)) {
        expect(result == RONDO_ERR_TRANSPORT, gpu, "a driver without dma-bufs says so");
        printf("NOTE GPU %d: no dma-bufs: %s\n", gpu, rondo_last_error());
        return;
    }
    if (kind == RONDO_SLOTS_DMABUF && result == RONDO_ERR_TRANSPORT && is_refusal(rondo_last_error())) {
        printf("NOTE GPU %d: the driver says that it has dma-bufs, and gives none: %s\n", gpu, rondo_last_error());
        return;
    }
    if (!expect(result == RONDO_SUCCESS, gpu, "slots in the GPU's memory"))
        return;
    expect(whole >= bytes && (uintptr_t) base % 4096 == 0, gpu, "whole pages");
    expect(device_memory_holds(base, whole, 0), gpu, "zeros");
    expect(cudaMemset(base, 7, whole) == cudaSuccess && cudaDeviceSynchronize() == cudaSuccess, gpu, "writing to it");
    expect(rondo_slot_memory_zero(kind, gpu, base + 4096, 8192) == RONDO_SUCCESS && device_memory_holds(base + 4096, 8192, 0) &&
               device_memory_holds(base, 4096, 7),
           gpu, "zeros again");
    if (kind == RONDO_SLOTS_DMABUF) {
        int none = -1;
        look_at(gpu, descriptor, whole);
        expect(rondo_cuda_dmabuf(gpu, base + 256, whole - 256, &none) == RONDO_ERR_TRANSPORT && none < 0, gpu,
               "a dma-buf of no whole pages is refused");
        close(descriptor);
        expect(device_memory_holds(base, 4096, 7), gpu, "the memory stays when the descriptor is closed");
    } else {
        expect(descriptor < 0, gpu, "no descriptor where none was asked for");
    }
    rondo_slot_memory_release(kind, gpu, NULL, base, whole);
}

int main(void)
{
    static const char *const flushes[] = {"seen in order", "flushed by the driver", "flushed by reading"};
    if (rondo_cuda_driver() == NULL) {
        printf("NOTE %s\n0 passed, 0 failed\n", rondo_last_error());
        return 0;
    }
    for (int gpu = 0; gpu < rondo_cuda_device_count(); gpu++) {
        enum rondo_cuda_flush flush = rondo_cuda_flush_of(gpu);
        cudaSetDevice(gpu);
        printf("NOTE GPU %d: writes of cards are %s\n", gpu, flushes[flush]);
        if (flush == RONDO_CUDA_FLUSH_DRIVER)
            expect(rondo_cuda_flush(gpu) == RONDO_SUCCESS, gpu, "flushing");
        try_slots(gpu, RONDO_SLOTS_DMABUF, SLAB);
        try_slots(gpu, RONDO_SLOTS_DMABUF, 1); /* the largest slots get a slab of their own, of any size */
        try_slots(gpu, RONDO_SLOTS_PEERMEM, SLAB);
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed == 0 ? 0 : 1;
}
