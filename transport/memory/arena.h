/*
 * Connector memory: regions cut out of a few large slabs, first fit, counted against the rank's one budget whatever kind of
 * memory they are. A source makes the slabs: of shared segments (transport/shm/shm.c), of GPU memory (transport/p2p/p2p.c).
 * Every function may be called by any thread. Regions are zero when they are allocated.
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

/* Called with the arena's lock held, on any thread, the control thread included: must not wait for other ranks. */
struct rondo_slab_source {
    size_t slab_bytes; /* of a slab, unless a large region needs one of its own */
    /* Fills in all of the slab, whose memory is zero. */
    rondo_result_t (*allocate)(void *argument, size_t bytes, struct rondo_slab *slab);
    void (*release)(void *argument, struct rondo_slab *slab);
    /* Returns when the zeros are visible to the device and to every process that maps the memory. */
    rondo_result_t (*zero)(void *argument, void *memory, size_t bytes);
};

/* A part of a slab, for one connector. */
struct rondo_region {
    struct rondo_slab *slab;
    size_t offset, bytes; /* multiples of 256 */
};

/* *arena: empty, with a budget in bytes. RONDO_ERR_MEMORY. */
rondo_result_t rondo_arena_create(struct rondo_arena **arena, uint64_t budget);
/* Releases all slabs; no region may be in use. NULL: nothing. */
void rondo_arena_destroy(struct rondo_arena *arena);
/* *region: at least bytes, of a slab of that source and argument; a new slab is made if none has room. argument is given to the
 * source's functions. RONDO_ERR_MEMORY with the figures when the budget would be exceeded; else the source's error. */
rondo_result_t rondo_arena_allocate(struct rondo_arena *arena, const struct rondo_slab_source *source, void *argument,
                                    size_t bytes, struct rondo_region *region);
/* The region may be allocated again from here on. Releases no slab. */
void rondo_arena_release(struct rondo_arena *arena, const struct rondo_region *region);
/* Bytes of regions in use, and the most that there may be. */
uint64_t rondo_arena_reserved(struct rondo_arena *arena);
uint64_t rondo_arena_budget(const struct rondo_arena *arena);

#endif
