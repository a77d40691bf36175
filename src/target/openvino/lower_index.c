/* Lowerings of indexing by tensors and of scattering. */
#include "target/indexing.h"
#include "target/openvino/lower.h"

#include <string.h>

/* ---- index and index_put ---- */

/* int64 [index..., count]: the index tensors side by side. Negative ones count from the end. */
static IrPort coordinates(Ir *ir, const Value *self, const Indexing *indexing) {
    IrPort columns[FERRY_MAX_RANK];
    const Sym *const *wide = indexing->shape + indexing->place;
    const int64_t last = -1;
    uint32_t rank = indexing->rank;
    for (uint32_t i = 0; i < indexing->count; i++) {
        const Value *index = indexing->items[i];
        IrPort port = ir_value(ir, index);
        if (index->dtype != FERRY_I64) port = ir_convert(ir, port, FERRY_I64);
        IrPort size = ir_size_scalar(ir, self->shape[indexing->first[i]]);
        port = ir_two(ir, "FloorMod-1", FERRY_I64, port, size);
        if (index->rank != rank || !shape_equal(rank, index->shape, wide)) {
            port = ir_layer(ir, "Broadcast-3", FERRY_I64, FROM(port, ir_shape(ir, wide, rank)),
                            WITH(ATTR_S("mode", "numpy")));
        }
        columns[i] = ir_two(ir, "Unsqueeze-1", FERRY_I64, port, ir_ints(ir, &last, 1));
    }
    if (indexing->count == 1) return columns[0];
    return ir_layer(ir, "Concat-1", FERRY_I64, columns, indexing->count, WITH(ATTR_I("axis", -1)));
}

IrPort ir_lower_index(Ir *ir, const Node *node) {
    const Value *self = node_tensor(node, 0);
    Indexing indexing;
    int64_t there[FERRY_MAX_RANK], back[FERRY_MAX_RANK];
    indexing_describe(node, &indexing);
    if (indexing.count == 1) {
        return RESULT(ir, node, "Gather-8",
                      FROM(ir_value(ir, self), ir_value(ir, indexing.items[0]),
                           ir_axis(ir, indexing.first[0])),
                      PLAIN);
    }
    IrPort data = ir_transposed(ir, ir_value(ir, self), self->dtype, indexing.first, self->rank);
    IrPort chosen = RESULT(ir, node, "GatherND-8", FROM(data, coordinates(ir, self, &indexing)),
                           WITH(ATTR_I("batch_dims", 0)));
    indexing_order(&indexing, there, back);
    return ir_transposed(ir, chosen, self->dtype, there, indexing.chosen);
}

/* ScatterNDUpdate writes into the leading dimensions: the indexed ones are moved there and back. */
IrPort ir_lower_index_put(Ir *ir, const Node *node) {
    const Value *self = node_tensor(node, 0), *values = node_tensor(node, 2);
    Indexing indexing;
    int64_t there[FERRY_MAX_RANK], back[FERRY_MAX_RANK], restored[FERRY_MAX_RANK];
    indexing_describe(node, &indexing);
    IrPort data = ir_transposed(ir, ir_value(ir, self), self->dtype, indexing.first, self->rank);
    IrPort updates = ir_value(ir, values);
    if (values->rank != indexing.chosen ||
        !shape_equal(indexing.chosen, values->shape, indexing.shape)) {
        updates = ir_layer(ir, "Broadcast-3", self->dtype,
                           FROM(updates, ir_shape(ir, indexing.shape, indexing.chosen)),
                           WITH(ATTR_S("mode", "numpy")));
    }
    indexing_order(&indexing, there, back);
    updates = ir_transposed(ir, updates, self->dtype, back, indexing.chosen);
    IrPort written = RESULT(ir, node, "ScatterNDUpdate-15",
                            FROM(data, coordinates(ir, self, &indexing), updates),
                            WITH(ATTR_S("reduction", node->args[3].boolean ? "sum" : "none")));
    for (uint32_t d = 0; d < self->rank; d++) restored[indexing.first[d]] = d;
    return ir_transposed(ir, written, self->dtype, restored, self->rank);
}

/* ---- along one dimension ---- */

IrPort ir_lower_index_copy(Ir *ir, const Node *node) {
    IrPort axis = ir_axis(ir, node_dim(node, 1, node->outputs[0]->rank));
    return RESULT(ir, node, "ScatterUpdate-3",
                  FROM(ir_input(ir, node, 0), ir_input(ir, node, 2), ir_input(ir, node, 3), axis),
                  PLAIN);
}

IrPort ir_lower_scatter(Ir *ir, const Node *node) {
    static const char *const names[][2] = {
        {"sum", "sum"}, {"prod", "prod"}, {"amax", "max"}, {"amin", "min"}};
    const char *reduction = "none";
    for (size_t i = 0; node->op == OP_SCATTER_REDUCE && i < 4; i++) {
        if (strcmp(node->args[4].string, names[i][0]) == 0) reduction = names[i][1];
    }
    IrPort axis = ir_axis(ir, node_dim(node, 1, node->outputs[0]->rank));
    return RESULT(ir, node, "ScatterElementsUpdate-12",
                  FROM(ir_input(ir, node, 0), ir_input(ir, node, 2), ir_input(ir, node, 3), axis),
                  WITH(ATTR_S("reduction", reduction), ATTR_B("use_init_val", true)));
}

/* NonZero gives one row per dimension. */
IrPort ir_lower_nonzero(Ir *ir, const Node *node) {
    const int64_t dims[] = {1, 0};
    IrPort rows = ir_layer(ir, "NonZero-3", FERRY_I64, FROM(ir_input(ir, node, 0)),
                           WITH(ATTR_S("output_type", "i64")));
    return ir_transposed(ir, rows, FERRY_I64, dims, 2);
}
