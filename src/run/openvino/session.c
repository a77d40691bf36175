/* Opening a model: compiled for a device, with the names and types of what goes in and comes out. */
#include "base/error.h"
#include "base/file.h"
#include "run/openvino/ov.h"
#include "source/openvino/openvino_read.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const OvElementType element_types[FERRY_DTYPE_COUNT] = {
    [FERRY_BOOL] = 1, [FERRY_BF16] = 2, [FERRY_F16] = 3,      [FERRY_F32] = 4,
    [FERRY_F64] = 5,  [FERRY_I8] = 7,   [FERRY_I16] = 8,      [FERRY_I32] = 9,
    [FERRY_I64] = 10, [FERRY_U8] = 16,  [FERRY_F8_E4M3] = 21, [FERRY_F8_E5M2] = 22,
};

OvElementType ov_element_type(ferry_dtype dtype) {
    return element_types[dtype];
}

ferry_dtype ov_dtype(OvElementType type) {
    for (int d = 1; d < FERRY_DTYPE_COUNT; d++) {
        if (element_types[d] == type) return (ferry_dtype)d;
    }
    return FERRY_DTYPE_NONE;
}

/* ---- the device ---- */

/* "GPU" is there when the list has "GPU" or "GPU.0"; of a name with a colon, such as "HETERO:GPU,CPU",
 * the runtime knows more. */
static bool has_device(const char *devices, const char *name) {
    size_t length = strlen(name);
    if (strchr(name, ':') || strcmp(name, "AUTO") == 0) return true;
    for (const char *next = devices; *next; next += strspn(next, ", ")) {
        size_t size = strcspn(next, ",");
        bool matches = size >= length && memcmp(next, name, length) == 0;
        if (matches && (size == length || next[length] == '.')) return true;
        next += size;
    }
    return false;
}

static ferry_status choose_device(OpenVinoSession *session, const char *wanted, const char **out,
                                  ferry_error *error) {
    const OpenVino *runtime = session->runtime;
    char *name = arena_copy(&session->arena, wanted, strlen(wanted) + 1);
    if (!name) return error_memory(error, session->path, 0);
    for (char *next = name; *next; next++) *next = (char)toupper((unsigned char)*next);
    *out = name;
    if (has_device(runtime->devices, name)) return FERRY_OK;
    return error_set(error, FERRY_INVALID_ARGUMENT, name,
                     "there is no such device: OpenVINO %s finds %s here, and AUTO chooses among "
                     "them (a GPU or NPU needs its driver)",
                     runtime->version, *runtime->devices ? runtime->devices : "none");
}

/* ---- compiling ---- */

enum { MAX_PROPERTIES = 3 };

/* Keys and values, one after the other. */
typedef struct Properties {
    const char *words[2 * MAX_PROPERTIES];
    size_t count; /* of words */
} Properties;

static void add_property(Properties *properties, const char *key, const char *value) {
    properties->words[properties->count++] = key;
    properties->words[properties->count++] = value;
}

/* AUTO hands on what concerns the CPU, whichever device it chooses. */
static Properties make_properties(Arena *arena, const char *device,
                                  const OpenVinoOptions *options) {
    Properties properties = {0};
    bool is_cpu = strcmp(device, "CPU") == 0, is_auto = strcmp(device, "AUTO") == 0;
    if (is_cpu) add_property(&properties, "PERFORMANCE_HINT", "LATENCY");
    if (options->exact) add_property(&properties, "INFERENCE_PRECISION_HINT", "f32");
    if (options->threads && is_cpu) {
        add_property(&properties, "INFERENCE_NUM_THREADS",
                     arena_format(arena, "%u", options->threads));
    }
    if (options->threads && is_auto) {
        add_property(&properties, "DEVICE_PROPERTIES",
                     arena_format(arena, "{CPU:{INFERENCE_NUM_THREADS:%u}}", options->threads));
    }
    return properties;
}

static ferry_status compile(OpenVinoSession *session, const OpenVinoOptions *options,
                            ferry_error *error) {
    const OpenVino *runtime = session->runtime;
    const char *device;
    OvModel *model = NULL;
    TRY(choose_device(session, options->device ? options->device : "AUTO", &device, error));
    Properties properties = make_properties(&session->arena, device, options);
    const char **words = properties.words;
    if (session->arena.failed) return error_memory(error, session->path, 0);
    TRY(ov_check(runtime, runtime->api.core_read_model(runtime->core, session->path, NULL, &model),
                 session->path, "OpenVINO cannot read the model", error));
    OvStatus status = runtime->api.core_compile_model(
        runtime->core, model, device, properties.count, &session->compiled, words[0], words[1],
        words[2], words[3], words[4], words[5]);
    ferry_status result = ov_check(runtime, status, session->path,
                                   "OpenVINO cannot compile the model for the device", error);
    runtime->api.model_free(model);
    return result;
}

/* ---- inputs and outputs ---- */

/* The type of input `index`, which must be one that ferry has. */
static ferry_status read_type(OpenVinoSession *session, size_t index, ferry_error *error) {
    const OvApi *api = &session->runtime->api;
    const char *name = session->inputs[index], *what = "cannot read the type of the input";
    OvPort *port = NULL;
    OvElementType type = 0;
    TRY(ov_check(session->runtime,
                 api->compiled_model_input_by_index(session->compiled, index, &port), name, what,
                 error));
    ferry_status status =
        ov_check(session->runtime, api->port_get_element_type(port, &type), name, what, error);
    api->output_const_port_free(port);
    if (status != FERRY_OK) return status;
    session->input_dtypes[index] = ov_dtype(type);
    if (session->input_dtypes[index] != FERRY_DTYPE_NONE) return FERRY_OK;
    return error_set(error, FERRY_UNSUPPORTED, name,
                     "the input has OpenVINO's element type %d, which ferry does not have", type);
}

/* The names are the file's: the runtime only tells all names of a tensor, in no order. */
static ferry_status read_signature(OpenVinoSession *session, const OpenvinoNames *names,
                                   ferry_error *error) {
    const OpenVino *runtime = session->runtime;
    const OvApi *api = &runtime->api;
    const char *what = "cannot count the model's inputs and outputs";
    TRY(ov_check(runtime, api->compiled_model_inputs_size(session->compiled, &session->input_count),
                 session->path, what, error));
    TRY(ov_check(runtime,
                 api->compiled_model_outputs_size(session->compiled, &session->output_count),
                 session->path, what, error));
    if (session->input_count != names->input_count ||
        session->output_count != names->output_count) {
        return error_set(
            error, FERRY_RUNTIME_FAILED, session->path,
            "OpenVINO found %zu inputs and %zu outputs in a model that has %zu and %zu",
            session->input_count, session->output_count, names->input_count, names->output_count);
    }
    session->inputs = names->inputs;
    session->outputs = names->outputs;
    session->input_dtypes = ARENA_ARRAY(&session->arena, ferry_dtype, session->input_count);
    if (session->arena.failed) return error_memory(error, session->path, 0);
    for (size_t i = 0; i < session->input_count; i++) TRY(read_type(session, i, error));
    return FERRY_OK;
}

/* The state lives in the request: there is no other way to reset it in the C API. */
ferry_status openvino_reset(OpenVinoSession *session, ferry_error *error) {
    const OpenVino *runtime = session->runtime;
    if (session->request) runtime->api.infer_request_free(session->request);
    session->request = NULL;
    return ov_check(
        runtime,
        runtime->api.compiled_model_create_infer_request(session->compiled, &session->request),
        session->path, "OpenVINO cannot make a request", error);
}

ferry_status openvino_open(OpenVino *runtime, const char *path, const OpenVinoOptions *options,
                           OpenVinoSession **out, ferry_error *error) {
    *out = NULL;
    if (!path_exists(path)) {
        return error_set(error, FERRY_NOT_FOUND, path, "the model file does not exist");
    }
    OpenVinoSession *session = calloc(1, sizeof *session);
    if (!session) return error_memory(error, path, sizeof *session);
    session->runtime = runtime;
    session->path = arena_string(&session->arena, path);
    OpenvinoNames names;
    ferry_status status = openvino_validate(path, &session->arena, &names, error);
    if (status == FERRY_OK) status = compile(session, options, error);
    if (status == FERRY_OK) status = read_signature(session, &names, error);
    if (status == FERRY_OK) status = openvino_reset(session, error);
    if (status == FERRY_OK)
        *out = session;
    else
        openvino_close(session);
    return status;
}

void openvino_close(OpenVinoSession *session) {
    if (!session) return;
    if (session->request) session->runtime->api.infer_request_free(session->request);
    if (session->compiled) session->runtime->api.compiled_model_free(session->compiled);
    arena_free(&session->arena);
    free(session);
}

size_t openvino_input_count(const OpenVinoSession *session) {
    return session->input_count;
}

const char *openvino_input_name(const OpenVinoSession *session, size_t index) {
    return index < session->input_count ? session->inputs[index] : NULL;
}
