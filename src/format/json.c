#include "format/json.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/file.h"

#include <string.h>

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

/* The length of a number that Python writes and JSON does not have, at `text`; 0: there is none. */
static size_t foreign_number(const char *text, size_t left) {
    static const char *const words[] = {"-Infinity", "Infinity", "NaN"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t length = strlen(words[i]);
        if (length <= left && memcmp(text, words[i], length) == 0) return length;
    }
    return 0;
}

/* The text with these numbers as Transformers writes them since version 5: {"__float__": "Infinity"}. */
static void respell_numbers(const char *text, size_t length, Buffer *out) {
    bool quoted = false;
    for (size_t i = 0; i < length; i++) {
        size_t word = quoted ? 0 : foreign_number(text + i, length - i);
        if (word) {
            buffer_format(out, "{\"__float__\": \"%.*s\"}", (int)word, text + i);
            i += word - 1;
            continue;
        }
        if (text[i] == '"') quoted = !quoted;
        bool escaped = quoted && text[i] == '\\' && i + 1 < length;
        buffer_append(out, text + i, escaped ? 2 : 1);
        i += escaped;
    }
}

static ferry_status parse_file(const char *path, const MappedFile *file, size_t flags, json_t **out,
                               ferry_error *error) {
    const char *text = file->bytes ? (const char *)file->bytes : "";
    Buffer respelled = {0};
    ferry_status status = parse(path, text, file->size, flags, out, error);
    if (status != FERRY_BAD_FORMAT) return status;
    respell_numbers(text, file->size, &respelled);
    if (respelled.failed)
        status = error_memory(error, path, file->size);
    else if (respelled.length != file->size)
        status = parse(path, respelled.bytes, respelled.length, flags, out, error);
    buffer_free(&respelled);
    return status;
}

static ferry_status read_object(const char *path, size_t flags, json_t **out, ferry_error *error) {
    Arena scratch = {0};
    MappedFile file;
    ferry_status status = file_map(path, &scratch, &file, error);
    *out = NULL;
    if (status == FERRY_OK) {
        status = parse_file(path, &file, flags, out, error);
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
