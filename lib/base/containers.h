/*
 * An array that grows and a map from 64-bit keys to 32-bit values, for the compiler of programs and the readers of files.
 * Neither locks: an object belongs to one thread at a time.
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

#endif
