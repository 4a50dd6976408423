/* Making cliques: by a unique id, each rank by a call of its own, or all of a process at once. */
#include "compat/nccl/shim.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(ncclUniqueId) == sizeof(rondo_unique_id_t), "Rondo's id travels in NCCL's");

ncclResult_t pncclGetUniqueId(ncclUniqueId *id)
{
    rondo_nccl_introduce();
    if (id == NULL)
        return rondo_nccl_fail(ncclInvalidArgument, "ncclGetUniqueId: id is NULL");
    rondo_unique_id_t made;
    rondo_result_t result = rondo_get_unique_id(&made);
    if (result == RONDO_SUCCESS)
        memcpy(id, &made, sizeof(*id));
    return rondo_nccl_result(result, "ncclGetUniqueId");
}
NCCL_EXPORT(ncclGetUniqueId);

ncclResult_t rondo_nccl_meet(struct rondo_nccl_job *job)
{
    struct ncclComm *comm = job->comm;
    rondo_comm_t inner;
    ncclResult_t result = rondo_nccl_world_create(job->ids != NULL ? job->ids : &job->id, job->ids != NULL ? job->id_count : 1,
                                                  comm->rank, comm->size, comm->device, comm->budget, &comm->world);
    if (result != ncclSuccess)
        return result;
    rondo_comm_world(comm->world->runtime, &inner);
    __atomic_store_n(&comm->comm, inner, __ATOMIC_SEQ_CST); /* see ncclCommAbort */
    if (__atomic_load_n(&comm->aborted, __ATOMIC_SEQ_CST))
        rondo_comm_abort(inner, 1);
    rondo_nccl_log(RONDO_NCCL_LOG_INFO, "rank %d of %d, device %d: communicator %p", comm->rank, comm->size, comm->device,
                   (void *) comm);
    return ncclSuccess;
}

/* Copies the ids, because the call may return before the ranks meet. Returns 0, or -1 without memory. */
static int copy_ids(struct rondo_nccl_job *job, struct rondo_nccl_ids given)
{
    memcpy(&job->id, &given.ids[0], sizeof(job->id));
    if (given.count == 1)
        return 0;
    job->ids = calloc((size_t) given.count, sizeof(*job->ids));
    job->id_count = given.count;
    if (job->ids != NULL)
        memcpy(job->ids, given.ids, (size_t) given.count * sizeof(*job->ids));
    return job->ids != NULL ? 0 : -1;
}

static ncclResult_t begin(ncclComm_t *result, int size, struct rondo_nccl_ids ids, int rank, int device, int blocking,
                          struct rondo_nccl_budget budget)
{
    struct rondo_nccl_job *job = calloc(1, sizeof(*job));
    struct ncclComm *comm = job != NULL && copy_ids(job, ids) == 0 ? rondo_nccl_comm_new(rank, size, device, blocking) : NULL;
    if (comm == NULL) {
        if (job != NULL)
            free(job->ids);
        free(job);
        return rondo_nccl_fail(ncclSystemError, "ncclCommInitRank: no memory");
    }
    rondo_nccl_comm_hold_again(comm);
    job->run = rondo_nccl_meet;
    job->comm = comm;
    comm->budget = budget;
    job->blocking = blocking;
    job->result = result;
    *result = comm;
    return rondo_nccl_submit(job);
}

/* The calling thread's GPU; -1: the host device. */
static ncclResult_t current_device(const char *function, int *device)
{
    *device = -1;
    if (rondo_nccl_on_host())
        return ncclSuccess;
    return rondo_nccl_cuda_result(cudaGetDevice(device), function, "cudaGetDevice");
}

ncclResult_t rondo_nccl_init_rank(ncclComm_t *comm, int size, struct rondo_nccl_ids ids, int rank, const ncclConfig_t *config,
                                  const char *function)
{
    int device, blocking = 1;
    struct rondo_nccl_budget budget = {-1, 0};
    rondo_nccl_introduce();
    if (comm == NULL)
        return rondo_nccl_fail(ncclInvalidArgument, "%s: comm is NULL", function);
    if (size < 1 || rank < 0 || rank >= size)
        return rondo_nccl_fail(ncclInvalidArgument, "%s: rank %d of %d", function, rank, size);
    ncclResult_t result = rondo_nccl_config_read(config, &blocking, &budget, function);
    if (result == ncclSuccess)
        result = current_device(function, &device);
    return result == ncclSuccess ? begin(comm, size, ids, rank, device, blocking, budget) : result;
}

ncclResult_t pncclCommInitRank(ncclComm_t *comm, int size, ncclUniqueId id, int rank)
{
    return rondo_nccl_note(rondo_nccl_init_rank(comm, size, (struct rondo_nccl_ids){&id, 1}, rank, NULL, "ncclCommInitRank"));
}
NCCL_EXPORT(ncclCommInitRank);

ncclResult_t pncclCommInitRankConfig(ncclComm_t *comm, int size, ncclUniqueId id, int rank, ncclConfig_t *config)
{
    return rondo_nccl_note(
        rondo_nccl_init_rank(comm, size, (struct rondo_nccl_ids){&id, 1}, rank, config, "ncclCommInitRankConfig"));
}
NCCL_EXPORT(ncclCommInitRankConfig);

/* The root of each id takes in a share of the ranks. */
ncclResult_t pncclCommInitRankScalable(ncclComm_t *comm, int size, int rank, int count, ncclUniqueId *ids, ncclConfig_t *config)
{
    if (ids == NULL || count < 1 || count > size)
        return rondo_nccl_note(rondo_nccl_fail(ncclInvalidArgument, "ncclCommInitRankScalable: %d ids at %p for %d ranks",
                                               count, (void *) ids, size));
    return rondo_nccl_note(
        rondo_nccl_init_rank(comm, size, (struct rondo_nccl_ids){ids, count}, rank, config, "ncclCommInitRankScalable"));
}
NCCL_EXPORT(ncclCommInitRankScalable);

static ncclResult_t check_list(int count, const int *devices)
{
    int present = 0;
    if (rondo_nccl_on_host())
        return ncclSuccess;
    ncclResult_t result = rondo_nccl_cuda_result(cudaGetDeviceCount(&present), "ncclCommInitAll", "cudaGetDeviceCount");
    if (result != ncclSuccess)
        return result;
    if (devices == NULL && count > present)
        return rondo_nccl_fail(ncclInvalidArgument, "ncclCommInitAll: %d devices of %d", count, present);
    for (int i = 0; devices != NULL && i < count; i++) {
        if (devices[i] < 0 || devices[i] >= present)
            return rondo_nccl_fail(ncclUnhandledCudaError, "ncclCommInitAll: device %d of %d", devices[i], present);
        for (int k = 0; k < i; k++)
            if (devices[k] == devices[i])
                return rondo_nccl_fail(ncclInvalidUsage, "ncclCommInitAll: device %d is listed twice", devices[i]);
    }
    return ncclSuccess;
}

ncclResult_t pncclCommInitAll(ncclComm_t *comms, int count, const int *devices)
{
    ncclUniqueId id;
    rondo_nccl_introduce();
    if (comms == NULL || count < 1)
        return rondo_nccl_note(
            rondo_nccl_fail(ncclInvalidArgument, "ncclCommInitAll: %d devices, communicators at %p", count, (void *) comms));
    ncclResult_t result = check_list(count, devices), ended;
    if (result == ncclSuccess)
        result = pncclGetUniqueId(&id);
    if (result != ncclSuccess)
        return rondo_nccl_note(result);
    pncclGroupStart();
    for (int i = 0; i < count && result == ncclSuccess; i++)
        result = rondo_nccl_note(begin(&comms[i], count, (struct rondo_nccl_ids){&id, 1}, i,
                                       rondo_nccl_on_host() ? -1
                                       : devices != NULL    ? devices[i]
                                                            : i,
                                       1, (struct rondo_nccl_budget){-1, 0}));
    ended = pncclGroupEnd();
    return result != ncclSuccess ? result : ended;
}
NCCL_EXPORT(ncclCommInitAll);
