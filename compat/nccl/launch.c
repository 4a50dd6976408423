/* From a group's operations to Rondo's calls on streams. A group of several communicators is done in two steps: all are bound
 * and connected first, and then all are launched, so that no GPU waits in a kernel for one that is still being prepared. */
#include "compat/nccl/shim.h"

#include "compat/nccl/scale.h"

#include <stdlib.h>

#define CALL(name, ...)                                                                                                        \
    (host ? rondo_i##name(__VA_ARGS__, comm, &o->request) : rondo_##name##_on_stream(__VA_ARGS__, comm, o->stream))

rondo_result_t rondo_nccl_call(struct rondo_nccl_operation *o)
{
    rondo_comm_t comm = o->comm->comm;
    int host = o->comm->device < 0;
    switch (o->kind) {
    case RONDO_NCCL_ALLREDUCE:
        return CALL(allreduce, o->send, o->recv, o->count, o->type, o->op);
    case RONDO_NCCL_REDUCE:
        return CALL(reduce, o->send, o->recv, o->count, o->type, o->op, o->root);
    case RONDO_NCCL_BROADCAST: /* the root sends from where the data are */
        return CALL(bcast, o->copy != NULL ? (void *) (uintptr_t) o->copy : o->recv, o->count, o->type, o->root);
    case RONDO_NCCL_REDUCE_SCATTER:
        return CALL(reduce_scatter_block, o->send, o->recv, o->count, o->type, o->op);
    case RONDO_NCCL_ALLGATHER:
        return CALL(allgather, o->send, o->recv, o->count, o->type);
    case RONDO_NCCL_ALLTOALL:
        return CALL(alltoall, o->send, o->recv, o->count, o->type);
    case RONDO_NCCL_GATHER:
        return CALL(gather, o->send, o->recv, o->count, o->type, o->root);
    case RONDO_NCCL_SCATTER:
        return CALL(scatter, o->send, o->recv, o->count, o->type, o->root);
    case RONDO_NCCL_SEND:
        return CALL(send, o->send, o->count, o->type, o->root);
    default:
        return CALL(recv, o->recv, o->count, o->type, o->root);
    }
}

/* ---- what goes before an operation on its stream ---- */

static int is_captured(cudaStream_t stream)
{
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    if (cudaStreamIsCapturing(stream, &status) != cudaSuccess) {
        cudaGetLastError(); /* the call that follows reports what is wrong with the stream */
        return 0;
    }
    return status == cudaStreamCaptureStatusActive;
}

/* A graph may be launched at any time: memory that it uses stays for as long as the communicator. */
static cudaError_t keep_memory(struct ncclComm *comm, size_t bytes, void **memory)
{
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    cudaThreadExchangeStreamCaptureMode(&mode);
    cudaError_t error = rondo_nccl_retain(comm, RONDO_NCCL_OF_GPU, bytes, memory);
    cudaThreadExchangeStreamCaptureMode(&mode);
    return error;
}

static cudaError_t scale_input(struct rondo_nccl_operation *o)
{
    const void *from;
    size_t elements;
    void *to = rondo_nccl_scale_place(o, &from, &elements);
    cudaError_t error = cudaSuccess;
    if (to == NULL && is_captured(o->stream)) {
        error = keep_memory(o->comm, elements * rondo_nccl_type_bytes(o->type), &to);
    } else if (to == NULL) {
        error = cudaMallocAsync(&to, elements * rondo_nccl_type_bytes(o->type), o->stream);
        o->temporary = to;
    }
    if (error == cudaSuccess)
        error = rondo_nccl_scale(to, from, elements, o->type, o->scalar.address, o->scalar.value, o->stream);
    if (error == cudaSuccess)
        rondo_nccl_take_scaled(o, to);
    return error;
}

/* The communicator's GPU is made current for what is launched on the stream; others' calls do so themselves. */
static ncclResult_t prepare(struct rondo_nccl_operation *o)
{
    int current = o->comm->device;
    if (o->launch == NULL && (o->count == 0 || (!o->scaled && o->copy == NULL)))
        return ncclSuccess;
    cudaError_t error = cudaGetDevice(&current);
    if (error == cudaSuccess && current != o->comm->device)
        error = cudaSetDevice(o->comm->device);
    if (error == cudaSuccess && o->copy != NULL && o->count > 0)
        error =
            cudaMemcpyAsync(o->recv, o->copy, o->count * rondo_nccl_type_bytes(o->type), cudaMemcpyDeviceToDevice, o->stream);
    if (error == cudaSuccess && o->scaled && o->count > 0)
        error = scale_input(o);
    if (error == cudaSuccess && o->launch != NULL)
        error = cudaEventRecord(o->launch, o->stream);
    if (current != o->comm->device)
        cudaSetDevice(current);
    return rondo_nccl_cuda_result(error, "preparing an operation", "on its stream");
}

/* Once it is enqueued. */
static void release(struct rondo_nccl_operation *o)
{
    int current = o->comm->device;
    if (o->temporary == NULL)
        return;
    cudaGetDevice(&current);
    if (current != o->comm->device)
        cudaSetDevice(o->comm->device);
    cudaFreeAsync(o->temporary, o->stream);
    if (current != o->comm->device)
        cudaSetDevice(current);
    o->temporary = NULL;
}

static ncclResult_t issue(struct rondo_nccl_operation *o)
{
    ncclResult_t result = prepare(o);
    return result == ncclSuccess ? rondo_nccl_result(rondo_nccl_call(o), "enqueuing") : result;
}

/* ---- groups ---- */

static int compare(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int by_identity(const void *a, const void *b)
{
    struct ncclComm *first = *(struct ncclComm *const *) a, *second = *(struct ncclComm *const *) b;
    uint64_t first_id = 0, second_id = 0;
    int order = rondo_nccl_world_compare(first->world, second->world);
    rondo_comm_id(first->comm, &first_id);
    rondo_comm_id(second->comm, &second_id);
    if (order == 0)
        order = compare(first_id, second_id);
    return order != 0 ? order : compare((uintptr_t) first, (uintptr_t) second); /* other ranks of this process */
}

/* The communicators of a group, in an order that all ranks agree on, because each has a launch of its own on the group's
 * stream; and all threads, because they are locked. */
static int list_comms(const struct rondo_nccl_operation *operations, int count, struct ncclComm **comms)
{
    int found = 0;
    for (int i = 0; i < count; i++) {
        int known = i > 0 && operations[i].comm == operations[i - 1].comm;
        for (int c = 0; c < found && !known; c++)
            known = comms[c] == operations[i].comm;
        if (!known)
            comms[found++] = operations[i].comm;
    }
    qsort(comms, (size_t) found, sizeof(*comms), by_identity);
    return found;
}

static int is_p2p(const struct rondo_nccl_operation *o)
{
    return rondo_nccl_rule(o->kind)->point_to_point;
}

/* A graph's launches of one lane have no numbers to wait for, so they must follow each other on the stream: captured groups are
 * cut into rounds, the collectives first, then with every peer its first message, its second, and so on, on all ranks alike.
 * Others are done at once. Returns the last round. */
static int count_rounds(struct rondo_nccl_operation *operations, int count)
{
    int last = 0, captured = 0;
    for (int i = 0; i < count; i++) {
        struct rondo_nccl_operation *o = &operations[i];
        if (i == 0 || o->stream != operations[i - 1].stream)
            captured = is_captured(o->stream);
        if (!captured || !is_p2p(o))
            continue;
        o->round = 1;
        for (int k = 0; k < i; k++)
            o->round += operations[k].comm == o->comm && operations[k].kind == o->kind && operations[k].root == o->root;
        last = o->round > last ? o->round : last;
    }
    return last;
}

static ncclResult_t do_round(struct rondo_nccl_operation *operations, int count, int round, struct ncclComm **comms,
                             int comm_count)
{
    ncclResult_t result = ncclSuccess, one;
    int open = 0;
    while (open < comm_count && result == ncclSuccess) {
        result = rondo_nccl_result(rondo_group_start(comms[open]->comm), "ncclGroupEnd");
        open += result == ncclSuccess;
    }
    for (int i = 0; i < count && result == ncclSuccess; i++)
        if (operations[i].round == round)
            result = issue(&operations[i]);
    for (int c = 0; c < open; c++) {
        one = rondo_nccl_result(rondo_group_end(comms[c]->comm), "ncclGroupEnd");
        result = result == ncclSuccess ? one : result;
    }
    return result;
}

static ncclResult_t launch_group(struct rondo_nccl_operation *operations, int count)
{
    struct ncclComm *few[8], **comms = few;
    ncclResult_t result = ncclSuccess;
    if (count > 8 && (comms = malloc((size_t) count * sizeof(struct ncclComm *))) == NULL)
        return rondo_nccl_fail(ncclSystemError, "no memory for a group of %d operations", count);
    int comm_count = list_comms(operations, count, comms), last = count_rounds(operations, count);
    for (int c = 0; c < comm_count; c++)
        pthread_mutex_lock(&comms[c]->lock);
    for (int round = 0; round <= last && result == ncclSuccess; round++)
        result = do_round(operations, count, round, comms, comm_count);
    for (int c = 0; c < comm_count; c++)
        pthread_mutex_unlock(&comms[c]->lock);
    if (comms != few)
        free(comms);
    return result;
}

ncclResult_t rondo_nccl_launch(struct rondo_nccl_operation *operations, int count)
{
    if (operations[0].comm->device < 0)
        return rondo_nccl_host_launch(operations, count);
    ncclResult_t result = count == 1 ? issue(&operations[0]) : launch_group(operations, count);
    for (int i = 0; i < count; i++)
        release(&operations[i]);
    return result;
}
