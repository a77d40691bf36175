/* Lowerings of layers. */
#include "target/onnx/lower.h"

/* A constant of ones, for a norm without weight. */
static const char *ones(Onnx *o, ferry_dtype dtype, const Arg *shape) {
    const char *inputs[] = {onnx_number(o, 1, dtype),
                            onnx_shape(o, shape->integers.items, shape->integers.count)};
    return onnx_helper(o, "Expand", inputs, 2, NULL, 0, dtype, shape->integers.count,
                       shape->integers.items);
}

void lower_norm(Onnx *o, const Node *node) {
    const Arg *shape = &node->args[1];
    bool layer = node->op == OP_LAYER_NORM;
    const char *inputs[] = {lower_input(o, node, 0), lower_input(o, node, 2),
                            layer ? lower_input(o, node, 3) : NULL};
    const Attr attrs[] = {ATTR_I("axis", -(int64_t)shape->integers.count),
                          ATTR_F("epsilon", node->args[layer ? 4 : 3].number)};
    if (!inputs[1]) inputs[1] = ones(o, lower_tensor(node, 0)->dtype, shape);
    onnx_result(o, lower_op_type(node), inputs, inputs[2] ? 3 : 2, attrs, 2);
}
