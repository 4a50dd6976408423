/* The way of a taken call: described, its staged data packed, carried out by Rondo, unpacked. */
#include "compat/mpi/shim.h"

#define FORM(name, ...)                                                                                                        \
    (form == RONDO_MPI_BLOCKING      ? rondo_##name(__VA_ARGS__)                                                               \
     : form == RONDO_MPI_NONBLOCKING ? rondo_i##name(__VA_ARGS__, request)                                                     \
                                     : rondo_##name##_init(__VA_ARGS__, NULL, request))

rondo_result_t rondo_mpi_launch(const struct rondo_mpi_operation *o, enum rondo_mpi_form form, rondo_request_t *request)
{
    rondo_comm_t comm = o->comm->rondo;
    switch (o->kind) {
    case RONDO_MPI_BARRIER:
        return FORM(barrier, comm);
    case RONDO_MPI_BCAST:
        return FORM(bcast, o->recv, o->recvcount, o->type, o->root, comm);
    case RONDO_MPI_GATHER:
        return FORM(gather, o->send, o->recv, o->sendcount, o->type, o->root, comm);
    case RONDO_MPI_GATHERV:
        return FORM(gatherv, o->send, o->sendcount, o->recv, o->recvcounts, o->recvdispls, o->type, o->root, comm);
    case RONDO_MPI_SCATTERV:
        return FORM(scatterv, o->send, o->sendcounts, o->senddispls, o->recv, o->recvcount, o->type, o->root, comm);
    case RONDO_MPI_REDUCE_SCATTER:
        return FORM(reduce_scatter, o->send, o->recv, o->recvcounts, o->type, o->reduction.op, comm);
    case RONDO_MPI_SCATTER:
        return FORM(scatter, o->send, o->recv, o->recvcount, o->type, o->root, comm);
    case RONDO_MPI_ALLGATHER:
        return FORM(allgather, o->send, o->recv, o->sendcount, o->type, comm);
    case RONDO_MPI_ALLGATHERV:
        return FORM(allgatherv, o->send, o->sendcount, o->recv, o->recvcounts, o->recvdispls, o->type, comm);
    case RONDO_MPI_ALLTOALL:
        return FORM(alltoall, o->send, o->recv, o->sendcount, o->type, comm);
    case RONDO_MPI_ALLTOALLV:
    case RONDO_MPI_ALLTOALLW:
        return FORM(alltoallv, o->send, o->sendcounts, o->senddispls, o->recv, o->recvcounts, o->recvdispls, o->type, comm);
    case RONDO_MPI_ALLREDUCE:
        return FORM(allreduce, o->send, o->recv, o->sendcount, o->type, o->reduction.op, comm);
    case RONDO_MPI_REDUCE:
        return FORM(reduce, o->send, o->recv, o->sendcount, o->type, o->reduction.op, o->root, comm);
    case RONDO_MPI_REDUCE_SCATTER_BLOCK:
        return FORM(reduce_scatter_block, o->send, o->recv, o->sendcount, o->type, o->reduction.op, comm);
    case RONDO_MPI_SCAN:
        return FORM(scan, o->send, o->recv, o->sendcount, o->type, o->reduction.op, comm);
    case RONDO_MPI_EXSCAN:
        return FORM(exscan, o->send, o->recv, o->sendcount, o->type, o->reduction.op, comm);
    case RONDO_MPI_NEIGHBOR_ALLGATHER:
    case RONDO_MPI_NEIGHBOR_ALLGATHERV:
        return FORM(neighbor_allgatherv, o->send, o->sendcount, o->recv, o->recvcounts, o->recvdispls, o->type, comm);
    case RONDO_MPI_NEIGHBOR_ALLTOALL:
    case RONDO_MPI_NEIGHBOR_ALLTOALLV:
    case RONDO_MPI_NEIGHBOR_ALLTOALLW:
        return FORM(neighbor_alltoallv, o->send, o->sendcounts, o->senddispls, o->recv, o->recvcounts, o->recvdispls, o->type,
                    comm);
    default:
        return RONDO_ERR_INTERNAL;
    }
}

/* The call fails on this rank; so that it does on the others, too, they are told. */
static int fail_everywhere(struct rondo_mpi_comm *comm, int class)
{
    rondo_comm_abort(comm->rondo, class);
    return rondo_mpi_fail(comm, class);
}

static enum rondo_mpi_reason take_blocking(const struct rondo_mpi_call *call, struct rondo_mpi_comm *comm, int *status)
{
    size_t room[RONDO_MPI_ROOM];
    struct rondo_mpi_operation operation;
    operation.room = room;
    enum rondo_mpi_reason reason = rondo_mpi_describe(call, comm, &operation, status);
    if (reason == RONDO_MPI_TAKEN && *status == MPI_SUCCESS && operation.staged)
        *status = rondo_mpi_operation_pack(&operation);
    if (reason == RONDO_MPI_TAKEN && *status != MPI_SUCCESS) {
        *status = fail_everywhere(comm, *status);
    } else if (reason == RONDO_MPI_TAKEN) {
        rondo_result_t result = rondo_mpi_launch(&operation, RONDO_MPI_BLOCKING, NULL);
        *status =
            result == RONDO_SUCCESS && operation.staged ? rondo_mpi_operation_unpack(&operation) : rondo_mpi_class(result);
        if (__builtin_expect(*status != MPI_SUCCESS, 0))
            rondo_mpi_fail(comm, *status);
    }
    if (operation.staged || operation.arrays != NULL || operation.reduction.made)
        rondo_mpi_operation_release(&operation, 0);
    return reason;
}

static enum rondo_mpi_reason take_request(const struct rondo_mpi_call *call, struct rondo_mpi_comm *comm, int *status)
{
    struct rondo_mpi_request *request = rondo_mpi_request_new();
    if (request == NULL) {
        *status = fail_everywhere(comm, MPI_ERR_NO_MEM);
        return RONDO_MPI_TAKEN;
    }
    struct rondo_mpi_operation *operation = &request->operation;
    operation->room = NULL;
    enum rondo_mpi_reason reason = rondo_mpi_describe(call, comm, operation, status);
    if (reason == RONDO_MPI_TAKEN && *status == MPI_SUCCESS) {
        request->persistent = call->form == RONDO_MPI_PERSISTENT;
        if (!request->persistent && operation->staged)
            *status = rondo_mpi_operation_pack(operation);
        if (*status == MPI_SUCCESS)
            *status = rondo_mpi_class(rondo_mpi_launch(operation, call->form, &request->request));
    }
    if (reason == RONDO_MPI_TAKEN && *status == MPI_SUCCESS) {
        request->state = request->persistent ? RONDO_MPI_INACTIVE : RONDO_MPI_ACTIVE;
        rondo_mpi_operation_keep(operation);
        rondo_mpi_comm_hold(comm);
        *call->request = rondo_mpi_request_handle(request);
        return reason;
    }
    if (reason == RONDO_MPI_TAKEN)
        *status = fail_everywhere(comm, *status);
    rondo_mpi_operation_release(operation, 0);
    rondo_mpi_request_delete(request);
    return reason;
}

int rondo_mpi_take(const struct rondo_mpi_call *call, int *status)
{
    enum rondo_mpi_reason reason;
    struct rondo_mpi_comm *comm = rondo_mpi_comm_find(call->comm, call->form == RONDO_MPI_BLOCKING, &reason);
    if (comm != NULL) {
        if (call->form == RONDO_MPI_BLOCKING)
            reason = take_blocking(call, comm, status);
        else
            reason = call->request == NULL ? RONDO_MPI_ARGUMENT : take_request(call, comm, status);
    }
    rondo_mpi_count(call->kind, reason);
    return reason == RONDO_MPI_TAKEN;
}
