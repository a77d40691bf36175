/* Reading the headers. */
#include "format/gguf.h"
#include "base/dtype.h"
#include "base/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { DEFAULT_ALIGNMENT = 32, MAX_ALIGNMENT = 1 << 20, MAX_NAME = 1 << 16 };

/* Types of tensors by their number in ggml, but for the blocks that can be decoded. A dtype of none: known
 * by its name alone. */
static const struct {
    uint32_t type;
    const char *name;
    ferry_dtype dtype;
} plain_types[] = {
    {0, "F32", FERRY_F32},  {1, "F16", FERRY_F16},    {24, "I8", FERRY_I8},
    {25, "I16", FERRY_I16}, {26, "I32", FERRY_I32},   {27, "I64", FERRY_I64},
    {28, "F64", FERRY_F64}, {30, "BF16", FERRY_BF16}, {9, "Q8_1", 0},
    {16, "IQ2_XXS", 0},     {17, "IQ2_XS", 0},        {18, "IQ3_XXS", 0},
    {19, "IQ1_S", 0},       {20, "IQ4_NL", 0},        {21, "IQ3_S", 0},
    {22, "IQ2_S", 0},       {23, "IQ4_XS", 0},        {29, "IQ1_M", 0},
    {34, "TQ1_0", 0},       {35, "TQ2_0", 0},         {39, "MXFP4", 0},
    {40, "NVFP4", 0},       {41, "Q1_0", 0},
};

/* ---- the cursor ---- */

typedef struct Reader {
    const char *path;
    const unsigned char *bytes;
    uint64_t size, position;
    Arena *arena;
    Gguf *out;
    ferry_error *error;
} Reader;

static ferry_status truncated(const Reader *r, const char *what) {
    return error_set(r->error, FERRY_BAD_FORMAT, r->path,
                     "%s at byte %" PRIu64 " does not fit the file of %" PRIu64
                     " bytes: the file is damaged or truncated; fetch it again",
                     what, r->position, r->size);
}

/* The next `size` bytes. */
static ferry_status take(Reader *r, uint64_t size, const char *what, const unsigned char **out) {
    if (size > r->size - r->position) return truncated(r, what);
    *out = r->bytes + r->position;
    r->position += size;
    return FERRY_OK;
}

static ferry_status take_integer(Reader *r, size_t size, const char *what, uint64_t *out) {
    const unsigned char *bytes;
    TRY(take(r, size, what, &bytes));
    *out = gguf_load(bytes, size);
    return FERRY_OK;
}

static ferry_status take_string(Reader *r, const char *what, const unsigned char **bytes,
                                uint64_t *length) {
    TRY(take_integer(r, 8, what, length));
    return take(r, *length, what, bytes);
}

/* A key or the name of a tensor. */
static ferry_status take_name(Reader *r, const char *what, const char **out) {
    const unsigned char *bytes;
    uint64_t length;
    TRY(take_string(r, what, &bytes, &length));
    if (length > MAX_NAME || memchr(bytes, 0, length)) {
        return error_set(r->error, FERRY_BAD_FORMAT, r->path,
                         "%s before byte %" PRIu64
                         " is no name: it is longer than %d bytes, or has "
                         "a NUL",
                         what, r->position, MAX_NAME);
    }
    *out = arena_string_n(r->arena, (const char *)bytes, length);
    return FERRY_OK;
}

/* ---- values ---- */

static ferry_status take_type(Reader *r, const char *key, GgufType *out) {
    uint64_t type;
    TRY(take_integer(r, 4, key, &type));
    if (type >= GGUF_TYPE_COUNT) {
        return error_set(r->error, FERRY_BAD_FORMAT, r->path,
                         "\"%s\": %" PRIu64 " is not a type of values", key, type);
    }
    *out = (GgufType)type;
    return FERRY_OK;
}

static ferry_status skip_items(Reader *r, const GgufValue *array) {
    const unsigned char *bytes;
    uint64_t size = gguf_type_size(array->item), total, length;
    if (size) {
        if (__builtin_mul_overflow(array->count, size, &total)) return truncated(r, array->key);
        return take(r, total, array->key, &bytes);
    }
    /* A string has at least its length: no count can make this loop longer than the file. */
    for (uint64_t i = 0; i < array->count; i++) TRY(take_string(r, array->key, &bytes, &length));
    return FERRY_OK;
}

static ferry_status read_value(Reader *r, GgufValue *value) {
    TRY(take_name(r, "a key", &value->key));
    TRY(take_type(r, value->key, &value->type));
    value->count = 1;
    if (value->type == GGUF_STRING) return take_string(r, value->key, &value->bytes, &value->count);
    if (value->type != GGUF_ARRAY)
        return take(r, gguf_type_size(value->type), value->key, &value->bytes);
    TRY(take_type(r, value->key, &value->item));
    TRY(take_integer(r, 8, value->key, &value->count));
    if (value->item == GGUF_ARRAY) {
        return error_set(r->error, FERRY_UNSUPPORTED, r->path,
                         "\"%s\" is an array of arrays, which is not supported", value->key);
    }
    value->bytes = r->bytes + r->position;
    return skip_items(r, value);
}

/* A table for `count` records of at least `least` bytes each: a count that the file has no room for is an
 * error before anything is allocated. */
static ferry_status make_table(Reader *r, uint64_t count, uint64_t least, const char *what,
                               size_t size, void **out) {
    if (count > (r->size - r->position) / least) {
        return error_set(r->error, FERRY_BAD_FORMAT, r->path,
                         "the header claims %" PRIu64 " %s, the file has %" PRIu64 " bytes", count,
                         what, r->size);
    }
    *out = arena_array(r->arena, count, size);
    return *out ? FERRY_OK : error_memory(r->error, r->path, count * size);
}

static ferry_status read_values(Reader *r, uint64_t count) {
    void *table;
    TRY(make_table(r, count, 13, "values", sizeof(GgufValue), &table));
    r->out->values = table;
    for (uint64_t i = 0; i < count; i++) {
        GgufValue *value = &r->out->values[i];
        TRY(read_value(r, value));
        if (map_find(&r->out->values_by_key, value->key)) {
            return error_set(r->error, FERRY_BAD_FORMAT, r->path, "the key \"%s\" appears twice",
                             value->key);
        }
        map_put(&r->out->values_by_key, value->key, value);
        r->out->value_count++;
    }
    return FERRY_OK;
}

/* ---- tensors ---- */

static ferry_status set_type(Reader *r, uint64_t type, GgufTensor *tensor) {
    const char *name = NULL;
    tensor->blocks = type <= UINT32_MAX ? block_format((uint32_t)type) : NULL;
    if (tensor->blocks) {
        tensor->type = tensor->blocks->name;
        tensor->dtype = FERRY_F32;
        return FERRY_OK;
    }
    for (size_t i = 0; i < sizeof plain_types / sizeof *plain_types; i++) {
        if (plain_types[i].type != type) continue;
        name = tensor->type = plain_types[i].name;
        tensor->dtype = plain_types[i].dtype;
    }
    if (tensor->dtype) return FERRY_OK;
    return error_set(r->error, FERRY_UNSUPPORTED, r->path,
                     "tensor \"%s\": the type %s (%" PRIu64
                     ") is not supported (expected F32, F16, "
                     "BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K or Q8_K): "
                     "fetch the model in one of these",
                     tensor->name, name ? name : "unknown", type);
}

/* The bytes of a tensor from its type and shape. */
static ferry_status set_size(Reader *r, GgufTensor *tensor) {
    const BlockFormat *blocks = tensor->blocks;
    if (!dtype_bytes(tensor->dtype, tensor->rank, tensor->shape, &tensor->size)) {
        return error_set(r->error, FERRY_BAD_FORMAT, r->path,
                         "tensor \"%s\": the number of bytes does not fit 63 bits", tensor->name);
    }
    if (!blocks) return FERRY_OK;
    int64_t row = tensor->rank ? tensor->shape[tensor->rank - 1] : 1;
    if (row % blocks->elements != 0) {
        return error_set(r->error, FERRY_BAD_FORMAT, r->path,
                         "tensor \"%s\": expected rows of whole blocks of %u elements of type %s, "
                         "found rows of %" PRId64,
                         tensor->name, blocks->elements, tensor->type, row);
    }
    tensor->size = tensor->size / sizeof(float) / blocks->elements * blocks->bytes;
    return FERRY_OK;
}

static ferry_status read_tensor(Reader *r, GgufTensor *tensor) {
    uint64_t rank, type;
    TRY(take_name(r, "the name of a tensor", &tensor->name));
    TRY(take_integer(r, 4, tensor->name, &rank));
    if (rank > FERRY_MAX_RANK) {
        return error_set(r->error, FERRY_BAD_FORMAT, r->path,
                         "tensor \"%s\": expected at most %d dimensions, found %" PRIu64,
                         tensor->name, FERRY_MAX_RANK, rank);
    }
    tensor->rank = (uint32_t)rank;
    for (uint32_t d = tensor->rank; d-- > 0;) {
        uint64_t size;
        TRY(take_integer(r, 8, tensor->name, &size));
        if (size > INT64_MAX) {
            return error_set(r->error, FERRY_BAD_FORMAT, r->path,
                             "tensor \"%s\": the size %" PRIu64 " does not fit 63 bits",
                             tensor->name, size);
        }
        tensor->shape[d] = (int64_t)size;
    }
    TRY(take_integer(r, 4, tensor->name, &type));
    TRY(take_integer(r, 8, tensor->name, &tensor->offset));
    TRY(set_type(r, type, tensor));
    return set_size(r, tensor);
}

static ferry_status read_tensors(Reader *r, uint64_t count) {
    void *table;
    TRY(make_table(r, count, 24, "tensors", sizeof(GgufTensor), &table));
    r->out->tensors = table;
    for (uint64_t i = 0; i < count; i++) {
        GgufTensor *tensor = &r->out->tensors[i];
        TRY(read_tensor(r, tensor));
        if (map_find(&r->out->tensors_by_name, tensor->name)) {
            return error_set(r->error, FERRY_BAD_FORMAT, r->path, "the tensor \"%s\" appears twice",
                             tensor->name);
        }
        map_put(&r->out->tensors_by_name, tensor->name, tensor);
        r->out->tensor_count++;
    }
    return FERRY_OK;
}

/* Turn the offsets in the data into places in the file. */
static ferry_status place_tensors(Reader *r) {
    int64_t alignment = DEFAULT_ALIGNMENT;
    const GgufValue *value = gguf_value(r->out, "general.alignment");
    if (value && (!gguf_integer(value, &alignment) || alignment < 1 || alignment > MAX_ALIGNMENT ||
                  (alignment & (alignment - 1)) != 0)) {
        return error_set(r->error, FERRY_BAD_FORMAT, r->path,
                         "\"general.alignment\": expected a power of two up to %d", MAX_ALIGNMENT);
    }
    uint64_t mask = (uint64_t)alignment - 1, start = (r->position + mask) & ~mask;
    for (size_t i = 0; i < r->out->tensor_count; i++) {
        GgufTensor *tensor = &r->out->tensors[i];
        if (tensor->offset & mask) {
            return error_set(r->error, FERRY_BAD_FORMAT, r->path,
                             "tensor \"%s\": its offset %" PRIu64
                             " is no multiple of the alignment %" PRId64,
                             tensor->name, tensor->offset, alignment);
        }
        if (start > r->size || tensor->offset > r->size - start ||
            tensor->size > r->size - start - tensor->offset) {
            return error_set(r->error, FERRY_BAD_FORMAT, r->path,
                             "tensor \"%s\": its %" PRIu64 " bytes at %" PRIu64
                             " of the data do not fit the file of %" PRIu64
                             " bytes: the file is truncated; fetch it again",
                             tensor->name, tensor->size, tensor->offset, r->size);
        }
        tensor->offset += start;
    }
    return FERRY_OK;
}

/* ---- the file ---- */

bool gguf_probe(const char *path) {
    unsigned char start[4];
    FILE *file = fopen(path, "rb");
    if (!file) return false;
    bool found = fread(start, 1, 4, file) == 4 && memcmp(start, "GGUF", 4) == 0;
    fclose(file);
    return found;
}

static ferry_status read_all(Reader *r) {
    const unsigned char *magic;
    uint64_t version, tensors, values;
    TRY(take(r, 4, "the first word", &magic));
    if (memcmp(magic, "GGUF", 4) != 0)
        return error_set(r->error, FERRY_BAD_FORMAT, r->path, "expected a GGUF file");
    TRY(take_integer(r, 4, "the version", &version));
    if (version != 2 && version != 3) {
        return error_set(r->error, FERRY_UNSUPPORTED, r->path,
                         "version %" PRIu64 " of GGUF is not supported (expected 2 or 3)%s",
                         version, version & 0xffff ? "" : ": the file is big-endian");
    }
    TRY(take_integer(r, 8, "the number of tensors", &tensors));
    TRY(take_integer(r, 8, "the number of values", &values));
    TRY(read_values(r, values));
    TRY(read_tensors(r, tensors));
    TRY(place_tensors(r));
    bool failed =
        r->out->values_by_key.failed || r->out->tensors_by_name.failed || r->arena->failed;
    return failed ? error_memory(r->error, r->path, 0) : FERRY_OK;
}

ferry_status gguf_parse(const char *path, const unsigned char *bytes, uint64_t size, Arena *arena,
                        Gguf *out, ferry_error *error) {
    *out = (Gguf){.path = arena_string(arena, path)};
    Reader reader = {
        .path = path, .bytes = bytes, .size = size, .arena = arena, .out = out, .error = error};
    ferry_status status = read_all(&reader);
    if (status != FERRY_OK) gguf_free(out);
    return status;
}

void gguf_free(Gguf *gguf) {
    map_free(&gguf->values_by_key);
    map_free(&gguf->tensors_by_name);
}

const GgufValue *gguf_value(const Gguf *gguf, const char *key) {
    return map_find(&gguf->values_by_key, key);
}

const GgufTensor *gguf_tensor(const Gguf *gguf, const char *name) {
    return map_find(&gguf->tensors_by_name, name);
}
