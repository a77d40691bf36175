/* Finding, loading and checking the ONNX Runtime library.
 *
 * A library that the caller or $FERRY_ONNXRUNTIME names must be usable, or the reason is reported.
 * In a search, what cannot be used is passed over, and the message says what was wrong with it. */
#define _GNU_SOURCE
#include "run/onnxruntime/ort.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/file.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOW_TO_INSTALL                                                                             \
    "install it with `pip install onnxruntime` (from 1.19 on the package holds the library), or "  \
    "set FERRY_ONNXRUNTIME to the path of libonnxruntime.so or of its directory"

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
    Dl_info info;
    bool known = dladdr((void *)get_base, &info) != 0 && info.dli_fname;
    char *real = realpath(known ? info.dli_fname : path, NULL);
    runtime->path = arena_string(&runtime->arena, real ? real : path);
    runtime->version = arena_string(&runtime->arena, version);
    free(real);
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

/* `path` is a file, or a name without a slash for the loader to find. The library stays in memory
 * once its environment exists: it keeps threads and destructors that do not survive an unload. */
static ferry_status load_library(const char *path, OnnxRuntime **out, ferry_error *error) {
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        return error_set(error, FERRY_BAD_FORMAT, path, "cannot load the library: %s", dlerror());
    }
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

/* ---- a named library ---- */

static ferry_status load_from_directory(const char *directory, OnnxRuntime **out,
                                        ferry_error *error) {
    OrtSearch search = {0};
    ort_search_directory(&search, directory);
    ferry_status status;
    if (search.arena.failed)
        status = error_memory(error, directory, 0);
    else if (search.files.count)
        status = load_library(search.files.items[0], out, error);
    else {
        status = error_set(error, FERRY_RUNTIME_MISSING, directory,
                           "the directory holds no libonnxruntime.so; " HOW_TO_INSTALL);
    }
    ort_search_free(&search);
    return status;
}

static ferry_status load_named(const char *library, OnnxRuntime **out, ferry_error *error) {
    if (path_is_directory(library)) return load_from_directory(library, out, error);
    if (!path_exists(library)) {
        return error_set(error, FERRY_RUNTIME_MISSING, library,
                         "the ONNX Runtime library does not exist; " HOW_TO_INSTALL);
    }
    Arena arena = {0};
    const char *path = strchr(library, '/') ? library : path_join(&arena, ".", library);
    ferry_status status =
        arena.failed ? error_memory(error, library, 0) : load_library(path, out, error);
    arena_free(&arena);
    return status;
}

/* ---- the search ---- */

/* What did not work, for the message: the first file that was found but is not usable. */
static ferry_status report_missing(const OrtSearch *search, const ferry_error *unusable,
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
    ferry_status status = error_set(error, FERRY_RUNTIME_MISSING, NULL,
                                    "ONNX Runtime was not found: " HOW_TO_INSTALL "; looked in %s",
                                    buffer_string(&text));
    buffer_free(&text);
    return status;
}

/* Try one file; the first that is ONNX Runtime but not usable, or not loadable, is remembered. */
static bool try_library(const char *path, bool expected, OnnxRuntime **out, ferry_error *unusable) {
    ferry_error failure = {0};
    if (load_library(path, out, &failure) == FERRY_OK) return true;
    bool tell = expected || failure.status != FERRY_BAD_FORMAT;
    if (tell && unusable->status == FERRY_OK) *unusable = failure;
    return false;
}

static bool try_all(const OrtSearch *search, OnnxRuntime **out, ferry_error *unusable) {
    static const char *const loader_names[] = {"libonnxruntime.so", "libonnxruntime.so.1"};
    for (size_t i = 0; i < sizeof loader_names / sizeof *loader_names; i++) {
        if (try_library(loader_names[i], false, out, unusable)) return true;
    }
    for (size_t i = 0; i < search->files.count; i++) {
        if (try_library(search->files.items[i], true, out, unusable)) return true;
    }
    return false;
}

static ferry_status load_searched(OnnxRuntime **out, ferry_error *error) {
    OrtSearch search = {0};
    ferry_error unusable = {0};
    ferry_status status = FERRY_OK;
    ort_search_packages(&search);
    if (search.arena.failed)
        status = error_memory(error, NULL, 0);
    else if (!try_all(&search, out, &unusable))
        status = report_missing(&search, &unusable, error);
    ort_search_free(&search);
    return status;
}

static ferry_status load_from_environment(const char *library, OnnxRuntime **out,
                                          ferry_error *error) {
    ferry_error failure = {0};
    ferry_status status = load_named(library, out, &failure);
    if (status == FERRY_OK) return FERRY_OK;
    return error_set(error, status, failure.where, "FERRY_ONNXRUNTIME: %.900s", failure.message);
}

ferry_status onnxruntime_load(const char *library, OnnxRuntime **out, ferry_error *error) {
    *out = NULL;
    if (library) return load_named(library, out, error);
    const char *named = getenv("FERRY_ONNXRUNTIME");
    if (named && *named) return load_from_environment(named, out, error);
    return load_searched(out, error);
}
