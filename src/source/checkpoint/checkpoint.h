/* A pretrained model as it is published: a Hugging Face directory (config.json and the weights in
 * model.safetensors or in the shards that model.safetensors.index.json lists) or a GGUF file. Files are
 * mapped, never loaded.
 *
 * A GGUF file looks like the directory it was made from: its configuration is told with the keys of
 * Transformers, its tensors have the names and the arrangement that Transformers has. */
#ifndef SOURCE_CHECKPOINT_H
#define SOURCE_CHECKPOINT_H

#include "base/arena.h"
#include "base/map.h"
#include "format/gguf.h"
#include "format/json.h"
#include "graph/recipe.h"

typedef struct Shard {
    const char *name; /* relative to the directory */
    MappedFile file;
} Shard;

/* A tensor of the checkpoint. */
typedef struct CheckpointTensor {
    const char *name;
    const char *storage; /* how the file holds it: "F32", "Q4_K" */
    ferry_dtype dtype;   /* of the elements */
    uint32_t rank;
    int64_t shape[FERRY_MAX_RANK];
    const Shard *shard;
    uint64_t offset, size;     /* of its bytes in the shard */
    const BlockFormat *blocks; /* NULL: plain elements */
    int64_t zipped; /* so many groups of rows are halves, zipped (see recipe_unzip); 0: none */
    bool plus_one;  /* the file holds one more than the weight */
} CheckpointTensor;

typedef struct Checkpoint {
    Arena arena;
    const char *directory;   /* or the path of the GGUF file */
    const char *config_path; /* for messages */
    json_t *config;
    const char *model_type;
    Shard *shards;
    size_t shard_count;
    CheckpointTensor *tensors; /* shard by shard, by ascending offset */
    size_t tensor_count;
    Map by_name; /* name -> CheckpointTensor */
    Gguf *gguf;  /* behind it; NULL for a directory */
} Checkpoint;

/* True when there is a directory or a GGUF file at `path`. */
bool checkpoint_probe(const char *path);

/* Open what is there. Nothing but headers is read. Errors name the file and what is wrong with it. */
ferry_status checkpoint_open(const char *path, Checkpoint **out, ferry_error *error);
void checkpoint_close(Checkpoint *checkpoint);

/* The tensor with this name, or NULL. */
const CheckpointTensor *checkpoint_find(const Checkpoint *checkpoint, const char *name);

/* The elements of a tensor; NULL when the arena is exhausted. */
const Recipe *checkpoint_recipe(Arena *arena, const CheckpointTensor *tensor);

/* True when two tensors have the same bytes and are made of them in the same way. */
bool checkpoint_same(const CheckpointTensor *a, const CheckpointTensor *b);

/* What Transformers computes in: the dtype of the first floating-point tensor, float32 for GGUF files and
 * when there is none. */
ferry_dtype checkpoint_dtype(const Checkpoint *checkpoint);

#endif
