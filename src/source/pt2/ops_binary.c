/* Translations of further functions of two operands, and of gates. */
#include "source/pt2/reader.h"

#include <math.h>
#include <string.h>

/* A tensor or number argument as a tensor of this dtype. */
static Value *take_operand(Call *c, const char *name, ferry_dtype dtype) {
    if (take_is_tensor(c, name)) return promote_to(c, take_tensor(c, name), dtype);
    Arg scalar = take_scalar(c, name);
    if (scalar.kind == VALUE_INT) return build_scalar_tensor(c->b, scalar.integer, dtype);
    return build_full(c->b, NULL, 0, scalar.kind == VALUE_BOOL ? scalar.boolean : scalar.number,
                      dtype);
}

static void translate_pair(Call *c) {
    ferry_dtype dtype = result_dtype(c);
    Value *self = take_operand(c, "self", dtype);
    const char *other = take_has(c, "exponent") ? "exponent" : "other";
    result_set(c, 0, build_binary(c->b, c->how->op, self, take_operand(c, other, dtype)));
}

/* x / y rounded towards zero. */
static Value *divide_trunc(Call *c, Value *x, Value *y) {
    Value *rest = build_binary(c->b, OP_FMOD, x, y);
    if (!ferry_dtype_is_float(x->dtype))
        return build_binary(c->b, OP_FLOOR_DIVIDE, build_sub(c->b, x, rest), y);
    Value *quotient = build_binary(c->b, OP_DIV, x, y);
    Value *size = build_unary(c->b, OP_FLOOR, build_unary(c->b, OP_ABS, quotient));
    return build_mul(c->b, build_unary(c->b, OP_SIGN, quotient), size);
}

/* div with a rounding mode. */
static void translate_divide(Call *c) {
    ferry_dtype dtype = result_dtype(c);
    Value *self = take_operand(c, "self", dtype), *other = take_operand(c, "other", dtype);
    const char *mode = take_string(c, "rounding_mode", "");
    if (strcmp(mode, "floor") == 0)
        result_set(c, 0, build_binary(c->b, OP_FLOOR_DIVIDE, self, other));
    else if (strcmp(mode, "trunc") == 0)
        result_set(c, 0, divide_trunc(c, self, other));
    else
        result_set(c, 0, build_binary(c->b, OP_DIV, self, other));
}

/* The angle of (x, y) from the quotient, by quadrant. */
static void translate_atan2(Call *c) {
    ferry_dtype dtype = result_dtype(c);
    Value *y = take_operand(c, "self", dtype), *x = take_operand(c, "other", dtype);
    Value *left = build_scalar(c->b, OP_LT_SCALAR, x, 0);
    Value *below = build_scalar(c->b, OP_LT_SCALAR, y, 0);
    Value *pi = build_full(c->b, NULL, 0, 3.14159265358979324, dtype);
    Value *angle = build_unary(c->b, OP_ATAN, build_binary(c->b, OP_DIV, y, x));
    Value *turn = build_where(c->b, below, build_unary(c->b, OP_NEG, pi), pi);
    Value *zero = build_full(c->b, NULL, 0, 0, dtype);
    angle = build_add(c->b, angle, build_where(c->b, left, turn, zero));
    Value *both = build_binary(c->b, OP_AND, build_scalar(c->b, OP_EQ_SCALAR, x, 0),
                               build_scalar(c->b, OP_EQ_SCALAR, y, 0));
    result_set(c, 0, build_where(c->b, both, zero, angle));
}

/* ---- bits ---- */

/* (a | b) & ~(a & b) */
static Value *exclusive_or(Call *c, Value *a, Value *b) {
    Value *both = build_binary(c->b, OP_AND, a, b);
    return build_binary(c->b, OP_AND, build_binary(c->b, OP_OR, a, b),
                        build_unary(c->b, OP_NOT, both));
}

static void translate_xor(Call *c) {
    bool logical = strstr(c->how->target, "logical") != NULL;
    ferry_dtype dtype = logical ? FERRY_BOOL : result_dtype(c);
    result_set(c, 0,
               exclusive_or(c, take_operand(c, "self", dtype), take_operand(c, "other", dtype)));
}

static void translate_bitwise_scalar(Call *c) {
    ferry_dtype dtype = result_dtype(c);
    result_set(c, 0,
               build_binary(c->b, c->how->op, take_operand(c, "self", dtype),
                            take_operand(c, "other", dtype)));
}

/* Shifts multiply by a power of two, or divide by it towards minus infinity. */
static void translate_shift(Call *c) {
    ferry_dtype dtype = result_dtype(c);
    bool left = strstr(c->how->target, "lshift") || strstr(c->how->target, "left_shift");
    Value *self = take_operand(c, "self", FERRY_I64), *count = take_operand(c, "other", FERRY_I64);
    const Arg power[] = {arg_int(c->b, 2), arg_tensor(count)};
    Value *factor = build_op(c->b, OP_SCALAR_POW, power, 2);
    Value *shifted = build_binary(c->b, left ? OP_MUL : OP_FLOOR_DIVIDE, self, factor);
    result_set(c, 0, promote_to(c, shifted, dtype));
}

/* ---- gates ---- */

/* One half, times the sigmoid of the other, rounded once. */
static void translate_glu(Call *c) {
    Value *self = promote_to_compute(c, take_tensor(c, "self"));
    uint32_t dim = take_dim(c, "dim", -1, self->rank);
    const Sym *size = build_dim(c->b, self, (int)dim);
    const Sym *half = sym_floordiv(&c->b->program->symbols, size, build_const(c->b, 2));
    Value *first = build_slice(c->b, self, (int)dim, build_const(c->b, 0), half);
    Value *second = build_slice(c->b, self, (int)dim, half, size);
    Value *gated = build_mul(c->b, first, build_unary(c->b, OP_SIGMOID, second));
    result_set(c, 0, promote_to(c, gated, result_dtype(c)));
}

/* The weight is of one element or one per channel, dimension 1. */
static void translate_prelu(Call *c) {
    Value *self = take_tensor(c, "self"), *weight = take_tensor(c, "weight");
    if (!build_ok(c->b)) return;
    for (uint32_t d = 2; d < self->rank && weight->rank == 1; d++)
        weight = build_unsqueeze(c->b, weight, -1);
    Value *positive = build_scalar(c->b, OP_GT_SCALAR, self, 0);
    result_set(c, 0, build_where(c->b, positive, self, build_mul(c->b, weight, self)));
}

static void translate_softmin(Call *c) {
    Value *self = build_unary(c->b, OP_NEG, promote_to(c, take_tensor(c, "self"), result_dtype(c)));
    result_set(c, 0, build_softmax(c->b, self, (int)take_dim(c, "dim", -1, self->rank)));
}

/* self + weight (end - self) */
static void translate_lerp(Call *c) {
    ferry_dtype dtype = result_dtype(c);
    Value *self = take_operand(c, "self", dtype), *end = take_operand(c, "end", dtype);
    Value *weight = take_operand(c, "weight", dtype);
    result_set(c, 0, build_add(c->b, self, build_mul(c->b, weight, build_sub(c->b, end, self))));
}

/* self + value * tensor1 * tensor2, or / tensor2 */
static void translate_addc(Call *c) {
    ferry_dtype dtype = result_dtype(c);
    bool divides = strstr(c->how->target, "addcdiv") != NULL;
    Value *change = build_binary(c->b, divides ? OP_DIV : OP_MUL, take_operand(c, "tensor1", dtype),
                                 take_operand(c, "tensor2", dtype));
    double value = take_float(c, "value", 1);
    if (value != 1) change = build_scalar(c->b, OP_MUL_SCALAR, change, value);
    result_set(c, 0, build_add(c->b, take_operand(c, "self", dtype), change));
}

#define PAIR(target, op)                                                                           \
    { target, translate_pair, op, ALIAS_NEVER, NULL }
#define SIMPLE(target, function)                                                                   \
    { target, function, OP_COUNT, ALIAS_NEVER, NULL }

const Translation translate_binary[] = {
    PAIR("aten.floor_divide.default", OP_FLOOR_DIVIDE),
    PAIR("aten.floor_divide.Scalar", OP_FLOOR_DIVIDE),
    PAIR("aten.remainder.Tensor", OP_REMAINDER),
    PAIR("aten.remainder.Scalar", OP_REMAINDER),
    PAIR("aten.remainder.Scalar_Tensor", OP_REMAINDER),
    PAIR("aten.fmod.Tensor", OP_FMOD),
    PAIR("aten.fmod.Scalar", OP_FMOD),
    PAIR("aten.pow.Tensor_Tensor", OP_POW),
    SIMPLE("aten.div.Tensor_mode", translate_divide),
    SIMPLE("aten.div.Scalar_mode", translate_divide),
    SIMPLE("aten.atan2.default", translate_atan2),
    SIMPLE("aten.bitwise_xor.Tensor", translate_xor),
    SIMPLE("aten.bitwise_xor.Scalar", translate_xor),
    SIMPLE("aten.__xor__.Tensor", translate_xor),
    SIMPLE("aten.__xor__.Scalar", translate_xor),
    SIMPLE("aten.logical_xor.default", translate_xor),
    {"aten.bitwise_and.Scalar", translate_bitwise_scalar, OP_AND, ALIAS_NEVER, NULL},
    {"aten.bitwise_or.Scalar", translate_bitwise_scalar, OP_OR, ALIAS_NEVER, NULL},
    {"aten.__and__.Scalar", translate_bitwise_scalar, OP_AND, ALIAS_NEVER, NULL},
    {"aten.__or__.Scalar", translate_bitwise_scalar, OP_OR, ALIAS_NEVER, NULL},
    SIMPLE("aten.bitwise_left_shift.Tensor", translate_shift),
    SIMPLE("aten.bitwise_left_shift.Tensor_Scalar", translate_shift),
    SIMPLE("aten.bitwise_right_shift.Tensor", translate_shift),
    SIMPLE("aten.bitwise_right_shift.Tensor_Scalar", translate_shift),
    SIMPLE("aten.__lshift__.Tensor", translate_shift),
    SIMPLE("aten.__lshift__.Scalar", translate_shift),
    SIMPLE("aten.__rshift__.Tensor", translate_shift),
    SIMPLE("aten.__rshift__.Scalar", translate_shift),
    SIMPLE("aten.glu.default", translate_glu),
    SIMPLE("aten.prelu.default", translate_prelu),
    SIMPLE("aten._prelu_kernel.default", translate_prelu),
    SIMPLE("aten.softmin.int", translate_softmin),
    SIMPLE("aten.lerp.Scalar", translate_lerp),
    SIMPLE("aten.lerp.Tensor", translate_lerp),
    SIMPLE("aten.addcmul.default", translate_addc),
    SIMPLE("aten.addcdiv.default", translate_addc),
    {0},
};
