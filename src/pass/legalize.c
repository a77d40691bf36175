#include "base/error.h"
#include "pass/pass.h"
#include "pass/replace.h"

enum { MAX_EXPANSION = 64 };

static ferry_status refuse(const Node *node, const char *target, ferry_error *error) {
    return error_set(error, FERRY_UNSUPPORTED, node->scope,
                     "the operation %s has neither a lowering to %s nor a decomposition; see "
                     "`ferry ops`",
                     op_name(node->op), target);
}

/* Decompose one node; the new nodes stand where it was. */
static ferry_status expand(Program *program, const Registry *registry, Node *node,
                           const char *target, Replacements *map, ferry_error *error) {
    const Decomposition *decompose =
        registry_find(registry, EXTENSION_DECOMPOSITION, op_name(node->op));
    if (!decompose) return refuse(node, target, error);
    Builder b = build_start(program, error);
    b.before = node;
    b.scope = node->scope;
    Value *value = (*decompose)(&b, node);
    TRY(build_finish(&b));
    if (!value) return refuse(node, target, error);
    return replace_node(program, map, node, value, "the decomposition", error);
}

ferry_status pass_legalize(Program *program, const Registry *registry, const char *target,
                           PassAccepts accepts, const void *context, ferry_error *error) {
    Replacements map = {0};
    ferry_status status = FERRY_OK;
    uint32_t expansions = 0;
    Node *settled = NULL; /* the last node before which everything is accepted */
    while (status == FERRY_OK) {
        Node *node = settled ? settled->next : program->first;
        if (!node) break;
        if (accepts(context, node)) {
            settled = node;
            expansions = 0;
        } else if (++expansions > MAX_EXPANSION) {
            status = error_set(error, FERRY_INTERNAL, node->scope,
                               "the decomposition of %s does not end", op_name(node->op));
        } else {
            status = expand(program, registry, node, target, &map, error);
        }
    }
    return replace_finish(program, &map, status, error);
}
