/* Inputs made up from an export's signature, for checking it: plausible, varied and always the same. */
#include "base/error.h"
#include "export/export.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* A small deterministic generator (the multiplier of Numerical Recipes). */
static uint32_t next_random(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* The size behind one entry of a port's shape. */
static ferry_status sample_size(const Manifest *manifest, const ferry_port *port, size_t d,
                                int round, int64_t *out, ferry_error *error) {
    static const int64_t wanted[2][2] = {{2, 7}, {3, 11}};
    const char *text = port->shape[d];
    if (isdigit((unsigned char)*text)) {
        *out = strtoll(text, NULL, 10);
        return FERRY_OK;
    }
    json_t *components = json_object_get(manifest->json, "components");
    json_t *component = json_object_iter_value(json_object_iter(components));
    json_t *ferry = json_object_get(json_object_get(component, "metadata"), "ferry");
    json_t *range = json_object_get(json_object_get(ferry, "ranges"), text);
    if (!range) {
        return error_set(error, FERRY_UNSUPPORTED, port->name,
                         "cannot make up a size for the dimension \"%s\": give --inputs", text);
    }
    int64_t lower = json_integer_value(json_array_get(range, 0));
    json_t *upper = json_array_get(range, 1);
    *out = wanted[round][d > 0];
    if (*out < lower) *out = lower;
    if (json_is_integer(upper) && *out > json_integer_value(upper))
        *out = json_integer_value(upper);
    return FERRY_OK;
}

static void fill_integers(const char *name, ferry_tensor *tensor, int64_t vocabulary) {
    int64_t *values = tensor->data;
    size_t count = ferry_tensor_count(tensor);
    int64_t columns = tensor->rank ? tensor->shape[tensor->rank - 1] : 1;
    uint32_t state = 20;
    bool mask = strstr(name, "attention_mask") != NULL;
    bool position = strstr(name, "position_ids") != NULL,
         type = strstr(name, "token_type_ids") != NULL;
    for (size_t i = 0; i < count; i++) {
        int64_t row = (int64_t)i / columns, column = (int64_t)i % columns;
        if (mask)
            values[i] = !(row == 1 && column >= columns - 2 && columns > 2);
        else if (position)
            values[i] = column;
        else if (type)
            values[i] = 0;
        else
            values[i] = 3 + (int64_t)(next_random(&state) % (uint32_t)(vocabulary - 3));
    }
}

static ferry_status fill(const ferry_port *port, ferry_tensor *tensor, int64_t vocabulary,
                         ferry_error *error) {
    uint32_t state = 7;
    if (port->dtype == FERRY_I64) {
        fill_integers(port->name, tensor, vocabulary);
    } else if (port->dtype == FERRY_F32) {
        float *values = tensor->data;
        for (size_t i = 0; i < ferry_tensor_count(tensor); i++) {
            values[i] = (float)next_random(&state) / (float)(1 << 23) - 1;
        }
    } else if (port->dtype == FERRY_I32 && strcmp(port->name, "beam_idx") == 0) {
        int32_t *values = tensor->data; /* every row goes on from itself */
        for (size_t i = 0; i < ferry_tensor_count(tensor); i++) values[i] = (int32_t)i;
    } else {
        return error_set(error, FERRY_UNSUPPORTED, port->name,
                         "cannot make up an input of dtype %s: give --inputs",
                         ferry_dtype_name(port->dtype));
    }
    return FERRY_OK;
}

/* vocab_size of the export's config.json, or a number that every vocabulary has. */
static int64_t vocabulary_size(const char *directory, Arena *arena) {
    json_t *config;
    int64_t size = 0;
    if (json_read_object(path_join(arena, directory, "config.json"), &config, NULL) == FERRY_OK) {
        size = json_integer_value(json_object_get(config, "vocab_size"));
        json_decref(config);
    }
    return size > 3 && size < INT32_MAX ? size : 16;
}

ferry_status samples_make(const ferry_exported *exported, int round, ferry_tensors **out,
                          ferry_error *error) {
    const Manifest *manifest = &exported->manifest;
    Arena scratch = {0};
    int64_t vocabulary = vocabulary_size(exported->directory, &scratch);
    arena_free(&scratch);
    ferry_status status = FERRY_OK;
    *out = ferry_tensors_new();
    if (!*out) return error_memory(error, "inputs", 0);
    if (manifest->input_count == 0) {
        status = error_set(error, FERRY_UNSUPPORTED, exported->directory,
                           "the export does not describe its inputs: give --inputs");
    }
    for (size_t i = 0; i < manifest->input_count && status == FERRY_OK; i++) {
        const ferry_port *port = &manifest->inputs[i];
        int64_t shape[FERRY_MAX_RANK];
        ferry_tensor *tensor;
        for (size_t d = 0; d < port->rank && status == FERRY_OK; d++) {
            status = sample_size(manifest, port, d, round, &shape[d], error);
        }
        if (status == FERRY_OK) {
            status =
                ferry_tensors_add(*out, port->name, port->dtype, port->rank, shape, &tensor, error);
        }
        if (status == FERRY_OK) status = fill(port, tensor, vocabulary, error);
    }
    return status;
}
