/* The GGUF format of llama.cpp, versions 2 and 3, little-endian.
 *
 *   4 bytes   "GGUF"
 *   4 bytes   version
 *   8, 8      how many tensors, how many values
 *   values    key (string), type (4 bytes), value; a string is 8 bytes of length and its bytes, an
 *             array 4 bytes of type, 8 bytes of count, and the items
 *   tensors   name (string), 4 bytes of rank, 8 bytes per size (the fastest first), 4 bytes of type,
 *             8 bytes of offset in the data
 *   data      from the next multiple of the value "general.alignment" (32) on; so is every offset
 *
 * Nothing is copied but names: values and tensors point into the file, whose bytes must stay. Every
 * number is checked before it is used. */
#ifndef FORMAT_GGUF_H
#define FORMAT_GGUF_H

#include "base/arena.h"
#include "base/block.h"
#include "base/map.h"
#include <ferry/tensor.h>

typedef enum GgufType {
    GGUF_U8,
    GGUF_I8,
    GGUF_U16,
    GGUF_I16,
    GGUF_U32,
    GGUF_I32,
    GGUF_F32,
    GGUF_BOOL,
    GGUF_STRING,
    GGUF_ARRAY,
    GGUF_U64,
    GGUF_I64,
    GGUF_F64,
    GGUF_TYPE_COUNT
} GgufType;

/* A value, or an item of an array. */
typedef struct GgufValue {
    const char *key;            /* of a value */
    GgufType type;              /* never an array of arrays */
    GgufType item;              /* of an array */
    uint64_t count;             /* items of an array, bytes of a string; else 1 */
    const unsigned char *bytes; /* of the scalar, the string or the first item */
} GgufValue;

typedef struct GgufTensor {
    const char *name;
    const char *type;          /* "F32", "Q4_K" */
    ferry_dtype dtype;         /* of the elements: F32 for blocks */
    const BlockFormat *blocks; /* NULL: plain elements */
    uint32_t rank;
    int64_t shape[FERRY_MAX_RANK]; /* the slowest first, as torch has it */
    uint64_t offset;               /* from the start of the file */
    uint64_t size;                 /* in bytes */
} GgufTensor;

typedef struct Gguf {
    const char *path;
    GgufValue *values;
    size_t value_count;
    GgufTensor *tensors; /* in the order of the file */
    size_t tensor_count;
    Map values_by_key, tensors_by_name;
} Gguf;

/* True when the file is there and begins like one. */
bool gguf_probe(const char *path);

/* Read the headers of a file of `size` bytes. Names and tables live in the arena. UNSUPPORTED names a
 * type of tensors that cannot be decoded. */
ferry_status gguf_parse(const char *path, const unsigned char *bytes, uint64_t size, Arena *arena,
                        Gguf *out, ferry_error *error);
void gguf_free(Gguf *gguf);

/* NULL when there is none. */
const GgufValue *gguf_value(const Gguf *gguf, const char *key);
const GgufTensor *gguf_tensor(const Gguf *gguf, const char *name);

/* What values are; false, or NULL, for other types and NULL values. Integers of any width fit, but for
 * those above 63 bits; numbers are floats or integers. Strings that contain NUL have no text. */
bool gguf_integer(const GgufValue *value, int64_t *out);
bool gguf_number(const GgufValue *value, double *out);
bool gguf_bool(const GgufValue *value, bool *out);
const char *gguf_text(const GgufValue *value, Arena *arena);

/* A walk through the items of an array (of no items, when it is none): begin with {.array = value}. */
typedef struct GgufItems {
    const GgufValue *array;
    uint64_t index;
    uint64_t position; /* in bytes, from the first item */
} GgufItems;

/* The next item; false at the end. */
bool gguf_next(GgufItems *items, GgufValue *out);

/* The bytes of a value in the file; 0 where they vary. */
size_t gguf_type_size(GgufType type);

/* An unsigned integer of `size` bytes. */
uint64_t gguf_load(const unsigned char *bytes, size_t size);

/* "a string", "an array of strings", for messages. */
const char *gguf_kind(const GgufValue *value);

#endif
