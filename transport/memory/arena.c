/* See transport/memory/arena.h. Each slab has its free extents in address order; neighbours are merged on release. */
#include "transport/memory/arena.h"

#include "lib/base/error.h"

#include <pthread.h>
#include <stdlib.h>

#define GRAIN 256

struct extent {
    struct extent *next;
    size_t offset, bytes;
    int used_before; /* may hold old data */
};

struct entry {
    struct entry *next;
    struct rondo_slab slab;
    const struct rondo_slab_source *source;
    void *argument;
    struct extent *free_extents;
};

struct rondo_arena {
    pthread_mutex_t lock;
    struct entry *entries;
    uint64_t budget, reserved;
};

rondo_result_t rondo_arena_create(struct rondo_arena **result, uint64_t budget)
{
    struct rondo_arena *arena = calloc(1, sizeof(*arena));
    if (arena == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for the connector arena");
    arena->budget = budget;
    pthread_mutex_init(&arena->lock, NULL);
    *result = arena;
    return RONDO_SUCCESS;
}

void rondo_arena_destroy(struct rondo_arena *arena)
{
    if (arena == NULL)
        return;
    while (arena->entries != NULL) {
        struct entry *entry = arena->entries;
        arena->entries = entry->next;
        while (entry->free_extents != NULL) {
            struct extent *extent = entry->free_extents;
            entry->free_extents = extent->next;
            free(extent);
        }
        entry->source->release(entry->argument, &entry->slab);
        free(entry);
    }
    pthread_mutex_destroy(&arena->lock);
    free(arena);
}

/* Cuts bytes off the first extent that has them. *found: there was one. */
static rondo_result_t take(struct entry *entry, size_t bytes, struct rondo_region *region, int *found)
{
    struct extent **link = &entry->free_extents, *extent;
    while (*link != NULL && (*link)->bytes < bytes)
        link = &(*link)->next;
    extent = *link;
    *found = extent != NULL;
    if (extent == NULL)
        return RONDO_SUCCESS;
    if (extent->used_before) {
        rondo_result_t result = entry->source->zero(entry->argument, entry->slab.base + extent->offset, bytes);
        if (result != RONDO_SUCCESS)
            return result;
    }
    *region = (struct rondo_region){&entry->slab, extent->offset, bytes};
    extent->offset += bytes;
    extent->bytes -= bytes;
    if (extent->bytes == 0) {
        *link = extent->next;
        free(extent);
    }
    return RONDO_SUCCESS;
}

static rondo_result_t grow(struct rondo_arena *arena, const struct rondo_slab_source *source, void *argument, size_t bytes)
{
    struct entry *entry = calloc(1, sizeof(*entry));
    struct extent *extent = calloc(1, sizeof(*extent));
    rondo_result_t result = RONDO_ERR_MEMORY;
    if (entry != NULL && extent != NULL)
        result = source->allocate(argument, bytes > source->slab_bytes / 4 ? bytes : source->slab_bytes, &entry->slab);
    else
        rondo_fail(result, "no memory to describe a slab");
    if (result != RONDO_SUCCESS) {
        free(entry);
        free(extent);
        return result;
    }
    entry->source = source;
    entry->argument = argument;
    extent->bytes = entry->slab.bytes;
    entry->free_extents = extent;
    entry->next = arena->entries;
    arena->entries = entry;
    return RONDO_SUCCESS;
}

/* Under the lock. */
static rondo_result_t find_room(struct rondo_arena *arena, const struct rondo_slab_source *source, void *argument, size_t bytes,
                                struct rondo_region *region)
{
    int found = 0;
    for (struct entry *entry = arena->entries; entry != NULL; entry = entry->next) {
        if (entry->source != source || entry->argument != argument)
            continue;
        rondo_result_t result = take(entry, bytes, region, &found);
        if (found || result != RONDO_SUCCESS)
            return result;
    }
    rondo_result_t result = grow(arena, source, argument, bytes);
    return result == RONDO_SUCCESS ? take(arena->entries, bytes, region, &found) : result;
}

rondo_result_t rondo_arena_allocate(struct rondo_arena *arena, const struct rondo_slab_source *source, void *argument,
                                    size_t bytes, struct rondo_region *region)
{
    rondo_result_t result;
    if (bytes > SIZE_MAX - GRAIN)
        return rondo_fail(RONDO_ERR_MEMORY, "no connector can have %zu bytes", bytes);
    bytes = (bytes + GRAIN - 1) & ~(size_t) (GRAIN - 1);
    pthread_mutex_lock(&arena->lock);
    if (bytes > arena->budget || arena->reserved > arena->budget - bytes)
        result =
            rondo_refuse("a connector of %zu bytes exceeds the memory budget: %llu of %llu bytes are in use (RONDO_MEMORY)",
                         bytes, (unsigned long long) arena->reserved, (unsigned long long) arena->budget);
    else if ((result = find_room(arena, source, argument, bytes, region)) == RONDO_SUCCESS)
        arena->reserved += bytes;
    pthread_mutex_unlock(&arena->lock);
    return result;
}

static void give_back(struct entry *entry, struct extent *freed)
{
    struct extent **link = &entry->free_extents, *before = NULL;
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
    struct entry *entry = arena->entries;
    while (entry != NULL && &entry->slab != region->slab)
        entry = entry->next;
    if (entry != NULL && freed != NULL) { /* without memory for the extent the region leaks, and is not misused */
        freed->offset = region->offset;
        freed->bytes = region->bytes;
        freed->used_before = 1;
        give_back(entry, freed);
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
