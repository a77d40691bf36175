/* Reading FlatBuffers: every access is checked against the buffer when it is made, so that there is nothing
 * to check beforehand, and no depth or count to limit. */
#include "format/flatbuffer.h"

enum { OFFSET_SIZE = 4 };

/* The little-endian number of `size` bytes at a place, which is aligned to it. */
static uint64_t number(FlatReader *reader, size_t place, size_t size) {
    uint64_t value = 0;
    if (reader->length < size || place > reader->length - size || place % size != 0) {
        reader->failed = true;
        return 0;
    }
    for (size_t i = 0; i < size; i++) value |= (uint64_t)reader->bytes[place + i] << 8 * i;
    return value;
}

/* The table at a place; absent when it is none. */
static FlatTable table_at(FlatReader *reader, size_t place) {
    FlatTable table = {.reader = reader, .place = place};
    int32_t back = (int32_t)(uint32_t)number(reader, place, OFFSET_SIZE);
    int64_t vtable = (int64_t)place - back;
    if (vtable < 0 || (uint64_t)vtable > reader->length) reader->failed = true;
    if (reader->failed) return (FlatTable){0};
    table.vtable = (size_t)vtable;
    table.vtable_size = (uint16_t)number(reader, table.vtable, 2);
    table.size = (uint16_t)number(reader, table.vtable + 2, 2);
    bool whole = table.vtable_size >= 4 && table.vtable_size <= reader->length - table.vtable &&
                 table.size >= OFFSET_SIZE && table.size <= reader->length - place;
    if (!whole) reader->failed = true;
    return reader->failed ? (FlatTable){0} : table;
}

FlatTable flat_root(FlatReader *reader, const char *identifier) {
    uint64_t place = number(reader, 0, OFFSET_SIZE);
    bool known = reader->length >= 2 * OFFSET_SIZE &&
                 memcmp(reader->bytes + OFFSET_SIZE, identifier, OFFSET_SIZE) == 0;
    if (!known) reader->failed = true;
    return reader->failed ? (FlatTable){0} : table_at(reader, (size_t)place);
}

/* Where a field of `size` bytes is; 0 when it is left out. */
static size_t field(const FlatTable *table, uint16_t slot, size_t size) {
    size_t entry = 4 + 2 * (size_t)slot;
    if (!table->reader || entry + 2 > table->vtable_size) return 0;
    uint64_t offset = number(table->reader, table->vtable + entry, 2);
    if (offset && offset + size > table->size) table->reader->failed = true;
    return offset && !table->reader->failed ? table->place + (size_t)offset : 0;
}

uint64_t flat_get(const FlatTable *table, uint16_t slot, size_t size, uint64_t otherwise) {
    size_t place = field(table, slot, size);
    return place ? number(table->reader, place, size) : otherwise;
}

float flat_get_float(const FlatTable *table, uint16_t slot) {
    uint32_t bits = (uint32_t)flat_get(table, slot, 4, 0);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

double flat_get_double(const FlatTable *table, uint16_t slot) {
    uint64_t bits = flat_get(table, slot, 8, 0);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* What a reference at a place refers to; 0 after a failure. */
static size_t follow(FlatReader *reader, size_t place) {
    uint64_t offset = number(reader, place, OFFSET_SIZE);
    if (offset > reader->length - place || offset == 0) reader->failed = true;
    return reader->failed ? 0 : place + (size_t)offset;
}

static size_t follow_field(const FlatTable *table, uint16_t slot) {
    size_t place = field(table, slot, OFFSET_SIZE);
    return place ? follow(table->reader, place) : 0;
}

FlatTable flat_get_table(const FlatTable *table, uint16_t slot) {
    size_t place = follow_field(table, slot);
    return place ? table_at(table->reader, place) : (FlatTable){0};
}

FlatVector flat_get_vector(const FlatTable *table, uint16_t slot, uint32_t item_size) {
    size_t place = follow_field(table, slot);
    if (!place) return (FlatVector){0};
    FlatReader *reader = table->reader;
    FlatVector vector = {reader, place + OFFSET_SIZE, 0, item_size};
    vector.count = (uint32_t)number(reader, place, OFFSET_SIZE);
    size_t room = reader->failed ? 0 : reader->length - vector.place;
    if (vector.count > room / item_size || vector.place % item_size != 0) reader->failed = true;
    return reader->failed ? (FlatVector){0} : vector;
}

const char *flat_get_string(const FlatTable *table, uint16_t slot) {
    FlatVector text = flat_get_vector(table, slot, 1);
    if (!text.reader) return NULL;
    size_t end = text.place + text.count;
    if (end >= text.reader->length || text.reader->bytes[end] != 0) {
        text.reader->failed = true;
        return NULL;
    }
    return (const char *)text.reader->bytes + text.place;
}

uint64_t flat_item(const FlatVector *vector, uint32_t index) {
    if (index >= vector->count) return 0;
    return number(vector->reader, vector->place + (size_t)index * vector->item_size,
                  vector->item_size);
}

FlatTable flat_item_table(const FlatVector *vector, uint32_t index) {
    if (index >= vector->count) return (FlatTable){0};
    size_t place = follow(vector->reader, vector->place + (size_t)index * OFFSET_SIZE);
    return place ? table_at(vector->reader, place) : (FlatTable){0};
}
