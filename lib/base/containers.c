/* See lib/base/containers.h. The map uses open addressing and is never more than half full. */
#include "lib/base/containers.h"

#include <stdlib.h>

int rondo_grow(void **items, size_t count, size_t *room, size_t bytes)
{
    if (count < *room)
        return 1;
    size_t wanted = *room == 0 ? 16 : 2 * *room;
    void *grown = realloc(*items, wanted * bytes);
    if (grown == NULL)
        return 0;
    *items = grown;
    *room = wanted;
    return 1;
}

static size_t place_of(const struct rondo_map *map, uint64_t key)
{
    uint64_t hash = (key + 1) * 0x9e3779b97f4a7c15u;
    size_t at = (size_t) (hash ^ hash >> 29) & (map->room - 1);
    while (map->keys[at] != 0 && map->keys[at] != key + 1)
        at = (at + 1) & (map->room - 1);
    return at;
}

static int enlarge(struct rondo_map *map)
{
    struct rondo_map larger = {0};
    larger.room = map->room == 0 ? 64 : 2 * map->room;
    larger.keys = calloc(larger.room, sizeof(*larger.keys));
    larger.values = calloc(larger.room, sizeof(*larger.values));
    if (larger.keys == NULL || larger.values == NULL) {
        free(larger.keys);
        free(larger.values);
        return 0;
    }
    for (size_t i = 0; i < map->room; i++)
        if (map->keys[i] != 0) {
            size_t at = place_of(&larger, map->keys[i] - 1);
            larger.keys[at] = map->keys[i];
            larger.values[at] = map->values[i];
        }
    larger.used = map->used;
    rondo_map_release(map);
    *map = larger;
    return 1;
}

uint32_t *rondo_map_at(struct rondo_map *map, uint64_t key)
{
    if (2 * (map->used + 1) > map->room && !enlarge(map))
        return NULL;
    size_t at = place_of(map, key);
    if (map->keys[at] == 0) {
        map->keys[at] = key + 1;
        map->values[at] = RONDO_NONE;
        map->used++;
    }
    return &map->values[at];
}

void rondo_map_release(struct rondo_map *map)
{
    free(map->keys);
    free(map->values);
    *map = (struct rondo_map){0};
}
