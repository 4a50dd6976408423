/*
 * Operations in stream order on a GPU: which kernel executes them, with how many blocks (device/cuda/block_budget.h) and
 * threads, and what travels with it. Nothing here waits for what runs on the GPU.
 */
#include "device/cuda/state.h"

#include "device/cuda/kernels.h"
#include "lib/base/error.h"
#include "device/abi/platform.h"
#include "device/move/mover_table.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* ---- which kernel, and how many threads ---- */

/* Number of workers for a block that moves so many bytes. Small operations need few, for their barriers are cheaper. */
static uint32_t workers_for(size_t bytes)
{
    uint32_t workers = 64;
    while (workers < RONDO_CUDA_WORKERS_MAX && (size_t) workers * 8 < bytes)
        workers *= 2;
    return workers < RONDO_CUDA_WORKERS_MAX ? workers : RONDO_CUDA_WORKERS_MAX;
}

/* Number of threads. Blocks that share a multiprocessor must run at once all the same: two on each have half of its
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

static int is_tma(const struct rondo_operation *operation)
{
    return operation->warp_mode == RONDO_WARP_MODE_TMA;
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
    if (rondo_launch_mode(RONDO_WARP_MODE_TMA, grouped, all(operations, count, is_tma), 0) == RONDO_WARP_MODE_TMA)
        return RONDO_CUDA_TMA;
    if (count > 1)
        return all(operations, count, is_lines) ? RONDO_CUDA_ALL_LINES : RONDO_CUDA_OPERATIONS;
    return all(operations, count, is_lines) ? RONDO_CUDA_LINES : RONDO_CUDA_OPERATION;
}

/* Most blocks that share the parts of a group: as many as can be expected to run at once, whatever else does. */
static uint32_t widest(const struct rondo_cuda *cuda)
{
    return 2 * cuda->blocks;
}

/* Whether the launch needs a list: it has more than a kernel's arguments hold, or blocks execute several parts. */
static int needs_list(const struct rondo_stream_launch *launch, uint32_t parts, uint32_t blocks)
{
    return launch->count > RONDO_CUDA_BATCH || blocks < parts;
}

/* What the launch asks of the block budget: a block for each part if possible, so that everything travels with the kernel. */
static struct rondo_block_budget_request wish_of(const struct rondo_cuda *cuda, const struct rondo_stream_launch *launch,
                                                 uint32_t parts)
{
    const uint32_t least = (parts + RONDO_CUDA_PARTS_MAX - 1) / RONDO_CUDA_PARTS_MAX;
    uint32_t most = launch->count == 1 ? parts : least > widest(cuda) ? least : widest(cuda);
    if (cuda->stream_blocks > 0 && most > cuda->stream_blocks)
        most = cuda->stream_blocks > least ? cuda->stream_blocks : least;
    return (struct rondo_block_budget_request){
        .stream =
            launch->stream_id != 0 ? launch->stream_id : (uint64_t) (uintptr_t) launch->stream, /* a handle may come again */
        .blocks = parts < most ? parts : most,
        .operations = launch->operations,
        .count = (uint32_t) launch->count,
        .least = least,
        .tells = needs_list(launch, parts, most), /* which is to be used again */
        .overlaps = cuda->overlaps && !launch->captured && launch->count <= RONDO_CUDA_BATCH,
        .captured = launch->captured};
}

/* Makes the list of the operations and of the owners of their parts, which the kernel copies: nothing waits on the way to a
 * launch. */
static rondo_result_t make_list(struct rondo_cuda *cuda, const struct rondo_stream_launch *launch, uint32_t parts,
                                const struct rondo_block_budget_grant *grant, struct rondo_cuda_group *group,
                                struct rondo_stream_list **result)
{
    const size_t operation_bytes = (size_t) launch->count * sizeof(*launch->operations);
    struct rondo_stream_list made = {.host_bytes = operation_bytes + parts * sizeof(uint32_t),
                                     .memory_bytes = parts * sizeof(struct rondo_cuda_visit),
                                     .over = grant->tells ? &cuda->base.daemon->queues->over[grant->place] : NULL,
                                     .until = grant->until};
    struct rondo_stream_list *list = malloc(sizeof(*list));
    made.host = cuda->base.kind->allocate_host(&cuda->base, made.host_bytes);
    made.memory = cuda->base.kind->allocate(&cuda->base, made.memory_bytes);
    if (list == NULL || made.host == NULL || made.memory == NULL) {
        cuda->base.kind->release_host(&cuda->base, made.host, made.host_bytes);
        cuda->base.kind->release(&cuda->base, made.memory, made.memory_bytes);
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

/* Launches the kernel: a block for each part, or the blocks of a group. */
static cudaError_t launch_kernel(const struct rondo_cuda *cuda, const struct rondo_stream_launch *launch,
                                 const struct rondo_block_budget_grant *grant, struct rondo_cuda_group *group)
{
    const enum rondo_cuda_kernel kernel = kernel_for(launch->operations, launch->count, group != NULL);
    const int batched = group == NULL && (launch->count > 1 || kernel == RONDO_CUDA_TMA);
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
        kernel == RONDO_CUDA_TMA ? RONDO_TMA_THREADS : threads_for(cuda, launch->bytes / fewest, grant->blocks);
    /* The kernel's beginning may overlap the end of the same kernel before it (rondo_after_stream); older GPUs do not. */
    cudaLaunchAttribute early = {.id = cudaLaunchAttributeProgrammaticStreamSerialization,
                                 .val.programmaticStreamSerializationAllowed = 1};
    cudaLaunchConfig_t config = {.gridDim = {grant->blocks, 1, 1},
                                 .blockDim = {threads, 1, 1},
                                 .dynamicSmemBytes = kernel == RONDO_CUDA_TMA ? RONDO_TMA_SHARED : 0,
                                 .stream = (cudaStream_t) launch->stream,
                                 .attrs = &early,
                                 .numAttrs = grant->overlaps ? 1 : 0};
    return cudaLaunchKernelExC(&config, rondo_cuda_kernel(kernel), arguments);
}

rondo_result_t rondo_cuda_enqueue(struct rondo_device *device, const struct rondo_stream_launch *launch,
                                  struct rondo_stream_list **list)
{
    struct rondo_cuda *cuda = rondo_cuda_of(device);
    const uint32_t parts = blocks_of(launch->operations, launch->count);
    const struct rondo_block_budget_request wish = wish_of(cuda, launch, parts);
    struct rondo_cuda_group group;
    struct rondo_block_budget_grant grant;
    rondo_result_t result = RONDO_SUCCESS;
    uint32_t block_first = 0;
    *list = NULL;
    rondo_block_budget_take(cuda->block_budget, &cuda->budget_user, &wish, &grant);
    for (int i = 0; i < launch->count; i++) {
        struct rondo_stream_operation *operation = &launch->operations[i];
        operation->block_first = block_first;
        operation->place = grant.place;
        operation->until = grant.until;
        operation->tells = (uint32_t) grant.tells;
        block_first += operation->blocks;
    }
    if (rondo_log_admits(RONDO_LOG_DEBUG))
        rondo_log(RONDO_LOG_DEBUG, cuda->rank, "%u blocks for %u parts of %d operations on stream %llu%s", grant.blocks, parts,
                  launch->count, (unsigned long long) wish.stream, grant.overlaps ? ", early" : "");
    if (needs_list(launch, parts, grant.blocks))
        result = make_list(cuda, launch, parts, &grant, &group, list);
    if (result == RONDO_SUCCESS) {
        struct rondo_cuda_caller caller = rondo_cuda_begin(cuda->index);
        cudaError_t error = launch_kernel(cuda, launch, &grant, *list != NULL ? &group : NULL);
        rondo_cuda_end(caller, cuda->index);
        result = error == cudaSuccess ? RONDO_SUCCESS : rondo_cuda_report(error, "launching an operation on a stream");
    }
    if (result == RONDO_SUCCESS)
        __atomic_fetch_add(&device->stream_blocks, grant.blocks, __ATOMIC_RELAXED);
    else
        rondo_block_budget_return(cuda->block_budget, &cuda->budget_user, &wish, &grant);
    return result;
}

/* ---- streams ---- */

rondo_result_t rondo_cuda_is_captured(struct rondo_device *device, void *stream, int *captured)
{
    const int own = rondo_cuda_of(device)->index;
    int gpu = own;
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    struct rondo_cuda_caller caller = rondo_cuda_begin(own);
    cudaError_t error = cudaStreamIsCapturing((cudaStream_t) stream, &status);
#if CUDART_VERSION >= 12080
    /* To ask a stream that is captured would invalidate the capture. */
    if (error == cudaSuccess && status == cudaStreamCaptureStatusNone &&
        cudaStreamGetDevice((cudaStream_t) stream, &gpu) != cudaSuccess)
        gpu = own; /* a driver older than that */
#endif
    rondo_cuda_end(caller, own);
    *captured = status == cudaStreamCaptureStatusActive;
    if (error == cudaErrorInvalidResourceHandle || error == cudaErrorContextIsDestroyed || error == cudaErrorInvalidValue ||
        gpu != own)
        return rondo_fail(RONDO_ERR_ARGUMENT, "%p is not a stream of this runtime's GPU", stream);
    return error == cudaSuccess ? RONDO_SUCCESS : rondo_cuda_report(error, "looking at a stream");
}

uint64_t rondo_cuda_stream_id(struct rondo_device *device, void *stream)
{
    unsigned long long id = 0;
#if CUDART_VERSION >= 12000
    struct rondo_cuda_caller caller = rondo_cuda_begin(rondo_cuda_of(device)->index);
    if (cudaStreamGetId((cudaStream_t) stream, &id) != cudaSuccess)
        id = 0;
    rondo_cuda_end(caller, rondo_cuda_of(device)->index);
#else
    (void) device;
    (void) stream;
#endif
    return id;
}

/* ---- what is over ---- */

static struct rondo_cuda *cuda_of_user(struct rondo_block_budget_user *user)
{
    return (struct rondo_cuda *) (void *) ((char *) user - offsetof(struct rondo_cuda, budget_user));
}

static uint32_t count_told(struct rondo_block_budget_user *user, uint32_t place)
{
    return rondo_load_acquire32(&cuda_of_user(user)->base.daemon->queues->over[place]);
}

static uint64_t count_executed(struct rondo_block_budget_user *user, uint32_t lane)
{
    struct rondo_device *device = &cuda_of_user(user)->base;
    uint64_t count = 0;
    (void) device->kind->download(device, &count, &device->daemon->lanes[lane].ordered, sizeof(count)); /* else it is none */
    return count;
}

rondo_result_t rondo_cuda_take_block_budget(struct rondo_cuda *cuda)
{
    cuda->budget_user.told = count_told;
    cuda->budget_user.executed = count_executed;
    cuda->block_budget = rondo_block_budget_enter(cuda->index, cuda->multiprocessors);
    return cuda->block_budget != NULL ? RONDO_SUCCESS
                                      : rondo_fail(RONDO_ERR_MEMORY, "no memory for who runs what on GPU %d", cuda->index);
}
