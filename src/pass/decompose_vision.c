/* Decompositions of operations on images: resizing by products with weights that depend on sizes only, and
 * convolution over three dimensions as a sum over one of them. */
#include "pass/decompose.h"

#include <string.h>

/* ---- resizing ---- */

/* A size as a float32 number, less `minus`. */
static Value *size_number(Builder *b, const Sym *size, int64_t minus) {
    const Sym *rest = sym_sub(&b->program->symbols, size, build_const(b, minus));
    return build_scalar_tensor(b, rest, FERRY_F32);
}

static Value *constant(Builder *b, double number) {
    return build_full(b, NULL, 0, number, FERRY_F32);
}

/* How far apart in the input two neighbours of the output are. */
static Value *resize_step(Builder *b, const Sym *in, const Sym *out, const Arg *scale,
                          bool align_corners) {
    if (align_corners && sym_is_value(out, 1)) return constant(b, 0);
    if (scale->kind == VALUE_FLOAT && !align_corners) return constant(b, 1 / scale->number);
    return build_binary(b, OP_DIV, size_number(b, in, align_corners),
                        size_number(b, out, align_corners));
}

/* float32 [out, 1] and [1, in]: 0, 1, 2, ... */
static Value *places(Builder *b, const Sym *out) {
    return build_unsqueeze(b, build_arange(b, build_const(b, 0), out, FERRY_F32), 1);
}

static Value *elements(Builder *b, const Sym *in) {
    return build_unsqueeze(b, build_arange(b, build_const(b, 0), in, FERRY_F32), 0);
}

/* A triangle of height and half width 1. */
static Value *triangle(Builder *b, Value *distance) {
    Value *falling = build_scalar(b, OP_ADD_SCALAR, build_unary(b, OP_NEG, distance), 1);
    return build_unary(b, OP_RELU, falling);
}

/* ((f x + g) x + h) x + i */
static Value *polynomial(Builder *b, Value *x, const double *factors) {
    Value *sum =
        build_scalar(b, OP_ADD_SCALAR, build_scalar(b, OP_MUL_SCALAR, x, factors[0]), factors[1]);
    for (int i = 2; i < 4; i++) {
        sum = build_scalar(b, OP_ADD_SCALAR, build_mul(b, sum, x), factors[i]);
    }
    return sum;
}

/* Keys' cubic of half width 2. */
static Value *cubic(Builder *b, Value *distance, double a) {
    Value *near = polynomial(b, distance, (const double[]){a + 2, -(a + 3), 0, 1});
    Value *far = polynomial(b, distance, (const double[]){a, -5 * a, 8 * a, -4 * a});
    Value *is_near = build_scalar(b, OP_LT_SCALAR, distance, 1);
    Value *is_far = build_scalar(b, OP_LT_SCALAR, distance, 2);
    return build_where(b, is_near, near, build_where(b, is_far, far, constant(b, 0)));
}

/* float32 [out, in]: how much each input element counts for each output element. The filter is centered on
 * the place that the output element comes from; it widens as the image shrinks. */
static Value *antialiased(Builder *b, const Sym *in, const Sym *out, const Arg *scale,
                          bool align_corners, bool is_cubic) {
    Value *step = resize_step(b, in, out, scale, align_corners);
    Value *width = build_clamp(b, step, arg_int(b, 1), arg_none());
    Value *centers = build_mul(b, build_scalar(b, OP_ADD_SCALAR, places(b, out), 0.5), step);
    Value *distance = build_sub(b, build_scalar(b, OP_ADD_SCALAR, elements(b, in), 0.5), centers);
    distance = build_unary(b, OP_ABS, build_binary(b, OP_DIV, distance, width));
    Value *weights = is_cubic ? cubic(b, distance, -0.5) : triangle(b, distance);
    return build_binary(b, OP_DIV, weights, build_reduce(b, OP_SUM, weights, 1, true));
}

/* Where in the input an output element comes from, float32 [out, 1]. */
static Value *source_places(Builder *b, const Sym *in, const Sym *out, const Arg *scale,
                            bool align_corners) {
    Value *step = resize_step(b, in, out, scale, align_corners);
    if (align_corners) return build_mul(b, places(b, out), step);
    Value *centers = build_mul(b, build_scalar(b, OP_ADD_SCALAR, places(b, out), 0.5), step);
    return build_scalar(b, OP_ADD_SCALAR, centers, -0.5);
}

/* The same for the four elements around the place; beyond the border the last element stands again. */
static Value *interpolated(Builder *b, const Sym *in, const Sym *out, const Arg *scale,
                           bool align_corners, bool is_cubic) {
    (void)is_cubic;
    Value *place = source_places(b, in, out, scale, align_corners), *weights = NULL;
    Value *first = build_unary(b, OP_FLOOR, place);
    const Sym *last = sym_sub(&b->program->symbols, in, build_const(b, 1));
    for (int tap = -1; tap <= 2; tap++) {
        Value *element = build_scalar(b, OP_ADD_SCALAR, first, tap);
        Value *weight = cubic(b, build_unary(b, OP_ABS, build_sub(b, place, element)), -0.75);
        Value *inside = build_clamp(b, element, arg_int(b, 0), arg_sym(last));
        Value *hit = build_binary(b, OP_EQ, inside, elements(b, in));
        weight = build_where(b, hit, weight, constant(b, 0));
        weights = weights ? build_add(b, weights, weight) : weight;
    }
    return weights;
}

typedef Value *(*ResizeWeights)(Builder *b, const Sym *in, const Sym *out, const Arg *scale,
                                bool align_corners, bool is_cubic);

/* Both dimensions are resized by products. */
static Value *resize(Builder *b, const Node *node, ResizeWeights weights, bool is_cubic) {
    Value *x = node->args[0].tensor;
    const Sym *const *size = node->args[1].integers.items;
    bool corners = node->args[2].boolean;
    Value *rows = weights(b, x->shape[2], size[0], &node->args[3], corners, is_cubic);
    Value *columns = weights(b, x->shape[3], size[1], &node->args[4], corners, is_cubic);
    columns = build_transpose(b, build_to(b, columns, x->dtype), 0, 1);
    return build_matmul(b, build_to(b, rows, x->dtype), build_matmul(b, x, columns));
}

Value *decompose_bilinear_aa(Builder *b, const Node *node) {
    return resize(b, node, antialiased, false);
}

Value *decompose_bicubic_aa(Builder *b, const Node *node) {
    return resize(b, node, antialiased, true);
}

Value *decompose_bicubic(Builder *b, const Node *node) {
    return resize(b, node, interpolated, true);
}

/* The element whose square the middle of the output element lies in. */
Value *decompose_nearest_exact(Builder *b, const Node *node) {
    Value *x = node->args[0].tensor;
    SymTable *symbols = &b->program->symbols;
    for (uint32_t i = 0; i < 2; i++) {
        const Sym *in = x->shape[2 + i], *out = node->args[1].integers.items[i];
        Value *step = resize_step(b, in, out, &node->args[2 + i], false);
        Value *middle = build_arange(b, build_const(b, 0), out, FERRY_F32);
        middle = build_mul(b, build_scalar(b, OP_ADD_SCALAR, middle, 0.5), step);
        Value *index = build_to(b, build_unary(b, OP_FLOOR, middle), FERRY_I64);
        const Sym *last = sym_sub(symbols, in, build_const(b, 1));
        index = build_clamp(b, index, arg_none(), arg_sym(last));
        const Arg args[] = {arg_tensor(x), arg_int(b, 2 + i), arg_tensor(index)};
        x = build_op(b, OP_INDEX_SELECT, args, 3);
    }
    return x;
}

/* ---- convolution ---- */

/* The depths that meet the kernel's depth `k`, each an image of its own: [batch * depths, c, h, w]. */
static Value *depths(Builder *b, Value *x, const Sym *count, int64_t start, int64_t stride) {
    SymTable *symbols = &b->program->symbols;
    const Sym *first = build_const(b, start);
    const Sym *span =
        sym_mul(symbols, sym_sub(symbols, count, build_const(b, 1)), build_const(b, stride));
    const Sym *end = sym_add(symbols, sym_add(symbols, first, span), build_const(b, 1));
    const Arg args[] = {arg_tensor(x), arg_int(b, 2), arg_sym(first), arg_sym(end),
                        arg_int(b, stride)};
    Value *part = build_op(b, OP_SLICE, args, 5);
    part = build_permute(b, part, (const int64_t[]){0, 2, 1, 3, 4});
    if (!build_ok(b)) return part;
    const Sym *shape[] = {sym_mul(symbols, part->shape[0], count), part->shape[2], part->shape[3],
                          part->shape[4]};
    return build_view(b, part, shape, 4);
}

/* A sum of convolutions over two dimensions, one for each depth of the kernel. */
static Value *convolution_of_depths(Builder *b, const Node *node) {
    Value *x = node->args[0].tensor, *weight = node->args[1].tensor, *sum = NULL;
    const Sym *const *lists[4];
    for (uint32_t i = 0; i < 4; i++) lists[i] = node->args[i < 3 ? 3 + i : 7].integers.items;
    if (node->args[6].boolean || !sym_is_const(weight->shape[2])) return NULL;
    int64_t stride = lists[0][0]->value, pad = lists[1][0]->value, dilation = lists[2][0]->value;
    if (pad) {
        const int64_t pads[] = {0, 0, 0, 0, pad, pad};
        const Arg args[] = {arg_tensor(x), arg_ints(b, pads, 6), arg_string("constant"),
                            arg_float(0)};
        x = build_op(b, OP_PAD, args, 4);
    }
    const Value *out = node->outputs[0];
    for (int64_t k = 0; k < weight->shape[2]->value && build_ok(b); k++) {
        Value *images = depths(b, x, out->shape[2], k * dilation, stride);
        bool last = k + 1 == weight->shape[2]->value;
        Arg args[] = {arg_tensor(images),
                      arg_tensor(decompose_select(b, weight, 2, k)),
                      last ? node->args[2] : arg_none(),
                      arg_syms(b, lists[0] + 1, 2),
                      arg_syms(b, lists[1] + 1, 2),
                      arg_syms(b, lists[2] + 1, 2),
                      arg_bool(false),
                      arg_syms(b, lists[3] + 1, 2),
                      node->args[8]};
        Value *part = build_op(b, OP_CONVOLUTION, args, 9);
        sum = sum ? build_add(b, sum, part) : part;
    }
    const Sym *apart[] = {out->shape[0], out->shape[2], out->shape[1], out->shape[3],
                          out->shape[4]};
    return build_permute(b, build_view(b, sum, apart, 5), (const int64_t[]){0, 2, 1, 3, 4});
}

/* The list with a number in front. */
static Arg longer(Builder *b, const Arg *list, int64_t first) {
    const Sym *sizes[] = {build_const(b, first), list->integers.items[0]};
    return arg_syms(b, sizes, 2);
}

/* A row is an image of height 1. */
static Value *convolution_of_rows(Builder *b, const Node *node) {
    Value *weight = node->args[1].tensor;
    const Recipe *fixed = value_fixed(weight);
    const Recipe *recipe = fixed ? recipe_unsqueeze(&b->program->arena, fixed, 2) : NULL;
    Value *filter = recipe ? program_weight(b->program, weight->kind, weight->name, recipe)
                           : build_unsqueeze(b, weight, 2);
    const Arg args[] = {arg_tensor(build_unsqueeze(b, node->args[0].tensor, 2)),
                        arg_tensor(filter),
                        node->args[2],
                        longer(b, &node->args[3], 1),
                        longer(b, &node->args[4], 0),
                        longer(b, &node->args[5], 1),
                        node->args[6],
                        longer(b, &node->args[7], 0),
                        node->args[8]};
    return build_squeeze(b, build_op(b, OP_CONVOLUTION, args, 9), 2);
}

Value *decompose_convolution(Builder *b, const Node *node) {
    uint32_t rank = node->args[1].tensor->rank;
    if (rank == 5) return convolution_of_depths(b, node);
    return rank == 3 ? convolution_of_rows(b, node) : NULL;
}
