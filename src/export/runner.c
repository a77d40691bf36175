/* The runtimes: which one takes which format, and opening an export in it. */
#include "export/runner.h"
#include "base/error.h"
#include "run/reference.h"

#include <string.h>

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

static ferry_status carry_onnxruntime(ferry_exported *exported, const Carry *pairs, size_t count,
                                      ferry_error *error) {
    return onnxruntime_carry(exported->session, pairs, count, error);
}

static ferry_status carried_onnxruntime(ferry_exported *exported, ferry_tensors **out,
                                        ferry_error *error) {
    return onnxruntime_carried(exported->session, out, error);
}

static void forget_onnxruntime(ferry_exported *exported) {
    onnxruntime_forget(exported->session);
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

static ferry_status carry_executorch(ferry_exported *exported, const Carry *pairs, size_t count,
                                     ferry_error *error) {
    return executorch_carry(exported->executorch_session, pairs, count, error);
}

static ferry_status carried_executorch(ferry_exported *exported, ferry_tensors **out,
                                       ferry_error *error) {
    return executorch_carried(exported->executorch_session, out, error);
}

static void forget_executorch(ferry_exported *exported) {
    executorch_forget(exported->executorch_session);
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
    {.name = "onnxruntime",
     .format = "onnx",
     .open = open_onnxruntime,
     .input_count = count_onnxruntime,
     .input_name = name_onnxruntime,
     .run = run_onnxruntime,
     .carry = carry_onnxruntime,
     .carried = carried_onnxruntime,
     .forget = forget_onnxruntime},
    {.name = "openvino",
     .format = "openvino",
     .open = open_openvino,
     .input_count = count_openvino,
     .input_name = name_openvino,
     .run = run_openvino},
    {.name = "executorch",
     .format = "executorch",
     .open = open_executorch,
     .input_count = count_executorch,
     .input_name = name_executorch,
     .run = run_executorch,
     .carry = carry_executorch,
     .carried = carried_executorch,
     .forget = forget_executorch},
    {.name = "reference",
     .open = open_reference,
     .input_count = count_reference,
     .input_name = name_reference,
     .run = run_reference},
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

ferry_status runner_open(ferry_exported *exported, const ferry_run_config *config,
                         const Runner **out, ferry_error *error) {
    return config->runtime ? open_named(exported, config, out, error)
                           : open_default(exported, config, out, error);
}
