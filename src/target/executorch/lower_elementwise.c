/* Lowerings of operations that work element by element, and of those whose kernel takes the very arguments
 * of the operation. */
#include "target/executorch/lower.h"

void pte_lower_args(Pte *p, const Node *node) {
    PteValue args[OP_MAX_ARGS];
    uint32_t count = op_schema(node->op)->arg_count;
    for (uint32_t i = 0; i < count; i++) args[i] = pte_node_arg(p, node, i);
    pte_result(p, node_kernel(node), pte_output(p, node->outputs[0]), args, count);
}

/* alpha is 1. */
void pte_lower_add(Pte *p, const Node *node) {
    RESULT(p, node, node_kernel(node), pte_node_arg(p, node, 0), pte_node_arg(p, node, 1),
           pte_int(p, 1));
}

/* alpha, and two scales that are 1 */
void pte_lower_elu(Pte *p, const Node *node) {
    RESULT(p, node, node_kernel(node), pte_node_arg(p, node, 0), pte_node_arg(p, node, 1),
           pte_int(p, 1), pte_int(p, 1));
}

void pte_lower_gelu(Pte *p, const Node *node) {
    RESULT(p, node, node_kernel(node), pte_node_arg(p, node, 0),
           pte_string(p, node->args[1].string));
}

/* The remainder with the divisor's sign, of the one with the dividend's: fmod(fmod(a, b) + b, b). The
 * runtime's own kernel has the wrong sign. */
void pte_lower_remainder(Pte *p, const Node *node) {
    const Value *out = node->outputs[0];
    PteValue a = pte_node_arg(p, node, 0), b = pte_node_arg(p, node, 1);
    PteValue rest = pte_result(p, node_kernel(node), pte_like(p, out), ARGS(a, b));
    PteValue sum = pte_result(p, "aten::add.out", pte_like(p, out), ARGS(rest, b, pte_int(p, 1)));
    RESULT(p, node, node_kernel(node), sum, b);
}

/* max(x, 0) + log1p(exp(-|x|)), of beta times x; past the threshold that is x to the last bit. */
void pte_lower_softplus(Pte *p, const Node *node) {
    const Value *out = node->outputs[0];
    const double beta = node_number(node, 1);
    PteValue x = pte_node_arg(p, node, 0), scale = pte_double(p, beta);
    if (beta != 1) x = pte_result(p, "aten::mul.Scalar_out", pte_like(p, out), ARGS(x, scale));
    PteValue size = pte_result(p, "aten::abs.out", pte_like(p, out), ARGS(x));
    PteValue minus = pte_result(p, "aten::neg.out", pte_like(p, out), ARGS(size));
    PteValue power = pte_result(p, "aten::exp.out", pte_like(p, out), ARGS(minus));
    PteValue tail = pte_result(p, node_kernel(node), pte_like(p, out), ARGS(power));
    PteValue head = pte_result(p, "aten::relu.out", pte_like(p, out), ARGS(x));
    PteValue sum = beta == 1 ? pte_output(p, out) : pte_like(p, out);
    pte_result(p, "aten::add.out", sum, ARGS(head, tail, pte_int(p, 1)));
    if (beta != 1) RESULT(p, node, "aten::div.Scalar_out", sum, scale);
}

void pte_lower_to(Pte *p, const Node *node) {
    RESULT(p, node, node_kernel(node), pte_node_arg(p, node, 0), pte_bool(p, false), pte_null(p));
}
