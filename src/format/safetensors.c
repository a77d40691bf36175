#include "format/safetensors.h"
#include "base/buffer.h"
#include "base/dtype.h"
#include "base/error.h"
#include "format/json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The reference implementation refuses headers above 100 MB; real ones of 126 MB exist. */
#define MAX_HEADER (256u << 20)

/* ---- reading ---- */

static ferry_status read_shape(const char *path, const char *name, json_t *shape,
                               SafeTensor *tensor, ferry_error *error) {
    if (!json_is_array(shape)) {
        return error_set(error, FERRY_BAD_FORMAT, path,
                         "tensor \"%s\": expected \"shape\" to be an array, found %s", name,
                         json_kind(shape));
    }
    if (json_array_size(shape) > FERRY_MAX_RANK) {
        return error_set(error, FERRY_UNSUPPORTED, path,
                         "tensor \"%s\": expected at most %d dimensions, found %zu", name,
                         FERRY_MAX_RANK, json_array_size(shape));
    }
    tensor->rank = (uint32_t)json_array_size(shape);
    for (uint32_t d = 0; d < tensor->rank; d++) {
        json_t *size = json_array_get(shape, d);
        if (!json_is_integer(size) || json_integer_value(size) < 0) {
            return error_set(error, FERRY_BAD_FORMAT, path,
                             "tensor \"%s\": expected sizes to be non-negative integers", name);
        }
        tensor->shape[d] = json_integer_value(size);
    }
    if (!dtype_bytes(tensor->dtype, tensor->rank, tensor->shape, &tensor->size)) {
        return error_set(error, FERRY_BAD_FORMAT, path,
                         "tensor \"%s\": the number of bytes does not fit 63 bits", name);
    }
    return FERRY_OK;
}

static ferry_status read_tensor(const char *path, const char *name, json_t *entry,
                                uint64_t data_start, uint64_t data_size, SafeTensor *tensor,
                                ferry_error *error) {
    const char *dtype = json_string_value(json_object_get(entry, "dtype"));
    tensor->dtype = dtype ? dtype_from_safetensors(dtype) : FERRY_DTYPE_NONE;
    if (!dtype) {
        return error_set(error, FERRY_BAD_FORMAT, path,
                         "tensor \"%s\": expected an object with a \"dtype\" string", name);
    }
    if (tensor->dtype == FERRY_DTYPE_NONE) {
        return error_set(error, FERRY_UNSUPPORTED, path,
                         "tensor \"%s\": dtype \"%s\" is not supported (expected F64, F32, F16, "
                         "BF16, I64, I32, I16, I8, U8, BOOL, F8_E4M3 or F8_E5M2)",
                         name, dtype);
    }
    TRY(read_shape(path, name, json_object_get(entry, "shape"), tensor, error));
    json_t *offsets = json_object_get(entry, "data_offsets");
    json_t *begin = json_array_get(offsets, 0), *end = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !json_is_integer(begin) || !json_is_integer(end) ||
        json_integer_value(begin) < 0 || json_integer_value(end) < json_integer_value(begin)) {
        return error_set(error, FERRY_BAD_FORMAT, path,
                         "tensor \"%s\": expected \"data_offsets\" to be [begin, end] with "
                         "0 <= begin <= end",
                         name);
    }
    uint64_t first = (uint64_t)json_integer_value(begin), last = (uint64_t)json_integer_value(end);
    if (tensor->size != last - first) {
        return error_set(error, FERRY_BAD_FORMAT, path,
                         "tensor \"%s\": its shape and dtype need %" PRIu64
                         " bytes, data_offsets give %" PRIu64,
                         name, tensor->size, last - first);
    }
    if (last > data_size) {
        return error_set(error, FERRY_BAD_FORMAT, path,
                         "tensor \"%s\": its data ends at byte %" PRIu64 " but the file has only "
                         "%" PRIu64 " bytes of data: the file is truncated; fetch it again",
                         name, last, data_size);
    }
    tensor->offset = data_start + first;
    return FERRY_OK;
}

static int by_offset(const void *left, const void *right) {
    const SafeTensor *a = left, *b = right;
    if (a->offset != b->offset) return a->offset < b->offset ? -1 : 1;
    if (a->size != b->size) return a->size < b->size ? -1 : 1;
    return strcmp(a->name, b->name);
}

static ferry_status check_cover(const char *path, const SafeTensors *file, uint64_t data_start,
                                uint64_t file_size, ferry_error *error) {
    uint64_t position = data_start;
    for (size_t i = 0; i < file->count; i++) {
        const SafeTensor *tensor = &file->items[i];
        if (tensor->offset != position) {
            return error_set(error, FERRY_BAD_FORMAT, path,
                             "tensor \"%s\": its data starts at byte %" PRIu64 ", expected %" PRIu64
                             ": tensors %s",
                             tensor->name, tensor->offset - data_start, position - data_start,
                             tensor->offset < position ? "overlap" : "leave a gap");
        }
        position += tensor->size;
    }
    if (position != file_size) {
        return error_set(error, FERRY_BAD_FORMAT, path,
                         "the tensors end at byte %" PRIu64 ", the file at byte %" PRIu64, position,
                         file_size);
    }
    return FERRY_OK;
}

static ferry_status read_header(const char *path, json_t *header, uint64_t data_start,
                                uint64_t file_size, Arena *arena, SafeTensors *out,
                                ferry_error *error) {
    const char *name;
    json_t *entry;
    if (!json_is_object(header)) {
        return error_set(error, FERRY_BAD_FORMAT, path, "expected the header to be an object");
    }
    out->items = ARENA_ARRAY(arena, SafeTensor, json_object_size(header));
    if (!out->items) return error_memory(error, path, 0);
    json_object_foreach(header, name, entry) {
        if (strcmp(name, "__metadata__") == 0) continue;
        SafeTensor *tensor = &out->items[out->count];
        tensor->name = arena_string(arena, name);
        TRY(read_tensor(path, name, entry, data_start, file_size - data_start, tensor, error));
        out->count++;
    }
    if (out->count) qsort(out->items, out->count, sizeof *out->items, by_offset);
    TRY(check_cover(path, out, data_start, file_size, error));
    for (size_t i = 0; i < out->count; i++) {
        map_put(&out->by_name, out->items[i].name, &out->items[i]);
    }
    if (out->by_name.failed || arena->failed) return error_memory(error, path, 0);
    return FERRY_OK;
}

ferry_status safetensors_parse(const char *path, const unsigned char *bytes, uint64_t file_size,
                               Arena *arena, SafeTensors *out, ferry_error *error) {
    *out = (SafeTensors){0};
    uint64_t length = 0;
    if (file_size < 8) {
        return error_set(error, FERRY_BAD_FORMAT, path,
                         "expected a safetensors file, found %" PRIu64 " bytes", file_size);
    }
    for (int i = 7; i >= 0; i--) length = length << 8 | bytes[i];
    if (length > file_size - 8 || length > MAX_HEADER) {
        return error_set(error, FERRY_BAD_FORMAT, path,
                         "the header claims %" PRIu64 " bytes, the file has %" PRIu64
                         " (limit %u): not a safetensors file, or truncated",
                         length, file_size, MAX_HEADER);
    }
    json_t *header;
    TRY(json_parse(path, bytes + 8, length, &header, error));
    ferry_status status = read_header(path, header, 8 + length, file_size, arena, out, error);
    json_decref(header);
    if (status != FERRY_OK) map_free(&out->by_name);
    return status;
}

ferry_status safetensors_open(const char *path, Arena *arena, SafeTensors *out,
                              ferry_error *error) {
    MappedFile file;
    *out = (SafeTensors){0};
    TRY(file_map(path, arena, &file, error));
    ferry_status status = safetensors_parse(path, file.bytes, file.size, arena, out, error);
    if (status == FERRY_OK)
        out->file = file;
    else
        file_unmap(&file);
    return status;
}

void safetensors_close(SafeTensors *file) {
    map_free(&file->by_name);
    file_unmap(&file->file);
}

/* ---- writing ---- */

/* Names that a header cannot hold: no JSON text, taken by the format, or taken by another tensor. */
static ferry_status check_name(const char *path, json_t *header, const char *name,
                               ferry_error *error) {
    json_t *text = json_string(name);
    const char *problem = NULL;
    if (!text)
        problem = "is not valid UTF-8";
    else if (strcmp(name, "__metadata__") == 0)
        problem = "is reserved by the format";
    else if (json_object_get(header, name))
        problem = "appears twice";
    json_decref(text);
    if (!problem) return FERRY_OK;
    return error_set(error, FERRY_INVALID_ARGUMENT, path, "the tensor name \"%s\" %s", name,
                     problem);
}

static ferry_status add_entry(const char *path, json_t *header, const ferry_tensor *tensor,
                              uint64_t *position, ferry_error *error) {
    TRY(check_name(path, header, tensor->name, error));
    json_t *shape = json_array();
    for (size_t d = 0; d < tensor->rank; d++) {
        json_array_append_new(shape, json_integer(tensor->shape[d]));
    }
    uint64_t end = *position + ferry_tensor_bytes(tensor);
    json_t *entry =
        json_pack("{s:s, s:o, s:[I, I]}", "dtype", dtype_safetensors_name(tensor->dtype), "shape",
                  shape, "data_offsets", (json_int_t)*position, (json_int_t)end);
    *position = end;
    if (json_object_set_new(header, tensor->name, entry) == 0) return FERRY_OK;
    return error_memory(error, path, 0);
}

static ferry_status build_header(const char *path, const ferry_tensor *tensors, size_t count,
                                 char **text, ferry_error *error) {
    json_t *header = json_object();
    uint64_t position = 0;
    ferry_status status = header ? FERRY_OK : error_memory(error, path, 0);
    for (size_t i = 0; i < count && status == FERRY_OK; i++) {
        status = add_entry(path, header, &tensors[i], &position, error);
    }
    *text = status == FERRY_OK ? json_dumps(header, JSON_COMPACT) : NULL;
    json_decref(header);
    if (status == FERRY_OK && !*text) status = error_memory(error, path, 0);
    return status;
}

ferry_status safetensors_write(const char *path, const ferry_tensor *tensors, size_t count,
                               ferry_error *error) {
    char *text;
    TRY(build_header(path, tensors, count, &text, error));
    size_t length = strlen(text), padded = (length + 7) / 8 * 8;
    unsigned char prefix[8], spaces[8];
    for (int i = 0; i < 8; i++) prefix[i] = (unsigned char)(padded >> 8 * i);
    memset(spaces, ' ', sizeof spaces);

    OutputFile file;
    ferry_status status = output_open(&file, path, 0, error);
    if (status != FERRY_OK) {
        free(text);
        return status;
    }
    uint64_t position = 8 + padded;
    status = output_write(&file, 0, prefix, 8, error);
    if (status == FERRY_OK) status = output_write(&file, 8, text, length, error);
    if (status == FERRY_OK)
        status = output_write(&file, 8 + length, spaces, padded - length, error);
    for (size_t i = 0; i < count && status == FERRY_OK; i++) {
        size_t size = ferry_tensor_bytes(&tensors[i]);
        status = output_write(&file, position, tensors[i].data, size, error);
        position += size;
    }
    free(text);
    if (status == FERRY_OK) return output_commit(&file, error);
    output_discard(&file);
    return status;
}
