/* Running exports: which runtime takes which format, and inputs and outputs by the model's own names. */
#include "base/error.h"
#include "export/export.h"
#include "run/reference.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void ferry_run_config_init(ferry_run_config *config) {
    *config = (ferry_run_config){.size = sizeof *config};
}

/* ---- the runtimes ---- */

typedef struct Runner {
    const char *name;
    const char *format; /* of the exports that it takes; NULL: all that can be read */
    ferry_status (*open)(ferry_exported *exported, const ferry_run_config *config,
                         ferry_error *error);
    size_t (*input_count)(const ferry_exported *exported);
    const char *(*input_name)(const ferry_exported *exported, size_t index);
    ferry_status (*run)(ferry_exported *exported, const ferry_tensors *inputs,
                        ferry_tensors **outputs, ferry_error *error);
} Runner;

static ferry_status saved_path(ferry_exported *exported, const char **out, ferry_error *error) {
    if (!exported->directory) {
        return error_set(error, FERRY_INVALID_ARGUMENT, exported->manifest.format,
                         "save the export before running it in another runtime than the built-in "
                         "one");
    }
    *out = path_join(&exported->manifest.arena, exported->directory, exported->manifest.file);
    return FERRY_OK;
}

static ferry_status open_onnxruntime(ferry_exported *exported, const ferry_run_config *config,
                                     ferry_error *error) {
    const char *path;
    if (exported->session) return FERRY_OK;
    TRY(saved_path(exported, &path, error));
    if (!exported->runtime) TRY(onnxruntime_load(config->library, &exported->runtime, error));
    return onnxruntime_open(exported->runtime, path, config->threads, &exported->session, error);
}

static size_t count_onnxruntime(const ferry_exported *exported) {
    return onnxruntime_input_count(exported->session);
}

static const char *name_onnxruntime(const ferry_exported *exported, size_t index) {
    return onnxruntime_input_name(exported->session, index);
}

static ferry_status run_onnxruntime(ferry_exported *exported, const ferry_tensors *inputs,
                                    ferry_tensors **outputs, ferry_error *error) {
    return onnxruntime_run(exported->session, inputs, outputs, error);
}

static ferry_status open_openvino(ferry_exported *exported, const ferry_run_config *config,
                                  ferry_error *error) {
    const char *path, *dtype = exported->manifest.dtype;
    if (exported->openvino_session) return FERRY_OK;
    TRY(saved_path(exported, &path, error));
    if (!exported->openvino) TRY(openvino_load(config->library, &exported->openvino, error));
    bool exact = strcmp(dtype, "float32") == 0 || strcmp(dtype, "float64") == 0;
    OpenVinoOptions options = {
        .device = config->device, .exact = exact, .threads = config->threads};
    return openvino_open(exported->openvino, path, &options, &exported->openvino_session, error);
}

static size_t count_openvino(const ferry_exported *exported) {
    return openvino_input_count(exported->openvino_session);
}

static const char *name_openvino(const ferry_exported *exported, size_t index) {
    return openvino_input_name(exported->openvino_session, index);
}

static ferry_status run_openvino(ferry_exported *exported, const ferry_tensors *inputs,
                                 ferry_tensors **outputs, ferry_error *error) {
    return openvino_run(exported->openvino_session, inputs, outputs, error);
}

/* ExecuTorch does not survive a kernel that is called with arguments of other kinds: the program is read
 * first, and the runtime gets it when it is sound, or is more than ferry understands. */
static ferry_status check_executorch(ferry_exported *exported, ferry_error *error) {
    ferry_error problem = {0};
    ferry_status status = exported_program(exported, &problem);
    if (status == FERRY_OK || status == FERRY_UNSUPPORTED) return FERRY_OK;
    if (error) *error = problem;
    return status;
}

static int written_input(const Manifest *manifest, const ferry_port *output) {
    if (!output->writes) return EXECUTORCH_WRITES_NOTHING;
    for (size_t i = 0; i < manifest->input_count; i++) {
        if (strcmp(manifest->inputs[i].name, output->writes) == 0) return (int)i;
    }
    return EXECUTORCH_WRITES_STATE;
}

static ferry_status open_executorch(ferry_exported *exported, const ferry_run_config *config,
                                    ferry_error *error) {
    const char *path;
    Manifest *manifest = &exported->manifest;
    size_t inputs = manifest->input_count, outputs = manifest->output_count;
    if (exported->executorch_session) return FERRY_OK;
    TRY(saved_path(exported, &path, error));
    if (!exported->executorch) TRY(executorch_load(config->library, &exported->executorch, error));
    TRY(check_executorch(exported, error));
    const char **names = ARENA_ARRAY(&manifest->arena, const char *, inputs + outputs);
    if (!names) return error_memory(error, path, 0);
    for (size_t i = 0; i < inputs; i++) names[i] = manifest->inputs[i].name;
    for (size_t i = 0; i < outputs; i++) names[inputs + i] = manifest->outputs[i].name;
    int *writes = ARENA_ARRAY(&manifest->arena, int, outputs);
    if (!writes) return error_memory(error, path, 0);
    for (size_t i = 0; i < outputs; i++) writes[i] = written_input(manifest, &manifest->outputs[i]);
    const ExecuTorchNames all = {names, names + inputs, writes, inputs, outputs};
    return executorch_open(exported->executorch, path, &all, config->threads,
                           &exported->executorch_session, error);
}

static size_t count_executorch(const ferry_exported *exported) {
    return exported->manifest.input_count;
}

static const char *name_executorch(const ferry_exported *exported, size_t index) {
    return exported->manifest.inputs[index].name;
}

static ferry_status run_executorch(ferry_exported *exported, const ferry_tensors *inputs,
                                   ferry_tensors **outputs, ferry_error *error) {
    return executorch_run(exported->executorch_session, inputs, outputs, error);
}

static ferry_status open_reference(ferry_exported *exported, const ferry_run_config *config,
                                   ferry_error *error) {
    TRY(exported_program(exported, error));
    if (!exported->pool) exported->pool = pool_new(config->threads);
    return FERRY_OK;
}

static size_t count_reference(const ferry_exported *exported) {
    return exported->program->inputs.count;
}

static const char *name_reference(const ferry_exported *exported, size_t index) {
    return exported->program->inputs.items[index].name;
}

static ferry_status run_reference(ferry_exported *exported, const ferry_tensors *inputs,
                                  ferry_tensors **outputs, ferry_error *error) {
    return reference_run(exported->program, inputs, exported->pool, outputs, error);
}

static const Runner runners[] = {
    {"onnxruntime", "onnx", open_onnxruntime, count_onnxruntime, name_onnxruntime, run_onnxruntime},
    {"openvino", "openvino", open_openvino, count_openvino, name_openvino, run_openvino},
    {"executorch", "executorch", open_executorch, count_executorch, name_executorch,
     run_executorch},
    {"reference", NULL, open_reference, count_reference, name_reference, run_reference},
};

enum { RUNNER_COUNT = sizeof runners / sizeof *runners };

static bool takes(const Runner *runner, const char *format) {
    return !runner->format || strcmp(runner->format, format) == 0;
}

bool runtime_takes(const char *runtime, const char *format) {
    for (size_t i = 0; i < RUNNER_COUNT; i++) {
        if (strcmp(runners[i].name, runtime) == 0) return takes(&runners[i], format);
    }
    return false;
}

/* ---- names ---- */

/* "input.cache.layers.0.keys" is the keyword "cache.layers.0.keys" where that is an output too. */
static const char *keyword(const char *name, const char *prefix) {
    size_t length = strlen(prefix);
    return strncmp(name, prefix, length) == 0 ? name + length : name;
}

static ferry_status add_copy(ferry_tensors *tensors, const char *name, const ferry_tensor *from,
                             ferry_error *error) {
    ferry_tensor *copy;
    TRY(ferry_tensors_add(tensors, name, from->dtype, from->rank, from->shape, &copy, error));
    memcpy(copy->data, from->data, ferry_tensor_bytes(from));
    return FERRY_OK;
}

/* A run's inputs, by the names of the graph. */
typedef struct Selection {
    const ferry_run_config *config;
    const char **names; /* of the graph */
    size_t count;
    const ferry_tensors *given;
    ferry_tensors *made; /* NULL: those that are given serve as they are */
    ferry_error *error;
} Selection;

static const ferry_tensor *find_input(const Selection *selection, const char *name) {
    const ferry_tensor *given = ferry_tensors_find(selection->given, name);
    return given ? given : ferry_tensors_find(selection->given, keyword(name, "input."));
}

/* A stateful model of OpenVINO takes which earlier sequence each one goes on from; by default, its own. */
static ferry_status add_beams(Selection *selection, const char *name) {
    const ferry_tensor *first = NULL;
    for (size_t i = 0; i < selection->count && !first; i++) {
        first = find_input(selection, selection->names[i]);
        if (first && first->rank == 0) first = NULL;
    }
    if (!first) return FERRY_OK; /* what is missing is told later */
    ferry_tensor *beams;
    TRY(ferry_tensors_add(selection->made, name, FERRY_I32, 1, first->shape, &beams,
                          selection->error));
    for (int32_t i = 0; i < beams->shape[0]; i++) ((int32_t *)beams->data)[i] = i;
    return FERRY_OK;
}

static ferry_status make_inputs(Selection *selection) {
    selection->made = ferry_tensors_new();
    if (!selection->made) return error_memory(selection->error, "inputs", 0);
    for (size_t i = 0; i < selection->count; i++) {
        const char *name = selection->names[i];
        const ferry_tensor *given = find_input(selection, name);
        if (given)
            TRY(add_copy(selection->made, name, given, selection->error));
        else if (strcmp(name, "beam_idx") == 0)
            TRY(add_beams(selection, name));
        if (ferry_tensors_find(selection->made, name)) continue;
        return error_set(selection->error, FERRY_INVALID_ARGUMENT, name,
                         "the input \"%s\" is missing", keyword(name, "input."));
    }
    return FERRY_OK;
}

static bool is_known(const Selection *selection, const char *name) {
    for (size_t i = 0; i < selection->count; i++) {
        if (strcmp(selection->names[i], name) == 0) return true;
        if (strcmp(keyword(selection->names[i], "input."), name) == 0) return true;
    }
    return false;
}

static void note_dropped(const Selection *selection) {
    const ferry_run_config *config = selection->config;
    for (size_t i = 0; config->note && i < ferry_tensors_count(selection->given); i++) {
        const char *name = ferry_tensors_at(selection->given, i)->name;
        if (is_known(selection, name)) continue;
        char text[256];
        snprintf(text, sizeof text, "the program was not exported with the input \"%s\": dropped",
                 name);
        config->note(config->note_context, text);
    }
}

static ferry_status select_inputs(Selection *selection) {
    bool direct = true;
    for (size_t i = 0; i < selection->count; i++) {
        direct &= ferry_tensors_find(selection->given, selection->names[i]) != NULL;
    }
    if (!direct) TRY(make_inputs(selection));
    note_dropped(selection);
    return FERRY_OK;
}

/* The outputs under the names of the model's own. */
static ferry_status rename_outputs(ferry_tensors **outputs, ferry_error *error) {
    bool renames = false;
    for (size_t i = 0; i < ferry_tensors_count(*outputs); i++) {
        const char *name = ferry_tensors_at(*outputs, i)->name;
        renames |= keyword(name, "output.") != name;
    }
    if (!renames) return FERRY_OK;
    ferry_tensors *renamed = ferry_tensors_new();
    ferry_status status = renamed ? FERRY_OK : error_memory(error, "outputs", 0);
    for (size_t i = 0; status == FERRY_OK && i < ferry_tensors_count(*outputs); i++) {
        const ferry_tensor *output = ferry_tensors_at(*outputs, i);
        status = add_copy(renamed, keyword(output->name, "output."), output, error);
    }
    ferry_tensors_free(*outputs);
    *outputs = status == FERRY_OK ? renamed : NULL;
    if (status != FERRY_OK) ferry_tensors_free(renamed);
    return status;
}

/* ---- running ---- */

static ferry_status run_opened(const Runner *runner, ferry_exported *exported,
                               const ferry_run_config *config, const ferry_tensors *inputs,
                               ferry_tensors **outputs, ferry_error *error) {
    Selection selection = {.config = config, .given = inputs, .error = error};
    selection.count = runner->input_count(exported);
    selection.names = calloc(selection.count + 1, sizeof *selection.names);
    if (!selection.names) return error_memory(error, "inputs", 0);
    for (size_t i = 0; i < selection.count; i++) {
        selection.names[i] = runner->input_name(exported, i);
    }
    ferry_status status = select_inputs(&selection);
    if (status == FERRY_OK) {
        status = runner->run(exported, selection.made ? selection.made : inputs, outputs, error);
    }
    if (status == FERRY_OK) status = rename_outputs(outputs, error);
    ferry_tensors_free(selection.made);
    free(selection.names);
    return status;
}

/* The runtime that is made for the format where it is found, else the built-in one. */
static ferry_status open_default(ferry_exported *exported, const ferry_run_config *config,
                                 const Runner **out, ferry_error *error) {
    const char *format = exported->manifest.format;
    const Runner *reference = &runners[RUNNER_COUNT - 1];
    for (*out = runners; *out < reference && exported->directory; ++*out) {
        if (!takes(*out, format)) continue;
        ferry_error problem = {0};
        if ((*out)->open(exported, config, &problem) == FERRY_OK) return FERRY_OK;
        if (problem.status == FERRY_RUNTIME_MISSING) continue;
        if (error) *error = problem;
        return problem.status;
    }
    *out = reference;
    return reference->open(exported, config, error);
}

static ferry_status open_named(ferry_exported *exported, const ferry_run_config *config,
                               const Runner **out, ferry_error *error) {
    const char *format = exported->manifest.format;
    for (*out = runners; *out < runners + RUNNER_COUNT; ++*out) {
        if (strcmp((*out)->name, config->runtime) != 0) continue;
        if (takes(*out, format)) return (*out)->open(exported, config, error);
        return error_set(error, FERRY_UNSUPPORTED, config->runtime,
                         "%s does not run an export of the format \"%s\": export to %s, or use the "
                         "reference runtime",
                         config->runtime, format, (*out)->format);
    }
    return error_set(
        error, FERRY_INVALID_ARGUMENT, "runtime",
        "\"%s\" is not a runtime (expected onnxruntime, openvino, executorch or reference)",
        config->runtime);
}

ferry_status ferry_exported_run(ferry_exported *exported, const ferry_run_config *config,
                                const ferry_tensors *inputs, ferry_tensors **outputs,
                                ferry_error *error) {
    const Runner *runner;
    error_clear(error);
    *outputs = NULL;
    TRY(config->runtime ? open_named(exported, config, &runner, error)
                        : open_default(exported, config, &runner, error));
    return run_opened(runner, exported, config, inputs, outputs, error);
}

ferry_status ferry_exported_reset(ferry_exported *exported, ferry_error *error) {
    error_clear(error);
    if (exported->openvino_session) TRY(openvino_reset(exported->openvino_session, error));
    if (!exported->executorch_session) return FERRY_OK;
    return executorch_reset(exported->executorch_session, error);
}
