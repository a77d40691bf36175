/* Exports: loading, running, describing. */
#include "base/error.h"
#include "export/export.h"
#include "plugin/plugin.h"
#include "run/reference.h"
#include "source/onnx/onnx_read.h"

#include <stdlib.h>
#include <string.h>

const Registry *exported_registry(const ferry_exported *exported) {
    const ferry_plugins *plugins = exported->config.plugins;
    return plugins ? plugin_registry(plugins) : &exported->builtin;
}

/* Open a .pt2 and build its program. */
static ferry_status read_pt2(ferry_exported *exported, const char *path, Program *program,
                             ferry_error *error) {
    TRY(pt2_open(path, &exported->pt2, error));
    TRY(plugin_builtin(&exported->builtin, error));
    return pt2_build(exported->pt2, &exported->builtin, program, error);
}

/* A .pt2 by itself: everything there is to know is in the program. */
static ferry_status load_pt2(ferry_exported *exported, const char *path, ferry_error *error) {
    Arena *arena = &exported->manifest.arena;
    const char *base = path_base(path);
    exported->directory = base == path ? "." : arena_string_n(arena, path, (size_t)(base - path));
    exported->program = program_new();
    if (!exported->program) return error_memory(error, path, sizeof *exported->program);
    TRY(read_pt2(exported, path, exported->program, error));
    return manifest_of_pt2(&exported->manifest, exported->program, base, error);
}

ferry_status ferry_exported_load(const char *directory, ferry_exported **out, ferry_error *error) {
    error_clear(error);
    *out = NULL;
    ferry_exported *exported = calloc(1, sizeof *exported);
    if (!exported) return error_memory(error, directory, sizeof *exported);
    ferry_status status;
    if (pt2_probe(directory)) {
        status = load_pt2(exported, directory, error);
    } else {
        status = manifest_read(&exported->manifest, directory, error);
        exported->directory = arena_string(&exported->manifest.arena, directory);
    }
    if (status == FERRY_OK)
        *out = exported;
    else
        ferry_exported_free(exported);
    return status;
}

void ferry_exported_free(ferry_exported *exported) {
    if (!exported) return;
    onnxruntime_close(exported->session);
    onnxruntime_unload(exported->runtime);
    program_free(exported->program);
    registry_free(&exported->builtin);
    pt2_close(exported->pt2);
    files_unmap(&exported->files);
    pool_free(exported->pool);
    manifest_free(&exported->manifest);
    free(exported);
}

static ferry_status read_program(ferry_exported *exported, Program *program, ferry_error *error) {
    Manifest *manifest = &exported->manifest;
    const char *path = path_join(&manifest->arena, exported->directory, manifest->file);
    if (strcmp(manifest->format, "dynamo") == 0) return read_pt2(exported, path, program, error);
    if (strcmp(manifest->format, "executorch") == 0) {
        return error_set(error, FERRY_UNSUPPORTED, path,
                         "ferry writes ExecuTorch programs, but does not read or run them: load "
                         "the file with the executorch package, as docs/executorch.md shows");
    }
    if (strcmp(manifest->format, "onnx") != 0) {
        return error_set(error, FERRY_UNSUPPORTED, exported->directory,
                         "the program of a %s export cannot be read back", manifest->format);
    }
    TRY(manifest_declare_sizes(manifest, program, error));
    TRY(onnx_read(path, &exported->files, program, error));
    if (!*program->architecture) {
        program->architecture = arena_string(&program->arena, manifest->architecture);
    }
#ifdef FERRY_VERIFY
    TRY(program_verify(program, "reading", error));
#endif
    return FERRY_OK;
}

ferry_status exported_program(ferry_exported *exported, ferry_error *error) {
    if (exported->program) return FERRY_OK;
    Program *program = program_new();
    if (!program) return error_memory(error, exported->directory, sizeof *program);
    ferry_status status = read_program(exported, program, error);
    if (status == FERRY_OK) {
        exported->program = program;
    } else {
        program_free(program);
        files_unmap(&exported->files);
    }
    return status;
}

/* ---- running ---- */

void ferry_run_config_init(ferry_run_config *config) {
    *config = (ferry_run_config){.size = sizeof *config};
}

/* "input.cache.layers.0.keys" is the keyword "cache.layers.0.keys" where that is an output too. */
static const char *keyword(const char *name, const char *prefix) {
    size_t length = strlen(prefix);
    return strncmp(name, prefix, length) == 0 ? name + length : name;
}

static ferry_status add_copy(ferry_tensors *tensors, const char *name, const ferry_tensor *from,
                             ferry_error *error) {
    ferry_tensor *copy;
    TRY(ferry_tensors_add(tensors, name, from->dtype, from->rank, from->shape, &copy, error));
    memcpy(copy->data, from->data, ferry_tensor_bytes(from));
    return FERRY_OK;
}

/* The inputs under the names of the graph. */
static ferry_status select_inputs(const ferry_run_config *config, const char *const *names,
                                  size_t count, const ferry_tensors *inputs, ferry_tensors **out,
                                  ferry_error *error) {
    size_t used = 0;
    *out = ferry_tensors_new();
    if (!*out) return error_memory(error, "inputs", 0);
    for (size_t i = 0; i < count; i++) {
        const ferry_tensor *given = ferry_tensors_find(inputs, names[i]);
        if (!given) given = ferry_tensors_find(inputs, keyword(names[i], "input."));
        if (!given) {
            return error_set(error, FERRY_INVALID_ARGUMENT, names[i], "the input \"%s\" is missing",
                             keyword(names[i], "input."));
        }
        TRY(add_copy(*out, names[i], given, error));
        used++;
    }
    for (size_t i = 0;
         config->note && used < ferry_tensors_count(inputs) && i < ferry_tensors_count(inputs);
         i++) {
        const char *name = ferry_tensors_at(inputs, i)->name;
        bool known = false;
        for (size_t j = 0; j < count; j++) {
            known |= !strcmp(names[j], name) || !strcmp(keyword(names[j], "input."), name);
        }
        if (known) continue;
        char text[256];
        snprintf(text, sizeof text, "the program was not exported with the input \"%s\": dropped",
                 name);
        config->note(config->note_context, text);
    }
    return FERRY_OK;
}

/* The outputs under the names of the model's own. */
static ferry_status rename_outputs(ferry_tensors **outputs, ferry_error *error) {
    ferry_tensors *renamed = ferry_tensors_new();
    ferry_status status = renamed ? FERRY_OK : error_memory(error, "outputs", 0);
    for (size_t i = 0; status == FERRY_OK && i < ferry_tensors_count(*outputs); i++) {
        const ferry_tensor *output = ferry_tensors_at(*outputs, i);
        status = add_copy(renamed, keyword(output->name, "output."), output, error);
    }
    ferry_tensors_free(*outputs);
    *outputs = status == FERRY_OK ? renamed : NULL;
    if (status != FERRY_OK) ferry_tensors_free(renamed);
    return status;
}

static ferry_status open_session(ferry_exported *exported, const ferry_run_config *config,
                                 ferry_error *error) {
    if (exported->session) return FERRY_OK;
    if (strcmp(exported->manifest.format, "onnx") != 0) {
        return error_set(error, FERRY_UNSUPPORTED, "onnxruntime",
                         "ONNX Runtime does not run a %s program: export it to ONNX, or use the "
                         "reference runtime",
                         exported->manifest.format);
    }
    if (!exported->directory) {
        return error_set(error, FERRY_INVALID_ARGUMENT, "onnxruntime",
                         "save the export before running it in ONNX Runtime");
    }
    if (!exported->runtime) {
        TRY(onnxruntime_load(config->library, &exported->runtime, error));
    }
    const char *path =
        path_join(&exported->manifest.arena, exported->directory, exported->manifest.file);
    return onnxruntime_open(exported->runtime, path, config->threads, &exported->session, error);
}

static ferry_status run_onnxruntime(ferry_exported *exported, const ferry_run_config *config,
                                    const ferry_tensors *inputs, ferry_tensors **outputs,
                                    ferry_error *error) {
    TRY(open_session(exported, config, error));
    size_t count = onnxruntime_input_count(exported->session);
    const char **names = calloc(count + 1, sizeof *names);
    if (!names) return error_memory(error, "inputs", 0);
    for (size_t i = 0; i < count; i++) names[i] = onnxruntime_input_name(exported->session, i);
    ferry_tensors *selected = NULL;
    ferry_status status = select_inputs(config, names, count, inputs, &selected, error);
    if (status == FERRY_OK) status = onnxruntime_run(exported->session, selected, outputs, error);
    if (status == FERRY_OK) status = rename_outputs(outputs, error);
    ferry_tensors_free(selected);
    free(names);
    return status;
}

static ferry_status run_reference(ferry_exported *exported, const ferry_run_config *config,
                                  const ferry_tensors *inputs, ferry_tensors **outputs,
                                  ferry_error *error) {
    TRY(exported_program(exported, error));
    Program *program = exported->program;
    if (!exported->pool) exported->pool = pool_new(config->threads);
    const char **names = calloc(program->inputs.count + 1, sizeof *names);
    if (!names) return error_memory(error, "inputs", 0);
    for (size_t i = 0; i < program->inputs.count; i++) names[i] = program->inputs.items[i].name;
    ferry_tensors *selected = NULL;
    ferry_status status =
        select_inputs(config, names, program->inputs.count, inputs, &selected, error);
    if (status == FERRY_OK)
        status = reference_run(program, selected, exported->pool, outputs, error);
    if (status == FERRY_OK) status = rename_outputs(outputs, error);
    ferry_tensors_free(selected);
    free(names);
    return status;
}

ferry_status ferry_exported_run(ferry_exported *exported, const ferry_run_config *config,
                                const ferry_tensors *inputs, ferry_tensors **outputs,
                                ferry_error *error) {
    error_clear(error);
    *outputs = NULL;
    const char *runtime = config->runtime;
    const char *format = exported->manifest.format;
    bool read = strcmp(format, "dynamo") == 0 || strcmp(format, "executorch") == 0;
    if (!runtime && read) runtime = "reference";
    if (!runtime) {
        bool opened = exported->directory && open_session(exported, config, error) == FERRY_OK;
        if (!opened && error && error->status != FERRY_RUNTIME_MISSING && exported->directory) {
            return error->status;
        }
        runtime = opened ? "onnxruntime" : "reference";
        error_clear(error);
    }
    if (strcmp(runtime, "onnxruntime") == 0) {
        return run_onnxruntime(exported, config, inputs, outputs, error);
    }
    if (strcmp(runtime, "reference") == 0) {
        return run_reference(exported, config, inputs, outputs, error);
    }
    return error_set(error, FERRY_INVALID_ARGUMENT, "runtime",
                     "\"%s\" is not a runtime (expected onnxruntime or reference)", runtime);
}

/* ---- describing ---- */

size_t ferry_exported_input_count(const ferry_exported *exported) {
    return exported->manifest.input_count;
}

size_t ferry_exported_output_count(const ferry_exported *exported) {
    return exported->manifest.output_count;
}

const ferry_port *ferry_exported_input(const ferry_exported *exported, size_t index) {
    return index < exported->manifest.input_count ? &exported->manifest.inputs[index] : NULL;
}

const ferry_port *ferry_exported_output(const ferry_exported *exported, size_t index) {
    return index < exported->manifest.output_count ? &exported->manifest.outputs[index] : NULL;
}

const char *ferry_exported_architecture(const ferry_exported *exported) {
    return exported->manifest.architecture;
}

const char *ferry_exported_dtype(const ferry_exported *exported) {
    return exported->manifest.dtype;
}

const char *ferry_exported_format(const ferry_exported *exported) {
    return exported->manifest.format;
}
