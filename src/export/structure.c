/* Nested structures without classes: a ModelOutput becomes a dict of the same keys, and a cache the dicts
 * and lists that its attributes spell ("layers.0.keys"). The leaves and their paths stay as they are. */
#include "base/error.h"
#include "export/export.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Leaves {
    Arena *arena;
    const char **paths;
    uint32_t count, next;
} Leaves;

/* ---- paths of all leaves ---- */

static const char *pick_path(const Port *ports, size_t port_count, const ConstantLeaf *constants,
                             size_t constant_count, uint32_t leaf) {
    uint32_t before = 0;
    for (size_t i = 0; i < constant_count; i++) {
        if (constants[i].leaf == leaf) return constants[i].name;
        before += constants[i].leaf < leaf;
    }
    return leaf - before < port_count ? ports[leaf - before].name : "";
}

/* ---- objects: dicts and lists from the paths of their leaves ---- */

/* Length of the first component of leaf `i`'s path behind `skip` characters. */
static size_t component(const Leaves *leaves, uint32_t i, size_t skip) {
    const char *path = leaves->paths[i];
    return strlen(path) > skip ? strcspn(path + skip, ".") : 0;
}

static bool same_component(const Leaves *leaves, uint32_t a, uint32_t b, size_t skip) {
    size_t length = component(leaves, a, skip);
    return length == component(leaves, b, skip) &&
           strncmp(leaves->paths[a] + skip, leaves->paths[b] + skip, length) == 0;
}

static const Tree *spell(Leaves *leaves, uint32_t first, uint32_t end, size_t skip);

/* The part of leaves [first, end) that shares the component of the first one. */
static const Tree *spell_member(Leaves *leaves, uint32_t first, uint32_t end, size_t skip) {
    size_t length = component(leaves, first, skip);
    bool is_leaf = end == first + 1 && !leaves->paths[first][skip + length];
    return is_leaf ? tree_leaf(leaves->arena) : spell(leaves, first, end, skip + length + 1);
}

/* Leaves [first, end), whose paths agree in the first `skip` characters. */
static const Tree *spell(Leaves *leaves, uint32_t first, uint32_t end, size_t skip) {
    Arena *arena = leaves->arena;
    const Tree **children = ARENA_ARRAY(arena, const Tree *, end - first);
    const char **keys = ARENA_ARRAY(arena, const char *, end - first);
    uint32_t count = 0;
    bool is_list = true;
    char index[16];
    if (!children || !keys) return NULL;
    for (uint32_t i = first, next; i < end; i = next) {
        for (next = i + 1; next < end && same_component(leaves, i, next, skip);) next++;
        size_t length = component(leaves, i, skip);
        keys[count] = arena_string_n(arena, leaves->paths[i] + (length ? skip : 0), length);
        snprintf(index, sizeof index, "%u", count);
        is_list = is_list && keys[count] && strcmp(keys[count], index) == 0;
        children[count++] = length ? spell_member(leaves, i, next, skip) : tree_leaf(arena);
    }
    return is_list ? tree_node(arena, "builtins.list", "null", children, count)
                   : tree_mapping(arena, "builtins.dict", keys, children, count);
}

/* ---- the whole structure ---- */

static const Tree *plain(Leaves *leaves, const Tree *tree, const char *path);

/* The path of child `i`: by its key, or by its index. */
static const char *child_path(Leaves *leaves, json_t *keys, uint32_t i, const char *path) {
    char index[32];
    json_t *key = json_array_get(keys, i);
    if (json_is_string(key)) return tree_path(leaves->arena, path, json_string_value(key));
    snprintf(index, sizeof index, "%lld",
             json_is_integer(key) ? (long long)json_integer_value(key) : (long long)i);
    return tree_path(leaves->arena, path, index);
}

static const Tree *plain_children(Leaves *leaves, const Tree *tree, const char *path,
                                  const char *type) {
    const Tree **children = ARENA_ARRAY(leaves->arena, const Tree *, tree->count);
    json_t *keys = json_loads(tree->context, JSON_DECODE_ANY, NULL);
    for (uint32_t i = 0; children && i < tree->count; i++) {
        const char *below = child_path(leaves, keys, i, path);
        children[i] = below ? plain(leaves, tree->children[i], below) : NULL;
    }
    json_decref(keys);
    return children ? tree_node(leaves->arena, type, tree->context, children, tree->count) : NULL;
}

static const Tree *plain(Leaves *leaves, const Tree *tree, const char *path) {
    if (!tree->type) {
        leaves->next++;
        return tree;
    }
    if (strncmp(tree->type, "builtins.", 9) == 0)
        return plain_children(leaves, tree, path, tree->type);
    if (!strchr(tree->type, ':')) return plain_children(leaves, tree, path, "builtins.dict");
    uint32_t first = leaves->next;
    leaves->next += tree_leaves(tree);
    return spell(leaves, first, leaves->next, *path ? strlen(path) + 1 : 0);
}

/* ((positional...), {keywords}): these two levels leave no trace in the paths. */
static const Tree *plain_arguments(Leaves *leaves, const Tree *tree) {
    const Tree *positional = tree->children[0], *sides[2];
    const Tree **children = ARENA_ARRAY(leaves->arena, const Tree *, positional->count);
    for (uint32_t i = 0; children && i < positional->count; i++) {
        const char *first = leaves->next < leaves->count ? leaves->paths[leaves->next] : "";
        size_t length = strcspn(first, ".");
        if (strncmp(first, "args.", 5) == 0) length = 5 + strcspn(first + 5, ".");
        const char *path = arena_string_n(leaves->arena, first, length);
        children[i] = path ? plain(leaves, positional->children[i], path) : NULL;
    }
    sides[0] = children ? tree_tuple(leaves->arena, children, positional->count) : NULL;
    sides[1] = plain(leaves, tree->children[1], "");
    return sides[0] && sides[1] ? tree_tuple(leaves->arena, sides, 2) : NULL;
}

ferry_status structure_make_plain(Program *program, ferry_error *error) {
    Leaves in = {.arena = &program->arena, .count = tree_leaves(program->input_tree)};
    Leaves out = {.arena = &program->arena, .count = tree_leaves(program->output_tree)};
    in.paths = ARENA_ARRAY(in.arena, const char *, in.count);
    out.paths = ARENA_ARRAY(out.arena, const char *, out.count);
    if (!in.paths || !out.paths) return error_memory(error, "structure", 0);
    for (uint32_t i = 0; i < in.count; i++) {
        in.paths[i] = pick_path(program->inputs.items, program->inputs.count,
                                program->input_constants.items, program->input_constants.count, i);
    }
    for (uint32_t i = 0; i < out.count; i++) {
        out.paths[i] =
            pick_path(program->outputs.items, program->outputs.count,
                      program->output_constants.items, program->output_constants.count, i);
    }
    program->input_tree = plain_arguments(&in, program->input_tree);
    program->output_tree = plain(&out, program->output_tree, "");
    return program->input_tree && program->output_tree ? FERRY_OK
                                                       : error_memory(error, "structure", 0);
}
