/* The ONNX target: a Program becomes `model.onnx` and `model.onnx.data`. */
#ifndef TARGET_ONNX_H
#define TARGET_ONNX_H

#include "base/file.h"
#include "base/pool.h"
#include "graph/program.h"
#include "graph/stream.h"

enum { ONNX_MIN_OPSET = 18, ONNX_MAX_OPSET = 24, ONNX_DEFAULT_OPSET = 24 };

typedef struct OnnxOptions {
    int opset; /* ONNX_MIN_OPSET to ONNX_MAX_OPSET */
    /* Weights stay in the checkpoint's own files: initializers point into them. `directory` is where
     * the model goes; the files must be regular ones in or below it. */
    bool link;
    const char *directory;
    const char *data_name;   /* "model.onnx.data": the file's name as the model refers to it */
    Pool *pool;              /* may be NULL */
    StreamProgress progress; /* may be NULL */
    void *progress_context;
} OnnxOptions;

typedef struct OnnxSizes {
    uint64_t model_bytes, data_bytes;
    uint32_t nodes, initializers;
} OnnxSizes;

/* Make the program one that onnx_write takes. */
ferry_status onnx_legalize(Program *program, const OnnxOptions *options, ferry_error *error);

/* Write a legalized program to two open files. The data file stays empty, and `data` may be NULL, when
 * all weights are linked. */
ferry_status onnx_write(Program *program, const OnnxOptions *options, OutputFile *model,
                        OutputFile *data, OnnxSizes *sizes, ferry_error *error);

/* The bytes that the data file will have. */
uint64_t onnx_data_size(const Program *program, const OnnxOptions *options);

/* Is there a lowering for `op` at some opset? (`ferry ops`) */
bool onnx_supports(Op op);

#endif
