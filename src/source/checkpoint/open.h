/* What the two kinds of checkpoints share while they are opened, and the files that read GGUF's. */
#ifndef SOURCE_OPEN_H
#define SOURCE_OPEN_H

#include "source/checkpoint/checkpoint.h"

/* Fill a checkpoint that has its `directory`. */
ferry_status directory_open(Checkpoint *checkpoint, ferry_error *error);
ferry_status gguf_checkpoint_open(Checkpoint *checkpoint, ferry_error *error);

/* The same with the file, which is the only shard, in memory. */
ferry_status gguf_checkpoint_read(Checkpoint *checkpoint, ferry_error *error);

/* Names of tensors: "attn_norm" in GGUF, "input_layernorm" in Transformers. A list ends with NULL. */
typedef struct GgufName {
    const char *theirs, *ours;
} GgufName;

typedef struct GgufConfig GgufConfig;

/* An architecture of GGUF files. */
typedef struct GgufArchitecture {
    const char *name;                   /* "gemma3" */
    const char *model_type;             /* "gemma3_text" */
    const char *class_name;             /* "Gemma3ForCausalLM" */
    void (*finish)(GgufConfig *config); /* the keys that others do not have; may be NULL */
    const GgufName *names;              /* in a layer, before those that all share; may be NULL */
    bool zips;     /* rotates neighbouring features: rows of query and key are zipped */
    bool plus_one; /* norms hold one more than their weights */
    bool partial;  /* may rotate the beginning of a head alone */
} GgufArchitecture;

/* The architecture of the file. */
ferry_status gguf_architecture(const Gguf *gguf, Arena *arena, const GgufArchitecture **out,
                               ferry_error *error);

/* The file's metadata in the keys of Transformers; `bytes` is the file. A key "ARCH.x" that is not
 * understood stays as it is. The caller owns `*out`. */
ferry_status gguf_config(const Gguf *gguf, const GgufArchitecture *architecture,
                         const unsigned char *bytes, Arena *arena, json_t **out,
                         ferry_error *error);

#endif
