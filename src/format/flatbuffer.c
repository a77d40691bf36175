#include "format/flatbuffer.h"

#include <stdlib.h>

enum { MAX_FIELDS = 32, OFFSET_SIZE = 4 };

void flat_free(FlatBuilder *builder) {
    free(builder->bytes);
    VEC_FREE(&builder->vtables);
    *builder = (FlatBuilder){0};
}

/* ---- growing towards the start ---- */

static unsigned char *start(const FlatBuilder *builder) {
    return builder->bytes + builder->capacity - builder->length;
}

/* Room for `size` more bytes, which are zero; NULL after a failure, or when there are none. */
static unsigned char *grow(FlatBuilder *builder, size_t size) {
    size_t needed = builder->length + size;
    if (builder->failed || needed < size || needed > INT32_MAX) {
        builder->failed = true;
        return NULL;
    }
    if (needed > builder->capacity) {
        size_t capacity = needed < 512 ? 1024 : 2 * needed;
        unsigned char *bytes = malloc(capacity);
        if (!bytes) {
            builder->failed = true;
            return NULL;
        }
        if (builder->length)
            memcpy(bytes + capacity - builder->length, start(builder), builder->length);
        free(builder->bytes);
        builder->bytes = bytes;
        builder->capacity = capacity;
    }
    builder->length = needed;
    if (size == 0) return NULL;
    return memset(start(builder), 0, size);
}

/* Pad so that what starts `size` bytes before here is aligned. */
static void align(FlatBuilder *builder, size_t size, size_t alignment) {
    if (alignment > builder->alignment) builder->alignment = alignment;
    grow(builder, (0 - (builder->length + size)) & (alignment - 1));
}

static void put(unsigned char *place, uint64_t value, size_t size) {
    for (size_t i = 0; i < size; i++) place[i] = (unsigned char)(value >> 8 * i);
}

/* ---- strings and vectors ---- */

/* `size` bytes and the number of items before them. */
static FlatRef vector(FlatBuilder *builder, const void *items, size_t size, size_t tail,
                      size_t item_size, size_t count) {
    align(builder, size + tail, item_size > OFFSET_SIZE ? item_size : OFFSET_SIZE);
    unsigned char *place = grow(builder, size + tail);
    if (place && size) memcpy(place, items, size);
    place = grow(builder, OFFSET_SIZE);
    if (!place) return 0;
    put(place, count, OFFSET_SIZE);
    return (FlatRef)builder->length;
}

FlatRef flat_string(FlatBuilder *builder, const char *text) {
    size_t length = strlen(text);
    return vector(builder, text, length, 1, 1, length);
}

FlatRef flat_vector(FlatBuilder *builder, const void *items, size_t size, size_t count) {
    if (count > INT32_MAX / size) {
        builder->failed = true;
        return 0;
    }
    return vector(builder, items, size * count, 0, size, count);
}

FlatRef flat_refs(FlatBuilder *builder, const FlatRef *items, size_t count) {
    FlatRef ref = flat_vector(builder, items, OFFSET_SIZE, count);
    if (!ref) return 0;
    unsigned char *place = start(builder) + OFFSET_SIZE;
    for (size_t i = 0; i < count; i++) {
        size_t distance = ref - OFFSET_SIZE * (i + 1); /* of the item from the end */
        put(place + OFFSET_SIZE * i, distance - items[i], OFFSET_SIZE);
    }
    return ref;
}

/* ---- tables ---- */

/* The vtable with these bytes, shared with earlier tables. */
static FlatRef share_vtable(FlatBuilder *builder, const unsigned char *vtable, size_t size) {
    for (size_t i = 0; i < builder->vtables.count; i++) {
        FlatRef known = builder->vtables.items[i];
        const unsigned char *place = builder->bytes + builder->capacity - known;
        if (known >= size && memcmp(place, vtable, size) == 0) return known;
    }
    align(builder, size, 2);
    unsigned char *place = grow(builder, size);
    if (!place) return 0;
    memcpy(place, vtable, size);
    VEC_PUSH(&builder->vtables, (FlatRef)builder->length);
    return (FlatRef)builder->length;
}

FlatRef flat_table(FlatBuilder *builder, const FlatField *fields, size_t count) {
    unsigned char vtable[4 + 2 * MAX_FIELDS] = {0};
    size_t size = OFFSET_SIZE, largest = OFFSET_SIZE, slots = 0, places[MAX_FIELDS] = {0};
    for (size_t width = 8; width; width /= 2) {
        for (size_t i = 0; i < count; i++) {
            size_t bytes = fields[i].size ? fields[i].size : OFFSET_SIZE;
            if (bytes != width || (!fields[i].size && !fields[i].value)) continue;
            places[i] = (size + bytes - 1) & ~(bytes - 1);
            size = places[i] + bytes;
            if (bytes > largest) largest = bytes;
            if (fields[i].slot >= slots) slots = fields[i].slot + 1u;
        }
    }
    align(builder, size, largest);
    unsigned char *table = grow(builder, size);
    FlatRef ref = (FlatRef)builder->length;
    if (!table) return 0;
    for (size_t i = 0; i < count; i++) {
        if (!places[i]) continue;
        put(vtable + 4 + 2 * fields[i].slot, places[i], 2);
        if (fields[i].size)
            put(table + places[i], fields[i].value, fields[i].size);
        else
            put(table + places[i], ref - places[i] - fields[i].value, OFFSET_SIZE);
    }
    put(vtable, 4 + 2 * slots, 2);
    put(vtable + 2, size, 2);
    FlatRef shared = share_vtable(builder, vtable, 4 + 2 * slots);
    if (!shared) return 0;
    put(builder->bytes + builder->capacity - ref, (uint64_t)shared - ref, OFFSET_SIZE);
    return ref;
}

unsigned char *flat_finish(FlatBuilder *builder, FlatRef root, const char *identifier, size_t gap) {
    size_t alignment = builder->alignment < OFFSET_SIZE ? OFFSET_SIZE : builder->alignment;
    align(builder, 2 * OFFSET_SIZE + gap, alignment);
    unsigned char *place = grow(builder, 2 * OFFSET_SIZE + gap);
    if (!place || builder->vtables.failed) return NULL;
    put(place, builder->length - root, OFFSET_SIZE);
    if (identifier) memcpy(place + OFFSET_SIZE, identifier, OFFSET_SIZE);
    return place;
}
