/* Communicators made of others, on the runtime of those. */
#include "compat/nccl/shim.h"

#include <stdlib.h>
#include <string.h>

static void take_over(struct rondo_nccl_job *job, rondo_comm_t made)
{
    struct ncclComm *comm = job->comm;
    comm->world = job->parent->world;
    comm->owned = 1;
    rondo_nccl_world_hold(comm->world);
    rondo_comm_rank(made, &comm->rank);
    rondo_comm_size(made, &comm->size);
    __atomic_store_n(&comm->comm, made, __ATOMIC_SEQ_CST); /* see ncclCommAbort */
    if (__atomic_load_n(&comm->aborted, __ATOMIC_SEQ_CST))
        rondo_comm_abort(made, 1);
}

static ncclResult_t split(struct rondo_nccl_job *job)
{
    rondo_comm_t made = NULL;
    ncclResult_t result = rondo_nccl_result(rondo_comm_split(job->parent->comm, job->color, job->key, &made), "ncclCommSplit");
    if (result == ncclSuccess && made != NULL)
        take_over(job, made);
    return result;
}

static ncclResult_t shrink(struct rondo_nccl_job *job)
{
    rondo_comm_t made = NULL;
    ncclResult_t result =
        rondo_nccl_result(rondo_comm_shrink(job->parent->comm, job->excluded, job->excluded_count, &made), "ncclCommShrink");
    if (result == ncclSuccess)
        take_over(job, made);
    return result;
}

/* The parent is held already. */
static ncclResult_t begin(struct ncclComm *parent, ncclComm_t *result, struct rondo_nccl_job *given, int blocking, int member)
{
    struct rondo_nccl_job *job = malloc(sizeof(*job));
    struct ncclComm *comm = NULL;
    if (job != NULL && member)
        comm = rondo_nccl_comm_new(-1, 0, parent->device, blocking);
    if (job == NULL || (member && comm == NULL)) {
        rondo_nccl_comm_let_go(parent);
        free(given->excluded);
        free(job);
        return rondo_nccl_fail(ncclSystemError, "no memory for a communicator");
    }
    if (comm != NULL)
        rondo_nccl_comm_hold_again(comm);
    *job = *given;
    job->parent = parent;
    job->comm = comm;
    job->blocking = blocking;
    job->result = result;
    *result = comm;
    return rondo_nccl_submit(job);
}

ncclResult_t pncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *made, ncclConfig_t *config)
{
    struct rondo_nccl_job job = {.run = split, .color = color, .key = key};
    ncclResult_t result = rondo_nccl_comm_hold(comm, RONDO_NCCL_TO_MANAGE, "ncclCommSplit");
    if (result != ncclSuccess)
        return rondo_nccl_note(result);
    int blocking = comm->blocking;
    if (made == NULL)
        result = rondo_nccl_fail(ncclInvalidArgument, "ncclCommSplit: newcomm is NULL");
    else if (color < NCCL_SPLIT_NOCOLOR)
        result = rondo_nccl_fail(ncclInvalidArgument, "ncclCommSplit: color %d", color);
    else
        result = rondo_nccl_config_read(config, &blocking, NULL, "ncclCommSplit");
    if (result != ncclSuccess) {
        rondo_nccl_comm_let_go(comm);
        return rondo_nccl_note(result);
    }
    return rondo_nccl_note(begin(comm, made, &job, blocking, color >= 0));
}
NCCL_EXPORT(ncclCommSplit);

static ncclResult_t check_list(const struct ncclComm *comm, const int *excluded, int count)
{
    if (excluded == NULL || count < 1 || count >= comm->size)
        return rondo_nccl_fail(ncclInvalidArgument, "ncclCommShrink: %d ranks of %d at %p are to be excluded", count,
                               comm->size, (const void *) excluded);
    for (int i = 0; i < count; i++)
        if (excluded[i] < 0 || excluded[i] >= comm->size || excluded[i] == comm->rank)
            return rondo_nccl_fail(ncclInvalidArgument, "ncclCommShrink: rank %d of %d excludes rank %d", comm->rank,
                                   comm->size, excluded[i]);
    return ncclSuccess;
}

ncclResult_t pncclCommShrink(ncclComm_t comm, int *excluded, int count, ncclComm_t *made, ncclConfig_t *config, int flags)
{
    struct rondo_nccl_job job = {.run = shrink, .excluded_count = count};
    ncclResult_t result = rondo_nccl_comm_hold(comm, RONDO_NCCL_TO_MANAGE, "ncclCommShrink");
    if (result != ncclSuccess)
        return rondo_nccl_note(result);
    int blocking = comm->blocking;
    if (made == NULL || (flags != NCCL_SHRINK_DEFAULT && flags != NCCL_SHRINK_ABORT))
        result =
            rondo_nccl_fail(ncclInvalidArgument, "ncclCommShrink: newcomm %p, flags 0x%x", (void *) made, (unsigned) flags);
    else
        result = check_list(comm, excluded, count);
    if (result == ncclSuccess)
        result = rondo_nccl_config_read(config, &blocking, NULL, "ncclCommShrink");
    if (result == ncclSuccess && (job.excluded = malloc((size_t) count * sizeof(int))) == NULL)
        result = rondo_nccl_fail(ncclSystemError, "ncclCommShrink: no memory");
    if (result != ncclSuccess) {
        rondo_nccl_comm_let_go(comm);
        return rondo_nccl_note(result);
    }
    memcpy(job.excluded, excluded, (size_t) count * sizeof(int));
    if (flags == NCCL_SHRINK_ABORT)
        rondo_comm_abort(comm->comm, 3);
    return rondo_nccl_note(begin(comm, made, &job, blocking, 1));
}
NCCL_EXPORT(ncclCommShrink);
