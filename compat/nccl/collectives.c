/* The communicating calls: their arguments checked as NCCL checks them, and told in Rondo's terms, above all what in place
 * means.
 */
#include "compat/nccl/shim.h"

#include <stdlib.h>

/* What all of them have in common; the operation's communicator is held when it succeeds. */
static ncclResult_t begin(struct rondo_nccl_operation *operation, enum rondo_nccl_kind kind, const char *function,
                          const void *send, void *recv, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream)
{
    operation->comm = NULL;
    ncclResult_t result = rondo_nccl_comm_hold(comm, RONDO_NCCL_TO_COMMUNICATE, function);
    if (result != ncclSuccess)
        return result;
    operation->comm = comm;
    operation->kind = kind;
    operation->op = RONDO_SUM;
    operation->root = -1;
    operation->scaled = operation->round = 0;
    operation->send = send;
    operation->recv = recv;
    operation->count = count;
    operation->copy = operation->temporary = NULL;
    operation->stream = stream;
    operation->request = NULL;
    return rondo_nccl_type(type, function, &operation->type);
}

/* Either a root or a peer. */
static ncclResult_t name_rank(struct rondo_nccl_operation *operation, const char *function, const char *what, int rank)
{
    operation->root = rank;
    if (rank < 0 || rank >= operation->comm->size)
        return rondo_nccl_fail(ncclInvalidArgument, "%s: %s %d in a communicator of %d", function, what, rank,
                               operation->comm->size);
    return ncclSuccess;
}

static ncclResult_t need(const struct rondo_nccl_operation *operation, const char *function, const char *what,
                         const void *buffer)
{
    if (buffer == NULL && operation->count > 0)
        return rondo_nccl_fail(ncclInvalidArgument, "%s: %s is NULL for %zu elements", function, what, operation->count);
    return ncclSuccess;
}

/* buffer, so many blocks further on. */
static const void *block_of(const struct rondo_nccl_operation *operation, const void *buffer, int block)
{
    return (const char *) buffer + (size_t) block * operation->count * rondo_nccl_type_bytes(operation->type);
}

static ncclResult_t finish(struct rondo_nccl_operation *operation, ncclResult_t result)
{
    if (result == ncclSuccess)
        return rondo_nccl_enqueue(operation);
    if (operation->comm != NULL)
        rondo_nccl_comm_let_go(operation->comm);
    return rondo_nccl_note(result);
}

ncclResult_t pncclAllReduce(const void *send, void *recv, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                            cudaStream_t stream)
{
    struct rondo_nccl_operation operation;
    ncclResult_t result = begin(&operation, RONDO_NCCL_ALLREDUCE, "ncclAllReduce", send, recv, count, type, comm, stream);
    if (result == ncclSuccess)
        result = rondo_nccl_operator(comm, op, "ncclAllReduce", &operation);
    if (result == ncclSuccess)
        result = need(&operation, "ncclAllReduce", "sendbuff", send);
    if (result == ncclSuccess)
        result = need(&operation, "ncclAllReduce", "recvbuff", recv);
    if (send == recv)
        operation.send = RONDO_IN_PLACE;
    return finish(&operation, result);
}
NCCL_EXPORT(ncclAllReduce);

ncclResult_t pncclReduce(const void *send, void *recv, size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
                         ncclComm_t comm, cudaStream_t stream)
{
    struct rondo_nccl_operation operation;
    ncclResult_t result = begin(&operation, RONDO_NCCL_REDUCE, "ncclReduce", send, recv, count, type, comm, stream);
    if (result == ncclSuccess)
        result = rondo_nccl_operator(comm, op, "ncclReduce", &operation);
    if (result == ncclSuccess)
        result = name_rank(&operation, "ncclReduce", "root", root);
    if (result == ncclSuccess)
        result = need(&operation, "ncclReduce", "sendbuff", send);
    if (result == ncclSuccess && comm->rank == root) {
        result = need(&operation, "ncclReduce", "recvbuff", recv);
        if (send == recv)
            operation.send = RONDO_IN_PLACE;
    }
    return finish(&operation, result);
}
NCCL_EXPORT(ncclReduce);

ncclResult_t pncclBroadcast(const void *send, void *recv, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                            cudaStream_t stream)
{
    struct rondo_nccl_operation operation;
    ncclResult_t result = begin(&operation, RONDO_NCCL_BROADCAST, "ncclBroadcast", NULL, recv, count, type, comm, stream);
    if (result == ncclSuccess)
        result = name_rank(&operation, "ncclBroadcast", "root", root);
    if (result == ncclSuccess)
        result = need(&operation, "ncclBroadcast", "recvbuff", recv);
    if (result == ncclSuccess && comm->rank == root) {
        result = need(&operation, "ncclBroadcast", "sendbuff", send);
        if (send != recv)
            operation.copy = send;
    }
    return finish(&operation, result);
}
NCCL_EXPORT(ncclBroadcast);

ncclResult_t pncclBcast(void *buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream)
{
    return pncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}
NCCL_EXPORT(ncclBcast);

/* In place the result may replace the rank's own block of the input, which Rondo allows as it is. */
ncclResult_t pncclReduceScatter(const void *send, void *recv, size_t count, ncclDataType_t type, ncclRedOp_t op,
                                ncclComm_t comm, cudaStream_t stream)
{
    struct rondo_nccl_operation operation;
    ncclResult_t result =
        begin(&operation, RONDO_NCCL_REDUCE_SCATTER, "ncclReduceScatter", send, recv, count, type, comm, stream);
    if (result == ncclSuccess)
        result = rondo_nccl_operator(comm, op, "ncclReduceScatter", &operation);
    if (result == ncclSuccess)
        result = need(&operation, "ncclReduceScatter", "sendbuff", send);
    if (result == ncclSuccess)
        result = need(&operation, "ncclReduceScatter", "recvbuff", recv);
    return finish(&operation, result);
}
NCCL_EXPORT(ncclReduceScatter);

ncclResult_t pncclAllGather(const void *send, void *recv, size_t count, ncclDataType_t type, ncclComm_t comm,
                            cudaStream_t stream)
{
    struct rondo_nccl_operation operation;
    ncclResult_t result = begin(&operation, RONDO_NCCL_ALLGATHER, "ncclAllGather", send, recv, count, type, comm, stream);
    if (result == ncclSuccess)
        result = need(&operation, "ncclAllGather", "sendbuff", send);
    if (result == ncclSuccess)
        result = need(&operation, "ncclAllGather", "recvbuff", recv);
    if (result == ncclSuccess && send == block_of(&operation, recv, comm->rank))
        operation.send = RONDO_IN_PLACE;
    return finish(&operation, result);
}
NCCL_EXPORT(ncclAllGather);

ncclResult_t pncclAlltoAll(const void *send, void *recv, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream)
{
    struct rondo_nccl_operation operation;
    ncclResult_t result = begin(&operation, RONDO_NCCL_ALLTOALL, "ncclAlltoAll", send, recv, count, type, comm, stream);
    if (result == ncclSuccess)
        result = need(&operation, "ncclAlltoAll", "sendbuff", send);
    if (result == ncclSuccess)
        result = need(&operation, "ncclAlltoAll", "recvbuff", recv);
    if (send == recv)
        operation.send = RONDO_IN_PLACE;
    return finish(&operation, result);
}
NCCL_EXPORT(ncclAlltoAll);

ncclResult_t pncclGather(const void *send, void *recv, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                         cudaStream_t stream)
{
    struct rondo_nccl_operation operation;
    ncclResult_t result = begin(&operation, RONDO_NCCL_GATHER, "ncclGather", send, recv, count, type, comm, stream);
    if (result == ncclSuccess)
        result = name_rank(&operation, "ncclGather", "root", root);
    if (result == ncclSuccess)
        result = need(&operation, "ncclGather", "sendbuff", send);
    if (result == ncclSuccess && comm->rank == root) {
        result = need(&operation, "ncclGather", "recvbuff", recv);
        if (send == block_of(&operation, recv, root))
            operation.send = RONDO_IN_PLACE;
    }
    return finish(&operation, result);
}
NCCL_EXPORT(ncclGather);

ncclResult_t pncclScatter(const void *send, void *recv, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                          cudaStream_t stream)
{
    struct rondo_nccl_operation operation;
    ncclResult_t result = begin(&operation, RONDO_NCCL_SCATTER, "ncclScatter", send, recv, count, type, comm, stream);
    if (result == ncclSuccess)
        result = name_rank(&operation, "ncclScatter", "root", root);
    if (result == ncclSuccess)
        result = need(&operation, "ncclScatter", "recvbuff", recv);
    if (result == ncclSuccess && comm->rank == root) {
        result = need(&operation, "ncclScatter", "sendbuff", send);
        if (recv == block_of(&operation, send, root))
            operation.recv = RONDO_IN_PLACE;
    }
    return finish(&operation, result);
}
NCCL_EXPORT(ncclScatter);

ncclResult_t pncclSend(const void *send, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream)
{
    struct rondo_nccl_operation operation;
    ncclResult_t result = begin(&operation, RONDO_NCCL_SEND, "ncclSend", send, NULL, count, type, comm, stream);
    if (result == ncclSuccess)
        result = name_rank(&operation, "ncclSend", "peer", peer);
    if (result == ncclSuccess)
        result = need(&operation, "ncclSend", "sendbuff", send);
    return finish(&operation, result);
}
NCCL_EXPORT(ncclSend);

ncclResult_t pncclRecv(void *recv, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream)
{
    struct rondo_nccl_operation operation;
    ncclResult_t result = begin(&operation, RONDO_NCCL_RECEIVE, "ncclRecv", NULL, recv, count, type, comm, stream);
    if (result == ncclSuccess)
        result = name_rank(&operation, "ncclRecv", "peer", peer);
    if (result == ncclSuccess)
        result = need(&operation, "ncclRecv", "recvbuff", recv);
    return finish(&operation, result);
}
NCCL_EXPORT(ncclRecv);
