/* What a session carries from run to run. */
#include "run/onnxruntime/ort.h"
#include "base/error.h"
#include "run/inputs.h"

#include <stdlib.h>
#include <string.h>

OrtCarry *ort_carry_of_input(const OnnxSession *session, size_t input) {
    for (size_t i = 0; i < session->carry_count; i++) {
        if (session->carries[i].input == input) return &session->carries[i];
    }
    return NULL;
}

OrtCarry *ort_carry_of_output(const OnnxSession *session, size_t output) {
    for (size_t i = 0; i < session->carry_count; i++) {
        if (session->carries[i].output == output) return &session->carries[i];
    }
    return NULL;
}

ferry_status onnxruntime_carry(OnnxSession *session, const Carry *pairs, size_t count,
                               ferry_error *error) {
    onnxruntime_forget(session);
    session->carry_count = 0;
    session->carries = ARENA_ARRAY(&session->arena, OrtCarry, count + 1);
    if (!session->carries) return error_memory(error, session->path, 0);
    for (size_t i = 0; i < count; i++) {
        OrtCarry *carry = &session->carries[i];
        *carry = (OrtCarry){.in_place = pairs[i].in_place};
        TRY(inputs_place(session->inputs, session->input_count, pairs[i].input, session->path,
                         &carry->input, error));
        TRY(inputs_place(session->outputs, session->output_count, pairs[i].output, session->path,
                         &carry->output, error));
    }
    session->carry_count = count;
    return FERRY_OK;
}

ferry_status ort_carry_start(OnnxSession *session, OrtCarry *carry, const ferry_tensor *from,
                             ferry_error *error) {
    const OnnxRuntime *runtime = session->runtime;
    size_t bytes = ferry_tensor_bytes(from);
    if (carry->held) runtime->api->ReleaseValue(carry->held);
    free(carry->memory);
    carry->held = NULL;
    carry->memory = malloc(bytes ? bytes : 1);
    if (!carry->memory) return error_memory(error, from->name, bytes);
    if (bytes) memcpy(carry->memory, from->data, bytes);
    ferry_tensor copy = *from;
    copy.data = carry->memory;
    return ort_lend(runtime, &copy, &carry->held, error);
}

ferry_status onnxruntime_carried(OnnxSession *session, ferry_tensors **out, ferry_error *error) {
    ferry_status status = FERRY_OK;
    *out = ferry_tensors_new();
    if (!*out) return error_memory(error, session->path, 0);
    for (size_t i = 0; i < session->carry_count && status == FERRY_OK; i++) {
        const OrtCarry *carry = &session->carries[i];
        if (!carry->held) continue;
        status =
            ort_copy(session->runtime, carry->held, session->inputs[carry->input], *out, error);
    }
    if (status == FERRY_OK) return FERRY_OK;
    ferry_tensors_free(*out);
    *out = NULL;
    return status;
}

void onnxruntime_forget(OnnxSession *session) {
    for (size_t i = 0; i < session->carry_count; i++) {
        OrtCarry *carry = &session->carries[i];
        if (carry->held) session->runtime->api->ReleaseValue(carry->held);
        free(carry->memory);
        carry->held = NULL;
        carry->memory = NULL;
    }
}
