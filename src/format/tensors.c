/* The collection of named tensors of the public API, and its two file formats.
 *
 * Everything lives in one arena: a tensor never moves once it is added. Files are mapped, checked by
 * their reader, and copied into the collection. */
#include "base/arena.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/file.h"
#include "base/map.h"
#include "base/text.h"
#include "base/vec.h"
#include "format/npz.h"
#include "format/safetensors.h"
#include "format/tensors.h"

#include <stdlib.h>
#include <string.h>

struct ferry_tensors {
    Arena arena;
    VEC(ferry_tensor *) items;
    Map by_name;
    size_t keepers;            /* collections that keep this one, besides who made it */
    VEC(ferry_tensors *) kept; /* those that this one keeps */
};

/* ---- the collection ---- */

ferry_tensors *ferry_tensors_new(void) {
    return calloc(1, sizeof(ferry_tensors));
}

void ferry_tensors_free(ferry_tensors *tensors) {
    if (!tensors || tensors->keepers-- > 0) return;
    for (size_t i = 0; i < tensors->kept.count; i++) ferry_tensors_free(tensors->kept.items[i]);
    VEC_FREE(&tensors->kept);
    VEC_FREE(&tensors->items);
    map_free(&tensors->by_name);
    arena_free(&tensors->arena);
    free(tensors);
}

static ferry_status append(ferry_tensors *tensors, const char *name, const ferry_tensor *from,
                           ferry_tensor **out, ferry_error *error) {
    if (map_find(&tensors->by_name, name)) {
        return error_set(error, FERRY_INVALID_ARGUMENT, name, "there is a tensor of this name");
    }
    ferry_tensor *tensor = ARENA_NEW(&tensors->arena, ferry_tensor);
    const char *copy = arena_copy(&tensors->arena, name, strlen(name) + 1);
    if (!tensor || !copy) return error_memory(error, name, 0);
    *tensor = *from;
    tensor->name = copy;
    VEC_PUSH(&tensors->items, tensor);
    if (tensors->items.failed) return error_memory(error, name, 0);
    map_put(&tensors->by_name, copy, tensor);
    if (tensors->by_name.failed) return error_memory(error, name, 0);
    if (out) *out = tensor;
    return FERRY_OK;
}

ferry_status ferry_tensors_add(ferry_tensors *tensors, const char *name, ferry_dtype dtype,
                               size_t rank, const int64_t *shape, ferry_tensor **out,
                               ferry_error *error) {
    uint64_t bytes;
    if (rank > FERRY_MAX_RANK) {
        return error_set(error, FERRY_INVALID_ARGUMENT, name,
                         "expected at most %d dimensions, found %zu", FERRY_MAX_RANK, rank);
    }
    if (!dtype_bytes(dtype, rank, shape, &bytes)) {
        return error_set(error, FERRY_INVALID_ARGUMENT, name,
                         "expected a dtype and sizes of 0 or more whose product fits 63 bits");
    }
    ferry_tensor added = {.dtype = dtype, .rank = rank};
    added.data = arena_alloc(&tensors->arena, bytes);
    if (!added.data) return error_memory(error, name, bytes);
    if (rank) memcpy(added.shape, shape, rank * sizeof *shape);
    return append(tensors, name, &added, out, error);
}

ferry_status tensors_lend(ferry_tensors *tensors, const char *name, const ferry_tensor *tensor,
                          ferry_error *error) {
    return append(tensors, name, tensor, NULL, error);
}

ferry_status tensors_copy(ferry_tensors *tensors, const char *name, const ferry_tensor *tensor,
                          ferry_error *error) {
    ferry_tensor *copy;
    TRY(ferry_tensors_add(tensors, name, tensor->dtype, tensor->rank, tensor->shape, &copy, error));
    size_t bytes = ferry_tensor_bytes(tensor);
    if (bytes) memcpy(copy->data, tensor->data, bytes);
    return FERRY_OK;
}

ferry_status tensors_keep(ferry_tensors *tensors, ferry_tensors *kept, ferry_error *error) {
    VEC_PUSH(&tensors->kept, kept);
    if (tensors->kept.failed) return error_memory(error, "tensors", 0);
    kept->keepers++;
    return FERRY_OK;
}

size_t ferry_tensors_count(const ferry_tensors *tensors) {
    return tensors->items.count;
}

const ferry_tensor *ferry_tensors_at(const ferry_tensors *tensors, size_t index) {
    return index < tensors->items.count ? tensors->items.items[index] : NULL;
}

const ferry_tensor *ferry_tensors_find(const ferry_tensors *tensors, const char *name) {
    return map_find(&tensors->by_name, name);
}

size_t ferry_tensor_count(const ferry_tensor *tensor) {
    size_t count = 1;
    for (size_t d = 0; d < tensor->rank; d++) count *= (size_t)tensor->shape[d];
    return count;
}

size_t ferry_tensor_bytes(const ferry_tensor *tensor) {
    return ferry_tensor_count(tensor) * ferry_dtype_size(tensor->dtype);
}

/* ---- files ---- */

static ferry_status copy_safetensors(const MappedFile *file, ferry_tensors *tensors,
                                     ferry_error *error) {
    Arena scratch = {0};
    SafeTensors parsed;
    ferry_status status =
        safetensors_parse(file->path, file->bytes, file->size, &scratch, &parsed, error);
    for (size_t i = 0; status == FERRY_OK && i < parsed.count; i++) {
        const SafeTensor *source = &parsed.items[i];
        ferry_tensor *tensor;
        status = ferry_tensors_add(tensors, source->name, source->dtype, source->rank,
                                   source->shape, &tensor, error);
        if (status == FERRY_OK && source->size) {
            memcpy(tensor->data, file->bytes + source->offset, source->size);
        }
    }
    map_free(&parsed.by_name);
    arena_free(&scratch);
    return status;
}

static bool starts_with(const MappedFile *file, const char *magic, size_t length) {
    return file->size >= length && memcmp(file->bytes, magic, length) == 0;
}

static ferry_status copy_file(const MappedFile *file, ferry_tensors *tensors, ferry_error *error) {
    if (starts_with(file, "PK\3\4", 4) || starts_with(file, "PK\5\6", 4)) {
        return npz_read(file->path, file->bytes, file->size, tensors, error);
    }
    if (starts_with(file, "\x93NUMPY", 6)) {
        return error_set(error, FERRY_UNSUPPORTED, file->path,
                         "expected named tensors, found a single .npy array: save it with "
                         "numpy.savez(path, name=array)");
    }
    if (file->size > 8 && file->bytes[8] == '{') return copy_safetensors(file, tensors, error);
    return error_set(error, FERRY_BAD_FORMAT, file->path,
                     "expected a .safetensors or .npz file: a zip archive, or an 8-byte length "
                     "followed by a JSON object");
}

/* A bool read from a file may be any byte; one that is handed on is 0 or 1. */
static void normalize_bools(ferry_tensors *tensors) {
    for (size_t i = 0; i < tensors->items.count; i++) {
        const ferry_tensor *tensor = tensors->items.items[i];
        if (tensor->dtype != FERRY_BOOL) continue;
        unsigned char *bytes = tensor->data;
        for (size_t j = 0, count = ferry_tensor_count(tensor); j < count; j++) {
            bytes[j] = bytes[j] != 0;
        }
    }
}

ferry_status ferry_tensors_load(const char *path, ferry_tensors **out, ferry_error *error) {
    Arena scratch = {0};
    MappedFile file;
    *out = NULL;
    ferry_status status = file_map(path, &scratch, &file, error);
    if (status == FERRY_OK) {
        ferry_tensors *tensors = ferry_tensors_new();
        status = tensors ? copy_file(&file, tensors, error) : error_memory(error, path, 0);
        if (status == FERRY_OK) {
            normalize_bools(tensors);
            *out = tensors;
        } else {
            ferry_tensors_free(tensors);
        }
        file_unmap(&file);
    }
    arena_free(&scratch);
    return status;
}

static ferry_status save_safetensors(const ferry_tensors *tensors, const char *path,
                                     ferry_error *error) {
    size_t count = tensors->items.count;
    ferry_tensor *list = calloc(count + 1, sizeof *list);
    if (!list) return error_memory(error, path, count * sizeof *list);
    for (size_t i = 0; i < count; i++) list[i] = *tensors->items.items[i];
    ferry_status status = safetensors_write(path, list, count, error);
    free(list);
    return status;
}

ferry_status ferry_tensors_save(const ferry_tensors *tensors, const char *path,
                                ferry_error *error) {
    if (text_ends_with(path, ".safetensors")) return save_safetensors(tensors, path, error);
    if (text_ends_with(path, ".npz")) return npz_write(path, tensors, error);
    return error_set(error, FERRY_INVALID_ARGUMENT, path,
                     "expected a name that ends in .safetensors or .npz");
}
