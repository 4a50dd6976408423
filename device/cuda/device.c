/*
 * The CUDA device: memory of one GPU, and the daemon as a kernel on a stream of its own (docs/architecture.md). The daemon
 * does not notify the host: waiting threads and the poller look at the queues.
 */
#include "device/cuda/state.h"

#include "device/cuda/kernels.h"
#include "lib/base/error.h"
#include "device/abi/platform.h"
#include "device/cuda/pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POLL_NS 50000u

/* ---- memory ---- */

/* Small copies from pageable memory travel with the commands. A larger copy waits for what other streams have ordered before
 * it, such as copies behind kernels that wait for peers. And setting memory may take a kernel, which waits for a
 * multiprocessor. */
#define UPLOAD_BYTES ((size_t) 16384)
#define UPLOADS_MAX  64

/* from: NULL for zeros. */
static cudaError_t put(const struct rondo_cuda *cuda, void *to, const void *from, size_t bytes)
{
    static const char zeros[UPLOAD_BYTES];
    cudaError_t error = cudaSuccess;
    if (bytes > UPLOADS_MAX * UPLOAD_BYTES)
        error = from != NULL ? cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, cuda->copies)
                             : cudaMemsetAsync(to, 0, bytes, cuda->copies);
    for (size_t at = 0; bytes <= UPLOADS_MAX * UPLOAD_BYTES && at < bytes && error == cudaSuccess; at += UPLOAD_BYTES)
        error = cudaMemcpyAsync((char *) to + at, from != NULL ? (const char *) from + at : zeros,
                                bytes - at < UPLOAD_BYTES ? bytes - at : UPLOAD_BYTES, cudaMemcpyHostToDevice, cuda->copies);
    return error == cudaSuccess ? cudaStreamSynchronize(cuda->copies) : error;
}

static void *obtain_device(void *argument, size_t bytes)
{
    struct rondo_cuda *cuda = argument;
    void *memory = NULL;
    struct rondo_cuda_caller caller = rondo_cuda_begin(cuda->index);
    cudaError_t error = cudaMalloc(&memory, bytes);
    if (error == cudaSuccess)
        error = put(cuda, memory, NULL, bytes);
    if (error != cudaSuccess) {
        cudaFree(memory);
        memory = NULL;
    }
    rondo_cuda_end(caller, cuda->index);
    return memory;
}

static void give_device_back(void *argument, void *memory)
{
    struct rondo_cuda *cuda = argument;
    struct rondo_cuda_caller caller = rondo_cuda_begin(cuda->index);
    cudaFree(memory);
    rondo_cuda_end(caller, cuda->index);
}

static void clear_device(void *argument, void *memory, size_t bytes)
{
    struct rondo_cuda *cuda = argument;
    struct rondo_cuda_caller caller = rondo_cuda_begin(cuda->index);
    (void) put(cuda, memory, NULL, bytes);
    rondo_cuda_end(caller, cuda->index);
}

static void *obtain_host(void *argument, size_t bytes)
{
    struct rondo_cuda *cuda = argument;
    void *memory = NULL;
    struct rondo_cuda_caller caller = rondo_cuda_begin(cuda->index);
    if (cudaHostAlloc(&memory, bytes, cudaHostAllocPortable | cudaHostAllocMapped) != cudaSuccess)
        memory = NULL;
    else
        memset(memory, 0, bytes);
    rondo_cuda_end(caller, cuda->index);
    return memory;
}

static void give_host_back(void *argument, void *memory)
{
    struct rondo_cuda *cuda = argument;
    struct rondo_cuda_caller caller = rondo_cuda_begin(cuda->index);
    cudaFreeHost(memory);
    rondo_cuda_end(caller, cuda->index);
}

static void clear_host(void *argument, void *memory, size_t bytes)
{
    (void) argument;
    memset(memory, 0, bytes);
}

static void *allocate(struct rondo_device *device, size_t bytes)
{
    return rondo_pool_take(rondo_cuda_of(device)->device_pool, bytes);
}

static void release(struct rondo_device *device, void *memory, size_t bytes)
{
    rondo_pool_return(rondo_cuda_of(device)->device_pool, memory, bytes);
}

static void *allocate_host(struct rondo_device *device, size_t bytes)
{
    return rondo_pool_take(rondo_cuda_of(device)->host_pool, bytes);
}

static void release_host(struct rondo_device *device, void *memory, size_t bytes)
{
    rondo_pool_return(rondo_cuda_of(device)->host_pool, memory, bytes);
}

static rondo_result_t upload(struct rondo_device *device, void *to, const void *from, size_t bytes)
{
    struct rondo_cuda *cuda = rondo_cuda_of(device);
    struct rondo_cuda_caller caller = rondo_cuda_begin(cuda->index);
    cudaError_t error = put(cuda, to, from, bytes);
    rondo_cuda_end(caller, cuda->index);
    return error == cudaSuccess ? RONDO_SUCCESS : rondo_cuda_report(error, "writing the GPU's memory");
}

/* Fetches words by a kernel of one thread: in this direction, even the smallest copy waits for other streams. */
static cudaError_t fetch(struct rondo_cuda *cuda, uint64_t *to, const uint64_t *from, uint32_t words)
{
    void *arguments[] = {&from, &cuda->fetched, &words};
    pthread_mutex_lock(&cuda->fetch_lock);
    cudaError_t error =
        cudaLaunchKernel(rondo_cuda_kernel(RONDO_CUDA_FETCH), (dim3){1, 1, 1}, (dim3){1, 1, 1}, arguments, 0, cuda->copies);
    if (error == cudaSuccess)
        error = cudaStreamSynchronize(cuda->copies);
    for (uint32_t w = 0; w < words && error == cudaSuccess; w++)
        to[w] = rondo_load_relaxed(&cuda->fetched[w]);
    pthread_mutex_unlock(&cuda->fetch_lock);
    return error;
}

static rondo_result_t download(struct rondo_device *device, void *to, const void *from, size_t bytes)
{
    struct rondo_cuda *cuda = rondo_cuda_of(device);
    struct rondo_cuda_caller caller = rondo_cuda_begin(cuda->index);
    cudaError_t error = cudaSuccess;
    for (size_t left = bytes / sizeof(uint64_t), words; left > 0 && error == cudaSuccess; left -= words) {
        const size_t at = bytes / sizeof(uint64_t) - left;
        words = left < RONDO_CUDA_FETCHED ? left : RONDO_CUDA_FETCHED;
        error = fetch(cuda, (uint64_t *) to + at, (const uint64_t *) from + at, (uint32_t) words);
    }
    rondo_cuda_end(caller, cuda->index);
    return error == cudaSuccess ? RONDO_SUCCESS : rondo_cuda_report(error, "reading the GPU's memory");
}

static rondo_result_t adopt(struct rondo_device *device, void *memory, size_t bytes)
{
    struct rondo_cuda *cuda = rondo_cuda_of(device);
    struct rondo_cuda_caller caller = rondo_cuda_begin(cuda->index);
    cudaError_t error = cudaHostRegister(memory, bytes, cudaHostRegisterPortable | cudaHostRegisterMapped);
    if (error == cudaErrorHostMemoryAlreadyRegistered) /* by another runtime of this process */
        error = cudaSuccess;
    rondo_cuda_end(caller, cuda->index);
    return error == cudaSuccess ? RONDO_SUCCESS : rondo_cuda_report(error, "registering shared memory with the GPU");
}

static void disown(struct rondo_device *device, void *memory)
{
    struct rondo_cuda *cuda = rondo_cuda_of(device);
    struct rondo_cuda_caller caller = rondo_cuda_begin(cuda->index);
    (void) cudaHostUnregister(memory);
    rondo_cuda_end(caller, cuda->index);
}

/* ---- running ---- */

/* Notes that the device cannot be used any more; the first failure stays. */
static void fail(struct rondo_cuda *cuda, const char *what, cudaError_t error)
{
    if (__atomic_exchange_n(&cuda->failing, 1, __ATOMIC_RELAXED))
        return;
    snprintf(cuda->failure, sizeof(cuda->failure), "GPU %d: %s: %s (%s)", cuda->index, what, cudaGetErrorString(error),
             cudaGetErrorName(error));
    __atomic_store_n(&cuda->failed, 1, __ATOMIC_RELEASE); /* after the text */
    rondo_log(RONDO_LOG_ERROR, cuda->rank, "%s", cuda->failure);
}

static void start(struct rondo_device *device, enum rondo_assist helper)
{
    struct rondo_cuda *cuda = rondo_cuda_of(device);
    (void) helper;
    void *arguments[] = {device->daemon};
    rondo_block_budget_daemon(cuda->block_budget, &cuda->budget_user, cuda->blocks);
    struct rondo_cuda_caller caller = rondo_cuda_begin(cuda->index);
    cudaError_t error =
        cudaLaunchKernel(rondo_cuda_kernel(RONDO_CUDA_DAEMON), (dim3){cuda->blocks, 1, 1},
                         (dim3){RONDO_CUDA_WORKERS_MAX + RONDO_CUDA_CONTROL, 1, 1}, arguments, 0, cuda->launches);
    if (error != cudaSuccess) {
        struct rondo_queues *queues = device->daemon->queues;
        fail(cuda, "the daemon cannot be launched", error);
        /* There is no daemon, so this thread may write its word. */
        rondo_store_release(&queues->state, RONDO_STATE(queues->launches, RONDO_DAEMON_LEFT));
    }
    rondo_cuda_end(caller, cuda->index);
}

static rondo_result_t check(struct rondo_device *device)
{
    struct rondo_cuda *cuda = rondo_cuda_of(device);
    if (!__atomic_load_n(&cuda->failed, __ATOMIC_ACQUIRE)) {
        struct rondo_cuda_caller caller = rondo_cuda_begin(cuda->index);
        cudaError_t error = cudaStreamQuery(cuda->launches);
        if (error != cudaSuccess && error != cudaErrorNotReady)
            fail(cuda, "the context is lost", error);
        rondo_cuda_end(caller, cuda->index);
    }
    return __atomic_load_n(&cuda->failed, __ATOMIC_ACQUIRE) ? rondo_fail(RONDO_ERR_DEVICE, "%s", cuda->failure) : RONDO_SUCCESS;
}

static rondo_result_t synchronize(struct rondo_device *device)
{
    struct rondo_cuda *cuda = rondo_cuda_of(device);
    struct rondo_cuda_caller caller = rondo_cuda_begin(cuda->index);
    cudaError_t error = cudaDeviceSynchronize();
    rondo_cuda_end(caller, cuda->index);
    return error == cudaSuccess ? RONDO_SUCCESS : rondo_cuda_report(error, "rondo_device_synchronize");
}

/* ---- life ---- */

static void halt(struct rondo_device *device)
{
    struct rondo_cuda *cuda = rondo_cuda_of(device);
    struct rondo_queues *queues = device->daemon->queues;
    rondo_store_relaxed32(&queues->stop, 1);
    __atomic_fetch_add(&queues->interrupts, 1, __ATOMIC_SEQ_CST);
    struct rondo_cuda_caller caller = rondo_cuda_begin(cuda->index);
    cudaDeviceSynchronize(); /* kernels on the application's streams end too */
    rondo_cuda_end(caller, cuda->index);
}

static void destroy(struct rondo_device *device)
{
    struct rondo_cuda *cuda = rondo_cuda_of(device);
    struct rondo_cuda_caller caller = rondo_cuda_begin(cuda->index);
    if (cuda->block_budget != NULL)
        rondo_block_budget_leave(cuda->block_budget, &cuda->budget_user);
    rondo_daemon_destroy(device);
    rondo_pool_destroy(cuda->device_pool);
    rondo_pool_destroy(cuda->host_pool);
    if (cuda->launches != NULL)
        cudaStreamDestroy(cuda->launches);
    if (cuda->copies != NULL)
        cudaStreamDestroy(cuda->copies);
    rondo_cuda_end(caller, cuda->index);
    pthread_mutex_destroy(&cuda->fetch_lock);
    free(cuda);
}

/* Loads all kernels: the first launch of a kernel that is not loaded waits for whatever runs on the GPU. */
static rondo_result_t load_kernels(struct rondo_cuda *cuda)
{
    struct cudaDeviceProp properties;
    cudaError_t error = cudaGetDeviceProperties(&properties, cuda->index);
    size_t stack = 0, most = 0;
    if (error == cudaSuccess)
        error = cudaDeviceGetLimit(&stack, cudaLimitStackSize);
    for (int k = 0; k < RONDO_CUDA_KERNELS && error == cudaSuccess; k++) {
        struct cudaFuncAttributes attributes;
        error = cudaFuncGetAttributes(&attributes, rondo_cuda_kernel((enum rondo_cuda_kernel) k));
        if (error == cudaSuccess && attributes.localSizeBytes > most)
            most = attributes.localSizeBytes;
        if (error == cudaSuccess && k != RONDO_CUDA_TMA && k != RONDO_CUDA_FETCH &&
            attributes.maxThreadsPerBlock < RONDO_CUDA_WORKERS_MAX + RONDO_CUDA_CONTROL)
            return rondo_fail(RONDO_ERR_UNSUPPORTED, "GPU %d runs blocks of at most %d threads of the daemon, not %d",
                              cuda->index, attributes.maxThreadsPerBlock, RONDO_CUDA_WORKERS_MAX + RONDO_CUDA_CONTROL);
    }
    if (error == cudaErrorNoKernelImageForDevice || error == cudaErrorInvalidDeviceFunction ||
        error == cudaErrorUnsupportedPtxVersion || error == cudaErrorInvalidPtx)
        return rondo_fail(RONDO_ERR_UNSUPPORTED, "GPU %d (%s) has compute capability %d.%d, for which this build has no code",
                          cuda->index, properties.name, properties.major, properties.minor);
    if (error == cudaSuccess && properties.major >= 9)
        error = cudaFuncSetAttribute(rondo_cuda_kernel(RONDO_CUDA_TMA), cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     RONDO_TMA_SHARED);
    if (error == cudaSuccess && most > stack) /* else the first launch that needs it would wait, too */
        error = cudaDeviceSetLimit(cudaLimitStackSize, most);
    rondo_log(RONDO_LOG_DEBUG, cuda->rank, "kernels take up to %zu bytes of a stack of %zu", most, stack);
    cuda->overlaps = properties.major >= 9;
    cuda->multiprocessors = (uint32_t) properties.multiProcessorCount;
    int kilohertz = 0;
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&kilohertz, cudaDevAttrClockRate, cuda->index);
    cuda->base.ticks_per_us = kilohertz >= 1000 ? (uint32_t) kilohertz / 1000 : 1000; /* of one that does not say: about that */
    return error == cudaSuccess ? RONDO_SUCCESS : rondo_cuda_report(error, "loading the kernels");
}

/* Checks that all blocks of the daemon can run at once, because they leave by agreement of all. */
static rondo_result_t check_blocks(const struct rondo_cuda *cuda)
{
    int each = 0;
    cudaError_t error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, rondo_cuda_kernel(RONDO_CUDA_DAEMON),
                                                                      RONDO_CUDA_WORKERS_MAX + RONDO_CUDA_CONTROL, 0);
    if (error != cudaSuccess)
        return rondo_cuda_report(error, "asking how many of the daemon's blocks a multiprocessor runs");
    const uint32_t most = cuda->multiprocessors * (uint32_t) each;
    if (cuda->blocks > most)
        return rondo_fail(
            RONDO_ERR_ARGUMENT,
            "%u blocks (RONDO_BLOCKS): GPU %d has %u multiprocessors, which run %u of the daemon's blocks at once",
            cuda->blocks, cuda->index, cuda->multiprocessors, most);
    return RONDO_SUCCESS;
}

/* Turns a failed allocation into RONDO_ERR_MEMORY. */
static rondo_result_t report_memory(const struct rondo_cuda *cuda)
{
    char wanted[256];
    size_t left = 0, all = 0;
    snprintf(wanted, sizeof(wanted), "%s", rondo_last_error());
    cudaMemGetInfo(&left, &all);
    return rondo_fail(RONDO_ERR_MEMORY, "GPU %d has %zu MiB of %zu MiB free: %s", cuda->index, left >> 20, all >> 20, wanted);
}

static rondo_result_t open_streams(struct rondo_cuda *cuda)
{
    int lowest, highest;
    cudaError_t error = cudaDeviceGetStreamPriorityRange(&lowest, &highest);
    if (error == cudaSuccess)
        error = cudaStreamCreateWithPriority(&cuda->launches, cudaStreamNonBlocking, highest);
    if (error == cudaSuccess)
        error = cudaStreamCreateWithFlags(&cuda->copies, cudaStreamNonBlocking);
    return error == cudaSuccess ? RONDO_SUCCESS : rondo_cuda_report(error, "creating streams");
}

static rondo_result_t open_pools(struct rondo_cuda *cuda)
{
    const struct rondo_pool_source device = {obtain_device, give_device_back, clear_device, cuda};
    const struct rondo_pool_source host = {obtain_host, give_host_back, clear_host, cuda};
    cuda->device_pool = rondo_pool_create(&device);
    cuda->host_pool = rondo_pool_create(&host);
    cuda->fetched =
        cuda->host_pool != NULL ? rondo_pool_take(cuda->host_pool, RONDO_CUDA_FETCHED * sizeof(*cuda->fetched)) : NULL;
    if (cuda->device_pool == NULL || cuda->fetched == NULL)
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
    cuda->stream_blocks = options->stream_blocks;
    pthread_mutex_init(&cuda->fetch_lock, NULL);
    struct rondo_cuda_caller caller = rondo_cuda_begin(cuda->index);
    rondo_result_t result = load_kernels(cuda);
    if (result == RONDO_SUCCESS)
        result = check_blocks(cuda);
    if (result == RONDO_SUCCESS)
        result = open_streams(cuda);
    if (result == RONDO_SUCCESS)
        result = open_pools(cuda);
    if (result == RONDO_SUCCESS)
        result = rondo_daemon_create(&cuda->base, options);
    if (result == RONDO_SUCCESS)
        result = rondo_cuda_take_block_budget(cuda);
    if (result == RONDO_ERR_MEMORY)
        result = report_memory(cuda);
    if (result != RONDO_SUCCESS)
        destroy(&cuda->base);
    else
        *device = &cuda->base;
    rondo_cuda_end(caller, cuda->index);
    return result;
}

int rondo_cuda_count(const char **why)
{
    int count = 0, clean = cudaPeekAtLastError() == cudaSuccess;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess) {
        if (clean)
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
    .check = check,
    .enqueue = rondo_cuda_enqueue,
    .copy = rondo_cuda_copy,
    .stream_id = rondo_cuda_stream_id,
    .is_captured = rondo_cuda_is_captured,
    .synchronize = synchronize,
};
