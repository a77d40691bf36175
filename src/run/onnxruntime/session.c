/* Opening a model: a session, and the names and types of what goes in and comes out. */
#include "run/onnxruntime/ort.h"
#include "base/error.h"
#include "base/file.h"

#include <limits.h>
#include <stdlib.h>

static const int element_types[FERRY_DTYPE_COUNT] = {
    [FERRY_F32] = 1,  [FERRY_U8] = 2,    [FERRY_I8] = 3,       [FERRY_I16] = 5,
    [FERRY_I32] = 6,  [FERRY_I64] = 7,   [FERRY_BOOL] = 9,     [FERRY_F16] = 10,
    [FERRY_F64] = 11, [FERRY_BF16] = 16, [FERRY_F8_E4M3] = 17, [FERRY_F8_E5M2] = 19,
};

int ort_element_type(ferry_dtype dtype) {
    return element_types[dtype];
}

ferry_dtype ort_dtype(int element_type) {
    for (int d = 1; d < FERRY_DTYPE_COUNT; d++) {
        if (element_types[d] == element_type) return (ferry_dtype)d;
    }
    return FERRY_DTYPE_NONE;
}

static ferry_status create_session(OnnxSession *session, const char *path, unsigned threads,
                                   ferry_error *error) {
    const OnnxRuntime *runtime = session->runtime;
    const OrtApi *api = runtime->api;
    OrtSessionOptions *options = NULL;
    TRY(ort_check(runtime, api->CreateSessionOptions(&options), path, "cannot open the model",
                  error));
    ferry_status status = FERRY_OK;
    if (threads) {
        status = ort_check(runtime, api->SetIntraOpNumThreads(options, (int)threads), path,
                           "cannot set the number of threads", error);
    }
    if (status == FERRY_OK) {
        status =
            ort_check(runtime, api->CreateSession(runtime->env, path, options, &session->session),
                      path, "ONNX Runtime refused the model", error);
    }
    api->ReleaseSessionOptions(options);
    return status;
}

typedef OrtStatus *(*GetName)(const OrtSession *, size_t, OrtAllocator *, char **);

static ferry_status read_names(OnnxSession *session, GetName get_name, size_t count,
                               const char ***out, ferry_error *error) {
    const OnnxRuntime *runtime = session->runtime;
    const char *what = "cannot read the names of the model's inputs and outputs";
    OrtAllocator *allocator = NULL;
    TRY(ort_check(runtime, runtime->api->GetAllocatorWithDefaultOptions(&allocator), session->path,
                  what, error));
    *out = ARENA_ARRAY(&session->arena, const char *, count);
    for (size_t i = 0; *out && i < count; i++) {
        char *name = NULL;
        TRY(ort_check(runtime, get_name(session->session, i, allocator, &name), session->path, what,
                      error));
        (*out)[i] = arena_string(&session->arena, name);
        TRY(ort_check(runtime, runtime->api->AllocatorFree(allocator, name), session->path, what,
                      error));
    }
    return *out ? FERRY_OK : error_memory(error, session->path, 0);
}

/* The type of input `index`, which must be a tensor of a type that ferry has. */
static ferry_status read_input_type(OnnxSession *session, size_t index, ferry_error *error) {
    const OnnxRuntime *runtime = session->runtime;
    const OrtApi *api = runtime->api;
    const char *name = session->inputs[index];
    OrtTypeInfo *info = NULL;
    TRY(ort_check(runtime, api->SessionGetInputTypeInfo(session->session, index, &info), name,
                  "cannot read the type of the input", error));
    const OrtTensorInfo *tensor = NULL; /* stays NULL for a sequence, map or optional */
    int element_type = 0;
    ferry_status status = ort_check(runtime, api->CastTypeInfoToTensorInfo(info, &tensor), name,
                                    "cannot read the type of the input", error);
    if (status == FERRY_OK && tensor) {
        status = ort_check(runtime, api->GetTensorElementType(tensor, &element_type), name,
                           "cannot read the type of the input", error);
    }
    api->ReleaseTypeInfo(info);
    if (status != FERRY_OK) return status;
    session->input_dtypes[index] = ort_dtype(element_type);
    if (session->input_dtypes[index] != FERRY_DTYPE_NONE) return FERRY_OK;
    if (!tensor) return error_set(error, FERRY_UNSUPPORTED, name, "the input is not a tensor");
    return error_set(error, FERRY_UNSUPPORTED, name,
                     "the input has ONNX element type %d, which ferry does not have", element_type);
}

static ferry_status read_signature(OnnxSession *session, ferry_error *error) {
    const OnnxRuntime *runtime = session->runtime;
    const OrtApi *api = runtime->api;
    const char *what = "cannot count the model's inputs and outputs";
    TRY(ort_check(runtime, api->SessionGetInputCount(session->session, &session->input_count),
                  session->path, what, error));
    TRY(ort_check(runtime, api->SessionGetOutputCount(session->session, &session->output_count),
                  session->path, what, error));
    TRY(read_names(session, api->SessionGetInputName, session->input_count, &session->inputs,
                   error));
    TRY(read_names(session, api->SessionGetOutputName, session->output_count, &session->outputs,
                   error));
    session->input_dtypes = ARENA_ARRAY(&session->arena, ferry_dtype, session->input_count);
    if (session->arena.failed) return error_memory(error, session->path, 0);
    for (size_t i = 0; i < session->input_count; i++) TRY(read_input_type(session, i, error));
    return FERRY_OK;
}

ferry_status onnxruntime_open(OnnxRuntime *runtime, const char *path, unsigned threads,
                              OnnxSession **out, ferry_error *error) {
    *out = NULL;
    if (threads > INT_MAX) {
        return error_set(error, FERRY_INVALID_ARGUMENT, path, "%u threads are too many", threads);
    }
    if (!path_exists(path)) {
        return error_set(error, FERRY_NOT_FOUND, path, "the model file does not exist");
    }
    OnnxSession *session = calloc(1, sizeof *session);
    if (!session) return error_memory(error, path, sizeof *session);
    session->runtime = runtime;
    session->path = arena_string(&session->arena, path);
    ferry_status status = create_session(session, path, threads, error);
    if (status == FERRY_OK) status = read_signature(session, error);
    if (status == FERRY_OK)
        *out = session;
    else
        onnxruntime_close(session);
    return status;
}

void onnxruntime_close(OnnxSession *session) {
    if (!session) return;
    onnxruntime_forget(session);
    if (session->session) session->runtime->api->ReleaseSession(session->session);
    arena_free(&session->arena);
    free(session);
}

size_t onnxruntime_input_count(const OnnxSession *session) {
    return session->input_count;
}

const char *onnxruntime_input_name(const OnnxSession *session, size_t index) {
    return index < session->input_count ? session->inputs[index] : NULL;
}

size_t onnxruntime_output_count(const OnnxSession *session) {
    return session->output_count;
}

const char *onnxruntime_output_name(const OnnxSession *session, size_t index) {
    return index < session->output_count ? session->outputs[index] : NULL;
}
