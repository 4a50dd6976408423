/*
 * Connector memory: regions cut out of a few large segments (segment.h), first fit, counted against the rank's budget. Thread
 * safe. Regions are zero when handed out.
 */
#ifndef RONDO_TRANSPORT_ARENA_H
#define RONDO_TRANSPORT_ARENA_H

#include "segment.h"

struct rondo_arena;

struct rondo_region {
    struct rondo_segment *segment;
    size_t offset, bytes; /* multiples of 256 */
};

rondo_result_t rondo_arena_create(struct rondo_arena **arena, struct rondo_segments *segments, uint64_t budget);
void rondo_arena_destroy(struct rondo_arena *arena);
/* RONDO_ERR_MEMORY with the figures when the budget would be exceeded. */
rondo_result_t rondo_arena_allocate(struct rondo_arena *arena, size_t bytes, struct rondo_region *region);
void rondo_arena_release(struct rondo_arena *arena, const struct rondo_region *region);
uint64_t rondo_arena_reserved(struct rondo_arena *arena);
uint64_t rondo_arena_budget(const struct rondo_arena *arena);

#endif
