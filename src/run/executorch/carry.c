/* What a session carries from run to run. */
#include "base/error.h"
#include "format/executorch.h"
#include "format/tensors.h"
#include "run/executorch/et.h"
#include "run/inputs.h"

#include <stdlib.h>
#include <string.h>

EtCarry *et_carry_of_input(const ExecuTorchSession *session, uint32_t input) {
    for (size_t i = 0; i < session->carry_count; i++) {
        if (session->carries[i].input == input) return &session->carries[i];
    }
    return NULL;
}

EtCarry *et_carry_of_output(const ExecuTorchSession *session, uint32_t output) {
    for (size_t i = 0; i < session->carry_count; i++) {
        if (session->carries[i].output == output) return &session->carries[i];
    }
    return NULL;
}

ferry_status executorch_carry(ExecuTorchSession *session, const Carry *pairs, size_t count,
                              ferry_error *error) {
    const ExecuTorchNames *names = &session->names;
    executorch_forget(session);
    session->carry_count = 0;
    session->carries = ARENA_ARRAY(&session->arena, EtCarry, count + 1);
    if (!session->carries) return error_memory(error, session->path, 0);
    for (size_t i = 0; i < count; i++) {
        EtCarry *carry = &session->carries[i];
        *carry = (EtCarry){.in_place = pairs[i].in_place};
        TRY(inputs_place(names->inputs, names->input_count, pairs[i].input, session->path,
                         &carry->input, error));
        TRY(inputs_place(names->outputs, names->output_count, pairs[i].output, session->path,
                         &carry->output, error));
        uint64_t in = session->inputs[carry->input].bytes;
        uint64_t out = session->outputs[carry->output].bytes;
        carry->capacity = in > out ? in : out;
        carry->in_place &= !session->outputs[carry->output].planned;
    }
    session->carry_count = count;
    return FERRY_OK;
}

ferry_status et_carry_start(ExecuTorchSession *session, EtCarry *carry, const ferry_tensor *from,
                            ferry_error *error) {
    const char *name = session->names.inputs[carry->input];
    uint64_t bytes = ferry_tensor_bytes(from);
    if (bytes > carry->capacity) {
        return error_set(error, FERRY_INVALID_ARGUMENT, name,
                         "%llu bytes were given, and the program was exported for at most %llu: "
                         "export it with larger bounds",
                         (unsigned long long)bytes, (unsigned long long)carry->capacity);
    }
    for (int i = 0; i < (carry->in_place ? 1 : 2); i++) {
        if (!carry->memory[i]) carry->memory[i] = malloc(carry->capacity ? carry->capacity : 1);
        if (!carry->memory[i]) return error_memory(error, name, carry->capacity);
    }
    if (bytes) memcpy(carry->memory[0], from->data, bytes);
    carry->held = *from;
    carry->held.name = name;
    carry->held.data = carry->memory[0];
    carry->started = true;
    return FERRY_OK;
}

void *et_carry_room(const EtCarry *carry) {
    return carry->memory[carry->in_place ? 0 : 1];
}

ferry_status et_carry_take(EtCarry *carry, const EtTensor *found, const char *name,
                           ferry_error *error) {
    uint64_t bytes = found->bytes;
    if (bytes > carry->capacity)
        return error_set(error, FERRY_INTERNAL, name, "an output is larger than it declares");
    if (found->data != et_carry_room(carry) && bytes)
        memcpy(et_carry_room(carry), found->data, bytes);
    if (!carry->in_place) {
        void *old = carry->memory[0];
        carry->memory[0] = carry->memory[1];
        carry->memory[1] = old;
    }
    carry->held.data = carry->memory[0];
    carry->held.rank = found->rank;
    for (uint32_t d = 0; d < found->rank; d++) carry->held.shape[d] = found->sizes[d];
    return FERRY_OK;
}

ferry_status executorch_carried(ExecuTorchSession *session, ferry_tensors **out,
                                ferry_error *error) {
    ferry_status status = FERRY_OK;
    *out = ferry_tensors_new();
    if (!*out) return error_memory(error, session->path, 0);
    for (size_t i = 0; i < session->carry_count && status == FERRY_OK; i++) {
        const EtCarry *carry = &session->carries[i];
        if (carry->started) status = tensors_copy(*out, carry->held.name, &carry->held, error);
    }
    if (status == FERRY_OK) return FERRY_OK;
    ferry_tensors_free(*out);
    *out = NULL;
    return status;
}

void executorch_forget(ExecuTorchSession *session) {
    for (size_t i = 0; session && i < session->carry_count; i++) {
        EtCarry *carry = &session->carries[i];
        for (int m = 0; m < 2; m++) {
            free(carry->memory[m]);
            carry->memory[m] = NULL;
        }
        carry->started = false;
    }
}
