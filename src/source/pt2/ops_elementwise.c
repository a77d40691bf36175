/* Translations of operations that work element by element. */
#include "source/pt2/reader.h"

#include <math.h>
#include <string.h>

/* An integer scalar for an integer tensor, else as it is. */
static Value *with_scalar(Call *c, Op op, Value *x, Arg scalar) {
    if (scalar.kind == VALUE_BOOL) scalar = arg_int(c->b, scalar.boolean);
    return build_op(c->b, op, (const Arg[]){arg_tensor(x), scalar}, 2);
}

static Arg negated(Call *c, Arg scalar) {
    if (scalar.kind == VALUE_FLOAT) return arg_float(-scalar.number);
    if (scalar.kind == VALUE_BOOL) return arg_int(c->b, -(int64_t)scalar.boolean);
    if (scalar.kind != VALUE_INT) return scalar; /* missing: the operation refuses it */
    return arg_sym(sym_sub(&c->b->program->symbols, build_const(c->b, 0), scalar.integer));
}

static void translate_unary(Call *c) {
    Value *x = take_tensor(c, "self");
    result_set(c, 0, build_unary(c->b, c->how->op, promote_to(c, x, result_dtype(c))));
}

/* The other operand of add or sub, times alpha. */
static Value *scaled_other(Call *c, Value *other) {
    Arg alpha = take_scalar(c, "alpha");
    bool one = alpha.kind == VALUE_NONE || (alpha.kind == VALUE_FLOAT && alpha.number == 1) ||
               (alpha.kind == VALUE_INT && sym_is_value(alpha.integer, 1));
    return one ? other : with_scalar(c, OP_MUL_SCALAR, other, alpha);
}

/* The dtype in which self and other are combined: that of the result, except in place, where the result
 * has self's and other may be wider. */
static ferry_dtype arithmetic_dtype(Call *c) {
    ferry_dtype result = result_dtype(c);
    if (!ferry_dtype_is_float(result) || !take_is_tensor(c, "other")) return result;
    ferry_dtype both = promote_types(take_tensor(c, "self"), take_tensor(c, "other"), NULL);
    return ferry_dtype_is_float(both) ? both : result;
}

/* add, sub, mul and div of a tensor and a tensor or number. */
static void translate_arithmetic(Call *c) {
    ferry_dtype dtype = arithmetic_dtype(c);
    Value *self = promote_to(c, take_tensor(c, "self"), dtype);
    Op op = c->how->op;
    if (take_is_tensor(c, "other")) {
        Value *other = promote_to(c, take_tensor(c, "other"), dtype);
        if (op == OP_MUL && dtype == FERRY_BOOL) op = OP_AND;
        if (op == OP_ADD && dtype == FERRY_BOOL) op = OP_OR;
        if (op == OP_ADD || op == OP_SUB) other = scaled_other(c, other);
        result_set(c, 0, build_binary(c->b, op, self, other));
        return;
    }
    Arg other = take_scalar(c, "other");
    double alpha = take_float(c, "alpha", 1);
    if (alpha != 1) {
        if (other.kind == VALUE_FLOAT)
            other.number *= alpha;
        else if (other.kind == VALUE_INT)
            other = arg_sym(
                sym_mul(&c->b->program->symbols, other.integer, build_const(c->b, (int64_t)alpha)));
    }
    switch (op) {
    case OP_ADD: result_set(c, 0, with_scalar(c, OP_ADD_SCALAR, self, other)); break;
    case OP_SUB: result_set(c, 0, with_scalar(c, OP_ADD_SCALAR, self, negated(c, other))); break;
    case OP_MUL: result_set(c, 0, with_scalar(c, OP_MUL_SCALAR, self, other)); break;
    default: result_set(c, 0, with_scalar(c, OP_DIV_SCALAR, self, other)); break;
    }
}

/* other - alpha * self */
static void translate_rsub(Call *c) {
    ferry_dtype dtype = result_dtype(c);
    Value *self = scaled_other(c, promote_to(c, take_tensor(c, "self"), dtype));
    if (take_is_tensor(c, "other")) {
        Value *other = promote_to(c, take_tensor(c, "other"), dtype);
        result_set(c, 0, build_sub(c->b, other, self));
        return;
    }
    Value *negative = build_unary(c->b, OP_NEG, self);
    result_set(c, 0, with_scalar(c, OP_ADD_SCALAR, negative, take_scalar(c, "other")));
}

static const struct {
    Op tensor, scalar;
} scalar_forms[] = {
    {OP_EQ, OP_EQ_SCALAR}, {OP_NE, OP_NE_SCALAR}, {OP_LT, OP_LT_SCALAR},
    {OP_LE, OP_LE_SCALAR}, {OP_GT, OP_GT_SCALAR}, {OP_GE, OP_GE_SCALAR},
};

static void translate_comparison(Call *c) {
    Value *self = take_tensor(c, "self");
    if (take_is_tensor(c, "other")) {
        Value *other = take_tensor(c, "other");
        ferry_dtype dtype = promote_types(self, other, NULL);
        result_set(c, 0,
                   build_binary(c->b, c->how->op, promote_to(c, self, dtype),
                                promote_to(c, other, dtype)));
        return;
    }
    Arg other = take_scalar(c, "other");
    self = promote_to(c, self, promote_types(self, NULL, &other));
    if (self->dtype == FERRY_BOOL) self = promote_to(c, self, FERRY_I64);
    for (size_t i = 0; i < sizeof scalar_forms / sizeof *scalar_forms; i++) {
        if (scalar_forms[i].tensor != c->how->op) continue;
        result_set(c, 0, with_scalar(c, scalar_forms[i].scalar, self, other));
    }
}

static void translate_bitwise(Call *c) {
    ferry_dtype dtype = result_dtype(c);
    Value *self = promote_to(c, take_tensor(c, "self"), dtype);
    Value *other = promote_to(c, take_tensor(c, "other"), dtype);
    result_set(c, 0, build_binary(c->b, c->how->op, self, other));
}

static void translate_logical(Call *c) {
    Value *self = promote_to(c, take_tensor(c, "self"), FERRY_BOOL);
    if (c->how->op == OP_NOT)
        result_set(c, 0, build_unary(c->b, OP_NOT, self));
    else
        result_set(c, 0,
                   build_binary(c->b, c->how->op, self,
                                promote_to(c, take_tensor(c, "other"), FERRY_BOOL)));
}

static void translate_extremum(Call *c) {
    ferry_dtype dtype = result_dtype(c);
    result_set(c, 0,
               build_binary(c->b, c->how->op, promote_to(c, take_tensor(c, "self"), dtype),
                            promote_to(c, take_tensor(c, "other"), dtype)));
}

/* pow with a number as exponent: square roots and the like by name, the rest by Pow. */
static void translate_pow(Call *c) {
    ferry_dtype dtype = result_dtype(c);
    Value *self = promote_to(c, take_tensor(c, "self"), dtype);
    Arg exponent = take_scalar(c, "exponent");
    double number = exponent.kind == VALUE_FLOAT ? exponent.number : take_float(c, "exponent", 1);
    if (number == 0.5)
        result_set(c, 0, build_unary(c->b, OP_SQRT, self));
    else if (number == -0.5)
        result_set(c, 0, build_unary(c->b, OP_RSQRT, self));
    else if (number == -1 && ferry_dtype_is_float(dtype))
        result_set(c, 0, build_unary(c->b, OP_RECIPROCAL, self));
    else
        result_set(c, 0,
                   build_op(c->b, OP_POW_SCALAR, (const Arg[]){arg_tensor(self), exponent}, 2));
}

static void translate_scalar_pow(Call *c) {
    Value *exponent = promote_to(c, take_tensor(c, "exponent"), result_dtype(c));
    result_set(c, 0,
               build_op(c->b, OP_SCALAR_POW,
                        (const Arg[]){take_scalar(c, "self"), arg_tensor(exponent)}, 2));
}

static void translate_clamp(Call *c) {
    Value *self = promote_to(c, take_tensor(c, "self"), result_dtype(c));
    Arg low = take_scalar(c, "min"), high = take_scalar(c, "max");
    result_set(c, 0, build_clamp(c->b, self, low, high));
}

/* Bounds that are tensors. */
static void translate_clamp_tensors(Call *c) {
    ferry_dtype dtype = result_dtype(c);
    Value *result = promote_to(c, take_tensor(c, "self"), dtype);
    Value *low = take_optional_tensor(c, "min"), *high = take_optional_tensor(c, "max");
    if (low) result = build_binary(c->b, OP_MAXIMUM, result, promote_to(c, low, dtype));
    if (high) result = build_binary(c->b, OP_MINIMUM, result, promote_to(c, high, dtype));
    result_set(c, 0, result);
}

/* hardtanh, relu6: clamp between two numbers. */
static void translate_hardtanh(Call *c) {
    Arg low = arg_float(take_float(c, "min_val", -1)),
        high = arg_float(take_float(c, "max_val", 1));
    result_set(c, 0, build_clamp(c->b, take_self(c), low, high));
}

static void translate_relu6(Call *c) {
    result_set(c, 0, build_clamp(c->b, take_self(c), arg_float(0), arg_float(6)));
}

/* x * clamp(x / 6 + 0.5, 0, 1) */
static void translate_hardswish(Call *c) {
    Value *x = take_tensor(c, "self");
    const Arg sum[] = {arg_tensor(x), arg_float(3)};
    Value *clamped =
        build_clamp(c->b, build_op(c->b, OP_ADD_SCALAR, sum, 2), arg_float(0), arg_float(6));
    Value *gate = build_scalar(c->b, OP_DIV_SCALAR, clamped, 6);
    result_set(c, 0, build_mul(c->b, x, gate));
}

static void translate_gelu(Call *c) {
    bool tanh_form = strcmp(take_string(c, "approximate", "none"), "tanh") == 0;
    result_set(c, 0, build_gelu(c->b, take_tensor(c, "self"), tanh_form));
}

static void translate_softplus(Call *c) {
    const Arg args[] = {arg_tensor(take_tensor(c, "self")), arg_float(take_float(c, "beta", 1)),
                        arg_float(take_float(c, "threshold", 20))};
    result_set(c, 0, build_op(c->b, OP_SOFTPLUS, args, 3));
}

static void translate_leaky_relu(Call *c) {
    const Arg args[] = {arg_tensor(take_tensor(c, "self")),
                        arg_float(take_float(c, "negative_slope", 0.01))};
    result_set(c, 0, build_op(c->b, OP_LEAKY_RELU, args, 2));
}

/* scale * elu(x, alpha), where neither scale is given the common form */
static void translate_elu(Call *c) {
    const Arg args[] = {arg_tensor(take_tensor(c, "self")), arg_float(take_float(c, "alpha", 1))};
    if (take_float(c, "scale", 1) != 1 || take_float(c, "input_scale", 1) != 1) {
        take_fail(c, FERRY_UNSUPPORTED, "only elu with scale and input_scale 1 is supported");
        return;
    }
    result_set(c, 0, build_op(c->b, OP_ELU, args, 2));
}

/* ---- choosing ---- */

/* A number as a 0-d tensor. */
static Value *number(Call *c, Arg scalar, ferry_dtype dtype) {
    if (scalar.kind == VALUE_INT) return build_scalar_tensor(c->b, scalar.integer, dtype);
    return build_full(c->b, NULL, 0, scalar.kind == VALUE_BOOL ? scalar.boolean : scalar.number,
                      dtype);
}

static Value *operand(Call *c, const char *name, ferry_dtype dtype) {
    if (take_is_tensor(c, name)) return promote_to(c, take_tensor(c, name), dtype);
    return number(c, take_scalar(c, name), dtype);
}

static void translate_where(Call *c) {
    ferry_dtype dtype = result_dtype(c);
    Value *condition = promote_to(c, take_tensor(c, "condition"), FERRY_BOOL);
    result_set(c, 0,
               build_where(c->b, condition, operand(c, "self", dtype), operand(c, "other", dtype)));
}

static void translate_masked_fill(Call *c) {
    Value *self = take_tensor(c, "self");
    Value *mask = promote_to(c, take_tensor(c, "mask"), FERRY_BOOL);
    result_set(c, 0, build_where(c->b, mask, operand(c, "value", self->dtype), self));
}

/* ---- conversion ---- */

static void translate_to(Call *c) {
    result_set(c, 0, promote_to(c, take_tensor(c, "self"), result_dtype(c)));
}

static void translate_pass(Call *c) {
    Value *self = take_optional_tensor(c, "self");
    result_set(c, 0, self ? self : take_tensor(c, "input"));
}

/* copy_(self, src): src in the shape and dtype of self. */
static void translate_copy(Call *c) {
    Value *self = take_tensor(c, "self"),
          *source = promote_to(c, take_tensor(c, "src"), self->dtype);
    if (!build_ok(c->b)) return;
    if (source->rank == self->rank && shape_equal(self->rank, source->shape, self->shape))
        result_set(c, 0, source);
    else
        result_set(c, 0, build_expand(c->b, source, self->shape, self->rank));
}

/* fill and zero. */
static void translate_fill(Call *c) {
    Value *self = take_tensor(c, "self"), *value = operand(c, "value", self->dtype);
    result_set(c, 0, build_expand(c->b, value, self->shape, self->rank));
}

static Value *write_same(Call *c, Value *base, Value *updated, uint32_t index) {
    (void)c, (void)base, (void)index;
    return updated;
}

#define UNARY(name, op)                                                                            \
    { "aten." name ".default", translate_unary, op, ALIAS_NEVER, NULL }
#define BINARY(name, op)                                                                           \
    {"aten." name ".Tensor", translate_arithmetic, op, ALIAS_NEVER, NULL}, {                       \
        "aten." name ".Scalar", translate_arithmetic, op, ALIAS_NEVER, NULL                        \
    }
#define COMPARISON(name, op)                                                                       \
    {"aten." name ".Tensor", translate_comparison, op, ALIAS_NEVER, NULL}, {                       \
        "aten." name ".Scalar", translate_comparison, op, ALIAS_NEVER, NULL                        \
    }
#define SIMPLE(target, function)                                                                   \
    { target, function, OP_COUNT, ALIAS_NEVER, NULL }
#define SAME(target)                                                                               \
    { target, translate_pass, OP_COUNT, ALIAS_ALWAYS, write_same }
#define CONVERSION(target)                                                                         \
    { target, translate_to, OP_COUNT, ALIAS_SAME_VALUE, write_same }

const Translation translate_elementwise[] = {
    BINARY("add", OP_ADD),
    BINARY("sub", OP_SUB),
    BINARY("mul", OP_MUL),
    BINARY("multiply", OP_MUL),
    BINARY("div", OP_DIV),
    SIMPLE("aten.rsub.Scalar", translate_rsub),
    SIMPLE("aten.rsub.Tensor", translate_rsub),
    COMPARISON("eq", OP_EQ),
    COMPARISON("ne", OP_NE),
    COMPARISON("lt", OP_LT),
    COMPARISON("le", OP_LE),
    COMPARISON("gt", OP_GT),
    COMPARISON("ge", OP_GE),
    {"aten.bitwise_and.Tensor", translate_bitwise, OP_AND, ALIAS_NEVER, NULL},
    {"aten.bitwise_or.Tensor", translate_bitwise, OP_OR, ALIAS_NEVER, NULL},
    {"aten.__and__.Tensor", translate_bitwise, OP_AND, ALIAS_NEVER, NULL},
    {"aten.__or__.Tensor", translate_bitwise, OP_OR, ALIAS_NEVER, NULL},
    {"aten.logical_and.default", translate_logical, OP_AND, ALIAS_NEVER, NULL},
    {"aten.logical_or.default", translate_logical, OP_OR, ALIAS_NEVER, NULL},
    {"aten.logical_not.default", translate_logical, OP_NOT, ALIAS_NEVER, NULL},
    {"aten.maximum.default", translate_extremum, OP_MAXIMUM, ALIAS_NEVER, NULL},
    {"aten.minimum.default", translate_extremum, OP_MINIMUM, ALIAS_NEVER, NULL},
    {"aten.max.other", translate_extremum, OP_MAXIMUM, ALIAS_NEVER, NULL},
    {"aten.min.other", translate_extremum, OP_MINIMUM, ALIAS_NEVER, NULL},
    UNARY("bitwise_not", OP_NOT),
    UNARY("neg", OP_NEG),
    UNARY("abs", OP_ABS),
    UNARY("exp", OP_EXP),
    UNARY("log", OP_LOG),
    UNARY("sqrt", OP_SQRT),
    UNARY("rsqrt", OP_RSQRT),
    UNARY("reciprocal", OP_RECIPROCAL),
    UNARY("cos", OP_COS),
    UNARY("sin", OP_SIN),
    UNARY("tanh", OP_TANH),
    UNARY("sigmoid", OP_SIGMOID),
    UNARY("erf", OP_ERF),
    UNARY("relu", OP_RELU),
    UNARY("silu", OP_SILU),
    SIMPLE("aten.gelu.default", translate_gelu),
    SIMPLE("aten.softplus.default", translate_softplus),
    SIMPLE("aten.leaky_relu.default", translate_leaky_relu),
    SIMPLE("aten.elu.default", translate_elu),
    SIMPLE("aten.hardtanh.default", translate_hardtanh),
    SIMPLE("aten.relu6.default", translate_relu6),
    SIMPLE("aten.hardswish.default", translate_hardswish),
    SIMPLE("aten.pow.Tensor_Scalar", translate_pow),
    SIMPLE("aten.pow.Scalar", translate_scalar_pow),
    SIMPLE("aten.clamp.default", translate_clamp),
    SIMPLE("aten.clip.default", translate_clamp),
    SIMPLE("aten.clamp.Tensor", translate_clamp_tensors),
    SIMPLE("aten.clip.Tensor", translate_clamp_tensors),
    SIMPLE("aten.clamp_min.Tensor", translate_clamp_tensors),
    SIMPLE("aten.clamp_max.Tensor", translate_clamp_tensors),
    SIMPLE("aten.clamp_min.default", translate_clamp),
    SIMPLE("aten.clamp_max.default", translate_clamp),
    SIMPLE("aten.where.self", translate_where),
    SIMPLE("aten.where.ScalarOther", translate_where),
    SIMPLE("aten.where.ScalarSelf", translate_where),
    SIMPLE("aten.where.Scalar", translate_where),
    SIMPLE("aten.masked_fill.Scalar", translate_masked_fill),
    SIMPLE("aten.masked_fill.Tensor", translate_masked_fill),
    SIMPLE("aten.copy.default", translate_copy),
    SIMPLE("aten.fill.Tensor", translate_fill),
    SIMPLE("aten.fill.Scalar", translate_fill),
    SIMPLE("aten.zero.default", translate_fill),
    CONVERSION("aten.to.dtype"),
    CONVERSION("aten.to.device"),
    CONVERSION("aten.to.dtype_layout"),
    CONVERSION("aten.to.other"),
    CONVERSION("aten.type_as.default"),
    SIMPLE("aten._to_copy.default", translate_to),
    SIMPLE("aten.clone.default", translate_pass),
    SIMPLE("aten.lift_fresh_copy.default", translate_pass),
    SAME("aten.dropout.default"),
    SAME("aten.alpha_dropout.default"),
    SAME("aten.feature_dropout.default"),
    SAME("aten.detach.default"),
    SAME("aten.alias.default"),
    SAME("aten.lift_fresh.default"),
    {"aten.contiguous.default", translate_pass, OP_COUNT, ALIAS_SAME_VALUE, write_same},
    {0},
};
