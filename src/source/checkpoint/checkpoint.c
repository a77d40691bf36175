#include "source/checkpoint/checkpoint.h"
#include "base/dtype.h"
#include "base/error.h"
#include "source/checkpoint/open.h"

#include <stdlib.h>
#include <string.h>

bool checkpoint_probe(const char *path) {
    return path_is_directory(path) || gguf_probe(path);
}

ferry_status checkpoint_open(const char *path, Checkpoint **out, ferry_error *error) {
    Checkpoint *cp = calloc(1, sizeof *cp);
    *out = NULL;
    if (!cp) return error_memory(error, path, sizeof *cp);
    cp->directory = arena_string(&cp->arena, path);
    bool is_file = !path_is_directory(path) && gguf_probe(path);
    ferry_status status = is_file ? gguf_checkpoint_open(cp, error) : directory_open(cp, error);
    if (status == FERRY_OK && cp->arena.failed) status = error_memory(error, path, 0);
    if (status == FERRY_OK)
        *out = cp;
    else
        checkpoint_close(cp);
    return status;
}

void checkpoint_close(Checkpoint *cp) {
    if (!cp) return;
    if (cp->gguf) gguf_free(cp->gguf);
    for (size_t s = 0; s < cp->shard_count; s++) file_unmap(&cp->shards[s].file);
    json_decref(cp->config);
    map_free(&cp->by_name);
    arena_free(&cp->arena);
    free(cp);
}

const CheckpointTensor *checkpoint_find(const Checkpoint *cp, const char *name) {
    return map_find(&cp->by_name, name);
}

/* The same with 1 subtracted. This is done for norms, which are small: at once, in memory. */
static const Recipe *minus_one(Arena *arena, const Recipe *recipe) {
    uint64_t count = recipe_count(recipe);
    float *values = ARENA_ARRAY(arena, float, count);
    recipe = recipe_cast(arena, recipe, FERRY_F32);
    if (!values || !recipe) return NULL;
    recipe_read(recipe, 0, count, values);
    for (uint64_t i = 0; i < count; i++) values[i] -= 1;
    return recipe_bytes(arena, values, FERRY_F32, recipe->rank, recipe->shape);
}

const Recipe *checkpoint_recipe(Arena *arena, const CheckpointTensor *tensor) {
    const MappedFile *file = &tensor->shard->file;
    const Recipe *recipe =
        tensor->blocks
            ? recipe_blocks(arena, file, tensor->offset, tensor->blocks, tensor->rank,
                            tensor->shape)
            : recipe_file(arena, file, tensor->offset, tensor->dtype, tensor->rank, tensor->shape);
    if (recipe && tensor->zipped) recipe = recipe_unzip(arena, recipe, tensor->zipped);
    return recipe && tensor->plus_one ? minus_one(arena, recipe) : recipe;
}

/* Compares in blocks, so that two large tensors are not in memory at once. */
bool checkpoint_same(const CheckpointTensor *a, const CheckpointTensor *b) {
    const uint64_t block = 1 << 22, size = a->size;
    const MappedFile *left = &a->shard->file, *right = &b->shard->file;
    bool same = a->storage == b->storage && b->size == size && a->zipped == b->zipped &&
                a->plus_one == b->plus_one;
    for (uint64_t i = 0; i < size && same; i += block) {
        uint64_t from = a->offset + i, to = b->offset + i;
        uint64_t length = size - i < block ? size - i : block;
        same = memcmp(left->bytes + from, right->bytes + to, length) == 0;
        file_forget(left, from, length);
        file_forget(right, to, length);
    }
    return same;
}

ferry_dtype checkpoint_dtype(const Checkpoint *checkpoint) {
    for (size_t i = 0; i < checkpoint->tensor_count && !checkpoint->gguf; i++) {
        ferry_dtype dtype = checkpoint->tensors[i].dtype;
        if (ferry_dtype_is_float(dtype)) return dtype;
    }
    return FERRY_F32;
}
