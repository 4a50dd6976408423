/* See transport/memory/cuda_memory.h: allocating and zeroing. Relies on transport/memory/cuda_driver.h alone. */
#include "transport/memory/cuda_memory.h"

#include "lib/base/error.h"
#include "transport/memory/cuda_driver.h"

#include <pthread.h>
#include <stdio.h>

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
    if (memory == NULL)
        return;
    /* Where the context cannot be entered, the memory is freed all the same: the driver knows whose it is. */
    const int entered = rondo_cuda_enter(device_index) == RONDO_SUCCESS;
    (void) rondo_cuda_driver()->cuMemFree((CUdeviceptr) (uintptr_t) memory);
    if (entered)
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
