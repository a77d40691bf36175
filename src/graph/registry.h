/* The registry: everything that an export looks up by name, and that a plug-in may add to.
 *
 * Families, translations of torch operators, fixes, decompositions and lowerings are all registered
 * here, the built-in ones by the folders that hold them (registry_builtin in export/) and a plug-in's
 * after them. The last one of a name is the one that counts, so that a plug-in can replace what is
 * built in. Items are read through the type that belongs to their kind. */
#ifndef GRAPH_REGISTRY_H
#define GRAPH_REGISTRY_H

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "graph/build.h"

typedef enum ExtensionKind {
    EXTENSION_FAMILY,        /* by model type: Family (source/checkpoint/model.h) */
    EXTENSION_TRANSLATION,   /* by torch operator, "aten.add.Tensor": Translation (source/pt2) */
    EXTENSION_NODE_FIX,      /* NodeFix */
    EXTENSION_PROGRAM_FIX,   /* ProgramFix */
    EXTENSION_DECOMPOSITION, /* by operation, "aten::gelu": Decomposition */
    EXTENSION_LOWERING,      /* by target and operation, "onnx/aten::gelu": the target's own type */
    EXTENSION_KINDS
} ExtensionKind;

typedef struct Extension {
    const char *name;
    const void *item;
} Extension;

typedef VEC(Extension) Extensions;

/* Builds the replacement of `node` before it; NULL: none. */
typedef Value *(*Decomposition)(Builder *b, const Node *node);

typedef struct NodeFix {
    const char *target; /* NULL: every target */
    Decomposition fix;  /* NULL from it: the node is not its business */
} NodeFix;

typedef struct ProgramFix {
    const char *target; /* NULL: every target */
    ferry_status (*fix)(Program *program, ferry_error *error);
} ProgramFix;

typedef struct ferry_registry {
    Arena arena;                       /* for what plug-ins register */
    const char *problem;               /* the first wrong registration, or NULL */
    Extensions lists[EXTENSION_KINDS]; /* in order of registration */
    Map by_name[EXTENSION_KINDS];
} Registry;

/* `name` and `item` outlive the registry. */
void registry_add(Registry *registry, ExtensionKind kind, const char *name, const void *item);

/* The last item of this kind and name, or NULL. */
const void *registry_find(const Registry *registry, ExtensionKind kind, const char *name);

/* FERRY_OUT_OF_MEMORY when something was not stored. */
ferry_status registry_health(const Registry *registry, ferry_error *error);

void registry_free(Registry *registry);

#endif
