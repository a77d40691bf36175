/* A Hugging Face checkpoint directory: config.json, generation_config.json and the weights in
 * model.safetensors or in the shards that model.safetensors.index.json lists. Files are mapped, never
 * loaded. */
#ifndef SOURCE_CHECKPOINT_H
#define SOURCE_CHECKPOINT_H

#include "base/arena.h"
#include "base/map.h"
#include "format/json.h"
#include "format/safetensors.h"

typedef struct Shard {
    const char *name; /* relative to the directory */
    SafeTensors tensors;
} Shard;

/* A tensor of the checkpoint and the shard it is in. */
typedef struct CheckpointTensor {
    const SafeTensor *tensor;
    const Shard *shard;
} CheckpointTensor;

typedef struct Checkpoint {
    Arena arena;
    const char *directory;
    json_t *config;
    const char *model_type;
    Shard *shards;
    size_t shard_count;
    CheckpointTensor *tensors; /* shard by shard, by ascending offset */
    size_t tensor_count;
    Map by_name; /* name -> CheckpointTensor */
} Checkpoint;

/* Open `directory`. Nothing but headers is read. Errors name the file and what is wrong with it. */
ferry_status checkpoint_open(const char *directory, Checkpoint **out, ferry_error *error);
void checkpoint_close(Checkpoint *checkpoint);

/* The tensor with this name, or NULL. */
const CheckpointTensor *checkpoint_find(const Checkpoint *checkpoint, const char *name);

/* The dtype of the first floating-point tensor, as Transformers takes it; float32 when there is none. */
ferry_dtype checkpoint_dtype(const Checkpoint *checkpoint);

#endif
