/* Running the fixes that a target, or a plug-in, has registered. */
#include "base/error.h"
#include "pass/pass.h"
#include "pass/replace.h"

#include <string.h>

static bool applies(const char *to, const char *target) {
    return !to || strcmp(to, target) == 0;
}

/* Offer the node to the fixes in turn, until one replaces it. */
static ferry_status fix_node(Program *program, const Extensions *fixes, const char *target,
                             Node *node, Replacements *map, ferry_error *error) {
    for (size_t i = 0; i < fixes->count && node->output_count == 1; i++) {
        const NodeFix *fix = fixes->items[i].item;
        if (!applies(fix->target, target)) continue;
        Builder b = build_start(program, error);
        b.before = node;
        b.scope = node->scope;
        Value *value = fix->fix(&b, node);
        TRY(build_finish(&b));
        if (value) return replace_node(program, map, node, value, fixes->items[i].name, error);
    }
    return FERRY_OK;
}

ferry_status pass_fix(Program *program, const Registry *registry, const char *target,
                      ferry_error *error) {
    const Extensions *node_fixes = &registry->lists[EXTENSION_NODE_FIX],
                     *program_fixes = &registry->lists[EXTENSION_PROGRAM_FIX];
    Replacements map = {0};
    ferry_status status = FERRY_OK;
    Node *next, *first = node_fixes->count ? program->first : NULL;
    for (Node *node = first; node && status == FERRY_OK; node = next) {
        next = node->next;
        status = fix_node(program, node_fixes, target, node, &map, error);
    }
    TRY(replace_finish(program, &map, status, error));
    for (size_t i = 0; i < program_fixes->count; i++) {
        const ProgramFix *fix = program_fixes->items[i].item;
        if (!applies(fix->target, target)) continue;
        TRY(fix->fix(program, error));
        program_sweep(program);
    }
    return program_health(program, error);
}
