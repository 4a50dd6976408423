/*
 * The CUDA device: memory of one GPU, and the daemon as a kernel on a stream of its own (DESIGN section 6). The daemon tells
 * the host nothing by itself: waiting threads and the poller look at the queues.
 */
#include "cuda_device.h"

#include "cuda_kernels.h"
#include "error.h"
#include "platform.h"
#include "pool.h"

#include <stdlib.h>
#include <string.h>

#define POLL_NS 50000u

struct rondo_cuda {
    struct rondo_device base;
    int index; /* which GPU */
    int rank;
    uint32_t blocks;
    int overlaps; /* a kernel may be launched before the one it follows in its stream is done */
    cudaStream_t launches, copies;
    struct rondo_pool *device_pool, *host_pool;
};

static struct rondo_cuda *cuda_of(struct rondo_device *device)
{
    return (struct rondo_cuda *) device;
}

/* Our own failure is reported by its code and must not be found by the application as its last error. */
static rondo_result_t report(cudaError_t error, const char *what)
{
    cudaGetLastError();
    rondo_result_t code = error == cudaErrorMemoryAllocation ? RONDO_ERR_MEMORY : RONDO_ERR_DEVICE;
    return rondo_fail(code, "%s: %s (%s)", what, cudaGetErrorString(error), cudaGetErrorName(error));
}

/* Makes the GPU current for the calling thread; returns what was. */
static int make_current(int index)
{
    int before = -1;
    if (cudaGetDevice(&before) != cudaSuccess)
        before = -1;
    if (before != index)
        cudaSetDevice(index);
    return before;
}

static void restore_current(int before, int index)
{
    if (before >= 0 && before != index)
        cudaSetDevice(before);
}

/* ---- memory ---- */

static void *obtain_device(void *argument, size_t bytes)
{
    struct rondo_cuda *cuda = argument;
    void *memory = NULL;
    int before = make_current(cuda->index);
    cudaError_t error = cudaMalloc(&memory, bytes);
    if (error == cudaSuccess)
        error = cudaMemsetAsync(memory, 0, bytes, cuda->copies);
    if (error == cudaSuccess)
        error = cudaStreamSynchronize(cuda->copies);
    if (error != cudaSuccess) {
        cudaGetLastError();
        memory = NULL;
    }
    restore_current(before, cuda->index);
    return memory;
}

static void give_device_back(void *argument, void *memory)
{
    (void) argument;
    cudaFree(memory);
}

static void clear_device(void *argument, void *memory, size_t bytes)
{
    struct rondo_cuda *cuda = argument;
    int before = make_current(cuda->index);
    cudaMemsetAsync(memory, 0, bytes, cuda->copies);
    cudaStreamSynchronize(cuda->copies);
    restore_current(before, cuda->index);
}

static void *obtain_host(void *argument, size_t bytes)
{
    struct rondo_cuda *cuda = argument;
    void *memory = NULL;
    int before = make_current(cuda->index);
    if (cudaHostAlloc(&memory, bytes, cudaHostAllocPortable | cudaHostAllocMapped) != cudaSuccess) {
        cudaGetLastError();
        memory = NULL;
    } else {
        memset(memory, 0, bytes);
    }
    restore_current(before, cuda->index);
    return memory;
}

static void give_host_back(void *argument, void *memory)
{
    (void) argument;
    cudaFreeHost(memory);
}

static void clear_host(void *argument, void *memory, size_t bytes)
{
    (void) argument;
    memset(memory, 0, bytes);
}

static void *allocate(struct rondo_device *device, size_t bytes)
{
    return rondo_pool_take(cuda_of(device)->device_pool, bytes);
}

static void release(struct rondo_device *device, void *memory, size_t bytes)
{
    rondo_pool_return(cuda_of(device)->device_pool, memory, bytes);
}

static void *allocate_host(struct rondo_device *device, size_t bytes)
{
    return rondo_pool_take(cuda_of(device)->host_pool, bytes);
}

static void release_host(struct rondo_device *device, void *memory, size_t bytes)
{
    rondo_pool_return(cuda_of(device)->host_pool, memory, bytes);
}

/* While the thread captures a stream of its own, calls like ours must declare that they have nothing to do with it. */
static enum cudaStreamCaptureMode relax_capture(enum cudaStreamCaptureMode mode)
{
    if (cudaThreadExchangeStreamCaptureMode(&mode) != cudaSuccess)
        cudaGetLastError();
    return mode;
}

static rondo_result_t copy(struct rondo_cuda *cuda, void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    int before = make_current(cuda->index);
    enum cudaStreamCaptureMode mode = relax_capture(cudaStreamCaptureModeRelaxed);
    cudaError_t error = cudaMemcpyAsync(to, from, bytes, kind, cuda->copies);
    if (error == cudaSuccess)
        error = cudaStreamSynchronize(cuda->copies);
    relax_capture(mode);
    restore_current(before, cuda->index);
    return error == cudaSuccess ? RONDO_SUCCESS : report(error, "copying between host and GPU");
}

static rondo_result_t upload(struct rondo_device *device, void *to, const void *from, size_t bytes)
{
    return copy(cuda_of(device), to, from, bytes, cudaMemcpyHostToDevice);
}

static rondo_result_t download(struct rondo_device *device, void *to, const void *from, size_t bytes)
{
    return copy(cuda_of(device), to, from, bytes, cudaMemcpyDeviceToHost);
}

static rondo_result_t adopt(struct rondo_device *device, void *memory, size_t bytes)
{
    struct rondo_cuda *cuda = cuda_of(device);
    int before = make_current(cuda->index);
    cudaError_t error = cudaHostRegister(memory, bytes, cudaHostRegisterPortable | cudaHostRegisterMapped);
    if (error == cudaErrorHostMemoryAlreadyRegistered) { /* by another runtime of this process */
        cudaGetLastError();
        error = cudaSuccess;
    }
    restore_current(before, cuda->index);
    return error == cudaSuccess ? RONDO_SUCCESS : report(error, "registering shared memory with the GPU");
}

static void disown(struct rondo_device *device, void *memory)
{
    struct rondo_cuda *cuda = cuda_of(device);
    int before = make_current(cuda->index);
    if (cudaHostUnregister(memory) != cudaSuccess)
        cudaGetLastError();
    restore_current(before, cuda->index);
}

/* ---- running ---- */

static void start(struct rondo_device *device, int will_help)
{
    struct rondo_cuda *cuda = cuda_of(device);
    (void) will_help;
    void *arguments[] = {device->daemon};
    int before = make_current(cuda->index);
    cudaError_t error =
        cudaLaunchKernel(rondo_cuda_kernel(RONDO_CUDA_DAEMON), (dim3){cuda->blocks, 1, 1},
                         (dim3){RONDO_CUDA_WORKERS_MAX + RONDO_CUDA_CONTROL, 1, 1}, arguments, 0, cuda->launches);
    if (error != cudaSuccess) {
        struct rondo_queues *queues = device->daemon->queues;
        cudaGetLastError();
        rondo_log(RONDO_LOG_ERROR, cuda->rank, "the daemon cannot be launched on GPU %d: %s", cuda->index,
                  cudaGetErrorString(error));
        /* There is no daemon, so its word is ours. */
        rondo_store_release(&queues->state, RONDO_STATE(queues->launches, RONDO_DAEMON_LEFT));
    }
    restore_current(before, cuda->index);
}

static rondo_result_t synchronize(struct rondo_device *device)
{
    struct rondo_cuda *cuda = cuda_of(device);
    int before = make_current(cuda->index);
    cudaError_t error = cudaDeviceSynchronize();
    restore_current(before, cuda->index);
    return error == cudaSuccess ? RONDO_SUCCESS : report(error, "rondo_device_synchronize");
}

/* Small operations need few threads: their barriers are cheaper. */
static uint32_t workers_for(size_t bytes)
{
    uint32_t workers = 64;
    while (workers < RONDO_CUDA_WORKERS_MAX && (size_t) workers * 8 < bytes)
        workers *= 2;
    return workers < RONDO_CUDA_WORKERS_MAX ? workers : RONDO_CUDA_WORKERS_MAX;
}

static rondo_result_t enqueue(struct rondo_device *device, struct rondo_stream_operation *operations, int count, size_t bytes,
                              void *stream, int captured)
{
    struct rondo_cuda *cuda = cuda_of(device);
    struct rondo_cuda_batch batch;
    void *arguments[] = {device->daemon, count == 1 ? (void *) operations : &batch};
    uint32_t blocks = 0, threads = workers_for(bytes) + RONDO_CUDA_CONTROL;
    if (count > RONDO_CUDA_BATCH)
        return rondo_fail(RONDO_ERR_UNSUPPORTED, "a group of %d operations on a stream; at most %d", count, RONDO_CUDA_BATCH);
    for (int i = 0; i < count; i++) {
        operations[i].block_first = blocks;
        blocks += operations[i].blocks;
    }
    if (count > 1) {
        batch.count = (uint32_t) count;
        memcpy(batch.operations, operations, (size_t) count * sizeof(*operations));
    }
    /* The kernel's beginning may overlap the end of its like before it (rondo_after_stream); older GPUs know no such thing. */
    cudaLaunchAttribute early = {.id = cudaLaunchAttributeProgrammaticStreamSerialization,
                                 .val.programmaticStreamSerializationAllowed = 1};
    cudaLaunchConfig_t launch = {.gridDim = {blocks, 1, 1},
                                 .blockDim = {threads, 1, 1},
                                 .stream = (cudaStream_t) stream,
                                 .attrs = &early,
                                 .numAttrs = cuda->overlaps && !captured ? 1 : 0};
    int before = make_current(cuda->index);
    cudaError_t error =
        cudaLaunchKernelExC(&launch, rondo_cuda_kernel(count == 1 ? RONDO_CUDA_OPERATION : RONDO_CUDA_OPERATIONS), arguments);
    restore_current(before, cuda->index);
    return error == cudaSuccess ? RONDO_SUCCESS : report(error, "launching an operation on a stream");
}

static int is_captured(struct rondo_device *device, void *stream)
{
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    int before = make_current(cuda_of(device)->index);
    cudaError_t error = cudaStreamIsCapturing((cudaStream_t) stream, &status);
    restore_current(before, cuda_of(device)->index);
    if (error != cudaSuccess) {
        report(error, "looking at a stream");
        return -1;
    }
    return status == cudaStreamCaptureStatusActive;
}

static uint64_t stream_id(struct rondo_device *device, void *stream)
{
    unsigned long long id = 0;
#if CUDART_VERSION >= 12000
    int before = make_current(cuda_of(device)->index);
    if (cudaStreamGetId((cudaStream_t) stream, &id) != cudaSuccess) {
        cudaGetLastError();
        id = 0;
    }
    restore_current(before, cuda_of(device)->index);
#else
    (void) device;
    (void) stream;
#endif
    return id;
}

/* ---- life ---- */

static void halt(struct rondo_device *device)
{
    struct rondo_cuda *cuda = cuda_of(device);
    struct rondo_queues *queues = device->daemon->queues;
    rondo_store_relaxed32(&queues->stop, 1);
    __atomic_fetch_add(&queues->interrupts, 1, __ATOMIC_SEQ_CST);
    int before = make_current(cuda->index);
    cudaDeviceSynchronize(); /* kernels on the application's streams end too */
    cudaGetLastError();
    restore_current(before, cuda->index);
}

static void destroy(struct rondo_device *device)
{
    struct rondo_cuda *cuda = cuda_of(device);
    int before = make_current(cuda->index);
    rondo_daemon_destroy(device);
    rondo_pool_destroy(cuda->device_pool);
    rondo_pool_destroy(cuda->host_pool);
    if (cuda->launches != NULL)
        cudaStreamDestroy(cuda->launches);
    if (cuda->copies != NULL)
        cudaStreamDestroy(cuda->copies);
    restore_current(before, cuda->index);
    free(cuda);
}

/* Loads the kernels: the first launch of one that is not loaded waits for whatever runs on the GPU. */
static rondo_result_t load_kernels(struct rondo_cuda *cuda)
{
    struct cudaDeviceProp properties;
    cudaError_t error = cudaGetDeviceProperties(&properties, cuda->index);
    for (int k = 0; k < RONDO_CUDA_KERNELS && error == cudaSuccess; k++) {
        struct cudaFuncAttributes attributes;
        error = cudaFuncGetAttributes(&attributes, rondo_cuda_kernel((enum rondo_cuda_kernel) k));
        if (error == cudaSuccess && attributes.maxThreadsPerBlock < RONDO_CUDA_WORKERS_MAX + RONDO_CUDA_CONTROL)
            return rondo_fail(RONDO_ERR_UNSUPPORTED, "GPU %d runs blocks of at most %d threads of the daemon, not %d",
                              cuda->index, attributes.maxThreadsPerBlock, RONDO_CUDA_WORKERS_MAX + RONDO_CUDA_CONTROL);
    }
    if (error == cudaErrorNoKernelImageForDevice || error == cudaErrorInvalidDeviceFunction) {
        cudaGetLastError();
        return rondo_fail(RONDO_ERR_UNSUPPORTED, "GPU %d (%s) has compute capability %d.%d, for which this build has no code",
                          cuda->index, properties.name, properties.major, properties.minor);
    }
    cuda->overlaps = properties.major >= 9;
    return error == cudaSuccess ? RONDO_SUCCESS : report(error, "loading the kernels");
}

static rondo_result_t open_streams(struct rondo_cuda *cuda)
{
    int lowest, highest;
    cudaError_t error = cudaDeviceGetStreamPriorityRange(&lowest, &highest);
    if (error == cudaSuccess)
        error = cudaStreamCreateWithPriority(&cuda->launches, cudaStreamNonBlocking, highest);
    if (error == cudaSuccess)
        error = cudaStreamCreateWithFlags(&cuda->copies, cudaStreamNonBlocking);
    return error == cudaSuccess ? RONDO_SUCCESS : report(error, "creating streams");
}

static rondo_result_t open_pools(struct rondo_cuda *cuda)
{
    const struct rondo_pool_source device = {obtain_device, give_device_back, clear_device, cuda};
    const struct rondo_pool_source host = {obtain_host, give_host_back, clear_host, cuda};
    cuda->device_pool = rondo_pool_create(&device);
    cuda->host_pool = rondo_pool_create(&host);
    if (cuda->device_pool == NULL || cuda->host_pool == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for the GPU's pools");
    return RONDO_SUCCESS;
}

static rondo_result_t create(struct rondo_device **device, const struct rondo_device_options *options)
{
    int count = rondo_cuda_count(NULL);
    if (options->index < 0 || options->index >= count)
        return rondo_fail(RONDO_ERR_ARGUMENT, "GPU %d: this machine has %d that can be used", options->index, count);
    struct rondo_cuda *cuda = calloc(1, sizeof(*cuda));
    if (cuda == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for the CUDA device");
    cuda->base.kind = &rondo_cuda_device;
    cuda->index = options->index;
    cuda->rank = options->rank;
    cuda->blocks = options->blocks;
    int before = make_current(cuda->index);
    rondo_result_t result = load_kernels(cuda);
    if (result == RONDO_SUCCESS)
        result = open_streams(cuda);
    if (result == RONDO_SUCCESS)
        result = open_pools(cuda);
    if (result == RONDO_SUCCESS)
        result = rondo_daemon_create(&cuda->base, options);
    if (result != RONDO_SUCCESS)
        destroy(&cuda->base);
    else
        *device = &cuda->base;
    restore_current(before, cuda->index);
    return result;
}

int rondo_cuda_count(const char **why)
{
    int count = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess) {
        cudaGetLastError();
        if (why != NULL)
            *why = cudaGetErrorString(error);
        return 0;
    }
    if (count == 0 && why != NULL)
        *why = "there is no GPU";
    return count;
}

const struct rondo_device_kind rondo_cuda_device = {
    .name = "cuda",
    .poll_ns = POLL_NS,
    .create = create,
    .halt = halt,
    .destroy = destroy,
    .allocate = allocate,
    .release = release,
    .upload = upload,
    .download = download,
    .allocate_host = allocate_host,
    .release_host = release_host,
    .adopt = adopt,
    .disown = disown,
    .start = start,
    .enqueue = enqueue,
    .stream_id = stream_id,
    .is_captured = is_captured,
    .synchronize = synchronize,
};
