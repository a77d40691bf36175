/* Looking at values. */
#include "format/gguf.h"

#include <string.h>

static const struct {
    const char *kind, *items;
    size_t size; /* 0: varies */
} types[GGUF_TYPE_COUNT] = {
    [GGUF_U8] = {"an integer", "an array of integers", 1},
    [GGUF_I8] = {"an integer", "an array of integers", 1},
    [GGUF_U16] = {"an integer", "an array of integers", 2},
    [GGUF_I16] = {"an integer", "an array of integers", 2},
    [GGUF_U32] = {"an integer", "an array of integers", 4},
    [GGUF_I32] = {"an integer", "an array of integers", 4},
    [GGUF_F32] = {"a number", "an array of numbers", 4},
    [GGUF_BOOL] = {"true or false", "an array of truth values", 1},
    [GGUF_STRING] = {"a string", "an array of strings", 0},
    [GGUF_ARRAY] = {"an array", "an array of arrays", 0},
    [GGUF_U64] = {"an integer", "an array of integers", 8},
    [GGUF_I64] = {"an integer", "an array of integers", 8},
    [GGUF_F64] = {"a number", "an array of numbers", 8},
};

size_t gguf_type_size(GgufType type) {
    return types[type].size;
}

uint64_t gguf_load(const unsigned char *bytes, size_t size) {
    uint64_t value = 0;
    while (size-- > 0) value = value << 8 | bytes[size];
    return value;
}

bool gguf_integer(const GgufValue *value, int64_t *out) {
    if (!value) return false;
    size_t size = types[value->type].size;
    switch (value->type) {
    case GGUF_U8:
    case GGUF_U16:
    case GGUF_U32:
    case GGUF_U64: *out = (int64_t)gguf_load(value->bytes, size); return *out >= 0;
    case GGUF_I8:
    case GGUF_I16:
    case GGUF_I32:
    case GGUF_I64: {
        int shift = 64 - 8 * (int)size;
        *out = (int64_t)(gguf_load(value->bytes, size) << shift) >> shift;
        return true;
    }
    default: return false;
    }
}

bool gguf_number(const GgufValue *value, double *out) {
    int64_t integer;
    float single;
    if (gguf_integer(value, &integer)) {
        *out = (double)integer;
        return true;
    }
    if (!value || (value->type != GGUF_F32 && value->type != GGUF_F64)) return false;
    if (value->type == GGUF_F64) {
        memcpy(out, value->bytes, sizeof *out);
        return true;
    }
    memcpy(&single, value->bytes, sizeof single);
    *out = (double)single;
    return true;
}

bool gguf_bool(const GgufValue *value, bool *out) {
    if (!value || value->type != GGUF_BOOL) return false;
    *out = value->bytes[0] != 0;
    return true;
}

const char *gguf_text(const GgufValue *value, Arena *arena) {
    if (!value || value->type != GGUF_STRING || memchr(value->bytes, 0, value->count)) return NULL;
    return arena_string_n(arena, (const char *)value->bytes, value->count);
}

bool gguf_next(GgufItems *items, GgufValue *out) {
    const GgufValue *array = items->array;
    if (!array || array->type != GGUF_ARRAY || items->index == array->count) return false;
    *out = (GgufValue){.key = array->key, .type = array->item, .count = 1};
    uint64_t size = types[array->item].size;
    if (array->item == GGUF_STRING) {
        size = out->count = gguf_load(array->bytes + items->position, 8);
        items->position += 8;
    }
    out->bytes = array->bytes + items->position;
    items->position += size;
    items->index++;
    return true;
}

const char *gguf_kind(const GgufValue *value) {
    if (!value) return "nothing";
    return value->type == GGUF_ARRAY ? types[value->item].items : types[value->type].kind;
}
