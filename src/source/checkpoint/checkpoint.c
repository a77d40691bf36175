#include "source/checkpoint/checkpoint.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

static const char WEIGHTS[] = "model.safetensors";
static const char INDEX[] = "model.safetensors.index.json";

static ferry_status open_shard(Checkpoint *cp, const char *name, ferry_error *error) {
    Shard *shard = &cp->shards[cp->shard_count];
    shard->name = arena_string(&cp->arena, name);
    const char *path = path_join(&cp->arena, cp->directory, name);
    TRY(safetensors_open(path, &cp->arena, &shard->tensors, error));
    cp->shard_count++;
    return FERRY_OK;
}

/* Open every distinct file of the weight map, in order of appearance. */
static ferry_status open_shards(Checkpoint *cp, const char *path, json_t *weight_map,
                                ferry_error *error) {
    Map seen = {0};
    ferry_status status = FERRY_OK;
    const char *tensor;
    json_t *file;
    cp->shards = ARENA_ARRAY(&cp->arena, Shard, json_object_size(weight_map));
    if (!cp->shards) return error_memory(error, path, 0);
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
        status = open_shard(cp, name, error);
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
static ferry_status collect_tensors(Checkpoint *cp, ferry_error *error) {
    size_t total = 0;
    for (size_t s = 0; s < cp->shard_count; s++) total += cp->shards[s].tensors.count;
    cp->tensors = ARENA_ARRAY(&cp->arena, CheckpointTensor, total);
    if (!cp->tensors) return error_memory(error, cp->directory, 0);
    for (size_t s = 0; s < cp->shard_count; s++) {
        const Shard *shard = &cp->shards[s];
        for (size_t i = 0; i < shard->tensors.count; i++) {
            CheckpointTensor *entry = &cp->tensors[cp->tensor_count++];
            *entry = (CheckpointTensor){&shard->tensors.items[i], shard};
            const CheckpointTensor *twin = checkpoint_find(cp, entry->tensor->name);
            if (twin) {
                return error_set(error, FERRY_BAD_FORMAT, cp->directory,
                                 "the tensor \"%s\" is in two shards: %s and %s",
                                 entry->tensor->name, twin->shard->name, shard->name);
            }
            map_put(&cp->by_name, entry->tensor->name, entry);
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

static ferry_status open_indexed(Checkpoint *cp, const char *path, ferry_error *error) {
    json_t *index;
    TRY(json_read_object(path, &index, error));
    json_t *weight_map = json_object_get(index, "weight_map");
    ferry_status status = FERRY_OK;
    if (!json_is_object(weight_map)) {
        status =
            error_set(error, FERRY_BAD_FORMAT, path,
                      "expected \"weight_map\" to be an object, found %s", json_kind(weight_map));
    }
    if (status == FERRY_OK) status = open_shards(cp, path, weight_map, error);
    if (status == FERRY_OK) status = collect_tensors(cp, error);
    if (status == FERRY_OK) status = check_index(cp, path, weight_map, error);
    json_decref(index);
    return status;
}

static ferry_status open_weights(Checkpoint *cp, ferry_error *error) {
    const char *single = path_join(&cp->arena, cp->directory, WEIGHTS);
    const char *index = path_join(&cp->arena, cp->directory, INDEX);
    if (path_exists(single)) {
        cp->shards = ARENA_ARRAY(&cp->arena, Shard, 1);
        if (!cp->shards) return error_memory(error, single, 0);
        TRY(open_shard(cp, WEIGHTS, error));
        return collect_tensors(cp, error);
    }
    if (path_exists(index)) return open_indexed(cp, index, error);
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
    const char *path = path_join(&cp->arena, cp->directory, "config.json");
    if (!path_is_directory(cp->directory)) {
        return error_set(error, FERRY_NOT_FOUND, cp->directory,
                         "expected a checkpoint directory with config.json and model.safetensors");
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

ferry_status checkpoint_open(const char *directory, Checkpoint **out, ferry_error *error) {
    Checkpoint *cp = calloc(1, sizeof *cp);
    *out = NULL;
    if (!cp) return error_memory(error, directory, sizeof *cp);
    cp->directory = arena_string(&cp->arena, directory);
    ferry_status status = open_config(cp, error);
    if (status == FERRY_OK) status = open_weights(cp, error);
    if (status == FERRY_OK && cp->arena.failed) status = error_memory(error, directory, 0);
    if (status == FERRY_OK)
        *out = cp;
    else
        checkpoint_close(cp);
    return status;
}

void checkpoint_close(Checkpoint *cp) {
    if (!cp) return;
    for (size_t s = 0; s < cp->shard_count; s++) safetensors_close(&cp->shards[s].tensors);
    json_decref(cp->config);
    map_free(&cp->by_name);
    arena_free(&cp->arena);
    free(cp);
}

const CheckpointTensor *checkpoint_find(const Checkpoint *cp, const char *name) {
    return map_find(&cp->by_name, name);
}

ferry_dtype checkpoint_dtype(const Checkpoint *checkpoint) {
    for (size_t i = 0; i < checkpoint->tensor_count; i++) {
        ferry_dtype dtype = checkpoint->tensors[i].tensor->dtype;
        if (ferry_dtype_is_float(dtype)) return dtype;
    }
    return FERRY_F32;
}
