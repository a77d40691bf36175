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

/* Complete the buffer: the root's offset, a file identifier of four characters, then `gap` zero bytes (a
 * multiple of the alignment) for whatever the format inserts there. The buffer is `builder->length` bytes
 * from what is returned; NULL after a failure. */
unsigned char *flat_finish(FlatBuilder *builder, FlatRef root, const char *identifier, size_t gap);

/* ---- reading ---- */

/* Bytes to be read. What points outside of them, or is not what it should be, sets `malformed`, which
 * stays set, and reads as absent: the caller checks it when it has read what it needs. */
typedef struct FlatBuffer {
    const unsigned char *bytes;
    size_t length;
    bool malformed;
} FlatBuffer;

typedef struct FlatTable {
    FlatBuffer *buffer;
    size_t at; /* 0: absent, and so is everything in it */
    size_t vtable;
    uint32_t slots, size;
} FlatTable;

/* Items of `size` bytes each; 4 for references. */
typedef struct FlatVector {
    FlatBuffer *buffer;
    size_t at;
    size_t count, size;
} FlatVector;

/* The root, of a buffer with this identifier. */
FlatTable flat_root(FlatBuffer *buffer, const char *identifier);

/* A number of `size` bytes, without a sign; `otherwise` where it is absent. */
uint64_t flat_number(const FlatTable *table, uint32_t slot, size_t size, uint64_t otherwise);
double flat_double(const FlatTable *table, uint32_t slot);
float flat_float(const FlatTable *table, uint32_t slot);

/* A table, a string (NULL: absent) or a vector (empty where it is absent). */
FlatTable flat_child(const FlatTable *table, uint32_t slot);
const char *flat_text(const FlatTable *table, uint32_t slot);
FlatVector flat_list(const FlatTable *table, uint32_t slot, size_t size);

/* An item of a vector: a number, or what a reference leads to. Behind the end: 0, and absent. */
uint64_t flat_item(const FlatVector *vector, size_t index);
FlatTable flat_entry(const FlatVector *vector, size_t index);

#endif
