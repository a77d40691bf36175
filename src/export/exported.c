/* Exports: loading and describing. */
#include "base/error.h"
#include "export/export.h"
#include "plugin/plugin.h"
#include "source/executorch/executorch_read.h"
#include "source/onnx/onnx_read.h"
#include "source/openvino/openvino_read.h"

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

/* Make the components of a directory that holds several. */
static ferry_status load_components(ferry_exported *exported, ferry_error *error) {
    size_t count = json_object_size(json_object_get(exported->manifest.json, "components"));
    if (count < 2) return FERRY_OK;
    exported->components = ARENA_ARRAY(&exported->manifest.arena, ferry_exported *, count);
    if (!exported->components) return error_memory(error, exported->directory, 0);
    for (size_t i = 0; i < count; i++) {
        ferry_exported *component = calloc(1, sizeof *component);
        if (!component) return error_memory(error, exported->directory, sizeof *component);
        exported->components[exported->component_count++] = component;
        component->directory = exported->directory;
        TRY(manifest_component(&exported->manifest, i, &component->manifest, error));
    }
    return FERRY_OK;
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
        if (status == FERRY_OK) status = load_components(exported, error);
    }
    if (status == FERRY_OK)
        *out = exported;
    else
        ferry_exported_free(exported);
    return status;
}

void ferry_exported_free(ferry_exported *exported) {
    if (!exported) return;
    for (size_t i = 0; i < exported->component_count; i++) {
        ferry_exported_free(exported->components[i]);
    }
    onnxruntime_close(exported->session);
    onnxruntime_unload(exported->runtime);
    openvino_close(exported->openvino_session);
    openvino_unload(exported->openvino);
    executorch_close(exported->executorch_session);
    executorch_unload(exported->executorch);
    program_free(exported->program);
    registry_free(&exported->builtin);
    pt2_close(exported->pt2);
    files_unmap(&exported->files);
    pool_free(exported->pool);
    manifest_free(&exported->manifest);
    free(exported);
}

static ferry_status read_format(ferry_exported *exported, const char *path, Program *program,
                                ferry_error *error) {
    const Manifest *m = &exported->manifest;
    const OpenvinoInputs inputs = {m->inputs, m->input_count};
    const PtePorts ports = {m->inputs, m->outputs, m->input_count, m->output_count};
    if (strcmp(m->format, "onnx") == 0) return onnx_read(path, &exported->files, program, error);
    if (strcmp(m->format, "openvino") == 0) {
        return openvino_read(path, &inputs, &exported->files, program, error);
    }
    if (strcmp(m->format, "executorch") == 0) {
        return executorch_read(path, &ports, &exported->files, program, error);
    }
    return error_set(error, FERRY_UNSUPPORTED, exported->directory,
                     "the program of a %s export cannot be read back", m->format);
}

static ferry_status read_program(ferry_exported *exported, Program *program, ferry_error *error) {
    Manifest *manifest = &exported->manifest;
    const char *path = path_join(&manifest->arena, exported->directory, manifest->file);
    if (strcmp(manifest->format, "dynamo") == 0) return read_pt2(exported, path, program, error);
    TRY(manifest_declare_sizes(manifest, program, error));
    TRY(read_format(exported, path, program, error));
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
    ferry_exported *single;
    TRY(ferry_exported_component(exported, NULL, &single, error));
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

/* ---- describing ---- */

size_t ferry_exported_component_count(const ferry_exported *exported) {
    return exported->component_count ? exported->component_count : 1;
}

ferry_exported *ferry_exported_component_at(ferry_exported *exported, size_t index) {
    if (exported->component_count == 0) return index == 0 ? exported : NULL;
    return index < exported->component_count ? exported->components[index] : NULL;
}

ferry_status ferry_exported_component(ferry_exported *exported, const char *name,
                                      ferry_exported **out, ferry_error *error) {
    Buffer names = {0};
    size_t count = ferry_exported_component_count(exported);
    for (size_t i = 0; i < count; i++) {
        *out = ferry_exported_component_at(exported, i);
        if (name ? strcmp((*out)->manifest.component, name) == 0 : count == 1) return FERRY_OK;
    }
    *out = NULL;
    for (size_t i = 0; i < count; i++) {
        buffer_format(&names, "%s%s", i ? ", " : "",
                      ferry_exported_component_at(exported, i)->manifest.component);
    }
    ferry_status status =
        name ? error_set(error, FERRY_NOT_FOUND, exported->directory,
                         "the export has no component \"%s\": it has %s", name,
                         buffer_string(&names))
             : error_set(error, FERRY_INVALID_ARGUMENT, exported->directory,
                         "the export has %zu components, which run one by one: choose one of %s",
                         count, buffer_string(&names));
    buffer_free(&names);
    return status;
}

const char *ferry_exported_name(const ferry_exported *exported) {
    return exported->manifest.component;
}

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

ferry_status ferry_exported_delegates(const ferry_exported *exported, size_t *count,
                                      ferry_error *error) {
    Arena arena = {0};
    error_clear(error);
    *count = 0;
    if (strcmp(exported->manifest.format, "executorch") != 0 || !exported->directory)
        return FERRY_OK;
    const char *path = path_join(&arena, exported->directory, exported->manifest.file);
    ferry_status status = executorch_delegates(path, count, error);
    arena_free(&arena);
    return status;
}
