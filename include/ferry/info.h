/* What this build of ferry can do, and what it finds on the machine. */
#ifndef FERRY_INFO_H
#define FERRY_INFO_H

#include <ferry/export.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A model type that is built natively. */
typedef struct ferry_family {
    const char *model_type;   /* "llama" */
    const char *class_prefix; /* "Llama" */
    const char *tasks[16];    /* "text-generation", ...; ends with NULL */
} ferry_family;

/* False past the end. `plugins` (NULL: none) may add to what is built in, here and below. */
FERRY_API bool ferry_family_at(const ferry_plugins *plugins, size_t index, ferry_family *out);

/* An operation of programs, and who can take it. */
typedef struct ferry_op {
    const char *name;   /* "aten::linear" */
    const char *schema; /* "(Tensor input, Tensor weight, ...) -> Tensor" */
    bool reference;     /* the built-in runtime has a kernel */
    bool onnx;          /* the ONNX target has a lowering */
    bool openvino;      /* the OpenVINO target has one */
    bool executorch;    /* the ExecuTorch target has one for kernels */
    bool mlx;           /* it has one for MLX */
    bool decomposes;    /* it can be rewritten into simpler operations */
} ferry_op;

/* False past the end. */
FERRY_API bool ferry_op_at(const ferry_plugins *plugins, size_t index, ferry_op *out);

/* A runtime, as found on this machine. */
typedef struct ferry_runtime {
    const char *name; /* "onnxruntime" */
    bool found;
    char version[64];
    char tested[64]; /* the version ferry is tested with */
    char path[1024];
    char devices[256];  /* OpenVINO: "CPU, GPU.0"; ExecuTorch: its backends; else empty */
    char problem[1024]; /* why it was not found */
} ferry_runtime;

/* Look for the runtime at `index`; false past the end. `library` may name its file (NULL: search). */
FERRY_API bool ferry_runtime_at(size_t index, const char *library, ferry_runtime *out);

#ifdef __cplusplus
}
#endif
#endif
