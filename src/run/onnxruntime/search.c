/* Where a libonnxruntime may be. Neither Python nor Node is started: their package folders are
 * found from the environment, from the `python3` on PATH and from the current directory, and a
 * package that is there has its library in a known place. */
#define _GNU_SOURCE
#include "run/onnxruntime/ort.h"
#include "base/file.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__aarch64__)
#define NODE_PLATFORM "linux/arm64"
#else
#define NODE_PLATFORM "linux/x64"
#endif

#define LIBRARY_NAME "libonnxruntime.so"

typedef VEC(const char *) Names;

static int compare_newest_first(const void *a, const void *b) {
    return strverscmp(*(const char *const *)b, *(const char *const *)a);
}

/* Paths of the entries of `directory` that begin with `prefix`, the highest version first. */
static Names list_directory(Arena *arena, const char *directory, const char *prefix) {
    Names names = {0};
    DIR *stream = opendir(directory);
    if (!stream) return names;
    for (struct dirent *entry; (entry = readdir(stream));) {
        if (entry->d_name[0] == '.') continue;
        if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0) continue;
        VEC_PUSH(&names, path_join(arena, directory, entry->d_name));
    }
    closedir(stream);
    if (names.failed) arena->failed = true;
    if (names.count) qsort(names.items, names.count, sizeof *names.items, compare_newest_first);
    return names;
}

static void add_place(OrtSearch *search, const char *place) {
    for (size_t i = 0; i < search->places.count; i++) {
        if (strcmp(search->places.items[i], place) == 0) return;
    }
    VEC_PUSH(&search->places, place);
    if (search->places.failed) search->arena.failed = true;
}

static void add_file(OrtSearch *search, const char *path) {
    for (size_t i = 0; i < search->files.count; i++) {
        if (strcmp(search->files.items[i], path) == 0) return;
    }
    VEC_PUSH(&search->files, path);
    if (search->files.failed) search->arena.failed = true;
}

static void add_libraries(OrtSearch *search, const char *directory) {
    Names files = list_directory(&search->arena, directory, LIBRARY_NAME);
    for (size_t i = 0; i < files.count; i++) add_file(search, files.items[i]);
    VEC_FREE(&files);
}

void ort_search_directory(OrtSearch *search, const char *directory) {
    static const char *const inside[] = {"lib", "capi", "onnxruntime/capi"};
    add_place(search, arena_string(&search->arena, directory));
    add_libraries(search, directory);
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++) {
        add_libraries(search, path_join(&search->arena, directory, inside[i]));
    }
}

/* ---- Python ---- */

/* All Pythons installed under `prefix`: "lib/python3.11/site-packages" and other spellings of it.
 * The library does not depend on the version of Python whose package it came with. */
static void scan_prefix(OrtSearch *search, const char *prefix) {
    static const char *const libraries[] = {"lib", "lib64"};
    static const char *const packages[] = {"site-packages", "dist-packages"};
    Arena *arena = &search->arena;
    for (size_t l = 0; l < sizeof libraries / sizeof *libraries; l++) {
        Names pythons = list_directory(arena, path_join(arena, prefix, libraries[l]), "python3");
        for (size_t i = 0; i < pythons.count; i++) {
            for (size_t p = 0; p < sizeof packages / sizeof *packages; p++) {
                add_libraries(search, arena_format(arena, "%s/%s/onnxruntime/capi",
                                                   pythons.items[i], packages[p]));
            }
        }
        VEC_FREE(&pythons);
    }
}

static void search_python_prefix(OrtSearch *search, const char *prefix) {
    add_place(search, arena_format(&search->arena, "%s/lib/python3*", prefix));
    scan_prefix(search, prefix);
}

static const char *parent_directory(Arena *arena, const char *path) {
    const char *slash = strrchr(path, '/');
    if (!slash) return ".";
    return slash == path ? "/" : arena_string_n(arena, path, (size_t)(slash - path));
}

/* A virtual environment made of copies names its Python in pyvenv.cfg: "home = /usr/bin". */
static void search_venv_home(OrtSearch *search, const char *prefix) {
    FILE *file = fopen(path_join(&search->arena, prefix, "pyvenv.cfg"), "re");
    if (!file) return;
    char line[4096];
    while (fgets(line, sizeof line, file)) {
        char home[4096];
        if (sscanf(line, " home = %4095[^\n]", home) != 1) continue;
        search_python_prefix(search, parent_directory(&search->arena, home));
    }
    fclose(file);
}

/* pyenv puts scripts on PATH, in <root>/shims, that choose among <root>/versions. */
static void search_pyenv(OrtSearch *search, const char *root) {
    const char *versions = path_join(&search->arena, root, "versions");
    Names prefixes = list_directory(&search->arena, versions, "");
    add_place(search, arena_format(&search->arena, "%s/*/lib/python3*", versions));
    for (size_t i = 0; i < prefixes.count; i++) scan_prefix(search, prefixes.items[i]);
    VEC_FREE(&prefixes);
}

/* `python` is an executable, <prefix>/bin/python3, possibly a link to that of another prefix. */
static void search_python(OrtSearch *search, const char *python) {
    Arena *arena = &search->arena;
    const char *directory = parent_directory(arena, python);
    const char *prefix = parent_directory(arena, directory);
    if (strcmp(path_base(directory), "shims") == 0) {
        search_pyenv(search, prefix);
        return;
    }
    search_python_prefix(search, prefix);
    search_venv_home(search, prefix);
    char *real = realpath(python, NULL);
    if (!real) return;
    search_python_prefix(search, parent_directory(arena, parent_directory(arena, real)));
    free(real);
}

static void search_path_python(OrtSearch *search) {
    const char *path = getenv("PATH");
    while (path && *path) {
        size_t length = strcspn(path, ":");
        const char *directory = length ? arena_string_n(&search->arena, path, length) : ".";
        const char *python = path_join(&search->arena, directory, "python3");
        if (access(python, X_OK) == 0 && !path_is_directory(python)) {
            search_python(search, python);
            return;
        }
        path += length + (path[length] == ':');
    }
}

/* ---- Node ---- */

static void search_node_modules(OrtSearch *search, const char *directory) {
    Arena *arena = &search->arena;
    const char *package = path_join(arena, directory, "node_modules/onnxruntime-node");
    if (!path_is_directory(package)) return;
    add_place(search, package);
    Names builds = list_directory(arena, path_join(arena, package, "bin"), "napi-v");
    for (size_t i = 0; i < builds.count; i++) {
        add_libraries(search, path_join(arena, builds.items[i], NODE_PLATFORM));
    }
    VEC_FREE(&builds);
}

static void search_current_directory(OrtSearch *search) {
    char *current = getcwd(NULL, 0);
    if (!current) return;
    add_place(search, "node_modules");
    const char *directory = arena_string(&search->arena, current);
    free(current);
    while (*directory) {
        search_node_modules(search, directory);
        if (strcmp(directory, "/") == 0) return;
        directory = parent_directory(&search->arena, directory);
    }
}

void ort_search_packages(OrtSearch *search) {
    const char *environment = getenv("VIRTUAL_ENV");
    if (environment && *environment) {
        search_python_prefix(search, environment);
        search_venv_home(search, environment);
    }
    search_path_python(search);
    const char *home = getenv("HOME");
    if (home && *home) {
        search_python_prefix(search, path_join(&search->arena, home, ".local"));
    }
    search_python_prefix(search, "/usr/local");
    search_python_prefix(search, "/usr");
    search_current_directory(search);
}

void ort_search_free(OrtSearch *search) {
    VEC_FREE(&search->files);
    VEC_FREE(&search->places);
    arena_free(&search->arena);
}
