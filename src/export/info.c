/* What this build can do and what it finds on the machine. */
#include "export/export.h"
#include "plugin/plugin.h"
#include "run/executorch.h"
#include "run/library.h"
#include "run/reference.h"
#include "target/executorch/executorch.h"
#include "target/openvino/openvino.h"

#include <stdio.h>
#include <string.h>

/* The plug-ins' registry, or the built-in one, made in `builtin`; NULL when memory is exhausted. */
static const Registry *find_registry(const ferry_plugins *plugins, Registry *builtin) {
    if (plugins) return plugin_registry(plugins);
    return plugin_builtin(builtin, NULL) == FERRY_OK ? builtin : NULL;
}

bool ferry_family_at(const ferry_plugins *plugins, size_t index, ferry_family *out) {
    Registry builtin = {0};
    const Registry *registry = find_registry(plugins, &builtin);
    const Extensions *families = registry ? &registry->lists[EXTENSION_FAMILY] : NULL;
    const Family *family = families && index < families->count ? families->items[index].item : NULL;
    registry_free(&builtin);
    size_t count = 0;
    if (!family) return false;
    *out = (ferry_family){.model_type = family->model_type, .class_prefix = family->class_prefix};
    for (int task = 0; task < TASK_COUNT; task++) {
        if (family->tasks >> task & 1) out->tasks[count++] = task_name((Task)task);
    }
    return true;
}

bool ferry_op_at(const ferry_plugins *plugins, size_t index, ferry_op *out) {
    Registry builtin = {0};
    const Registry *registry = index < OP_COUNT ? find_registry(plugins, &builtin) : NULL;
    if (!registry) return false;
    Op op = (Op)index;
    *out = (ferry_op){.name = op_name(op),
                      .schema = op_schema_text(op),
                      .reference = reference_supports(op),
                      .onnx = onnx_lowering(registry, op) != NULL,
                      .openvino = openvino_supports(op),
                      .executorch = executorch_supports(op),
                      .mlx = executorch_delegates_op(executorch_backend("mlx"), op),
                      .decomposes = registry_find(registry, EXTENSION_DECOMPOSITION, op_name(op))};
    registry_free(&builtin);
    return true;
}

/* ---- runtimes ---- */

static bool find_reference(const char *library, ferry_runtime *out, ferry_error *error) {
    (void)library, (void)error;
    snprintf(out->version, sizeof out->version, "%s", ferry_version());
    snprintf(out->path, sizeof out->path, "built in");
    return true;
}

static bool find_onnxruntime(const char *library, ferry_runtime *out, ferry_error *error) {
    OnnxRuntime *runtime;
    if (onnxruntime_load(library, &runtime, error) != FERRY_OK) return false;
    snprintf(out->version, sizeof out->version, "%s", onnxruntime_version(runtime));
    snprintf(out->path, sizeof out->path, "%s", onnxruntime_path(runtime));
    onnxruntime_unload(runtime);
    return true;
}

static bool find_openvino(const char *library, ferry_runtime *out, ferry_error *error) {
    OpenVino *runtime;
    if (openvino_load(library, &runtime, error) != FERRY_OK) return false;
    snprintf(out->version, sizeof out->version, "%s", openvino_version(runtime));
    snprintf(out->path, sizeof out->path, "%s", openvino_path(runtime));
    snprintf(out->devices, sizeof out->devices, "%s", openvino_devices(runtime));
    openvino_unload(runtime);
    return true;
}

static bool find_executorch(const char *library, ferry_runtime *out, ferry_error *error) {
    ExecuTorch *runtime;
    if (executorch_load(library, &runtime, error) != FERRY_OK) return false;
    snprintf(out->version, sizeof out->version, "%s", executorch_version(runtime));
    snprintf(out->path, sizeof out->path, "%s", executorch_path(runtime));
    snprintf(out->devices, sizeof out->devices, "%s", executorch_backends(runtime));
    executorch_unload(runtime);
    return true;
}

/* With the versions that the tests pin. */
static const struct {
    const char *name, *tested;
    const LibraryKind *kind; /* NULL: built in */
    bool (*find)(const char *library, ferry_runtime *out, ferry_error *error);
} runtimes[] = {
    {"reference", NULL, NULL, find_reference},
    {"onnxruntime", "1.32.0", &ort_library, find_onnxruntime},
    {"openvino", "2026.4.1", &ov_library, find_openvino},
    {"executorch", "1.5.1", &et_library, find_executorch},
};

enum { RUNTIME_COUNT = sizeof runtimes / sizeof *runtimes };

/* A library that is named is that of one runtime; the others are searched for. */
static bool is_of_another(const char *library, size_t index) {
    bool fits = false;
    for (size_t i = 0; library && i < RUNTIME_COUNT; i++) {
        fits |= i != index && runtimes[i].kind && library_fits(runtimes[i].kind, library);
    }
    return fits;
}

bool ferry_runtime_at(size_t index, const char *library, ferry_runtime *out) {
    *out = (ferry_runtime){0};
    if (index >= RUNTIME_COUNT) return false;
    ferry_error error = {0};
    const char *tested = runtimes[index].tested ? runtimes[index].tested : ferry_version();
    if (is_of_another(library, index)) library = NULL;
    out->name = runtimes[index].name;
    snprintf(out->tested, sizeof out->tested, "%s", tested);
    out->found = runtimes[index].find(library, out, &error);
    if (!out->found) {
        snprintf(out->problem, sizeof out->problem, "%.300s%s%.700s", error.where,
                 *error.where ? ": " : "", error.message);
    }
    return true;
}
