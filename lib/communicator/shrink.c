/* rondo_comm_shrink: a communicator of the ranks that remain of another, which neither the excluded ranks nor the old
 * communicator have to work for; who remains is said by the caller, or agreed upon. rondo_comm_create_group: a communicator of
 * ranks that are listed. */
#include "lib/communicator/agreement.h"
#include "lib/communicator/comm.h"
#include "lib/communicator/members_alone.h"

#include "lib/context/handles.h"
#include "lib/base/error.h"

#include <stdio.h>
#include <stdlib.h>

/* Without memory for the list there is no name for what the other members wait for: all learn that this rank has failed. */
static rondo_result_t no_members(struct rondo_comm *comm, const char *function)
{
    rondo_result_t result =
        rondo_fail(RONDO_ERR_MEMORY, "%s: rank %d has no memory for %d ranks", function, comm->runtime->rank, comm->size);
    rondo_rank_fail(comm->runtime, result, rondo_last_error());
    return result;
}

/* ---- the ranks that remain ---- */

/* Not those of rondo_comm_create_group. */
#define SHRINK_TAG (-1)
#define AGREED_TAG (-2)

/* Checks the arguments, except the communicator. */
static rondo_result_t check_excluded(const struct rondo_comm *comm, const int *excluded, int count, const rondo_comm_t *result)
{
    if (result != NULL && excluded == NULL && count == RONDO_SHRINK_FAILED)
        return RONDO_SUCCESS;
    if (result == NULL || (excluded == NULL && count > 0))
        return rondo_fail(RONDO_ERR_ARGUMENT, "rondo_comm_shrink: %s is NULL",
                          result == NULL ? "the result pointer" : "the list of ranks");
    if (count < 0 || count >= comm->size)
        return rondo_fail(RONDO_ERR_ARGUMENT, "rondo_comm_shrink: %d of %d ranks are to be excluded", count, comm->size);
    for (int i = 0; i < count; i++)
        if (excluded[i] < 0 || excluded[i] >= comm->size || excluded[i] == comm->rank)
            return rondo_fail(RONDO_ERR_ARGUMENT, "rondo_comm_shrink: rank %d of %d excludes rank %d", comm->rank, comm->size,
                              excluded[i]);
    return RONDO_SUCCESS;
}

/* Lists the members that are not among the failed ones. RONDO_ERR_PEER if this rank is. */
static rondo_result_t list_remaining(const struct rondo_comm *comm, const unsigned char *failed, struct rondo_alone *alone)
{
    alone->size = 0;
    for (int rank = 0; rank < comm->size; rank++)
        if (!failed[rank])
            alone->members[alone->size++] = comm->members[rank];
    return failed[comm->rank]
               ? rondo_fail(RONDO_ERR_PEER, "%s: the other ranks take rank %d for dead", alone->function, comm->runtime->rank)
               : RONDO_SUCCESS;
}

/* Makes the communicator of the members that have not failed, which all of them get or none. After each attempt the members
 * agree whether all have made it. If not, one that has died meanwhile is left out of the next; otherwise a rank could not make
 * it. So there are no more attempts than ranks. failed, acknowledged: room for comm's size. */
static rondo_result_t make_of_remaining(struct rondo_comm *comm, struct rondo_alone *alone, struct rondo_agreed *agreed,
                                        struct rondo_comm **made)
{
    char message[1024];
    *made = NULL;
    agreed->flag = 1;
    rondo_result_t result = rondo_agreement_reach(comm, alone->function, agreed);
    while (result == RONDO_SUCCESS && (result = list_remaining(comm, agreed->failed, alone)) == RONDO_SUCCESS) {
        const int remained = alone->size;
        rondo_result_t mine = rondo_comm_make_alone(comm, alone, made);
        snprintf(message, sizeof(message), "%s", rondo_last_error());
        agreed->flag = mine == RONDO_SUCCESS;
        result = rondo_agreement_reach(comm, alone->function, agreed);
        if (result == RONDO_SUCCESS && agreed->flag)
            return RONDO_SUCCESS;
        if (*made != NULL)
            rondo_comm_destroy(*made);
        *made = NULL;
        int remain = 0;
        for (int rank = 0; rank < comm->size; rank++)
            remain += !agreed->failed[rank];
        if (result == RONDO_SUCCESS && remain == remained)
            result = mine != RONDO_SUCCESS
                         ? rondo_fail(mine, "%s", message)
                         : rondo_fail(RONDO_ERR_PEER, "%s: another rank could not make the communicator", alone->function);
    }
    return result;
}

static rondo_result_t shrink_by_agreement(struct rondo_comm *comm, rondo_comm_t *result_comm)
{
    struct rondo_comm *made = NULL;
    struct rondo_alone alone = {.function = "rondo_comm_shrink", .tag = AGREED_TAG};
    struct rondo_agreed agreed = {.failed = calloc((size_t) comm->size, 1), .acknowledged = calloc((size_t) comm->size, 1)};
    alone.members = calloc((size_t) comm->size, sizeof(*alone.members));
    rondo_result_t result = agreed.failed == NULL || agreed.acknowledged == NULL || alone.members == NULL
                                ? no_members(comm, alone.function)
                                : make_of_remaining(comm, &alone, &agreed, &made);
    if (result == RONDO_SUCCESS)
        *result_comm = made->handle;
    free(agreed.failed);
    free(agreed.acknowledged);
    free(alone.members);
    return result;
}

rondo_result_t rondo_comm_shrink(rondo_comm_t handle, const int *excluded, int count, rondo_comm_t *result_comm)
{
    struct rondo_comm *comm, *made;
    rondo_result_t result = rondo_comm_of(handle, "rondo_comm_shrink", &comm);
    if (result == RONDO_SUCCESS)
        result = check_excluded(comm, excluded, count, result_comm);
    if (result != RONDO_SUCCESS)
        return result;
    *result_comm = NULL;
    if (count == RONDO_SHRINK_FAILED)
        return shrink_by_agreement(comm, result_comm);
    struct rondo_alone alone = {.function = "rondo_comm_shrink", .tag = SHRINK_TAG};
    alone.members = calloc((size_t) comm->size, sizeof(*alone.members));
    if (alone.members == NULL)
        return no_members(comm, alone.function);
    for (int old = 0; old < comm->size; old++) {
        int gone = 0;
        for (int i = 0; i < count; i++)
            gone |= excluded[i] == old;
        if (!gone)
            alone.members[alone.size++] = comm->members[old];
    }
    result = rondo_comm_make_alone(comm, &alone, &made);
    if (result == RONDO_SUCCESS)
        *result_comm = made->handle;
    free(alone.members);
    return result;
}

/* ---- the ranks that are listed ---- */

/* Checks the arguments, except the communicator. Not that ranks differ: rondo_comm_create_group sees it by its list. */
static rondo_result_t check_listed(const struct rondo_comm *comm, const int *ranks, int count, int tag,
                                   const rondo_comm_t *result)
{
    int own = 0;
    if (result == NULL || ranks == NULL)
        return rondo_fail(RONDO_ERR_ARGUMENT, "rondo_comm_create_group: %s is NULL",
                          result == NULL ? "the result pointer" : "the list of ranks");
    if (count < 1 || count > comm->size)
        return rondo_fail(RONDO_ERR_ARGUMENT, "rondo_comm_create_group: %d ranks of %d are listed", count, comm->size);
    if (tag < 0)
        return rondo_fail(RONDO_ERR_ARGUMENT, "rondo_comm_create_group: tag %d is negative", tag);
    for (int i = 0; i < count; i++) {
        if (ranks[i] < 0 || ranks[i] >= comm->size)
            return rondo_fail(RONDO_ERR_ARGUMENT, "rondo_comm_create_group: entry %d, %d, is not a rank of %d", i, ranks[i],
                              comm->size);
        own |= ranks[i] == comm->rank;
    }
    if (!own)
        return rondo_fail(RONDO_ERR_ARGUMENT, "rondo_comm_create_group: the calling rank %d is not listed", comm->rank);
    return RONDO_SUCCESS;
}

/* Lists the members' ranks in the world. RONDO_ERR_ARGUMENT if one is listed twice. */
static rondo_result_t list_members(const struct rondo_comm *comm, const int *ranks, int count, struct rondo_alone *alone,
                                   unsigned char *listed)
{
    for (int i = 0; i < count; i++) {
        if (listed[ranks[i]]++)
            return rondo_fail(RONDO_ERR_ARGUMENT, "rondo_comm_create_group: rank %d is listed twice", ranks[i]);
        alone->members[alone->size++] = comm->members[ranks[i]];
    }
    return RONDO_SUCCESS;
}

rondo_result_t rondo_comm_create_group(rondo_comm_t handle, const int *ranks, int count, int tag, rondo_comm_t *result_comm)
{
    struct rondo_comm *comm, *made;
    rondo_result_t result = rondo_comm_of(handle, "rondo_comm_create_group", &comm);
    if (result == RONDO_SUCCESS)
        result = check_listed(comm, ranks, count, tag, result_comm);
    if (result != RONDO_SUCCESS)
        return result;
    *result_comm = NULL;
    if (rondo_comm_failure(comm) != RONDO_SUCCESS)
        return rondo_fail(rondo_comm_failure(comm), "rondo_comm_create_group: %s", comm->failure);
    struct rondo_alone alone = {.function = "rondo_comm_create_group", .tag = tag};
    alone.members = calloc((size_t) count, sizeof(*alone.members));
    unsigned char *listed = calloc((size_t) comm->size, 1);
    result = alone.members == NULL || listed == NULL ? no_members(comm, alone.function)
                                                     : list_members(comm, ranks, count, &alone, listed);
    if (result == RONDO_SUCCESS)
        result = rondo_comm_make_alone(comm, &alone, &made);
    if (result == RONDO_SUCCESS)
        *result_comm = made->handle;
    free(alone.members);
    free(listed);
    return result;
}
