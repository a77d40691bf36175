/* Loading and checking the OpenVINO library. */
#define _GNU_SOURCE
#include "base/buffer.h"
#include "base/error.h"
#include "run/openvino/ov.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The message may have several lines. */
ferry_status ov_check(const OpenVino *runtime, OvStatus status, const char *where, const char *what,
                      ferry_error *error) {
    if (status == 0) return FERRY_OK;
    char text[900];
    const char *message = runtime->api.get_last_err_msg();
    snprintf(text, sizeof text, "%s", message ? message : "");
    if (message) runtime->api.free(message);
    size_t length = strlen(text);
    while (length && strchr("\n ", text[length - 1])) text[--length] = 0;
    for (char *next = text; *next; next++) {
        if (*next == '\n') *next = ' ';
    }
    return error_set(error, FERRY_RUNTIME_FAILED, where, "%s: %s", what,
                     length ? text : "OpenVINO does not say why");
}

bool ov_version_accepted(const char *version) {
    unsigned year = 0;
    return sscanf(version, "%u.", &year) == 1 && year >= 2026 && year < 10000;
}

/* All functions by name; the name of one that is missing, or NULL. */
static const char *find_functions(void *handle, OvApi *api) {
    void *found;
#define FUNCTION(result, name, parameters)                                                         \
    found = dlsym(handle, "ov_" #name);                                                            \
    if (!found) return "ov_" #name;                                                                \
    memcpy(&api->name, &found, sizeof found);
    OV_FUNCTIONS(FUNCTION)
#undef FUNCTION
    return NULL;
}

/* The number of the release: what is before the first dash of "2026.4.1-22982-e213a147257". */
static ferry_status read_version(OpenVino *runtime, const char *path, ferry_error *error) {
    OvVersion version = {0};
    TRY(ov_check(runtime, runtime->api.get_openvino_version(&version), path,
                 "cannot read the version", error));
    const char *build = version.build_number ? version.build_number : "";
    runtime->version = arena_string_n(&runtime->arena, build, strcspn(build, "-"));
    runtime->api.version_free(&version);
    if (ov_version_accepted(runtime->version)) return FERRY_OK;
    return error_set(error, FERRY_UNSUPPORTED, path,
                     "OpenVINO %s; ferry needs 2026.0 or newer: `pip install --upgrade openvino`",
                     runtime->version);
}

static ferry_status read_devices(OpenVino *runtime, ferry_error *error) {
    OvDevices devices = {0};
    Buffer text = {0};
    TRY(ov_check(runtime, runtime->api.core_get_available_devices(runtime->core, &devices),
                 runtime->path, "OpenVINO cannot list its devices", error));
    for (size_t i = 0; i < devices.count; i++) {
        buffer_format(&text, "%s%s", i ? ", " : "", devices.names[i]);
    }
    runtime->api.available_devices_free(&devices);
    runtime->devices = arena_string(&runtime->arena, buffer_string(&text));
    bool failed = text.failed;
    buffer_free(&text);
    return failed ? error_memory(error, runtime->path, 0) : FERRY_OK;
}

static ferry_status start(OpenVino *runtime, ferry_error *error) {
    TRY(ov_check(runtime, runtime->api.core_create(&runtime->core), runtime->path,
                 "OpenVINO did not start", error));
    return read_devices(runtime, error);
}

static ferry_status find_api(void *handle, OpenVino *runtime, const char *path,
                             ferry_error *error) {
    const char *missing = find_functions(handle, &runtime->api);
    if (missing) {
        return error_set(error, FERRY_BAD_FORMAT, path,
                         "not OpenVINO: the library has no %s (the one in the Python package is "
                         "openvino/libs/libopenvino_c.so.*)",
                         missing);
    }
    runtime->path = library_path(&runtime->arena, handle, path);
    return read_version(runtime, path, error);
}

/* The library stays in memory once its core exists: it keeps threads and destructors that do not survive
 * an unload. */
static ferry_status load_library(const char *path, void **out, ferry_error *error) {
    void *handle;
    TRY(library_open(path, &handle, error));
    OpenVino *runtime = calloc(1, sizeof *runtime);
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
        openvino_unload(runtime);
    return status;
}

void openvino_unload(OpenVino *runtime) {
    if (!runtime) return;
    if (runtime->core) runtime->api.core_free(runtime->core);
    arena_free(&runtime->arena);
    free(runtime);
}

const char *openvino_version(const OpenVino *runtime) {
    return runtime->version;
}

const char *openvino_path(const OpenVino *runtime) {
    return runtime->path;
}

const char *openvino_devices(const OpenVino *runtime) {
    return runtime->devices;
}

static const char *const loader_names[] = {"libopenvino_c.so", NULL};
static const char *const inside[] = {
    "libs", "openvino/libs", "runtime/lib/intel64", "runtime/lib/aarch64", "lib", NULL};

const LibraryKind ov_library = {
    .title = "OpenVINO",
    .variable = "FERRY_OPENVINO",
    .file = "libopenvino_c.so",
    .loader_names = loader_names,
    .package = "openvino/libs",
    .inside = inside,
    .how_to_install =
        "install it with `pip install openvino`, or set FERRY_OPENVINO to the path of "
        "libopenvino_c.so or of its directory",
    .load = load_library,
};

ferry_status openvino_load(const char *library, OpenVino **out, ferry_error *error) {
    void *loaded;
    ferry_status status = library_load(&ov_library, library, &loaded, error);
    *out = loaded;
    return status;
}
