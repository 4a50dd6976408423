/*
 * The CUDA device: memory of one GPU, and the daemon as a kernel on a stream of its own (DESIGN section 6). The daemon tells
 * the host nothing by itself: waiting threads and the poller look at the queues.
 */
#include "cuda_device.h"

#include "cuda_kernels.h"
#include "error.h"
#include "platform.h"
#include "pool.h"
#include "seats.h"

#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POLL_NS 50000u

struct rondo_cuda {
    struct rondo_device base;
    struct rondo_seats *seats;       /* of the GPU, */
    struct rondo_seats_user sitting; /* and how this runtime is known there */
    int index;                       /* which GPU */
    int rank;
    uint32_t blocks, multiprocessors;
    int overlaps; /* a kernel may be launched before the one it follows in its stream is done */
    cudaStream_t launches, copies;
    uint64_t *fetched; /* host memory: a word of the GPU's, */
    pthread_mutex_t fetch_lock;
    struct rondo_pool *device_pool, *host_pool;
    uint32_t failing, failed; /* it cannot be used any more; failed is released after failure */
    char failure[256];
};

static struct rondo_cuda *cuda_of(struct rondo_device *device)
{
    return (struct rondo_cuda *) device;
}

static rondo_result_t report(cudaError_t error, const char *what)
{
    rondo_result_t code = error == cudaErrorMemoryAllocation ? RONDO_ERR_MEMORY : RONDO_ERR_DEVICE;
    return rondo_fail(code, "%s: %s (%s)", what, cudaGetErrorString(error), cudaGetErrorName(error));
}

/* What of the calling thread's CUDA state our calls change. */
struct caller {
    int device;
    int clean; /* it has no error that it has not looked at */
    enum cudaStreamCaptureMode mode;
};

/* Makes the GPU current for the calling thread. While a thread captures a stream of its own, calls like ours, on any thread,
 * must declare that they have nothing to do with it. */
static struct caller enter(int index)
{
    struct caller caller = {.device = -1, .mode = cudaStreamCaptureModeRelaxed};
    caller.clean = cudaPeekAtLastError() == cudaSuccess;
    if (cudaThreadExchangeStreamCaptureMode(&caller.mode) != cudaSuccess)
        caller.mode = cudaStreamCaptureModeRelaxed;
    if (cudaGetDevice(&caller.device) != cudaSuccess)
        caller.device = -1;
    if (caller.device != index)
        cudaSetDevice(index);
    return caller;
}

/* An error of ours is reported by its code and is not found by the application as its last one, but nor do we take one away
 * that was there before. One that has ruined the context stays in any case. */
static void leave(struct caller caller, int index)
{
    if (caller.device >= 0 && caller.device != index)
        cudaSetDevice(caller.device);
    cudaThreadExchangeStreamCaptureMode(&caller.mode);
    if (caller.clean && cudaPeekAtLastError() != cudaSuccess)
        cudaGetLastError();
}

/* ---- memory ---- */

/* Small memory is copied to: setting it may take a kernel, which would have to wait for a multiprocessor. */
static cudaError_t zero(const struct rondo_cuda *cuda, void *memory, size_t bytes)
{
    static const char zeros[16384];
    cudaError_t error = cudaSuccess;
    if (bytes > 64 * sizeof(zeros))
        error = cudaMemsetAsync(memory, 0, bytes, cuda->copies);
    for (size_t at = 0; at < bytes && bytes <= 64 * sizeof(zeros) && error == cudaSuccess; at += sizeof(zeros))
        error = cudaMemcpyAsync((char *) memory + at, zeros, bytes - at < sizeof(zeros) ? bytes - at : sizeof(zeros),
                                cudaMemcpyHostToDevice, cuda->copies);
    return error == cudaSuccess ? cudaStreamSynchronize(cuda->copies) : error;
}

static void *obtain_device(void *argument, size_t bytes)
{
    struct rondo_cuda *cuda = argument;
    void *memory = NULL;
    struct caller caller = enter(cuda->index);
    cudaError_t error = cudaMalloc(&memory, bytes);
    if (error == cudaSuccess)
        error = zero(cuda, memory, bytes);
    if (error != cudaSuccess)
        memory = NULL;
    leave(caller, cuda->index);
    return memory;
}

static void give_device_back(void *argument, void *memory)
{
    struct rondo_cuda *cuda = argument;
    struct caller caller = enter(cuda->index);
    cudaFree(memory);
    leave(caller, cuda->index);
}

static void clear_device(void *argument, void *memory, size_t bytes)
{
    struct rondo_cuda *cuda = argument;
    struct caller caller = enter(cuda->index);
    (void) zero(cuda, memory, bytes);
    leave(caller, cuda->index);
}

static void *obtain_host(void *argument, size_t bytes)
{
    struct rondo_cuda *cuda = argument;
    void *memory = NULL;
    struct caller caller = enter(cuda->index);
    if (cudaHostAlloc(&memory, bytes, cudaHostAllocPortable | cudaHostAllocMapped) != cudaSuccess)
        memory = NULL;
    else
        memset(memory, 0, bytes);
    leave(caller, cuda->index);
    return memory;
}

static void give_host_back(void *argument, void *memory)
{
    struct rondo_cuda *cuda = argument;
    struct caller caller = enter(cuda->index);
    cudaFreeHost(memory);
    leave(caller, cuda->index);
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

static rondo_result_t copy(struct rondo_cuda *cuda, void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    struct caller caller = enter(cuda->index);
    cudaError_t error = cudaMemcpyAsync(to, from, bytes, kind, cuda->copies);
    if (error == cudaSuccess)
        error = cudaStreamSynchronize(cuda->copies);
    leave(caller, cuda->index);
    return error == cudaSuccess ? RONDO_SUCCESS : report(error, "copying between host and GPU");
}

static rondo_result_t upload(struct rondo_device *device, void *to, const void *from, size_t bytes)
{
    return copy(cuda_of(device), to, from, bytes, cudaMemcpyHostToDevice);
}

/* A copy to the host waits for what other streams have ordered before it: where four of them have copies behind kernels that
 * wait for peers (and CUDA its 8 connections), for those. A kernel of one thread does not. */
static rondo_result_t fetch_word(struct rondo_cuda *cuda, uint64_t *to, const uint64_t *from)
{
    void *arguments[] = {&from, &cuda->fetched};
    struct caller caller = enter(cuda->index);
    pthread_mutex_lock(&cuda->fetch_lock);
    cudaError_t error =
        cudaLaunchKernel(rondo_cuda_kernel(RONDO_CUDA_FETCH), (dim3){1, 1, 1}, (dim3){1, 1, 1}, arguments, 0, cuda->copies);
    if (error == cudaSuccess)
        error = cudaStreamSynchronize(cuda->copies);
    if (error == cudaSuccess)
        *to = rondo_load_relaxed(cuda->fetched);
    pthread_mutex_unlock(&cuda->fetch_lock);
    leave(caller, cuda->index);
    return error == cudaSuccess ? RONDO_SUCCESS : report(error, "reading the GPU's memory");
}

static rondo_result_t download(struct rondo_device *device, void *to, const void *from, size_t bytes)
{
    if (bytes == sizeof(uint64_t) && ((uintptr_t) from | (uintptr_t) to) % sizeof(uint64_t) == 0)
        return fetch_word(cuda_of(device), to, from);
    return copy(cuda_of(device), to, from, bytes, cudaMemcpyDeviceToHost);
}

static rondo_result_t adopt(struct rondo_device *device, void *memory, size_t bytes)
{
    struct rondo_cuda *cuda = cuda_of(device);
    struct caller caller = enter(cuda->index);
    cudaError_t error = cudaHostRegister(memory, bytes, cudaHostRegisterPortable | cudaHostRegisterMapped);
    if (error == cudaErrorHostMemoryAlreadyRegistered) /* by another runtime of this process */
        error = cudaSuccess;
    leave(caller, cuda->index);
    return error == cudaSuccess ? RONDO_SUCCESS : report(error, "registering shared memory with the GPU");
}

static void disown(struct rondo_device *device, void *memory)
{
    struct rondo_cuda *cuda = cuda_of(device);
    struct caller caller = enter(cuda->index);
    (void) cudaHostUnregister(memory);
    leave(caller, cuda->index);
}

/* ---- running ---- */

/* For good; the first failure stays. */
static void fail(struct rondo_cuda *cuda, const char *what, cudaError_t error)
{
    if (__atomic_exchange_n(&cuda->failing, 1, __ATOMIC_RELAXED))
        return;
    snprintf(cuda->failure, sizeof(cuda->failure), "GPU %d: %s: %s (%s)", cuda->index, what, cudaGetErrorString(error),
             cudaGetErrorName(error));
    __atomic_store_n(&cuda->failed, 1, __ATOMIC_RELEASE); /* after the text */
    rondo_log(RONDO_LOG_ERROR, cuda->rank, "%s", cuda->failure);
}

static void start(struct rondo_device *device, int will_help)
{
    struct rondo_cuda *cuda = cuda_of(device);
    (void) will_help;
    void *arguments[] = {device->daemon};
    rondo_seats_daemon(cuda->seats, &cuda->sitting, cuda->blocks);
    struct caller caller = enter(cuda->index);
    cudaError_t error =
        cudaLaunchKernel(rondo_cuda_kernel(RONDO_CUDA_DAEMON), (dim3){cuda->blocks, 1, 1},
                         (dim3){RONDO_CUDA_WORKERS_MAX + RONDO_CUDA_CONTROL, 1, 1}, arguments, 0, cuda->launches);
    if (error != cudaSuccess) {
        struct rondo_queues *queues = device->daemon->queues;
        fail(cuda, "the daemon cannot be launched", error);
        /* There is no daemon, so its word is ours. */
        rondo_store_release(&queues->state, RONDO_STATE(queues->launches, RONDO_DAEMON_LEFT));
    }
    leave(caller, cuda->index);
}

static rondo_result_t check(struct rondo_device *device)
{
    struct rondo_cuda *cuda = cuda_of(device);
    if (!__atomic_load_n(&cuda->failed, __ATOMIC_ACQUIRE)) {
        struct caller caller = enter(cuda->index);
        cudaError_t error = cudaStreamQuery(cuda->launches);
        if (error != cudaSuccess && error != cudaErrorNotReady)
            fail(cuda, "the context is lost", error);
        leave(caller, cuda->index);
    }
    return __atomic_load_n(&cuda->failed, __ATOMIC_ACQUIRE) ? rondo_fail(RONDO_ERR_DEVICE, "%s", cuda->failure) : RONDO_SUCCESS;
}

static rondo_result_t synchronize(struct rondo_device *device)
{
    struct rondo_cuda *cuda = cuda_of(device);
    struct caller caller = enter(cuda->index);
    cudaError_t error = cudaDeviceSynchronize();
    leave(caller, cuda->index);
    return error == cudaSuccess ? RONDO_SUCCESS : report(error, "rondo_device_synchronize");
}

/* Small operations need few threads: their barriers are cheaper. bytes: of a block. */
static uint32_t workers_for(size_t bytes)
{
    uint32_t workers = 64;
    while (workers < RONDO_CUDA_WORKERS_MAX && (size_t) workers * 8 < bytes)
        workers *= 2;
    return workers < RONDO_CUDA_WORKERS_MAX ? workers : RONDO_CUDA_WORKERS_MAX;
}

/* Blocks that do not all have a multiprocessor of their own must run at once all the same: two on each have half of its
 * registers. */
static uint32_t threads_for(const struct rondo_cuda *cuda, size_t bytes, uint32_t blocks)
{
    const uint32_t threads = workers_for(bytes) + RONDO_CUDA_CONTROL, half = (RONDO_CUDA_WORKERS_MAX + RONDO_CUDA_CONTROL) / 2;
    return blocks > cuda->multiprocessors && threads > half ? half : threads;
}

static uint32_t blocks_of(const struct rondo_stream_operation *operations, int count)
{
    uint32_t blocks = 0;
    for (int i = 0; i < count; i++)
        blocks += operations[i].blocks;
    return blocks;
}

static int is_lines(const struct rondo_operation *operation)
{
    return operation->protocol == RONDO_PROTOCOL_LL128;
}

static int is_bulk(const struct rondo_operation *operation)
{
    return operation->walks == RONDO_WALKS_BULK;
}

static int all(const struct rondo_stream_operation *operations, int count, int (*is)(const struct rondo_operation *))
{
    for (int i = 0; i < count; i++)
        if (!is(&operations[i].operation))
            return 0;
    return 1;
}

static enum rondo_cuda_kernel kernel_for(const struct rondo_stream_operation *operations, int count, int grouped)
{
    if (grouped)
        return RONDO_CUDA_GROUP;
    if (all(operations, count, is_bulk))
        return RONDO_CUDA_BULK;
    if (count > 1)
        return all(operations, count, is_lines) ? RONDO_CUDA_ALL_LINES : RONDO_CUDA_OPERATIONS;
    return all(operations, count, is_lines) ? RONDO_CUDA_LINES : RONDO_CUDA_OPERATION;
}

/* Parts of a group are shared out among so many blocks: no more than can be expected to run at once, whatever else does. */
static uint32_t widest(const struct rondo_cuda *cuda)
{
    return 2 * cuda->blocks;
}

/* What the launch would like: as many blocks as it has parts, so that all travels with the kernel. */
static struct rondo_seats_wish wish_of(const struct rondo_cuda *cuda, const struct rondo_stream_launch *launch)
{
    const uint32_t parts = blocks_of(launch->operations, launch->count),
                   least = (parts + RONDO_CUDA_PARTS_MAX - 1) / RONDO_CUDA_PARTS_MAX;
    const uint32_t most = launch->count == 1 ? parts : least > widest(cuda) ? least : widest(cuda);
    return (struct rondo_seats_wish){
        .stream =
            launch->stream_id != 0 ? launch->stream_id : (uint64_t) (uintptr_t) launch->stream, /* a handle may come again */
        .blocks = parts < most ? parts : most,
        .operations = launch->operations,
        .count = (uint32_t) launch->count,
        .least = least,
        .tells = launch->count > RONDO_CUDA_BATCH || parts > most, /* there will be a list, to be used again */
        .overlaps = cuda->overlaps && !launch->captured && launch->count <= RONDO_CUDA_BATCH,
        .captured = launch->captured};
}

/* The operations and the owners of their parts, which the kernel itself brings in: a copy in the stream's order might wait for
 * its turn behind another stream's, and that for peers. */
static rondo_result_t make_list(struct rondo_cuda *cuda, const struct rondo_stream_launch *launch, uint32_t parts,
                                const struct rondo_seats_grant *grant, struct rondo_cuda_group *group,
                                struct rondo_stream_list **result)
{
    const size_t operation_bytes = (size_t) launch->count * sizeof(*launch->operations);
    struct rondo_stream_list made = {.host_bytes = operation_bytes + parts * sizeof(uint32_t),
                                     .memory_bytes = parts * sizeof(struct rondo_cuda_visit),
                                     .over = grant->tells ? &cuda->base.daemon->queues->over[grant->place] : NULL,
                                     .until = grant->until};
    struct rondo_stream_list *list = malloc(sizeof(*list));
    made.host = allocate_host(&cuda->base, made.host_bytes);
    made.memory = allocate(&cuda->base, made.memory_bytes);
    if (list == NULL || made.host == NULL || made.memory == NULL) {
        release_host(&cuda->base, made.host, made.host_bytes);
        release(&cuda->base, made.memory, made.memory_bytes);
        free(list);
        return rondo_fail(RONDO_ERR_MEMORY,
                          "no memory for a list of %d operations (%zu bytes of the host's and %zu of the GPU's)", launch->count,
                          made.host_bytes, made.memory_bytes);
    }
    uint32_t *owners = (uint32_t *) (void *) ((char *) made.host + operation_bytes), *owner = owners;
    memcpy(made.host, launch->operations, operation_bytes);
    for (int i = 0; i < launch->count; i++)
        for (uint32_t b = 0; b < launch->operations[i].blocks; b++)
            *owner++ = (uint32_t) i;
    *group = (struct rondo_cuda_group){.operations = made.host, .owners = owners, .visits = made.memory, .parts = parts};
    *list = made;
    *result = list;
    return RONDO_SUCCESS;
}

/* A block a part, each with its operation at hand; or those of a group's. */
static cudaError_t launch_kernel(const struct rondo_cuda *cuda, const struct rondo_stream_launch *launch,
                                 const struct rondo_seats_grant *grant, struct rondo_cuda_group *group)
{
    const enum rondo_cuda_kernel kernel = kernel_for(launch->operations, launch->count, group != NULL);
    const int batched = group == NULL && (launch->count > 1 || kernel == RONDO_CUDA_BULK);
    struct rondo_cuda_batch batch; /* large, so not cleared */
    void *what = group != NULL ? (void *) group : batched ? (void *) &batch : (void *) launch->operations;
    void *arguments[] = {cuda->base.daemon, what};
    uint32_t fewest = UINT32_MAX;
    for (int i = 0; i < launch->count; i++)
        fewest = launch->operations[i].blocks < fewest ? launch->operations[i].blocks : fewest;
    if (batched) {
        batch.count = (uint32_t) launch->count;
        memcpy(batch.operations, launch->operations, (size_t) launch->count * sizeof(*launch->operations));
    }
    const uint32_t threads =
        kernel == RONDO_CUDA_BULK ? RONDO_BULK_THREADS : threads_for(cuda, launch->bytes / fewest, grant->blocks);
    /* The kernel's beginning may overlap the end of its like before it (rondo_after_stream); older GPUs know no such thing. */
    cudaLaunchAttribute early = {.id = cudaLaunchAttributeProgrammaticStreamSerialization,
                                 .val.programmaticStreamSerializationAllowed = 1};
    cudaLaunchConfig_t config = {.gridDim = {grant->blocks, 1, 1},
                                 .blockDim = {threads, 1, 1},
                                 .dynamicSmemBytes = kernel == RONDO_CUDA_BULK ? RONDO_BULK_SHARED : 0,
                                 .stream = (cudaStream_t) launch->stream,
                                 .attrs = &early,
                                 .numAttrs = grant->overlaps ? 1 : 0};
    return cudaLaunchKernelExC(&config, rondo_cuda_kernel(kernel), arguments);
}

static rondo_result_t enqueue(struct rondo_device *device, const struct rondo_stream_launch *launch,
                              struct rondo_stream_list **list)
{
    struct rondo_cuda *cuda = cuda_of(device);
    const struct rondo_seats_wish wish = wish_of(cuda, launch);
    struct rondo_cuda_group group;
    struct rondo_seats_grant grant;
    rondo_result_t result = RONDO_SUCCESS;
    uint32_t parts = 0;
    *list = NULL;
    rondo_seats_take(cuda->seats, &cuda->sitting, &wish, &grant);
    for (int i = 0; i < launch->count; i++) {
        struct rondo_stream_operation *operation = &launch->operations[i];
        operation->block_first = parts;
        operation->place = grant.place;
        operation->until = grant.until;
        operation->tells = (uint32_t) grant.tells;
        parts += operation->blocks;
    }
    if (rondo_log_admits(RONDO_LOG_DEBUG))
        rondo_log(RONDO_LOG_DEBUG, cuda->rank, "%u blocks for %u parts of %d operations on stream %llu%s", grant.blocks, parts,
                  launch->count, (unsigned long long) wish.stream, grant.overlaps ? ", early" : "");
    if (grant.blocks < parts || launch->count > RONDO_CUDA_BATCH)
        result = make_list(cuda, launch, parts, &grant, &group, list);
    if (result == RONDO_SUCCESS) {
        struct caller caller = enter(cuda->index);
        cudaError_t error = launch_kernel(cuda, launch, &grant, *list != NULL ? &group : NULL);
        leave(caller, cuda->index);
        result = error == cudaSuccess ? RONDO_SUCCESS : report(error, "launching an operation on a stream");
    }
    if (result != RONDO_SUCCESS)
        rondo_seats_return(cuda->seats, &cuda->sitting, &wish, &grant);
    return result;
}

static int is_captured(struct rondo_device *device, void *stream)
{
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    struct caller caller = enter(cuda_of(device)->index);
    cudaError_t error = cudaStreamIsCapturing((cudaStream_t) stream, &status);
    leave(caller, cuda_of(device)->index);
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
    struct caller caller = enter(cuda_of(device)->index);
    if (cudaStreamGetId((cudaStream_t) stream, &id) != cudaSuccess)
        id = 0;
    leave(caller, cuda_of(device)->index);
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
    struct caller caller = enter(cuda->index);
    cudaDeviceSynchronize(); /* kernels on the application's streams end too */
    leave(caller, cuda->index);
}

static void destroy(struct rondo_device *device)
{
    struct rondo_cuda *cuda = cuda_of(device);
    struct caller caller = enter(cuda->index);
    if (cuda->seats != NULL)
        rondo_seats_leave(cuda->seats, &cuda->sitting);
    rondo_daemon_destroy(device);
    rondo_pool_destroy(cuda->device_pool);
    rondo_pool_destroy(cuda->host_pool);
    if (cuda->launches != NULL)
        cudaStreamDestroy(cuda->launches);
    if (cuda->copies != NULL)
        cudaStreamDestroy(cuda->copies);
    leave(caller, cuda->index);
    pthread_mutex_destroy(&cuda->fetch_lock);
    free(cuda);
}

/* Loads the kernels: the first launch of one that is not loaded waits for whatever runs on the GPU. */
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
        if (error == cudaSuccess && k != RONDO_CUDA_BULK && k != RONDO_CUDA_FETCH &&
            attributes.maxThreadsPerBlock < RONDO_CUDA_WORKERS_MAX + RONDO_CUDA_CONTROL)
            return rondo_fail(RONDO_ERR_UNSUPPORTED, "GPU %d runs blocks of at most %d threads of the daemon, not %d",
                              cuda->index, attributes.maxThreadsPerBlock, RONDO_CUDA_WORKERS_MAX + RONDO_CUDA_CONTROL);
    }
    if (error == cudaErrorNoKernelImageForDevice || error == cudaErrorInvalidDeviceFunction ||
        error == cudaErrorUnsupportedPtxVersion || error == cudaErrorInvalidPtx)
        return rondo_fail(RONDO_ERR_UNSUPPORTED, "GPU %d (%s) has compute capability %d.%d, for which this build has no code",
                          cuda->index, properties.name, properties.major, properties.minor);
    if (error == cudaSuccess && properties.major >= 9)
        error = cudaFuncSetAttribute(rondo_cuda_kernel(RONDO_CUDA_BULK), cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     RONDO_BULK_SHARED);
    if (error == cudaSuccess && most > stack) /* else the first launch that needs it would wait, too */
        error = cudaDeviceSetLimit(cudaLimitStackSize, most);
    rondo_log(RONDO_LOG_DEBUG, cuda->rank, "kernels take up to %zu bytes of a stack of %zu", most, stack);
    cuda->overlaps = properties.major >= 9;
    cuda->multiprocessors = (uint32_t) properties.multiProcessorCount;
    return error == cudaSuccess ? RONDO_SUCCESS : report(error, "loading the kernels");
}

/* The daemon's blocks leave by agreement of all, so all must be able to run at once. */
static rondo_result_t check_blocks(const struct rondo_cuda *cuda)
{
    int each = 0;
    cudaError_t error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, rondo_cuda_kernel(RONDO_CUDA_DAEMON),
                                                                      RONDO_CUDA_WORKERS_MAX + RONDO_CUDA_CONTROL, 0);
    if (error != cudaSuccess)
        return report(error, "asking how many of the daemon's blocks a multiprocessor runs");
    const uint32_t most = cuda->multiprocessors * (uint32_t) each;
    if (cuda->blocks > most)
        return rondo_fail(
            RONDO_ERR_ARGUMENT,
            "%u blocks (RONDO_BLOCKS): GPU %d has %u multiprocessors, which run %u of the daemon's blocks at once",
            cuda->blocks, cuda->index, cuda->multiprocessors, most);
    return RONDO_SUCCESS;
}

/* What was wanted is in the last message. */
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
    return error == cudaSuccess ? RONDO_SUCCESS : report(error, "creating streams");
}

static rondo_result_t open_pools(struct rondo_cuda *cuda)
{
    const struct rondo_pool_source device = {obtain_device, give_device_back, clear_device, cuda};
    const struct rondo_pool_source host = {obtain_host, give_host_back, clear_host, cuda};
    cuda->device_pool = rondo_pool_create(&device);
    cuda->host_pool = rondo_pool_create(&host);
    cuda->fetched = cuda->host_pool != NULL ? rondo_pool_take(cuda->host_pool, sizeof(*cuda->fetched)) : NULL;
    if (cuda->device_pool == NULL || cuda->fetched == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for the GPU's pools");
    return RONDO_SUCCESS;
}

static struct rondo_cuda *cuda_of_user(struct rondo_seats_user *user)
{
    return (struct rondo_cuda *) (void *) ((char *) user - offsetof(struct rondo_cuda, sitting));
}

static uint32_t count_told(struct rondo_seats_user *user, uint32_t place)
{
    return rondo_load_acquire32(&cuda_of_user(user)->base.daemon->queues->over[place]);
}

static uint64_t count_executed(struct rondo_seats_user *user, uint32_t lane)
{
    struct rondo_device *device = &cuda_of_user(user)->base;
    uint64_t count = 0;
    (void) download(device, &count, &device->daemon->lanes[lane].ordered, sizeof(count)); /* else it is none */
    return count;
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
    pthread_mutex_init(&cuda->fetch_lock, NULL);
    struct caller caller = enter(cuda->index);
    rondo_result_t result = load_kernels(cuda);
    if (result == RONDO_SUCCESS)
        result = check_blocks(cuda);
    if (result == RONDO_SUCCESS)
        result = open_streams(cuda);
    if (result == RONDO_SUCCESS)
        result = open_pools(cuda);
    if (result == RONDO_SUCCESS)
        result = rondo_daemon_create(&cuda->base, options);
    cuda->sitting.told = count_told;
    cuda->sitting.executed = count_executed;
    if (result == RONDO_SUCCESS && (cuda->seats = rondo_seats_enter(cuda->index, cuda->multiprocessors)) == NULL)
        result = rondo_fail(RONDO_ERR_MEMORY, "no memory for who runs what on GPU %d", cuda->index);
    if (result == RONDO_ERR_MEMORY)
        result = report_memory(cuda);
    if (result != RONDO_SUCCESS)
        destroy(&cuda->base);
    else
        *device = &cuda->base;
    leave(caller, cuda->index);
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
    .enqueue = enqueue,
    .stream_id = stream_id,
    .is_captured = is_captured,
    .synchronize = synchronize,
};
