/* Operations that select or write elements by index, as MLX nodes. */
#include "target/executorch/mlx.h"

#include <string.h>

/* ---- reading ---- */

/* Other dimensions than the index's own are cut to the size of the index. */
void mlx_add_gather(Mlx *m, const Node *node) {
    const Value *self = node_tensor(node, 0), *index = node_tensor(node, 2);
    int64_t dim = node_dim(node, 1, self->rank);
    MlxTensor x = mlx_input(m, self), at = mlx_input(m, index);
    for (uint32_t d = 0; d < self->rank; d++) {
        if (d == dim || self->shape[d] == index->shape[d]) continue;
        MlxTensor cut = mlx_temp(m);
        NODE(m, MLX_SLICE, TENSOR(x), TENSOR(cut), LITERAL(d), LITERAL(0),
             INT(mlx_size(m, index->shape[d])), I32(1));
        x = cut;
    }
    NODE(m, MLX_TAKE_ALONG_AXIS, TENSOR(x), TENSOR(at), TENSOR(mlx_output(m, node->outputs[0])),
         I32(dim));
}

/* The dimensions that an index list has something for. */
static uint32_t indexed_dims(const Node *node, uint32_t *dims) {
    const Arg *list = &node->args[1];
    uint32_t count = 0;
    for (uint32_t i = 0; i < list->tensors.count; i++) {
        if (list->tensors.items[i]) dims[count++] = i;
    }
    return count;
}

bool mlx_takes_index(const Node *node) {
    const Arg *list = &node->args[1];
    uint32_t count = 0;
    for (uint32_t i = 0; i < list->tensors.count; i++) {
        const Value *index = list->tensors.items[i];
        if (index && index->dtype == FERRY_BOOL) return false;
        count += index != NULL;
    }
    return count > 0;
}

/* An index counted from the front, in int64. */
static MlxTensor from_front(Mlx *m, const Value *index, const Sym *size) {
    MlxTensor at = mlx_input(m, index);
    if (index->dtype != FERRY_I64) at = mlx_as_type(m, at, FERRY_I64);
    return mlx_binary(m, MLX_REMAINDER, at, mlx_size_tensor(m, size, FERRY_I64));
}

/* Several indices are one into their dimensions taken together, which come to the front where they do not
 * follow each other: so does the result's. */
void mlx_add_index(Mlx *m, const Node *node) {
    const Value *self = node_tensor(node, 0);
    const Arg *list = &node->args[1];
    SymTable *symbols = &m->p->program->symbols;
    uint32_t dims[FERRY_MAX_RANK], count = indexed_dims(node, dims), first = dims[0];
    MlxTensor x = mlx_input(m, self), to = mlx_output(m, node->outputs[0]);
    if (count == 1) {
        MlxTensor at = mlx_input(m, list->tensors.items[first]);
        NODE(m, MLX_TAKE, TENSOR(x), TENSOR(to), INDICES(at), I32(first));
        return;
    }
    const Sym *shape[FERRY_MAX_RANK], *together = self->shape[first];
    int32_t order[FERRY_MAX_RANK];
    bool adjacent = dims[count - 1] - first + 1 == count, moved[FERRY_MAX_RANK] = {0};
    uint32_t rank = 0, placed = 0;
    for (uint32_t i = 0; i < count && !adjacent; i++) {
        order[placed++] = (int32_t)dims[i];
        moved[dims[i]] = true;
    }
    for (uint32_t d = 0; d < self->rank && !adjacent; d++) {
        if (!moved[d]) order[placed++] = (int32_t)d;
    }
    if (!adjacent) x = mlx_transpose(m, x, order, self->rank);
    if (!adjacent) first = 0;
    MlxTensor at = from_front(m, list->tensors.items[dims[0]], self->shape[dims[0]]);
    for (uint32_t i = 1; i < count; i++) {
        const Sym *size = self->shape[dims[i]];
        together = sym_mul(symbols, together, size);
        at = mlx_binary(m, MLX_MULTIPLY, at, mlx_size_tensor(m, size, FERRY_I64));
        at = mlx_binary(m, MLX_ADD, at, from_front(m, list->tensors.items[dims[i]], size));
    }
    for (uint32_t d = 0; d < self->rank; d++) {
        uint32_t from = adjacent ? d : (uint32_t)order[d];
        if (d == first) shape[rank++] = together;
        if (d < first || d >= first + count) shape[rank++] = self->shape[from];
    }
    NODE(m, MLX_TAKE, TENSOR(mlx_reshape(m, x, rank, shape)), TENSOR(to), INDICES(at), I32(first));
}

/* Of equal elements the first: a stable sort, of the negated elements for the largest. */
bool mlx_takes_topk(const Node *node) {
    ferry_dtype dtype = node_tensor(node, 0)->dtype;
    return dtype != FERRY_BOOL && dtype != FERRY_U8 && node_tensor(node, 0)->rank > 0;
}

void mlx_add_topk(Mlx *m, const Node *node) {
    const Value *self = node_tensor(node, 0);
    int64_t dim = node_dim(node, 2, self->rank);
    MlxTensor x = mlx_input(m, self), order = mlx_temp(m), best = mlx_temp(m);
    MlxTensor sorted = node->args[3].boolean ? mlx_unary(m, MLX_NEG, x) : x;
    NODE(m, MLX_ARGSORT, TENSOR(sorted), TENSOR(order), I32(dim));
    NODE(m, MLX_SLICE, TENSOR(order), TENSOR(best), LITERAL(dim), LITERAL(0),
         INT(mlx_size(m, node->args[1].integer)), I32(1));
    NODE(m, MLX_TAKE_ALONG_AXIS, TENSOR(x), TENSOR(best), TENSOR(mlx_output(m, node->outputs[0])),
         I32(dim));
    NODE(m, MLX_AS_TYPE, TENSOR(best), TENSOR(mlx_output(m, node->outputs[1])),
         I8(pte_dtype(FERRY_I64)));
}

/* ---- writing ---- */

/* A list of int64 indices along one dimension. The node wants to write what it copies from: no constant. */
static void index_copy(Mlx *m, const Node *node, const Value *index, MlxTensor update,
                       int64_t dim) {
    MlxTensor x = mlx_arg(m, node, 0), at = mlx_input(m, index);
    const Sym *one = sym_const(&m->p->program->symbols, 1);
    if (index->dtype != FERRY_I64) at = mlx_as_type(m, at, FERRY_I64);
    if (index->rank == 0) at = mlx_reshape(m, at, 1, &one);
    if (x.class == MLX_CONSTANT) x = mlx_unary(m, MLX_ID_COPY, x);
    NODE(m, MLX_INDEX_COPY, TENSOR(x), TENSOR(update), TENSOR(at),
         TENSOR(mlx_output(m, node->outputs[0])), I32(dim));
}

void mlx_add_index_copy(Mlx *m, const Node *node) {
    int64_t dim = node_dim(node, 1, node->outputs[0]->rank);
    index_copy(m, node, node_tensor(node, 2), mlx_arg(m, node, 3), dim);
}

bool mlx_takes_index_put(const Node *node) {
    uint32_t dims[FERRY_MAX_RANK];
    if (node->args[3].boolean || !mlx_takes_index(node)) return false;
    return indexed_dims(node, dims) == 1 && node->args[1].tensors.items[dims[0]]->rank == 1;
}

void mlx_add_index_put(Mlx *m, const Node *node) {
    uint32_t dims[FERRY_MAX_RANK];
    const Value *out = node->outputs[0], *values = node_tensor(node, 2);
    const Sym *shape[FERRY_MAX_RANK];
    indexed_dims(node, dims);
    const Value *index = node->args[1].tensors.items[dims[0]];
    memcpy(shape, out->shape, out->rank * sizeof *shape);
    shape[dims[0]] = index->shape[0];
    MlxTensor update = mlx_input(m, values);
    if (values->rank != out->rank || !shape_equal(out->rank, values->shape, shape)) {
        MlxTensor wide = mlx_temp(m);
        NODE(m, MLX_BROADCAST_TO, TENSOR(update), TENSOR(wide), mlx_shape(m, out->rank, shape));
        update = wide;
    }
    index_copy(m, node, index, update, dims[0]);
}

/* Sums, where other dimensions than the index's own are whole. */
bool mlx_takes_scatter_reduce(const Node *node) {
    const Value *self = node_tensor(node, 0), *index = node_tensor(node, 2);
    const Value *source = node_tensor(node, 3);
    int64_t dim = node_dim(node, 1, self->rank);
    if (strcmp(node->args[4].string, "sum") != 0 || self->rank == 0) return false;
    if (self->dtype == FERRY_BOOL || !shape_equal(self->rank, index->shape, source->shape))
        return false;
    for (uint32_t d = 0; d < self->rank; d++) {
        if (d != dim && self->shape[d] != index->shape[d]) return false;
    }
    return true;
}

void mlx_add_scatter_reduce(Mlx *m, const Node *node) {
    const Value *out = node->outputs[0];
    MlxTensor x = mlx_arg(m, node, 0), at = mlx_arg(m, node, 2), updates = mlx_arg(m, node, 3);
    NODE(m, MLX_SCATTER_ADD, TENSOR(x), TENSOR(at), TENSOR(updates), TENSOR(mlx_output(m, out)),
         I32(node_dim(node, 1, out->rank)));
}
