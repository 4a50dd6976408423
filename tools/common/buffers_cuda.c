/* Memory of a GPU. See tools/common/buffers.h. A thread may come here for any GPU, so each call says first which one it means.
 */
#include "tools/common/buffers.h"
#include "lib/base/error.h"
#include "tools/common/ranks.h"

#include <cuda_runtime_api.h>
#include <sched.h>

static rondo_result_t check(cudaError_t error, int gpu, const char *what)
{
    if (error == cudaSuccess)
        return RONDO_SUCCESS;
    return rondo_fail(error == cudaErrorMemoryAllocation ? RONDO_ERR_MEMORY : RONDO_ERR_DEVICE, "%s on GPU %d: %s", what, gpu,
                      cudaGetErrorString(error));
}

static rondo_result_t open_gpu(struct buffers *b)
{
    rondo_result_t code = check(cudaSetDevice(b->gpu), b->gpu, "cudaSetDevice");
    cudaStream_t stream = NULL;
    void *window = NULL;
    if (code == RONDO_SUCCESS)
        code = check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), b->gpu, "cudaStreamCreateWithFlags");
    if (code == RONDO_SUCCESS)
        code = check(cudaHostAlloc(&window, BUFFERS_WINDOW, cudaHostAllocDefault), b->gpu, "cudaHostAlloc");
    b->stream = stream;
    b->window = window;
    return code;
}

static void close_gpu(struct buffers *b)
{
    cudaSetDevice(b->gpu);
    if (b->window != NULL)
        cudaFreeHost(b->window);
    if (b->stream != NULL)
        cudaStreamDestroy(b->stream);
}

static rondo_result_t allocate(struct buffers *b, size_t bytes, void **memory)
{
    rondo_result_t code = check(cudaSetDevice(b->gpu), b->gpu, "cudaSetDevice");
    cudaError_t error = code == RONDO_SUCCESS ? cudaMalloc(memory, bytes > 0 ? bytes : 1) : cudaSuccess;
    if (error == cudaErrorMemoryAllocation)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for a buffer of %zu bytes on GPU %d", bytes, b->gpu);
    return code == RONDO_SUCCESS ? check(error, b->gpu, "cudaMalloc") : code;
}

static void release(int gpu, void *memory)
{
    cudaSetDevice(gpu);
    cudaFree(memory);
}

static rondo_result_t set(struct buffers *b, void *memory, int byte, size_t bytes)
{
    rondo_result_t code = check(cudaSetDevice(b->gpu), b->gpu, "cudaSetDevice");
    if (code == RONDO_SUCCESS)
        code = check(cudaMemsetAsync(memory, byte, bytes, b->stream), b->gpu, "cudaMemsetAsync");
    return code == RONDO_SUCCESS ? check(cudaStreamSynchronize(b->stream), b->gpu, "setting memory") : code;
}

static rondo_result_t copy(struct buffers *b, void *to, const void *from, size_t bytes)
{
    rondo_result_t code = check(cudaSetDevice(b->gpu), b->gpu, "cudaSetDevice");
    if (code == RONDO_SUCCESS)
        code = check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, b->stream), b->gpu, "cudaMemcpyAsync");
    return code == RONDO_SUCCESS ? check(cudaStreamSynchronize(b->stream), b->gpu, "copying memory") : code;
}

static rondo_result_t make_stream(struct buffers *b, void **stream)
{
    cudaStream_t made = NULL;
    rondo_result_t code = check(cudaSetDevice(b->gpu), b->gpu, "cudaSetDevice");
    if (code == RONDO_SUCCESS)
        code = check(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), b->gpu, "cudaStreamCreateWithFlags");
    *stream = made;
    return code;
}

static void free_stream(struct buffers *b, void *stream)
{
    cudaSetDevice(b->gpu);
    cudaStreamDestroy(stream);
}

static rondo_result_t wait(struct buffers *b, void *stream, double seconds)
{
    rondo_result_t code = check(cudaSetDevice(b->gpu), b->gpu, "cudaSetDevice");
    if (code != RONDO_SUCCESS || seconds <= 0)
        return code != RONDO_SUCCESS ? code : check(cudaStreamSynchronize(stream), b->gpu, "work on a stream");
    cudaError_t error;
    double end = ranks_clock() + seconds;
    while ((error = cudaStreamQuery(stream)) == cudaErrorNotReady) {
        if (ranks_clock() > end)
            return rondo_fail(RONDO_ERR_TIMEOUT, "a stream of GPU %d is still busy after %g s", b->gpu, seconds);
        sched_yield();
    }
    return check(error, b->gpu, "work on a stream");
}

const struct buffers_kind buffers_on_cuda = {.open = open_gpu,
                                             .close = close_gpu,
                                             .allocate = allocate,
                                             .release = release,
                                             .set = set,
                                             .copy = copy,
                                             .make_stream = make_stream,
                                             .free_stream = free_stream,
                                             .wait = wait};
