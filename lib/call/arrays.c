/* The arrays of a call with counts, made whole (lib/call/call.h). */
#include "lib/call/call.h"

/* Each copies an array to room; displacements are the running sums of the counts where the user gave none. */
static const size_t *resolve_counts(const size_t *counts, const rondo_datatype_t *types, int blocks, size_t *room)
{
    for (int i = 0; i < blocks; i++)
        room[i] = rondo_block_count(counts, types, i);
    return room;
}

static const size_t *resolve_displacements(const size_t *displacements, const size_t *counts, int blocks, size_t *room)
{
    size_t at = 0;
    for (int i = 0; i < blocks; i++) {
        room[i] = displacements != NULL ? displacements[i] : at;
        at += counts[i];
    }
    return room;
}

void rondo_call_resolve(struct rondo_call *call, const struct rondo_blocks *blocks, size_t *room)
{
    const int rank = blocks->rank, size = blocks->size, sent = blocks->sent, received = blocks->received;
    size_t *other = room + 2 * received;
    const rondo_collective_t *rule = &rondo_collective_of(call->kind)->rule;
    const int sends = rule->send_extent == RONDO_EXTENT_COUNTS && rondo_ranks_include(rule->send_ranks, rank, size, call->root);
    const int receives =
        rule->recv_extent == RONDO_EXTENT_COUNTS && rondo_ranks_include(rule->recv_ranks, rank, size, call->root);
    if (receives) {
        call->receive_counts = resolve_counts(call->receive_counts, call->receive_types, received, room);
        call->receive_displacements =
            resolve_displacements(call->receive_displacements, call->receive_counts, received, room + received);
    }
    if (sends && receives && call->send == RONDO_IN_PLACE) {
        call->send_counts = call->receive_counts;
        call->send_displacements = call->receive_displacements;
    } else if (sends) { /* a reduce-scatter's blocks are those that the ranks receive */
        const size_t *given = call->send_counts != NULL ? call->send_counts : call->receive_counts;
        call->send_counts = resolve_counts(given, call->send_types, sent, other);
        call->send_displacements = resolve_displacements(call->send_displacements, call->send_counts, sent, other + sent);
    }
    call->send_types = call->receive_types = NULL;
    if (sends && !receives && (call->recv == RONDO_IN_PLACE || rule->reduces))
        call->count = call->send_counts[rank];
    if (receives && !sends && call->send == RONDO_IN_PLACE)
        call->count = call->receive_counts[rank];
    if (sends && rule->reduces)
        call->receive_counts = call->send_counts;
}
