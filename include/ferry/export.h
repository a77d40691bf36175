/* Exporting: from a model to a program for a target. */
#ifndef FERRY_EXPORT_H
#define FERRY_EXPORT_H

#include <ferry/model.h>
#include <ferry/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ferry_weights {
    FERRY_WEIGHTS_COPY, /* the export holds its own weights */
    FERRY_WEIGHTS_LINK, /* the export points into the checkpoint's files */
} ferry_weights;

/* What calls of a torch.export program take and return. */
typedef enum ferry_structure {
    FERRY_STRUCTURE_MODEL, /* the model's own classes: ModelOutput, DynamicCache, ... */
    FERRY_STRUCTURE_DICT, /* dicts and lists in their place: torch loads that without Transformers */
} ferry_structure;

/* Told how many of how many bytes are written; returning true cancels. Calls come one at a time,
 * possibly from different threads. */
typedef bool (*ferry_progress)(void *context, uint64_t done, uint64_t total);

/* Loaded plug-ins: <ferry/plugin.h>. */
typedef struct ferry_plugins ferry_plugins;

/* What to export. ferry_export_config_init sets the defaults; set what differs. All pointers are the
 * caller's and must stay valid during the call of ferry_export; the callbacks as long as the export. */
typedef struct ferry_export_config {
    size_t size; /* of this structure, as the caller knows it; set by init */

    const char *target; /* "onnx", "dynamo", "openvino", "executorch" */
    const char *task;   /* "text-generation", ...; NULL: the class that config.json names */

    /* One component of the model in the place of all of it: "prefill", "decode", ..., as ferry_decompose
     * (<ferry/generation.h>) lists them. NULL: the whole model. */
    const char *component;
    /* Of components: > 0: caches have this length, and "decode" writes them in place; 0: they grow. */
    int64_t static_cache;
    bool multi_token_decode; /* "decode" takes any number of tokens, not one */

    /* Of the weights and the computation. FERRY_DTYPE_NONE: that of the checkpoint where the target's
     * CPU runtime can execute it, else float32 (and a note says so). */
    ferry_dtype dtype;

    int opset; /* ONNX: 18 to 24; 0: the newest that the tested ONNX Runtime supports well */
    ferry_weights weights;
    ferry_structure structure;

    /* torch.export: also assert the bounds of dynamic sizes in the graph, where every tool that takes it
     * over keeps them (prefer_deferred_runtime_asserts_over_guards). */
    bool deferred_asserts;

    /* Sample inputs: which inputs the program has, and their dtypes. Their sizes become fixed unless
     * `dynamic` or `dynamic_shapes` says otherwise. NULL: input_ids and attention_mask, dynamic. */
    const ferry_tensors *inputs;
    bool dynamic;

    /* "input_ids=batch:1..32,seq:1..2048;position_ids=batch,seq": names and bounds of dimensions, per
     * input; a plain number fixes one. An input named here joins the default ones. */
    const char *dynamic_shapes;

    /* A size of an input that is a number is an error that names it: for torch.export programs, where
     * tracing may have frozen a dimension that was meant to be dynamic. */
    bool expect_dynamic;

    bool no_cache; /* decoders: do not return keys and values */

    /* OpenVINO: caches that the program takes and returns stay inputs and outputs. By default the model
     * keeps them from run to run, and takes "beam_idx" instead. */
    bool stateless;
    bool compress_to_fp16; /* OpenVINO: store float32 weights in half the bytes */

    /* ExecuTorch: who computes: "xnnpack" (the default) or "mlx" what it can and the portable kernels the
     * rest, or "portable" kernels alone. */
    const char *backend;
    /* ExecuTorch: the caller of the program gives the memory of inputs, of outputs, and of buffers that
     * the program writes; by default it is planned with the rest. */
    bool unplanned_inputs, unplanned_outputs, unplanned_buffers;

    /* Keys of config.json that ferry does not know and the caller vouches for. */
    const char *const *ignored_config_keys;
    size_t ignored_config_key_count;

    /* Families, operators, fixes and lowerings besides the built-in ones; NULL: none. They must stay
     * loaded until the export is freed. */
    const ferry_plugins *plugins;

    unsigned threads; /* 0: one per processor */

    ferry_note note;
    void *note_context;
    ferry_progress progress;
    void *progress_context;

    /* Print the program after this pass ("build", "fix", "legalize", "merge", "fold-weights",
     * "fold-constants") to `dump`. NULL: never. */
    const char *dump_after;
    ferry_write dump;
    void *dump_context;
} ferry_export_config;

FERRY_API void ferry_export_config_init(ferry_export_config *config);

/* A program for a target, ready to be saved and run. */
typedef struct ferry_exported ferry_exported;

/* Build the program. No weights are read and no files are written. The model must stay open until the
 * export is freed. */
FERRY_API ferry_status ferry_export(ferry_model *model, const ferry_export_config *config,
                                    ferry_exported **out, ferry_error *error);

#ifdef __cplusplus
}
#endif
#endif
