/* Opened models. */
#include "base/error.h"
#include "export/export.h"

#include <stdlib.h>

ferry_status ferry_model_open(const char *path, ferry_model **out, ferry_error *error) {
    error_clear(error);
    *out = NULL;
    ferry_model *model = calloc(1, sizeof *model);
    if (!model) return error_memory(error, path, sizeof *model);
    ferry_status status = checkpoint_open(path, &model->checkpoint, error);
    if (status == FERRY_OK)
        *out = model;
    else
        free(model);
    return status;
}

void ferry_model_close(ferry_model *model) {
    if (!model) return;
    checkpoint_close(model->checkpoint);
    free(model);
}

const char *ferry_model_type(const ferry_model *model) {
    return model->checkpoint->model_type;
}

size_t ferry_model_weight_count(const ferry_model *model) {
    return model->checkpoint->tensor_count;
}

bool ferry_model_weight(const ferry_model *model, size_t index, ferry_weight *out) {
    if (index >= model->checkpoint->tensor_count) return false;
    const CheckpointTensor *entry = &model->checkpoint->tensors[index];
    *out = (ferry_weight){.name = entry->tensor->name,
                          .file = entry->shard->name,
                          .dtype = entry->tensor->dtype,
                          .rank = entry->tensor->rank,
                          .shape = entry->tensor->shape,
                          .bytes = entry->tensor->size};
    return true;
}
