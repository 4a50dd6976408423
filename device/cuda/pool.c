/* See device/cuda/pool.h. Sizes are rounded up to powers of two; each size has its list of returned blocks. */
#include "device/cuda/pool.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

enum { SMALLEST_SHIFT = 6, CLASSES = 42 };
#define SLAB_BYTES ((size_t) 1 << 20)

struct pool_block {
    struct pool_block *next;
    void *memory;
};

struct rondo_pool {
    struct rondo_pool_source source;
    pthread_mutex_t lock;
    struct pool_block *slabs; /* all memory that was obtained */
    char *fresh;              /* what is left of the newest slab */
    size_t fresh_bytes;
    struct pool_block *returned[CLASSES];
};

struct rondo_pool *rondo_pool_create(const struct rondo_pool_source *source)
{
    struct rondo_pool *pool = calloc(1, sizeof(*pool));
    if (pool == NULL)
        return NULL;
    pool->source = *source;
    pthread_mutex_init(&pool->lock, NULL);
    return pool;
}

void rondo_pool_destroy(struct rondo_pool *pool)
{
    if (pool == NULL)
        return;
    for (int c = 0; c < CLASSES; c++)
        while (pool->returned[c] != NULL) {
            struct pool_block *block = pool->returned[c];
            pool->returned[c] = block->next;
            free(block);
        }
    while (pool->slabs != NULL) {
        struct pool_block *slab = pool->slabs;
        pool->slabs = slab->next;
        pool->source.give_back(pool->source.argument, slab->memory);
        free(slab);
    }
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

static int class_of(size_t bytes)
{
    int class = 0;
    while (((size_t) 1 << (class + SMALLEST_SHIFT)) < bytes)
        class ++;
    return class;
}

/* A block from the newest slab, or from a new one. Under the lock. */
static void *obtain(struct rondo_pool *pool, size_t bytes)
{
    struct pool_block *slab = calloc(1, sizeof(*slab));
    if (slab == NULL)
        return NULL;
    slab->memory = pool->source.obtain(pool->source.argument, bytes);
    if (slab->memory == NULL) {
        free(slab);
        return NULL;
    }
    slab->next = pool->slabs;
    pool->slabs = slab;
    return slab->memory;
}

/* Under the lock. Blocks of a slab lie at multiples of 256, or of their size if that is smaller. */
static void *cut(struct rondo_pool *pool, size_t bytes)
{
    if (bytes > SLAB_BYTES / 4)
        return obtain(pool, bytes);
    size_t alignment = bytes < 256 ? bytes : 256;
    size_t skipped = (alignment - (uintptr_t) pool->fresh % alignment) % alignment;
    if (pool->fresh_bytes < skipped + bytes) {
        char *slab = obtain(pool, SLAB_BYTES);
        if (slab == NULL)
            return NULL;
        pool->fresh = slab;
        pool->fresh_bytes = SLAB_BYTES;
        skipped = 0;
    }
    char *memory = pool->fresh + skipped;
    pool->fresh += skipped + bytes;
    pool->fresh_bytes -= skipped + bytes;
    return memory;
}

void *rondo_pool_take(struct rondo_pool *pool, size_t bytes)
{
    int class = class_of(bytes);
    size_t rounded = (size_t) 1 << (class + SMALLEST_SHIFT);
    void *memory = NULL;
    pthread_mutex_lock(&pool->lock);
    struct pool_block *block = pool->returned[class];
    if (block != NULL)
        pool->returned[class] = block->next;
    else
        memory = cut(pool, rounded);
    pthread_mutex_unlock(&pool->lock);
    if (block != NULL) {
        memory = block->memory;
        free(block);
        pool->source.clear(pool->source.argument, memory, bytes);
    }
    return memory;
}

void rondo_pool_return(struct rondo_pool *pool, void *memory, size_t bytes)
{
    struct pool_block *block = memory != NULL ? calloc(1, sizeof(*block)) : NULL;
    if (block == NULL)
        return; /* without memory for the note, the block is lost until the pool is destroyed */
    int class = class_of(bytes);
    block->memory = memory;
    pthread_mutex_lock(&pool->lock);
    block->next = pool->returned[class];
    pool->returned[class] = block;
    pthread_mutex_unlock(&pool->lock);
}
