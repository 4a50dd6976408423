/*
 * Small allocations out of large ones, for memory whose allocation is slow or whose release waits for the device: nothing goes
 * back before the pool is destroyed. Thread-safe.
 */
#ifndef RONDO_DEVICE_CUDA_POOL_H
#define RONDO_DEVICE_CUDA_POOL_H

#include <stddef.h>

struct rondo_pool;

/* Where a pool's memory comes from. obtain: zeroed, aligned to 256 bytes or better; NULL: none left. */
struct rondo_pool_source {
    void *(*obtain)(void *argument, size_t bytes);
    void (*give_back)(void *argument, void *memory);
    void (*clear)(void *argument, void *memory, size_t bytes);
    void *argument;
};

struct rondo_pool *rondo_pool_create(const struct rondo_pool_source *source);
void rondo_pool_destroy(struct rondo_pool *pool);
/* Zeroed; aligned to 64 bytes, from 4 KiB on to 256. NULL: none left. */
void *rondo_pool_take(struct rondo_pool *pool, size_t bytes);
/* bytes: as taken. */
void rondo_pool_return(struct rondo_pool *pool, void *memory, size_t bytes);

#endif
