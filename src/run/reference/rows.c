/* One expression per operation and compute type; macros make the loops, which the compiler
 * vectorizes where the expression allows. Integers wrap around as in two's complement. */
#include "run/reference/rows.h"

#include <math.h>
#include <stdbool.h>

/* `x` is the operand. */
#define UNARY(name, type, expression)                                                              \
    static void name(void *target, const void *const *in, const int64_t *steps, int64_t n) {       \
        type *restrict out = target;                                                               \
        const type *restrict first = in[0];                                                        \
        if (steps[0] == 0) {                                                                       \
            const type x = first[0], result = (expression);                                        \
            for (int64_t i = 0; i < n; i++) out[i] = result;                                       \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const type x = first[i];                                                               \
            out[i] = (expression);                                                                 \
        }                                                                                          \
    }

/* `a` and `b` are the operands. */
#define BINARY(name, type, result_type, expression)                                                \
    static void name(void *target, const void *const *in, const int64_t *steps, int64_t n) {       \
        result_type *restrict out = target;                                                        \
        const type *restrict first = in[0], *restrict second = in[1];                              \
        if (steps[0] && steps[1]) {                                                                \
            for (int64_t i = 0; i < n; i++) {                                                      \
                const type a = first[i], b = second[i];                                            \
                out[i] = (expression);                                                             \
            }                                                                                      \
        } else if (steps[0]) {                                                                     \
            const type b = second[0];                                                              \
            for (int64_t i = 0; i < n; i++) {                                                      \
                const type a = first[i];                                                           \
                out[i] = (expression);                                                             \
            }                                                                                      \
        } else {                                                                                   \
            const type a = first[0];                                                               \
            for (int64_t i = 0; i < n; i++) {                                                      \
                const type b = second[i * steps[1]];                                               \
                out[i] = (expression);                                                             \
            }                                                                                      \
        }                                                                                          \
    }

/* `x` is the first operand; `p` and `q` are parameters, the same for the whole row. */
#define PARAMETRIC(name, type, expression)                                                         \
    static void name(void *target, const void *const *in, const int64_t *steps, int64_t n) {       \
        type *restrict out = target;                                                               \
        const type *restrict first = in[0];                                                        \
        const type p = *(const type *)in[1], q = *(const type *)in[2];                             \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const type x = first[i * steps[0]];                                                    \
            out[i] = (expression);                                                                 \
        }                                                                                          \
    }

#define UNARY_REAL(name, narrow, wide)                                                             \
    UNARY(name##_f32, float, narrow) UNARY(name##_f64, double, wide)
#define BINARY_REAL(name, expression)                                                              \
    BINARY(name##_f32, float, float, expression) BINARY(name##_f64, double, double, expression)
#define PARAMETRIC_REAL(name, narrow, wide)                                                        \
    PARAMETRIC(name##_f32, float, narrow) PARAMETRIC(name##_f64, double, wide)
#define WRAP(expression) (int64_t)(expression)
#define U(value)         (uint64_t)(value)

/* ---- arithmetic; maxima and minima propagate NaN ---- */

BINARY_REAL(add, a + b)
BINARY(add_i64, int64_t, int64_t, WRAP(U(a) + U(b)))
BINARY_REAL(sub, a - b)
BINARY(sub_i64, int64_t, int64_t, WRAP(U(a) - U(b)))
BINARY_REAL(mul, (a * b))
BINARY(mul_i64, int64_t, int64_t, WRAP(U(a) * U(b)))
BINARY_REAL(div, a / b)
BINARY_REAL(maximum, a > b || a != a ? a : b)
BINARY(maximum_i64, int64_t, int64_t, a > b ? a : b)
BINARY_REAL(minimum, a < b || a != a ? a : b)
BINARY(minimum_i64, int64_t, int64_t, a < b ? a : b)

UNARY_REAL(neg, -x, -x)
UNARY(neg_i64, int64_t, WRAP(0 - U(x)))
UNARY_REAL(absolute, fabsf(x), fabs(x))
UNARY(absolute_i64, int64_t, x < 0 ? WRAP(0 - U(x)) : x)
#define CLAMPED ((x < p) ? ((p < q) ? p : q) : ((x > q) ? q : x))
PARAMETRIC_REAL(clamp, CLAMPED, CLAMPED)
PARAMETRIC(clamp_i64, int64_t, CLAMPED)

/* Division towards minus infinity and its remainder, which has the divisor's sign. Of integers by 0
 * both are 0. */
static double remainder_f64_of(double a, double b) {
    double rest = fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static float remainder_f32_of(float a, float b) {
    float rest = fmodf(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static int64_t fmod_of(int64_t a, int64_t b) {
    return b == 0 || b == -1 ? 0 : a % b;
}

static int64_t remainder_of(int64_t a, int64_t b) {
    int64_t rest = fmod_of(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static int64_t floor_divide_of(int64_t a, int64_t b) {
    if (b == 0) return 0;
    if (b == -1) return WRAP(0 - U(a));
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

BINARY_REAL(floor_divide, floor(a / b))
BINARY(floor_divide_i64, int64_t, int64_t, floor_divide_of(a, b))
BINARY(remainder_f32, float, float, remainder_f32_of(a, b))
BINARY(remainder_f64, double, double, remainder_f64_of(a, b))
BINARY(remainder_i64, int64_t, int64_t, remainder_of(a, b))
BINARY_REAL(fmod, fmod(a, b))
BINARY(fmod_i64, int64_t, int64_t, fmod_of(a, b))

/* The exponents that ATen computes by multiplication or a root. */
static float power_f32(float a, float b) {
    if (b == 2) return a * a;
    if (b == 3) return a * a * a;
    if (b == 0.5f) return sqrtf(a);
    if (b == -0.5f) return 1 / sqrtf(a);
    if (b == -1) return 1 / a;
    if (b == -2) return 1 / (a * a);
    return powf(a, b);
}

static double power_f64(double a, double b) {
    if (b == 2) return a * a;
    if (b == 3) return a * a * a;
    if (b == 0.5) return sqrt(a);
    if (b == -0.5) return 1 / sqrt(a);
    if (b == -1) return 1 / a;
    if (b == -2) return 1 / (a * a);
    return pow(a, b);
}

static int64_t power_i64(int64_t a, int64_t b) {
    uint64_t result = 1, square = (uint64_t)a;
    if (b < 0) return a == 1 ? 1 : a != -1 ? 0 : b % 2 ? -1 : 1;
    for (; b; b >>= 1) {
        if (b & 1) result *= square;
        square *= square;
    }
    return (int64_t)result;
}

BINARY(pow_f32, float, float, power_f32(a, b))
BINARY(pow_f64, double, double, power_f64(a, b))
BINARY(pow_i64, int64_t, int64_t, power_i64(a, b))

/* ---- functions ---- */

UNARY_REAL(exponential, expf(x), exp(x))
UNARY_REAL(logarithm, logf(x), log(x))
UNARY_REAL(root, sqrtf(x), sqrt(x))
UNARY_REAL(rsqrt, 1 / sqrtf(x), 1 / sqrt(x))
UNARY_REAL(reciprocal, 1 / x, 1 / x)
UNARY_REAL(cosine, cosf(x), cos(x))
UNARY_REAL(sine, sinf(x), sin(x))
UNARY_REAL(tangent, tanhf(x), tanh(x))
UNARY_REAL(sigmoid, 1 / (1 + expf(-x)), 1 / (1 + exp(-x)))
UNARY_REAL(error_function, erff(x), erf(x))
UNARY_REAL(arc_tangent, atanf(x), atan(x))
UNARY_REAL(floor, floorf(x), floor(x))
UNARY_REAL(ceiling, ceilf(x), ceil(x))
UNARY_REAL(round, rintf(x), rint(x)) /* halves to even */
UNARY_REAL(sign, (float)((x > 0) - (x < 0)), (x > 0) - (x < 0))
UNARY(sign_i64, int64_t, (x > 0) - (x < 0))

/* ---- activations ---- */

#define SQRT_HALF        0.70710678118654752440
#define SQRT_TWO_OVER_PI 0.79788456080286535588
#define GELU_CUBIC       0.044715

UNARY_REAL(relu, x < 0 ? 0 : x, x < 0 ? 0 : x)
UNARY(relu_i64, int64_t, x < 0 ? 0 : x)
UNARY_REAL(silu, x / (1 + expf(-x)), x / (1 + exp(-x)))
UNARY_REAL(gelu, 0.5f * x * (1 + erff(x * (float)SQRT_HALF)), 0.5 * x * (1 + erf(x * SQRT_HALF)))
UNARY_REAL(gelu_tanh,
           0.5f * x * (1 + tanhf((float)SQRT_TWO_OVER_PI * (x + (float)GELU_CUBIC * x * x * x))),
           0.5 * x * (1 + tanh(SQRT_TWO_OVER_PI * (x + GELU_CUBIC * x * x * x))))
PARAMETRIC_REAL(softplus, (x * p > q) ? x : log1pf(expf(x *p)) / p,
                (x * p > q) ? x : log1p(exp(x *p)) / p)
BINARY(elu_f32, float, float, a > 0 ? a : b * expm1f(a))
BINARY(elu_f64, double, double, a > 0 ? a : b * expm1(a))
BINARY_REAL(leaky_relu, a > 0 ? a : a * b)

/* ---- comparison and logic ---- */

#define COMPARISON(name, operator)                                                                 \
    BINARY(name##_f32, float, uint8_t, a operator b)                                               \
    BINARY(name##_f64, double, uint8_t, a operator b)                                              \
    BINARY(name##_i64, int64_t, uint8_t, a operator b)

COMPARISON(equal, ==)
COMPARISON(not_equal, !=)
COMPARISON(less, <)
COMPARISON(less_equal, <=)
COMPARISON(greater, >)
COMPARISON(greater_equal, >=)

BINARY(and_i64, int64_t, int64_t, WRAP(U(a) & U(b)))
BINARY(or_i64, int64_t, int64_t, WRAP(U(a) | U(b)))
UNARY(not_i64, int64_t, WRAP(~U(x)))
UNARY(not_bool, int64_t, !x)

#define REAL(name)                                                                                 \
    { name##_f32, name##_f64, NULL, false }
#define ANY(name)                                                                                  \
    { name##_f32, name##_f64, name##_i64, false }
#define TRUTH(name)                                                                                \
    { name##_f32, name##_f64, name##_i64, true }

static const RowSet sets[OP_COUNT] = {
    [OP_ADD] = ANY(add),
    [OP_SUB] = ANY(sub),
    [OP_MUL] = ANY(mul),
    [OP_DIV] = REAL(div),
    [OP_MAXIMUM] = ANY(maximum),
    [OP_MINIMUM] = ANY(minimum),
    [OP_POW] = ANY(pow),
    [OP_FLOOR_DIVIDE] = ANY(floor_divide),
    [OP_REMAINDER] = ANY(remainder),
    [OP_FMOD] = ANY(fmod),
    [OP_ADD_SCALAR] = ANY(add),
    [OP_MUL_SCALAR] = ANY(mul),
    [OP_DIV_SCALAR] = REAL(div),
    [OP_POW_SCALAR] = ANY(pow),
    [OP_SCALAR_POW] = ANY(pow),
    [OP_CLAMP] = ANY(clamp),
    [OP_NEG] = ANY(neg),
    [OP_ABS] = ANY(absolute),
    [OP_EXP] = REAL(exponential),
    [OP_LOG] = REAL(logarithm),
    [OP_SQRT] = REAL(root),
    [OP_RSQRT] = REAL(rsqrt),
    [OP_RECIPROCAL] = REAL(reciprocal),
    [OP_COS] = REAL(cosine),
    [OP_SIN] = REAL(sine),
    [OP_TANH] = REAL(tangent),
    [OP_SIGMOID] = REAL(sigmoid),
    [OP_ERF] = REAL(error_function),
    [OP_ATAN] = REAL(arc_tangent),
    [OP_FLOOR] = REAL(floor),
    [OP_CEIL] = REAL(ceiling),
    [OP_ROUND] = REAL(round),
    [OP_SIGN] = ANY(sign),
    [OP_RELU] = ANY(relu),
    [OP_SILU] = REAL(silu),
    [OP_GELU] = REAL(gelu),
    [OP_SOFTPLUS] = REAL(softplus),
    [OP_ELU] = REAL(elu),
    [OP_LEAKY_RELU] = REAL(leaky_relu),
    [OP_EQ] = TRUTH(equal),
    [OP_NE] = TRUTH(not_equal),
    [OP_LT] = TRUTH(less),
    [OP_LE] = TRUTH(less_equal),
    [OP_GT] = TRUTH(greater),
    [OP_GE] = TRUTH(greater_equal),
    [OP_EQ_SCALAR] = TRUTH(equal),
    [OP_NE_SCALAR] = TRUTH(not_equal),
    [OP_LT_SCALAR] = TRUTH(less),
    [OP_LE_SCALAR] = TRUTH(less_equal),
    [OP_GT_SCALAR] = TRUTH(greater),
    [OP_GE_SCALAR] = TRUTH(greater_equal),
    [OP_AND] = {NULL, NULL, and_i64, false},
    [OP_OR] = {NULL, NULL, or_i64, false},
    [OP_NOT] = {NULL, NULL, not_i64, false},
};

RowSet rows_find(Op op) {
    return sets[op];
}

const RowSet rows_gelu_tanh = REAL(gelu_tanh);
const RowSet rows_not_bool = {NULL, NULL, not_bool, false};
