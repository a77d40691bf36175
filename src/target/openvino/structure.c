#include "target/openvino/structure.h"
#include "base/error.h"
#include "format/json.h"

#include <stdlib.h>
#include <string.h>

/* One side of the signature, and where a walk over its leaves stands. */
typedef struct Side {
    Program *program;
    Port *ports;
    size_t *port_count;
    ConstantLeaf *constants;
    size_t *constant_count;
    const bool *gone;
    size_t port, constant;
    uint32_t leaf; /* before */
    size_t kept_constants;
    uint32_t kept; /* leaves */
} Side;

static Side side_of(Program *program, bool outputs) {
    if (outputs) {
        return (Side){.program = program,
                      .ports = program->outputs.items,
                      .port_count = &program->outputs.count,
                      .constants = program->output_constants.items,
                      .constant_count = &program->output_constants.count};
    }
    return (Side){.program = program,
                  .ports = program->inputs.items,
                  .port_count = &program->inputs.count,
                  .constants = program->input_constants.items,
                  .constant_count = &program->input_constants.count};
}

static bool at_constant(const Side *side) {
    return side->constant < *side->constant_count &&
           side->constants[side->constant].leaf == side->leaf;
}

/* ---- caches ---- */

static bool is_cache(const Tree *tree) {
    size_t length = tree->type ? strlen(tree->type) : 0;
    return length >= 5 && strcmp(tree->type + length - 5, "Cache") == 0;
}

static void find(Side *side, const Tree *tree, bool inside, bool *caches) {
    inside = inside || is_cache(tree);
    for (uint32_t i = 0; i < tree->count; i++) find(side, tree->children[i], inside, caches);
    if (tree->type) return;
    if (at_constant(side))
        side->constant++;
    else if (side->port < *side->port_count)
        caches[side->port++] = inside;
    side->leaf++;
}

void structure_find_caches(Program *program, bool outputs, bool *caches) {
    Side side = side_of(program, outputs);
    const Tree *tree = outputs ? program->output_tree : program->input_tree;
    if (tree) find(&side, tree, false, caches);
}

/* ---- pruning ---- */

static void keep_constant(Side *side) {
    ConstantLeaf constant = side->constants[side->constant++];
    constant.leaf = side->kept++;
    side->constants[side->kept_constants++] = constant;
}

/* NULL when the leaf is gone. */
static const Tree *prune_leaf(Side *side, const Tree *tree) {
    bool stays = at_constant(side) || !side->gone[side->port];
    if (at_constant(side))
        keep_constant(side);
    else if (!side->gone[side->port++])
        side->kept++;
    side->leaf++;
    return stays ? tree : NULL;
}

static bool loses_leaves(Side side, uint32_t leaves) {
    bool loses = false;
    for (uint32_t i = 0; i < leaves; i++, side.leaf++) {
        if (at_constant(&side))
            side.constant++;
        else
            loses |= side.gone[side.port++];
    }
    return loses;
}

/* A cache that loses leaves: a dict of those that stay, by their paths below the keyword. */
static const Tree *prune_cache(Side *side, const Tree *tree) {
    Arena *arena = &side->program->arena;
    uint32_t leaves = tree_leaves(tree), count = 0;
    const Tree **children = ARENA_ARRAY(arena, const Tree *, leaves);
    const char **keys = ARENA_ARRAY(arena, const char *, leaves);
    if (!children || !keys) return NULL;
    for (uint32_t i = 0; i < leaves; i++, side->leaf++) {
        if (at_constant(side)) {
            side->constant++;
            continue;
        }
        const Port *port = &side->ports[side->port];
        if (side->gone[side->port++]) continue;
        const char *dot = strchr(port->name, '.');
        keys[count] = dot ? dot + 1 : port->name;
        children[count++] = tree_leaf(arena);
        side->kept++;
    }
    return count ? tree_mapping(arena, "builtins.dict", keys, children, count) : NULL;
}

/* The list of keys without those of children that are gone. */
static const char *prune_keys(Arena *arena, const char *context, const bool *stays,
                              uint32_t count) {
    json_t *keys = json_loads(context, JSON_DECODE_ANY, NULL), *kept = json_array();
    if (json_array_size(keys) == count && count > 0) {
        for (uint32_t i = 0; i < count; i++) {
            if (stays[i]) json_array_append(kept, json_array_get(keys, i));
        }
        char *text = json_dumps(kept, 0);
        context = text ? arena_string(arena, text) : "";
        free(text);
    }
    json_decref(keys);
    json_decref(kept);
    return context;
}

static const Tree *prune(Side *side, const Tree *tree, bool top) {
    Arena *arena = &side->program->arena;
    if (!tree->type) return prune_leaf(side, tree);
    if (is_cache(tree) && loses_leaves(*side, tree_leaves(tree))) return prune_cache(side, tree);
    const Tree **children = ARENA_ARRAY(arena, const Tree *, tree->count);
    bool *stays = ARENA_ARRAY(arena, bool, tree->count);
    uint32_t count = 0;
    bool same = true;
    if (!children || !stays) return tree;
    for (uint32_t i = 0; i < tree->count; i++) {
        const Tree *child = prune(side, tree->children[i], false);
        stays[i] = child != NULL;
        same = same && child == tree->children[i];
        if (child) children[count++] = child;
    }
    if (same) return tree;
    if (count == 0 && !top) return NULL;
    return tree_node(arena, tree->type, prune_keys(arena, tree->context, stays, tree->count),
                     children, count);
}

/* The two levels of arguments, (positional, keywords), stay even when they are empty. */
static const Tree *prune_arguments(Side *side, const Tree *tree) {
    const Tree *sides[2];
    for (uint32_t i = 0; i < 2; i++) sides[i] = prune(side, tree->children[i], true);
    return tree_tuple(&side->program->arena, sides, 2);
}

ferry_status structure_add_input(Program *program, const char *name, Value *value,
                                 ferry_error *error) {
    Arena *arena = &program->arena;
    const Tree *old = program->input_tree->children[1], *sides[2];
    const Tree **children = ARENA_ARRAY(arena, const Tree *, old->count + 1);
    const char **keys = ARENA_ARRAY(arena, const char *, old->count + 1);
    json_t *known = json_loads(old->context, JSON_DECODE_ANY, NULL);
    for (uint32_t i = 0; keys && children && i < old->count; i++) {
        const char *key = json_string_value(json_array_get(known, i));
        keys[i] = arena_string(arena, key ? key : "");
        children[i] = old->children[i];
    }
    json_decref(known);
    if (!keys || !children) return error_memory(error, program->architecture, 0);
    keys[old->count] = name;
    children[old->count] = tree_leaf(arena);
    sides[0] = program->input_tree->children[0];
    sides[1] = tree_mapping(arena, "builtins.dict", keys, children, old->count + 1);
    program->input_tree = tree_tuple(arena, sides, 2);
    VEC_PUSH(&program->inputs, (Port){.name = name, .value = value});
    return program_health(program, error);
}

ferry_status structure_prune(Program *program, bool outputs, const bool *gone, ferry_error *error) {
    Side side = side_of(program, outputs);
    side.gone = gone;
    if (outputs)
        program->output_tree = prune(&side, program->output_tree, true);
    else
        program->input_tree = prune_arguments(&side, program->input_tree);
    size_t kept = 0;
    for (size_t i = 0; i < *side.port_count; i++) {
        if (!gone[i]) side.ports[kept++] = side.ports[i];
    }
    *side.port_count = kept;
    *side.constant_count = side.kept_constants;
    return program_health(program, error);
}
