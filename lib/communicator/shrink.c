/* rondo_comm_shrink: a communicator of the ranks that remain of another. They agree among themselves, over a rendezvous, so
 * that neither the excluded ranks nor the old communicator have to work. */
#include "lib/communicator/comm.h"
#include "lib/connection/mailbox.h"
#include "lib/context/handles.h"
#include "lib/base/error.h"
#include "lib/submission/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MADE_HERE  ((uint64_t) 1 << 63) /* tells these ids from those of rondo_comm_split */
#define RENDEZVOUS ((uint64_t) 1 << 62) /* tells a rendezvous from the communicator that it is for */

/* FNV-1a of eight more bytes. */
static uint64_t hash(uint64_t value, uint64_t more)
{
    for (int byte = 0; byte < 8; byte++)
        value = (value ^ (more >> 8 * byte & 255)) * 1099511628211u;
    return value;
}

/* Sets *id, also on failure, which is the same on all remaining ranks: a hash of the old communicator, the members, and how
 * many communicators of just these members have been made of it before. */
static rondo_result_t derive_id(struct rondo_comm *comm, const int *members, int size, uint64_t *id)
{
    uint64_t list = hash(14695981039346656037u, comm->id), before = 0;
    rondo_result_t result = RONDO_SUCCESS;
    for (int i = 0; i < size; i++)
        list = hash(list, (uint64_t) members[i]);
    pthread_mutex_lock(&comm->requests->lane_lock);
    for (int i = 0; i < comm->shrunk_count; i++)
        before += comm->shrunk[i] == list;
    uint64_t *more = realloc(comm->shrunk, ((size_t) comm->shrunk_count + 1) * sizeof(*more));
    if (more == NULL) {
        result = rondo_fail(RONDO_ERR_MEMORY, "no memory to shrink a communicator");
    } else {
        comm->shrunk = more;
        comm->shrunk[comm->shrunk_count++] = list;
    }
    pthread_mutex_unlock(&comm->requests->lane_lock);
    *id = (hash(list, before) | MADE_HERE) & ~RENDEZVOUS;
    return result;
}

/* Makes the communicator of the members once all of them have called rondo_comm_shrink; no rank has one that another lacks.
 * rank: the caller's index. Collective over them. */
static rondo_result_t make(struct rondo_comm *comm, uint64_t id, int *members, int rank, int size, struct rondo_comm **made)
{
    struct rondo_runtime *runtime = comm->runtime;
    struct rondo_comm_rendezvous *rendezvous = NULL;
    rondo_result_t result = rondo_comm_rendezvous_open(runtime, id | RENDEZVOUS, members, rank, size, &rendezvous);
    if (result == RONDO_SUCCESS)
        result = rondo_meet(rondo_comm_rendezvous_comm(rendezvous), "rondo_comm_shrink");
    if (result == RONDO_SUCCESS)
        result = rondo_comm_create(runtime, id, members, size, made);
    if (result == RONDO_SUCCESS) {
        (*made)->compression = comm->compression;
        result = rondo_meet(rondo_comm_rendezvous_comm(rendezvous), "rondo_comm_shrink");
    }
    rondo_comm_rendezvous_close(rendezvous);
    return result;
}

/* The other members learn that this rank has failed: those that wait for it, and those that have the new communicator. */
static rondo_result_t give_up(struct rondo_runtime *runtime, uint64_t id, struct rondo_comm *made, rondo_result_t result)
{
    char message[1024];
    snprintf(message, sizeof(message), "%s", rondo_last_error());
    rondo_comm_fail_by_id(runtime, id | RENDEZVOUS, result, "rondo_comm_shrink");
    rondo_comm_fail_by_id(runtime, id, result, "rondo_comm_shrink");
    if (made != NULL)
        rondo_comm_destroy(made);
    return rondo_fail(result, "%s", message);
}

/* Checks the arguments, except the communicator. */
static rondo_result_t check(const struct rondo_comm *comm, const int *excluded, int count, const rondo_comm_t *result)
{
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

rondo_result_t rondo_comm_shrink(rondo_comm_t handle, const int *excluded, int count, rondo_comm_t *result_comm)
{
    struct rondo_comm *comm, *made = NULL;
    rondo_result_t result = rondo_comm_of(handle, "rondo_comm_shrink", &comm);
    if (result == RONDO_SUCCESS)
        result = check(comm, excluded, count, result_comm);
    if (result != RONDO_SUCCESS)
        return result;
    *result_comm = NULL;
    int size = 0, rank = 0, *members = calloc((size_t) comm->size, sizeof(*members));
    uint64_t id;
    if (members == NULL) { /* and no name for what the others wait for */
        result = rondo_fail(RONDO_ERR_MEMORY, "rondo_comm_shrink: rank %d has no memory for %d ranks", comm->runtime->rank,
                            comm->size);
        rondo_rank_fail(comm->runtime, result, rondo_last_error());
        return result;
    }
    for (int old = 0; old < comm->size; old++) {
        int gone = 0;
        for (int i = 0; i < count; i++)
            gone |= excluded[i] == old;
        if (old == comm->rank)
            rank = size;
        if (!gone)
            members[size++] = comm->members[old];
    }
    result = derive_id(comm, members, size, &id);
    if (result == RONDO_SUCCESS)
        result = make(comm, id, members, rank, size, &made);
    if (result == RONDO_SUCCESS)
        *result_comm = made->handle;
    else
        result = give_up(comm->runtime, id, made, result);
    free(members);
    return result;
}
