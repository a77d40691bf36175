/* The targets: which legalization, which writer, which names. */
#include "target/dynamo/dynamo.h"
#include "target/executorch/executorch.h"
#include "target/openvino/openvino.h"
#include "target/signature.h"
#include "base/error.h"
#include "export/export.h"

#include <string.h>

static bool report_progress(void *context, uint64_t done, uint64_t total) {
    const ferry_export_config *config = context;
    return config->progress && config->progress(config->progress_context, done, total);
}

/* ---- onnx ---- */

static ferry_status legalize_onnx(Program *program, const Registry *registry,
                                  const ferry_export_config *config, ferry_error *error) {
    const OnnxOptions options = {.registry = registry, .opset = config->opset};
    return onnx_legalize(program, &options, error);
}

/* ONNX Runtime's CPU provider has float32 kernels for everything and casts float16 around them; it has
 * none for bfloat16 or float8. */
static ferry_dtype choose_dtype_onnx(const ferry_export_config *config, ferry_dtype wanted,
                                     ferry_dtype stored, const char **note) {
    (void)config;
    *note = wanted == FERRY_BF16
                ? "bfloat16: ONNX Runtime's CPU provider lacks kernels for it and will refuse the "
                  "model; other providers may not"
                : NULL;
    if (wanted) return wanted;
    if (stored == FERRY_F32 || stored == FERRY_F16 || stored == FERRY_F64) return stored;
    *note = stored == FERRY_BF16
                ? "the checkpoint is bfloat16, which ONNX Runtime's CPU provider cannot execute: "
                  "exporting in float32 (--dtype chooses another)"
                : "the checkpoint is float8: exporting in float32 (--dtype chooses another)";
    return FERRY_F32;
}

static ferry_status write_onnx(Save *save) {
    ferry_exported *exported = save->exported;
    const ferry_export_config *config = &exported->config;
    OnnxOptions options = {.registry = exported_registry(exported),
                           .opset = config->opset,
                           .link = config->weights == FERRY_WEIGHTS_LINK,
                           .directory = save->directory,
                           .data_name = save_sibling(save, NULL, ".data"),
                           .shared = &save->shared,
                           .progress_context = (void *)(uintptr_t)config};
    if (config->progress) options.progress = report_progress;
    ferry_status status = FERRY_OK;
    OutputFile *data = NULL;
    uint64_t size = onnx_data_size(exported->program, &options);
    /* Transformers expects the file of a component even if all its weights are another's. */
    bool others = save->shared.by_start.count > 0;
    if (size || others) data = save_open(save, options.data_name, size, &status);
    if (status != FERRY_OK) return status;
    OutputFile *model = save_open(save, exported->manifest.file, 0, &status);
    if (!model) return status;
    /* A thread costs more than the copying of a few mebibytes. */
    if (size > 8 << 20) options.pool = pool_new(config->threads);
    OnnxSizes sizes;
    status = onnx_write(exported->program, &options, model, data, &sizes, save->error);
    pool_free(options.pool);
    save->sizes = (ferry_export_sizes){.graph_bytes = sizes.model_bytes,
                                       .weight_bytes = sizes.data_bytes,
                                       .nodes = sizes.nodes,
                                       .weights = sizes.initializers};
    return status;
}

/* ---- torch.export ---- */

static ferry_status legalize_dynamo(Program *program, const Registry *registry,
                                    const ferry_export_config *config, ferry_error *error) {
    (void)config;
    return dynamo_legalize(program, registry, error);
}

static ferry_dtype choose_dtype_dynamo(const ferry_export_config *config, ferry_dtype wanted,
                                       ferry_dtype stored, const char **note) {
    (void)config;
    *note = NULL;
    if (wanted) return wanted;
    if (stored == FERRY_F32 || stored == FERRY_F16 || stored == FERRY_BF16 || stored == FERRY_F64)
        return stored;
    *note = "the checkpoint is float8: exporting in float32 (--dtype chooses another)";
    return FERRY_F32;
}

static ferry_status write_dynamo(Save *save) {
    ferry_exported *exported = save->exported;
    const DynamoOptions options = {.deferred_asserts = exported->config.deferred_asserts,
                                   .progress = report_progress,
                                   .progress_context = (void *)(uintptr_t)&exported->config};
    ferry_status status;
    OutputFile *file = save_open(save, exported->manifest.file, 0, &status);
    DynamoSizes sizes = {0};
    if (file) status = dynamo_write(exported->program, &options, file, &sizes, save->error);
    save->sizes = (ferry_export_sizes){.graph_bytes = sizes.graph_bytes,
                                       .weight_bytes = sizes.weight_bytes,
                                       .nodes = sizes.nodes,
                                       .weights = sizes.weights};
    return status;
}

static const char *port_input(Program *program, size_t index) {
    return program->inputs.items[index].name;
}

static const char *port_output(Program *program, size_t index) {
    return program->outputs.items[index].name;
}

/* ---- openvino ---- */

static OpenvinoOptions openvino_options(const ferry_export_config *config) {
    return (OpenvinoOptions){.link = config->weights == FERRY_WEIGHTS_LINK,
                             .compress_to_fp16 = config->compress_to_fp16,
                             .stateless = config->stateless};
}

static ferry_status legalize_openvino(Program *program, const Registry *registry,
                                      const ferry_export_config *config, ferry_error *error) {
    const OpenvinoOptions options = openvino_options(config);
    return openvino_legalize(program, registry, &options, error);
}

/* Weights in half precision stay that way in the file, whatever is computed in. */
static ferry_dtype choose_dtype_openvino(const ferry_export_config *config, ferry_dtype wanted,
                                         ferry_dtype stored, const char **note) {
    (void)config;
    *note = NULL;
    if (wanted) return wanted;
    return stored == FERRY_F64 ? FERRY_F64 : FERRY_F32;
}

static ferry_status write_openvino(Save *save) {
    const char *bin_name = save_sibling(save, ".xml", ".bin");
    ferry_exported *exported = save->exported;
    const ferry_export_config *config = &exported->config;
    OpenvinoOptions options = openvino_options(config);
    options.progress_context = (void *)(uintptr_t)config;
    if (config->progress) options.progress = report_progress;
    ferry_status status = FERRY_OK;
    OutputFile *bin = NULL;
    if (options.link) {
        const MappedFile *file;
        TRY(openvino_linked_file(exported->program, &file, save->error));
        TRY(save_link(save, bin_name, file));
    } else {
        uint64_t size = openvino_bin_size(exported->program, &options);
        bin = save_open(save, bin_name, size, &status);
        if (!bin) return status;
        if (size > 8 << 20) options.pool = pool_new(config->threads);
    }
    OpenvinoSizes sizes;
    OutputFile *xml = save_open(save, exported->manifest.file, 0, &status);
    if (xml) status = openvino_write(exported->program, &options, xml, bin, &sizes, save->error);
    pool_free(options.pool);
    if (status != FERRY_OK) return status;
    save->sizes = (ferry_export_sizes){.graph_bytes = sizes.xml_bytes,
                                       .weight_bytes = sizes.bin_bytes,
                                       .nodes = sizes.layers,
                                       .weights = sizes.weights};
    return FERRY_OK;
}

/* ---- executorch ---- */

static ExecutorchOptions executorch_options(const ferry_export_config *config) {
    const char *backend = config->backend;
    return (ExecutorchOptions){.backend = executorch_backend(backend ? backend : "xnnpack"),
                               .unplanned_inputs = config->unplanned_inputs,
                               .unplanned_outputs = config->unplanned_outputs,
                               .unplanned_states = config->unplanned_buffers};
}

static ferry_status legalize_executorch(Program *program, const Registry *registry,
                                        const ferry_export_config *config, ferry_error *error) {
    const ExecutorchOptions options = executorch_options(config);
    return executorch_legalize(program, registry, &options, error);
}

static ferry_status finish_executorch(Program *program, const ferry_export_config *config,
                                      ferry_error *error) {
    const char *caps;
    TRY(executorch_bound(program, &caps, error));
    if (!caps || !config->note) return FERRY_OK;
    const char *text = arena_format(&program->arena,
                                    "sizes without a bound were given one, for which memory is "
                                    "planned: %s (--dynamic-shapes gives others)",
                                    caps);
    config->note(config->note_context, text);
    return program_health(program, error);
}

/* XNNPACK has no kernels for bfloat16; MLX has. */
static ferry_dtype choose_dtype_executorch(const ferry_export_config *config, ferry_dtype wanted,
                                           ferry_dtype stored, const char **note) {
    *note = NULL;
    if (wanted) return wanted;
    const char *backend = config->backend;
    if (stored == FERRY_BF16 && backend && strcmp(backend, "mlx") == 0) return stored;
    if (stored == FERRY_F32 || stored == FERRY_F16 || stored == FERRY_F64) return stored;
    *note = stored == FERRY_BF16 ? "the checkpoint is bfloat16, which XNNPACK does not compute in: "
                                   "exporting in float32 (--dtype chooses another)"
                                 : "the checkpoint is float8: exporting in float32 (--dtype "
                                   "chooses another)";
    return FERRY_F32;
}

static ferry_status write_executorch(Save *save) {
    ferry_exported *exported = save->exported;
    const ferry_export_config *config = &exported->config;
    ExecutorchOptions options = executorch_options(config);
    options.progress_context = (void *)(uintptr_t)config;
    if (config->progress) options.progress = report_progress;
    ferry_status status;
    OutputFile *file = save_open(save, exported->manifest.file, 0, &status);
    if (!file) return status;
    options.pool = pool_new(config->threads);
    ExecutorchSizes sizes;
    status = executorch_write(exported->program, &options, file, &sizes, save->error);
    pool_free(options.pool);
    save->sizes = (ferry_export_sizes){.graph_bytes = sizes.program_bytes,
                                       .weight_bytes = sizes.weight_bytes,
                                       .nodes = sizes.instructions,
                                       .weights = sizes.weights};
    return status;
}

static const ExportTarget targets[] = {
    {.name = "onnx",
     .prefix = "",
     .suffix = ".onnx",
     .legalize = legalize_onnx,
     .choose_dtype = choose_dtype_onnx,
     .write = write_onnx,
     .input_name = signature_input,
     .output_name = signature_output},
    {.name = "dynamo",
     .prefix = "",
     .suffix = ".pt2",
     .keeps_weights = true,
     .legalize = legalize_dynamo,
     .choose_dtype = choose_dtype_dynamo,
     .write = write_dynamo,
     .input_name = port_input,
     .output_name = port_output},
    {.name = "openvino",
     .prefix = "openvino_",
     .suffix = ".xml",
     .keeps_caches = true,
     .legalize = legalize_openvino,
     .choose_dtype = choose_dtype_openvino,
     .write = write_openvino,
     .input_name = signature_input,
     .output_name = signature_output},
    {.name = "executorch",
     .prefix = "",
     .suffix = ".pte",
     .legalize = legalize_executorch,
     .finish = finish_executorch,
     .choose_dtype = choose_dtype_executorch,
     .write = write_executorch,
     .input_name = port_input,
     .output_name = port_output},
};

const ExportTarget *target_find(const char *name) {
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        if (strcmp(targets[i].name, name) == 0) return &targets[i];
    }
    return NULL;
}
