/* Ends of a block to every other rank, for plans written by hand: outgoing ones first, then incoming ones, each in the order of
 * ranks. Relies on at most RONDO_PROGRAM_ENDS_MAX ends, which the plan builder checks. */
#ifndef RONDO_LIB_ALGORITHMS_PEERS_H
#define RONDO_LIB_ALGORITHMS_PEERS_H

#include "lib/algorithms/algorithms.h"

struct rondo_peer_ends {
    uint8_t out_first, in_first, count;
};

/* Adds an end to each other rank in one direction. Returns the index of the first. */
static inline uint8_t rondo_add_ends(struct rondo_plan_builder *builder, const struct rondo_shape *shape, int channel,
                                     enum rondo_direction direction)
{
    uint8_t first = 0;
    for (int peer = 0; peer < shape->size; peer++)
        if (peer != shape->rank) {
            uint8_t end = rondo_plan_builder_end(builder, peer, channel, direction, shape->protocol);
            first = peer == (shape->rank == 0 ? 1 : 0) ? end : first;
        }
    return first;
}

/* Adds the ends of both directions. */
static inline struct rondo_peer_ends rondo_add_peer_ends(struct rondo_plan_builder *builder, const struct rondo_shape *shape,
                                                         int channel)
{
    struct rondo_peer_ends ends = {0, 0, (uint8_t) (shape->size - 1)};
    ends.out_first = rondo_add_ends(builder, shape, channel, RONDO_OUTGOING);
    ends.in_first = rondo_add_ends(builder, shape, channel, RONDO_INCOMING);
    return ends;
}

/* Returns the number of a peer among all other ranks, in the order of ranks: what to add to the first end's index. */
static inline uint8_t rondo_peer_place(const struct rondo_shape *shape, int peer)
{
    return (uint8_t) (peer < shape->rank ? peer : peer - 1);
}

#endif
