#include "graph/tree.h"

#include <string.h>

const Tree *tree_leaf(Arena *arena) {
    return ARENA_NEW(arena, Tree);
}

const Tree *tree_node(Arena *arena, const char *type, const char *context,
                      const Tree *const *children, uint32_t count) {
    Tree *tree = ARENA_NEW(arena, Tree);
    for (uint32_t i = 0; i < count; i++) {
        if (!children[i]) return NULL;
    }
    if (!tree) return NULL;
    *tree = (Tree){.type = arena_string(arena, type),
                   .context = arena_string(arena, context),
                   .count = count,
                   .children = arena_copy(arena, children, count * sizeof *children)};
    return tree->children ? tree : NULL;
}

const Tree *tree_tuple(Arena *arena, const Tree *const *children, uint32_t count) {
    return tree_node(arena, "builtins.tuple", "null", children, count);
}

const Tree *tree_mapping(Arena *arena, const char *type, const char *const *keys,
                         const Tree *const *children, uint32_t count) {
    Buffer context = {0};
    buffer_text(&context, "[");
    for (uint32_t i = 0; i < count; i++) {
        if (i) buffer_text(&context, ", ");
        buffer_json_string(&context, keys[i]);
    }
    buffer_text(&context, "]");
    if (context.failed) arena->failed = true;
    const Tree *tree = tree_node(arena, type, buffer_string(&context), children, count);
    buffer_free(&context);
    return tree;
}

uint32_t tree_leaves(const Tree *tree) {
    if (!tree->type) return 1;
    uint32_t leaves = 0;
    for (uint32_t i = 0; i < tree->count; i++) leaves += tree_leaves(tree->children[i]);
    return leaves;
}

const char *tree_path(Arena *arena, const char *path, const char *name) {
    return *path ? arena_format(arena, "%s.%s", path, name) : arena_string(arena, name);
}

static void print_node(Buffer *buffer, const Tree *tree) {
    if (!tree->type) {
        buffer_text(buffer, "{\"type\": null, \"context\": null, \"children_spec\": []}");
        return;
    }
    buffer_text(buffer, "{\"type\": ");
    buffer_json_string(buffer, tree->type);
    buffer_text(buffer, ", \"context\": ");
    buffer_json_string(buffer, tree->context);
    buffer_text(buffer, ", \"children_spec\": [");
    for (uint32_t i = 0; i < tree->count; i++) {
        if (i) buffer_text(buffer, ", ");
        print_node(buffer, tree->children[i]);
    }
    buffer_text(buffer, "]}");
}

void tree_print(Buffer *buffer, const Tree *tree) {
    buffer_text(buffer, "[1, ");
    print_node(buffer, tree);
    buffer_text(buffer, "]");
}
