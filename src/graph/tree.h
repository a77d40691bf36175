/* Nested structure of a program's arguments and results, as torch's pytree sees it.
 *
 * A node has a type ("builtins.dict", "transformers.modeling_outputs.CausalLMOutputWithPast",
 * "transformers.cache_utils:DynamicCache"), a context (JSON text: the key list of a dict or
 * ModelOutput, the encoded state of a cache) and children; a leaf has none of them. It prints as the
 * treespec string that torch.utils._pytree.treespec_dumps writes (protocol 1). */
#ifndef GRAPH_TREE_H
#define GRAPH_TREE_H

#include "base/arena.h"
#include "base/buffer.h"
#include <stdint.h>

typedef struct Tree Tree;
struct Tree {
    const char *type; /* NULL: a leaf */
    const char *context;
    uint32_t count;
    const Tree *const *children;
};

/* Makers return NULL when the arena is exhausted, and pass NULL children on. */
const Tree *tree_leaf(Arena *arena);
const Tree *tree_node(Arena *arena, const char *type, const char *context,
                      const Tree *const *children, uint32_t count);
const Tree *tree_tuple(Arena *arena, const Tree *const *children, uint32_t count);

/* A dict ("builtins.dict") or ModelOutput class whose context is the list of `keys`. */
const Tree *tree_mapping(Arena *arena, const char *type, const char *const *keys,
                         const Tree *const *children, uint32_t count);

/* Number of leaves. */
uint32_t tree_leaves(const Tree *tree);

/* The path of the child `name` of the node at `path`: "cache.layers"; "" is the root. */
const char *tree_path(Arena *arena, const char *path, const char *name);

/* The treespec: "[1, {...}]". */
void tree_print(Buffer *buffer, const Tree *tree);

#endif
