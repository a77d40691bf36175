/* export.json: what an export holds, in the schema (version 1) of transformers.exporters, so that its
 * from_pretrained loads our directories and we load its. */
#include "base/error.h"
#include "export/export.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { SCHEMA_VERSION = 1 };

static ferry_status bad_manifest(const char *path, const char *expected, const json_t *found,
                                 ferry_error *error) {
    return error_set(error, FERRY_BAD_FORMAT, path, "expected %s, found %s", expected,
                     json_kind(found));
}

/* Fill one list of ports from the "ferry" part; absent in other exporters' manifests. */
static ferry_status read_ports(Manifest *manifest, const char *path, json_t *list,
                               ferry_port **ports, size_t *count, ferry_error *error) {
    size_t length = json_array_size(list);
    *ports = ARENA_ARRAY(&manifest->arena, ferry_port, length);
    *count = 0;
    if (!*ports) return error_memory(error, path, 0);
    for (size_t i = 0; i < length; i++) {
        json_t *entry = json_array_get(list, i), *shape = json_object_get(entry, "shape");
        const char *name = json_string_value(json_object_get(entry, "name"));
        const char *dtype = json_string_value(json_object_get(entry, "dtype"));
        ferry_port *port = &(*ports)[i];
        if (!name || !dtype || !json_is_array(shape) || json_array_size(shape) > FERRY_MAX_RANK) {
            return bad_manifest(path, "inputs and outputs with name, dtype and shape", entry,
                                error);
        }
        *port = (ferry_port){.name = name,
                             .dtype = ferry_dtype_parse(dtype),
                             .rank = json_array_size(shape),
                             .writes = json_string_value(json_object_get(entry, "writes")),
                             .in_place = json_is_true(json_object_get(entry, "in_place"))};
        for (size_t d = 0; d < port->rank; d++) {
            const char *size = json_string_value(json_array_get(shape, d));
            port->shape[d] = size ? size : "?";
        }
    }
    *count = length;
    return FERRY_OK;
}

/* Does one of these ports count the entries of a static cache? */
static bool has_counter(const ferry_port *ports, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (strstr(ports[i].name, "cumulative_length")) return true;
    }
    return false;
}

/* Take the fields that the rest of ferry uses out of a component's entry. */
static ferry_status adopt_component(Manifest *manifest, const char *path, const char *name,
                                    json_t *component, ferry_error *error) {
    json_t *metadata = json_object_get(component, "metadata");
    json_t *own = json_object_get(metadata, "ferry");
    manifest->component = name;
    manifest->ranges = json_object_get(own, "ranges");
    manifest->static_cache = json_integer_value(json_object_get(own, "static_cache"));
    const char *model_type = json_string_value(json_object_get(own, "model_type"));
    manifest->traced = !model_type || strcmp(model_type, "torch.export") == 0;
    manifest->file = json_string_value(json_object_get(component, "file"));
    manifest->architecture = json_string_value(json_object_get(metadata, "architecture"));
    manifest->dtype = json_string_value(json_object_get(metadata, "export_dtype"));
    if (!manifest->file || !path_is_contained(manifest->file)) {
        return bad_manifest(path, "\"file\" to name a file inside the directory",
                            json_object_get(component, "file"), error);
    }
    if (!manifest->architecture) manifest->architecture = "";
    if (!manifest->dtype) manifest->dtype = "none";
    TRY(read_ports(manifest, path, json_object_get(own, "inputs"), &manifest->inputs,
                   &manifest->input_count, error));
    TRY(read_ports(manifest, path, json_object_get(own, "outputs"), &manifest->outputs,
                   &manifest->output_count, error));
    TRY(read_ports(manifest, path, json_object_get(own, "states"), &manifest->states,
                   &manifest->state_count, error));
    manifest->counted = has_counter(manifest->inputs, manifest->input_count) ||
                        has_counter(manifest->states, manifest->state_count);
    return FERRY_OK;
}

/* And out of the document: of several components, what they share. */
static ferry_status adopt(Manifest *manifest, const char *path, ferry_error *error) {
    json_t *components = json_object_get(manifest->json, "components");
    manifest->format = json_string_value(json_object_get(manifest->json, "export_format"));
    if (!manifest->format)
        return bad_manifest(path, "\"export_format\" to be a string",
                            json_object_get(manifest->json, "export_format"), error);
    if (json_object_size(components) == 0)
        return bad_manifest(path, "\"components\" to be an object with an entry", components,
                            error);
    void *first = json_object_iter(components);
    const char *name = json_object_iter_key(first);
    TRY(adopt_component(manifest, path, name, json_object_iter_value(first), error));
    if (json_object_size(components) == 1) return FERRY_OK;
    manifest->component = manifest->file = NULL;
    manifest->input_count = manifest->output_count = manifest->state_count = 0;
    return FERRY_OK;
}

ferry_status manifest_component(const Manifest *all, size_t index, Manifest *out,
                                ferry_error *error) {
    void *entry = json_object_iter(json_object_get(all->json, "components"));
    for (size_t i = 0; i < index && entry; i++) {
        entry = json_object_iter_next(json_object_get(all->json, "components"), entry);
    }
    if (!entry) return FERRY_NOT_FOUND;
    out->json = json_incref(all->json);
    out->format = all->format;
    return adopt_component(out, "export.json", json_object_iter_key(entry),
                           json_object_iter_value(entry), error);
}

ferry_status manifest_make(Manifest *manifest, Program *program, const ExportTarget *target,
                           const ferry_export_config *config, ferry_error *error) {
    const char *name = config->component ? config->component : "model";
    const char *file =
        arena_format(&manifest->arena, "%s%s%s", target->prefix, name, target->suffix);
    manifest->json = json_pack("{s:i, s:s, s:{s:{s:s, s:o}}}", "schema_version", SCHEMA_VERSION,
                               "export_format", target->name, "components", name, "file", file,
                               "metadata", manifest_describe(program, target, config));
    if (!manifest->json) return error_memory(error, "export.json", 0);
    return adopt(manifest, "export.json", error);
}

ferry_status manifest_join(Manifest *manifest, ferry_exported *const *components, size_t count,
                           ferry_error *error) {
    json_t *all = json_object();
    for (size_t i = 0; i < count; i++) {
        json_object_update(all, json_object_get(components[i]->manifest.json, "components"));
    }
    manifest->json = json_pack("{s:i, s:s, s:o}", "schema_version", SCHEMA_VERSION, "export_format",
                               components[0]->manifest.format, "components", all);
    if (!manifest->json) return error_memory(error, "export.json", 0);
    return adopt(manifest, "export.json", error);
}

ferry_status manifest_of_pt2(Manifest *manifest, Program *program, const char *file,
                             ferry_error *error) {
    ferry_export_config config;
    ferry_export_config_init(&config);
    TRY(manifest_make(manifest, program, target_find("dynamo"), &config, error));
    manifest->file = arena_string(&manifest->arena, file);
    return FERRY_OK;
}

ferry_status manifest_read(Manifest *manifest, const char *directory, ferry_error *error) {
    const char *path = path_join(&manifest->arena, directory, "export.json");
    if (!path_exists(path)) {
        return error_set(error, FERRY_NOT_FOUND, directory,
                         "does not appear to have a file named export.json: not a saved export");
    }
    TRY(json_read_object(path, &manifest->json, error));
    json_t *version = json_object_get(manifest->json, "schema_version");
    if (json_integer_value(version) > SCHEMA_VERSION) {
        return error_set(error, FERRY_UNSUPPORTED, path,
                         "expected schema_version %d, found %" PRId64
                         ": written by a newer version",
                         SCHEMA_VERSION, (int64_t)json_integer_value(version));
    }
    return adopt(manifest, path, error);
}

ferry_status manifest_declare_sizes(const Manifest *manifest, Program *program,
                                    ferry_error *error) {
    const char *name;
    json_t *range;
    json_object_foreach(manifest->ranges, name, range) {
        json_t *lower = json_array_get(range, 0), *upper = json_array_get(range, 1);
        int64_t least = json_integer_value(lower), most = json_integer_value(upper);
        if (json_is_null(upper)) most = SYM_UNBOUNDED;
        bool valid = json_is_integer(lower) && (json_is_integer(upper) || json_is_null(upper));
        if (!valid || least > most) {
            return bad_manifest("export.json", "\"ranges\" to be lists of two bounds", range,
                                error);
        }
        sym_symbol(&program->symbols, name, least, most);
    }
    return FERRY_OK;
}

void manifest_free(Manifest *manifest) {
    json_decref(manifest->json);
    arena_free(&manifest->arena);
}
