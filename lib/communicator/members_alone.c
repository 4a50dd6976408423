/* See lib/communicator/members_alone.h. The members agree over a rendezvous, whose first member is the smallest rank, so that
 * members that list the same ranks in different orders meet. */
#include "lib/communicator/members_alone.h"

#include "lib/communicator/comm.h"
#include "lib/connection/exchange.h"
#include "lib/connection/mailbox.h"
#include "lib/base/containers.h"
#include "lib/base/error.h"
#include "lib/submission/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MADE_HERE     ((uint64_t) 1 << 63) /* tells these ids from those of rondo_comm_split */
#define RENDEZVOUS    ((uint64_t) 1 << 62) /* tells a rendezvous from the communicator that it is for */
#define MESSAGE_BYTES 1024

static uint64_t hash(uint64_t value, uint64_t more)
{
    return rondo_hash(value, &more, sizeof(more));
}

/* Sets *before to the number of communicators that have been made of comm for the list with this hash, and counts one more. */
static rondo_result_t count(struct rondo_comm *comm, uint64_t list, uint64_t *before)
{
    rondo_result_t result = RONDO_SUCCESS;
    int i = 0;
    pthread_mutex_lock(&comm->requests->lane_lock);
    while (i < comm->alone_count && comm->alone[i].list != list)
        i++;
    if (i == comm->alone_count) {
        struct rondo_alone_count *more = realloc(comm->alone, ((size_t) comm->alone_count + 1) * sizeof(*more));
        if (more != NULL) {
            comm->alone = more;
            comm->alone[comm->alone_count++] = (struct rondo_alone_count){list, 0};
        } else {
            result = rondo_fail(RONDO_ERR_MEMORY, "no memory to count the communicators that are made of one");
        }
    }
    *before = result == RONDO_SUCCESS ? comm->alone[i].made++ : 0;
    pthread_mutex_unlock(&comm->requests->lane_lock);
    return result;
}

/* Sets *id, also on failure, which is the same on all members: a hash of comm, the members, the tag, and how many communicators
 * of just these have been made before; and what a membership says of them. */
static rondo_result_t derive_id(struct rondo_comm *comm, const struct rondo_alone *alone, uint64_t *id,
                                struct rondo_membership *membership)
{
    uint64_t list = hash(hash(RONDO_HASH_BASIS, comm->id), (uint64_t) alone->tag);
    membership->key = list | 1;
    membership->parent = comm->id;
    for (int i = 0; i < alone->size; i++)
        list = hash(list, (uint64_t) alone->members[i]);
    membership->list = list | 1;
    rondo_result_t result = count(comm, list, &membership->attempt);
    *id = (hash(list, membership->attempt) | MADE_HERE) & ~RENDEZVOUS;
    return result;
}

static int by_rank(const void *a, const void *b)
{
    const int *one = a, *other = b;
    return (*one > *other) - (*one < *other);
}

/* Fills in what the members' messages say: ranks of comm's world, cut where the text ends. */
static void describe(const struct rondo_alone *alone, struct rondo_membership *membership)
{
    int at = snprintf(membership->text, sizeof(membership->text), "%d rank%s:", alone->size, alone->size == 1 ? "" : "s");
    for (int i = 0; i < alone->size && at < (int) sizeof(membership->text) - 16; i++)
        at += snprintf(membership->text + at, sizeof(membership->text) - (size_t) at, " %d", alone->members[i]);
}

/* Makes this rank's communicator, and meets the other members, which have made theirs then. sorted: the members' ranks. */
static rondo_result_t make(struct rondo_comm *comm, uint64_t id, const struct rondo_alone *alone,
                           struct rondo_membership *membership, int *sorted, struct rondo_comm **made)
{
    struct rondo_runtime *runtime = comm->runtime;
    struct rondo_comm_rendezvous *rendezvous = NULL;
    int rank = 0;
    describe(alone, membership);
    memcpy(sorted, alone->members, (size_t) alone->size * sizeof(*sorted));
    qsort(sorted, (size_t) alone->size, sizeof(*sorted), by_rank);
    while (sorted[rank] != runtime->rank)
        rank++;
    rondo_result_t result = rondo_comm_create(runtime, id, alone->members, alone->size, made);
    if (result == RONDO_SUCCESS) {
        rondo_comm_inherit(*made, comm);
        result = rondo_comm_rendezvous_open(runtime, id | RENDEZVOUS, sorted, rank, alone->size, &rendezvous);
    }
    if (result == RONDO_SUCCESS)
        result = rondo_meet(rondo_comm_rendezvous_comm(rendezvous), alone->function, membership);
    rondo_comm_rendezvous_close(rendezvous);
    rondo_mailbox_end_attempt(runtime, id | RENDEZVOUS, membership, rank == 0, result);
    return result;
}

/* The other members learn that this rank has failed: those that wait for it, and those that have the new communicator. */
static rondo_result_t give_up(struct rondo_runtime *runtime, uint64_t id, const char *function, struct rondo_comm **made,
                              rondo_result_t result)
{
    char message[MESSAGE_BYTES];
    snprintf(message, sizeof(message), "%s", rondo_last_error());
    rondo_comm_fail_by_id(runtime, id | RENDEZVOUS, result, function);
    rondo_comm_fail_by_id(runtime, id, result, function);
    if (*made != NULL)
        rondo_comm_destroy(*made);
    *made = NULL;
    return rondo_fail(result, "%s", message);
}

rondo_result_t rondo_comm_make_alone(struct rondo_comm *comm, const struct rondo_alone *alone, struct rondo_comm **made)
{
    uint64_t id;
    struct rondo_membership membership = {0};
    int *sorted = calloc((size_t) alone->size, sizeof(*sorted));
    *made = NULL;
    rondo_result_t result = derive_id(comm, alone, &id, &membership);
    if (result == RONDO_SUCCESS && sorted == NULL)
        result = rondo_fail(RONDO_ERR_MEMORY, "%s: no memory for %d ranks", alone->function, alone->size);
    if (result == RONDO_SUCCESS)
        result = make(comm, id, alone, &membership, sorted, made);
    if (result != RONDO_SUCCESS)
        result = give_up(comm->runtime, id, alone->function, made, result);
    free(sorted);
    return result;
}
