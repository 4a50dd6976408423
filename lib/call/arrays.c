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

/* Whether the rank's input (output) has arrays, which are then significant. */
static int has_arrays(const struct rondo_call *call, const struct rondo_blocks *blocks, int output)
{
    const rondo_collective_t *rule = &rondo_collective_of(call->kind)->rule;
    return (output ? rule->recv_extent : rule->send_extent) == RONDO_EXTENT_COUNTS &&
           rondo_ranks_include(output ? rule->recv_ranks : rule->send_ranks, blocks->rank, blocks->size, call->root);
}

void rondo_call_resolve(struct rondo_call *call, const struct rondo_blocks *blocks, size_t *room)
{
    const int rank = blocks->rank, sent = blocks->sent, received = blocks->received;
    size_t *other = room + 2 * received;
    const rondo_collective_t *rule = &rondo_collective_of(call->kind)->rule;
    const int sends = has_arrays(call, blocks, 0), receives = has_arrays(call, blocks, 1);
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

/* Whether the arrays would be resolved to those counts and displacements. */
static int are_equal(const size_t *counts, const size_t *displacements, const rondo_datatype_t *types, int blocks,
                     const size_t *resolved_counts, const size_t *resolved_displacements)
{
    size_t at = 0;
    for (int i = 0; i < blocks; i++) {
        const size_t count = rondo_block_count(counts, types, i);
        if (count != resolved_counts[i] || (displacements != NULL ? displacements[i] : at) != resolved_displacements[i])
            return 0;
        at += count;
    }
    return 1;
}

int rondo_call_resolves_to(const struct rondo_call *call, const struct rondo_blocks *blocks, const struct rondo_call *resolved)
{
    const rondo_collective_t *rule = &rondo_collective_of(call->kind)->rule;
    const int sends = has_arrays(call, blocks, 0), receives = has_arrays(call, blocks, 1);
    const int derived = (sends && !receives && (call->recv == RONDO_IN_PLACE || rule->reduces)) ||
                        (receives && !sends && call->send == RONDO_IN_PLACE); /* the count, from the arrays */
    if (!derived && call->count != resolved->count)
        return 0;
    if (receives && !are_equal(call->receive_counts, call->receive_displacements, call->receive_types, blocks->received,
                               resolved->receive_counts, resolved->receive_displacements))
        return 0;
    if (!sends || (receives && call->send == RONDO_IN_PLACE))
        return 1;
    return are_equal(call->send_counts != NULL ? call->send_counts : call->receive_counts, call->send_displacements,
                     call->send_types, blocks->sent, resolved->send_counts, resolved->send_displacements);
}

uint64_t rondo_call_counts_hash(const struct rondo_call *call, const struct rondo_blocks *blocks)
{
    const int sends = has_arrays(call, blocks, 0), receives = has_arrays(call, blocks, 1);
    const size_t *counts = receives || call->send_counts == NULL ? call->receive_counts : call->send_counts;
    const rondo_datatype_t *types = receives ? call->receive_types : call->send_types;
    uint64_t hash = 0;
    if (!sends && !receives)
        return call->count;
    for (int i = 0; i < (receives ? blocks->received : blocks->sent); i++)
        hash = hash * 31 + rondo_block_count(counts, types, i);
    return hash;
}
