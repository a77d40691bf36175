/* Views: dimensions of one element can be moved without moving elements. */
#include "pass/pass.h"

#include "graph/build.h"

/* Do the dimensions that have more than one element stay in their order? */
static bool keeps_order(const Node *permute) {
    const Value *x = permute->args[0].tensor;
    const Arg *dims = &permute->args[1];
    int64_t last = -1;
    for (uint32_t d = 0; d < x->rank; d++) {
        int64_t from = dims->integers.items[d]->value;
        if (sym_is_value(x->shape[from], 1)) continue;
        if (from < last) return false;
        last = from;
    }
    return true;
}

ferry_status pass_flatten_views(Program *program, ferry_error *error) {
    Builder b = build_start(program, error);
    for (Node *node = program->first; node; node = node->next) {
        if (node->op == OP_PERMUTE && keeps_order(node)) {
            const Value *out = node->outputs[0];
            node->op = OP_VIEW;
            node->args[1] = arg_syms(&b, out->shape, out->rank);
        }
        if (node->op != OP_VIEW) continue;
        const Node *before = node->args[0].tensor->producer;
        if (before && before->op == OP_VIEW) node->args[0].tensor = before->args[0].tensor;
    }
    program_sweep(program);
    return build_finish(&b);
}
