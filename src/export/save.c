/* Saving: all files are written beside their places, and put there when every one is complete. */
#include "base/error.h"
#include "export/export.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *save_sibling(Save *save, const char *from, const char *ending) {
    const char *file = save->exported->manifest.file, *end = from ? strstr(file, from) : NULL;
    int length = (int)(end ? (size_t)(end - file) : strlen(file));
    return arena_format(&save->arena, "%.*s%s", length, file, ending);
}

OutputFile *save_open(Save *save, const char *name, uint64_t size, ferry_status *status) {
    OutputFile *file = &save->files[save->count];
    *status = output_open(file, path_join(&save->arena, save->directory, name), size, save->error);
    if (*status != FERRY_OK) return NULL;
    save->count++;
    return file;
}

ferry_status save_link(Save *save, const char *name, const MappedFile *file) {
    const char *target = path_within(&save->arena, save->directory, file->path);
    if (!target) {
        const char *below_root = path_within(&save->arena, "/", file->path);
        target = below_root ? arena_format(&save->arena, "/%s", below_root) : file->path;
    }
    TRY(output_symlink(&save->files[save->count], path_join(&save->arena, save->directory, name),
                       target, save->error));
    save->count++;
    return FERRY_OK;
}

static ferry_status write_manifest(Save *save) {
    ferry_status status;
    char *text = json_dumps(save->exported->manifest.json, JSON_INDENT(2));
    if (!text) return error_memory(save->error, "export.json", 0);
    size_t length = strlen(text);
    text[length] = '\n'; /* in the place of the terminating zero */
    OutputFile *file = save_open(save, "export.json", 0, &status);
    if (file) status = output_write(file, 0, text, length + 1, save->error);
    free(text);
    return status;
}

/* The files of one component; the export's sizes are the sums. */
static ferry_status write_component(Save *save, ferry_exported *component) {
    const ferry_export_sizes before = save->sizes;
    save->exported = component;
    TRY(component->target->write(save));
    bool data = save->sizes.weight_bytes > 0 || save->shared.by_start.count > 0;
    if (!data && strcmp(component->target->name, "onnx") == 0) {
        const char *name = save_sibling(save, NULL, ".data");
        save->stale[save->stale_count++] = path_join(&save->arena, save->directory, name);
    }
    save->sizes.graph_bytes += before.graph_bytes;
    save->sizes.weight_bytes += before.weight_bytes;
    save->sizes.nodes += before.nodes;
    save->sizes.weights += before.weights;
    return FERRY_OK;
}

static ferry_status write_all(Save *save) {
    ferry_exported *whole = save->exported;
    size_t count = whole->component_count;
    if (count == 0) TRY(write_component(save, whole));
    for (size_t i = 0; i < count; i++) TRY(write_component(save, whole->components[i]));
    save->exported = whole;
    TRY(files_write(save));
    return write_manifest(save);
}

/* Put every file in its place; drop data files of an earlier export that nothing refers to now. */
static ferry_status commit_all(Save *save) {
    for (size_t i = 0; i < save->count; i++) TRY(output_commit(&save->files[i], save->error));
    for (size_t i = 0; i < save->stale_count; i++) unlink(save->stale[i]);
    return FERRY_OK;
}

ferry_status ferry_exported_save(ferry_exported *exported, const char *directory,
                                 ferry_export_sizes *sizes, ferry_error *error) {
    error_clear(error);
    if (!exported->model) {
        return error_set(error, FERRY_UNSUPPORTED, directory,
                         "a loaded export cannot be saved again: copy its directory");
    }
    Save save = {.exported = exported, .error = error};
    bool created = false;
    save.directory = arena_string(&exported->manifest.arena, directory);
    ferry_status status = path_make_directory(directory, &created, error);
    if (status == FERRY_OK) status = write_all(&save);
    if (status == FERRY_OK) status = commit_all(&save);
    for (size_t i = 0; i < save.count; i++) output_discard(&save.files[i]);
    if (status != FERRY_OK && created) rmdir(directory);
    if (status == FERRY_OK) {
        exported->directory = save.directory;
        for (size_t i = 0; i < exported->component_count; i++) {
            exported->components[i]->directory = save.directory;
        }
        if (sizes) *sizes = save.sizes;
    }
    shared_free(&save.shared);
    arena_free(&save.arena);
    return status;
}
