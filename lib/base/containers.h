/*
 * An array that grows, a map from 64-bit keys to 32-bit values, for the compiler of programs and the readers of files, and the
 * library's hash. Nothing locks: an object belongs to one thread at a time.
 */
#ifndef RONDO_LIB_BASE_CONTAINERS_H
#define RONDO_LIB_BASE_CONTAINERS_H

#include <stddef.h>
#include <stdint.h>

#define RONDO_NONE UINT32_MAX /* no index */

/*
 * Makes room for item number count of an array of items of `bytes` bytes each, of which *room are allocated (at first *items
 * NULL and *room 0). Doubles the room when it is used up, so *items may move. Returns 0 if memory is out, and the array is then
 * as before. The caller frees *items.
 */
int rondo_grow(void **items, size_t count, size_t *room, size_t bytes);

/* Zero-initialized, it is empty. Keys are less than UINT64_MAX. */
struct rondo_map {
    uint64_t *keys; /* + 1; 0: free */
    uint32_t *values;
    size_t used, room;
};

/*
 * Returns the place of the key's value, which is RONDO_NONE if the key is new: the caller then stores one. Returns NULL if
 * memory is out. The place is good until the next call.
 */
uint32_t *rondo_map_at(struct rondo_map *map, uint64_t key);
/* Frees the memory and makes the map empty. */
void rondo_map_release(struct rondo_map *map);

/* Adds to a hash, which begins as RONDO_HASH_BASIS: FNV-1a. It tells apart what differs by mistake, not what an adversary
 * chooses. */
#define RONDO_HASH_BASIS ((uint64_t) 14695981039346656037u)
#define RONDO_HASH_PRIME ((uint64_t) 1099511628211u)
static inline uint64_t rondo_hash(uint64_t hash, const void *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ ((const unsigned char *) data)[i]) * RONDO_HASH_PRIME;
    return hash;
}

/* The same with one step for eight bytes. */
static inline uint64_t rondo_hash_word(uint64_t hash, uint64_t word)
{
    return (hash ^ word) * RONDO_HASH_PRIME;
}

#endif
