/* Loading plug-ins. */
#include "base/error.h"
#include "pass/pass.h"
#include "plugin/plugin.h"
#include "source/checkpoint/model.h"
#include "source/pt2/pt2.h"
#include "target/onnx/onnx.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

struct ferry_plugins {
    Registry registry;
    VEC(void *) libraries;
};

ferry_status plugin_builtin(Registry *registry, ferry_error *error) {
    families_register(registry);
    translations_register(registry);
    decompositions_register(registry);
    onnx_register(registry);
    return registry_health(registry, error);
}

const Registry *plugin_registry(const ferry_plugins *plugins) {
    return &plugins->registry;
}

typedef ferry_status (*RegisterFunction)(ferry_registry *registry, ferry_error *error);

static ferry_status load(ferry_plugins *plugins, const char *path, ferry_error *error) {
    /* A name without a slash would be searched for in the system's folders. */
    const char *file =
        strchr(path, '/') ? path : arena_format(&plugins->registry.arena, "./%s", path);
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return error_set(error, FERRY_NOT_FOUND, path, "cannot load the plug-in: %s", dlerror());
    VEC_PUSH(&plugins->libraries, library);
    const int *abi = dlsym(library, "ferry_plugin_abi");
    union {
        void *object;
        RegisterFunction call;
    } found = {dlsym(library, "ferry_plugin_register")};
    if (!abi || !found.object) {
        return error_set(error, FERRY_BAD_FORMAT, path,
                         "expected a plug-in, found a library without ferry_plugin_%s: see "
                         "FERRY_PLUGIN in <ferry/plugin.h>",
                         abi ? "register" : "abi");
    }
    if (*abi != FERRY_PLUGIN_ABI) {
        return error_set(error, FERRY_UNSUPPORTED, path,
                         "the plug-in was built for version %d of the plug-in interface, this is "
                         "version %d: build it against this library's headers",
                         *abi, FERRY_PLUGIN_ABI);
    }
    error_clear(error);
    ferry_status status = found.call(&plugins->registry, error);
    if (status != FERRY_OK) {
        const char *text = error && *error->message ? error->message : "it gave no reason";
        return error_set(error, status, path, "the plug-in refused to load: %s",
                         arena_string(&plugins->registry.arena, text));
    }
    if (plugins->registry.problem)
        return error_set(error, FERRY_INVALID_ARGUMENT, path, "%s", plugins->registry.problem);
    return registry_health(&plugins->registry, error);
}

ferry_status ferry_plugins_load(const char *const *paths, size_t count, ferry_plugins **out,
                                ferry_error *error) {
    error_clear(error);
    *out = NULL;
    ferry_plugins *plugins = calloc(1, sizeof *plugins);
    if (!plugins) return error_memory(error, "plug-ins", sizeof *plugins);
    ferry_status status = plugin_builtin(&plugins->registry, error);
    for (size_t i = 0; i < count && status == FERRY_OK; i++)
        status = load(plugins, paths[i], error);
    if (status == FERRY_OK)
        *out = plugins;
    else
        ferry_plugins_free(plugins);
    return status;
}

void ferry_plugins_free(ferry_plugins *plugins) {
    if (!plugins) return;
    registry_free(&plugins->registry);
    for (size_t i = plugins->libraries.count; i-- > 0;) dlclose(plugins->libraries.items[i]);
    VEC_FREE(&plugins->libraries);
    free(plugins);
}
