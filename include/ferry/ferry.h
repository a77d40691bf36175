/* tensorferry: export pretrained transformer models to the runtimes that run them.
 *
 * The whole of it, in order:
 *
 *     ferry_model *model;
 *     ferry_exported *exported;
 *     ferry_export_config config;
 *     ferry_error error;
 *     ferry_export_config_init(&config);
 *     if (ferry_model_open("my-model", &model, &error) != FERRY_OK) ...
 *     if (ferry_export(model, &config, &exported, &error) != FERRY_OK) ...
 *     if (ferry_exported_save(exported, "my-model-onnx", NULL, &error) != FERRY_OK) ...
 *     ferry_exported_free(exported);
 *     ferry_model_close(model);
 *
 * Every function that can fail returns a ferry_status and fills the caller's ferry_error. Nothing
 * prints, exits or aborts. Handles may be used by one thread at a time; different handles by
 * different threads at once. */
#ifndef FERRY_FERRY_H
#define FERRY_FERRY_H

#include <ferry/dtype.h>
#include <ferry/export.h>
#include <ferry/exported.h>
#include <ferry/generation.h>
#include <ferry/info.h>
#include <ferry/media.h>
#include <ferry/model.h>
#include <ferry/plugin.h>
#include <ferry/status.h>
#include <ferry/tensor.h>
#include <ferry/text.h>

#endif
