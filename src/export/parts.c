/* The generation split: which components a model has, and exporting them as one. */
#include "base/error.h"
#include "export/export.h"
#include "plugin/plugin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Part {
    const char *name;
    ferry_export_config config;
} Part;

struct ferry_parts {
    ferry_model *model;
    Part *items;
    size_t count;
};

/* The names of the components, which the family of the checkpoint knows. */
static ferry_status list_components(const ferry_model *model, const ferry_export_config *config,
                                    const char *const **out, ferry_error *error) {
    Registry builtin = {0};
    if (model->component_count) {
        *out = model->component_names;
        return FERRY_OK;
    }
    if (model->pt2) {
        return error_set(error, FERRY_UNSUPPORTED, model->pt2->path,
                         "a torch.export program is one component: export it as it is, or give the "
                         "directory with all of them and their export.json");
    }
    if (!config->plugins) TRY(plugin_builtin(&builtin, error));
    const Registry *registry = config->plugins ? plugin_registry(config->plugins) : &builtin;
    ferry_status status = model_components(model->checkpoint, registry, out, error);
    registry_free(&builtin);
    return status;
}

ferry_status ferry_decompose(ferry_model *model, const ferry_export_config *config,
                             ferry_parts **out, ferry_error *error) {
    const char *const *names;
    size_t count = 0;
    error_clear(error);
    *out = NULL;
    TRY(list_components(model, config, &names, error));
    while (names[count]) count++;
    ferry_parts *parts = calloc(1, sizeof *parts);
    Part *items = calloc(count, sizeof *items);
    if (!parts || !items) {
        free(parts);
        free(items);
        return error_memory(error, "components", count * sizeof *items);
    }
    for (size_t i = 0; i < count; i++) {
        items[i] = (Part){.name = names[i], .config = *config};
        items[i].config.component = names[i];
    }
    *parts = (ferry_parts){.model = model, .items = items, .count = count};
    *out = parts;
    return FERRY_OK;
}

void ferry_parts_free(ferry_parts *parts) {
    if (!parts) return;
    free(parts->items);
    free(parts);
}

const char *ferry_parts_name(const ferry_parts *parts, size_t index) {
    return index < parts->count ? parts->items[index].name : NULL;
}

ferry_export_config *ferry_parts_config(ferry_parts *parts, size_t index) {
    return index < parts->count ? &parts->items[index].config : NULL;
}

ferry_status ferry_parts_skip(ferry_parts *parts, const char *name, ferry_error *error) {
    error_clear(error);
    for (size_t i = 0; i < parts->count; i++) {
        if (strcmp(parts->items[i].name, name) != 0) continue;
        memmove(&parts->items[i], &parts->items[i + 1],
                (--parts->count - i) * sizeof *parts->items);
        return FERRY_OK;
    }
    return error_set(error, FERRY_NOT_FOUND, name, "the model has no component of this name");
}

/* Put the component's name before what went wrong in it. */
static void name_component(ferry_error *error, const char *name) {
    if (!error) return;
    ferry_error original = *error;
    snprintf(error->message, sizeof error->message, "component \"%s\": %.960s", name,
             original.message);
}

static bool takes(const ferry_exported *component, const char *name, size_t length) {
    const ferry_port *port;
    for (size_t i = 0; (port = ferry_exported_input(component, i)); i++) {
        const char *keyword = port_keyword(port->name);
        if (strncmp(keyword, name, length) != 0) continue;
        if (!keyword[length] || keyword[length] == '.') return true;
    }
    return false;
}

/* Every input that dynamic shapes are given for is one of some component. */
static ferry_status check_named(const ferry_exported *whole, const char *spec, ferry_error *error) {
    for (const char *next = spec; next && *next; next = strchr(next, ';')) {
        next += strspn(next, "; ");
        size_t length = strcspn(next, "= ;");
        bool taken = length == 0;
        for (size_t i = 0; i < whole->component_count && !taken; i++) {
            taken = takes(whole->components[i], next, length);
        }
        if (taken) continue;
        return error_set(error, FERRY_INVALID_ARGUMENT, "dynamic shapes",
                         "no component takes the input \"%.*s\"", (int)length, next);
    }
    return FERRY_OK;
}

static ferry_status export_all(const ferry_parts *parts, ferry_exported *whole,
                               ferry_error *error) {
    whole->model = parts->model;
    whole->target = target_find(parts->items[0].config.target);
    whole->config = parts->items[0].config;
    whole->components = ARENA_ARRAY(&whole->manifest.arena, ferry_exported *, parts->count);
    if (!whole->components) return error_memory(error, "components", 0);
    for (size_t i = 0; i < parts->count; i++) {
        const Part *part = &parts->items[i];
        if (strcmp(part->config.target, parts->items[0].config.target) != 0) {
            return error_set(error, FERRY_INVALID_ARGUMENT, part->name,
                             "expected the target %s, as of the component before, found %s",
                             parts->items[0].config.target, part->config.target);
        }
        ferry_exported **place = &whole->components[whole->component_count];
        ferry_status status = ferry_export(parts->model, &part->config, place, error);
        if (status != FERRY_OK) {
            name_component(error, part->name);
            return status;
        }
        whole->component_count++;
    }
    TRY(check_named(whole, parts->items[0].config.dynamic_shapes, error));
    return manifest_join(&whole->manifest, whole->components, whole->component_count, error);
}

ferry_status ferry_parts_export(const ferry_parts *parts, ferry_exported **out,
                                ferry_error *error) {
    error_clear(error);
    *out = NULL;
    if (parts->count == 0) {
        return error_set(error, FERRY_INVALID_ARGUMENT, "components", "none is left to export");
    }
    ferry_exported *whole = calloc(1, sizeof *whole);
    if (!whole) return error_memory(error, "export", sizeof *whole);
    ferry_status status = export_all(parts, whole, error);
    if (status == FERRY_OK)
        *out = whole;
    else
        ferry_exported_free(whole);
    return status;
}
