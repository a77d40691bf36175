/* What this build can do and what it finds on the machine. */
#include "export/export.h"
#include "pass/pass.h"
#include "run/library.h"
#include "run/reference.h"
#include "target/openvino/openvino.h"

#include <stdio.h>
#include <string.h>

bool ferry_family_at(size_t index, ferry_family *out) {
    const Family *family = family_at(index);
    size_t count = 0;
    if (!family) return false;
    *out = (ferry_family){.model_type = family->model_type, .class_prefix = family->class_prefix};
    for (int task = 0; task < TASK_COUNT; task++) {
        if (family->tasks >> task & 1) out->tasks[count++] = task_name((Task)task);
    }
    return true;
}

bool ferry_op_at(size_t index, ferry_op *out) {
    if (index >= OP_COUNT) return false;
    Op op = (Op)index;
    *out = (ferry_op){.name = op_name(op),
                      .schema = op_schema_text(op),
                      .reference = reference_supports(op),
                      .onnx = onnx_supports(op),
                      .openvino = openvino_supports(op),
                      .decomposes = decompose_find(op) != NULL};
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

/* With the versions that the tests pin. */
static const struct {
    const char *name, *tested;
    const LibraryKind *kind; /* NULL: built in */
    bool (*find)(const char *library, ferry_runtime *out, ferry_error *error);
} runtimes[] = {
    {"reference", NULL, NULL, find_reference},
    {"onnxruntime", "1.32.0", &ort_library, find_onnxruntime},
    {"openvino", "2026.4.1", &ov_library, find_openvino},
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
