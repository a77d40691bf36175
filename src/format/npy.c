#include "format/npy.h"
#include "base/dtype.h"
#include "base/error.h"

#include <inttypes.h>
#include <string.h>

static const struct {
    char descr[4];
    ferry_dtype dtype;
} descrs[] = {
    {"|b1", FERRY_BOOL}, {"|u1", FERRY_U8},  {"|i1", FERRY_I8},
    {"<i2", FERRY_I16},  {"<i4", FERRY_I32}, {"<i8", FERRY_I64},
    {"<f2", FERRY_F16},  {"<f4", FERRY_F32}, {"<f8", FERRY_F64},
};

enum { DESCR_COUNT = sizeof descrs / sizeof *descrs };

/* ---- reading ---- */

ferry_status npy_read_prefix(const char *path, const char *member, const unsigned char *bytes,
                             size_t size, size_t *offset, size_t *length, ferry_error *error) {
    if (size < NPY_PREFIX || memcmp(bytes, "\x93NUMPY", 6) != 0) {
        return error_set(error, FERRY_BAD_FORMAT, path,
                         "member \"%s\": expected a NumPy array (.npy)", member);
    }
    if (bytes[6] < 1 || bytes[6] > 3 || bytes[7] != 0) {
        return error_set(error, FERRY_UNSUPPORTED, path,
                         "member \"%s\": expected .npy version 1.0, 2.0 or 3.0, found %d.%d",
                         member, bytes[6], bytes[7]);
    }
    *offset = bytes[6] == 1 ? 10 : 12;
    *length = 0;
    for (size_t i = *offset; i-- > 8;) *length = *length << 8 | bytes[i];
    if (*length > NPY_MAX_HEADER) {
        return error_set(error, FERRY_BAD_FORMAT, path,
                         "member \"%s\": expected a header of at most %d bytes, it claims %zu",
                         member, NPY_MAX_HEADER, *length);
    }
    return FERRY_OK;
}

/* A reader of the few Python literals that a header is made of. */
typedef struct Reader {
    const char *path, *member;
    const char *next, *end;
    ferry_error *error;
} Reader;

static ferry_status reject(Reader *r, const char *problem) {
    return error_set(r->error, FERRY_BAD_FORMAT, r->path, "member \"%s\": damaged header: %s",
                     r->member, problem);
}

static char peek(Reader *r) {
    while (r->next < r->end && memchr(" \t\r\n", *r->next, 4)) r->next++;
    return r->next < r->end ? *r->next : 0;
}

static bool accept(Reader *r, char wanted) {
    if (wanted == 0 || peek(r) != wanted) return false;
    r->next++;
    return true;
}

static bool accept_word(Reader *r, const char *word) {
    size_t length = strlen(word);
    peek(r);
    if ((size_t)(r->end - r->next) < length || memcmp(r->next, word, length) != 0) return false;
    r->next += length;
    return true;
}

/* A quoted string without escapes. */
static ferry_status read_string(Reader *r, const char **text, size_t *length) {
    char quote = peek(r);
    if (quote != '\'' && quote != '"') return reject(r, "expected a string");
    *text = r->next + 1;
    const char *close = memchr(*text, quote, (size_t)(r->end - *text));
    if (!close) return reject(r, "a string has no end");
    *length = (size_t)(close - *text);
    r->next = close + 1;
    return FERRY_OK;
}

static ferry_status read_descr(Reader *r, NpyHeader *out) {
    const char *text;
    size_t length;
    if (peek(r) == '[') {
        return error_set(r->error, FERRY_UNSUPPORTED, r->path,
                         "member \"%s\": structured arrays are not supported", r->member);
    }
    TRY(read_string(r, &text, &length));
    for (size_t i = 0; i < DESCR_COUNT; i++) {
        if (length == 3 && memcmp(text, descrs[i].descr, 3) == 0) out->dtype = descrs[i].dtype;
    }
    if (out->dtype != FERRY_DTYPE_NONE) return FERRY_OK;
    int shown = length < 40 ? (int)length : 40;
    if (memchr(text, 'O', length)) {
        return error_set(r->error, FERRY_UNSUPPORTED, r->path,
                         "member \"%s\": dtype \"%.*s\" holds pickled Python objects, which are "
                         "never read: save an array of numbers",
                         r->member, shown, text);
    }
    return error_set(r->error, FERRY_UNSUPPORTED, r->path,
                     "member \"%s\": dtype \"%.*s\" is not supported (expected |b1, |u1, |i1, "
                     "<i2, <i4, <i8, <f2, <f4 or <f8)",
                     r->member, shown, text);
}

static ferry_status read_size(Reader *r, int64_t *out) {
    *out = 0;
    if (peek(r) < '0' || peek(r) > '9') return reject(r, "expected a size");
    while (r->next < r->end && *r->next >= '0' && *r->next <= '9') {
        if (__builtin_mul_overflow(*out, 10, out) ||
            __builtin_add_overflow(*out, *r->next++ - '0', out)) {
            return reject(r, "a size does not fit 64 bits");
        }
    }
    if (r->next < r->end && *r->next == 'L') r->next++; /* as Python 2 wrote it */
    return FERRY_OK;
}

static ferry_status read_shape(Reader *r, NpyHeader *out) {
    if (!accept(r, '(')) return reject(r, "expected the shape to be a tuple");
    while (!accept(r, ')')) {
        int64_t size;
        TRY(read_size(r, &size));
        if (out->rank == FERRY_MAX_RANK) {
            return error_set(r->error, FERRY_UNSUPPORTED, r->path,
                             "member \"%s\": expected at most %d dimensions", r->member,
                             FERRY_MAX_RANK);
        }
        out->shape[out->rank++] = size;
        if (!accept(r, ',') && peek(r) != ')') return reject(r, "expected ',' or ')'");
    }
    return FERRY_OK;
}

static ferry_status read_entry(Reader *r, NpyHeader *out, unsigned *seen) {
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    const char *text;
    size_t length;
    unsigned key = 0;
    TRY(read_string(r, &text, &length));
    while (key < 3 && (strlen(keys[key]) != length || memcmp(keys[key], text, length) != 0)) key++;
    if (key == 3) return reject(r, "a key other than descr, fortran_order and shape");
    if (*seen & 1u << key) return reject(r, "a key appears twice");
    *seen |= 1u << key;
    if (!accept(r, ':')) return reject(r, "expected ':'");
    if (key == 0) return read_descr(r, out);
    if (key == 2) return read_shape(r, out);
    out->fortran_order = accept_word(r, "True");
    if (out->fortran_order || accept_word(r, "False")) return FERRY_OK;
    return reject(r, "expected fortran_order to be True or False");
}

ferry_status npy_read_header(const char *path, const char *member, const char *text, size_t length,
                             NpyHeader *out, ferry_error *error) {
    Reader r = {.path = path, .member = member, .next = text, .end = text + length, .error = error};
    unsigned seen = 0;
    *out = (NpyHeader){0};
    if (!accept(&r, '{')) return reject(&r, "expected a dict");
    while (!accept(&r, '}')) {
        TRY(read_entry(&r, out, &seen));
        if (!accept(&r, ',') && peek(&r) != '}') return reject(&r, "expected ',' or '}'");
    }
    peek(&r);
    if (r.next != r.end) return reject(&r, "text after the dict");
    if (seen != 7) return reject(&r, "descr, fortran_order or shape is missing");
    if (!dtype_bytes(out->dtype, out->rank, out->shape, &out->bytes)) {
        return reject(&r, "the number of bytes does not fit 63 bits");
    }
    return FERRY_OK;
}

void npy_copy_fortran(const NpyHeader *header, const void *source, void *target) {
    size_t item = ferry_dtype_size(header->dtype);
    uint64_t strides[FERRY_MAX_RANK], index[FERRY_MAX_RANK] = {0}, stride = 1, from = 0;
    for (size_t d = 0; d < header->rank; d++) {
        strides[d] = stride;
        stride *= (uint64_t)header->shape[d];
    }
    for (uint64_t i = 0; i < header->bytes; i += item) {
        memcpy((unsigned char *)target + i, (const unsigned char *)source + from * item, item);
        for (size_t d = header->rank; d-- > 0;) {
            from += strides[d];
            if (++index[d] < (uint64_t)header->shape[d]) break;
            from -= strides[d] * index[d];
            index[d] = 0;
        }
    }
}

/* ---- writing ---- */

ferry_status npy_write_header(Buffer *buffer, const ferry_tensor *tensor, ferry_error *error) {
    Buffer dict = {0};
    const char *descr = NULL;
    for (size_t i = 0; i < DESCR_COUNT; i++) {
        if (descrs[i].dtype == tensor->dtype) descr = descrs[i].descr;
    }
    if (!descr) {
        return error_set(error, FERRY_UNSUPPORTED, tensor->name,
                         "NumPy has no %s: write a .safetensors file, or convert to float32",
                         ferry_dtype_name(tensor->dtype));
    }
    buffer_format(&dict, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (size_t d = 0; d < tensor->rank; d++) {
        buffer_format(&dict, "%s%" PRId64 "%s", d ? ", " : "", tensor->shape[d],
                      tensor->rank == 1 ? "," : "");
    }
    buffer_text(&dict, "), }");
    while (!dict.failed && (10 + dict.length + 1) % 64 != 0) buffer_text(&dict, " ");
    buffer_text(&dict, "\n");
    const unsigned char lengths[4] = {1, 0, dict.length & 0xff, dict.length >> 8};
    buffer_append(buffer, "\x93NUMPY", 6);
    buffer_append(buffer, lengths, sizeof lengths);
    buffer_text(buffer, buffer_string(&dict));
    bool failed = dict.failed || buffer->failed;
    buffer_free(&dict);
    return failed ? error_memory(error, tensor->name, 0) : FERRY_OK;
}
