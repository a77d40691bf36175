/* One run: the caller's tensors are lent to the runtime, what it computes is copied out once. */
#include "run/onnxruntime/ort.h"
#include "base/error.h"
#include "run/inputs.h"

#include <stdlib.h>
#include <string.h>

/* ---- inputs ---- */

ferry_status ort_lend(const OnnxRuntime *runtime, const ferry_tensor *tensor, OrtValue **out,
                      ferry_error *error) {
    static char nothing; /* a tensor without elements may have no data */
    return ort_check(runtime,
                     runtime->api->CreateTensorWithDataAsOrtValue(
                         runtime->memory, tensor->data ? tensor->data : &nothing,
                         ferry_tensor_bytes(tensor), tensor->shape, tensor->rank,
                         ort_element_type(tensor->dtype), out),
                     tensor->name, "ONNX Runtime refused the tensor", error);
}

/* The value for an input: what is given, else what is carried. */
static ferry_status set_input(OnnxSession *session, const ferry_tensors *inputs, size_t index,
                              OrtValue **out, ferry_error *error) {
    const char *name = session->inputs[index];
    const ferry_tensor *tensor;
    OrtCarry *carry = ort_carry_of_input(session, index);
    if (!carry || !carry->held || ferry_tensors_find(inputs, name)) {
        TRY(inputs_find(inputs, name, session->input_dtypes[index], &tensor, error));
        if (!carry || !carry->in_place) return ort_lend(session->runtime, tensor, out, error);
        TRY(ort_carry_start(session, carry, tensor, error));
    }
    *out = carry->held;
    return FERRY_OK;
}

/* ---- outputs ---- */

typedef struct OutputType {
    int element_type;
    size_t rank;
    int64_t shape[FERRY_MAX_RANK];
} OutputType;

static ferry_status read_output_shape(const OnnxRuntime *runtime, const OrtTensorInfo *info,
                                      const char *name, OutputType *type, ferry_error *error) {
    const char *what = "cannot read the type of the output";
    TRY(ort_check(runtime, runtime->api->GetTensorElementType(info, &type->element_type), name,
                  what, error));
    TRY(ort_check(runtime, runtime->api->GetDimensionsCount(info, &type->rank), name, what, error));
    if (type->rank > FERRY_MAX_RANK) {
        return error_set(error, FERRY_UNSUPPORTED, name,
                         "the output has rank %zu; ferry's tensors have at most %d", type->rank,
                         FERRY_MAX_RANK);
    }
    return ort_check(runtime, runtime->api->GetDimensions(info, type->shape, type->rank), name,
                     what, error);
}

static ferry_status read_output_type(const OnnxRuntime *runtime, const OrtValue *value,
                                     const char *name, OutputType *type, ferry_error *error) {
    int is_tensor = 0;
    TRY(ort_check(runtime, runtime->api->IsTensor(value, &is_tensor), name,
                  "cannot read the type of the output", error));
    if (!is_tensor) {
        return error_set(error, FERRY_UNSUPPORTED, name, "the output is not a tensor");
    }
    OrtTensorInfo *info = NULL;
    TRY(ort_check(runtime, runtime->api->GetTensorTypeAndShape(value, &info), name,
                  "cannot read the type of the output", error));
    ferry_status status = read_output_shape(runtime, info, name, type, error);
    runtime->api->ReleaseTensorTypeAndShapeInfo(info);
    return status;
}

ferry_status ort_copy(const OnnxRuntime *runtime, OrtValue *value, const char *name,
                      ferry_tensors *outputs, ferry_error *error) {
    OutputType type = {0};
    TRY(read_output_type(runtime, value, name, &type, error));
    ferry_dtype dtype = ort_dtype(type.element_type);
    if (dtype == FERRY_DTYPE_NONE) {
        return error_set(error, FERRY_UNSUPPORTED, name,
                         "the output has ONNX element type %d, which ferry does not have",
                         type.element_type);
    }
    void *data = NULL;
    TRY(ort_check(runtime, runtime->api->GetTensorMutableData(value, &data), name,
                  "cannot read the output", error));
    ferry_tensor *tensor = NULL;
    TRY(ferry_tensors_add(outputs, name, dtype, type.rank, type.shape, &tensor, error));
    size_t bytes = ferry_tensor_bytes(tensor);
    if (bytes) memcpy(tensor->data, data, bytes);
    return FERRY_OK;
}

static ferry_status copy_outputs(const OnnxSession *session, OrtValue **values, ferry_tensors **out,
                                 ferry_error *error) {
    ferry_tensors *outputs = ferry_tensors_new();
    if (!outputs) return error_memory(error, session->path, 0);
    ferry_status status = FERRY_OK;
    for (size_t i = 0; i < session->output_count && status == FERRY_OK; i++) {
        if (ort_carry_of_output(session, i)) continue;
        status = ort_copy(session->runtime, values[i], session->outputs[i], outputs, error);
    }
    if (status == FERRY_OK)
        *out = outputs;
    else
        ferry_tensors_free(outputs);
    return status;
}

/* Hold what was computed for the next run. */
static void hold_outputs(OnnxSession *session, OrtValue **computed) {
    for (size_t i = 0; i < session->carry_count; i++) {
        OrtCarry *carry = &session->carries[i];
        if (carry->in_place) continue;
        if (carry->held) session->runtime->api->ReleaseValue(carry->held);
        carry->held = computed[carry->output];
        computed[carry->output] = NULL;
    }
}

/* ---- the run ---- */

static ferry_status run_values(OnnxSession *session, const ferry_tensors *inputs, OrtValue **given,
                               OrtValue **computed, ferry_error *error) {
    const OnnxRuntime *runtime = session->runtime;
    for (size_t i = 0; i < session->input_count; i++) {
        TRY(set_input(session, inputs, i, &given[i], error));
    }
    for (size_t i = 0; i < session->carry_count; i++) {
        const OrtCarry *carry = &session->carries[i];
        if (carry->in_place) computed[carry->output] = carry->held;
    }
    return ort_check(runtime,
                     runtime->api->Run(session->session, NULL, session->inputs,
                                       (const OrtValue *const *)given, session->input_count,
                                       session->outputs, session->output_count, computed),
                     session->path, "ONNX Runtime could not run the model", error);
}

/* Release the values of a run that nobody holds. */
static void release(OnnxSession *session, OrtValue **values, size_t count) {
    for (size_t i = 0; i < count; i++) {
        bool held = false;
        for (size_t c = 0; c < session->carry_count; c++) {
            held |= session->carries[c].held == values[i];
        }
        if (values[i] && !held) session->runtime->api->ReleaseValue(values[i]);
    }
}

ferry_status onnxruntime_run(OnnxSession *session, const ferry_tensors *inputs,
                             ferry_tensors **outputs, ferry_error *error) {
    *outputs = NULL;
    size_t count = session->input_count + session->output_count;
    OrtValue **values = calloc(count + 1, sizeof(OrtValue *));
    if (!values) return error_memory(error, session->path, 0);
    OrtValue **computed = values + session->input_count;
    ferry_status status = run_values(session, inputs, values, computed, error);
    if (status == FERRY_OK) status = copy_outputs(session, computed, outputs, error);
    if (status == FERRY_OK) {
        /* An input that was held goes with the output that takes its place. */
        for (size_t i = 0; i < session->carry_count; i++) {
            const OrtCarry *carry = &session->carries[i];
            if (values[carry->input] == carry->held) values[carry->input] = NULL;
        }
        hold_outputs(session, computed);
    }
    release(session, values, count);
    free(values);
    return status;
}
