/* Lowerings of operations that rearrange elements, and of those that make tensors from sizes. */
#include "target/openvino/lower.h"
#include "target/reshape.h"

/* The CPU plugin crashes in some graphs where a Reshape makes a scalar. */
static IrPort view_scalar(Ir *ir, const Node *node) {
    const int64_t one = 1, first = 0;
    IrPort vector = ir_layer(ir, "Reshape-1", node->outputs[0]->dtype,
                             FROM(ir_input(ir, node, 0), ir_ints(ir, &one, 1)),
                             WITH(ATTR_B("special_zero", false)));
    return RESULT(ir, node, "Squeeze-1", FROM(vector, ir_ints(ir, &first, 1)), PLAIN);
}

IrPort ir_lower_view(Ir *ir, const Node *node) {
    const Value *from = node_tensor(node, 0), *to = node->outputs[0];
    int64_t target[FERRY_MAX_RANK];
    if (to->rank == 0) return view_scalar(ir, node);
    bool constant = reshape_target(from, to, target);
    IrPort shape = constant ? ir_ints(ir, target, to->rank) : ir_shape(ir, to->shape, to->rank);
    return RESULT(ir, node, "Reshape-1", FROM(ir_value(ir, from), shape),
                  WITH(ATTR_B("special_zero", constant)));
}

IrPort ir_lower_permute(Ir *ir, const Node *node) {
    int64_t dims[FERRY_MAX_RANK];
    uint32_t rank = node_list(node, 1, dims);
    return RESULT(ir, node, "Transpose-1", FROM(ir_input(ir, node, 0), ir_ints(ir, dims, rank)),
                  PLAIN);
}

IrPort ir_lower_axis_input(Ir *ir, const Node *node) {
    uint32_t rank = node->op == OP_UNSQUEEZE ? node->outputs[0]->rank : node_tensor(node, 0)->rank;
    const int64_t axis = node_dim(node, 1, rank);
    return RESULT(ir, node, node_operation(node),
                  FROM(ir_input(ir, node, 0), ir_ints(ir, &axis, 1)), PLAIN);
}

/* A size that stays is 1 in the target of a Broadcast that goes both ways: the rest is mostly known,
 * and the CPU plugin sees the repetition of key and value heads in it. */
IrPort ir_lower_expand(Ir *ir, const Node *node) {
    const Value *from = node_tensor(node, 0), *to = node->outputs[0];
    const Sym *target[FERRY_MAX_RANK], *one = sym_const(&ir->program->symbols, 1);
    uint32_t added = to->rank - from->rank;
    for (uint32_t d = 0; d < to->rank; d++) {
        bool stays = d >= added && from->shape[d - added] == to->shape[d];
        target[d] = stays ? one : to->shape[d];
    }
    return RESULT(ir, node, "Broadcast-3", FROM(ir_value(ir, from), ir_shape(ir, target, to->rank)),
                  WITH(ATTR_S("mode", "bidirectional")));
}

/* The last dimension is -1: so the CPU plugin wants it where it looks for rotary embeddings. */
IrPort ir_lower_cat(Ir *ir, const Node *node) {
    const Arg *parts = &node->args[0];
    uint32_t rank = node->outputs[0]->rank;
    int64_t axis = node_dim(node, 1, rank);
    IrPort *inputs = ARENA_ARRAY(&ir->arena, IrPort, parts->tensors.count);
    if (!inputs) return (IrPort){0};
    for (uint32_t i = 0; i < parts->tensors.count; i++) {
        inputs[i] = ir_value(ir, parts->tensors.items[i]);
    }
    return ir_layer(ir, "Concat-1", node->outputs[0]->dtype, inputs, parts->tensors.count,
                    WITH(ATTR_I("axis", axis + 1 == rank ? -1 : axis)));
}

IrPort ir_lower_slice(Ir *ir, const Node *node) {
    const int64_t axis = node_dim(node, 1, node_tensor(node, 0)->rank);
    return RESULT(ir, node, "Slice-8",
                  FROM(ir_input(ir, node, 0), ir_size(ir, node->args[2].integer),
                       ir_size(ir, node->args[3].integer), ir_size(ir, node->args[4].integer),
                       ir_ints(ir, &axis, 1)),
                  PLAIN);
}

IrPort ir_lower_select(Ir *ir, const Node *node) {
    int64_t axis = node_dim(node, 1, node_tensor(node, 0)->rank);
    return RESULT(
        ir, node, "Gather-8",
        FROM(ir_input(ir, node, 0), ir_size_scalar(ir, node->args[2].integer), ir_axis(ir, axis)),
        PLAIN);
}

IrPort ir_lower_split(Ir *ir, const Node *node) {
    const Arg *sizes = &node->args[1];
    ferry_dtype dtypes[64];
    IrPort axis = ir_int(ir, node_dim(node, 2, node_tensor(node, 0)->rank));
    IrPort lengths = ir_shape(ir, sizes->integers.items, sizes->integers.count);
    for (uint32_t i = 0; i < node->output_count; i++) dtypes[i] = node->outputs[i]->dtype;
    IrPort first = ir_layer_outputs(ir, "VariadicSplit-1", dtypes, node->output_count,
                                    FROM(ir_input(ir, node, 0), axis, lengths), PLAIN);
    for (uint32_t i = 1; i < node->output_count; i++) {
        ir->ports[node->outputs[i]->id] = (IrPort){first.layer, first.port + i};
    }
    return first;
}

/* ---- creation ---- */

IrPort ir_lower_arange(Ir *ir, const Node *node) {
    ferry_dtype dtype = node->args[3].dtype;
    IrPort start = ir_scalar(ir, &node->args[0], FERRY_I64);
    IrPort end = ir_scalar(ir, &node->args[1], FERRY_I64);
    IrPort step = ir_scalar(ir, &node->args[2], FERRY_I64);
    return RESULT(ir, node, "Range-4", FROM(start, end, step),
                  WITH(ATTR_S("output_type", ir_element_type(dtype))));
}

IrPort ir_lower_full(Ir *ir, const Node *node) {
    const Value *out = node->outputs[0];
    IrPort number = ir_scalar(ir, &node->args[1], out->dtype);
    if (out->rank == 0) return number;
    return RESULT(ir, node, "Broadcast-3", FROM(number, ir_shape(ir, out->shape, out->rank)),
                  WITH(ATTR_S("mode", "numpy")));
}

IrPort ir_lower_scalar_tensor(Ir *ir, const Node *node) {
    return ir_scalar(ir, &node->args[0], node->args[1].dtype);
}
