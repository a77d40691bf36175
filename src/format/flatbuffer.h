/* FlatBuffers: building a buffer, and reading one that nobody vouches for.
 *
 * A buffer is built from its end towards its start, children before parents, so that every offset in it
 * points forward. A table is a list of fields in slots; the position of each is in a vtable, which tables
 * of the same form share. Everything is little-endian and aligned to its own size. */
#ifndef FORMAT_FLATBUFFER_H
#define FORMAT_FLATBUFFER_H

#include "base/vec.h"
#include <stdint.h>
#include <string.h>

/* Something that is in the buffer: its distance from the end. 0: absent. */
typedef uint32_t FlatRef;

typedef struct FlatBuilder {
    unsigned char *bytes; /* the last `length` of `capacity` are in use */
    size_t length, capacity;
    size_t alignment; /* the largest so far */
    VEC(FlatRef) vtables;
    bool failed; /* no memory, or 2 GiB, which offsets cannot span */
} FlatBuilder;

/* A builder that is all zero is ready for use. */
void flat_free(FlatBuilder *builder);

FlatRef flat_string(FlatBuilder *builder, const char *text);

/* A vector of numbers of `size` bytes each. */
FlatRef flat_vector(FlatBuilder *builder, const void *items, size_t size, size_t count);

/* A vector of tables or strings. */
FlatRef flat_refs(FlatBuilder *builder, const FlatRef *items, size_t count);

/* A field of a table: `size` bytes of `value`, or a reference. */
typedef struct FlatField {
    uint16_t slot;
    uint8_t size; /* 0: a reference */
    uint64_t value;
} FlatField;

static inline uint64_t flat_float_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline uint64_t flat_double_bits(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

#define FLAT_8(id, number)      ((FlatField){(id), 1, (uint64_t)(number)})
#define FLAT_16(id, number)     ((FlatField){(id), 2, (uint64_t)(number)})
#define FLAT_32(id, number)     ((FlatField){(id), 4, (uint64_t)(number)})
#define FLAT_64(id, number)     ((FlatField){(id), 8, (uint64_t)(number)})
#define FLAT_FLOAT(id, number)  ((FlatField){(id), 4, flat_float_bits(number)})
#define FLAT_DOUBLE(id, number) ((FlatField){(id), 8, flat_double_bits(number)})
#define FLAT_REF(id, ref)       ((FlatField){(id), 0, (ref)})

/* A table; fields that are absent references are left out. */
FlatRef flat_table(FlatBuilder *builder, const FlatField *fields, size_t count);

#define FLAT_TABLE(builder, ...)                                                                   \
    flat_table(builder, (const FlatField[]){__VA_ARGS__},                                          \
               sizeof((const FlatField[]){__VA_ARGS__}) / sizeof(FlatField))

/* Complete the buffer: the root's offset, a file identifier of four characters (NULL: zeros), then `gap` zero bytes (a
 * multiple of the alignment) for whatever the format inserts there. The buffer is `builder->length` bytes
 * from what is returned; NULL after a failure. */
unsigned char *flat_finish(FlatBuilder *builder, FlatRef root, const char *identifier, size_t gap);

/* ---- reading ---- */

/* A buffer that is read. Whatever would lie outside of it, or is not aligned, sets `failed`; what is asked for
 * then is as if it were absent. */
typedef struct FlatReader {
    const unsigned char *bytes;
    size_t length;
    bool failed;
} FlatReader;

typedef struct FlatTable {
    FlatReader *reader; /* NULL: absent */
    size_t place, vtable;
    uint16_t size, vtable_size;
} FlatTable;

typedef struct FlatVector {
    FlatReader *reader; /* NULL: absent */
    size_t place;       /* of the first item */
    uint32_t count, item_size;
} FlatVector;

FlatTable flat_root(FlatReader *reader, const char *identifier);

/* A field of `size` bytes; `otherwise` when it is left out. */
uint64_t flat_get(const FlatTable *table, uint16_t slot, size_t size, uint64_t otherwise);
float flat_get_float(const FlatTable *table, uint16_t slot);
double flat_get_double(const FlatTable *table, uint16_t slot);
FlatTable flat_get_table(const FlatTable *table, uint16_t slot);
FlatVector flat_get_vector(const FlatTable *table, uint16_t slot, uint32_t item_size);
/* With a terminating zero, in the buffer; NULL when absent. */
const char *flat_get_string(const FlatTable *table, uint16_t slot);

/* Behind the end of the vector there is 0, and no table. */
uint64_t flat_item(const FlatVector *vector, uint32_t index);
FlatTable flat_item_table(const FlatVector *vector, uint32_t index);

#endif
