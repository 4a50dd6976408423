/* rondo_comm_grow: the ranks of a communicator and ranks that start later make a job, which meets by a unique id that one of
 * the old ranks has, and tells the others. The old ranks' part is an exchange and a rondo_init. */
#include "lib/base/error.h"
#include "lib/connection/exchange.h"
#include "lib/context/failure.h"
#include "lib/context/handles.h"
#include "lib/runtime/start.h"

#include <stdlib.h>
#include <string.h>

static const char NAME[] = "rondo_comm_grow";

/* What each old rank tells the others. Plain data: transmitted as bytes. */
struct offer {
    rondo_unique_id_t id;
    int32_t has_id, size;
};

/* Stores the id of the one rank that has it. All ranks come to the same result. */
static rondo_result_t choose(const struct offer *offers, int count, rondo_unique_id_t *id)
{
    int givers = 0;
    for (int rank = 0; rank < count; rank++) {
        if (offers[rank].size != offers[0].size)
            return rondo_fail(RONDO_ERR_MISMATCH, "%s: rank %d grows to %d ranks, and rank 0 to %d", NAME, rank,
                              (int) offers[rank].size, (int) offers[0].size);
        if (offers[rank].has_id)
            *id = offers[rank].id;
        givers += offers[rank].has_id;
    }
    if (offers[0].size < count)
        return rondo_fail(RONDO_ERR_ARGUMENT, "%s: %d ranks cannot become %d", NAME, count, (int) offers[0].size);
    return givers == 1 ? RONDO_SUCCESS
                       : rondo_fail(RONDO_ERR_MISMATCH, "%s: %d of %d ranks give an id, not one", NAME, givers, count);
}

/* Tells the others what this rank gives; *id becomes what all use. */
static rondo_result_t exchange(struct rondo_comm *comm, int size, const rondo_unique_id_t *given, rondo_unique_id_t *id)
{
    struct offer mine = {.has_id = given != NULL, .size = size};
    struct offer *offers = calloc((size_t) comm->size, sizeof(*offers));
    if (given != NULL)
        mine.id = *given;
    rondo_result_t result = offers != NULL ? rondo_exchange(comm, NAME, &mine, sizeof(mine), offers)
                                           : rondo_fail(RONDO_ERR_MEMORY, "%s: no memory for %d ranks", NAME, comm->size);
    result = rondo_comm_conclude(comm, NAME, result);
    if (result == RONDO_SUCCESS)
        result = choose(offers, comm->size, id);
    if (offers != NULL)
        explicit_bzero(offers, (size_t) comm->size * sizeof(*offers)); /* they have the new job's secret */
    explicit_bzero(&mine, sizeof(mine));
    free(offers);
    return result;
}

rondo_result_t rondo_comm_grow(rondo_comm_t handle, int size, const rondo_unique_id_t *id, const rondo_config_t *config,
                               rondo_t *grown)
{
    struct rondo_comm *comm;
    rondo_config_t joined = RONDO_CONFIG_DEFAULT;
    rondo_unique_id_t chosen;
    rondo_result_t result = rondo_comm_of(handle, NAME, &comm);
    if (result != RONDO_SUCCESS)
        return result;
    if (grown == NULL)
        return rondo_fail(RONDO_ERR_ARGUMENT, "%s: grown is NULL", NAME);
    *grown = NULL;
    if (rondo_comm_failure(comm) != RONDO_SUCCESS)
        return rondo_fail(rondo_comm_failure(comm), "%s: %s", NAME, comm->failure);
    result = exchange(comm, size, id, &chosen);
    if (result != RONDO_SUCCESS)
        return result;
    if (config != NULL)
        joined = *config;
    if (joined.device == RONDO_DEVICE_AUTO && joined.device_index < 0) { /* where this rank's buffers are */
        joined.device = comm->runtime->device_type;
        joined.device_index = comm->runtime->device_index;
    }
    joined.rank = comm->rank;
    joined.size = size;
    joined.unique_id = &chosen;
    joined.unique_ids = 1;
    result = rondo_runtime_start(grown, &joined, comm);
    explicit_bzero(&chosen, sizeof(chosen));
    return result;
}
