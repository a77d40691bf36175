/* Lowerings of operations that rearrange elements, and of those that make tensors from sizes. */
#include "target/executorch/lower.h"

/* The elements stay where they are. */
void pte_lower_view(Pte *p, const Node *node) {
    const Value *out = node->outputs[0];
    pte_bind(p, out, pte_view(p, pte_node_arg(p, node, 0), out->rank, out->shape));
}

void pte_lower_expand(Pte *p, const Node *node) {
    RESULT(p, node, node_kernel(node), pte_node_arg(p, node, 0), pte_node_arg(p, node, 1),
           pte_bool(p, false));
}

void pte_lower_cat(Pte *p, const Node *node) {
    const Arg *parts = &node->args[0];
    PteValue *items = ARENA_ARRAY(&p->arena, PteValue, parts->tensors.count);
    if (!items) return;
    for (uint32_t i = 0; i < parts->tensors.count; i++) {
        items[i] = pte_value(p, parts->tensors.items[i]);
    }
    RESULT(p, node, node_kernel(node), pte_list(p, SLOT_TENSORS, items, parts->tensors.count),
           pte_node_arg(p, node, 1));
}

void pte_lower_slice(Pte *p, const Node *node) {
    pte_lower_args(p, node);
}

/* A slice for each part. */
void pte_lower_split(Pte *p, const Node *node) {
    SymTable *symbols = &p->program->symbols;
    const Arg *sizes = &node->args[1];
    const Sym *start = sym_const(symbols, 0);
    PteValue from = pte_node_arg(p, node, 0), dim = pte_node_arg(p, node, 2);
    for (uint32_t i = 0; i < node->output_count; i++) {
        const Sym *end = sym_add(symbols, start, sizes->integers.items[i]);
        PteValue first = pte_size(p, start), behind = pte_size(p, end);
        pte_result(p, node_kernel(node), pte_output(p, node->outputs[i]),
                   ARGS(from, dim, first, behind, pte_int(p, 1)));
        start = end;
    }
}

/* ---- creation ---- */

void pte_lower_arange(Pte *p, const Node *node) {
    RESULT(p, node, node_kernel(node), pte_node_arg(p, node, 0), pte_node_arg(p, node, 1),
           pte_node_arg(p, node, 2));
}

void pte_lower_full(Pte *p, const Node *node) {
    RESULT(p, node, node_kernel(node), pte_node_arg(p, node, 0), pte_node_arg(p, node, 1));
}

void pte_lower_scalar_tensor(Pte *p, const Node *node) {
    RESULT(p, node, node_kernel(node), pte_node_arg(p, node, 0));
}
