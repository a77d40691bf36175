/* Reading FlatBuffers. An offset leads forward, but for that from a table to its vtable; both ends of
 * everything are checked before it is read. */
#include "format/flatbuffer.h"

/* ---- bytes ---- */

static bool inside(FlatBuffer *buffer, size_t at, size_t size) {
    bool valid = at <= buffer->length && size <= buffer->length - at;
    if (!valid) buffer->malformed = true;
    return valid;
}

/* 0 where it is not inside. */
static uint64_t number(FlatBuffer *buffer, size_t at, size_t size) {
    uint64_t value = 0;
    if (!inside(buffer, at, size)) return 0;
    for (size_t i = 0; i < size; i++) value |= (uint64_t)buffer->bytes[at + i] << 8 * i;
    return value;
}

/* What the reference at `at` leads to; 0: nowhere. */
static size_t follow(FlatBuffer *buffer, size_t at) {
    uint64_t offset = number(buffer, at, 4);
    if (offset == 0 || !inside(buffer, at, offset)) {
        buffer->malformed = true;
        return 0;
    }
    return at + offset;
}

/* ---- tables ---- */

static FlatTable table_at(FlatBuffer *buffer, size_t at) {
    FlatTable table = {.buffer = buffer};
    if (at == 0 || !inside(buffer, at, 4)) return table;
    int64_t vtable = (int64_t)at - (int32_t)number(buffer, at, 4);
    if (vtable < 0 || !inside(buffer, (size_t)vtable, 4)) {
        buffer->malformed = true;
        return table;
    }
    uint64_t bytes = number(buffer, (size_t)vtable, 2), size = number(buffer, (size_t)vtable + 2, 2);
    bool valid = bytes >= 4 && bytes % 2 == 0 && size >= 4;
    if (!valid || !inside(buffer, (size_t)vtable, bytes) || !inside(buffer, at, size)) {
        buffer->malformed = true;
        return table;
    }
    return (FlatTable){buffer, at, (size_t)vtable, (uint32_t)(bytes - 4) / 2, (uint32_t)size};
}

FlatTable flat_root(FlatBuffer *buffer, const char *identifier) {
    bool valid = inside(buffer, 0, 8) && memcmp(buffer->bytes + 4, identifier, 4) == 0;
    if (!valid) buffer->malformed = true;
    return table_at(buffer, valid ? follow(buffer, 0) : 0);
}

/* Where a field of `size` bytes is; 0: absent. */
static size_t field(const FlatTable *table, uint32_t slot, size_t size) {
    if (!table->at || slot >= table->slots) return 0;
    uint64_t offset = number(table->buffer, table->vtable + 4 + 2 * slot, 2);
    if (offset == 0) return 0;
    if (offset < 4 || size > table->size || offset > table->size - size) {
        table->buffer->malformed = true;
        return 0;
    }
    return table->at + offset;
}

uint64_t flat_number(const FlatTable *table, uint32_t slot, size_t size, uint64_t otherwise) {
    size_t at = field(table, slot, size);
    return at ? number(table->buffer, at, size) : otherwise;
}

double flat_double(const FlatTable *table, uint32_t slot) {
    uint64_t bits = flat_number(table, slot, 8, 0);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

float flat_float(const FlatTable *table, uint32_t slot) {
    uint32_t bits = (uint32_t)flat_number(table, slot, 4, 0);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

FlatTable flat_child(const FlatTable *table, uint32_t slot) {
    size_t at = field(table, slot, 4);
    return table_at(table->buffer, at ? follow(table->buffer, at) : 0);
}

/* ---- vectors ---- */

static FlatVector vector_at(FlatBuffer *buffer, size_t at, size_t size) {
    FlatVector vector = {.buffer = buffer, .size = size};
    if (at == 0) return vector;
    uint64_t count = number(buffer, at, 4);
    if (!inside(buffer, at, 4) || !inside(buffer, at + 4, count * size)) return vector;
    vector.at = at + 4;
    vector.count = count;
    return vector;
}

FlatVector flat_list(const FlatTable *table, uint32_t slot, size_t size) {
    size_t at = field(table, slot, 4);
    return vector_at(table->buffer, at ? follow(table->buffer, at) : 0, size);
}

const char *flat_text(const FlatTable *table, uint32_t slot) {
    FlatVector text = flat_list(table, slot, 1);
    if (!text.at) return NULL;
    const unsigned char *bytes = text.buffer->bytes + text.at;
    if (inside(text.buffer, text.at, text.count + 1) && !bytes[text.count] &&
        !memchr(bytes, 0, text.count))
        return (const char *)bytes;
    text.buffer->malformed = true;
    return NULL;
}

uint64_t flat_item(const FlatVector *vector, size_t index) {
    if (index >= vector->count) return 0;
    return number(vector->buffer, vector->at + index * vector->size, vector->size);
}

FlatTable flat_entry(const FlatVector *vector, size_t index) {
    bool there = index < vector->count;
    return table_at(vector->buffer,
                    there ? follow(vector->buffer, vector->at + index * vector->size) : 0);
}
