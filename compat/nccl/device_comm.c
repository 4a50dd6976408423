/* Device communicators: what kernels of the program get of a communicator (compat/nccl/device/nccl_device.h), and the GPU
 * memory of that. A device communicator's resources, barriers and buffers, are a window of its own. */
#include "compat/nccl/shim.h"

#include <stdlib.h>
#include <string.h>

#define ALIGNMENT   4096
#define WRITE_BYTES 32768 /* copies from the host that are so small are not queued behind other streams' kernels */

/* ---- GPU memory ---- */

struct rondo_nccl_block {
    struct rondo_nccl_block *next; /* of the communicator (its lock) */
    void *memory;                  /* of rondo_nccl_obtain */
    char *place;                   /* the aligned part */
    size_t bytes;
    int used;
};

static size_t align_up(size_t bytes, size_t to)
{
    return (bytes + to - 1) / to * to;
}

/* Makes the communicator's GPU current. Returns the one that was. */
static int enter(const struct ncclComm *comm)
{
    int current = comm->device;
    cudaGetDevice(&current);
    if (current != comm->device)
        cudaSetDevice(comm->device);
    return current;
}

static void leave(const struct ncclComm *comm, int current)
{
    if (current != comm->device)
        cudaSetDevice(current);
}

/* from NULL: zeros. */
static int write_parts(struct ncclComm *comm, char *to, const char *from, size_t bytes)
{
    cudaStream_t stream = NULL;
    char *zeros = from == NULL ? calloc(1, WRITE_BYTES) : NULL;
    const int current = enter(comm);
    int good = (from != NULL || zeros != NULL) && cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess;
    for (size_t at = 0; good && at < bytes; at += WRITE_BYTES) {
        const size_t part = bytes - at < WRITE_BYTES ? bytes - at : WRITE_BYTES;
        good = cudaMemcpyAsync(to + at, from != NULL ? from + at : zeros, part, cudaMemcpyHostToDevice, stream) == cudaSuccess;
    }
    if (stream != NULL) {
        good = cudaStreamSynchronize(stream) == cudaSuccess && good;
        cudaStreamDestroy(stream);
    }
    if (!good)
        cudaGetLastError(); /* it is reported by the caller */
    leave(comm, current);
    free(zeros);
    return good;
}

int rondo_nccl_block_write(struct ncclComm *comm, void *to, const void *from, size_t bytes)
{
    return write_parts(comm, to, from, bytes);
}

/* A block that was given back, and is not much larger. */
static struct rondo_nccl_block *take_again(struct ncclComm *comm, size_t bytes)
{
    struct rondo_nccl_block *found = NULL;
    pthread_mutex_lock(&comm->lock);
    for (struct rondo_nccl_block *block = comm->blocks; block != NULL && found == NULL; block = block->next)
        if (!block->used && block->bytes >= bytes && block->bytes / 2 <= bytes)
            found = block;
    if (found != NULL)
        found->used = 1;
    pthread_mutex_unlock(&comm->lock);
    return found;
}

static struct rondo_nccl_block *allocate(struct ncclComm *comm, size_t bytes)
{
    struct rondo_nccl_block *block = calloc(1, sizeof(*block));
    if (block == NULL)
        return NULL;
    if (rondo_nccl_obtain(comm->device, RONDO_NCCL_OF_GPU, bytes + ALIGNMENT, &block->memory) != cudaSuccess) {
        cudaGetLastError();
        free(block);
        return NULL;
    }
    block->place = (char *) align_up((uintptr_t) block->memory, ALIGNMENT);
    block->bytes = bytes;
    block->used = 1;
    pthread_mutex_lock(&comm->lock);
    block->next = comm->blocks;
    comm->blocks = block;
    pthread_mutex_unlock(&comm->lock);
    return block;
}

void *rondo_nccl_block_take(struct ncclComm *comm, size_t bytes)
{
    if (bytes > SIZE_MAX / 2)
        return NULL;
    bytes = align_up(bytes > 0 ? bytes : 1, ALIGNMENT);
    struct rondo_nccl_block *block = take_again(comm, bytes);
    if (block == NULL)
        block = allocate(comm, bytes);
    if (block != NULL && !write_parts(comm, block->place, NULL, bytes)) {
        rondo_nccl_block_give_back(comm, block->place);
        block = NULL;
    }
    return block != NULL ? block->place : NULL;
}

void rondo_nccl_block_give_back(struct ncclComm *comm, const void *memory)
{
    pthread_mutex_lock(&comm->lock);
    for (struct rondo_nccl_block *block = comm->blocks; block != NULL; block = block->next)
        if (block->place == memory)
            block->used = 0;
    pthread_mutex_unlock(&comm->lock);
}

void rondo_nccl_blocks_leave(struct ncclComm *comm)
{
    while (comm->blocks != NULL) {
        struct rondo_nccl_block *block = comm->blocks;
        comm->blocks = block->next;
        rondo_nccl_leave(comm->device, RONDO_NCCL_OF_GPU, block->bytes + ALIGNMENT, block->memory);
        free(block);
    }
    if (comm->abort_flag != NULL)
        cudaFreeHost(comm->abort_flag);
    comm->abort_flag = NULL;
}

/* ---- the abort flag ---- */

void rondo_nccl_abort_kernels(struct ncclComm *comm)
{
    uint32_t *flag = __atomic_load_n(&comm->abort_flag, __ATOMIC_ACQUIRE);
    if (flag != NULL)
        __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
}

/* Returns 0 if there is no memory. An abort meanwhile finds the flag, or is found here. */
static int make_abort_flag(struct ncclComm *comm)
{
    void *memory = NULL;
    uint32_t *none = NULL;
    if (__atomic_load_n(&comm->abort_flag, __ATOMIC_ACQUIRE) != NULL)
        return 1;
    const int current = enter(comm);
    const int good = cudaHostAlloc(&memory, sizeof(uint32_t), cudaHostAllocPortable | cudaHostAllocMapped) == cudaSuccess;
    if (!good)
        cudaGetLastError();
    leave(comm, current);
    if (!good)
        return 0;
    *(uint32_t *) memory = 0;
    if (!__atomic_compare_exchange_n(&comm->abort_flag, &none, (uint32_t *) memory, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        cudaFreeHost(memory);
    else if (__atomic_load_n(&comm->aborted, __ATOMIC_SEQ_CST))
        rondo_nccl_abort_kernels(comm);
    return 1;
}

/* ---- resources ---- */

static int is_made_by(const void *given, size_t size)
{
    const ncclDevCommRequirements_t *requirements = given;
    return requirements->size >= size && requirements->magic == RONDO_NCCL_DEVICE_MAGIC;
}

static size_t barrier_bytes(int barriers, int ranks)
{
    return (size_t) barriers * (size_t) (1 + ranks) * sizeof(uint32_t);
}

ncclResult_t pncclLsaBarrierCreateRequirement(ncclTeam_t ranks, int barriers, ncclLsaBarrierHandle_t *handle,
                                              ncclDevResourceRequirements_t *requirement)
{
    if (ranks.nRanks < 1 || barriers < 0 || handle == NULL || requirement == NULL)
        return rondo_nccl_fail(ncclInvalidArgument,
                               "ncclLsaBarrierCreateRequirement: %d barriers of %d ranks, handle %p, requirement %p", barriers,
                               ranks.nRanks, (void *) handle, (void *) requirement);
    *requirement = (ncclDevResourceRequirements_t){.bufferSize = barrier_bytes(barriers, ranks.nRanks),
                                                   .bufferAlign = RONDO_NCCL_RESOURCE_UNIT,
                                                   .outBufferHandle = &handle->bufHandle};
    handle->nBarriers = barriers;
    return ncclSuccess;
}
NCCL_EXPORT(ncclLsaBarrierCreateRequirement);

/* Places bytes behind what there is. Returns 0 if that is too much. */
static int place(size_t *end, size_t bytes, size_t alignment, ncclDevResourceHandle_t *handle)
{
    const size_t at = align_up(*end, alignment > RONDO_NCCL_RESOURCE_UNIT ? alignment : RONDO_NCCL_RESOURCE_UNIT);
    if (bytes > (size_t) UINT32_MAX || at > (size_t) UINT32_MAX * RONDO_NCCL_RESOURCE_UNIT - bytes)
        return 0;
    if (handle != NULL)
        *handle = (ncclDevResourceHandle_t) (at / RONDO_NCCL_RESOURCE_UNIT);
    *end = at + bytes;
    return 1;
}

/* All resources, in the order in which all ranks have them. */
static ncclResult_t lay_out(const ncclDevCommRequirements_t *wanted, ncclDevComm_t *made, size_t *bytes)
{
    *bytes = 0;
    made->lsaBarrier.nBarriers = wanted->lsaBarrierCount;
    made->hybridLsaBarrier.nBarriers = wanted->barrierCount;
    int fits = place(bytes, barrier_bytes(wanted->lsaBarrierCount, made->lsaSize), 0, &made->lsaBarrier.bufHandle) &&
               place(bytes, barrier_bytes(wanted->barrierCount, made->lsaSize), 0, &made->hybridLsaBarrier.bufHandle);
    for (const ncclDevResourceRequirements_t *one = wanted->resourceRequirementsList; one != NULL && fits; one = one->next) {
        if (one->ginSignalCount != 0 || one->ginCounterCount != 0)
            return rondo_nccl_fail(ncclInvalidUsage,
                                   "ncclDevCommCreate: a resource wants %d signals and %d counters of GIN: no network is "
                                   "driven by kernels here",
                                   one->ginSignalCount, one->ginCounterCount);
        if (one->bufferAlign > ALIGNMENT || (one->bufferAlign & (one->bufferAlign - 1)) != 0)
            return rondo_nccl_fail(ncclInvalidArgument,
                                   "ncclDevCommCreate: an alignment of %zu bytes is no power of two of at most %d",
                                   one->bufferAlign, ALIGNMENT);
        fits = place(bytes, one->bufferSize, one->bufferAlign, one->outBufferHandle);
    }
    if (!fits)
        return rondo_nccl_fail(ncclInvalidArgument, "ncclDevCommCreate: the resources are more than %zu bytes", *bytes);
    return ncclSuccess;
}

/* What needs multicast memory or a network. NULL: nothing does. */
static const char *find_refused(const struct ncclComm *comm, const ncclDevCommRequirements_t *wanted)
{
    if (wanted->lsaMultimem || wanted->teamRequirementsList != NULL)
        return "lsaMultimem or teamRequirementsList: multicast memory is off";
    if (wanted->lsaLLA2ABlockCount != 0 || wanted->lsaLLA2ASlotCount != 0)
        return "lsaLLA2ABlockCount or lsaLLA2ASlotCount: kernels have no LL all-to-all here";
    if (wanted->cftCaps != 0 || wanted->cftBarrierCount != 0)
        return "cftCaps or cftBarrierCount: there is no counted fabric here";
    if (wanted->useRuntimeVersion)
        return "useRuntimeVersion: a kernel is compiled with the header of its library here";
    if (wanted->ginForceEnable || wanted->ginSignalCount != 0 || wanted->ginCounterCount != 0 ||
        wanted->ginConnectionType != 0 || wanted->ginType != 0 || wanted->ginExclusiveContexts ||
        wanted->railGinBarrierCount != 0 || wanted->worldGinBarrierCount != 0)
        return "GIN (ginForceEnable, ginSignalCount, ginCounterCount, ginConnectionType, ginType, ginExclusiveContexts, "
               "railGinBarrierCount or worldGinBarrierCount): no network is driven by kernels here";
    if (wanted->barrierCount != 0 && rondo_nccl_lsa_size(comm) != comm->size)
        return "barrierCount: not all ranks reach each other's memory, and no network is driven by kernels here";
    return NULL;
}

/* ---- the calls ---- */

static ncclResult_t create(struct rondo_nccl_job *job)
{
    struct ncclComm *comm = job->parent;
    const int lsa = rondo_nccl_lsa_size(comm);
    ncclDevComm_t made = {.magic = RONDO_NCCL_DEVICE_MAGIC,
                          .version = job->requirements->version,
                          .rank = comm->rank,
                          .nRanks = comm->size,
                          .lsaRank = comm->rank % lsa,
                          .lsaSize = lsa};
    size_t bytes = 0;
    void *handle = NULL;
    ncclResult_t result = lay_out(job->requirements, &made, &bytes);
    if (result != ncclSuccess)
        return result;
    /* A rank without memory takes part all the same, and all fail. */
    void *memory = make_abort_flag(comm) ? rondo_nccl_block_take(comm, bytes) : NULL;
    result = rondo_nccl_window_make(comm, memory, bytes, 0, &handle, "ncclDevCommCreate");
    if (result != ncclSuccess) {
        rondo_nccl_block_give_back(comm, memory);
        return result;
    }
    made.resourceWindow = handle;
    made.abortFlag = comm->abort_flag;
    *job->device_comm = made;
    return ncclSuccess;
}

ncclResult_t pncclDevCommCreate(ncclComm_t comm, const ncclDevCommRequirements_t *requirements, ncclDevComm_t *out)
{
    const char *refused = NULL;
    ncclResult_t result = rondo_nccl_comm_hold(comm, RONDO_NCCL_TO_MANAGE, "ncclDevCommCreate");
    struct rondo_nccl_job *job = NULL;
    if (result != ncclSuccess)
        return rondo_nccl_note(result);
    if (requirements == NULL || out == NULL)
        result = rondo_nccl_fail(ncclInvalidArgument, "ncclDevCommCreate: reqs %p, outDevComm %p", (const void *) requirements,
                                 (void *) out);
    else if (!is_made_by(requirements, sizeof(*requirements)))
        result = rondo_nccl_fail(ncclInvalidUsage,
                                 "ncclDevCommCreate: reqs was not initialized by NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER of "
                                 "Rondo's nccl_device.h (compat/nccl/device), which kernels have to be compiled with: NVIDIA's "
                                 "device communicators are others");
    else if (comm->device < 0)
        result = rondo_nccl_fail(ncclInvalidUsage, "ncclDevCommCreate: the host device runs no kernels");
    else if (requirements->lsaBarrierCount < 0 || requirements->barrierCount < 0)
        result = rondo_nccl_fail(ncclInvalidArgument, "ncclDevCommCreate: lsaBarrierCount %d, barrierCount %d",
                                 requirements->lsaBarrierCount, requirements->barrierCount);
    else if ((refused = find_refused(comm, requirements)) != NULL)
        result = rondo_nccl_fail(ncclInvalidUsage, "ncclDevCommCreate: not offered: %s", refused);
    else if ((job = calloc(1, sizeof(*job))) == NULL)
        result = rondo_nccl_fail(ncclSystemError, "ncclDevCommCreate: no memory");
    if (result == ncclSuccess) {
        *out = (ncclDevComm_t){.magic = 0};
        job->run = create;
        job->blocking = 1;
        job->parent = comm; /* lets it go */
        job->requirements = requirements;
        job->device_comm = out;
        return rondo_nccl_note(rondo_nccl_submit(job));
    }
    rondo_nccl_comm_let_go(comm);
    return rondo_nccl_note(result);
}
NCCL_EXPORT(ncclDevCommCreate);

ncclResult_t pncclDevCommDestroy(ncclComm_t comm, const ncclDevComm_t *device_comm)
{
    void *memory = NULL;
    ncclResult_t result = rondo_nccl_comm_hold(comm, RONDO_NCCL_TO_ASK, "ncclDevCommDestroy");
    if (result != ncclSuccess)
        return result;
    if (device_comm == NULL || device_comm->magic != RONDO_NCCL_DEVICE_MAGIC)
        result = rondo_nccl_fail(ncclInvalidArgument, "ncclDevCommDestroy: %p was not made by ncclDevCommCreate",
                                 (const void *) device_comm);
    else
        result = rondo_nccl_window_remove(comm, device_comm->resourceWindow, &memory, "ncclDevCommDestroy");
    if (memory != NULL)
        rondo_nccl_block_give_back(comm, memory);
    rondo_nccl_comm_let_go(comm);
    return result;
}
NCCL_EXPORT(ncclDevCommDestroy);
