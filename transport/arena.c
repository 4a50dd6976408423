/* See arena.h. Each segment keeps its free extents in address order; neighbours are merged on release. */
#include "arena.h"

#include "error.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define GRAIN         256
#define SEGMENT_BYTES ((size_t) 64 << 20) /* address space; pages cost memory only once touched */

struct extent {
    struct extent *next;
    size_t offset, bytes;
    int used_before; /* may hold old data */
};

struct slab {
    struct slab *next;
    struct rondo_segment *segment;
    struct extent *free_extents;
};

struct rondo_arena {
    struct rondo_segments *segments;
    pthread_mutex_t lock;
    struct slab *slabs;
    uint64_t budget, reserved;
};

rondo_result_t rondo_arena_create(struct rondo_arena **result, struct rondo_segments *segments, uint64_t budget)
{
    struct rondo_arena *arena = calloc(1, sizeof(*arena));
    if (arena == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for the connector arena");
    arena->segments = segments;
    arena->budget = budget;
    pthread_mutex_init(&arena->lock, NULL);
    *result = arena;
    return RONDO_SUCCESS;
}

void rondo_arena_destroy(struct rondo_arena *arena)
{
    if (arena == NULL)
        return;
    while (arena->slabs != NULL) {
        struct slab *slab = arena->slabs;
        arena->slabs = slab->next;
        while (slab->free_extents != NULL) {
            struct extent *extent = slab->free_extents;
            slab->free_extents = extent->next;
            free(extent);
        }
        rondo_segment_release(arena->segments, slab->segment);
        free(slab);
    }
    pthread_mutex_destroy(&arena->lock);
    free(arena);
}

static int take(struct slab *slab, size_t bytes, struct rondo_region *region)
{
    for (struct extent **link = &slab->free_extents; *link != NULL; link = &(*link)->next) {
        struct extent *extent = *link;
        if (extent->bytes < bytes)
            continue;
        region->segment = slab->segment;
        region->offset = extent->offset;
        region->bytes = bytes;
        if (extent->used_before)
            memset(slab->segment->base + extent->offset, 0, bytes);
        extent->offset += bytes;
        extent->bytes -= bytes;
        if (extent->bytes == 0) {
            *link = extent->next;
            free(extent);
        }
        return 1;
    }
    return 0;
}

static rondo_result_t grow(struct rondo_arena *arena, size_t bytes)
{
    struct slab *slab = calloc(1, sizeof(*slab));
    struct extent *extent = calloc(1, sizeof(*extent));
    rondo_result_t result = RONDO_ERR_MEMORY;
    if (slab != NULL && extent != NULL)
        result = rondo_segment_allocate(arena->segments, bytes > SEGMENT_BYTES / 4 ? bytes : SEGMENT_BYTES, &slab->segment);
    else
        rondo_fail(result, "no memory to describe a segment");
    if (result != RONDO_SUCCESS) {
        free(slab);
        free(extent);
        return result;
    }
    extent->bytes = slab->segment->bytes;
    slab->free_extents = extent;
    slab->next = arena->slabs;
    arena->slabs = slab;
    return RONDO_SUCCESS;
}

rondo_result_t rondo_arena_allocate(struct rondo_arena *arena, size_t bytes, struct rondo_region *region)
{
    rondo_result_t result = RONDO_SUCCESS;
    bytes = (bytes + GRAIN - 1) & ~(size_t) (GRAIN - 1);
    pthread_mutex_lock(&arena->lock);
    if (bytes > arena->budget || arena->reserved > arena->budget - bytes) {
        result = rondo_fail(RONDO_ERR_MEMORY,
                            "a connector of %zu bytes exceeds the memory budget: %llu of %llu bytes are in use (RONDO_MEMORY)",
                            bytes, (unsigned long long) arena->reserved, (unsigned long long) arena->budget);
    } else {
        struct slab *slab = arena->slabs;
        while (slab != NULL && !take(slab, bytes, region))
            slab = slab->next;
        if (slab == NULL && (result = grow(arena, bytes)) == RONDO_SUCCESS)
            take(arena->slabs, bytes, region);
        if (result == RONDO_SUCCESS)
            arena->reserved += bytes;
    }
    pthread_mutex_unlock(&arena->lock);
    return result;
}

static void give_back(struct slab *slab, struct extent *freed)
{
    struct extent **link = &slab->free_extents, *before = NULL;
    while (*link != NULL && (*link)->offset < freed->offset) {
        before = *link;
        link = &before->next;
    }
    freed->next = *link;
    *link = freed;
    if (freed->next != NULL && freed->offset + freed->bytes == freed->next->offset) {
        struct extent *after = freed->next;
        freed->bytes += after->bytes;
        freed->next = after->next;
        free(after);
    }
    if (before != NULL && before->offset + before->bytes == freed->offset) {
        before->bytes += freed->bytes;
        before->used_before = 1;
        before->next = freed->next;
        free(freed);
    }
}

void rondo_arena_release(struct rondo_arena *arena, const struct rondo_region *region)
{
    struct extent *freed = calloc(1, sizeof(*freed));
    pthread_mutex_lock(&arena->lock);
    arena->reserved -= region->bytes;
    struct slab *slab = arena->slabs;
    while (slab != NULL && slab->segment != region->segment)
        slab = slab->next;
    if (slab != NULL && freed != NULL) { /* without memory for the note the region is lost to us, not misused */
        freed->offset = region->offset;
        freed->bytes = region->bytes;
        freed->used_before = 1;
        give_back(slab, freed);
    } else {
        free(freed);
    }
    pthread_mutex_unlock(&arena->lock);
}

uint64_t rondo_arena_reserved(struct rondo_arena *arena)
{
    pthread_mutex_lock(&arena->lock);
    uint64_t reserved = arena->reserved;
    pthread_mutex_unlock(&arena->lock);
    return reserved;
}

uint64_t rondo_arena_budget(const struct rondo_arena *arena)
{
    return arena->budget;
}
