/* Saving: all files are written beside their places, and put there when every one is complete. */
#include "base/error.h"
#include "export/export.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

static ferry_status write_all(Save *save) {
    TRY(save->exported->target->write(save));
    TRY(files_write(save));
    return write_manifest(save);
}

/* Put every file in its place; drop a data file of an earlier export that nothing refers to now. */
static ferry_status commit_all(Save *save) {
    for (size_t i = 0; i < save->count; i++) TRY(output_commit(&save->files[i], save->error));
    if (save->sizes.weight_bytes == 0 && strcmp(save->exported->target->name, "onnx") == 0) {
        unlink(path_join(&save->arena, save->directory, "model.onnx.data"));
    }
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
        if (sizes) *sizes = save.sizes;
    }
    arena_free(&save.arena);
    return status;
}
