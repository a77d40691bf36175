/* Translations of further functions of numbers, each expressed by simpler operations. */
#include "source/pt2/reader.h"

#include <math.h>
#include <string.h>

/* The argument `self` in the dtype of the result. */
static Value *operand(Call *c) {
    return promote_to(c, take_tensor(c, "self"), result_dtype(c));
}

static Value *add(Call *c, Value *x, double number) {
    return build_op(c->b, OP_ADD_SCALAR, (const Arg[]){arg_tensor(x), arg_float(number)}, 2);
}

static Value *times(Call *c, Value *x, double number) {
    return build_op(c->b, OP_MUL_SCALAR, (const Arg[]){arg_tensor(x), arg_float(number)}, 2);
}

static Value *apply(Call *c, Op op, Value *x) {
    return build_unary(c->b, op, x);
}

static Value *number(Call *c, double value, ferry_dtype dtype) {
    return build_full(c->b, NULL, 0, value, dtype);
}

/* ---- functions of one number ---- */

static Value *make_trunc(Call *c, Value *x) {
    return build_mul(c->b, apply(c, OP_SIGN, x), apply(c, OP_FLOOR, apply(c, OP_ABS, x)));
}

static Value *make_expm1(Call *c, Value *x) {
    return add(c, apply(c, OP_EXP, x), -1);
}

/* log(u) x / (u - 1) with u = 1 + x, which does not lose a small x. */
static Value *make_log1p(Call *c, Value *x) {
    Value *u = add(c, x, 1), *d = add(c, u, -1);
    Value *small = build_scalar(c->b, OP_EQ_SCALAR, d, 0);
    Value *safe = build_where(c->b, small, number(c, 1, x->dtype), d);
    Value *exact = build_mul(c->b, apply(c, OP_LOG, u), build_binary(c->b, OP_DIV, x, safe));
    Value *huge = build_scalar(c->b, OP_EQ_SCALAR, x, INFINITY);
    return build_where(c->b, small, x, build_where(c->b, huge, x, exact));
}

static Value *make_log2(Call *c, Value *x) {
    return times(c, apply(c, OP_LOG, x), 1.44269504088896341);
}

static Value *make_log10(Call *c, Value *x) {
    return times(c, apply(c, OP_LOG, x), 0.43429448190325183);
}

static Value *make_exp2(Call *c, Value *x) {
    return apply(c, OP_EXP, times(c, x, 0.69314718055994531));
}

static Value *make_tan(Call *c, Value *x) {
    return build_binary(c->b, OP_DIV, apply(c, OP_SIN, x), apply(c, OP_COS, x));
}

/* atan(x / sqrt((1 - x)(1 + x))) */
static Value *make_asin(Call *c, Value *x) {
    Value *product = build_mul(c->b, add(c, apply(c, OP_NEG, x), 1), add(c, x, 1));
    return apply(c, OP_ATAN, build_binary(c->b, OP_DIV, x, apply(c, OP_SQRT, product)));
}

static Value *make_acos(Call *c, Value *x) {
    return add(c, apply(c, OP_NEG, make_asin(c, x)), 1.57079632679489662);
}

/* (e^x - sign e^-x) / 2 */
static Value *exponentials(Call *c, Value *x, double sign) {
    Value *second = times(c, apply(c, OP_EXP, apply(c, OP_NEG, x)), sign / 2);
    return build_add(c->b, times(c, apply(c, OP_EXP, x), 0.5), second);
}

static Value *make_sinh(Call *c, Value *x) {
    return exponentials(c, x, -1);
}

static Value *make_cosh(Call *c, Value *x) {
    return exponentials(c, x, 1);
}

/* sign(x) log(|x| + sqrt(x^2 + 1)) */
static Value *make_asinh(Call *c, Value *x) {
    Value *size = apply(c, OP_ABS, x);
    Value *root = apply(c, OP_SQRT, add(c, build_mul(c->b, x, x), 1));
    return build_mul(c->b, apply(c, OP_SIGN, x), apply(c, OP_LOG, build_add(c->b, size, root)));
}

static Value *make_acosh(Call *c, Value *x) {
    Value *root = apply(c, OP_SQRT, add(c, build_mul(c->b, x, x), -1));
    return apply(c, OP_LOG, build_add(c->b, x, root));
}

static Value *make_atanh(Call *c, Value *x) {
    Value *quotient = build_binary(c->b, OP_DIV, add(c, x, 1), add(c, apply(c, OP_NEG, x), 1));
    return times(c, apply(c, OP_LOG, quotient), 0.5);
}

static Value *polynomial(Call *c, Value *x, const double *factors, int count) {
    Value *sum = times(c, x, factors[0]);
    for (int i = 1; i < count; i++) {
        sum = add(c, sum, factors[i]);
        if (i + 1 < count) sum = build_mul(c->b, sum, x);
    }
    return sum;
}

/* Giles, "Approximating the erfinv function" (2010): two polynomials in w = -log(1 - x^2). */
static Value *make_erfinv(Call *c, Value *x) {
    static const double centre[] = {2.81022636e-08,  3.43273939e-07, -3.5233877e-06,
                                    -4.39150654e-06, 0.00021858087,  -0.00125372503,
                                    -0.00417768164,  0.246640727,    1.50140941};
    static const double tail[] = {-0.000200214257, 0.000100950558, 0.00134934322,
                                  -0.00367342844,  0.00573950773,  -0.0076224613,
                                  0.00943887047,   1.00167406,     2.83297682};
    Value *product = build_mul(c->b, add(c, apply(c, OP_NEG, x), 1), add(c, x, 1));
    Value *w = apply(c, OP_NEG, apply(c, OP_LOG, product));
    Value *near = polynomial(c, add(c, w, -2.5), centre, 9);
    Value *far = polynomial(c, add(c, apply(c, OP_SQRT, w), -3), tail, 9);
    Value *is_near = build_scalar(c->b, OP_LT_SCALAR, w, 5);
    Value *inside = build_mul(c->b, build_where(c->b, is_near, near, far), x);
    Value *edge = build_scalar(c->b, OP_EQ_SCALAR, apply(c, OP_ABS, x), 1);
    return build_where(c->b, edge, times(c, x, INFINITY), inside);
}

/* ---- activations ---- */

static Value *make_hardsigmoid(Call *c, Value *x) {
    return build_scalar(c->b, OP_DIV_SCALAR,
                        build_clamp(c->b, add(c, x, 3), arg_float(0), arg_float(6)), 6);
}

static Value *make_mish(Call *c, Value *x) {
    return build_mul(c->b, x, apply(c, OP_TANH, apply(c, OP_SOFTPLUS, x)));
}

static Value *make_logsigmoid(Call *c, Value *x) {
    return apply(c, OP_NEG, apply(c, OP_SOFTPLUS, apply(c, OP_NEG, x)));
}

static Value *elu(Call *c, Value *x, double alpha) {
    return build_op(c->b, OP_ELU, (const Arg[]){arg_tensor(x), arg_float(alpha)}, 2);
}

static Value *make_selu(Call *c, Value *x) {
    return times(c, elu(c, x, 1.6732632423543772), 1.0507009873554805);
}

/* alpha elu(x / alpha) */
static Value *make_celu(Call *c, Value *x) {
    double alpha = take_float(c, "alpha", 1);
    return times(c, elu(c, build_scalar(c->b, OP_DIV_SCALAR, x, alpha), 1), alpha);
}

static Value *make_softsign(Call *c, Value *x) {
    return build_binary(c->b, OP_DIV, x, add(c, apply(c, OP_ABS, x), 1));
}

static Value *make_tanhshrink(Call *c, Value *x) {
    return build_sub(c->b, x, apply(c, OP_TANH, x));
}

static Value *make_threshold(Call *c, Value *x) {
    Value *above = build_scalar(c->b, OP_GT_SCALAR, x, take_float(c, "threshold", 0));
    return build_where(c->b, above, x, number(c, take_float(c, "value", 0), x->dtype));
}

static Value *make_square(Call *c, Value *x) {
    return build_mul(c->b, x, x);
}

typedef struct Function {
    const char *name; /* between "aten." and ".default" */
    Value *(*make)(Call *c, Value *x);
    bool stepwise; /* ATen rounds to half precision after each step, not once */
} Function;

static const Function functions[] = {
    {"trunc", make_trunc, false},
    {"fix", make_trunc, false},
    {"expm1", make_expm1, false},
    {"log1p", make_log1p, false},
    {"log2", make_log2, false},
    {"log10", make_log10, false},
    {"exp2", make_exp2, false},
    {"tan", make_tan, false},
    {"asin", make_asin, false},
    {"acos", make_acos, false},
    {"sinh", make_sinh, false},
    {"cosh", make_cosh, false},
    {"asinh", make_asinh, false},
    {"acosh", make_acosh, false},
    {"atanh", make_atanh, false},
    {"erfinv", make_erfinv, false},
    {"hardsigmoid", make_hardsigmoid, false},
    {"mish", make_mish, false},
    {"log_sigmoid", make_logsigmoid, false},
    {"selu", make_selu, false},
    {"celu", make_celu, false},
    {"softsign", make_softsign, true},
    {"tanhshrink", make_tanhshrink, true},
    {"threshold", make_threshold, false},
    {"square", make_square, false},
};

static void translate_function(Call *c) {
    const char *name = c->how->target + strlen("aten.");
    size_t length = strcspn(name, ".");
    Value *x = operand(c);
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        if (strlen(functions[i].name) != length || strncmp(functions[i].name, name, length) != 0)
            continue;
        Value *start = functions[i].stepwise ? x : promote_to_compute(c, x);
        result_set(c, 0, promote_to(c, functions[i].make(c, start), x->dtype));
    }
}

/* floor, ceil, round: nothing to do for integers. */
static void translate_rounding(Call *c) {
    Value *x = operand(c);
    int64_t digits = take_int(c, "decimals", 0);
    if (!ferry_dtype_is_float(x->dtype)) {
        result_set(c, 0, x);
        return;
    }
    if (digits) x = times(c, x, pow(10, (double)digits));
    x = apply(c, c->how->op, x);
    result_set(c, 0, digits ? times(c, x, pow(10, (double)-digits)) : x);
}

static void translate_simple(Call *c) {
    result_set(c, 0, apply(c, c->how->op, operand(c)));
}

/* ---- tests ---- */

/* isnan, isinf, isfinite: integers are finite. */
static void translate_test(Call *c) {
    Value *x = take_tensor(c, "self"), *result;
    bool nan = strstr(c->how->target, "isnan"), finite = strstr(c->how->target, "isfinite");
    if (!build_ok(c->b)) return;
    if (!ferry_dtype_is_float(x->dtype)) {
        result_set(c, 0, build_full(c->b, x->shape, x->rank, finite, FERRY_BOOL));
        return;
    }
    Value *size = nan ? x : apply(c, OP_ABS, x);
    if (nan)
        result = build_binary(c->b, OP_NE, x, x);
    else
        result = build_scalar(c->b, finite ? OP_LT_SCALAR : OP_EQ_SCALAR, size, INFINITY);
    result_set(c, 0, result);
}

/* The largest finite number. */
static double largest(ferry_dtype dtype) {
    if (dtype == FERRY_F16) return 65504;
    if (dtype == FERRY_BF16) return 3.3895313892515355e38;
    return dtype == FERRY_F64 ? 1.7976931348623157e308 : 3.4028234663852886e38;
}

static void translate_nan_to_num(Call *c) {
    Value *x = take_tensor(c, "self");
    double most = largest(x->dtype);
    if (!ferry_dtype_is_float(x->dtype)) {
        result_set(c, 0, x);
        return;
    }
    Value *zero = number(c, take_float(c, "nan", 0), x->dtype);
    Value *up = number(c, take_float(c, "posinf", most), x->dtype);
    Value *down = number(c, take_float(c, "neginf", -most), x->dtype);
    Value *result = build_where(c->b, build_binary(c->b, OP_NE, x, x), zero, x);
    result = build_where(c->b, build_scalar(c->b, OP_EQ_SCALAR, x, INFINITY), up, result);
    result = build_where(c->b, build_scalar(c->b, OP_EQ_SCALAR, x, -INFINITY), down, result);
    result_set(c, 0, result);
}

#define FUNCTION(name)                                                                             \
    { "aten." name ".default", translate_function, OP_COUNT, ALIAS_NEVER, NULL }
#define SIMPLE(target, function)                                                                   \
    { target, function, OP_COUNT, ALIAS_NEVER, NULL }
#define ROUNDING(name, op)                                                                         \
    { "aten." name, translate_rounding, op, ALIAS_NEVER, NULL }

const Translation translate_math[] = {
    FUNCTION("trunc"),
    FUNCTION("fix"),
    FUNCTION("expm1"),
    FUNCTION("log1p"),
    FUNCTION("log2"),
    FUNCTION("log10"),
    FUNCTION("exp2"),
    FUNCTION("tan"),
    FUNCTION("asin"),
    FUNCTION("acos"),
    FUNCTION("sinh"),
    FUNCTION("cosh"),
    FUNCTION("asinh"),
    FUNCTION("acosh"),
    FUNCTION("atanh"),
    FUNCTION("erfinv"),
    FUNCTION("hardsigmoid"),
    FUNCTION("mish"),
    FUNCTION("log_sigmoid"),
    FUNCTION("selu"),
    FUNCTION("celu"),
    FUNCTION("softsign"),
    FUNCTION("tanhshrink"),
    FUNCTION("threshold"),
    FUNCTION("square"),
    {"aten.atan.default", translate_simple, OP_ATAN, ALIAS_NEVER, NULL},
    {"aten.sign.default", translate_simple, OP_SIGN, ALIAS_NEVER, NULL},
    {"aten.sgn.default", translate_simple, OP_SIGN, ALIAS_NEVER, NULL},
    ROUNDING("floor.default", OP_FLOOR),
    ROUNDING("ceil.default", OP_CEIL),
    ROUNDING("round.default", OP_ROUND),
    ROUNDING("round.decimals", OP_ROUND),
    SIMPLE("aten.isnan.default", translate_test),
    SIMPLE("aten.isinf.default", translate_test),
    SIMPLE("aten.isfinite.default", translate_test),
    SIMPLE("aten.nan_to_num.default", translate_nan_to_num),
    {0},
};
