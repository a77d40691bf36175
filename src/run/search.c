/* Where the library of a runtime may be. Python is not started: its package folders are found from the
 * environment and from the `python3` on PATH, and a package that is there has its library in a known
 * place. */
#define _GNU_SOURCE
#include "base/file.h"
#include "run/library.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int compare_newest_first(const void *a, const void *b) {
    return strverscmp(*(const char *const *)b, *(const char *const *)a);
}

Paths search_list(Arena *arena, const char *directory, const char *prefix) {
    Paths names = {0};
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

void search_place(LibrarySearch *search, const char *place) {
    for (size_t i = 0; i < search->places.count; i++) {
        if (strcmp(search->places.items[i], place) == 0) return;
    }
    VEC_PUSH(&search->places, place);
    if (search->places.failed) search->arena.failed = true;
}

static void add_file(LibrarySearch *search, const char *path) {
    for (size_t i = 0; i < search->files.count; i++) {
        if (strcmp(search->files.items[i], path) == 0) return;
    }
    VEC_PUSH(&search->files, path);
    if (search->files.failed) search->arena.failed = true;
}

void search_files(LibrarySearch *search, const char *directory) {
    Paths files = search_list(&search->arena, directory, search->kind->file);
    for (size_t i = 0; i < files.count; i++) add_file(search, files.items[i]);
    VEC_FREE(&files);
}

void search_directory(LibrarySearch *search, const char *directory) {
    search_place(search, arena_string(&search->arena, directory));
    search_files(search, directory);
    for (const char *const *inside = search->kind->inside; *inside; inside++) {
        search_files(search, path_join(&search->arena, directory, *inside));
    }
}

/* ---- Python ---- */

/* All Pythons installed under `prefix`: "lib/python3.11/site-packages" and other spellings of it.
 * The library does not depend on the version of Python whose package it came with. */
static void scan_prefix(LibrarySearch *search, const char *prefix) {
    static const char *const libraries[] = {"lib", "lib64"};
    static const char *const packages[] = {"site-packages", "dist-packages"};
    Arena *arena = &search->arena;
    for (size_t l = 0; l < sizeof libraries / sizeof *libraries; l++) {
        Paths pythons = search_list(arena, path_join(arena, prefix, libraries[l]), "python3");
        for (size_t i = 0; i < pythons.count; i++) {
            for (size_t p = 0; p < sizeof packages / sizeof *packages; p++) {
                search_files(search, arena_format(arena, "%s/%s/%s", pythons.items[i], packages[p],
                                                  search->kind->package));
            }
        }
        VEC_FREE(&pythons);
    }
}

static void search_python_prefix(LibrarySearch *search, const char *prefix) {
    search_place(search, arena_format(&search->arena, "%s/lib/python3*", prefix));
    scan_prefix(search, prefix);
}

const char *search_parent(Arena *arena, const char *path) {
    const char *slash = strrchr(path, '/');
    if (!slash) return ".";
    return slash == path ? "/" : arena_string_n(arena, path, (size_t)(slash - path));
}

/* A virtual environment made of copies names its Python in pyvenv.cfg: "home = /usr/bin". */
static void search_venv_home(LibrarySearch *search, const char *prefix) {
    FILE *file = fopen(path_join(&search->arena, prefix, "pyvenv.cfg"), "re");
    if (!file) return;
    char line[4096];
    while (fgets(line, sizeof line, file)) {
        char home[4096];
        if (sscanf(line, " home = %4095[^\n]", home) != 1) continue;
        search_python_prefix(search, search_parent(&search->arena, home));
    }
    fclose(file);
}

/* pyenv puts scripts on PATH, in <root>/shims, that choose among <root>/versions. */
static void search_pyenv(LibrarySearch *search, const char *root) {
    const char *versions = path_join(&search->arena, root, "versions");
    Paths prefixes = search_list(&search->arena, versions, "");
    search_place(search, arena_format(&search->arena, "%s/*/lib/python3*", versions));
    for (size_t i = 0; i < prefixes.count; i++) scan_prefix(search, prefixes.items[i]);
    VEC_FREE(&prefixes);
}

/* `python` is an executable, <prefix>/bin/python3, possibly a link to that of another prefix. */
static void search_python(LibrarySearch *search, const char *python) {
    Arena *arena = &search->arena;
    const char *directory = search_parent(arena, python);
    const char *prefix = search_parent(arena, directory);
    if (strcmp(path_base(directory), "shims") == 0) {
        search_pyenv(search, prefix);
        return;
    }
    search_python_prefix(search, prefix);
    search_venv_home(search, prefix);
    char *real = realpath(python, NULL);
    if (!real) return;
    search_python_prefix(search, search_parent(arena, search_parent(arena, real)));
    free(real);
}

static void search_path_python(LibrarySearch *search) {
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

void search_packages(LibrarySearch *search) {
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
    if (search->kind->search_more) search->kind->search_more(search);
}

void search_free(LibrarySearch *search) {
    VEC_FREE(&search->files);
    VEC_FREE(&search->places);
    arena_free(&search->arena);
}
