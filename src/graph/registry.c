#include "graph/registry.h"
#include "base/error.h"

#include <stdlib.h>

void registry_add(Registry *registry, ExtensionKind kind, const char *name, const void *item) {
    VEC_PUSH(&registry->lists[kind], (Extension){name, item});
    map_put(&registry->by_name[kind], name, (void *)(uintptr_t)item);
}

const void *registry_find(const Registry *registry, ExtensionKind kind, const char *name) {
    return map_find(&registry->by_name[kind], name);
}

ferry_status registry_health(const Registry *registry, ferry_error *error) {
    bool failed = registry->arena.failed;
    for (int kind = 0; kind < EXTENSION_KINDS; kind++)
        failed |= registry->lists[kind].failed || registry->by_name[kind].failed;
    return failed ? error_memory(error, "registry", 0) : FERRY_OK;
}

void registry_free(Registry *registry) {
    for (int kind = 0; kind < EXTENSION_KINDS; kind++) {
        map_free(&registry->by_name[kind]);
        VEC_FREE(&registry->lists[kind]);
    }
    arena_free(&registry->arena);
}
