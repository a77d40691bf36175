/* Lowerings of layers: products and normalizations. */
#include "target/executorch/lower.h"

#include <string.h>

/* ---- products ---- */

void pte_lower_linear(Pte *p, const Node *node) {
    pte_lower_args(p, node);
}

/* A factor of a product: a vector is a matrix with a dimension of 1. */
typedef struct Factor {
    PteValue tensor;
    ferry_dtype dtype;
    uint32_t rank;
    const Sym *const *shape;
} Factor;

static Factor factor(Pte *p, const Value *value, uint32_t missing) {
    Factor f = {pte_value(p, value), value->dtype, value->rank, value->shape};
    if (value->rank > 1) return f;
    const Sym *sizes[] = {value->shape[0], value->shape[0]};
    sizes[missing] = sym_const(&p->program->symbols, 1);
    f.rank = 2;
    f.shape = pte_shape(p, sizes, 2);
    f.tensor = pte_view(p, f.tensor, 2, f.shape);
    return f;
}

/* The factor as [batch, rows, columns], repeated where the result's batch is wider. */
static PteValue batched(Pte *p, Factor f, const Sym *const *batch_shape, uint32_t batch_rank,
                        const Sym *batch) {
    const Sym *sizes[FERRY_MAX_RANK];
    uint32_t rank = batch_rank + 2;
    for (uint32_t d = 0; d < batch_rank; d++) sizes[d] = batch_shape[d];
    for (uint32_t d = 0; d < 2; d++) sizes[batch_rank + d] = f.shape[f.rank - 2 + d];
    const Sym *const *wide = pte_shape(p, sizes, rank);
    if (f.rank != rank || !shape_equal(rank, f.shape, sizes)) {
        f.tensor = pte_result(p, "aten::expand_copy.out", pte_temp(p, f.dtype, rank, wide),
                              ARGS(f.tensor, pte_sizes(p, wide, rank), pte_bool(p, false)));
    }
    if (batch_rank == 1) return f.tensor;
    sizes[batch_rank - 1] = batch;
    return pte_view(p, f.tensor, 3, pte_shape(p, sizes + batch_rank - 1, 3));
}

/* The numbers 0, 1, ..., with the last two exchanged. */
static PteValue swapped_dims(Pte *p, uint32_t rank) {
    PteValue dims[FERRY_MAX_RANK];
    for (uint32_t d = 0; d < rank; d++) {
        dims[d] = pte_int(p, d + 2 < rank ? d : d + 2 == rank ? rank - 1 : rank - 2);
    }
    return pte_list(p, SLOT_INTS, dims, rank);
}

static const Sym *const *swapped_shape(Pte *p, uint32_t rank, const Sym *const *shape) {
    const Sym *sizes[FERRY_MAX_RANK];
    memcpy(sizes, shape, rank * sizeof *sizes);
    sizes[rank - 2] = shape[rank - 1];
    sizes[rank - 1] = shape[rank - 2];
    return pte_shape(p, sizes, rank);
}

/* x y^T is (y x^T)^T, where y stays as it is. */
static void multiply_transposed(Pte *p, const Node *node) {
    const Value *out = node->outputs[0], *x = node_tensor(node, 0);
    Factor a = {.dtype = x->dtype, .rank = x->rank, .shape = swapped_shape(p, x->rank, x->shape)};
    Factor b = factor(p, node_tensor(node, 1)->producer->args[0].tensor, 1);
    uint32_t batch_rank = out->rank - 2;
    const Sym *batch = shape_count(&p->program->symbols, batch_rank, out->shape);
    const Sym *sizes[] = {batch, b.shape[b.rank - 2], a.shape[a.rank - 1]};
    a.tensor = pte_result(p, "aten::permute_copy.out", pte_temp(p, a.dtype, a.rank, a.shape),
                          ARGS(pte_value(p, x), swapped_dims(p, a.rank)));
    PteValue left = batched(p, b, out->shape, batch_rank, batch);
    PteValue right = batched(p, a, out->shape, batch_rank, batch);
    PteValue product = pte_temp(p, out->dtype, 3, pte_shape(p, sizes, 3));
    pte_result(p, node_kernel(node), product, ARGS(left, right));
    PteValue turned = pte_view(p, product, out->rank, swapped_shape(p, out->rank, out->shape));
    RESULT(p, node, "aten::permute_copy.out", turned, swapped_dims(p, out->rank));
}

void pte_lower_matmul(Pte *p, const Node *node) {
    if (p->folded[node_tensor(node, 1)->id]) {
        multiply_transposed(p, node);
        return;
    }
    const Value *out = node->outputs[0], *x = node_tensor(node, 0), *y = node_tensor(node, 1);
    Factor a = factor(p, x, 0), b = factor(p, y, 1);
    uint32_t vectors = (x->rank < 2) + (y->rank < 2), batch_rank = out->rank + vectors - 2;
    const Sym *batch = shape_count(&p->program->symbols, batch_rank, out->shape);
    const Sym *sizes[] = {batch, a.shape[a.rank - 2], b.shape[b.rank - 1]};
    const Sym *const *shape = pte_shape(p, sizes, 3);
    bool direct = vectors == 0 && out->rank <= 3;
    PteValue product = direct            ? pte_output(p, out)
                       : batch_rank == 0 ? pte_temp(p, out->dtype, 2, shape + 1)
                                         : pte_temp(p, out->dtype, 3, shape);
    if (batch_rank == 0) {
        pte_result(p, "aten::mm.out", product, ARGS(a.tensor, b.tensor));
    } else {
        PteValue left = batched(p, a, out->shape, batch_rank, batch);
        PteValue right = batched(p, b, out->shape, batch_rank, batch);
        pte_result(p, node_kernel(node), product, ARGS(left, right));
    }
    if (!direct) pte_bind(p, out, pte_view(p, product, out->rank, out->shape));
}

/* ---- groups of rows ---- */

/* The matrix of a group: a part of the weights, or a copy where those are computed. */
static PteValue group_matrix(Pte *p, const Value *weights, uint32_t group) {
    const Sym *const *shape = weights->shape + 1;
    const Recipe *whole = value_fixed(weights);
    const Recipe *part = whole ? recipe_slice(&p->arena, whole, 0, group, group + 1) : NULL;
    if (part) return pte_view(p, pte_constant(p, part), 2, shape);
    PteValue matrix = pte_temp(p, weights->dtype, 2, shape);
    return pte_result(p, "aten::select_copy.int_out", matrix,
                      ARGS(pte_value(p, weights), pte_int(p, 0), pte_int(p, group)));
}

/* Rows are sliced where the groups end; each slice is multiplied with the matrix of its group and put in
 * its place, so that one slice and one product need memory at a time. The rest is zero. */
void pte_lower_grouped_mm(Pte *p, const Node *node) {
    const Value *rows = node_tensor(node, 0), *weights = node_tensor(node, 1);
    const Value *out = node->outputs[0], *offsets = node_tensor(node, 2);
    if (!sym_is_const(weights->shape[0])) {
        pte_fail(p, FERRY_UNSUPPORTED, "the number of groups must be a constant");
        return;
    }
    uint32_t groups = (uint32_t)weights->shape[0]->value;
    PteValue start = pte_int(p, 0), zero = start, one = pte_int(p, 1), no = pte_bool(p, false);
    PteValue places = pte_temp(p, FERRY_I64, 1, out->shape);
    pte_result(p, "aten::arange.start_out", places, ARGS(zero, pte_size(p, out->shape[0]), one));
    PteValue result = pte_output(p, out);
    pte_result(p, "aten::full.out", result, ARGS(pte_sizes(p, out->shape, 2), zero));
    for (uint32_t g = 0; g < groups; g++) {
        PteValue ends = pte_temp(p, offsets->dtype, 0, NULL), end = pte_computed(p);
        pte_result(p, "aten::select_copy.int_out", ends,
                   ARGS(pte_value(p, offsets), zero, pte_int(p, g)));
        pte_call(p, "aten::_local_scalar_dense", ARGS(ends, end));
        PteValue slice = pte_varying(p, rows->dtype, 2, rows->shape);
        pte_result(p, "aten::slice_copy.Tensor_out", slice,
                   ARGS(pte_value(p, rows), zero, start, end, one));
        PteValue place = pte_varying(p, FERRY_I64, 1, out->shape);
        pte_result(p, "aten::slice_copy.Tensor_out", place, ARGS(places, zero, start, end, one));
        PteValue part = pte_result(p, node_kernel(node), pte_varying(p, out->dtype, 2, out->shape),
                                   ARGS(slice, group_matrix(p, weights, g)));
        PteValue list = pte_list(p, SLOT_OPTIONAL_TENSORS, &place, 1);
        pte_call(p, "aten::index_put_", ARGS(result, list, part, no, result));
        start = end;
    }
}

/* ---- normalization ---- */

/* The kernel also returns mean and deviation, which nobody reads. */
void pte_lower_layer_norm(Pte *p, const Node *node) {
    const Value *x = node_tensor(node, 0), *out = node->outputs[0];
    uint32_t normalized = node->args[1].integers.count;
    const Sym *sizes[FERRY_MAX_RANK];
    for (uint32_t d = 0; d < x->rank; d++) {
        sizes[d] = d + normalized < x->rank ? x->shape[d] : sym_const(&p->program->symbols, 1);
    }
    const Sym *const *shape = pte_shape(p, sizes, x->rank);
    const PteValue all[] = {pte_output(p, out), pte_temp(p, x->dtype, x->rank, shape),
                            pte_temp(p, x->dtype, x->rank, shape)};
    PteValue list = pte_list(p, SLOT_TENSORS, all, 3);
    pte_call(p, node_kernel(node),
             ARGS(pte_value(p, x), pte_node_arg(p, node, 1), pte_node_arg(p, node, 2),
                  pte_node_arg(p, node, 3), pte_node_arg(p, node, 4), all[0], all[1], all[2],
                  list));
}
