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

/* ---- several programs ---- */

/* Is it what a torch.export exporter wrote, and no checkpoint besides? */
static bool is_export(Arena *arena, const char *path) {
    return path_exists(path_join(arena, path, "export.json")) &&
           !path_exists(path_join(arena, path, "model.safetensors")) &&
           !path_exists(path_join(arena, path, "model.safetensors.index.json"));
}

static ferry_status open_component(ferry_model *model, const char *path, const char *name,
                                   const json_t *entry, ferry_error *error) {
    const char *file = json_string_value(json_object_get(entry, "file"));
    if (!file || !path_is_contained(file)) {
        return error_set(error, FERRY_BAD_FORMAT, path,
                         "component \"%s\": expected \"file\" to name a file inside the directory",
                         name);
    }
    size_t index = model->component_count;
    TRY(ferry_model_open(path_join(&model->arena, path, file), &model->components[index], error));
    model->component_names[index] = arena_string(&model->arena, name);
    model->component_count++;
    return FERRY_OK;
}

static ferry_status open_components(ferry_model *model, const char *path, ferry_error *error) {
    const char *name;
    json_t *json, *entry;
    TRY(json_read_object(path_join(&model->arena, path, "export.json"), &json, error));
    json_t *components = json_object_get(json, "components");
    const char *format = json_string_value(json_object_get(json, "export_format"));
    size_t count = json_object_size(components);
    ferry_status status = FERRY_OK;
    model->components = ARENA_ARRAY(&model->arena, ferry_model *, count + 1);
    model->component_names = ARENA_ARRAY(&model->arena, const char *, count + 1);
    if (!format || strcmp(format, "dynamo") != 0 || count == 0) {
        status = error_set(error, FERRY_UNSUPPORTED, path,
                           "an export to %s is not a source: export the checkpoint it was made of, "
                           "or its torch.export programs",
                           format ? format : "an unknown format");
    } else if (model->arena.failed) {
        status = error_memory(error, path, 0);
    }
    json_object_foreach(components, name, entry) {
        if (status == FERRY_OK) status = open_component(model, path, name, entry, error);
    }
    json_decref(json);
    return status;
}

ferry_status model_component(ferry_model *model, const char *name, ferry_model **out,
                             ferry_error *error) {
    *out = model;
    if (model->component_count == 0) return FERRY_OK;
    for (size_t i = 0; i < model->component_count; i++) {
        *out = model->components[i];
        if (name ? !strcmp(model->component_names[i], name) : model->component_count == 1)
            return FERRY_OK;
    }
    if (name) {
        return error_set(error, FERRY_NOT_FOUND, model->directory, "there is no component \"%s\"",
                         name);
    }
    return error_set(error, FERRY_INVALID_ARGUMENT, model->directory,
                     "there are %zu components: export all of them (--generation), or choose one "
                     "(--component)",
                     model->component_count);
}

/* ---- opening ---- */

static ferry_status open_source(ferry_model *model, const char *path, ferry_error *error) {
    if (pt2_probe(path)) {
        model->directory = folder(&model->arena, path);
        TRY(pt2_open(path, &model->pt2, error));
        return list_pt2(model, error);
    }
    model->directory = arena_string(&model->arena, path);
    if (is_export(&model->arena, path)) return open_components(model, path, error);
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
    for (size_t i = 0; i < model->component_count; i++) ferry_model_close(model->components[i]);
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
