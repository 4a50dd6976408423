/*
 * The exchange (lib/connection/exchange.h). The contributions go up a tree to the first member, and the whole comes down the
 * same tree; when members meet, that all have come. Relies on lib/connection/mailbox.h.
 */
#include "lib/connection/exchange.h"
#include "lib/base/error.h"
#include "lib/connection/comm_connections.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MESSAGE_BYTES 1024

static const struct rondo_membership plain; /* of members that know each other */

/* Advances the header to the next part. Returns 0 if there is none. */
static int next_part(struct rondo_mail_header *header)
{
    return ++header->part * RONDO_MAIL_PART_MOST < header->whole;
}

/* ---- the tree ---- */

/* Members that know each other make a binomial tree: a member's parent is its rank without the lowest bit that is set. Those of
 * an attempt make a star, because the first member is the one that knows what has become of each attempt. A member passes on
 * what `span` members contribute, itself and those after it; its children are among them, at growing distances from it. */
static int is_star(const struct rondo_mail_header *header)
{
    return header->key != 0;
}

static int parent_of(const struct rondo_comm *comm, const struct rondo_mail_header *header)
{
    return is_star(header) ? 0 : comm->rank & (comm->rank - 1);
}

static int span(const struct rondo_comm *comm, const struct rondo_mail_header *header, int member)
{
    const int rest = comm->size - member, most = member == 0 ? rest : is_star(header) ? 1 : member & -member;
    return most < rest ? most : rest;
}

/* The distance of the child after the one at that distance, or of the first child (0). Returns 0 after the last. */
static int next_child(const struct rondo_comm *comm, const struct rondo_mail_header *header, int distance)
{
    const int next = distance == 0 || is_star(header) ? distance + 1 : 2 * distance;
    return next < span(comm, header, comm->rank) ? next : 0;
}

/* Waits for what the children pass up: bytes of each member of their spans. */
static rondo_result_t gather(struct rondo_comm *comm, const char *name, struct rondo_mail_header header, size_t bytes,
                             char *gathered)
{
    rondo_result_t result = RONDO_SUCCESS;
    for (int at = 0; result == RONDO_SUCCESS && (at = next_child(comm, &header, at)) != 0;) {
        const int child = comm->rank + at, ranks = span(comm, &header, child);
        header.part = 0;
        header.whole = (uint64_t) ranks * bytes;
        do
            result = rondo_mailbox_receive(comm, name, child, &header, ranks, gathered + (size_t) child * bytes);
        while (next_part(&header) && result == RONDO_SUCCESS);
    }
    return result;
}

/* Sends the parent what the members of this span contribute: bytes each. */
static rondo_result_t pass_up(struct rondo_comm *comm, struct rondo_mail_header header, size_t bytes, const char *gathered)
{
    rondo_result_t result;
    header.whole = (uint64_t) span(comm, &header, comm->rank) * bytes;
    do
        result = rondo_mailbox_send(comm, parent_of(comm, &header), &header, gathered + (size_t) comm->rank * bytes);
    while (next_part(&header) && result == RONDO_SUCCESS);
    return result;
}

/* Sends the children the whole, part by part; every member but the first one receives each part from its parent before. */
static rondo_result_t spread(struct rondo_comm *comm, const char *name, struct rondo_mail_header header, size_t total,
                             char *gathered)
{
    rondo_result_t result = RONDO_SUCCESS;
    header.step = 1;
    header.whole = total;
    do {
        if (comm->rank != 0)
            result = rondo_mailbox_receive(comm, name, parent_of(comm, &header), &header, comm->size, gathered);
        for (int at = 0; result == RONDO_SUCCESS && (at = next_child(comm, &header, at)) != 0;)
            result = rondo_mailbox_send(comm, comm->rank + at, &header, gathered);
    } while (next_part(&header) && result == RONDO_SUCCESS);
    return result;
}

/* An attempt that has failed sends no more messages: its members have been told, and may have ended it. */
static rondo_result_t attempt_failure(const struct rondo_comm *comm, const char *name, const struct rondo_mail_header *header)
{
    const rondo_result_t failed = header->key != 0 ? rondo_comm_failure(comm) : RONDO_SUCCESS;
    return failed != RONDO_SUCCESS ? rondo_fail(failed, "%s: %s", name, comm->failure) : RONDO_SUCCESS;
}

/* bytes of mine from every member are gathered at the first one, in gathered (size * bytes), and total bytes of it are sent to
 * every other member's gathered. membership: all zeros if the members know each other. */
static rondo_result_t exchange(struct rondo_comm *comm, const char *name, const struct rondo_membership *membership,
                               const void *mine, size_t bytes, char *gathered, size_t total)
{
    const struct rondo_mail_header header = {.comm = comm->id,
                                             .number = __atomic_fetch_add(&comm->connections->exchanges, 1, __ATOMIC_RELAXED),
                                             .key = membership->key,
                                             .list = membership->list,
                                             .attempt = membership->attempt};
    rondo_result_t result = attempt_failure(comm, name, &header);
    if (result != RONDO_SUCCESS)
        return result;
    memcpy(gathered + (size_t) comm->rank * bytes, mine, bytes);
    result = gather(comm, name, header, bytes, gathered);
    if (result == RONDO_SUCCESS) /* a member whose message has been taken may have given up since */
        result = attempt_failure(comm, name, &header);
    if (result == RONDO_SUCCESS && comm->rank != 0)
        result = pass_up(comm, header, bytes, gathered);
    return result == RONDO_SUCCESS ? spread(comm, name, header, total, gathered) : result;
}

rondo_result_t rondo_exchange(struct rondo_comm *comm, const char *name, const void *mine, size_t bytes, void *all)
{
    return rondo_comm_conclude(comm, name, exchange(comm, name, &plain, mine, bytes, all, (size_t) comm->size * bytes));
}

rondo_result_t rondo_meet(struct rondo_comm *comm, const char *name, const struct rondo_membership *membership)
{
    const struct rondo_membership *mine = membership != NULL ? membership : &plain;
    const size_t bytes = membership != NULL ? sizeof(*mine) : 1; /* of members that know each other the message says enough */
    char *all = calloc((size_t) comm->size, bytes);
    rondo_result_t result = all == NULL ? rondo_fail(RONDO_ERR_MEMORY, "no memory to meet %d ranks", comm->size)
                                        : exchange(comm, name, mine, mine, bytes, all, 1);
    free(all);
    return rondo_comm_conclude(comm, name, result);
}

static rondo_result_t first_failure(const struct rondo_comm *comm, const char *name, const int32_t *codes)
{
    for (int rank = 0; rank < comm->size; rank++)
        if (codes[rank] != RONDO_SUCCESS)
            return rondo_fail((rondo_result_t) codes[rank], "%s: it failed on rank %d: %s", name, comm->members[rank],
                              rondo_strerror(codes[rank]));
    return RONDO_SUCCESS;
}

rondo_result_t rondo_agree(struct rondo_comm *comm, const char *name, rondo_result_t mine, int *refused)
{
    char message[MESSAGE_BYTES];
    int32_t code = (int32_t) mine, *codes = calloc((size_t) comm->size, sizeof(*codes));
    snprintf(message, sizeof(message), "%s", rondo_last_error());
    *refused = 0;
    if (codes == NULL)
        return rondo_comm_conclude(comm, name, rondo_fail(RONDO_ERR_MEMORY, "no memory to agree with %d ranks", comm->size));
    rondo_result_t result = rondo_exchange(comm, name, &code, sizeof(code), codes);
    int told = result == RONDO_SUCCESS;
    if (told) {
        result = first_failure(comm, name, codes);
        *refused = result != RONDO_SUCCESS;
    }
    free(codes);
    if (mine != RONDO_SUCCESS && (told || rondo_comm_failure(comm) == RONDO_SUCCESS))
        return rondo_fail(mine, "%s", message);
    return result;
}
