/* Hugging Face directories. */
#include "base/dtype.h"
#include "base/error.h"
#include "format/safetensors.h"
#include "source/checkpoint/open.h"

#include <string.h>

static const char WEIGHTS[] = "model.safetensors";
static const char INDEX[] = "model.safetensors.index.json";

/* The shards as they are read, one for each of the checkpoint's. */
typedef struct Directory {
    Checkpoint *cp;
    SafeTensors *files;
} Directory;

static ferry_status allocate(Directory *dir, size_t count, ferry_error *error) {
    dir->cp->shards = ARENA_ARRAY(&dir->cp->arena, Shard, count);
    dir->files = ARENA_ARRAY(&dir->cp->arena, SafeTensors, count);
    bool failed = !dir->cp->shards || !dir->files;
    return failed ? error_memory(error, dir->cp->directory, 0) : FERRY_OK;
}

static ferry_status open_shard(Directory *dir, const char *name, ferry_error *error) {
    Checkpoint *cp = dir->cp;
    SafeTensors *file = &dir->files[cp->shard_count];
    const char *path = path_join(&cp->arena, cp->directory, name);
    TRY(safetensors_open(path, &cp->arena, file, error));
    map_free(&file->by_name);
    cp->shards[cp->shard_count++] = (Shard){arena_string(&cp->arena, name), file->file};
    return FERRY_OK;
}

/* Open every distinct file of the weight map, in order of appearance. */
static ferry_status open_shards(Directory *dir, const char *path, json_t *weight_map,
                                ferry_error *error) {
    Checkpoint *cp = dir->cp;
    Map seen = {0};
    ferry_status status = FERRY_OK;
    const char *tensor;
    json_t *file;
    TRY(allocate(dir, json_object_size(weight_map), error));
    json_object_foreach(weight_map, tensor, file) {
        const char *name = json_string_value(file);
        if (!name || !path_is_contained(name)) {
            status =
                error_set(error, FERRY_BAD_FORMAT, path,
                          "\"weight_map\": \"%s\" must name a file inside the directory, found "
                          "%s%s",
                          tensor, name ? "" : json_kind(file), name ? name : "");
            break;
        }
        if (map_find(&seen, name)) continue;
        status = open_shard(dir, name, error);
        if (status == FERRY_NOT_FOUND) {
            status = error_set(error, FERRY_NOT_FOUND, path,
                               "the shard \"%s\", which holds \"%s\", is not in %s: fetch it", name,
                               tensor, cp->directory);
        }
        if (status != FERRY_OK) break;
        map_put(&seen, name, &cp->shards[cp->shard_count - 1]);
    }
    map_free(&seen);
    return status;
}

/* Collect the tensors of all shards; each name may occur once. */
static ferry_status collect_tensors(Directory *dir, ferry_error *error) {
    Checkpoint *cp = dir->cp;
    size_t total = 0;
    for (size_t s = 0; s < cp->shard_count; s++) total += dir->files[s].count;
    cp->tensors = ARENA_ARRAY(&cp->arena, CheckpointTensor, total);
    if (!cp->tensors) return error_memory(error, cp->directory, 0);
    for (size_t s = 0; s < cp->shard_count; s++) {
        for (size_t i = 0; i < dir->files[s].count; i++) {
            const SafeTensor *tensor = &dir->files[s].items[i];
            CheckpointTensor *entry = &cp->tensors[cp->tensor_count++];
            *entry = (CheckpointTensor){.name = tensor->name,
                                        .storage = dtype_safetensors_name(tensor->dtype),
                                        .dtype = tensor->dtype,
                                        .rank = tensor->rank,
                                        .shard = &cp->shards[s],
                                        .offset = tensor->offset,
                                        .size = tensor->size};
            memcpy(entry->shape, tensor->shape, sizeof entry->shape);
            const CheckpointTensor *twin = checkpoint_find(cp, entry->name);
            if (twin) {
                return error_set(error, FERRY_BAD_FORMAT, cp->directory,
                                 "the tensor \"%s\" is in two shards: %s and %s", entry->name,
                                 twin->shard->name, entry->shard->name);
            }
            map_put(&cp->by_name, entry->name, entry);
        }
    }
    return cp->by_name.failed ? error_memory(error, cp->directory, 0) : FERRY_OK;
}

/* Every tensor must be in the shard that the index names. */
static ferry_status check_index(const Checkpoint *cp, const char *path, json_t *weight_map,
                                ferry_error *error) {
    const char *name;
    json_t *file;
    json_object_foreach(weight_map, name, file) {
        const CheckpointTensor *found = checkpoint_find(cp, name);
        if (found && strcmp(found->shard->name, json_string_value(file)) == 0) continue;
        return error_set(error, FERRY_BAD_FORMAT, path,
                         "the index says that \"%s\" is in %s, but it is %s%s", name,
                         json_string_value(file), found ? "in " : "in no shard",
                         found ? found->shard->name : "");
    }
    return FERRY_OK;
}

static ferry_status open_indexed(Directory *dir, const char *path, ferry_error *error) {
    json_t *index;
    TRY(json_read_object(path, &index, error));
    json_t *weight_map = json_object_get(index, "weight_map");
    ferry_status status = FERRY_OK;
    if (!json_is_object(weight_map)) {
        status =
            error_set(error, FERRY_BAD_FORMAT, path,
                      "expected \"weight_map\" to be an object, found %s", json_kind(weight_map));
    }
    if (status == FERRY_OK) status = open_shards(dir, path, weight_map, error);
    if (status == FERRY_OK) status = collect_tensors(dir, error);
    if (status == FERRY_OK) status = check_index(dir->cp, path, weight_map, error);
    json_decref(index);
    return status;
}

static ferry_status open_weights(Checkpoint *cp, ferry_error *error) {
    Directory dir = {.cp = cp};
    const char *single = path_join(&cp->arena, cp->directory, WEIGHTS);
    const char *index = path_join(&cp->arena, cp->directory, INDEX);
    if (path_exists(single)) {
        TRY(allocate(&dir, 1, error));
        TRY(open_shard(&dir, WEIGHTS, error));
        return collect_tensors(&dir, error);
    }
    if (path_exists(index)) return open_indexed(&dir, index, error);
    const char *pickle = path_join(&cp->arena, cp->directory, "pytorch_model.bin");
    if (path_exists(pickle)) {
        return error_set(error, FERRY_UNSUPPORTED, pickle,
                         "the weights are a Python pickle, which ferry never executes: save the "
                         "model again with save_pretrained, which writes safetensors");
    }
    return error_set(error, FERRY_NOT_FOUND, cp->directory, "found neither %s nor %s", WEIGHTS,
                     INDEX);
}

static ferry_status open_config(Checkpoint *cp, ferry_error *error) {
    const char *path = cp->config_path = path_join(&cp->arena, cp->directory, "config.json");
    if (!path_is_directory(cp->directory)) {
        return error_set(error, FERRY_NOT_FOUND, cp->directory,
                         "expected a checkpoint directory with config.json and model.safetensors, "
                         "or a GGUF file");
    }
    TRY(json_read_object(path, &cp->config, error));
    const char *model_type = json_string_value(json_object_get(cp->config, "model_type"));
    if (!model_type) {
        return error_set(error, FERRY_BAD_FORMAT, path,
                         "expected \"model_type\" to be a string, found %s",
                         json_kind(json_object_get(cp->config, "model_type")));
    }
    cp->model_type = model_type;
    return FERRY_OK;
}

ferry_status directory_open(Checkpoint *cp, ferry_error *error) {
    TRY(open_config(cp, error));
    return open_weights(cp, error);
}
