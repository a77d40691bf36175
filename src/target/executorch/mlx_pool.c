/* Pooling as MLX nodes: a view that has the elements of each window in dimensions of their own, which are
 * reduced. */
#include "target/executorch/mlx.h"

#include <math.h>

enum { WINDOW_DIMS = 2 };

typedef struct Window {
    int64_t kernel[WINDOW_DIMS], stride[WINDOW_DIMS], padding[WINDOW_DIMS], dilation[WINDOW_DIMS];
    bool ceil_mode; /* the last windows may end behind the padding */
} Window;

static Window window_of(const Node *node) {
    bool dilates = node->op == OP_MAX_POOL;
    Window w = {.ceil_mode = node->args[dilates ? 5 : 4].boolean};
    for (uint32_t i = 0; i < WINDOW_DIMS; i++) {
        w.kernel[i] = node->args[1].integers.items[i]->value;
        w.stride[i] = node->args[2].integers.items[i]->value;
        w.padding[i] = node->args[3].integers.items[i]->value;
        w.dilation[i] = dilates ? node->args[4].integers.items[i]->value : 1;
    }
    return w;
}

/* What is behind the padding counts for no average. */
bool mlx_takes_pool(const Node *node) {
    if (!ferry_dtype_is_float(node->outputs[0]->dtype)) return false;
    return node->op == OP_MAX_POOL || !node->args[4].boolean;
}

/* `x`, whose last sizes are those of `self`, padded with a number, by windows: [outer, outputs, window]. */
static MlxTensor windows(Mlx *m, const Node *node, MlxTensor x, uint32_t rank,
                         const Sym *const *sizes, double number) {
    SymTable *symbols = &m->p->program->symbols;
    const Value *out = node->outputs[0];
    const Sym *widths[2 * FERRY_MAX_RANK], *shape[FERRY_MAX_RANK], *strides[FERRY_MAX_RANK];
    Window w = window_of(node);
    uint32_t outer = rank - WINDOW_DIMS;
    MlxTensor padded = mlx_temp(m), view = mlx_temp(m);
    const Sym *step = sym_const(symbols, 1);
    for (uint32_t i = 0; i < 2 * rank; i++) widths[i] = sym_const(symbols, 0);
    for (uint32_t d = rank; d-- > 0;) {
        const Sym *size = sizes[d];
        strides[d] = step;
        shape[d] = size;
        if (d >= outer) {
            uint32_t i = d - outer;
            int64_t behind = w.padding[i] + (w.ceil_mode ? w.stride[i] - 1 : 0);
            widths[2 * d] = sym_const(symbols, w.padding[i]);
            widths[2 * d + 1] = sym_const(symbols, behind);
            size = sym_add(symbols, size, sym_const(symbols, w.padding[i] + behind));
            shape[d] = out->shape[out->rank - WINDOW_DIMS + i];
            strides[d] = sym_mul(symbols, step, sym_const(symbols, w.stride[i]));
            shape[rank + i] = sym_const(symbols, w.kernel[i]);
            strides[rank + i] = sym_mul(symbols, step, sym_const(symbols, w.dilation[i]));
        }
        step = sym_mul(symbols, step, size);
    }
    NODE(m, MLX_PAD, TENSOR(x), TENSOR(padded), mlx_shape(m, 2 * rank, widths), TEXT("constant"),
         FLOAT(number));
    NODE(m, MLX_AS_STRIDED, TENSOR(padded), TENSOR(view), mlx_shape(m, rank + WINDOW_DIMS, shape),
         mlx_shape(m, rank + WINDOW_DIMS, strides));
    return view;
}

static void reduce(Mlx *m, uint8_t type, MlxTensor view, uint32_t rank, MlxTensor out) {
    const int32_t axes[] = {(int32_t)rank, (int32_t)rank + 1};
    NODE(m, type, TENSOR(view), TENSOR(out), mlx_numbers(m, axes, 2), BOOL(false));
}

/* An average that leaves padding out is a sum divided by how many elements it has. */
void mlx_add_pool(Mlx *m, const Node *node) {
    const Value *self = node_tensor(node, 0), *out = node->outputs[0];
    uint32_t rank = self->rank;
    bool largest = node->op == OP_MAX_POOL;
    MlxTensor x = mlx_input(m, self), to = mlx_output(m, out);
    MlxTensor view = windows(m, node, x, rank, self->shape, largest ? -INFINITY : 0);
    if (largest || node->args[5].boolean) {
        reduce(m, largest ? MLX_MAX : MLX_MEAN, view, rank, to);
        return;
    }
    MlxTensor sum = mlx_temp(m), ones = mlx_temp(m), count = mlx_temp(m);
    const Sym *const *image = self->shape + rank - WINDOW_DIMS;
    NODE(m, MLX_BROADCAST_TO, TENSOR(mlx_scalar(m, 1, out->dtype)), TENSOR(ones),
         mlx_shape(m, WINDOW_DIMS, image));
    reduce(m, MLX_SUM, view, rank, sum);
    reduce(m, MLX_SUM, windows(m, node, ones, WINDOW_DIMS, image, 0), WINDOW_DIMS, count);
    NODE(m, MLX_DIVIDE, TENSOR(sum), TENSOR(count), TENSOR(to));
}
