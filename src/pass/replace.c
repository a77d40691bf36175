#include "pass/replace.h"
#include "base/error.h"

#include <stdlib.h>

/* The same dtype and rank, and the same size wherever both are numbers. */
static bool same_type(const Value *a, const Value *b) {
    if (a->dtype != b->dtype || a->rank != b->rank) return false;
    for (uint32_t d = 0; d < a->rank; d++) {
        bool numbers = sym_is_const(a->shape[d]) && sym_is_const(b->shape[d]);
        if (numbers && a->shape[d] != b->shape[d]) return false;
    }
    return true;
}

static bool record(Replacements *map, uint32_t id, Value *value) {
    while (map->count <= id && !map->failed) VEC_PUSH(map, NULL);
    if (!map->failed) map->items[id] = value;
    return !map->failed;
}

ferry_status replace_node(Program *program, Replacements *map, Node *node, Value *value,
                          const char *what, ferry_error *error) {
    const Value *old = node->outputs[0];
    if (!same_type(value, old)) {
        Buffer text = {0};
        buffer_format(&text, "%s makes ", what);
        value_print_type(&text, value);
        buffer_format(&text, " of %s, where ", op_name(node->op));
        value_print_type(&text, old);
        ferry_status status = error_set(error, FERRY_INTERNAL, node->scope, "%s was expected",
                                        text.failed ? what : buffer_string(&text));
        buffer_free(&text);
        return status;
    }
    if (!record(map, old->id, value)) return error_memory(error, node->scope, 0);
    program_remove(program, node);
    return FERRY_OK;
}

ferry_status replace_finish(Program *program, Replacements *map, ferry_status status,
                            ferry_error *error) {
    if (status == FERRY_OK) {
        program_replace(program, map->items, (uint32_t)map->count);
        program_sweep(program);
        status = program_health(program, error);
    }
    VEC_FREE(map);
    return status;
}
