/* Translations of operations on complex numbers, which are tensors with a last dimension of 2 here, for
 * the real and the imaginary part. Only what is in this table may touch such a tensor. */
#include "source/pt2/reader.h"

#include <string.h>

static Value *part(Call *c, Value *x, int64_t i) {
    return build_select(c->b, x, -1, i);
}

static Value *join(Call *c, Value *real, Value *imaginary) {
    Value *parts[] = {build_unsqueeze(c->b, real, -1), build_unsqueeze(c->b, imaginary, -1)};
    return build_cat(c->b, parts, 2, -1);
}

/* abs (cos angle + i sin angle) */
static void translate_polar(Call *c) {
    Value *size = take_tensor(c, "abs"), *angle = take_tensor(c, "angle");
    result_set(c, 0,
               join(c, build_mul(c->b, size, build_unary(c->b, OP_COS, angle)),
                    build_mul(c->b, size, build_unary(c->b, OP_SIN, angle))));
}

static void translate_complex(Call *c) {
    result_set(c, 0, join(c, take_tensor(c, "real"), take_tensor(c, "imag")));
}

static void translate_pass(Call *c) {
    result_set(c, 0, take_tensor(c, "self"));
}

/* A conversion; a real number becomes one with an imaginary part of 0. */
static void translate_to(Call *c) {
    Value *self = take_tensor(c, "self");
    if (!reader_is_complex(c->r, take_tensor_name(c, "self"))) {
        self = promote_to(c, self, result_dtype(c));
        self = join(c, self, build_scalar(c->b, OP_MUL_SCALAR, self, 0));
    }
    result_set(c, 0, promote_to(c, self, result_dtype(c)));
}

/* The magnitude. */
static void translate_abs(Call *c) {
    Value *self = take_tensor(c, "self");
    Value *squares = build_scalar(c->b, OP_POW_SCALAR, self, 2);
    result_set(c, 0, build_unary(c->b, OP_SQRT, build_reduce(c->b, OP_SUM, squares, -1, false)));
}

static void translate_neg(Call *c) {
    result_set(c, 0, build_unary(c->b, OP_NEG, take_tensor(c, "self")));
}

/* Sums and differences of two complex tensors, part by part. */
static void translate_sum(Call *c) {
    bool both = take_is_tensor(c, "other") &&
                reader_is_complex(c->r, take_tensor_name(c, "other")) &&
                reader_is_complex(c->r, take_tensor_name(c, "self"));
    if (!both || take_float(c, "alpha", 1) != 1) {
        take_fail(c, FERRY_UNSUPPORTED, "a sum of a complex and a real number");
        return;
    }
    result_set(c, 0,
               build_binary(c->b, c->how->op, take_tensor(c, "self"), take_tensor(c, "other")));
}

static void translate_part(Call *c) {
    result_set(c, 0, part(c, take_tensor(c, "self"), strstr(c->how->target, "imag") != NULL));
}

/* (a + bi)(x + yi) = (ax - by) + (ay + bx)i */
static void translate_mul(Call *c) {
    Value *self = take_tensor(c, "self");
    if (!take_is_tensor(c, "other")) {
        const Arg args[] = {arg_tensor(self), take_scalar(c, "other")};
        result_set(c, 0, build_op(c->b, OP_MUL_SCALAR, args, 2));
        return;
    }
    Value *other = take_tensor(c, "other");
    bool self_real = !reader_is_complex(c->r, take_tensor_name(c, "self"));
    if (self_real || !reader_is_complex(c->r, take_tensor_name(c, "other"))) {
        /* A real factor scales both parts. */
        Value *factor = build_unsqueeze(c->b, self_real ? self : other, -1);
        result_set(c, 0, build_mul(c->b, self_real ? other : self, factor));
        return;
    }
    Value *a = part(c, self, 0), *b = part(c, self, 1), *x = part(c, other, 0),
          *y = part(c, other, 1);
    Value *real = build_sub(c->b, build_mul(c->b, a, x), build_mul(c->b, b, y));
    result_set(c, 0, join(c, real, build_add(c->b, build_mul(c->b, a, y), build_mul(c->b, b, x))));
}

/* Their rank is one less than ours, and the result has one more. */
static void translate_unsqueeze(Call *c) {
    Value *self = take_tensor(c, "self");
    uint32_t dim = take_dim(c, "dim", 0, self->rank);
    result_set(c, 0, build_unsqueeze(c->b, self, (int)dim));
}

static void translate_transpose(Call *c) {
    Value *self = take_tensor(c, "self");
    uint32_t rank = self->rank - 1;
    int first = (int)take_dim(c, "dim0", 0, rank), second = (int)take_dim(c, "dim1", 0, rank);
    result_set(c, 0, build_transpose(c->b, self, first, second));
}

/* view, reshape: the file's type of the result has the shape, with the parts. */
static void translate_view(Call *c) {
    TensorMeta meta = result_meta(c, 0);
    result_set(c, 0, build_view(c->b, take_tensor(c, "self"), meta.sizes, meta.rank));
}

/* Whole slices, and those between two constants of 0 or more. */
static void translate_slice(Call *c) {
    Value *self = take_tensor(c, "self");
    uint32_t dim = take_dim(c, "dim", 0, self->rank - 1);
    const Sym *size = build_dim(c->b, self, (int)dim);
    const Sym *start = take_sym(c, "start", 0), *end = take_sym(c, "end", INT64_MAX);
    if (take_int(c, "step", 1) != 1 || start->lower < 0 || end->lower < 0) {
        take_fail(c, FERRY_UNSUPPORTED, "a complex slice from the end or with a step");
        return;
    }
    if (sym_is_value(end, INT64_MAX)) end = size;
    bool whole = sym_is_value(start, 0) && end == size;
    result_set(c, 0, whole ? self : build_slice(c->b, self, (int)dim, start, end));
}

#define SIMPLE(target, function)                                                                   \
    { target, function, OP_COUNT, ALIAS_NEVER, NULL }
#define READ_ONLY_VIEW(target, function)                                                           \
    { target, function, OP_COUNT, ALIAS_ALWAYS, NULL }

const Translation translate_complexes[] = {
    SIMPLE("aten.polar.default", translate_polar),
    SIMPLE("aten.complex.default", translate_complex),
    READ_ONLY_VIEW("aten.view_as_complex.default", translate_pass),
    READ_ONLY_VIEW("aten.view_as_real.default", translate_pass),
    READ_ONLY_VIEW("aten.real.default", translate_part),
    READ_ONLY_VIEW("aten.imag.default", translate_part),
    SIMPLE("aten.mul.Tensor", translate_mul),
    {"aten.add.Tensor", translate_sum, OP_ADD, ALIAS_NEVER, NULL},
    {"aten.sub.Tensor", translate_sum, OP_SUB, ALIAS_NEVER, NULL},
    SIMPLE("aten.neg.default", translate_neg),
    SIMPLE("aten.abs.default", translate_abs),
    READ_ONLY_VIEW("aten.transpose.int", translate_transpose),
    READ_ONLY_VIEW("aten.view.default", translate_view),
    READ_ONLY_VIEW("aten.reshape.default", translate_view),
    SIMPLE("aten._to_copy.default", translate_to),
    READ_ONLY_VIEW("aten.to.dtype_layout", translate_to),
    READ_ONLY_VIEW("aten.to.dtype", translate_to),
    READ_ONLY_VIEW("aten.to.device", translate_pass),
    READ_ONLY_VIEW("aten.unsqueeze.default", translate_unsqueeze),
    READ_ONLY_VIEW("aten.slice.Tensor", translate_slice),
    SIMPLE("aten.clone.default", translate_pass),
    {0},
};
