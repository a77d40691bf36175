#include "format/json.h"
#include "base/error.h"
#include "base/file.h"

static ferry_status parse(const char *path, const void *bytes, size_t length, size_t flags,
                          json_t **out, ferry_error *error) {
    json_error_t problem;
    *out = json_loadb(bytes, length, flags | JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &problem);
    if (*out) return FERRY_OK;
    if (json_error_code(&problem) == json_error_out_of_memory) return error_memory(error, path, 0);
    return error_set(error, FERRY_BAD_FORMAT, path, "not valid JSON: %s at line %d, column %d",
                     problem.text, problem.line, problem.column);
}

ferry_status json_parse(const char *path, const void *bytes, size_t length, json_t **out,
                        ferry_error *error) {
    return parse(path, bytes, length, 0, out, error);
}

static ferry_status read_object(const char *path, size_t flags, json_t **out, ferry_error *error) {
    Arena scratch = {0};
    MappedFile file;
    ferry_status status = file_map(path, &scratch, &file, error);
    *out = NULL;
    if (status == FERRY_OK) {
        status =
            parse(path, file.bytes ? file.bytes : (const void *)"", file.size, flags, out, error);
        file_unmap(&file);
    }
    if (status == FERRY_OK && !json_is_object(*out)) {
        status = error_set(error, FERRY_BAD_FORMAT, path, "expected a JSON object, found %s",
                           json_kind(*out));
        json_decref(*out);
        *out = NULL;
    }
    arena_free(&scratch);
    return status;
}

ferry_status json_read_object(const char *path, json_t **out, ferry_error *error) {
    return read_object(path, 0, out, error);
}

ferry_status json_read_texts(const char *path, json_t **out, ferry_error *error) {
    return read_object(path, JSON_DECODE_INT_AS_REAL, out, error);
}

const char *json_kind(const json_t *json) {
    if (!json) return "nothing";
    switch (json_typeof(json)) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "an array";
    case JSON_STRING: return "a string";
    case JSON_INTEGER: return "an integer";
    case JSON_REAL: return "a number with a fraction";
    case JSON_TRUE: return "true";
    case JSON_FALSE: return "false";
    case JSON_NULL: return "null";
    }
    return "nothing";
}
