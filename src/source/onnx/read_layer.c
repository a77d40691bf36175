/* Products, normalizations and reductions. */
#include "source/onnx/import.h"

/* ---- products ---- */

void read_matmul(Import *im, const OnnxNode *node) {
    Value *x = import_tensor(im, node, 0), *y = import_tensor(im, node, 1);
    if (import_ok(im) && (x->rank < 2 || y->rank < 2)) {
        import_unsupported(im, "the product of tensors of rank %u and %u", x->rank, y->rank);
    }
    import_give(im, node, 0, build_matmul(&im->b, x, y));
}

static Value *scaled(Import *im, Value *x, double factor) {
    if (factor == 1) return x;
    return import_op(im, OP_MUL_SCALAR, arg_tensor(x), arg_float(factor));
}

/* alpha A B + beta C; a linear layer where it has the form of one. */
void read_gemm(Import *im, const OnnxNode *node) {
    Builder *b = &im->b;
    Value *x = import_tensor(im, node, 0), *y = import_tensor(im, node, 1);
    Value *bias = import_tensor(im, node, 2);
    double alpha = import_float(im, node, "alpha", 1), beta = import_float(im, node, "beta", 1);
    bool transpose_x = import_int(im, node, "transA", 0) != 0;
    bool transpose_y = import_int(im, node, "transB", 0) != 0;
    if (!import_ok(im)) return;
    if (x->rank != 2 || y->rank != 2) {
        import_bad(im, "expected matrices, found ranks %u and %u", x->rank, y->rank);
        return;
    }
    if (transpose_x) x = build_transpose(b, x, 0, 1);
    bool fits = !bias || (bias->rank == 1 && bias->shape[0] == y->shape[0]);
    if (transpose_y && fits && alpha == 1 && beta == 1) {
        import_give(im, node, 0, build_linear(b, x, y, bias));
        return;
    }
    if (transpose_y) y = build_transpose(b, y, 0, 1);
    Value *product = scaled(im, build_matmul(b, x, y), alpha);
    if (bias) product = build_add(b, product, scaled(im, bias, beta));
    import_give(im, node, 0, product);
}

/* ---- normalization ---- */

void read_norm(Import *im, const OnnxNode *node) {
    Value *x = import_tensor(im, node, 0), *weight = import_tensor(im, node, 1);
    Value *bias = import_tensor(im, node, 2);
    double eps = import_float(im, node, "epsilon", (double)1e-5F);
    uint32_t axis;
    if (!import_require_int(im, node, "stash_type", 1)) return;
    if (!import_ok(im) || !import_axis(im, import_int(im, node, "axis", -1), x->rank, &axis))
        return;
    if (weight->dtype != x->dtype || (bias && bias->dtype != x->dtype)) {
        import_bad(im, "the input, the scale and the bias differ in dtype");
        return;
    }
    Arg shape = arg_syms(&im->b, x->shape + axis, x->rank - axis);
    if (node->rule->op == OP_LAYER_NORM) {
        import_give(im, node, 0,
                    import_op(im, OP_LAYER_NORM, arg_tensor(x), shape, arg_tensor(weight),
                              arg_tensor(bias), arg_float(eps)));
    } else {
        import_give(
            im, node, 0,
            import_op(im, OP_RMS_NORM, arg_tensor(x), shape, arg_tensor(weight), arg_float(eps)));
    }
}

/* The cosines or sines of the pairs, [batch, length, pairs] or by position [positions, pairs], as
 * [batch, 1, length, 2 pairs]. */
static Value *read_table(Import *im, const OnnxNode *node, uint32_t i, Value *positions) {
    Builder *b = &im->b;
    Value *table = import_tensor(im, node, i);
    if (!import_ok(im)) return table;
    if (table->rank != (positions ? 2 : 3) || (positions && positions->rank != 2)) {
        import_bad(im,
                   "expected cos and sin of rank 3, or of rank 2 and position ids of rank 2, found "
                   "input %u of rank %u",
                   i, table->rank);
        return table;
    }
    if (positions) table = build_embedding(b, table, positions);
    return build_unsqueeze(b, build_spread(b, table, import_int(im, node, "interleaved", 0) != 0),
                           1);
}

void read_rotary(Import *im, const OnnxNode *node) {
    Builder *b = &im->b;
    Value *x = import_tensor(im, node, 0), *positions = import_tensor(im, node, 3);
    Value *cosine = read_table(im, node, 1, positions), *sine = read_table(im, node, 2, positions);
    int64_t heads = import_int(im, node, "num_heads", 0);
    int64_t width = import_int(im, node, "rotary_embedding_dim", 0);
    if (!import_ok(im)) return;
    const Value *whole = x;
    if (x->rank == 3 && heads > 0) {
        const Sym *shape[] = {x->shape[0], x->shape[1], build_const(b, heads), build_const(b, -1)};
        x = build_transpose(b, build_view(b, x, shape, 4), 1, 2);
    }
    if (x->rank != 4) {
        import_bad(im, "expected a tensor of rank 4, or of rank 3 and num_heads, found rank %u",
                   x->rank);
        return;
    }
    const Sym *size = x->shape[3];
    if (width == 0 && sym_is_const(size)) width = size->value;
    if (!sym_is_value(cosine->shape[3], width) || !sym_is_value(sine->shape[3], width) ||
        !sym_is_const(size) || width > size->value) {
        import_bad(im, "cos and sin do not have half as many columns as features are rotated");
        return;
    }
    x = build_rotary(b, x, cosine, sine, import_int(im, node, "interleaved", 0) != 0);
    if (whole->rank == 3) x = build_view(b, build_transpose(b, x, 1, 2), whole->shape, 3);
    import_give(im, node, 0, x);
}

void read_softmax(Import *im, const OnnxNode *node) {
    Value *x = import_tensor(im, node, 0);
    uint32_t axis;
    if (!import_ok(im) || !import_axis(im, import_int(im, node, "axis", -1), x->rank, &axis))
        return;
    import_give(im, node, 0, build_softmax(&im->b, x, (int)axis));
}

/* ---- reduction ---- */

void read_reduce(Import *im, const OnnxNode *node) {
    Value *x = import_tensor(im, node, 0);
    int64_t dims[FERRY_MAX_RANK];
    uint32_t count = 0;
    unsigned axes;
    bool given, keep = import_int(im, node, "keepdims", 1) != 0;
    bool keep_all = import_int(im, node, "noop_with_empty_axes", 0) != 0;
    if (!import_ok(im) || !import_axes(im, node, 1, x->rank, &axes, &given)) return;
    if (x->rank == 0 || (!given && keep_all)) {
        import_give(im, node, 0, x);
        return;
    }
    if (node->rule->op == OP_MEAN && !ferry_dtype_is_float(x->dtype)) {
        import_unsupported(im, "the mean of %s", ferry_dtype_name(x->dtype));
    }
    for (uint32_t d = 0; d < x->rank; d++) {
        if (!given || axes & 1u << d) dims[count++] = d;
    }
    Value *reduced =
        import_op(im, node->rule->op, arg_tensor(x), arg_ints(&im->b, dims, count), arg_bool(keep));
    import_give(im, node, 0, build_to(&im->b, reduced, x->dtype));
}

/* The product of numbers that are known; NULL when they are not. */
static const Known *product_known(Import *im, const Known *x, bool keep) {
    if (!known_is_integer(x)) return NULL;
    const Known *all = known_one(im, x->dtype, build_const(&im->b, 1));
    for (uint32_t i = 0; i < x->count && all; i++) {
        all = known_binary(im, sym_mul, all, known_slice(im, x, i, 1));
    }
    return all ? known_like(im, all, x->is_scalar || !keep) : NULL;
}

void read_product(Import *im, const OnnxNode *node) {
    const Known *known = import_known(node, 0);
    bool given, keep = import_int(im, node, "keepdims", 1) != 0;
    bool keep_all = import_int(im, node, "noop_with_empty_axes", 0) != 0;
    unsigned axes;
    uint32_t rank = known ? !known->is_scalar : import_tensor(im, node, 0)->rank;
    if (!import_ok(im) || !import_axes(im, node, 1, rank, &axes, &given)) return;
    if (!given && keep_all) {
        import_give_same(node, import_input(node, 0));
        return;
    }
    known = product_known(im, known, keep);
    if (known) {
        import_give_known(im, node, 0, known);
        return;
    }
    Value *x = import_tensor(im, node, 0), *product = x;
    for (uint32_t d = rank; d-- > 0;) {
        if (given && !(axes & 1u << d)) continue;
        product = build_reduce(&im->b, OP_PROD, product, (int)d, keep);
    }
    import_give(im, node, 0, build_to(&im->b, product, x->dtype));
}

void read_argmax(Import *im, const OnnxNode *node) {
    Value *x = import_tensor(im, node, 0);
    bool keep = import_int(im, node, "keepdims", 1) != 0;
    uint32_t axis;
    if (!import_require_int(im, node, "select_last_index", 0)) return;
    if (!import_ok(im) || !import_axis(im, import_int(im, node, "axis", 0), x->rank, &axis)) return;
    import_give(im, node, 0, build_reduce(&im->b, OP_ARGMAX, x, (int)axis, keep));
}

void read_cumsum(Import *im, const OnnxNode *node) {
    Value *x = import_tensor(im, node, 0);
    int64_t axis[FERRY_MAX_RANK];
    uint32_t count, dim;
    if (!import_require_int(im, node, "exclusive", 0)) return;
    if (!import_require_int(im, node, "reverse", 0)) return;
    if (!import_constants(im, node, 1, axis, &count)) return;
    if (count != 1) import_bad(im, "expected one axis, found %u", count);
    if (!import_ok(im) || !import_axis(im, axis[0], x->rank, &dim)) return;
    import_give(im, node, 0, build_to(&im->b, build_cumsum(&im->b, x, (int)dim), x->dtype));
}
