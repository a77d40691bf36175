/* What this build can do and what it finds on the machine. */
#include "export/export.h"
#include "pass/pass.h"
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

/* The versions that the tests pin. */
static const char TESTED_ONNXRUNTIME[] = "1.32.0";

bool ferry_runtime_at(size_t index, const char *library, ferry_runtime *out) {
    *out = (ferry_runtime){0};
    if (index == 0) {
        out->name = "reference";
        out->found = true;
        snprintf(out->version, sizeof out->version, "%s", ferry_version());
        snprintf(out->tested, sizeof out->tested, "%s", ferry_version());
        snprintf(out->path, sizeof out->path, "built in");
        return true;
    }
    if (index > 1) return false;
    OnnxRuntime *runtime;
    ferry_error error;
    out->name = "onnxruntime";
    snprintf(out->tested, sizeof out->tested, "%s", TESTED_ONNXRUNTIME);
    out->found = onnxruntime_load(library, &runtime, &error) == FERRY_OK;
    if (out->found) {
        snprintf(out->version, sizeof out->version, "%s", onnxruntime_version(runtime));
        snprintf(out->path, sizeof out->path, "%s", onnxruntime_path(runtime));
        onnxruntime_unload(runtime);
    } else {
        snprintf(out->problem, sizeof out->problem, "%.300s%s%.700s", error.where,
                 *error.where ? ": " : "", error.message);
    }
    return true;
}
