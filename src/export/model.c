/* Opened models: checkpoints and torch.export programs. */
#include "base/dtype.h"
#include "base/error.h"
#include "export/export.h"
#include "source/pt2/schema.h"

#include <stdlib.h>
#include <string.h>

static ferry_status list_checkpoint(ferry_model *model, ferry_error *error) {
    const Checkpoint *checkpoint = model->checkpoint;
    model->weights = ARENA_ARRAY(&model->arena, ferry_weight, checkpoint->tensor_count);
    if (!model->weights) return error_memory(error, checkpoint->directory, 0);
    for (size_t i = 0; i < checkpoint->tensor_count; i++) {
        const CheckpointTensor *entry = &checkpoint->tensors[i];
        model->weights[model->weight_count++] =
            (ferry_weight){.name = entry->name,
                           .file = entry->shard->name,
                           .dtype = entry->dtype,
                           .blocks = entry->blocks ? entry->blocks->name : NULL,
                           .rank = entry->rank,
                           .shape = entry->shape,
                           .bytes = entry->size};
    }
    return FERRY_OK;
}

/* One entry of a payload configuration: {"path_name": .., "tensor_meta": {..}}. */
static void list_payload(ferry_model *model, SymTable *symbols, const char *name,
                         const Doc *payload) {
    TensorMeta meta;
    const char *file = doc_text(doc_get(payload, "path_name"));
    int64_t *shape = ARENA_ARRAY(&model->arena, int64_t, FERRY_MAX_RANK);
    if (!shape || schema_tensor(symbols, doc_get(payload, "tensor_meta"), name, &meta, NULL))
        return;
    uint64_t bytes = ferry_dtype_size(meta.dtype);
    for (uint32_t d = 0; d < meta.rank; d++) {
        shape[d] = meta.sizes[d]->value;
        bytes *= (uint64_t)shape[d];
    }
    model->weights[model->weight_count++] = (ferry_weight){.name = name,
                                                           .file = file ? file : "",
                                                           .dtype = meta.dtype,
                                                           .rank = meta.rank,
                                                           .shape = shape,
                                                           .bytes = bytes};
}

static ferry_status list_pt2(ferry_model *model, ferry_error *error) {
    SymTable symbols;
    const char *name;
    const Doc *payload;
    sym_table_init(&symbols, &model->arena);
    model->weights = ARENA_ARRAY(&model->arena, ferry_weight, doc_count(model->pt2->weights));
    if (!model->weights) return error_memory(error, model->pt2->path, 0);
    DOC_EACH_MEMBER(model->pt2->weights, name, payload)
    list_payload(model, &symbols, name, payload);
    sym_table_free(&symbols);
    return FERRY_OK;
}

/* The folder of a file. */
static const char *folder(Arena *arena, const char *path) {
    const char *base = path_base(path);
    if (base == path) return ".";
    return arena_string_n(arena, path, base - path > 1 ? (size_t)(base - path) - 1 : 1);
}

static ferry_status open_source(ferry_model *model, const char *path, ferry_error *error) {
    if (pt2_probe(path)) {
        model->directory = folder(&model->arena, path);
        TRY(pt2_open(path, &model->pt2, error));
        return list_pt2(model, error);
    }
    model->directory = arena_string(&model->arena, path);
    TRY(checkpoint_open(path, &model->checkpoint, error));
    return list_checkpoint(model, error);
}

ferry_status ferry_model_open(const char *path, ferry_model **out, ferry_error *error) {
    error_clear(error);
    *out = NULL;
    ferry_model *model = calloc(1, sizeof *model);
    if (!model) return error_memory(error, path, sizeof *model);
    ferry_status status = open_source(model, path, error);
    if (status == FERRY_OK)
        *out = model;
    else
        ferry_model_close(model);
    return status;
}

void ferry_model_close(ferry_model *model) {
    if (!model) return;
    checkpoint_close(model->checkpoint);
    pt2_close(model->pt2);
    arena_free(&model->arena);
    free(model);
}

const char *ferry_model_type(const ferry_model *model) {
    return model->checkpoint ? model->checkpoint->model_type : "torch.export";
}

size_t ferry_model_weight_count(const ferry_model *model) {
    return model->weight_count;
}

bool ferry_model_weight(const ferry_model *model, size_t index, ferry_weight *out) {
    if (index >= model->weight_count) return false;
    *out = model->weights[index];
    return true;
}
