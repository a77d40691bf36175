/* Exports: saved to a directory, loaded from it, run and checked. */
#ifndef FERRY_EXPORTED_H
#define FERRY_EXPORTED_H

#include <ferry/export.h>

#ifdef __cplusplus
extern "C" {
#endif

FERRY_API void ferry_exported_free(ferry_exported *exported);

/* What was written. */
typedef struct ferry_export_sizes {
    uint64_t graph_bytes;  /* of the program's file */
    uint64_t weight_bytes; /* of the weights' file; 0 when linked */
    uint32_t nodes, weights;
} ferry_export_sizes;

/* Write the export: for ONNX model.onnx, model.onnx.data, export.json, config.json and, where the checkpoint
 * has them, generation_config.json and the files of the tokenizer. The directory is made when it is missing.
 * Files appear complete, or not at all; after a failure the directory is as it was. `sizes` may be NULL. */
FERRY_API ferry_status ferry_exported_save(ferry_exported *exported, const char *directory,
                                           ferry_export_sizes *sizes, ferry_error *error);

/* Open a directory that ferry_exported_save, or a Transformers exporter, wrote. The checkpoint is not
 * needed, unless the weights are linked. */
FERRY_API ferry_status ferry_exported_load(const char *directory, ferry_exported **out,
                                           ferry_error *error);

/* ---- components ---- */

/* The programs that an export consists of: one, called "model", or those of a generation split, "prefill",
 * "decode", ... Each is an export of its own to the functions below, and lives as long as the whole. */
FERRY_API size_t ferry_exported_component_count(const ferry_exported *exported);

/* NULL past the end. */
FERRY_API ferry_exported *ferry_exported_component_at(ferry_exported *exported, size_t index);

/* The component called `name`; with NULL, the only one. NOT_FOUND lists those that there are. */
FERRY_API ferry_status ferry_exported_component(ferry_exported *exported, const char *name,
                                                ferry_exported **out, ferry_error *error);

/* "model", "decode"; NULL of an export that consists of several components. */
FERRY_API const char *ferry_exported_name(const ferry_exported *exported);

/* ---- running ---- */

/* Where and how to run. */
typedef struct ferry_run_config {
    size_t size;
    /* "onnxruntime", "openvino", "executorch" or "reference"; NULL: that of the export's format where it is found, else
     * the reference runtime */
    const char *runtime;
    const char *library; /* path of the runtime's library; NULL: search */
    const char *device;  /* OpenVINO: "CPU", "GPU", "NPU" or "AUTO", the default */
    unsigned threads;    /* of the CPU; 0: the runtime's own choice */
    ferry_note note;
    void *note_context;
} ferry_run_config;

FERRY_API void ferry_run_config_init(ferry_run_config *config);

/* Run a loaded or saved export. `inputs` go by the names of the model's keywords; those that the
 * program was not exported with are dropped with a note, a missing one is INVALID_ARGUMENT. `*outputs`
 * is the caller's to free. The runtime stays open for the next call. */
FERRY_API ferry_status ferry_exported_run(ferry_exported *exported, const ferry_run_config *config,
                                          const ferry_tensors *inputs, ferry_tensors **outputs,
                                          ferry_error *error);

/* Forget what a stateful model has seen: the next run starts over. In OpenVINO such a model goes on from
 * run to run; in the reference runtime every run starts over. */
FERRY_API ferry_status ferry_exported_reset(ferry_exported *exported, ferry_error *error);

/* The text of the program after legalization, as `ferry show` prints it. */
FERRY_API ferry_status ferry_exported_print(ferry_exported *exported, ferry_write write,
                                            void *context, ferry_error *error);

/* An input or output. A size is a number ("7"), a name ("batch") or an expression
 * ("Min(15, sequence)"). */
typedef struct ferry_port {
    const char *name;
    ferry_dtype dtype;
    size_t rank;
    const char *shape[FERRY_MAX_RANK];
    const char
        *writes;   /* of an output: the input or buffer that holds it after the call, or NULL */
    bool in_place; /* and that may be computed in its memory, which nothing else reads */
} ferry_port;

FERRY_API size_t ferry_exported_input_count(const ferry_exported *exported);
FERRY_API size_t ferry_exported_output_count(const ferry_exported *exported);
FERRY_API const ferry_port *ferry_exported_input(const ferry_exported *exported, size_t index);
FERRY_API const ferry_port *ferry_exported_output(const ferry_exported *exported, size_t index);

/* Class of the exported model ("LlamaForCausalLM"), dtype and format ("onnx"). */
FERRY_API const char *ferry_exported_architecture(const ferry_exported *exported);
FERRY_API const char *ferry_exported_dtype(const ferry_exported *exported);
FERRY_API const char *ferry_exported_format(const ferry_exported *exported);

/* How many parts of a saved or loaded ExecuTorch export are handed to a backend such as XNNPACK; 0 for other
 * formats. */
FERRY_API ferry_status ferry_exported_delegates(const ferry_exported *exported, size_t *count,
                                                ferry_error *error);

/* ---- checking ---- */

/* One comparison of a check. */
typedef struct ferry_comparison {
    const char *runtime; /* "onnxruntime 1.32.0" */
    const char *oracle;  /* what it is compared with */
    const char *inputs;  /* "batch=2 sequence=7", or the file */
    const char *output;
    double difference; /* largest absolute difference; infinity when shapes or dtypes differ */
    double scale;      /* largest absolute expected value */
    bool passed;
    const char *problem; /* what differs besides numbers; may be NULL */
} ferry_comparison;

typedef void (*ferry_compare)(void *context, const ferry_comparison *comparison);

typedef struct ferry_check_config {
    size_t size;
    /* What the export is compared with: a checkpoint directory (its program, in the reference
     * runtime), or recorded outputs (.safetensors, .npz; then `inputs` is needed). NULL: the
     * reference runtime on the exported program itself. */
    const char *against;
    const char *component; /* of an export with several: this one; NULL: all */
    const char *inputs;    /* file of inputs; NULL: made up from the signature, at two shapes */
    double tolerance; /* passed when difference <= tolerance * max(1, scale); 1e-4 by default */
    const char *library;
    unsigned threads;
    ferry_compare compare;
    void *compare_context;
    ferry_note note;
    void *note_context;
} ferry_check_config;

FERRY_API void ferry_check_config_init(ferry_check_config *config);

/* Run the export in every runtime that is found and compare. MISMATCH when a comparison fails. */
FERRY_API ferry_status ferry_check(const char *directory, const ferry_check_config *config,
                                   ferry_error *error);

#ifdef __cplusplus
}
#endif
#endif
