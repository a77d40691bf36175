/* Decompositions of operations on images. */
#include "pass/decompose.h"

/* A size as a float32 number, less `minus`. */
static Value *size_number(Builder *b, const Sym *size, int64_t minus) {
    const Sym *rest = sym_sub(&b->program->symbols, size, build_const(b, minus));
    return build_scalar_tensor(b, rest, FERRY_F32);
}

/* float32 [out, in]: how much each input element counts for each output element. The filter is a
 * triangle around the place that the output element comes from; it widens as the image shrinks. */
static Value *triangle_weights(Builder *b, const Sym *in, const Sym *out, const Arg *scale,
                               bool align_corners) {
    const Sym *none = build_const(b, 0);
    const int64_t corner = align_corners;
    Value *step =
        scale->kind == VALUE_FLOAT && !align_corners
            ? build_full(b, NULL, 0, 1 / scale->number, FERRY_F32)
            : build_binary(b, OP_DIV, size_number(b, in, corner), size_number(b, out, corner));
    Value *width = build_clamp(b, step, arg_int(b, 1), arg_none());
    Value *places = build_unsqueeze(b, build_arange(b, none, out, FERRY_F32), 1);
    Value *elements = build_unsqueeze(b, build_arange(b, none, in, FERRY_F32), 0);
    Value *centers = build_mul(b, build_scalar(b, OP_ADD_SCALAR, places, 0.5), step);
    Value *distance = build_sub(b, build_scalar(b, OP_ADD_SCALAR, elements, 0.5), centers);
    distance = build_unary(b, OP_ABS, build_binary(b, OP_DIV, distance, width));
    Value *weights = build_scalar(b, OP_ADD_SCALAR, build_unary(b, OP_NEG, distance), 1);
    weights = build_unary(b, OP_RELU, weights);
    return build_binary(b, OP_DIV, weights, build_reduce(b, OP_SUM, weights, 1, true));
}

/* Both dimensions are resized by products. */
Value *decompose_bilinear_aa(Builder *b, const Node *node) {
    Value *x = node->args[0].tensor;
    const Sym *const *size = node->args[1].integers.items;
    bool align_corners = node->args[2].boolean;
    Value *rows = triangle_weights(b, x->shape[2], size[0], &node->args[3], align_corners);
    Value *columns = triangle_weights(b, x->shape[3], size[1], &node->args[4], align_corners);
    columns = build_transpose(b, build_to(b, columns, x->dtype), 0, 1);
    return build_matmul(b, build_to(b, rows, x->dtype), build_matmul(b, x, columns));
}
