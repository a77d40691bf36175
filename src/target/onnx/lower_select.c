/* Lowerings of selections and reductions. */
#include "target/onnx/lower.h"

void lower_embedding(Onnx *o, const Node *node) {
    const char *inputs[] = {lower_input(o, node, 0), lower_input(o, node, 1)};
    const Attr attrs[] = {ATTR_I("axis", 0)};
    RESULT(o, "Gather", inputs, attrs);
}

void lower_gather(Onnx *o, const Node *node) {
    const char *inputs[] = {lower_input(o, node, 0), lower_input(o, node, 2)};
    const Attr attrs[] = {ATTR_I("axis", lower_dim(node, 1, lower_tensor(node, 0)->rank))};
    RESULT(o, lower_op_type(node), inputs, attrs);
}

/* ---- reduction ---- */

void lower_reduce(Onnx *o, const Node *node) {
    const Value *x = lower_tensor(node, 0), *out = node->outputs[0];
    int64_t dims[FERRY_MAX_RANK];
    const Arg *arg = &node->args[1];
    for (uint32_t d = 0; d < arg->integers.count; d++) dims[d] = arg->integers.items[d]->value;
    const char *name = lower_cast(o, lower_input(o, node, 0), x, out->dtype);
    const char *inputs[] = {name, onnx_ints(o, dims, arg->integers.count)};
    const Attr keepdims = ATTR_I("keepdims", node->args[2].boolean);
    onnx_result(o, lower_op_type(node), inputs, arg->integers.count ? 2 : 1, &keepdims, 1);
}

void lower_prod(Onnx *o, const Node *node) {
    const Value *x = lower_tensor(node, 0);
    const int64_t axis = lower_dim(node, 1, x->rank);
    const char *inputs[] = {lower_cast(o, lower_input(o, node, 0), x, node->outputs[0]->dtype),
                            onnx_ints(o, &axis, 1)};
    const Attr attrs[] = {ATTR_I("keepdims", node->args[2].boolean)};
    RESULT(o, "ReduceProd", inputs, attrs);
}

/* any: the maximum as integers. */
void lower_any(Onnx *o, const Node *node) {
    const Value *x = lower_tensor(node, 0), *out = node->outputs[0];
    const int64_t axis = lower_dim(node, 1, x->rank);
    const char *name = lower_input(o, node, 0);
    const Attr to_int = ATTR_I("to", onnx_dtype(FERRY_I32)),
               to_bool = ATTR_I("to", onnx_dtype(FERRY_BOOL));
    const Attr keepdims = ATTR_I("keepdims", node->args[2].boolean);
    name = onnx_helper(o, "Cast", &name, 1, &to_int, 1, FERRY_I32, x->rank, x->shape);
    const char *inputs[] = {name, onnx_ints(o, &axis, 1)};
    name = onnx_helper(o, "ReduceMax", inputs, 2, &keepdims, 1, FERRY_I32, out->rank, out->shape);
    onnx_result(o, "Cast", &name, 1, &to_bool, 1);
}

void lower_argmax(Onnx *o, const Node *node) {
    const char *inputs[] = {lower_input(o, node, 0)};
    const Attr attrs[] = {ATTR_I("axis", lower_dim(node, 1, lower_tensor(node, 0)->rank)),
                          ATTR_I("keepdims", node->args[2].boolean)};
    RESULT(o, "ArgMax", inputs, attrs);
}

void lower_cumsum(Onnx *o, const Node *node) {
    const Value *x = lower_tensor(node, 0), *out = node->outputs[0];
    const char *name = lower_cast(o, lower_input(o, node, 0), x, out->dtype);
    const char *inputs[] = {name, onnx_int(o, lower_dim(node, 1, x->rank))};
    RESULT_PLAIN(o, "CumSum", inputs);
}

void lower_softmax(Onnx *o, const Node *node) {
    const char *inputs[] = {lower_input(o, node, 0)};
    const Attr attrs[] = {ATTR_I("axis", lower_dim(node, 1, lower_tensor(node, 0)->rank))};
    RESULT(o, "Softmax", inputs, attrs);
}
