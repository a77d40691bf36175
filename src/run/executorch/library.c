/* Loading and checking the ExecuTorch libraries, and the adapter to them. */
#define _GNU_SOURCE
#include "base/error.h"
#include "base/file.h"
#include "run/executorch/et.h"
#include "run/library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ADAPTER "libferry_executorch.so"

#define HOW_TO_BUILD                                                                               \
    "build it where the package is, with `make executorch` in ferry's sources "                    \
    "(docs/executorch.md)"

ferry_status et_check(const ExecuTorch *runtime, int status, const char *where, const char *what,
                      ferry_error *error) {
    if (status == 0) return FERRY_OK;
    const char *message = runtime->api.message();
    return error_set(error, FERRY_RUNTIME_FAILED, where, "%s: %.900s", what,
                     *message ? message : "ExecuTorch does not say why");
}

/* All functions by name; the name of one that is missing, or NULL. */
static const char *find_functions(void *handle, EtApi *api) {
    void *found;
#define FUNCTION(result, name, parameters)                                                         \
    found = dlsym(handle, "ferry_et_" #name);                                                      \
    if (!found) return "ferry_et_" #name;                                                          \
    memcpy(&api->name, &found, sizeof found);
    ET_FUNCTIONS(FUNCTION)
#undef FUNCTION
    return NULL;
}

/* ---- the adapter ---- */

/* $FERRY_EXECUTORCH_ADAPTER, or the file beside the library or program that this code is in. */
static const char *adapter_path(Arena *arena) {
    const char *named = getenv("FERRY_EXECUTORCH_ADAPTER");
    if (named && *named) return arena_string(arena, named);
    Dl_info info;
    ferry_status (*own)(const char *, ExecuTorch **, ferry_error *) = executorch_load;
    void *address;
    memcpy(&address, &own, sizeof address);
    bool known = dladdr(address, &info) != 0 && info.dli_fname;
    char *real = realpath(known ? info.dli_fname : "/proc/self/exe", NULL);
    if (!real) return ADAPTER;
    const char *path = path_join(arena, search_parent(arena, real), ADAPTER);
    free(real);
    return path;
}

static ferry_status load_adapter(ExecuTorch *runtime, ferry_error *error) {
    const char *path = adapter_path(&runtime->arena);
    if (runtime->arena.failed) return error_memory(error, ADAPTER, 0);
    if (!path_exists(path)) {
        return error_set(error, FERRY_RUNTIME_MISSING, path,
                         "ferry's adapter to ExecuTorch does not exist: " HOW_TO_BUILD
                         ", or set FERRY_EXECUTORCH_ADAPTER to the path of one");
    }
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        return error_set(
            error, FERRY_UNSUPPORTED, path,
            "the adapter does not fit the ExecuTorch libraries at %s: %s; " HOW_TO_BUILD,
            runtime->path, dlerror());
    }
    const char *missing = find_functions(handle, &runtime->api);
    if (missing) {
        return error_set(error, FERRY_BAD_FORMAT, path,
                         "not the adapter of this version of ferry: it has no %s; " HOW_TO_BUILD,
                         missing);
    }
    const char *built = runtime->api.version();
    if (strcmp(built, runtime->version) == 0) return FERRY_OK;
    return error_set(
        error, FERRY_UNSUPPORTED, path,
        "the adapter was built for ExecuTorch %s, and %s is ExecuTorch %s: " HOW_TO_BUILD, built,
        runtime->path, runtime->version);
}

/* ---- the libraries ---- */

/* "1.5.1" of `__version__ = "1.5.1+cpu"` in the package's version.py; "unknown" without that. */
static const char *read_version(Arena *arena, const char *directory) {
    char line[256], version[64];
    const char *package = search_parent(arena, directory);
    FILE *file = fopen(path_join(arena, package, "version.py"), "re");
    const char *found = "unknown";
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "__version__ = %*1[\"']%63[0-9.]", version) != 1) continue;
        found = arena_string(arena, version);
    }
    if (file) fclose(file);
    return found;
}

/* The kernels and backends register themselves when they are loaded. */
static ferry_status load_parts(ExecuTorch *runtime, const char *directory, ferry_error *error) {
    static const char *const parts[] = {
        "libexecutorch_threadpool.so", "libexecutorch_kernels_optimized.so",
        "libexecutorch_kernels_quantized.so", "libexecutorch_backend_xnnpack.so"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const char *path = path_join(&runtime->arena, directory, parts[i]);
        void *part;
        TRY(library_open(path, &part, error));
    }
    return FERRY_OK;
}

static ferry_status start(ExecuTorch *runtime, void *handle, const char *path, ferry_error *error) {
    if (!dlsym(handle, "_ZN10executorch7runtime12runtime_initEv")) {
        return error_set(
            error, FERRY_BAD_FORMAT, path,
            "not ExecuTorch: the library has no executorch::runtime::runtime_init (the "
            "one in the Python package is executorch/lib/libexecutorch.so)");
    }
    runtime->path = library_path(&runtime->arena, handle, path);
    const char *directory = search_parent(&runtime->arena, runtime->path);
    runtime->version = read_version(&runtime->arena, directory);
    TRY(load_parts(runtime, directory, error));
    TRY(load_adapter(runtime, error));
    runtime->backends = arena_string(&runtime->arena, runtime->api.backends());
    return runtime->arena.failed ? error_memory(error, path, 0) : FERRY_OK;
}

/* The libraries stay in memory: what they registered does not survive an unload. */
static ferry_status load_library(const char *path, void **out, ferry_error *error) {
    void *handle;
    TRY(library_open(path, &handle, error));
    ExecuTorch *runtime = calloc(1, sizeof *runtime);
    if (!runtime) return error_memory(error, path, sizeof *runtime);
    ferry_status status = start(runtime, handle, path, error);
    if (status == FERRY_OK)
        *out = runtime;
    else
        executorch_unload(runtime);
    return status;
}

void executorch_unload(ExecuTorch *runtime) {
    if (!runtime) return;
    arena_free(&runtime->arena);
    free(runtime);
}

const char *executorch_version(const ExecuTorch *runtime) {
    return runtime->version;
}

const char *executorch_path(const ExecuTorch *runtime) {
    return runtime->path;
}

const char *executorch_backends(const ExecuTorch *runtime) {
    return runtime->backends;
}

static const char *const loader_names[] = {"libexecutorch.so", NULL};
static const char *const inside[] = {"lib", "executorch/lib", NULL};

const LibraryKind et_library = {
    .title = "ExecuTorch",
    .variable = "FERRY_EXECUTORCH",
    .file = "libexecutorch.so",
    .loader_names = loader_names,
    .package = "executorch/lib",
    .inside = inside,
    .how_to_install =
        "install it with `pip install executorch`, or set FERRY_EXECUTORCH to the path of "
        "libexecutorch.so or of its directory",
    .load = load_library,
};

ferry_status executorch_load(const char *library, ExecuTorch **out, ferry_error *error) {
    void *loaded;
    ferry_status status = library_load(&et_library, library, &loaded, error);
    *out = loaded;
    return status;
}
