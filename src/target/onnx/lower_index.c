/* Lowerings of indexing by tensors, of scattering and ordering. */
#include "target/indexing.h"
#include "target/onnx/lower.h"

#include <string.h>

/* ---- index and index_put ---- */

/* A Transpose as a helper value; `shape` is that of the input, then of the result. */
static const char *transpose(Onnx *o, const char *name, ferry_dtype dtype, uint32_t rank,
                             const int64_t *dims, const Sym **shape) {
    const Sym *moved[FERRY_MAX_RANK];
    const Attr perm = ATTR_IS("perm", dims, rank);
    if (indexing_in_order(dims, rank)) return name;
    for (uint32_t d = 0; d < rank; d++) moved[d] = shape[dims[d]];
    memcpy(shape, moved, rank * sizeof *moved);
    return onnx_helper(o, "Transpose", &name, 1, &perm, 1, dtype, rank, moved);
}

/* int64 [index..., count]: the index tensors side by side. */
static const char *coordinates(Onnx *o, const Indexing *indexing) {
    const char *columns[FERRY_MAX_RANK];
    const Sym *shape[FERRY_MAX_RANK + 1];
    const Sym *const *wide = indexing->shape + indexing->place;
    const int64_t last = -1;
    const Attr axis = ATTR_I("axis", -1);
    uint32_t rank = indexing->rank;
    memcpy(shape, wide, rank * sizeof *shape);
    for (uint32_t i = 0; i < indexing->count; i++) {
        const Value *index = indexing->items[i];
        const char *name = lower_cast(o, onnx_name(o, index), index, FERRY_I64);
        if (index->rank != rank || !shape_equal(rank, index->shape, wide)) {
            const char *inputs[] = {name, onnx_shape(o, wide, rank)};
            name = onnx_helper(o, "Expand", inputs, 2, NULL, 0, FERRY_I64, rank, wide);
        }
        const char *inputs[] = {name, onnx_ints(o, &last, 1)};
        shape[rank] = sym_const(&o->program->symbols, 1);
        columns[i] = onnx_helper(o, "Unsqueeze", inputs, 2, NULL, 0, FERRY_I64, rank + 1, shape);
    }
    shape[rank] = sym_const(&o->program->symbols, indexing->count);
    if (indexing->count == 1) return columns[0];
    return onnx_helper(o, "Concat", columns, indexing->count, &axis, 1, FERRY_I64, rank + 1, shape);
}

void lower_index(Onnx *o, const Node *node) {
    const Value *self = lower_tensor(node, 0);
    Indexing indexing;
    int64_t there[FERRY_MAX_RANK], back[FERRY_MAX_RANK];
    const Sym *shape[FERRY_MAX_RANK];
    indexing_describe(node, &indexing);
    if (indexing.count == 1) {
        const char *inputs[] = {lower_input(o, node, 0), onnx_name(o, indexing.items[0])};
        const Attr axis = ATTR_I("axis", indexing.first[0]);
        onnx_result(o, "Gather", inputs, 2, &axis, 1);
        return;
    }
    memcpy(shape, self->shape, self->rank * sizeof *shape);
    const char *inputs[2];
    inputs[0] =
        transpose(o, lower_input(o, node, 0), self->dtype, self->rank, indexing.first, shape);
    inputs[1] = coordinates(o, &indexing);
    indexing_order(&indexing, there, back);
    if (indexing_in_order(there, indexing.chosen)) {
        RESULT_PLAIN(o, "GatherND", inputs);
        return;
    }
    for (uint32_t d = 0; d < indexing.chosen; d++) shape[d] = indexing.shape[back[d]];
    const char *chosen =
        onnx_helper(o, "GatherND", inputs, 2, NULL, 0, self->dtype, indexing.chosen, shape);
    const Attr perm = ATTR_IS("perm", there, indexing.chosen);
    onnx_result(o, "Transpose", &chosen, 1, &perm, 1);
}

/* ScatterND writes into the leading dimensions: the indexed ones are moved there and back. */
void lower_index_put(Onnx *o, const Node *node) {
    const Value *self = lower_tensor(node, 0), *values = lower_tensor(node, 2);
    Indexing indexing;
    int64_t there[FERRY_MAX_RANK], back[FERRY_MAX_RANK], restored[FERRY_MAX_RANK];
    const Sym *shape[FERRY_MAX_RANK];
    const Attr reduction = ATTR_S("reduction", node->args[3].boolean ? "add" : "none");
    indexing_describe(node, &indexing);
    memcpy(shape, self->shape, self->rank * sizeof *shape);
    const char *inputs[3] = {
        transpose(o, lower_input(o, node, 0), self->dtype, self->rank, indexing.first, shape),
        coordinates(o, &indexing), lower_input(o, node, 2)};
    if (values->rank != indexing.chosen ||
        !shape_equal(indexing.chosen, values->shape, indexing.shape)) {
        const char *spread[] = {inputs[2], onnx_shape(o, indexing.shape, indexing.chosen)};
        inputs[2] = onnx_helper(o, "Expand", spread, 2, NULL, 0, self->dtype, indexing.chosen,
                                indexing.shape);
    }
    indexing_order(&indexing, there, back);
    inputs[2] = transpose(o, inputs[2], self->dtype, indexing.chosen, back, indexing.shape);
    if (indexing_in_order(indexing.first, self->rank)) {
        onnx_result(o, "ScatterND", inputs, 3, &reduction, 1);
        return;
    }
    const char *written =
        onnx_helper(o, "ScatterND", inputs, 3, &reduction, 1, self->dtype, self->rank, shape);
    for (uint32_t d = 0; d < self->rank; d++) restored[indexing.first[d]] = d;
    const Attr perm = ATTR_IS("perm", restored, self->rank);
    onnx_result(o, "Transpose", &written, 1, &perm, 1);
}

/* ---- along one dimension ---- */

/* ScatterElements with the index repeated over the other dimensions. */
void lower_index_copy(Onnx *o, const Node *node) {
    const Value *index = lower_tensor(node, 2), *source = lower_tensor(node, 3);
    const int64_t dim = lower_dim(node, 1, source->rank);
    const Attr axis = ATTR_I("axis", dim);
    const Sym *column[FERRY_MAX_RANK];
    int64_t axes[FERRY_MAX_RANK];
    uint32_t added = 0;
    for (uint32_t d = 0; d < source->rank; d++) {
        column[d] = d == dim ? index->shape[0] : sym_const(&o->program->symbols, 1);
        if (d != dim) axes[added++] = d;
    }
    const char *name = lower_input(o, node, 2);
    if (added) {
        const char *inputs[] = {name, onnx_ints(o, axes, added)};
        name = onnx_helper(o, "Unsqueeze", inputs, 2, NULL, 0, index->dtype, source->rank, column);
        inputs[0] = name;
        inputs[1] = onnx_shape(o, source->shape, source->rank);
        name =
            onnx_helper(o, "Expand", inputs, 2, NULL, 0, index->dtype, source->rank, source->shape);
    }
    const char *inputs[] = {lower_input(o, node, 0), name, lower_input(o, node, 3)};
    onnx_result(o, "ScatterElements", inputs, 3, &axis, 1);
}

void lower_scatter(Onnx *o, const Node *node) {
    static const char *const names[][2] = {
        {"sum", "add"}, {"prod", "mul"}, {"amax", "max"}, {"amin", "min"}};
    const char *reduction = "none";
    for (size_t i = 0; node->op == OP_SCATTER_REDUCE && i < 4; i++) {
        if (strcmp(node->args[4].string, names[i][0]) == 0) reduction = names[i][1];
    }
    const char *inputs[] = {lower_input(o, node, 0), lower_input(o, node, 2),
                            lower_input(o, node, 3)};
    const Attr attrs[] = {ATTR_I("axis", lower_dim(node, 1, node->outputs[0]->rank)),
                          ATTR_S("reduction", reduction)};
    RESULT(o, "ScatterElements", inputs, attrs);
}

/* ---- order ---- */

/* NonZero gives one row per dimension. */
void lower_nonzero(Onnx *o, const Node *node) {
    const char *inputs[] = {lower_input(o, node, 0)};
    const Value *out = node->outputs[0];
    const Sym *shape[] = {out->shape[1], out->shape[0]};
    const char *rows = onnx_helper(o, "NonZero", inputs, 1, NULL, 0, FERRY_I64, 2, shape);
    const Attr perm = ATTR_IS("perm", ((const int64_t[]){1, 0}), 2);
    onnx_result(o, "Transpose", &rows, 1, &perm, 1);
}

/* ONNX Runtime orders floats and the wide integers; the others go through int32. */
void lower_topk(Onnx *o, const Node *node) {
    const Value *x = lower_tensor(node, 0), *values = node->outputs[0];
    bool narrow = !ferry_dtype_is_float(x->dtype) && x->dtype != FERRY_I64;
    const char *name = lower_input(o, node, 0);
    const char *outputs[] = {onnx_name(o, values), onnx_name(o, node->outputs[1])};
    if (narrow) {
        name = lower_cast(o, name, x, FERRY_I32);
        outputs[0] = onnx_declare(o, "TopK", FERRY_I32, values->rank, values->shape);
    }
    const char *inputs[] = {name, onnx_size(o, node->args[1].integer)};
    const Attr attrs[] = {ATTR_I("axis", lower_dim(node, 2, x->rank)),
                          ATTR_I("largest", node->args[3].boolean), ATTR_I("sorted", 1)};
    onnx_node(o, "TopK", inputs, 2, outputs, 2, attrs, 3);
    const Attr to = ATTR_I("to", onnx_dtype(x->dtype));
    if (narrow) onnx_result(o, "Cast", &outputs[0], 1, &to, 1);
}
