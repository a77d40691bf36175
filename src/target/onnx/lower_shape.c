/* Lowerings of operations that rearrange elements, and of those that make tensors from sizes. */
#include "target/onnx/lower.h"
#include "target/reshape.h"

void lower_view(Onnx *o, const Node *node) {
    const Value *from = lower_tensor(node, 0), *to = node->outputs[0];
    int64_t target[FERRY_MAX_RANK];
    bool constant = reshape_target(from, to, target);
    const char *inputs[] = {lower_input(o, node, 0), constant ? onnx_ints(o, target, to->rank)
                                                              : onnx_shape(o, to->shape, to->rank)};
    const Attr attrs[] = {ATTR_I("allowzero", !constant)};
    RESULT(o, "Reshape", inputs, attrs);
}

void lower_permute(Onnx *o, const Node *node) {
    int64_t dims[FERRY_MAX_RANK];
    const Arg *arg = &node->args[1];
    for (uint32_t d = 0; d < arg->integers.count; d++) dims[d] = arg->integers.items[d]->value;
    const char *inputs[] = {lower_input(o, node, 0)};
    const Attr attrs[] = {ATTR_IS("perm", dims, arg->integers.count)};
    RESULT(o, "Transpose", inputs, attrs);
}

void lower_axis_input(Onnx *o, const Node *node) {
    uint32_t rank = node->op == OP_UNSQUEEZE ? node->outputs[0]->rank : lower_tensor(node, 0)->rank;
    const int64_t axis = lower_dim(node, 1, rank);
    const char *inputs[] = {lower_input(o, node, 0), onnx_ints(o, &axis, 1)};
    RESULT_PLAIN(o, lower_op_type(node), inputs);
}

void lower_expand(Onnx *o, const Node *node) {
    const Value *out = node->outputs[0];
    const char *inputs[] = {lower_input(o, node, 0), onnx_shape(o, out->shape, out->rank)};
    RESULT_PLAIN(o, "Expand", inputs);
}

void lower_cat(Onnx *o, const Node *node) {
    const Arg *parts = &node->args[0];
    const Attr axis = ATTR_I("axis", lower_dim(node, 1, node->outputs[0]->rank));
    const char **inputs = ARENA_ARRAY(&o->arena, const char *, parts->tensors.count);
    if (!inputs) return;
    for (uint32_t i = 0; i < parts->tensors.count; i++) {
        inputs[i] = onnx_name(o, parts->tensors.items[i]);
    }
    onnx_result(o, "Concat", inputs, parts->tensors.count, &axis, 1);
}

void lower_slice(Onnx *o, const Node *node) {
    const int64_t axis = lower_dim(node, 1, lower_tensor(node, 0)->rank);
    const Sym *step = node->args[4].integer;
    const bool steps = !sym_is_value(step, 1);
    const char *inputs[] = {lower_input(o, node, 0), onnx_size(o, node->args[2].integer),
                            onnx_size(o, node->args[3].integer), onnx_ints(o, &axis, 1),
                            steps ? onnx_size(o, step) : NULL};
    onnx_result(o, "Slice", inputs, steps ? 5 : 4, NULL, 0);
}

void lower_select(Onnx *o, const Node *node) {
    const Attr attrs[] = {ATTR_I("axis", lower_dim(node, 1, lower_tensor(node, 0)->rank))};
    const char *inputs[] = {lower_input(o, node, 0), onnx_size_scalar(o, node->args[2].integer)};
    RESULT(o, "Gather", inputs, attrs);
}

void lower_split(Onnx *o, const Node *node) {
    const Arg *sizes = &node->args[1];
    const char *outputs[64];
    const Attr axis = ATTR_I("axis", lower_dim(node, 2, lower_tensor(node, 0)->rank));
    const char *inputs[] = {lower_input(o, node, 0),
                            onnx_shape(o, sizes->integers.items, sizes->integers.count)};
    for (uint32_t i = 0; i < node->output_count; i++) outputs[i] = onnx_name(o, node->outputs[i]);
    onnx_node(o, "Split", inputs, 2, outputs, node->output_count, &axis, 1);
}

/* ---- creation ---- */

void lower_arange(Onnx *o, const Node *node) {
    ferry_dtype dtype = node->args[3].dtype;
    const char *inputs[3];
    for (uint32_t i = 0; i < 3; i++) inputs[i] = onnx_scalar(o, &node->args[i], dtype);
    RESULT_PLAIN(o, "Range", inputs);
}

void lower_full(Onnx *o, const Node *node) {
    const Value *out = node->outputs[0];
    const char *inputs[] = {onnx_scalar(o, &node->args[1], out->dtype), NULL};
    if (out->rank == 0) {
        onnx_result(o, "Identity", inputs, 1, NULL, 0);
        return;
    }
    inputs[1] = onnx_shape(o, out->shape, out->rank);
    RESULT_PLAIN(o, "Expand", inputs);
}

void lower_scalar_tensor(Onnx *o, const Node *node) {
    const char *inputs[] = {onnx_scalar(o, &node->args[0], node->args[1].dtype)};
    RESULT_PLAIN(o, "Identity", inputs);
}
