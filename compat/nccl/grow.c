/* Growing: the ranks of a communicator and new ones make a clique of their own, which meets by an id that one of the old ranks
 * has, and tells the others. */
#include "compat/nccl/shim.h"

#include <stdlib.h>
#include <string.h>

/* What each old rank tells the others. */
struct offer {
    rondo_unique_id_t id;
    int32_t has_id, size;
};

ncclResult_t pncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId *id)
{
    rondo_unique_id_t made;
    ncclResult_t result = rondo_nccl_comm_hold(comm, RONDO_NCCL_TO_COMMUNICATE, "ncclCommGetUniqueId");
    if (result != ncclSuccess)
        return result;
    pthread_mutex_lock(&comm->lock);
    if (id == NULL)
        result = rondo_nccl_fail(ncclInvalidArgument, "ncclCommGetUniqueId: uniqueId is NULL");
    else if (comm->growing)
        result = rondo_nccl_fail(ncclInvalidUsage,
                                 "ncclCommGetUniqueId: communicator %p has an id that no ncclCommGrow has used", (void *) comm);
    else
        result = rondo_nccl_result(rondo_get_unique_id(&made), "ncclCommGetUniqueId");
    if (result == ncclSuccess) {
        comm->growing = 1;
        comm->grow_id = made;
        memcpy(id, &made, sizeof(*id));
    }
    pthread_mutex_unlock(&comm->lock);
    rondo_nccl_comm_let_go(comm);
    return result;
}
NCCL_EXPORT(ncclCommGetUniqueId);

/* The id of the one rank that has it, and all of the same mind about the size. */
static ncclResult_t choose(const struct offer *offers, int count, int size, rondo_unique_id_t *id)
{
    int givers = 0;
    for (int r = 0; r < count; r++) {
        if (offers[r].size != size)
            return rondo_nccl_fail(ncclInvalidArgument, "ncclCommGrow: rank %d grows to %d ranks, and this one to %d", r,
                                   (int) offers[r].size, size);
        if (offers[r].has_id)
            *id = offers[r].id;
        givers += offers[r].has_id;
    }
    if (givers != 1)
        return rondo_nccl_fail(ncclInvalidArgument, "ncclCommGrow: %d of %d ranks give an id, not one", givers, count);
    return ncclSuccess;
}

static ncclResult_t exchange(struct rondo_nccl_job *job)
{
    const struct offer mine = {.id = job->id, .has_id = job->color, .size = job->comm->size};
    void *offers = NULL;
    _Static_assert(sizeof(mine) <= RONDO_NCCL_SHARE_BYTES, "an exchange holds an offer");
    ncclResult_t result = rondo_nccl_share(job->parent, &mine, sizeof(mine), &offers, "ncclCommGrow");
    if (result == ncclSuccess)
        result = choose(offers, job->parent->size, mine.size, &job->id);
    if (offers != NULL)
        explicit_bzero(offers, (size_t) job->parent->size * sizeof(mine)); /* they have the clique's secret */
    return result;
}

static ncclResult_t grow(struct rondo_nccl_job *job)
{
    ncclResult_t result = exchange(job);
    if (result == ncclSuccess)
        result = rondo_nccl_meet(job);
    if (job->color) {
        pthread_mutex_lock(&job->parent->lock);
        job->parent->growing = 0;
        pthread_mutex_unlock(&job->parent->lock);
    }
    return result;
}

/* The id is the one that this rank was given, and not used yet. */
static int is_expected(struct ncclComm *comm, const ncclUniqueId *id)
{
    pthread_mutex_lock(&comm->lock);
    const int expected = comm->growing && memcmp(&comm->grow_id, id, sizeof(*id)) == 0;
    pthread_mutex_unlock(&comm->lock);
    return expected;
}

static ncclResult_t grow_old(ncclComm_t comm, int size, const ncclUniqueId *id, int rank, ncclComm_t *made,
                             const ncclConfig_t *config)
{
    int blocking;
    struct rondo_nccl_budget budget = {-1, 0};
    struct rondo_nccl_job *job = NULL;
    ncclResult_t result = rondo_nccl_comm_hold(comm, RONDO_NCCL_TO_COMMUNICATE, "ncclCommGrow");
    if (result != ncclSuccess)
        return result;
    blocking = comm->blocking;
    if (rank != -1 || size <= comm->size)
        result = rondo_nccl_fail(ncclInvalidArgument, "ncclCommGrow: rank %d, where -1 is wanted, and %d ranks of %d", rank,
                                 size, comm->size);
    else if (id != NULL && !is_expected(comm, id))
        result = rondo_nccl_fail(ncclInvalidArgument,
                                 "ncclCommGrow: the id is not the last one of ncclCommGetUniqueId, or was used");
    else
        result = rondo_nccl_config_read(config, &blocking, &budget, "ncclCommGrow");
    if (result == ncclSuccess && (job = calloc(1, sizeof(*job))) != NULL)
        job->comm = rondo_nccl_comm_new(comm->rank, size, comm->device, blocking);
    if (result == ncclSuccess && (job == NULL || job->comm == NULL))
        result = rondo_nccl_fail(ncclSystemError, "ncclCommGrow: no memory");
    if (result != ncclSuccess) {
        free(job);
        rondo_nccl_comm_let_go(comm);
        return result;
    }
    job->comm->budget = budget;
    rondo_nccl_comm_hold_again(job->comm);
    if (id != NULL)
        memcpy(&job->id, id, sizeof(job->id));
    job->run = grow;
    job->color = id != NULL;
    job->parent = comm; /* lets it go */
    job->blocking = blocking;
    job->result = made;
    *made = job->comm;
    return rondo_nccl_submit(job);
}

ncclResult_t pncclCommGrow(ncclComm_t comm, int size, const ncclUniqueId *id, int rank, ncclComm_t *made, ncclConfig_t *config)
{
    if (made == NULL || (comm == NULL && id == NULL))
        return rondo_nccl_note(rondo_nccl_fail(ncclInvalidArgument, "ncclCommGrow: comm %p, uniqueId %p, newcomm %p",
                                               (void *) comm, (const void *) id, (void *) made));
    return rondo_nccl_note(
        comm != NULL ? grow_old(comm, size, id, rank, made, config)
                     : rondo_nccl_init_rank(made, size, (struct rondo_nccl_ids){id, 1}, rank, config, "ncclCommGrow"));
}
NCCL_EXPORT(ncclCommGrow);
