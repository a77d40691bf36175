/* The ONNX target: a Program becomes `model.onnx` and `model.onnx.data`. */
#ifndef TARGET_ONNX_H
#define TARGET_ONNX_H

#include "base/file.h"
#include "base/pool.h"
#include "graph/registry.h"
#include "graph/stream.h"
#include "target/shared.h"

enum { ONNX_MIN_OPSET = 18, ONNX_MAX_OPSET = 24, ONNX_DEFAULT_OPSET = 24 };

typedef struct ferry_onnx Onnx; /* a model being written: emit.h */

typedef struct OnnxOptions {
    const Registry *registry; /* where the lowerings are */
    int opset;                /* ONNX_MIN_OPSET to ONNX_MAX_OPSET */
    /* Weights stay in the checkpoint's own files: initializers point into them. `directory` is where
     * the model goes; the files must be regular ones in or below it. */
    bool link;
    const char *directory;
    const char *data_name;   /* "model.onnx.data": the file's name as the model refers to it */
    SharedWeights *shared;   /* of the export's other programs; NULL: it has none */
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

/* A lowering, as it is registered under "onnx/<operation>". */
typedef struct OnnxLowering {
    void (*lower)(Onnx *o, const Node *node);
    const char *op_type; /* the ONNX operator, for functions that serve several */
    int since;           /* lowest opset; 0: every supported one */
} OnnxLowering;

/* Register the built-in lowerings. */
void onnx_register(Registry *registry);

/* The lowering of `op`, or NULL. */
const OnnxLowering *onnx_lowering(const Registry *registry, Op op);

#endif
