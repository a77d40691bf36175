/* Exporting: build the program, then the passes, in the order in which they are listed. */
#include "base/error.h"
#include "export/export.h"
#include "pass/pass.h"
#include "plugin/plugin.h"
#include "run/reference.h"
#include "target/executorch/executorch.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void ferry_export_config_init(ferry_export_config *config) {
    *config = (ferry_export_config){.size = sizeof *config, .target = "onnx"};
}

/* Everything a step needs. */
typedef struct Export {
    ferry_exported *exported;
    const ferry_export_config *config;
    const Registry *registry;
    Program *program;
    ferry_error *error;
} Export;

static void note(const ferry_export_config *config, const char *text) {
    if (config->note) config->note(config->note_context, text);
}

/* ---- the dtype of the computation ---- */

/* What the target makes of the dtype that is asked for, or stored. */
static ferry_dtype choose_dtype(const Export *ex, ferry_dtype wanted, ferry_dtype stored) {
    const char *text;
    ferry_dtype dtype = ex->exported->target->choose_dtype(ex->config, wanted, stored, &text);
    if (text) note(ex->config, text);
    return dtype;
}

/* ---- steps ---- */

/* Remember the sizes that the sample inputs have. */
static void record_samples(Program *program, const ferry_tensors *samples) {
    for (size_t i = 0; i < program->inputs.count; i++) {
        const Value *value = program->inputs.items[i].value;
        const ferry_tensor *sample = ferry_tensors_find(samples, program->inputs.items[i].name);
        if (!sample || sample->rank != value->rank) continue;
        for (uint32_t d = 0; d < value->rank; d++) {
            if (value->shape[d]->kind != SYM_SYMBOL) continue;
            sym_set_sample(&program->symbols, value->shape[d], sample->shape[d]);
        }
    }
}

static ferry_status not_a_task(Export *ex, const char *name) {
    Buffer known = {0};
    for (int task = 0; task < TASK_COUNT; task++)
        buffer_format(&known, "%s%s", task ? ", " : "", task_name((Task)task));
    ferry_status status = error_set(ex->error, FERRY_INVALID_ARGUMENT, "task",
                                    "\"%s\" is not a task (expected one of %s)", name,
                                    known.failed ? "" : buffer_string(&known));
    buffer_free(&known);
    return status;
}

/* A checkpoint: the family builds the program that the configuration asks for. */
static ferry_status build_checkpoint(Export *ex, const Checkpoint *checkpoint) {
    const ferry_export_config *config = ex->config;
    ModelRequest request = {.dtype = choose_dtype(ex, config->dtype, checkpoint_dtype(checkpoint)),
                            .use_cache = !config->no_cache,
                            .default_inputs =
                                !config->inputs || ferry_tensors_count(config->inputs) == 0,
                            .component = config->component,
                            .static_cache = config->static_cache,
                            .multi_token = config->multi_token_decode,
                            .keeps_cache = ex->exported->target->keeps_caches && !config->stateless,
                            .ignored_keys = config->ignored_config_keys,
                            .ignored_key_count = config->ignored_config_key_count,
                            .note = config->note,
                            .note_context = config->note_context};
    if (config->task) {
        request.has_task = task_parse(config->task, &request.task);
        if (!request.has_task) {
            return not_a_task(ex, config->task);
        }
    }
    InputRequest *inputs;
    size_t count;
    TRY(inputs_resolve(config, ex->program, &inputs, &count, ex->error));
    TRY(model_build(checkpoint, ex->registry, &request, inputs, count, ex->program, ex->error));
    if (config->inputs) record_samples(ex->program, config->inputs);
    return FERRY_OK;
}

/* A torch.export program is what it is: options that would make it another one are refused. */
static ferry_status build_pt2(Export *ex, Pt2 *pt2) {
    const ferry_export_config *config = ex->config;
    bool bounded = strcmp(config->target, "executorch") == 0; /* memory is planned for bounds */
    const char *option = config->task                         ? "task"
                         : config->static_cache               ? "static-cache"
                         : config->multi_token_decode         ? "multi-token-decode"
                         : config->dtype                      ? "dtype"
                         : config->inputs                     ? "inputs"
                         : config->dynamic_shapes && !bounded ? "dynamic-shapes"
                         : config->no_cache                   ? "no-cache"
                                                              : NULL;
    if (option) {
        return error_set(
            ex->error, FERRY_UNSUPPORTED, pt2->path,
            "--%s does not apply to a torch.export program, whose inputs, sizes and dtypes "
            "were fixed when it was traced",
            option);
    }
    TRY(pt2_build(pt2, ex->registry, ex->program, ex->error));
    choose_dtype(ex, ex->program->dtype, ex->program->dtype);
    return FERRY_OK;
}

/* Every size of an input that is a number, by name. */
static ferry_status check_dynamic(const Program *program, ferry_error *error) {
    Buffer frozen = {0};
    for (size_t i = 0; i < program->inputs.count; i++) {
        const Port *port = &program->inputs.items[i];
        for (uint32_t d = 0; d < port->value->rank; d++) {
            const Sym *size = port->value->shape[d];
            if (!sym_is_const(size)) continue;
            buffer_format(&frozen, "%s%s[%" PRIu32 "] = %" PRId64, frozen.length ? ", " : "",
                          port->name, d, size->value);
        }
    }
    ferry_status status = FERRY_OK;
    if (frozen.failed)
        status = error_memory(error, program->architecture, 0);
    else if (frozen.length)
        status = error_set(error, FERRY_UNSUPPORTED, program->architecture,
                           "expected every size of the inputs to be dynamic, found fixed ones: %s; "
                           "trace the model again with samples in which these sizes are neither 0 "
                           "nor 1, and look for code that depends on them",
                           buffer_string(&frozen));
    buffer_free(&frozen);
    return status;
}

static ferry_status step_build(Export *ex) {
    const ferry_model *model = ex->exported->model;
    TRY(model->pt2 ? build_pt2(ex, model->pt2) : build_checkpoint(ex, model->checkpoint));
    if (ex->config->expect_dynamic) TRY(check_dynamic(ex->program, ex->error));
    if (ex->config->structure == FERRY_STRUCTURE_MODEL) return FERRY_OK;
    return structure_make_plain(ex->program, ex->error);
}

static ferry_status step_fix(Export *ex) {
    return pass_fix(ex->program, ex->registry, ex->config->target, ex->error);
}

static ferry_status step_legalize(Export *ex) {
    const ExportTarget *target = ex->exported->target;
    if (!target->keeps_weights) program_drop_persistence(ex->program);
    return target->legalize(ex->program, ex->registry, ex->config, ex->error);
}

static ferry_status step_merge(Export *ex) {
    return pass_merge(ex->program, ex->error);
}

/* Linked weights are used as they are in the file, and the weights of a program that stays one remain what
 * they were to it. */
static ferry_status step_fold_weights(Export *ex) {
    bool stays = ex->exported->model->pt2 && ex->exported->target->keeps_weights;
    if (stays || ex->config->weights == FERRY_WEIGHTS_LINK) return FERRY_OK;
    return pass_fold_weights(ex->program, ex->error);
}

static ferry_status step_fold_constants(Export *ex) {
    return pass_fold_constants(ex->program, reference_evaluate, ex->error);
}

static const struct {
    const char *name;
    ferry_status (*run)(Export *ex);
} steps[] = {
    {"build", step_build},
    {"fix", step_fix},
    {"legalize", step_legalize},
    {"merge", step_merge},
    {"fold-weights", step_fold_weights},
    {"fold-constants", step_fold_constants},
};

enum { STEP_COUNT = sizeof steps / sizeof *steps };

static ferry_status print_program(const Program *program, ferry_write write, void *context,
                                  ferry_error *error) {
    Buffer text = {0};
    program_print(&text, program);
    bool failed = text.failed;
    if (!failed) write(context, buffer_string(&text), text.length);
    buffer_free(&text);
    return failed ? error_memory(error, program->architecture, 0) : FERRY_OK;
}

/* Our own steps are trusted outside the tests; what plug-ins make is always looked at. */
static bool verifies(const Export *ex) {
#ifdef FERRY_VERIFY
    (void)ex;
    return true;
#else
    return ex->config->plugins != NULL;
#endif
}

static ferry_status run_steps(Export *ex) {
    for (size_t i = 0; i < STEP_COUNT; i++) {
        TRY(steps[i].run(ex));
        if (verifies(ex)) TRY(program_verify(ex->program, steps[i].name, ex->error));
        const char *wanted = ex->config->dump_after;
        if (wanted && ex->config->dump && strcmp(wanted, steps[i].name) == 0) {
            TRY(print_program(ex->program, ex->config->dump, ex->config->dump_context, ex->error));
        }
    }
    return FERRY_OK;
}

/* ---- configuration ---- */

static ferry_status check_backend(const ferry_export_config *config, ferry_error *error) {
    const char *backend = config->backend;
    if (strcmp(config->target, "executorch") != 0) {
        const char *option = backend                     ? "backend"
                             : config->unplanned_inputs  ? "no-alloc-graph-input"
                             : config->unplanned_outputs ? "no-alloc-graph-output"
                             : config->unplanned_buffers ? "no-alloc-mutable-buffers"
                                                         : NULL;
        if (!option) return FERRY_OK;
        return error_set(error, FERRY_UNSUPPORTED, option,
                         "a %s model has no such thing: this is an option of executorch",
                         config->target);
    }
    if (config->weights == FERRY_WEIGHTS_LINK) {
        return error_set(error, FERRY_UNSUPPORTED, "weights",
                         "an ExecuTorch program holds its own weights: only ONNX and OpenVINO can "
                         "link to the checkpoint's");
    }
    if (!backend || !strcmp(backend, "portable") || executorch_backend(backend)) return FERRY_OK;
    if (strcmp(backend, "cuda") == 0) {
        return error_set(error, FERRY_UNSUPPORTED, "backend",
                         "CUDA is not available in this environment; cannot export to the "
                         "ExecuTorch CUDA backend. It needs a GPU, nvcc and AOTInductor; use "
                         "xnnpack, mlx or portable");
    }
    return error_set(error, FERRY_INVALID_ARGUMENT, "backend",
                     "\"%s\" is not an ExecuTorch backend (expected xnnpack, portable, mlx or "
                     "cuda)",
                     backend);
}

static ferry_status check_component(const ferry_export_config *config, ferry_error *error) {
    if (!config->component && (config->static_cache || config->multi_token_decode)) {
        return error_set(error, FERRY_INVALID_ARGUMENT,
                         config->static_cache ? "static-cache" : "multi-token-decode",
                         "only the components of a generation split have a cache that comes in: "
                         "ask for the split, or for one of its components");
    }
    if (config->component && config->inputs) {
        return error_set(error, FERRY_UNSUPPORTED, "inputs",
                         "what a component takes is given: set sizes with dynamic shapes");
    }
    if (config->component && config->no_cache) {
        return error_set(error, FERRY_INVALID_ARGUMENT, "no-cache",
                         "the components of a generation split hand each other a cache");
    }
    if (config->static_cache < 0 || config->static_cache > 1 << 30) {
        return error_set(error, FERRY_INVALID_ARGUMENT, "static-cache",
                         "expected a length of 1 to %d, found %lld", 1 << 30,
                         (long long)config->static_cache);
    }
    return FERRY_OK;
}

static ferry_status check_config(const ferry_export_config *config, ferry_error *error) {
    if (config->size != sizeof *config) {
        return error_set(error, FERRY_INVALID_ARGUMENT, "ferry_export_config",
                         "expected a structure of %zu bytes, found %zu: call "
                         "ferry_export_config_init, and build against the library's own headers",
                         sizeof *config, config->size);
    }
    if (!config->target || !target_find(config->target)) {
        return error_set(error, FERRY_UNSUPPORTED, "target",
                         "\"%s\" is not a target (expected onnx, dynamo, openvino or executorch)",
                         config->target ? config->target : "");
    }
    if (config->weights == FERRY_WEIGHTS_LINK && strcmp(config->target, "dynamo") == 0) {
        return error_set(error, FERRY_UNSUPPORTED, "weights",
                         "a dynamo program holds its own weights: only ONNX and OpenVINO can link "
                         "to the checkpoint's");
    }
    if (strcmp(config->target, "openvino") != 0 &&
        (config->stateless || config->compress_to_fp16)) {
        return error_set(
            error, FERRY_UNSUPPORTED, config->stateless ? "no-stateful" : "compress-to-fp16",
            "a %s model has no such thing: this is an option of openvino", config->target);
    }
    if (strcmp(config->target, "dynamo") != 0 && (config->structure || config->deferred_asserts)) {
        return error_set(
            error, FERRY_UNSUPPORTED, config->structure ? "structure" : "deferred asserts",
            "a %s model has no such thing: these are options of dynamo", config->target);
    }
    TRY(check_component(config, error));
    TRY(check_backend(config, error));
    if (config->opset && (config->opset < ONNX_MIN_OPSET || config->opset > ONNX_MAX_OPSET)) {
        return error_set(error, FERRY_INVALID_ARGUMENT, "opset", "expected %d to %d, found %d",
                         ONNX_MIN_OPSET, ONNX_MAX_OPSET, config->opset);
    }
    if (config->dtype && config->dtype != FERRY_F32 && config->dtype != FERRY_F16 &&
        config->dtype != FERRY_BF16 && config->dtype != FERRY_F64) {
        return error_set(error, FERRY_INVALID_ARGUMENT, "dtype",
                         "expected float32, float16, bfloat16 or float64, found %s",
                         ferry_dtype_name(config->dtype));
    }
    for (size_t i = 0; config->dump_after && i <= STEP_COUNT; i++) {
        if (i == STEP_COUNT) {
            return error_set(
                error, FERRY_INVALID_ARGUMENT, "dump-after",
                "\"%s\" is not a pass (expected build, fix, legalize, merge, fold-weights or "
                "fold-constants)",
                config->dump_after);
        }
        if (strcmp(steps[i].name, config->dump_after) == 0) break;
    }
    return FERRY_OK;
}

ferry_status ferry_export(ferry_model *model, const ferry_export_config *config,
                          ferry_exported **out, ferry_error *error) {
    error_clear(error);
    *out = NULL;
    TRY(check_config(config, error));
    TRY(model_component(model, config->component, &model, error));
    ferry_exported *exported = calloc(1, sizeof *exported);
    if (!exported) return error_memory(error, "export", sizeof *exported);
    exported->model = model;
    exported->target = target_find(config->target);
    exported->config = *config;
    if (!exported->config.opset) exported->config.opset = ONNX_DEFAULT_OPSET;
    exported->program = program_new();
    Export ex = {.exported = exported,
                 .config = &exported->config,
                 .registry = exported_registry(exported),
                 .program = exported->program,
                 .error = error};
    ferry_status status = ex.program ? FERRY_OK : error_memory(error, "export", 0);
    if (status == FERRY_OK && !config->plugins) status = plugin_builtin(&exported->builtin, error);
    if (status == FERRY_OK) status = run_steps(&ex);
    if (status == FERRY_OK && model->pt2 && config->dynamic_shapes) {
        status = inputs_bound(config, ex.program, error);
    }
    if (status == FERRY_OK && exported->target->finish) {
        status = exported->target->finish(ex.program, &exported->config, error);
    }
    if (status == FERRY_OK) {
        status = manifest_make(&exported->manifest, ex.program, exported->target, &exported->config,
                               error);
    }
    /* The caller's inputs and options live only as long as this call. */
    exported->config.inputs = NULL;
    if (config->backend) {
        exported->config.backend = arena_string(&exported->manifest.arena, config->backend);
    }
    exported->config.component = exported->manifest.component;
    exported->config.task = exported->config.dynamic_shapes = exported->config.dump_after = NULL;
    exported->config.ignored_config_keys = NULL;
    if (status == FERRY_OK)
        *out = exported;
    else
        ferry_exported_free(exported);
    return status;
}

ferry_status ferry_exported_print(ferry_exported *exported, ferry_write write, void *context,
                                  ferry_error *error) {
    error_clear(error);
    TRY(exported_program(exported, error));
    return print_program(exported->program, write, context, error);
}
