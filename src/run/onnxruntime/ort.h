/* Private to src/run/onnxruntime: the part of ONNX Runtime's C API that ferry calls, declared here
 * because the runtime is loaded and not linked, and what the files of this folder share.
 *
 * OrtApi is a table of function pointers that only ever grows at its end, so a slot number means
 * the same function in every release. All slots below exist since the first release of the table.
 * Names are ONNX Runtime's own. A function that returns OrtStatus returns NULL for success. */
#ifndef RUN_ONNXRUNTIME_ORT_H
#define RUN_ONNXRUNTIME_ORT_H

#include "base/arena.h"
#include "run/library.h"
#include "run/onnxruntime.h"

#include <stddef.h>

typedef struct OrtStatus OrtStatus;
typedef struct OrtEnv OrtEnv;
typedef struct OrtSession OrtSession;
typedef struct OrtSessionOptions OrtSessionOptions;
typedef struct OrtRunOptions OrtRunOptions;
typedef struct OrtValue OrtValue;
typedef struct OrtTypeInfo OrtTypeInfo;
typedef struct OrtTensorInfo OrtTensorInfo; /* OrtTensorTypeAndShapeInfo */
typedef struct OrtMemoryInfo OrtMemoryInfo;
typedef struct OrtAllocator OrtAllocator;

enum {
    ORT_API_VERSION = 17, /* the table asked for; also the oldest minor version of 1.x accepted */
    ORT_LOGGING_LEVEL_FATAL = 4, /* its errors come back as statuses; nothing is printed */
    ORT_ARENA_ALLOCATOR = 1,
    ORT_MEMORY_DEFAULT = 0,
};

typedef void (*OrtUnused)(void);

typedef struct OrtApi {
    OrtUnused unused_0[2];
    const char *(*GetErrorMessage)(const OrtStatus *status);
    OrtStatus *(*CreateEnv)(int severity, const char *log_id, OrtEnv **out);
    OrtUnused unused_4[2];
    OrtStatus *(*DisableTelemetryEvents)(const OrtEnv *env);
    OrtStatus *(*CreateSession)(const OrtEnv *env, const char *path,
                                const OrtSessionOptions *options, OrtSession **out);
    OrtUnused unused_8[1];
    OrtStatus *(*Run)(OrtSession *session, const OrtRunOptions *options,
                      const char *const *input_names, const OrtValue *const *inputs,
                      size_t input_count, const char *const *output_names, size_t output_count,
                      OrtValue **outputs);
    OrtStatus *(*CreateSessionOptions)(OrtSessionOptions **out);
    OrtUnused unused_11[13];
    OrtStatus *(*SetIntraOpNumThreads)(OrtSessionOptions *options, int threads);
    OrtUnused unused_25[5];
    OrtStatus *(*SessionGetInputCount)(const OrtSession *session, size_t *out);
    OrtStatus *(*SessionGetOutputCount)(const OrtSession *session, size_t *out);
    OrtUnused unused_32[1];
    OrtStatus *(*SessionGetInputTypeInfo)(const OrtSession *session, size_t index,
                                          OrtTypeInfo **out);
    OrtUnused unused_34[2];
    OrtStatus *(*SessionGetInputName)(const OrtSession *session, size_t index,
                                      OrtAllocator *allocator, char **out);
    OrtStatus *(*SessionGetOutputName)(const OrtSession *session, size_t index,
                                       OrtAllocator *allocator, char **out);
    OrtUnused unused_38[11];
    OrtStatus *(*CreateTensorWithDataAsOrtValue)(const OrtMemoryInfo *memory, void *data,
                                                 size_t size, const int64_t *shape, size_t rank,
                                                 int element_type, OrtValue **out);
    OrtStatus *(*IsTensor)(const OrtValue *value, int *out);
    OrtStatus *(*GetTensorMutableData)(OrtValue *value, void **out);
    OrtUnused unused_52[3];
    OrtStatus *(*CastTypeInfoToTensorInfo)(const OrtTypeInfo *info, const OrtTensorInfo **out);
    OrtUnused unused_56[4];
    OrtStatus *(*GetTensorElementType)(const OrtTensorInfo *info, int *out);
    OrtStatus *(*GetDimensionsCount)(const OrtTensorInfo *info, size_t *out);
    OrtStatus *(*GetDimensions)(const OrtTensorInfo *info, int64_t *out, size_t rank);
    OrtUnused unused_63[2];
    OrtStatus *(*GetTensorTypeAndShape)(const OrtValue *value, OrtTensorInfo **out);
    OrtUnused unused_66[3];
    OrtStatus *(*CreateCpuMemoryInfo)(int allocator_type, int memory_type, OrtMemoryInfo **out);
    OrtUnused unused_70[6];
    OrtStatus *(*AllocatorFree)(OrtAllocator *allocator, void *pointer);
    OrtUnused unused_77[1];
    OrtStatus *(*GetAllocatorWithDefaultOptions)(OrtAllocator **out);
    OrtUnused unused_79[13];
    void (*ReleaseEnv)(OrtEnv *env);
    void (*ReleaseStatus)(OrtStatus *status);
    void (*ReleaseMemoryInfo)(OrtMemoryInfo *memory);
    void (*ReleaseSession)(OrtSession *session);
    void (*ReleaseValue)(OrtValue *value);
    OrtUnused unused_97[1];
    void (*ReleaseTypeInfo)(OrtTypeInfo *info);
    void (*ReleaseTensorTypeAndShapeInfo)(OrtTensorInfo *info);
    void (*ReleaseSessionOptions)(OrtSessionOptions *options);
} OrtApi;

#define ORT_SLOT(name, slot)                                                                       \
    _Static_assert(offsetof(OrtApi, name) == (slot) * sizeof(OrtUnused), #name " is misplaced")
ORT_SLOT(CreateEnv, 3);
ORT_SLOT(DisableTelemetryEvents, 6);
ORT_SLOT(Run, 9);
ORT_SLOT(SetIntraOpNumThreads, 24);
ORT_SLOT(SessionGetInputCount, 30);
ORT_SLOT(SessionGetInputTypeInfo, 33);
ORT_SLOT(SessionGetOutputName, 37);
ORT_SLOT(CreateTensorWithDataAsOrtValue, 49);
ORT_SLOT(CastTypeInfoToTensorInfo, 55);
ORT_SLOT(GetTensorElementType, 60);
ORT_SLOT(GetTensorTypeAndShape, 65);
ORT_SLOT(CreateCpuMemoryInfo, 69);
ORT_SLOT(AllocatorFree, 76);
ORT_SLOT(GetAllocatorWithDefaultOptions, 78);
ORT_SLOT(ReleaseEnv, 92);
ORT_SLOT(ReleaseSessionOptions, 100);

typedef struct OrtApiBase {
    const OrtApi *(*GetApi)(uint32_t version);
    const char *(*GetVersionString)(void);
} OrtApiBase;

struct OnnxRuntime {
    Arena arena;
    const OrtApi *api;
    const char *version;
    const char *path;
    OrtEnv *env;
    OrtMemoryInfo *memory; /* describes memory of the CPU */
};

/* A pair that is carried. */
typedef struct OrtCarry {
    size_t input, output; /* their indices */
    bool in_place;
    OrtValue *held; /* what the next run takes; NULL: nothing yet */
    void *memory;   /* of an `in_place` one: what is held */
} OrtCarry;

struct OnnxSession {
    Arena arena;
    OnnxRuntime *runtime;
    OrtSession *session;
    const char *path;
    size_t input_count;
    const char **inputs;
    ferry_dtype *input_dtypes;
    size_t output_count;
    const char **outputs;
    OrtCarry *carries;
    size_t carry_count;
};

/* FERRY_OK for NULL. Otherwise RUNTIME_FAILED with "<what>: <the runtime's message>", and `status`
 * is released. */
ferry_status ort_check(const OnnxRuntime *runtime, OrtStatus *status, const char *where,
                       const char *what, ferry_error *error);

/* ONNX's number for an element type (the same as in TensorProto), and back; 0 and
 * FERRY_DTYPE_NONE where the other side has no such type. */
int ort_element_type(ferry_dtype dtype);
ferry_dtype ort_dtype(int element_type);

/* True for a version string from "1.17" on. */
bool ort_version_accepted(const char *version);

/* ---- run.c ---- */

/* A tensor of the runtime in the memory of `tensor`. */
ferry_status ort_lend(const OnnxRuntime *runtime, const ferry_tensor *tensor, OrtValue **out,
                      ferry_error *error);

/* Copy a tensor of the runtime into a collection. */
ferry_status ort_copy(const OnnxRuntime *runtime, OrtValue *value, const char *name,
                      ferry_tensors *outputs, ferry_error *error);

/* ---- carry.c ---- */

/* The pair with this input or output; NULL when it is not carried. */
OrtCarry *ort_carry_of_input(const OnnxSession *session, size_t input);
OrtCarry *ort_carry_of_output(const OnnxSession *session, size_t output);

/* Start a pair that is written in place from a tensor, which is copied. */
ferry_status ort_carry_start(OnnxSession *session, OrtCarry *carry, const ferry_tensor *from,
                             ferry_error *error);

/* ---- node.c ---- */

/* Look in the node_modules of the current directory and its parents. */
void ort_search_node(LibrarySearch *search);

#endif
