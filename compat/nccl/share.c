/* What each rank of a communicator tells the others, over a communicator of its own, so that no operation of the program is
 * mixed up with that. */
#include "compat/nccl/shim.h"

#include <stdlib.h>
#include <string.h>

/* Memory that the host and the communicator's device reach; NULL. */
static unsigned char *allocate(struct ncclComm *comm, size_t bytes)
{
    void *memory = NULL;
    if (comm->device < 0)
        return malloc(bytes);
    if (rondo_nccl_retain(comm, RONDO_NCCL_MANAGED, bytes, &memory) != cudaSuccess)
        cudaGetLastError();
    return memory;
}

/* Makes what exchanges need. A rank without memory makes the communicator all the same, and fails it. */
static ncclResult_t begin(struct ncclComm *comm, const char *function)
{
    rondo_comm_t apart = NULL;
    if (comm->exchanged == NULL)
        comm->exchanged = allocate(comm, (size_t) comm->size * RONDO_NCCL_SHARE_BYTES);
    ncclResult_t result = rondo_nccl_result(rondo_comm_dup(comm->comm, &apart), function);
    if (result != ncclSuccess)
        return result;
    __atomic_store_n(&comm->apart, apart, __ATOMIC_SEQ_CST); /* see ncclCommAbort */
    if (__atomic_load_n(&comm->aborted, __ATOMIC_SEQ_CST) || comm->exchanged == NULL)
        rondo_comm_abort(apart, 1);
    return ncclSuccess;
}

ncclResult_t rondo_nccl_share(struct ncclComm *comm, const void *mine, size_t bytes, void **all, const char *function)
{
    ncclResult_t result = comm->apart == NULL ? begin(comm, function) : ncclSuccess;
    if (result != ncclSuccess)
        return result;
    if (comm->exchanged == NULL)
        return rondo_nccl_fail(ncclSystemError, "%s: no memory", function);
    memcpy((char *) comm->exchanged + (size_t) comm->rank * bytes, mine, bytes);
    *all = comm->exchanged;
    return rondo_nccl_result(rondo_allgather(RONDO_IN_PLACE, comm->exchanged, bytes, RONDO_UINT8, comm->apart), function);
}

void rondo_nccl_share_end(struct ncclComm *comm)
{
    if (comm->apart != NULL)
        rondo_comm_free(&comm->apart);
    if (comm->device < 0)
        free(comm->exchanged);
    comm->exchanged = NULL;
}
