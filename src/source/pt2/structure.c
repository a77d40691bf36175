#include "source/pt2/structure.h"
#include "base/error.h"
#include "format/document.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 64 };

typedef struct Structure {
    Arena *arena;
    Paths *paths;
    const char *text;
    ferry_error *error;
} Structure;

static ferry_status bad_spec(const Structure *s, const char *expected) {
    return error_set(s->error, FERRY_BAD_FORMAT, "treespec", "expected %s in \"%.200s\"", expected,
                     s->text);
}

static void push_leaf(Structure *s, const char *path) {
    VEC_PUSH(s->paths, *path ? path : "output");
}

/* ---- the encoded state of an object: attribute paths of its tensors, by leaf index ---- */

typedef struct State {
    Structure *s;
    const char **paths; /* by leaf of this node */
    uint32_t count;
    int depth;
} State;

static void walk_state(State *state, const Doc *json, const char *path);

static void walk_members(State *state, const Doc *object, const char *path) {
    const char *key;
    const Doc *value;
    DOC_EACH_MEMBER(object, key, value)
    walk_state(state, value, tree_path(state->s->arena, path, key));
}

static void walk_items(State *state, const Doc *list, const char *path) {
    char index[24];
    size_t i;
    const Doc *value;
    DOC_EACH_ITEM(list, i, value) {
        snprintf(index, sizeof index, "%zu", i);
        walk_state(state, value, tree_path(state->s->arena, path, index));
    }
}

/* Objects add no level of their own; a dict with other keys lists [key, value] pairs. */
static void walk_state(State *state, const Doc *json, const char *path) {
    const char *tag = doc_text(doc_get(json, "_t"));
    if (++state->depth > MAX_DEPTH) {
        state->depth--;
        return;
    }
    if (tag && (strcmp(tag, "tensor") == 0 || strcmp(tag, "sym") == 0)) {
        json_int_t leaf = doc_integer(doc_get(json, "i"));
        if (leaf >= 0 && leaf < state->count) state->paths[leaf] = path;
    } else if (tag && strcmp(tag, "obj") == 0) {
        walk_members(state, doc_get(json, "s"), path);
    } else if (tag && strcmp(tag, "map") == 0) {
        walk_members(state, doc_get(json, "v"), path);
    } else if (tag && strcmp(tag, "items") == 0) {
        const Doc *pair;
        size_t i;
        DOC_EACH_ITEM(doc_get(json, "v"), i, pair) {
            char *key = json_dumps(doc_item(pair, 0), JSON_ENCODE_ANY);
            if (key) walk_state(state, doc_item(pair, 1), tree_path(state->s->arena, path, key));
            free(key);
        }
    } else if (tag && strcmp(tag, "seq") == 0) {
        walk_items(state, doc_get(json, "v"), path);
    } else if (doc_is_array(json)) {
        walk_items(state, json, path);
    } else if (doc_is_object(json) && !tag) {
        walk_members(state, json, path);
    }
    state->depth--;
}

/* A registered object such as a cache: its children are its tensors. */
static ferry_status read_object(Structure *s, const char *context, uint32_t count,
                                const char *path) {
    const Doc *json;
    State state = {.s = s, .count = count};
    state.paths = ARENA_ARRAY(s->arena, const char *, count);
    if (!state.paths) return error_memory(s->error, "treespec", 0);
    TRY(json_parse("treespec context", context, strlen(context), &json, s->error));
    walk_state(&state, json, path);
    json_decref(json);
    for (uint32_t i = 0; i < count; i++) {
        push_leaf(s, state.paths[i] ? state.paths[i] : arena_format(s->arena, "%s.%u", path, i));
    }
    return FERRY_OK;
}

/* ---- nodes ---- */

static ferry_status read_node(Structure *s, const Doc *json, const char *path, int depth,
                              const Tree **out);

/* Children named by the keys in the context. */
static ferry_status read_mapping(Structure *s, const Doc *children, const char *context,
                                 const char *path, int depth, const Tree **out) {
    const Doc *keys;
    ferry_status status = FERRY_OK;
    TRY(json_parse("treespec context", context, strlen(context), &keys, s->error));
    if (doc_count(keys) != doc_count(children)) status = bad_spec(s, "a key for every child");
    for (size_t i = 0; i < doc_count(children) && status == FERRY_OK; i++) {
        const Doc *key = doc_item(keys, i);
        char number[24] = "";
        if (doc_is_integer(key))
            snprintf(number, sizeof number, "%lld", (long long)doc_integer(key));
        const char *name = doc_is_text(key) ? doc_text(key) : number;
        status = read_node(s, doc_item(children, i), tree_path(s->arena, path, name), depth + 1,
                           &out[i]);
    }
    json_decref(keys);
    return status;
}

static ferry_status read_sequence(Structure *s, const Doc *children, const char *path, int depth,
                                  const Tree **out) {
    char index[24];
    for (size_t i = 0; i < doc_count(children); i++) {
        snprintf(index, sizeof index, "%zu", i);
        TRY(read_node(s, doc_item(children, i), tree_path(s->arena, path, index), depth + 1,
                      &out[i]));
    }
    return FERRY_OK;
}

static ferry_status read_children(Structure *s, const char *type, const char *context,
                                  const Doc *children, const char *path, int depth,
                                  const Tree **out) {
    if (strcmp(type, "builtins.tuple") == 0 || strcmp(type, "builtins.list") == 0) {
        return read_sequence(s, children, path, depth, out);
    }
    if (!strchr(type, ':')) return read_mapping(s, children, context, path, depth, out);
    uint32_t count = (uint32_t)doc_count(children);
    for (uint32_t i = 0; i < count; i++) out[i] = tree_leaf(s->arena);
    return read_object(s, context, count, path);
}

static ferry_status read_node(Structure *s, const Doc *json, const char *path, int depth,
                              const Tree **out) {
    const Doc *type = doc_get(json, "type"), *context = doc_get(json, "context");
    const Doc *children = doc_get(json, "children_spec");
    if (depth > MAX_DEPTH) return bad_spec(s, "less nesting");
    if (!doc_is_object(json) || !doc_is_array(children)) return bad_spec(s, "a node");
    if (doc_is_null(type)) {
        push_leaf(s, path);
        *out = tree_leaf(s->arena);
        return FERRY_OK;
    }
    if (!doc_is_text(type)) return bad_spec(s, "a type name");
    size_t count = doc_count(children);
    const char *state = doc_is_text(context) ? doc_text(context) : "null";
    const Tree **nodes = ARENA_ARRAY(s->arena, const Tree *, count);
    if (!nodes) return error_memory(s->error, "treespec", 0);
    TRY(read_children(s, doc_text(type), state, children, path, depth, nodes));
    *out = tree_node(s->arena, doc_text(type), state, nodes, (uint32_t)count);
    return *out ? FERRY_OK : error_memory(s->error, "treespec", 0);
}

/* ((args...), {keywords}): positional arguments go by the names of forward's parameters. */
static ferry_status read_arguments(Structure *s, const Doc *root, const char *const *names,
                                   uint32_t name_count, const Tree **out) {
    const Doc *pair = doc_get(root, "children_spec");
    const Doc *positional = doc_get(doc_item(pair, 0), "children_spec");
    const Tree *sides[2];
    if (doc_count(pair) != 2 || !doc_is_array(positional)) return bad_spec(s, "((...), {...})");
    size_t count = doc_count(positional);
    const Tree **nodes = ARENA_ARRAY(s->arena, const Tree *, count);
    if (!nodes) return error_memory(s->error, "treespec", 0);
    for (size_t i = 0; i < count; i++) {
        const char *name = i < name_count ? names[i] : arena_format(s->arena, "args.%zu", i);
        TRY(read_node(s, doc_item(positional, i), name, 2, &nodes[i]));
    }
    sides[0] = tree_tuple(s->arena, nodes, (uint32_t)count);
    TRY(read_node(s, doc_item(pair, 1), "", 1, &sides[1]));
    *out = sides[0] ? tree_tuple(s->arena, sides, 2) : NULL;
    return *out ? FERRY_OK : error_memory(s->error, "treespec", 0);
}

static ferry_status parse_root(Structure *s, const Doc **document, const Doc **root) {
    TRY(json_parse("treespec", s->text, strlen(s->text), document, s->error));
    *root = doc_item(*document, 1);
    if (doc_integer(doc_item(*document, 0)) == 1 && *root) return FERRY_OK;
    json_decref(*document);
    return bad_spec(s, "protocol 1");
}

ferry_status structure_arguments(Arena *arena, const char *text, const char *const *names,
                                 uint32_t name_count, const Tree **tree, Paths *paths,
                                 ferry_error *error) {
    Structure s = {.arena = arena, .paths = paths, .text = text, .error = error};
    const Doc *document, *root;
    TRY(parse_root(&s, &document, &root));
    ferry_status status = read_arguments(&s, root, names, name_count, tree);
    json_decref(document);
    return status;
}

ferry_status structure_results(Arena *arena, const char *text, const Tree **tree, Paths *paths,
                               ferry_error *error) {
    Structure s = {.arena = arena, .paths = paths, .text = text, .error = error};
    const Doc *document, *root;
    TRY(parse_root(&s, &document, &root));
    ferry_status status = read_node(&s, root, "", 0, tree);
    json_decref(document);
    return status;
}
