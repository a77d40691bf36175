/* Loading and checking the ONNX Runtime library. */
#define _GNU_SOURCE
#include "base/error.h"
#include "run/library.h"
#include "run/onnxruntime/ort.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

ferry_status ort_check(const OnnxRuntime *runtime, OrtStatus *status, const char *where,
                       const char *what, ferry_error *error) {
    if (!status) return FERRY_OK;
    error_set(error, FERRY_RUNTIME_FAILED, where, "%s: %s", what,
              runtime->api->GetErrorMessage(status));
    runtime->api->ReleaseStatus(status);
    return FERRY_RUNTIME_FAILED;
}

/* ---- one library ---- */

bool ort_version_accepted(const char *version) {
    unsigned major = 0, minor = 0;
    if (sscanf(version, "%u.%u", &major, &minor) != 2) return false;
    return major > 1 || (major == 1 && minor >= ORT_API_VERSION);
}

static ferry_status find_api(void *handle, OnnxRuntime *runtime, const char *path,
                             ferry_error *error) {
    const OrtApiBase *(*get_base)(void) =
        (const OrtApiBase *(*)(void))dlsym(handle, "OrtGetApiBase");
    if (!get_base) {
        return error_set(
            error, FERRY_BAD_FORMAT, path,
            "not ONNX Runtime: the library has no OrtGetApiBase (the one in the Python "
            "package is onnxruntime/capi/libonnxruntime.so.*)");
    }
    const OrtApiBase *base = get_base();
    const char *version = base ? base->GetVersionString() : "of an unknown version";
    if (ort_version_accepted(version)) runtime->api = base->GetApi(ORT_API_VERSION);
    if (!runtime->api) {
        return error_set(error, FERRY_UNSUPPORTED, path,
                         "ONNX Runtime %s; ferry needs 1.%d or newer: "
                         "`pip install --upgrade onnxruntime`",
                         version, ORT_API_VERSION);
    }
    runtime->path = library_path(&runtime->arena, handle, path);
    runtime->version = arena_string(&runtime->arena, version);
    return FERRY_OK;
}

static ferry_status start(OnnxRuntime *runtime, ferry_error *error) {
    const OrtApi *api = runtime->api;
    TRY(ort_check(runtime, api->CreateEnv(ORT_LOGGING_LEVEL_FATAL, "ferry", &runtime->env),
                  runtime->path, "ONNX Runtime did not start", error));
    TRY(ort_check(runtime, api->DisableTelemetryEvents(runtime->env), runtime->path,
                  "ONNX Runtime did not switch off its telemetry", error));
    return ort_check(
        runtime,
        api->CreateCpuMemoryInfo(ORT_ARENA_ALLOCATOR, ORT_MEMORY_DEFAULT, &runtime->memory),
        runtime->path, "ONNX Runtime has no memory of the CPU", error);
}

/* The library stays in memory once its environment exists: it keeps threads and destructors that do not
 * survive an unload. */
static ferry_status load_library(const char *path, void **out, ferry_error *error) {
    void *handle;
    TRY(library_open(path, &handle, error));
    OnnxRuntime *runtime = calloc(1, sizeof *runtime);
    if (!runtime) {
        dlclose(handle);
        return error_memory(error, path, sizeof *runtime);
    }
    ferry_status status = find_api(handle, runtime, path, error);
    if (status != FERRY_OK)
        dlclose(handle);
    else
        status = start(runtime, error);
    if (status == FERRY_OK && runtime->arena.failed) status = error_memory(error, path, 0);
    if (status == FERRY_OK)
        *out = runtime;
    else
        onnxruntime_unload(runtime);
    return status;
}

void onnxruntime_unload(OnnxRuntime *runtime) {
    if (!runtime) return;
    if (runtime->memory) runtime->api->ReleaseMemoryInfo(runtime->memory);
    if (runtime->env) runtime->api->ReleaseEnv(runtime->env);
    arena_free(&runtime->arena);
    free(runtime);
}

const char *onnxruntime_version(const OnnxRuntime *runtime) {
    return runtime->version;
}

const char *onnxruntime_path(const OnnxRuntime *runtime) {
    return runtime->path;
}

static const char *const loader_names[] = {"libonnxruntime.so", "libonnxruntime.so.1", NULL};
static const char *const inside[] = {"lib", "capi", "onnxruntime/capi", NULL};

const LibraryKind ort_library = {
    .title = "ONNX Runtime",
    .variable = "FERRY_ONNXRUNTIME",
    .file = "libonnxruntime.so",
    .loader_names = loader_names,
    .package = "onnxruntime/capi",
    .inside = inside,
    .how_to_install = "install it with `pip install onnxruntime` (from 1.19 on the package holds "
                      "the library), or "
                      "set FERRY_ONNXRUNTIME to the path of libonnxruntime.so or of its directory",
    .search_more = ort_search_node,
    .load = load_library,
};

ferry_status onnxruntime_load(const char *library, OnnxRuntime **out, ferry_error *error) {
    void *loaded;
    ferry_status status = library_load(&ort_library, library, &loaded, error);
    *out = loaded;
    return status;
}
