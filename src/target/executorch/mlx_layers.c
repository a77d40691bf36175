/* Layers as MLX nodes: products, attention, convolutions, normalization by groups. */
#include "target/executorch/mlx.h"

enum { UINT32_TYPE = 28 }; /* the number of an element type that programs do not have */

/* ---- products ---- */

void mlx_add_linear(Mlx *m, const Node *node) {
    static const int32_t swapped[] = {1, 0};
    MlxTensor x = mlx_arg(m, node, 0), weight = mlx_arg(m, node, 1);
    const Value *bias = node_tensor(node, 2);
    if (node_tensor(node, 1)->rank == 2) weight = mlx_transpose(m, weight, swapped, 2);
    MlxField added = bias ? TENSOR(mlx_input(m, bias)) : NOTHING;
    NODE(m, MLX_ADDMM, TENSOR(x), TENSOR(weight), TENSOR(mlx_output(m, node->outputs[0])), added);
}

/* Rows [offsets[g - 1], offsets[g]) times the matrix g: the group of a row is the number of offsets that are
 * not above it. */
void mlx_add_grouped_mm(Mlx *m, const Node *node) {
    const Value *self = node_tensor(node, 0), *groups = node_tensor(node, 1);
    const Value *out = node->outputs[0];
    const Sym *one = sym_const(&m->p->program->symbols, 1), *rows = self->shape[0];
    static const int32_t last[] = {1};
    MlxTensor row = mlx_positions(m, rows, FERRY_I32);
    row = mlx_reshape(m, row, 2, (const Sym *const[]){rows, one});
    MlxTensor offsets = mlx_as_type(m, mlx_arg(m, node, 2), FERRY_I32);
    MlxTensor below = mlx_binary(m, MLX_LESS_EQUAL, offsets, row), group = mlx_temp(m);
    NODE(m, MLX_SUM, TENSOR(below), TENSOR(group), mlx_numbers(m, last, 1), BOOL(false));
    MlxTensor most =
        mlx_size_tensor(m, sym_sub(&m->p->program->symbols, groups->shape[0], one), FERRY_I32);
    group = mlx_binary(m, MLX_MINIMUM, group, most);
    MlxTensor index = mlx_temp(m), product = mlx_temp(m);
    NODE(m, MLX_AS_TYPE, TENSOR(group), TENSOR(index), I8(UINT32_TYPE));
    MlxTensor x =
        mlx_reshape(m, mlx_input(m, self), 3, (const Sym *const[]){rows, one, self->shape[1]});
    NODE(m, MLX_GATHER_MM, TENSOR(x), TENSOR(mlx_input(m, groups)), TENSOR(product), NOTHING,
         TENSOR(index), BOOL(true));
    NODE(m, MLX_RESHAPE, TENSOR(product), TENSOR(mlx_output(m, out)),
         mlx_shape(m, out->rank, out->shape));
}

bool mlx_takes_grouped_mm(const Node *node) {
    const Value *self = node_tensor(node, 0), *groups = node_tensor(node, 1);
    return ferry_dtype_is_float(self->dtype) && self->rank == 2 && groups->rank == 3;
}

/* ---- attention ---- */

/* MLX aligns a causal mask with the last key, ATen with the first. */
bool mlx_takes_attention(const Node *node) {
    const Value *query = node_tensor(node, 0), *key = node_tensor(node, 1);
    const Value *value = node_tensor(node, 2), *mask = node_tensor(node, 3);
    bool causal = node->args[4].boolean;
    if (query->rank != 4 || key->rank != 4 || value->rank != 4 || (mask && mask->rank > 4))
        return false;
    if (causal && (mask || query->shape[2] != key->shape[2])) return false;
    if (!shape_equal(3, key->shape, value->shape) || query->shape[0] != key->shape[0]) return false;
    const Sym *heads = query->shape[1], *groups = key->shape[1];
    bool divides = sym_is_const(heads) && sym_is_const(groups) && heads->value % groups->value == 0;
    return heads == groups || divides;
}

/* Which rows of a bool mask show anything; made once for all layers. */
static MlxTensor attended(Mlx *m, const Value *mask) {
    const MlxTensor *known = map_get(&m->masks, &mask, sizeof mask);
    if (known) return *known;
    const int32_t keys[] = {(int32_t)mask->rank - 1};
    MlxTensor rows = mlx_temp(m);
    NODE(m, MLX_ANY, TENSOR(mlx_input(m, mask)), TENSOR(rows), mlx_numbers(m, keys, 1), BOOL(true));
    const Value **key = arena_copy(m->arena, &mask, sizeof mask);
    MlxTensor *entry = arena_copy(m->arena, &rows, sizeof rows);
    if (key && entry) map_set(&m->masks, key, sizeof mask, entry);
    return rows;
}

/* A row that a bool mask hides entirely gives zeros. */
void mlx_add_attention(Mlx *m, const Node *node) {
    const Value *mask = node_tensor(node, 3), *out = node->outputs[0];
    bool hides = mask && mask->dtype == FERRY_BOOL;
    MlxTensor q = mlx_arg(m, node, 0), k = mlx_arg(m, node, 1), v = mlx_arg(m, node, 2);
    MlxTensor context = hides ? mlx_temp(m) : mlx_output(m, out);
    MlxField shown = mask ? TENSOR(mlx_input(m, mask)) : NOTHING;
    NODE(m, MLX_SDPA, TENSOR(q), TENSOR(k), TENSOR(v), TENSOR(context), FLOAT(node_number(node, 5)),
         shown, BOOL(node->args[4].boolean));
    if (!hides) return;
    MlxTensor rows = attended(m, mask), zero = mlx_scalar(m, 0, out->dtype);
    NODE(m, MLX_WHERE, TENSOR(rows), TENSOR(context), TENSOR(zero), TENSOR(mlx_output(m, out)));
}

/* ---- normalization ---- */

/* MLX normalizes the last dimension. */
bool mlx_takes_rms_norm(const Node *node) {
    return ferry_dtype_is_float(node->outputs[0]->dtype) && node->args[1].integers.count == 1;
}

/* `rank` dimensions as rows are normalized, scaled and moved as the program has them. */
static void normalize(Mlx *m, const Node *node, uint32_t rank, const Sym *const *rows,
                      const MlxTensor *weight, const MlxTensor *bias) {
    const Value *self = node_tensor(node, 0), *out = node->outputs[0];
    MlxTensor x = mlx_reshape(m, mlx_input(m, self), rank, rows), normal = mlx_temp(m);
    NODE(m, MLX_LAYER_NORM, TENSOR(x), TENSOR(normal), NOTHING, NOTHING,
         FLOAT(node_number(node, 4)));
    x = mlx_reshape(m, normal, self->rank, self->shape);
    if (weight) x = mlx_binary(m, MLX_MULTIPLY, x, *weight);
    if (bias) x = mlx_binary(m, MLX_ADD, x, *bias);
    NODE(m, MLX_ID_COPY, TENSOR(x), TENSOR(mlx_output(m, out)));
}

/* Several dimensions are one row. */
void mlx_add_layer_norm(Mlx *m, const Node *node) {
    const Value *self = node_tensor(node, 0), *weight = node_tensor(node, 2);
    const Value *bias = node_tensor(node, 3);
    uint32_t outer = self->rank - node->args[1].integers.count;
    MlxTensor scale = {0}, shift = {0};
    if (weight) scale = mlx_input(m, weight);
    if (bias) shift = mlx_input(m, bias);
    if (outer + 1 == self->rank) {
        MlxTensor x = mlx_input(m, self);
        NODE(m, MLX_LAYER_NORM, TENSOR(x), TENSOR(mlx_output(m, node->outputs[0])),
             weight ? TENSOR(scale) : NOTHING, bias ? TENSOR(shift) : NOTHING,
             FLOAT(node_number(node, 4)));
        return;
    }
    const Sym *rows[FERRY_MAX_RANK];
    for (uint32_t d = 0; d < outer; d++) rows[d] = self->shape[d];
    rows[outer] = shape_count(&m->p->program->symbols, self->rank - outer, self->shape + outer);
    normalize(m, node, outer + 1, rows, weight ? &scale : NULL, bias ? &shift : NULL);
}

/* [channels, 1, 1, ...], to be broadcast over what follows the channels. */
static MlxTensor per_channel(Mlx *m, const Value *value, uint32_t rank) {
    const Sym *shape[FERRY_MAX_RANK];
    shape[0] = value->shape[0];
    for (uint32_t d = 1; d + 1 < rank; d++) shape[d] = sym_const(&m->p->program->symbols, 1);
    return mlx_reshape(m, mlx_input(m, value), rank - 1, shape);
}

/* A group is a row. */
void mlx_add_group_norm(Mlx *m, const Node *node) {
    const Value *self = node_tensor(node, 0), *weight = node_tensor(node, 2);
    const Value *bias = node_tensor(node, 3);
    SymTable *symbols = &m->p->program->symbols;
    const Sym *groups = node->args[1].integer,
              *size = sym_floordiv(symbols, self->shape[1], groups);
    size = sym_mul(symbols, size, shape_count(symbols, self->rank - 2, self->shape + 2));
    const Sym *const rows[] = {self->shape[0], groups, size};
    MlxTensor scale = {0}, shift = {0};
    if (weight) scale = per_channel(m, weight, self->rank);
    if (bias) shift = per_channel(m, bias, self->rank);
    normalize(m, node, 3, rows, weight ? &scale : NULL, bias ? &shift : NULL);
}

/* ---- convolution ---- */

/* Groups are for one and two dimensions. */
bool mlx_takes_convolution(const Node *node) {
    const Value *self = node_tensor(node, 0), *weight = node_tensor(node, 1);
    uint32_t spatial = weight->rank - 2;
    if (!ferry_dtype_is_float(self->dtype) || self->rank != weight->rank) return false;
    if (spatial < 1 || spatial > 3) return false;
    for (uint32_t d = 0; d < weight->rank; d++) {
        if (!sym_is_const(weight->shape[d])) return false;
    }
    return spatial < 3 || node_int(node, 8) == 1;
}

/* [out, spatial, in of a group], of [out, in of a group, spatial], or [in, out of a group, spatial] where the
 * convolution is transposed. */
static MlxTensor filter(Mlx *m, const Node *node) {
    const Value *weight = node_tensor(node, 1);
    const Sym *const *s = weight->shape;
    SymTable *symbols = &m->p->program->symbols;
    uint32_t spatial = weight->rank - 2;
    bool transposed = node->args[6].boolean;
    const Sym *groups = node->args[8].integer;
    int32_t dims[FERRY_MAX_RANK];
    if (!transposed || sym_is_value(groups, 1)) {
        int64_t order[FERRY_MAX_RANK] = {transposed};
        for (uint32_t d = 0; d < spatial; d++) order[1 + d] = 2 + d;
        order[1 + spatial] = !transposed;
        for (uint32_t d = 0; d < weight->rank; d++) dims[d] = (int32_t)order[d];
        const Recipe *fixed = value_fixed(weight);
        const Recipe *recipe = fixed ? recipe_permute(&m->p->program->arena, fixed, order) : NULL;
        if (recipe) return mlx_weight(m, recipe, weight->name);
        return mlx_transpose(m, mlx_input(m, weight), dims, weight->rank);
    }
    const Sym *split[FERRY_MAX_RANK] = {groups, sym_floordiv(symbols, s[0], groups)};
    const Sym *joined[FERRY_MAX_RANK] = {sym_mul(symbols, s[1], groups)};
    int32_t order[FERRY_MAX_RANK] = {0, 2};
    for (uint32_t d = 0; d <= spatial; d++) split[2 + d] = s[1 + d];
    for (uint32_t d = 0; d < spatial; d++) order[2 + d] = (int32_t)(3 + d);
    order[2 + spatial] = 1;
    for (uint32_t d = 0; d < spatial; d++) joined[1 + d] = s[2 + d];
    joined[1 + spatial] = split[1];
    MlxTensor x = mlx_reshape(m, mlx_input(m, weight), weight->rank + 1, split);
    x = mlx_transpose(m, x, order, weight->rank + 1);
    return mlx_reshape(m, x, weight->rank, joined);
}

/* Strides, padding, dilation, and padding of the output where it is transposed, for each dimension. */
static size_t spatial_fields(const Node *node, MlxField *fields) {
    size_t count = 0;
    for (uint32_t arg = 3; arg <= 7; arg++) {
        const Arg *list = &node->args[arg];
        if (arg == 6 || (arg == 7 && !node->args[6].boolean)) continue;
        for (uint32_t i = 0; i < node_tensor(node, 1)->rank - 2; i++) {
            fields[count++] = I32(list->integers.items[i]->value);
        }
    }
    return count;
}

/* MLX has the channels last. */
void mlx_add_convolution(Mlx *m, const Node *node) {
    const Value *self = node_tensor(node, 0), *bias = node_tensor(node, 2), *out = node->outputs[0];
    uint32_t rank = self->rank, spatial = rank - 2;
    int32_t to_last[FERRY_MAX_RANK] = {0}, to_first[FERRY_MAX_RANK] = {0, (int32_t)rank - 1};
    for (uint32_t d = 0; d < spatial; d++) {
        to_last[1 + d] = (int32_t)(2 + d);
        to_first[2 + d] = (int32_t)(1 + d);
    }
    to_last[rank - 1] = 1;
    MlxTensor x = mlx_transpose(m, mlx_input(m, self), to_last, rank), weight = filter(m, node);
    MlxTensor result = mlx_temp(m);
    MlxField fields[16] = {TENSOR(x), TENSOR(weight), TENSOR(result)};
    size_t count = 3 + spatial_fields(node, fields + 3);
    fields[count++] = I32(node_int(node, 8));
    uint32_t first = node->args[6].boolean ? MLX_CONV_TRANSPOSE_1D : MLX_CONV_1D;
    mlx_node(m, (uint8_t)(first + spatial - 1), fields, count);
    if (bias) result = mlx_binary(m, MLX_ADD, result, mlx_input(m, bias));
    NODE(m, MLX_TRANSPOSE, TENSOR(result), TENSOR(mlx_output(m, out)),
         mlx_numbers(m, to_first, rank));
}
