/* Lowerings of layers. */
#include "target/openvino/lower.h"

#include <math.h>

static IrPort matmul(Ir *ir, IrPort a, IrPort b, ferry_dtype dtype, bool transposed) {
    return ir_layer(ir, "MatMul-1", dtype, FROM(a, b),
                    WITH(ATTR_B("transpose_a", false), ATTR_B("transpose_b", transposed)));
}

/* The weight stays as it is stored, [out, in]. */
IrPort ir_lower_linear(Ir *ir, const Node *node) {
    ferry_dtype dtype = node->outputs[0]->dtype;
    IrPort product = matmul(ir, ir_input(ir, node, 0), ir_input(ir, node, 1), dtype, true);
    if (!node_tensor(node, 2)) return product;
    return ir_two(ir, "Add-1", dtype, product, ir_input(ir, node, 2));
}

IrPort ir_lower_matmul(Ir *ir, const Node *node) {
    return matmul(ir, ir_input(ir, node, 0), ir_input(ir, node, 1), node->outputs[0]->dtype, false);
}

IrPort ir_lower_layer_norm(Ir *ir, const Node *node) {
    ferry_dtype dtype = node->outputs[0]->dtype;
    int64_t axes[FERRY_MAX_RANK];
    uint32_t count = node->args[1].integers.count;
    for (uint32_t i = 0; i < count; i++) axes[i] = (int64_t)i - count;
    IrPort port =
        ir_layer(ir, "MVN-6", dtype, FROM(ir_input(ir, node, 0), ir_ints(ir, axes, count)),
                 WITH(ATTR_F("eps", node->args[4].number), ATTR_B("normalize_variance", true),
                      ATTR_S("eps_mode", "INSIDE_SQRT")));
    if (node_tensor(node, 2)) {
        port = ir_two(ir, "Multiply-1", dtype, port, ir_input(ir, node, 2));
    }
    if (node_tensor(node, 3)) port = ir_two(ir, "Add-1", dtype, port, ir_input(ir, node, 3));
    return port;
}

/* What pass_plain_attention leaves: as many heads on both sides, and a mask that is added, or none. */
IrPort ir_lower_attention(Ir *ir, const Node *node) {
    const Value *query = node_tensor(node, 0);
    double scale = node->args[5].number;
    const Sym *width = query->shape[query->rank - 1];
    bool usual = sym_is_const(width) && fabs(scale * sqrt((double)width->value) - 1) < 1e-12;
    IrPort inputs[5];
    size_t count = 3;
    for (uint32_t i = 0; i < 3; i++) inputs[i] = ir_input(ir, node, i);
    if (node_tensor(node, 3))
        inputs[count++] = ir_input(ir, node, 3);
    else if (!usual)
        inputs[count++] = ir_number(ir, 0, query->dtype);
    if (!usual) inputs[count++] = ir_number(ir, scale, query->dtype);
    return ir_layer(ir, "ScaledDotProductAttention-13", query->dtype, inputs, count,
                    WITH(ATTR_B("causal", false)));
}

/* ---- the product of groups of rows, each with a matrix of its own ---- */

enum { MAX_GROUPS = 1024 };

/* Rows [start, end) of the first dimension. */
static IrPort rows_of(Ir *ir, IrPort from, ferry_dtype dtype, IrPort start, IrPort end) {
    IrPort one = ir_ints(ir, (const int64_t[]){1}, 1), along = ir_ints(ir, (const int64_t[]){0}, 1);
    return ir_layer(ir, "Slice-8", dtype, FROM(from, start, end, one, along), PLAIN);
}

/* The rows are taken apart where the groups end; those behind the last group become zeros. */
IrPort ir_lower_grouped_mm(Ir *ir, const Node *node) {
    const Value *weights = node_tensor(node, 1), *out = node->outputs[0];
    ferry_dtype dtype = out->dtype;
    int64_t groups = weights->shape[0]->value;
    if (!sym_is_const(weights->shape[0]) || groups > MAX_GROUPS) {
        ir_fail(ir, FERRY_UNSUPPORTED, "the number of groups must be a constant up to %d",
                MAX_GROUPS);
        return (IrPort){0};
    }
    IrPort *parts = ARENA_ARRAY(&ir->arena, IrPort, groups + 1);
    if (!parts) return (IrPort){0};
    bool turned = ir->turned[weights->id];
    IrPort self = ir_input(ir, node, 0), matrices = {0};
    if (!turned) matrices = ir_input(ir, node, 1);
    IrPort ends = ir_input_as(ir, node, 2, FERRY_I64), start = ir_ints(ir, (const int64_t[]){0}, 1);
    for (int64_t g = 0; g < groups; g++) {
        IrPort index = ir_ints(ir, &g, 1);
        IrPort end = ir_layer(ir, "Gather-8", FERRY_I64, FROM(ends, index, ir_axis(ir, 0)), PLAIN);
        IrPort matrix = turned ? ir_group_weight(ir, weights, g)
                               : ir_layer(ir, "Gather-8", dtype,
                                          FROM(matrices, ir_int(ir, g), ir_axis(ir, 0)), PLAIN);
        IrPort rows = rows_of(ir, self, dtype, start, end);
        parts[g] = matmul(ir, rows, matrix, dtype, turned);
        start = end;
    }
    IrPort rest = ir_two(ir, "Subtract-1", FERRY_I64, ir_size(ir, out->shape[0]), start);
    IrPort shape = ir_layer(ir, "Concat-1", FERRY_I64, FROM(rest, ir_size(ir, out->shape[1])),
                            WITH(ATTR_I("axis", 0)));
    parts[groups] = ir_layer(ir, "Broadcast-3", dtype, FROM(ir_number(ir, 0, dtype), shape),
                             WITH(ATTR_S("mode", "numpy")));
    return ir_layer(ir, "Concat-1", dtype, parts, (size_t)groups + 1, WITH(ATTR_I("axis", 0)));
}
