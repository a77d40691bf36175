#include "base/error.h"
#include "graph/infer.h"
#include "pass/pass.h"

#include <stdlib.h>

enum { MAX_EXPANSION = 64 };

static ferry_status refuse(const Node *node, const char *target, ferry_error *error) {
    return error_set(error, FERRY_UNSUPPORTED, node->scope,
                     "the operation %s has neither a lowering to %s nor a decomposition; see "
                     "`ferry ops`",
                     op_name(node->op), target);
}

/* Replacement values by value id; grows with the program. */
typedef VEC(Value *) Replacements;

static bool record(Replacements *map, uint32_t id, Value *value) {
    while (map->count <= id && !map->failed) VEC_PUSH(map, NULL);
    if (!map->failed) map->items[id] = value;
    return !map->failed;
}

/* Decompose one node; the new nodes stand where it was. */
static ferry_status expand(Program *program, Node *node, const char *target, Replacements *map,
                           ferry_error *error) {
    Decomposition decompose = decompose_find(node->op);
    if (!decompose) return refuse(node, target, error);
    Builder b = build_start(program, error);
    b.before = node;
    b.scope = node->scope;
    Value *value = decompose(&b, node);
    TRY(build_finish(&b));
    const Value *old = node->outputs[0];
    if (value->dtype != old->dtype || value->rank != old->rank) {
        return error_set(error, FERRY_INTERNAL, node->scope,
                         "the decomposition of %s makes another type", op_name(node->op));
    }
    if (!record(map, old->id, value)) return error_memory(error, node->scope, 0);
    program_remove(program, node);
    return FERRY_OK;
}

ferry_status pass_legalize(Program *program, const char *target, PassAccepts accepts,
                           const void *context, ferry_error *error) {
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
            status = expand(program, node, target, &map, error);
        }
    }
    if (status == FERRY_OK) {
        program_replace(program, map.items, (uint32_t)map.count);
        program_sweep(program);
        status = program_health(program, error);
    }
    VEC_FREE(&map);
    return status;
}
