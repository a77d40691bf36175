/* Lowerings of operations that work element by element. */
#include "target/openvino/lower.h"

#include <string.h>

IrPort ir_lower_unary(Ir *ir, const Node *node) {
    return RESULT(ir, node, node_operation(node), FROM(ir_input(ir, node, 0)), PLAIN);
}

IrPort ir_lower_binary(Ir *ir, const Node *node) {
    return RESULT(ir, node, node_operation(node),
                  FROM(ir_input(ir, node, 0), ir_input(ir, node, 1)), PLAIN);
}

IrPort ir_lower_scalar(Ir *ir, const Node *node) {
    IrPort scalar = ir_scalar(ir, &node->args[1], node_tensor(node, 0)->dtype);
    return RESULT(ir, node, node_operation(node), FROM(ir_input(ir, node, 0), scalar), PLAIN);
}

IrPort ir_lower_scalar_pow(Ir *ir, const Node *node) {
    IrPort scalar = ir_scalar(ir, &node->args[0], node_tensor(node, 1)->dtype);
    return RESULT(ir, node, "Power-1", FROM(scalar, ir_input(ir, node, 1)), PLAIN);
}

/* Division of integers truncates: what remains is taken away first. */
IrPort ir_lower_floor_divide(Ir *ir, const Node *node) {
    ferry_dtype dtype = node->outputs[0]->dtype;
    IrPort a = ir_input(ir, node, 0), b = ir_input(ir, node, 1);
    if (ferry_dtype_is_float(dtype)) {
        return RESULT(ir, node, "Floor-1", FROM(ir_two(ir, "Divide-1", dtype, a, b)), PLAIN);
    }
    IrPort rest = ir_two(ir, "FloorMod-1", dtype, a, b);
    return RESULT(ir, node, "Divide-1", FROM(ir_two(ir, "Subtract-1", dtype, a, rest), b), PLAIN);
}

IrPort ir_lower_reciprocal(Ir *ir, const Node *node) {
    IrPort one = ir_number(ir, 1, node->outputs[0]->dtype);
    return RESULT(ir, node, "Divide-1", FROM(one, ir_input(ir, node, 0)), PLAIN);
}

/* As a power: with a Sqrt, the CPU plugin takes x / sqrt(sum(x^2) + eps) for another normalization. */
IrPort ir_lower_rsqrt(Ir *ir, const Node *node) {
    IrPort exponent = ir_number(ir, -0.5, node->outputs[0]->dtype);
    return RESULT(ir, node, "Power-1", FROM(ir_input(ir, node, 0), exponent), PLAIN);
}

IrPort ir_lower_round(Ir *ir, const Node *node) {
    return RESULT(ir, node, "Round-5", FROM(ir_input(ir, node, 0)),
                  WITH(ATTR_S("mode", "half_to_even")));
}

IrPort ir_lower_logic(Ir *ir, const Node *node) {
    const char *bitwise = node->op == OP_AND ? "BitwiseAnd-13" : "BitwiseOr-13";
    bool logical = node_tensor(node, 0)->dtype == FERRY_BOOL;
    return RESULT(ir, node, logical ? node_operation(node) : bitwise,
                  FROM(ir_input(ir, node, 0), ir_input(ir, node, 1)), PLAIN);
}

IrPort ir_lower_not(Ir *ir, const Node *node) {
    bool logical = node_tensor(node, 0)->dtype == FERRY_BOOL;
    return RESULT(ir, node, logical ? "LogicalNot-1" : "BitwiseNot-13", FROM(ir_input(ir, node, 0)),
                  PLAIN);
}

IrPort ir_lower_where(Ir *ir, const Node *node) {
    return RESULT(ir, node, "Select-1",
                  FROM(ir_input(ir, node, 0), ir_input(ir, node, 1), ir_input(ir, node, 2)), PLAIN);
}

/* The conversion of a weight that is stored in half precision stays one where it can be done late. */
IrPort ir_lower_to(Ir *ir, const Node *node) {
    const Value *from = node_tensor(node, 0);
    bool half = from->dtype == FERRY_F16 || from->dtype == FERRY_BF16;
    if (from->recipe && half && node->args[1].dtype == FERRY_F32) {
        return ir_decompress(ir, ir_value(ir, from), FERRY_F32);
    }
    return ir_convert(ir, ir_value(ir, from), node->args[1].dtype);
}

IrPort ir_lower_clamp(Ir *ir, const Node *node) {
    ferry_dtype dtype = node->outputs[0]->dtype;
    IrPort port = ir_input(ir, node, 0);
    if (node->args[1].kind != VALUE_NONE) {
        port = ir_two(ir, "Maximum-1", dtype, port, ir_scalar(ir, &node->args[1], dtype));
    }
    if (node->args[2].kind != VALUE_NONE) {
        port = ir_two(ir, "Minimum-1", dtype, port, ir_scalar(ir, &node->args[2], dtype));
    }
    return port;
}

IrPort ir_lower_elu(Ir *ir, const Node *node) {
    return RESULT(ir, node, "Elu-1", FROM(ir_input(ir, node, 0)),
                  WITH(ATTR_F("alpha", node_number(node, 1))));
}

IrPort ir_lower_leaky_relu(Ir *ir, const Node *node) {
    const double slope = node_number(node, 1);
    IrPort input = ir_input(ir, node, 0);
    return RESULT(ir, node, "PReLU-1", FROM(input, ir_number(ir, slope, node->outputs[0]->dtype)),
                  PLAIN);
}

/* Softplus(beta x) / beta; beyond the threshold both forms agree to the last bit of float32. */
IrPort ir_lower_softplus(Ir *ir, const Node *node) {
    ferry_dtype dtype = node->outputs[0]->dtype;
    double beta = node_number(node, 1);
    IrPort x = ir_input(ir, node, 0);
    if (beta == 1) return RESULT(ir, node, "SoftPlus-4", FROM(x), PLAIN);
    IrPort factor = ir_number(ir, beta, dtype);
    IrPort soft =
        ir_layer(ir, "SoftPlus-4", dtype, FROM(ir_two(ir, "Multiply-1", dtype, x, factor)), PLAIN);
    return RESULT(ir, node, "Divide-1", FROM(soft, factor), PLAIN);
}

IrPort ir_lower_gelu(Ir *ir, const Node *node) {
    bool tanh = strcmp(node->args[1].string, "tanh") == 0;
    return RESULT(ir, node, "Gelu-7", FROM(ir_input(ir, node, 0)),
                  WITH(ATTR_S("approximation_mode", tanh ? "TANH" : "ERF")));
}
