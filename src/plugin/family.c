/* Building models from checkpoints, for plug-ins. */
#include "plugin/plugin.h"
#include "source/checkpoint/model.h"

ferry_builder *ferry_family_builder(ferry_family_model *model) {
    return &model->b;
}

int64_t ferry_config_int(ferry_family_model *model, const char *key) {
    return config_int(model, key);
}

int64_t ferry_config_int_or(ferry_family_model *model, const char *key, int64_t otherwise) {
    return config_int_or(model, key, otherwise);
}

double ferry_config_float_or(ferry_family_model *model, const char *key, double otherwise) {
    return config_float_or(model, key, otherwise);
}

bool ferry_config_bool_or(ferry_family_model *model, const char *key, bool otherwise) {
    return config_bool_or(model, key, otherwise);
}

const char *ferry_config_string_or(ferry_family_model *model, const char *key,
                                   const char *otherwise) {
    return config_string_or(model, key, otherwise);
}

ferry_value *ferry_family_weight(ferry_family_model *model, const char *name, size_t rank,
                                 const int64_t *shape) {
    return model_weight(model, (uint32_t)rank, shape, "%s", name);
}

ferry_value *ferry_family_linear(ferry_family_model *model, ferry_value *x, int64_t out, bool bias,
                                 const char *name) {
    return model_linear(model, x, out, bias, "%s", name);
}

ferry_value *ferry_family_layer_norm(ferry_family_model *model, ferry_value *x, bool bias,
                                     double eps, const char *name) {
    return model_layer_norm(model, x, bias, eps, "%s", name);
}

const char *ferry_family_task(const ferry_family_model *model) {
    return task_name(model->task);
}

ferry_value *ferry_family_head_linear(ferry_family_model *model, ferry_value *x, int64_t out,
                                      bool bias, const char *name) {
    return model_head_linear(model, x, out, bias, name);
}

ferry_value *ferry_family_activation(ferry_family_model *model, ferry_value *x, const char *name) {
    return model_activation(model, x, name);
}

ferry_value *ferry_family_embed(ferry_family_model *model, ferry_value *table) {
    return model_embed_inputs(model, table, NULL);
}

ferry_value *ferry_family_padding_mask(ferry_family_model *model) {
    return model_padding_mask(model);
}

void ferry_family_output(ferry_family_model *model, const char *type, const char *key,
                         ferry_value *value) {
    model_output_one(model, type, key, value);
}
