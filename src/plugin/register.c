/* What plug-ins register: copied, checked, and put where the built-in extensions are. */
#include "plugin/plugin.h"
#include "source/checkpoint/model.h"
#include "source/pt2/reader.h"
#include "target/onnx/onnx.h"

#include <string.h>

static void refuse(Registry *registry, const char *format, const char *name) {
    if (!registry->problem) registry->problem = arena_format(&registry->arena, format, name);
}

static bool check_operation(Registry *registry, const char *operation) {
    Op op;
    if (op_lookup(operation, &op)) return true;
    refuse(registry, "the plug-in registers \"%s\", which is not an operation; see `ferry ops`",
           operation);
    return false;
}

/* Keep a copy of the item; the name is copied too. */
static void add(Registry *registry, ExtensionKind kind, const char *name, const void *item,
                size_t size) {
    const void *copy = arena_copy(&registry->arena, item, size);
    name = arena_string(&registry->arena, name);
    if (copy && name) registry_add(registry, kind, name, copy);
}

void ferry_register_translation(ferry_registry *registry, const char *torch_operator,
                                ferry_translate translate) {
    const Translation row = {.target = arena_string(&registry->arena, torch_operator),
                             .translate = translate};
    add(registry, EXTENSION_TRANSLATION, torch_operator, &row, sizeof row);
}

void ferry_register_decomposition(ferry_registry *registry, const char *operation,
                                  ferry_rewrite decompose) {
    if (check_operation(registry, operation))
        add(registry, EXTENSION_DECOMPOSITION, operation, &decompose, sizeof decompose);
}

void ferry_register_node_fix(ferry_registry *registry, const char *target, const char *name,
                             ferry_rewrite fix) {
    const NodeFix item = {target ? arena_string(&registry->arena, target) : NULL, fix};
    add(registry, EXTENSION_NODE_FIX, name, &item, sizeof item);
}

void ferry_register_program_fix(ferry_registry *registry, const char *target, const char *name,
                                ferry_fix_program fix) {
    const ProgramFix item = {target ? arena_string(&registry->arena, target) : NULL, fix};
    add(registry, EXTENSION_PROGRAM_FIX, name, &item, sizeof item);
}

void ferry_register_onnx_lowering(ferry_registry *registry, const char *operation, int since,
                                  ferry_lower_onnx lower) {
    const OnnxLowering row = {.lower = lower, .op_type = "", .since = since};
    if (!check_operation(registry, operation)) return;
    add(registry, EXTENSION_LOWERING, arena_format(&registry->arena, "onnx/%s", operation), &row,
        sizeof row);
}

void ferry_register_family(ferry_registry *registry, const ferry_family_definition *definition) {
    Arena *arena = &registry->arena;
    Family family = {.model_type = arena_string(arena, definition->model_type),
                     .class_prefix = arena_string(arena, definition->class_prefix),
                     .base_prefix = arena_string(arena, definition->base_prefix),
                     .build = definition->build};
    for (size_t i = 0; definition->tasks[i]; i++) {
        Task task;
        if (task_parse(definition->tasks[i], &task))
            family.tasks |= 1u << task;
        else
            refuse(registry, "the plug-in registers a family for \"%s\", which is not a task",
                   definition->tasks[i]);
    }
    add(registry, EXTENSION_FAMILY, definition->model_type, &family, sizeof family);
}
