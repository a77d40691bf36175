/* Constant tensors: TensorProto becomes a recipe into the model, into a file of external data, or, for
 * the fields that hold one number each, into memory.
 *
 * A file of external data is named by a relative path that stays in the model's directory, by its
 * text and after every symbolic link is resolved. */
#define _GNU_SOURCE
#include "base/dtype.h"
#include "source/onnx/import.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct OnnxTensor {
    const char *name;
    ferry_dtype dtype;
    uint32_t rank;
    int64_t shape[FERRY_MAX_RANK];
    uint64_t bytes;
    int64_t data_type, data_location;
    const unsigned char *raw; /* NULL: absent */
    size_t raw_length;
    const char *location, *offset, *length; /* of external data; NULL: absent */
} OnnxTensor;

/* ---- fields ---- */

static void take_external_entry(Import *im, ProtoReader message, OnnxTensor *tensor) {
    const char *key = "", *value = "";
    ProtoField field;
    while (import_ok(im) && proto_next(&message, &field)) {
        if (field.number == ENTRY_KEY) key = import_text(im, &field);
        if (field.number == ENTRY_VALUE) value = import_text(im, &field);
    }
    if (strcmp(key, "location") == 0) tensor->location = value;
    if (strcmp(key, "offset") == 0) tensor->offset = value;
    if (strcmp(key, "length") == 0) tensor->length = value;
}

static void take_field(Import *im, const ProtoField *field, OnnxTensor *tensor) {
    switch (field->number) {
    case TENSOR_NAME: tensor->name = import_text(im, field); break;
    case TENSOR_DATA_TYPE: tensor->data_type = (int64_t)field->value; break;
    case TENSOR_DATA_LOCATION: tensor->data_location = (int64_t)field->value; break;
    case TENSOR_SEGMENT: import_unsupported(im, "a tensor is stored in segments"); break;
    case TENSOR_RAW_DATA:
        tensor->raw = field->wire == 2 ? field->bytes : NULL;
        tensor->raw_length = field->length;
        break;
    case TENSOR_EXTERNAL_DATA:
        take_external_entry(im, proto_reader(field->bytes, field->length), tensor);
        break;
    default: break;
    }
}

static bool take_type(Import *im, ProtoReader message, OnnxTensor *tensor) {
    uint64_t *dims;
    size_t rank;
    if (!import_numbers(im, message, TENSOR_DIMS, 0, &dims, &rank)) return false;
    tensor->dtype = onnx_dtype_of(tensor->data_type);
    if (!tensor->dtype) {
        return import_unsupported(im, "tensor \"%s\" has the ONNX element type %lld", tensor->name,
                                  (long long)tensor->data_type);
    }
    if (rank > FERRY_MAX_RANK) {
        return import_unsupported(im, "tensor \"%s\" has rank %zu; at most %d is supported",
                                  tensor->name, rank, FERRY_MAX_RANK);
    }
    tensor->rank = (uint32_t)rank;
    for (size_t d = 0; d < rank; d++) tensor->shape[d] = (int64_t)dims[d];
    if (dtype_bytes(tensor->dtype, rank, tensor->shape, &tensor->bytes)) return true;
    return import_bad(im, "tensor \"%s\": expected sizes of 0 or more whose product fits 63 bits",
                      tensor->name);
}

/* ---- external data ---- */

/* The real path of `location` in the model's directory. */
static bool resolve(Import *im, const OnnxTensor *tensor, char **real) {
    const char *model = im->model->path, *base = path_base(model);
    size_t length = (size_t)(base - model);
    const char *directory = length ? arena_string_n(&im->arena, model, length) : ".";
    char *root = realpath(directory, NULL);
    *real = root ? realpath(path_join(&im->arena, directory, tensor->location), NULL) : NULL;
    bool found = *real != NULL, inside = false;
    if (found) {
        size_t prefix = strcmp(root, "/") == 0 ? 0 : strlen(root);
        inside = strncmp(*real, root, prefix) == 0 && (*real)[prefix] == '/';
    }
    free(root);
    if (!found) {
        return import_fail(im, FERRY_NOT_FOUND, "tensor \"%s\": there is no file \"%s\" beside it",
                           tensor->name, tensor->location);
    }
    return inside ||
           import_bad(im, "tensor \"%s\": the file \"%s\" is outside the model's directory",
                      tensor->name, tensor->location);
}

static const MappedFile *external_file(Import *im, const OnnxTensor *tensor) {
    const MappedFile *file = map_find(&im->locations, tensor->location);
    if (file) return file;
    char *real = NULL;
    if (!path_is_contained(tensor->location)) {
        import_bad(im,
                   "tensor \"%s\": expected a location below the model's directory, found \"%s\"",
                   tensor->name, tensor->location);
    } else if (resolve(im, tensor, &real)) {
        im->b.status = files_map(im->files, real, &file, &im->problem);
        im->told = true;
        if (import_ok(im)) map_put(&im->locations, tensor->location, (void *)(uintptr_t)file);
    }
    free(real);
    return import_ok(im) ? file : NULL;
}

/* A number in decimal digits; `otherwise` when `text` is NULL. */
static bool decimal(const char *text, uint64_t otherwise, uint64_t *out) {
    *out = text ? 0 : otherwise;
    if (!text) return true;
    for (const char *digit = text; *digit; digit++) {
        if (*digit < '0' || *digit > '9') return false;
        if (__builtin_mul_overflow(*out, 10u, out)) return false;
        if (__builtin_add_overflow(*out, (uint64_t)(*digit - '0'), out)) return false;
    }
    return *text != 0;
}

static const Recipe *external_recipe(Import *im, const OnnxTensor *tensor) {
    uint64_t offset, length;
    if (!tensor->location) {
        import_bad(im, "tensor \"%s\" is external but has no location", tensor->name);
        return NULL;
    }
    if (!decimal(tensor->offset, 0, &offset) || !decimal(tensor->length, tensor->bytes, &length)) {
        import_bad(im, "tensor \"%s\": the offset or length is no number", tensor->name);
        return NULL;
    }
    if (length != tensor->bytes) {
        import_bad(im, "tensor \"%s\": expected a length of %" PRIu64 ", found %" PRIu64,
                   tensor->name, tensor->bytes, length);
        return NULL;
    }
    const MappedFile *file = external_file(im, tensor);
    if (!file) return NULL;
    if (offset > file->size || file->size - offset < length) {
        import_bad(im,
                   "tensor \"%s\": %" PRIu64 " bytes at offset %" PRIu64
                   " are not in \"%s\", which has %zu",
                   tensor->name, length, offset, tensor->location, file->size);
        return NULL;
    }
    return recipe_file(&im->b.program->arena, file, offset, tensor->dtype, tensor->rank,
                       tensor->shape);
}

/* ---- data in the model ---- */

/* Where numbers of a dtype are when they are not raw bytes. */
static void typed_field(ferry_dtype dtype, uint32_t *number, uint32_t *wire) {
    *number = dtype == FERRY_F32   ? TENSOR_FLOAT_DATA
              : dtype == FERRY_F64 ? TENSOR_DOUBLE_DATA
              : dtype == FERRY_I64 ? TENSOR_INT64_DATA
                                   : TENSOR_INT32_DATA;
    *wire = dtype == FERRY_F32 ? 5 : dtype == FERRY_F64 ? 1 : 0;
}

static const Recipe *typed_recipe(Import *im, ProtoReader message, const OnnxTensor *tensor) {
    uint32_t number, wire;
    uint64_t *values;
    size_t count, size = ferry_dtype_size(tensor->dtype);
    typed_field(tensor->dtype, &number, &wire);
    if (!import_numbers(im, message, number, wire, &values, &count)) return NULL;
    if (count != tensor->bytes / size) {
        import_bad(im, "tensor \"%s\": expected %" PRIu64 " numbers, found %zu", tensor->name,
                   tensor->bytes / size, count);
        return NULL;
    }
    unsigned char *bytes = arena_alloc(&im->b.program->arena, tensor->bytes);
    if (!bytes) return NULL;
    for (size_t i = 0; i < count; i++) {
        uint64_t value = tensor->dtype == FERRY_BOOL ? values[i] != 0 : values[i];
        memcpy(bytes + i * size, &value, size);
    }
    return recipe_bytes(&im->b.program->arena, bytes, tensor->dtype, tensor->rank, tensor->shape);
}

static const Recipe *raw_recipe(Import *im, const OnnxTensor *tensor) {
    if (tensor->raw_length != tensor->bytes) {
        import_bad(im, "tensor \"%s\": expected %" PRIu64 " bytes, found %zu", tensor->name,
                   tensor->bytes, tensor->raw_length);
        return NULL;
    }
    size_t offset = (size_t)(tensor->raw - im->model->bytes);
    return recipe_file(&im->b.program->arena, im->model, offset, tensor->dtype, tensor->rank,
                       tensor->shape);
}

static const Recipe *find_data(Import *im, ProtoReader message, const OnnxTensor *tensor) {
    if (tensor->bytes == 0) {
        return recipe_bytes(&im->b.program->arena, "", tensor->dtype, tensor->rank, tensor->shape);
    }
    if (tensor->data_location == LOCATION_EXTERNAL) return external_recipe(im, tensor);
    return tensor->raw ? raw_recipe(im, tensor) : typed_recipe(im, message, tensor);
}

const Recipe *import_bools(Import *im, const Recipe *recipe) {
    uint64_t count = recipe_count(recipe), i = 0;
    while (i < count && recipe->parts[0].base[i] <= 1) i++;
    if (i == count) return recipe;
    unsigned char *bytes = arena_copy(&im->b.program->arena, recipe->parts[0].base, count);
    if (!bytes) return NULL;
    for (; i < count; i++) bytes[i] = bytes[i] != 0;
    return recipe_bytes(&im->b.program->arena, bytes, FERRY_BOOL, recipe->rank, recipe->shape);
}

OnnxValue *import_parse_tensor(Import *im, ProtoReader message) {
    OnnxTensor tensor = {.name = ""};
    ProtoReader fields = message;
    ProtoField field;
    while (import_ok(im) && proto_next(&fields, &field)) take_field(im, &field, &tensor);
    if (!import_ok(im) || !take_type(im, message, &tensor)) return NULL;
    const Recipe *recipe = find_data(im, message, &tensor);
    if (recipe && tensor.dtype == FERRY_BOOL) recipe = import_bools(im, recipe);
    OnnxValue *value = ARENA_NEW(&im->arena, OnnxValue);
    if (!recipe || !value) return import_memory(im), NULL;
    *value =
        (OnnxValue){.name = tensor.name, .recipe = recipe, .known = known_of_recipe(im, recipe)};
    return value;
}
