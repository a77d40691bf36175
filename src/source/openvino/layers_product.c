/* Products, attention and normalization. */
#include "source/openvino/reader.h"

#include <math.h>

/* The product with a transposed matrix is a linear layer. */
void net_read_matmul(Import *im, const OnnxNode *node) {
    Builder *b = &im->b;
    Value *x = import_tensor(im, node, 0), *y = import_tensor(im, node, 1);
    bool transpose_x = import_int(im, node, "transpose_a", 0) != 0;
    bool transpose_y = import_int(im, node, "transpose_b", 0) != 0;
    if (!import_ok(im)) return;
    if (x->rank < 2 || y->rank < 2) {
        import_unsupported(im, "the product of tensors of rank %u and %u", x->rank, y->rank);
        return;
    }
    if (transpose_x) x = build_transpose(b, x, -2, -1);
    if (transpose_y && y->rank == 2) {
        import_give(im, node, 0, build_linear(b, x, y, NULL));
        return;
    }
    if (transpose_y) y = build_transpose(b, y, -2, -1);
    import_give(im, node, 0, build_matmul(b, x, y));
}

/* A number that input `i` is; false (and no failure) when it is none. */
static bool constant(Import *im, const OnnxNode *node, uint32_t i, double *out) {
    Arg arg;
    if (!import_scalar(im, node, i, &arg)) return false;
    if (arg.kind == VALUE_INT && !sym_is_const(arg.integer)) return false;
    *out = arg.kind == VALUE_INT ? (double)arg.integer->value : arg.number;
    return true;
}

/* Inputs 3 and 4 may be a mask and a scale; a mask that is the number 0 is none. */
void net_read_attention(Import *im, const OnnxNode *node) {
    Value *query = import_tensor(im, node, 0), *key = import_tensor(im, node, 1);
    Value *value = import_tensor(im, node, 2), *mask = NULL;
    bool causal = import_int(im, node, "causal", 0) != 0;
    double number, scale = 0;
    if (!import_ok(im)) return;
    bool is_none = !import_input(node, 3) || (constant(im, node, 3, &number) && number == 0);
    if (!is_none) mask = import_tensor(im, node, 3);
    const Sym *width = query->rank ? query->shape[query->rank - 1] : build_const(&im->b, 1);
    if (import_input(node, 4)) {
        if (!constant(im, node, 4, &scale)) import_unsupported(im, "the scale must be a constant");
    } else if (sym_is_const(width) && width->value > 0) {
        scale = 1 / sqrt((double)width->value);
    } else {
        import_unsupported(im, "without a scale, the last dimension must have a fixed size");
    }
    import_give(im, node, 0, build_attention(&im->b, query, key, value, mask, causal, scale));
}

/* Over the last dimensions it is a layer normalization without weights. */
void net_read_mvn(Import *im, const OnnxNode *node) {
    Value *x = import_tensor(im, node, 0);
    unsigned axes;
    bool given;
    double eps = import_float(im, node, "eps", 0);
    if (!import_ok(im) || !import_axes(im, node, 1, x->rank, &axes, &given)) return;
    uint32_t first = 0;
    while (first < x->rank && !(axes & 1u << first)) first++;
    if (!given || axes >> first != (1u << (x->rank - first)) - 1) {
        import_unsupported(im, "expected the last dimensions to be normalized");
        return;
    }
    import_give(im, node, 0,
                import_op(im, OP_LAYER_NORM, arg_tensor(x),
                          arg_syms(&im->b, x->shape + first, x->rank - first), arg_none(),
                          arg_none(), arg_float(eps)));
}

void net_read_group_norm(Import *im, const OnnxNode *node) {
    Value *x = import_tensor(im, node, 0), *weight = import_tensor(im, node, 1);
    Value *bias = import_tensor(im, node, 2);
    import_give(im, node, 0,
                import_op(im, OP_GROUP_NORM, arg_tensor(x),
                          arg_int(&im->b, import_int(im, node, "num_groups", 1)),
                          arg_tensor(weight), arg_tensor(bias),
                          arg_float(import_float(im, node, "epsilon", 1e-5))));
}
