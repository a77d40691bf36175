/* Loading the library of a runtime: the one that is named, or the first that works. */
#define _GNU_SOURCE
#include "run/library.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/file.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

/* ---- one library ---- */

ferry_status library_open(const char *path, void **handle, ferry_error *error) {
    *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (*handle) return FERRY_OK;
    return error_set(error, FERRY_BAD_FORMAT, path, "cannot load the library: %s", dlerror());
}

const char *library_path(Arena *arena, void *handle, const char *path) {
    struct link_map *map = NULL;
    bool known = dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map && *map->l_name;
    char *real = realpath(known ? map->l_name : path, NULL);
    const char *found = arena_string(arena, real ? real : path);
    free(real);
    return found;
}

/* ---- a named library ---- */

static ferry_status load_from_directory(const LibraryKind *kind, const char *directory, void **out,
                                        ferry_error *error) {
    LibrarySearch search = {.kind = kind};
    search_directory(&search, directory);
    ferry_status status;
    if (search.arena.failed)
        status = error_memory(error, directory, 0);
    else if (search.files.count)
        status = kind->load(search.files.items[0], out, error);
    else {
        status = error_set(error, FERRY_RUNTIME_MISSING, directory, "the directory holds no %s; %s",
                           kind->file, kind->how_to_install);
    }
    search_free(&search);
    return status;
}

static ferry_status load_named(const LibraryKind *kind, const char *library, void **out,
                               ferry_error *error) {
    if (path_is_directory(library)) return load_from_directory(kind, library, out, error);
    if (!path_exists(library)) {
        return error_set(error, FERRY_RUNTIME_MISSING, library, "the %s library does not exist; %s",
                         kind->title, kind->how_to_install);
    }
    Arena arena = {0};
    const char *path = strchr(library, '/') ? library : path_join(&arena, ".", library);
    ferry_status status =
        arena.failed ? error_memory(error, library, 0) : kind->load(path, out, error);
    arena_free(&arena);
    return status;
}

/* ---- the search ---- */

/* What did not work, for the message: the first file that was found but is not usable. */
static ferry_status report_missing(const LibrarySearch *search, const ferry_error *unusable,
                                   ferry_error *error) {
    enum { PLACES_LENGTH = 500 };
    Buffer text = {0};
    size_t shown = 0;
    buffer_text(&text, "the system's library path");
    for (; shown < search->places.count && text.length < PLACES_LENGTH; shown++) {
        buffer_format(&text, ", %s", search->places.items[shown]);
    }
    if (shown < search->places.count) {
        buffer_format(&text, " and %zu more places", search->places.count - shown);
    }
    if (unusable->status != FERRY_OK) {
        buffer_format(&text, "; not usable: %s: %.200s", unusable->where, unusable->message);
    }
    ferry_status status =
        error_set(error, FERRY_RUNTIME_MISSING, NULL, "%s was not found: %s; looked in %s",
                  search->kind->title, search->kind->how_to_install, buffer_string(&text));
    buffer_free(&text);
    return status;
}

/* Try one file; the first that is the library but not usable, or not loadable, is remembered. */
static bool try_library(const LibraryKind *kind, const char *path, bool expected, void **out,
                        ferry_error *unusable) {
    ferry_error failure = {0};
    if (kind->load(path, out, &failure) == FERRY_OK) return true;
    bool tell = expected || failure.status != FERRY_BAD_FORMAT;
    if (tell && unusable->status == FERRY_OK) *unusable = failure;
    return false;
}

static bool try_all(const LibrarySearch *search, void **out, ferry_error *unusable) {
    for (const char *const *name = search->kind->loader_names; *name; name++) {
        if (try_library(search->kind, *name, false, out, unusable)) return true;
    }
    for (size_t i = 0; i < search->files.count; i++) {
        if (try_library(search->kind, search->files.items[i], true, out, unusable)) return true;
    }
    return false;
}

static ferry_status load_searched(const LibraryKind *kind, void **out, ferry_error *error) {
    LibrarySearch search = {.kind = kind};
    ferry_error unusable = {0};
    ferry_status status = FERRY_OK;
    search_packages(&search);
    if (search.arena.failed)
        status = error_memory(error, NULL, 0);
    else if (!try_all(&search, out, &unusable))
        status = report_missing(&search, &unusable, error);
    search_free(&search);
    return status;
}

static ferry_status load_from_environment(const LibraryKind *kind, const char *library, void **out,
                                          ferry_error *error) {
    ferry_error failure = {0};
    ferry_status status = load_named(kind, library, out, &failure);
    if (status == FERRY_OK) return FERRY_OK;
    return error_set(error, status, failure.where, "%s: %.900s", kind->variable, failure.message);
}

ferry_status library_load(const LibraryKind *kind, const char *library, void **out,
                          ferry_error *error) {
    *out = NULL;
    if (library) return load_named(kind, library, out, error);
    const char *named = getenv(kind->variable);
    if (named && *named) return load_from_environment(kind, named, out, error);
    return load_searched(kind, out, error);
}

bool library_fits(const LibraryKind *kind, const char *path) {
    if (!path_is_directory(path)) {
        return strncmp(path_base(path), kind->file, strlen(kind->file)) == 0;
    }
    LibrarySearch search = {.kind = kind};
    search_directory(&search, path);
    bool fits = search.files.count > 0;
    search_free(&search);
    return fits;
}
