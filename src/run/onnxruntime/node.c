/* ONNX Runtime in packages of Node, whose node_modules are found from the current directory. */
#define _GNU_SOURCE
#include "base/file.h"
#include "run/onnxruntime/ort.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__aarch64__)
#define NODE_PLATFORM "linux/arm64"
#else
#define NODE_PLATFORM "linux/x64"
#endif

static void search_node_modules(LibrarySearch *search, const char *directory) {
    Arena *arena = &search->arena;
    const char *package = path_join(arena, directory, "node_modules/onnxruntime-node");
    if (!path_is_directory(package)) return;
    search_place(search, package);
    Paths builds = search_list(arena, path_join(arena, package, "bin"), "napi-v");
    for (size_t i = 0; i < builds.count; i++) {
        search_files(search, path_join(arena, builds.items[i], NODE_PLATFORM));
    }
    VEC_FREE(&builds);
}

void ort_search_node(LibrarySearch *search) {
    char *current = getcwd(NULL, 0);
    if (!current) return;
    search_place(search, "node_modules");
    const char *directory = arena_string(&search->arena, current);
    free(current);
    while (*directory) {
        search_node_modules(search, directory);
        if (strcmp(directory, "/") == 0) return;
        directory = search_parent(&search->arena, directory);
    }
}
