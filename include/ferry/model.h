/* Models to export: where programs come from. */
#ifndef FERRY_MODEL_H
#define FERRY_MODEL_H

#include <ferry/dtype.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Receives text in pieces, in order; `length` bytes that need not be terminated. */
typedef void (*ferry_write)(void *context, const char *text, size_t length);

/* Told about something a user should know, one line without a newline. */
typedef void (*ferry_note)(void *context, const char *text);

/* An opened source: a Hugging Face checkpoint directory, a GGUF file, a torch.export program, or the directory in
 * which a torch.export exporter wrote several. */
typedef struct ferry_model ferry_model;

/* Open a checkpoint directory (config.json with model.safetensors, or the shards that
 * model.safetensors.index.json lists), a GGUF file or a .pt2. Weights are mapped, not read. */
FERRY_API ferry_status ferry_model_open(const char *path, ferry_model **out, ferry_error *error);

/* Exports made from the model must be freed before. */
FERRY_API void ferry_model_close(ferry_model *model);

/* "llama". Valid while the model is open. */
FERRY_API const char *ferry_model_type(const ferry_model *model);

/* A tensor of the checkpoint. */
typedef struct ferry_weight {
    const char *name;
    const char *file; /* relative to the checkpoint, or the GGUF file's own name */
    ferry_dtype dtype;
    const char *blocks; /* "Q4_K": the file holds quantized blocks, which become `dtype`; or NULL */
    size_t rank;
    const int64_t *shape;
    uint64_t bytes; /* in the file */
} ferry_weight;

FERRY_API size_t ferry_model_weight_count(const ferry_model *model);

/* The weight at `index`, file by file in the order of their bytes. False past the end. */
FERRY_API bool ferry_model_weight(const ferry_model *model, size_t index, ferry_weight *out);

#ifdef __cplusplus
}
#endif
#endif
