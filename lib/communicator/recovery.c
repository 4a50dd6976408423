/* The public calls by which ranks go on after a failure: rondo_comm_revoke, rondo_comm_agree, and what a rank knows of failed
 * ranks. rondo_comm_shrink is in lib/communicator/shrink.c. */
#include "lib/communicator/agreement.h"

#include "lib/base/error.h"
#include "lib/context/handles.h"

#include <stdlib.h>

rondo_result_t rondo_comm_revoke(rondo_comm_t handle)
{
    struct rondo_comm *comm;
    rondo_result_t result = rondo_comm_of(handle, "rondo_comm_revoke", &comm);
    if (result == RONDO_SUCCESS)
        rondo_comm_revoke_everywhere(comm);
    return result;
}

static int is_failed(const struct rondo_comm *comm, int rank)
{
    return rondo_is_gone(comm->runtime, comm->members[rank]);
}

rondo_result_t rondo_comm_get_failed(rondo_comm_t handle, int *ranks, int *count)
{
    struct rondo_comm *comm;
    int found = 0;
    rondo_result_t result = rondo_comm_of(handle, "rondo_comm_get_failed", &comm);
    if (result == RONDO_SUCCESS && count == NULL)
        result = rondo_fail(RONDO_ERR_ARGUMENT, "rondo_comm_get_failed: count is NULL");
    if (result != RONDO_SUCCESS)
        return result;
    for (int rank = 0; rank < comm->size; rank++)
        if (is_failed(comm, rank) && found++ < comm->size && ranks != NULL)
            ranks[found - 1] = rank;
    *count = found;
    return RONDO_SUCCESS;
}

rondo_result_t rondo_comm_acknowledge_failed(rondo_comm_t handle, const int *ranks, int count)
{
    struct rondo_comm *comm;
    rondo_result_t result = rondo_comm_of(handle, "rondo_comm_acknowledge_failed", &comm);
    if (result != RONDO_SUCCESS)
        return result;
    if (count < 0 || count > comm->size || (ranks == NULL && count > 0))
        return rondo_fail(RONDO_ERR_ARGUMENT, "rondo_comm_acknowledge_failed: %d of %d ranks%s", count, comm->size,
                          ranks == NULL ? ", which are NULL" : "");
    for (int i = 0; i < count; i++)
        if (ranks[i] < 0 || ranks[i] >= comm->size || !is_failed(comm, ranks[i]))
            return rondo_fail(RONDO_ERR_ARGUMENT, "rondo_comm_acknowledge_failed: entry %d, %d, is not a failed rank of %d", i,
                              ranks[i], comm->size);
    for (int i = 0; i < count; i++)
        __atomic_store_n(&comm->acknowledged[ranks[i]], 1, __ATOMIC_RELAXED);
    return RONDO_SUCCESS;
}

static rondo_result_t agree(struct rondo_comm *comm, int *flag, struct rondo_agreed *agreed)
{
    agreed->flag = *flag;
    for (int rank = 0; rank < comm->size; rank++)
        agreed->acknowledged[rank] = __atomic_load_n(&comm->acknowledged[rank], __ATOMIC_RELAXED);
    rondo_result_t result = rondo_agreement_reach(comm, "rondo_comm_agree", agreed);
    if (result != RONDO_SUCCESS)
        return result;
    *flag = agreed->flag;
    for (int rank = 0; rank < comm->size; rank++)
        if (agreed->failed[rank] && !agreed->acknowledged[rank])
            return rondo_fail(RONDO_ERR_PEER, "rondo_comm_agree: rank %d has died or left, which not all have acknowledged",
                              rank);
    return RONDO_SUCCESS;
}

rondo_result_t rondo_comm_agree(rondo_comm_t handle, int *flag)
{
    struct rondo_comm *comm;
    rondo_result_t result = rondo_comm_of(handle, "rondo_comm_agree", &comm);
    if (result == RONDO_SUCCESS && flag == NULL)
        result = rondo_fail(RONDO_ERR_ARGUMENT, "rondo_comm_agree: flag is NULL");
    if (result != RONDO_SUCCESS)
        return result;
    struct rondo_agreed agreed = {.failed = calloc((size_t) comm->size, 1), .acknowledged = calloc((size_t) comm->size, 1)};
    if (agreed.failed == NULL || agreed.acknowledged == NULL) { /* the others wait for this rank, and must not */
        result = rondo_fail(RONDO_ERR_MEMORY, "rondo_comm_agree: no memory for %d ranks", comm->size);
        rondo_control_give_up(comm->runtime->control);
    } else {
        result = agree(comm, flag, &agreed);
    }
    free(agreed.failed);
    free(agreed.acknowledged);
    return result;
}
