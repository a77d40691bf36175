#include "base/map.h"

#include <stdlib.h>
#include <string.h>

void map_free(Map *map) {
    free(map->entries);
    *map = (Map){0};
}

/* FNV-1a of the bytes. */
static uint64_t hash_of(const void *bytes, size_t length) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < length; i++) {
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3u;
    }
    return hash;
}

/* The entry that holds the key, or the empty one where it belongs. */
static MapEntry *map_slot(MapEntry *entries, size_t capacity, const void *key, size_t length,
                          uint64_t hash) {
    size_t i = hash & (capacity - 1);
    while (entries[i].value && !(entries[i].hash == hash && entries[i].length == length &&
                                 memcmp(entries[i].key, key, length) == 0)) {
        i = (i + 1) & (capacity - 1);
    }
    return &entries[i];
}

void *map_get(const Map *map, const void *key, size_t length) {
    if (!map->capacity) return NULL;
    return map_slot(map->entries, map->capacity, key, length, hash_of(key, length))->value;
}

static bool map_grow(Map *map) {
    size_t capacity = map->capacity ? map->capacity * 2 : 64;
    MapEntry *entries = calloc(capacity, sizeof *entries);
    if (!entries) return false;
    for (size_t i = 0; i < map->capacity; i++) {
        const MapEntry *old = &map->entries[i];
        if (old->value) *map_slot(entries, capacity, old->key, old->length, old->hash) = *old;
    }
    free(map->entries);
    map->entries = entries;
    map->capacity = capacity;
    return true;
}

void map_set(Map *map, const void *key, size_t length, void *value) {
    if (map->count * 4 >= map->capacity * 3 && !map_grow(map)) {
        map->failed = true;
        return;
    }
    uint64_t hash = hash_of(key, length);
    MapEntry *slot = map_slot(map->entries, map->capacity, key, length, hash);
    if (!slot->value) map->count++;
    *slot = (MapEntry){.key = key, .length = length, .hash = hash, .value = value};
}

void *map_find(const Map *map, const char *name) {
    return map_get(map, name, strlen(name));
}

void map_put(Map *map, const char *name, void *value) {
    map_set(map, name, strlen(name), value);
}
