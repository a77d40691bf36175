/* Operations that rearrange elements, or make tensors from sizes, as MLX nodes. */
#include "target/executorch/mlx.h"

#include <math.h>
#include <string.h>

bool mlx_takes_slice(const Node *node) {
    const Sym *step = node->args[4].integer;
    return sym_is_const(step) && step->value >= 1 && step->value <= INT32_MAX;
}

/* A list of one size would be that of every part. */
void mlx_add_split(Mlx *m, const Node *node) {
    const Arg *sizes = &node->args[1];
    MlxTensor whole = mlx_arg(m, node, 0);
    MlxTensor *parts = ARENA_ARRAY(m->arena, MlxTensor, node->output_count);
    if (!parts) return;
    for (uint32_t i = 0; i < node->output_count; i++) parts[i] = mlx_output(m, node->outputs[i]);
    if (node->output_count == 1) {
        NODE(m, MLX_ID_COPY, TENSOR(whole), TENSOR(parts[0]));
        return;
    }
    MlxField lengths = mlx_shape(m, sizes->integers.count, sizes->integers.items);
    NODE(m, MLX_SPLIT, TENSOR(whole), mlx_tensors(m, parts, node->output_count), lengths,
         I32(node_dim(node, 2, node->outputs[0]->rank)));
}

/* MLX pads with a float, and by no less than nothing. */
bool mlx_takes_pad(const Node *node) {
    const Arg *pads = &node->args[1];
    if (strcmp(node->args[2].string, "constant") != 0) return false;
    if (node->args[3].kind == VALUE_INT && !sym_is_const(node->args[3].integer)) return false;
    for (uint32_t i = 0; i < pads->integers.count; i++) {
        if (pads->integers.items[i]->lower < 0) return false;
    }
    return true;
}

/* Pairs from the first dimension to the last; ATen's begin with the last. */
void mlx_add_pad(Mlx *m, const Node *node) {
    const Arg *pads = &node->args[1];
    const Sym *widths[2 * FERRY_MAX_RANK], *zero = sym_const(&m->p->program->symbols, 0);
    const Value *out = node->outputs[0];
    for (uint32_t i = 0; i < 2 * out->rank; i++) widths[i] = zero;
    for (uint32_t i = 0; i < pads->integers.count; i++) {
        widths[2 * (out->rank - 1 - i / 2) + i % 2] = pads->integers.items[i];
    }
    MlxTensor x = mlx_arg(m, node, 0);
    NODE(m, MLX_PAD, TENSOR(x), TENSOR(mlx_output(m, out)), mlx_shape(m, 2 * out->rank, widths),
         TEXT("constant"), FLOAT(node_number(node, 3)));
}

/* A range must not be empty: where it may be, it has an element more, which is cut off. */
static void range(Mlx *m, const Sym *start, const Sym *end, const Sym *step, const Sym *count,
                  ferry_dtype dtype, MlxTensor out) {
    bool may_be_empty = count->lower < 1;
    if (may_be_empty) end = sym_add(&m->p->program->symbols, end, step);
    MlxTensor whole = may_be_empty ? mlx_temp(m) : out;
    NODE(m, MLX_ARANGE, TENSOR(whole), INT(mlx_size(m, start)), INT(mlx_size(m, end)),
         INT(mlx_size(m, step)), I8(pte_dtype(dtype)));
    if (!may_be_empty) return;
    NODE(m, MLX_SLICE, TENSOR(whole), TENSOR(out), LITERAL(0), LITERAL(0), INT(mlx_size(m, count)),
         I32(1));
}

void mlx_add_arange(Mlx *m, const Node *node) {
    const Value *out = node->outputs[0];
    range(m, node->args[0].integer, node->args[1].integer, node->args[2].integer, out->shape[0],
          out->dtype, mlx_output(m, out));
}

MlxTensor mlx_positions(Mlx *m, const Sym *count, ferry_dtype dtype) {
    SymTable *symbols = &m->p->program->symbols;
    MlxTensor out = mlx_temp(m);
    range(m, sym_const(symbols, 0), count, sym_const(symbols, 1), count, dtype, out);
    return out;
}

void mlx_add_scalar_tensor(Mlx *m, const Node *node) {
    const Value *out = node->outputs[0];
    MlxTensor number = mlx_scalar_arg(m, &node->args[0], out->dtype);
    NODE(m, MLX_ID_COPY, TENSOR(number), TENSOR(mlx_output(m, out)));
}
