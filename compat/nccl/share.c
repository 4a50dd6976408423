/* What each rank of a communicator tells the others, over a communicator of the moment, so that no operation of the program is
 * mixed up with that. */
#include "compat/nccl/shim.h"

#include <stdlib.h>
#include <string.h>

/* Memory that the host and the communicator's device reach; NULL. A GPU's stays with the communicator, because freeing would
 * wait for all that runs on the GPU, other ranks' kernels included. */
static unsigned char *allocate(struct ncclComm *comm, size_t bytes)
{
    void *memory = NULL;
    int current = comm->device;
    if (comm->device < 0)
        return malloc(bytes);
    cudaGetDevice(&current);
    cudaSetDevice(comm->device);
    if (cudaMallocManaged(&memory, bytes, cudaMemAttachGlobal) != cudaSuccess || !rondo_nccl_retain(comm, memory)) {
        cudaGetLastError();
        memory = NULL;
    }
    cudaSetDevice(current);
    return memory;
}

ncclResult_t rondo_nccl_share(struct ncclComm *comm, const void *mine, size_t bytes, void *all, const char *function)
{
    const size_t total = (size_t) comm->size * bytes;
    rondo_comm_t apart = NULL;
    ncclResult_t result = rondo_nccl_result(rondo_comm_dup(comm->comm, &apart), function);
    if (result != ncclSuccess)
        return result;
    unsigned char *place = allocate(comm, total);
    if (place == NULL) {
        rondo_comm_abort(apart, 1); /* or the others would wait */
        result = rondo_nccl_fail(ncclSystemError, "%s: no memory", function);
    } else {
        memcpy(place + (size_t) comm->rank * bytes, mine, bytes);
        result = rondo_nccl_result(rondo_allgather(RONDO_IN_PLACE, place, bytes, RONDO_UINT8, apart), function);
    }
    if (result == ncclSuccess)
        memcpy(all, place, total);
    if (place != NULL)
        explicit_bzero(place, total); /* there may be a secret in it */
    if (comm->device < 0)
        free(place);
    rondo_comm_free(&apart);
    return result;
}
