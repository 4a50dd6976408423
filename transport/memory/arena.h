/*
 * Connector memory: regions cut out of a few large slabs, first fit, counted against the rank's one budget whatever kind of
 * memory they are. Where slabs come from is their source's business: shared segments (transport/shm/shm.c), GPU memory
 * (transport/p2p/p2p.c). Thread safe. Regions are zero when handed out.
 */
#ifndef RONDO_TRANSPORT_MEMORY_ARENA_H
#define RONDO_TRANSPORT_MEMORY_ARENA_H

#include "rondo.h"

#include <stddef.h>
#include <stdint.h>

struct rondo_arena;

struct rondo_slab {
    char *base;   /* aligned to 256; the host touches it only through its source */
    size_t bytes; /* a multiple of 256 */
    void *own;    /* the source's */
};

/* Called with the arena's lock held, on any thread, the control thread included. */
struct rondo_slab_source {
    size_t slab_bytes; /* of a slab, unless a large region needs one of its own */
    /* Fills in all of the slab, whose memory is zero. */
    rondo_result_t (*allocate)(void *argument, size_t bytes, struct rondo_slab *slab);
    void (*release)(void *argument, struct rondo_slab *slab);
    /* Returns when the zeros are there for everybody. */
    rondo_result_t (*zero)(void *argument, void *memory, size_t bytes);
};

struct rondo_region {
    struct rondo_slab *slab;
    size_t offset, bytes; /* multiples of 256 */
};

rondo_result_t rondo_arena_create(struct rondo_arena **arena, uint64_t budget);
/* Releases all slabs. NULL: nothing. */
void rondo_arena_destroy(struct rondo_arena *arena);
/* argument goes to the source's functions, and tells apart slabs of one source for different purposes. RONDO_ERR_MEMORY with
 * the figures when the budget would be exceeded. */
rondo_result_t rondo_arena_allocate(struct rondo_arena *arena, const struct rondo_slab_source *source, void *argument,
                                    size_t bytes, struct rondo_region *region);
void rondo_arena_release(struct rondo_arena *arena, const struct rondo_region *region);
uint64_t rondo_arena_reserved(struct rondo_arena *arena);
uint64_t rondo_arena_budget(const struct rondo_arena *arena);

#endif
