/* Opening a program, and running it: the caller's tensors are lent to the runtime; outputs whose memory is
 * the program's own are copied out, the others are computed where they are wanted. */
#include "base/error.h"
#include "base/file.h"
#include "format/executorch.h"
#include "run/executorch/et.h"
#include "run/inputs.h"

#include <stdlib.h>
#include <string.h>

/* ---- opening ---- */

static ferry_status check_tensor(const ExecuTorchSession *session, const EtTensor *tensor,
                                 const char *name, ferry_error *error) {
    if (pte_dtype_of(tensor->dtype) && tensor->rank <= FERRY_MAX_RANK) return FERRY_OK;
    if (tensor->dtype < 0) {
        return error_set(error, FERRY_UNSUPPORTED, name, "the program of %s has no tensor here",
                         session->path);
    }
    return error_set(
        error, FERRY_UNSUPPORTED, name,
        "the tensor has rank %u and ExecuTorch's element type %d; ferry's tensors have "
        "at most rank %d",
        tensor->rank, tensor->dtype, FERRY_MAX_RANK);
}

/* The inputs that are tensors, and how many there are. */
static ferry_status find_inputs(ExecuTorchSession *session, size_t *count, ferry_error *error) {
    const ExecuTorch *runtime = session->runtime;
    uint32_t all = runtime->api.input_count(session->method);
    session->inputs = ARENA_ARRAY(&session->arena, EtTensor, all);
    session->places = ARENA_ARRAY(&session->arena, uint32_t, all);
    session->rooms = ARENA_ARRAY(&session->arena, void *, all);
    if (session->arena.failed) return error_memory(error, session->path, 0);
    for (uint32_t i = 0; i < all; i++) {
        int failed = runtime->api.describe_input(session->method, i, &session->inputs[*count]);
        TRY(et_check(runtime, failed, session->path, "cannot read the inputs", error));
        if (session->inputs[*count].dtype >= 0) session->places[(*count)++] = i;
    }
    return FERRY_OK;
}

static ferry_status read_signature(ExecuTorchSession *session, ferry_error *error) {
    const ExecuTorch *runtime = session->runtime;
    const ExecuTorchNames *names = &session->names;
    size_t inputs = 0;
    TRY(find_inputs(session, &inputs, error));
    size_t outputs = runtime->api.output_count(session->method);
    if (!names->input_count && !names->output_count) {
        return error_set(
            error, FERRY_UNSUPPORTED, session->path,
            "export.json does not name the inputs and outputs of the program, as that of an "
            "export by ferry does");
    }
    if (inputs != names->input_count || outputs != names->output_count) {
        return error_set(
            error, FERRY_BAD_FORMAT, session->path,
            "export.json names %zu inputs and %zu outputs, the program has %zu and %zu",
            names->input_count, names->output_count, inputs, outputs);
    }
    session->outputs = ARENA_ARRAY(&session->arena, EtTensor, outputs);
    if (session->arena.failed) return error_memory(error, session->path, 0);
    for (uint32_t i = 0; i < inputs; i++) {
        TRY(check_tensor(session, &session->inputs[i], names->inputs[i], error));
    }
    for (uint32_t i = 0; i < outputs; i++) {
        int failed = runtime->api.describe_output(session->method, i, &session->outputs[i]);
        TRY(et_check(runtime, failed, names->outputs[i], "cannot read the output", error));
        TRY(check_tensor(session, &session->outputs[i], names->outputs[i], error));
    }
    return FERRY_OK;
}

static ferry_status open_method(ExecuTorchSession *session, ferry_error *error) {
    const EtApi *api = &session->runtime->api;
    return et_check(session->runtime, api->open(session->path, session->threads, &session->method),
                    session->path, "ExecuTorch cannot load the program", error);
}

/* The runtime reads what a program starts from when it loads it. */
ferry_status executorch_reset(ExecuTorchSession *session, ferry_error *error) {
    for (size_t i = 0; i < session->names.output_count; i++) {
        if (session->names.writes[i] != EXECUTORCH_WRITES_STATE) continue;
        if (session->method) session->runtime->api.close(session->method);
        session->method = NULL;
        return open_method(session, error);
    }
    return FERRY_OK;
}

ferry_status executorch_open(ExecuTorch *runtime, const char *path, const ExecuTorchNames *names,
                             unsigned threads, ExecuTorchSession **out, ferry_error *error) {
    *out = NULL;
    if (!path_exists(path)) {
        return error_set(error, FERRY_NOT_FOUND, path, "the model file does not exist");
    }
    ExecuTorchSession *session = calloc(1, sizeof *session);
    if (!session) return error_memory(error, path, sizeof *session);
    session->runtime = runtime;
    session->names = *names;
    session->threads = threads;
    session->path = arena_string(&session->arena, path);
    ferry_status status = open_method(session, error);
    if (status == FERRY_OK) status = read_signature(session, error);
    if (status == FERRY_OK)
        *out = session;
    else
        executorch_close(session);
    return status;
}

void executorch_close(ExecuTorchSession *session) {
    if (!session) return;
    executorch_forget(session);
    if (session->method) session->runtime->api.close(session->method);
    arena_free(&session->arena);
    free(session);
}

/* ---- a run ---- */

/* An input that the program writes is a copy of the caller's, with room for the largest sizes, which the
 * output has too. */
static ferry_status copy_written(ExecuTorchSession *session, uint32_t index, EtTensor *given,
                                 uint64_t bytes, Arena *arena, ferry_error *error) {
    const ExecuTorchNames *names = &session->names;
    session->rooms[index] = NULL;
    if (session->inputs[index].planned) return FERRY_OK;
    for (uint32_t i = 0; i < names->output_count; i++) {
        if (names->writes[i] != (int)index || session->outputs[i].planned) continue;
        uint64_t room = session->outputs[i].bytes;
        if (room < bytes) room = bytes;
        void *copy = arena_alloc(arena, room);
        if (!copy) return error_memory(error, names->inputs[index], room);
        if (bytes) memcpy(copy, given->data, bytes);
        session->rooms[index] = given->data = copy;
    }
    return FERRY_OK;
}

static ferry_status set_input(ExecuTorchSession *session, uint32_t index,
                              const ferry_tensors *inputs, Arena *arena, ferry_error *error) {
    const ExecuTorch *runtime = session->runtime;
    const EtTensor *declared = &session->inputs[index];
    const char *name = session->names.inputs[index];
    const ferry_tensor *tensor;
    EtCarry *carry = et_carry_of_input(session, index);
    if (!carry || !carry->started || ferry_tensors_find(inputs, name)) {
        TRY(inputs_find(inputs, name, pte_dtype_of(declared->dtype), &tensor, error));
        if (carry) TRY(et_carry_start(session, carry, tensor, error));
    }
    if (carry) tensor = &carry->held;
    if (tensor->rank != declared->rank) {
        return error_set(error, FERRY_INVALID_ARGUMENT, name, "expected rank %u, found rank %zu",
                         declared->rank, tensor->rank);
    }
    EtTensor given = {.data = tensor->data, .dtype = declared->dtype, .rank = declared->rank};
    for (uint32_t d = 0; d < given.rank; d++) {
        if (tensor->shape[d] > declared->sizes[d]) {
            return error_set(
                error, FERRY_INVALID_ARGUMENT, name,
                "the size of dimension %u is %lld, and the program was exported for at "
                "most %d: export it with a larger bound",
                d, (long long)tensor->shape[d], declared->sizes[d]);
        }
        given.sizes[d] = (int32_t)tensor->shape[d];
    }
    if (carry && carry->in_place)
        session->rooms[index] = carry->memory[0];
    else
        TRY(copy_written(session, index, &given, ferry_tensor_bytes(tensor), arena, error));
    return et_check(runtime,
                    runtime->api.set_input(session->method, session->places[index], &given), name,
                    "ExecuTorch refused the tensor", error);
}

/* An output without memory of its own gets room for its largest sizes, or that of its input. */
static ferry_status bind_output(ExecuTorchSession *session, uint32_t index, Arena *arena,
                                ferry_error *error) {
    const ExecuTorch *runtime = session->runtime;
    const EtTensor *declared = &session->outputs[index];
    const char *name = session->names.outputs[index];
    const EtCarry *carry = et_carry_of_output(session, index);
    int writes = session->names.writes[index];
    if (declared->planned || writes == EXECUTORCH_WRITES_STATE) return FERRY_OK;
    void *room = writes >= 0 ? session->rooms[writes] : NULL;
    if (!room) room = carry ? et_carry_room(carry) : arena_alloc(arena, declared->bytes);
    if (!room) return error_memory(error, name, declared->bytes);
    return et_check(runtime,
                    runtime->api.bind_output(session->method, index, room, declared->bytes), name,
                    "ExecuTorch refused the memory of the output", error);
}

static ferry_status copy_output(ExecuTorchSession *session, uint32_t index, ferry_tensors *outputs,
                                ferry_error *error) {
    const ExecuTorch *runtime = session->runtime;
    const char *name = session->names.outputs[index];
    EtTensor found;
    ferry_tensor *tensor;
    int64_t shape[FERRY_MAX_RANK] = {0};
    TRY(et_check(runtime, runtime->api.output(session->method, index, &found), name,
                 "cannot read the output", error));
    TRY(check_tensor(session, &found, name, error));
    EtCarry *carry = et_carry_of_output(session, index);
    if (carry) return et_carry_take(carry, &found, name, error);
    for (uint32_t d = 0; d < found.rank; d++) shape[d] = found.sizes[d];
    TRY(ferry_tensors_add(outputs, name, pte_dtype_of(found.dtype), found.rank, shape, &tensor,
                          error));
    if (found.bytes) memcpy(tensor->data, found.data, found.bytes);
    return FERRY_OK;
}

static ferry_status run(ExecuTorchSession *session, const ferry_tensors *inputs, Arena *arena,
                        ferry_tensors *outputs, ferry_error *error) {
    const ExecuTorchNames *names = &session->names;
    if (!session->method) TRY(open_method(session, error));
    for (uint32_t i = 0; i < names->input_count; i++) {
        TRY(set_input(session, i, inputs, arena, error));
    }
    for (uint32_t i = 0; i < names->output_count; i++) TRY(bind_output(session, i, arena, error));
    TRY(et_check(session->runtime, session->runtime->api.run(session->method), session->path,
                 "ExecuTorch could not run the program", error));
    for (uint32_t i = 0; i < names->output_count; i++) {
        TRY(copy_output(session, i, outputs, error));
    }
    return FERRY_OK;
}

ferry_status executorch_run(ExecuTorchSession *session, const ferry_tensors *inputs,
                            ferry_tensors **outputs, ferry_error *error) {
    Arena arena = {0};
    *outputs = NULL;
    ferry_tensors *made = ferry_tensors_new();
    if (!made) return error_memory(error, session->path, 0);
    ferry_status status = run(session, inputs, &arena, made, error);
    if (status == FERRY_OK)
        *outputs = made;
    else
        ferry_tensors_free(made);
    arena_free(&arena);
    return status;
}
