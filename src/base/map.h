/* A hash map from bytes (usually names) to pointers. Keys are not copied: they must outlive the map.
 * A failed allocation sets `failed`, which stays set. */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct MapEntry {
    const void *key;
    size_t length;
    uint64_t hash;
    void *value;
} MapEntry;

typedef struct Map {
    MapEntry *entries;
    size_t count;
    size_t capacity; /* a power of two, or 0 */
    bool failed;
} Map;

/* A map that is all zero is ready for use. */
void map_free(Map *map);

/* The value stored for the key, or NULL. */
void *map_get(const Map *map, const void *key, size_t length);

/* Store `value` (not NULL) for the key, replacing what was there. */
void map_set(Map *map, const void *key, size_t length, void *value);

void *map_find(const Map *map, const char *name);
void map_put(Map *map, const char *name, void *value);

#endif
