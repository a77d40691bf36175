/* Lowerings of selections and reductions. */
#include "target/openvino/lower.h"

/* ---- selection ---- */

/* The CPU plugin computes int64 as int32: ids are converted where they come in. */
IrPort ir_lower_embedding(Ir *ir, const Node *node) {
    return RESULT(ir, node, "Gather-8",
                  FROM(ir_input(ir, node, 0), ir_input_as(ir, node, 1, FERRY_I32), ir_axis(ir, 0)),
                  PLAIN);
}

IrPort ir_lower_index_select(Ir *ir, const Node *node) {
    int64_t axis = node_dim(node, 1, node_tensor(node, 0)->rank);
    return RESULT(ir, node, "Gather-8",
                  FROM(ir_input(ir, node, 0), ir_input(ir, node, 2), ir_axis(ir, axis)), PLAIN);
}

/* ATen reads a corner of the data where the index is smaller; OpenVINO wants equal sizes. */
static IrPort corner(Ir *ir, const Node *node, int64_t axis) {
    const Value *data = node_tensor(node, 0), *index = node_tensor(node, 2);
    const Sym *ends[FERRY_MAX_RANK];
    int64_t zeros[FERRY_MAX_RANK] = {0}, ones[FERRY_MAX_RANK], axes[FERRY_MAX_RANK];
    uint32_t count = 0;
    for (uint32_t d = 0; d < data->rank; d++) {
        if (d == axis || data->shape[d] == index->shape[d]) continue;
        ends[count] = index->shape[d];
        ones[count] = 1;
        axes[count++] = d;
    }
    IrPort port = ir_value(ir, data);
    if (count == 0) return port;
    return ir_layer(ir, "Slice-8", data->dtype,
                    FROM(port, ir_ints(ir, zeros, count), ir_shape(ir, ends, count),
                         ir_ints(ir, ones, count), ir_ints(ir, axes, count)),
                    PLAIN);
}

IrPort ir_lower_gather(Ir *ir, const Node *node) {
    int64_t axis = node_dim(node, 1, node_tensor(node, 0)->rank);
    return RESULT(ir, node, "GatherElements-6", FROM(corner(ir, node, axis), ir_input(ir, node, 2)),
                  WITH(ATTR_I("axis", axis)));
}

/* ---- reduction ---- */

IrPort ir_lower_reduce(Ir *ir, const Node *node) {
    int64_t dims[FERRY_MAX_RANK];
    uint32_t count = node_list(node, 1, dims), rank = node_tensor(node, 0)->rank;
    if (count == 0) {
        for (; count < rank; count++) dims[count] = count;
    }
    return RESULT(ir, node, node_operation(node),
                  FROM(ir_input_as(ir, node, 0, node->outputs[0]->dtype), ir_ints(ir, dims, count)),
                  WITH(ATTR_B("keep_dims", node->args[2].boolean)));
}

/* Along one dimension, of something of the result's type. */
IrPort ir_lower_reduce_axis(Ir *ir, const Node *node) {
    const int64_t axis = node_dim(node, 1, node_tensor(node, 0)->rank);
    return RESULT(ir, node, node_operation(node),
                  FROM(ir_input_as(ir, node, 0, node->outputs[0]->dtype), ir_ints(ir, &axis, 1)),
                  WITH(ATTR_B("keep_dims", node->args[2].boolean)));
}

IrPort ir_lower_cumsum(Ir *ir, const Node *node) {
    IrPort axis = ir_axis(ir, node_dim(node, 1, node_tensor(node, 0)->rank));
    return RESULT(ir, node, "CumSum-3",
                  FROM(ir_input_as(ir, node, 0, node->outputs[0]->dtype), axis), PLAIN);
}

IrPort ir_lower_softmax(Ir *ir, const Node *node) {
    return RESULT(ir, node, "SoftMax-8", FROM(ir_input(ir, node, 0)),
                  WITH(ATTR_I("axis", node_dim(node, 1, node_tensor(node, 0)->rank))));
}

/* ---- order ---- */

/* Values, then indices; of equal elements the first. */
static IrPort top(Ir *ir, const Node *node, IrPort k, int64_t axis, bool largest) {
    const ferry_dtype dtypes[] = {node_tensor(node, 0)->dtype, FERRY_I64};
    return ir_layer_outputs(ir, "TopK-11", dtypes, 2, FROM(ir_input(ir, node, 0), k),
                            WITH(ATTR_I("axis", axis), ATTR_S("mode", largest ? "max" : "min"),
                                 ATTR_S("sort", "value"), ATTR_B("stable", true),
                                 ATTR_S("index_element_type", "i64")));
}

IrPort ir_lower_topk(Ir *ir, const Node *node) {
    IrPort k = ir_size_scalar(ir, node->args[1].integer);
    int64_t axis = node_dim(node, 2, node_tensor(node, 0)->rank);
    IrPort values = top(ir, node, k, axis, node->args[3].boolean);
    ir->ports[node->outputs[1]->id] = (IrPort){values.layer, values.port + 1};
    return values;
}

IrPort ir_lower_argmax(Ir *ir, const Node *node) {
    const int64_t axis = node_dim(node, 1, node_tensor(node, 0)->rank);
    IrPort indices = top(ir, node, ir_int(ir, 1), axis, true);
    indices.port++;
    if (node->args[2].boolean) return indices;
    return RESULT(ir, node, "Squeeze-1", FROM(indices, ir_ints(ir, &axis, 1)), PLAIN);
}
