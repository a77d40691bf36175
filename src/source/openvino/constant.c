/* Constants of the IR: their type and shape, and where their bytes are in the weights. */
#include "base/error.h"
#include "source/openvino/net.h"

#include <inttypes.h>
#include <string.h>

/* Types as attributes spell them. */
static const struct {
    const char *name;
    uint32_t bits;
    ferry_dtype dtype;
} types[] = {
    {"f32", 32, FERRY_F32},          {"f16", 16, FERRY_F16},        {"bf16", 16, FERRY_BF16},
    {"f64", 64, FERRY_F64},          {"i64", 64, FERRY_I64},        {"i32", 32, FERRY_I32},
    {"i16", 16, FERRY_I16},          {"i8", 8, FERRY_I8},           {"u8", 8, FERRY_U8},
    {"boolean", 8, FERRY_BOOL},      {"f8e4m3", 8, FERRY_F8_E4M3},  {"f8e5m2", 8, FERRY_F8_E5M2},
    {"u64", 64, FERRY_DTYPE_NONE},   {"u32", 32, FERRY_DTYPE_NONE}, {"u16", 16, FERRY_DTYPE_NONE},
    {"f8e8m0", 8, FERRY_DTYPE_NONE}, {"u6", 6, FERRY_DTYPE_NONE},   {"i4", 4, FERRY_DTYPE_NONE},
    {"u4", 4, FERRY_DTYPE_NONE},     {"nf4", 4, FERRY_DTYPE_NONE},  {"f4e2m1", 4, FERRY_DTYPE_NONE},
    {"u3", 3, FERRY_DTYPE_NONE},     {"u2", 2, FERRY_DTYPE_NONE},   {"u1", 1, FERRY_DTYPE_NONE},
    {"string", 8, FERRY_DTYPE_NONE},
};

enum { TYPE_COUNT = sizeof types / sizeof *types };

ferry_dtype net_dtype(const char *type) {
    for (size_t i = 0; i < TYPE_COUNT; i++) {
        if (strcmp(types[i].name, type) == 0) return types[i].dtype;
    }
    return FERRY_DTYPE_NONE;
}

static ferry_status read_type(const Net *net, const NetLayer *layer, NetConstant *out) {
    out->type = xml_value(layer->data, "element_type");
    for (size_t i = 0; out->type && i < TYPE_COUNT; i++) {
        if (strcmp(types[i].name, out->type) != 0) continue;
        out->bits = types[i].bits;
        return FERRY_OK;
    }
    RETURN_BAD(net, layer, "expected an element_type such as \"f32\", found \"%s\"",
               out->type ? out->type : "");
}

static void skip_spaces(const char **text) {
    while (**text == ' ') ++*text;
}

/* "2, 8"; "" is that of a scalar. */
static ferry_status read_shape(const Net *net, const NetLayer *layer, NetConstant *out) {
    const char *text = xml_value(layer->data, "shape"), *next = text;
    uint64_t size;
    size_t commas = 0;
    if (!text) RETURN_BAD(net, layer, "the attribute \"shape\" is missing");
    for (const char *c = text; *c; c++) commas += *c == ',';
    out->shape = ARENA_ARRAY(net->arena, int64_t, commas + 1);
    if (!out->shape) return error_memory(net->error, net->path, 0);
    for (skip_spaces(&next); *next; skip_spaces(&next)) {
        bool valid = net_number(&next, &size);
        skip_spaces(&next);
        if (!valid || (*next && (*next != ',' || !next[1])))
            RETURN_BAD(net, layer, "expected a shape such as \"2, 8\", found \"%s\"", text);
        if (*next) next++;
        out->shape[out->rank++] = (int64_t)size;
    }
    return FERRY_OK;
}

/* Bytes that the elements need; false when that does not fit 63 bits. */
static bool needed_bytes(const NetConstant *constant, uint64_t *out) {
    uint64_t bits = constant->bits;
    for (uint32_t d = 0; d < constant->rank; d++) {
        if (constant->shape[d] == 0) return *out = 0, true;
    }
    for (uint32_t d = 0; d < constant->rank; d++) {
        if (__builtin_mul_overflow(bits, (uint64_t)constant->shape[d], &bits)) return false;
    }
    *out = bits / 8 + (bits % 8 != 0);
    return true;
}

static ferry_status read_place(const Net *net, const NetLayer *layer, const char *name,
                               uint64_t *out) {
    const char *text = xml_value(layer->data, name), *end = text;
    if (text && net_number(&end, out) && !*end) return FERRY_OK;
    RETURN_BAD(net, layer, "expected a number as \"%s\", found \"%s\"", name, text ? text : "");
}

ferry_status net_constant(const Net *net, const NetLayer *layer, NetConstant *out) {
    uint64_t needed, file = net->weights ? net->weights->size : 0;
    *out = (NetConstant){0};
    TRY(read_type(net, layer, out));
    TRY(read_shape(net, layer, out));
    TRY(read_place(net, layer, "offset", &out->offset));
    TRY(read_place(net, layer, "size", &out->size));
    if (layer->input_count || layer->output_count != 1)
        RETURN_BAD(net, layer, "expected no input and one output");
    if (!needed_bytes(out, &needed)) RETURN_BAD(net, layer, "the shape is absurdly large");
    if (strcmp(out->type, "string") != 0 && out->size < needed) {
        RETURN_BAD(net, layer, "expected a size of %" PRIu64 " bytes, found %" PRIu64, needed,
                   out->size);
    }
    if (out->size && !net->weights) {
        return net_fail(net, layer, FERRY_NOT_FOUND,
                        "the constant's bytes are in the file with the ending .bin beside the "
                        "model, which is not there");
    }
    if (out->offset > file || file - out->offset < out->size) {
        RETURN_BAD(net, layer,
                   "%" PRIu64 " bytes at offset %" PRIu64
                   " are not in the weights, which have %" PRIu64,
                   out->size, out->offset, file);
    }
    return FERRY_OK;
}
