/* See transport/memory/cuda_direct.h. Asks the driver for what it can (transport/memory/cuda_driver.h). */
#include "transport/memory/cuda_direct.h"

#include "transport/memory/cuda_driver.h"
#include "lib/base/error.h"

#include <unistd.h>

static int attribute(int device_index, CUdevice_attribute which)
{
    const struct rondo_cuda_driver *driver = rondo_cuda_driver();
    CUdevice device;
    int value = 0;
    if (driver == NULL || driver->cuDeviceGet(&device, device_index) != CUDA_SUCCESS ||
        driver->cuDeviceGetAttribute(&value, which, device) != CUDA_SUCCESS)
        return 0;
    return value;
}

int rondo_cuda_has_dmabuf(int device_index)
{
    const struct rondo_cuda_driver *driver = rondo_cuda_driver();
    return driver != NULL && driver->cuMemGetHandleForAddressRange != NULL &&
           attribute(device_index, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED);
}

rondo_result_t rondo_cuda_dmabuf(int device_index, void *base, size_t bytes, int *descriptor)
{
    size_t page = (size_t) sysconf(_SC_PAGESIZE);
    *descriptor = -1;
    rondo_result_t result = rondo_cuda_enter(device_index);
    if (result != RONDO_SUCCESS)
        return result;
    const struct rondo_cuda_driver *driver = rondo_cuda_driver();
    if (driver->cuMemGetHandleForAddressRange == NULL)
        result = rondo_fail(RONDO_ERR_TRANSPORT, "the CUDA driver is too old for dma-bufs (11.7 has them)");
    else if (!attribute(device_index, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED))
        result =
            rondo_fail(RONDO_ERR_TRANSPORT,
                       "the CUDA driver gives no dma-bufs of GPU %d (that takes NVIDIA's open kernel modules and Linux 5.12)",
                       device_index);
    else if ((uintptr_t) base % page != 0 || bytes % page != 0)
        result = rondo_fail(RONDO_ERR_TRANSPORT, "%zu bytes at %p of GPU %d are no whole pages", bytes, base, device_index);
    else
        result = rondo_cuda_result(driver->cuMemGetHandleForAddressRange(descriptor, (CUdeviceptr) (uintptr_t) base, bytes,
                                                                         CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0),
                                   RONDO_ERR_TRANSPORT, "a dma-buf of the GPU's memory");
    rondo_cuda_leave();
    return result;
}

enum rondo_cuda_flush rondo_cuda_flush_of(int device_index)
{
    if (attribute(device_index, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING) >=
        CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER)
        return RONDO_CUDA_FLUSH_NONE;
    const struct rondo_cuda_driver *driver = rondo_cuda_driver();
    int options = attribute(device_index, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS);
    return driver != NULL && driver->cuFlushGPUDirectRDMAWrites != NULL &&
                   (options & CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST) != 0
               ? RONDO_CUDA_FLUSH_DRIVER
               : RONDO_CUDA_FLUSH_READ;
}

rondo_result_t rondo_cuda_flush(int device_index)
{
    rondo_result_t result = rondo_cuda_enter(device_index);
    if (result != RONDO_SUCCESS)
        return result;
    result =
        rondo_cuda_result(rondo_cuda_driver()->cuFlushGPUDirectRDMAWrites(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
                                                                          CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER),
                          RONDO_ERR_DEVICE, "flushing what NICs have written into the GPU's memory");
    rondo_cuda_leave();
    return result;
}
