/* Translations of further reductions (products, variances, norms, distances) and of routed products. */
#include "source/pt2/reader.h"

#include <math.h>
#include <string.h>

static Value *operand(Call *c) {
    return promote_to(c, take_tensor(c, "self"), result_dtype(c));
}

/* The argument `dim` as a list; all dimensions when it is absent or empty. */
static uint32_t take_dims(Call *c, uint32_t rank, int64_t *dims) {
    uint32_t count = take_has(c, "dim") ? take_ints(c, "dim", dims, FERRY_MAX_RANK) : 0;
    if (count) return count;
    for (uint32_t d = 0; d < rank; d++) dims[d] = d;
    return rank;
}

static Value *reduce(Call *c, Op op, Value *x, const int64_t *dims, uint32_t count, bool keepdim) {
    if (count == 0) return x;
    const Arg args[] = {arg_tensor(x), arg_ints(c->b, dims, count), arg_bool(keepdim)};
    return build_op(c->b, op, args, 3);
}

static Value *flat(Call *c, Value *x) {
    return build_view(c->b, x, (const Sym *const[]){build_const(c->b, -1)}, 1);
}

/* How many elements are reduced. */
static const Sym *count_of(Call *c, const Value *x, const int64_t *dims, uint32_t count) {
    const Sym *product = build_const(c->b, 1);
    for (uint32_t i = 0; i < count; i++)
        product = sym_mul(&c->b->program->symbols, product, build_dim(c->b, x, (int)dims[i]));
    return product;
}

/* ---- products ---- */

static void translate_prod(Call *c) {
    Value *x = operand(c);
    bool all = !take_has(c, "dim");
    if (all) x = flat(c, x);
    uint32_t dim = all ? 0 : take_dim(c, "dim", 0, x->rank);
    bool keepdim = take_bool(c, "keepdim", false);
    result_set(c, 0, build_reduce(c->b, OP_PROD, x, (int)dim, keepdim));
}

/* Entry i: the product over all j <= i. */
static void translate_cumprod(Call *c) {
    Value *x = operand(c);
    uint32_t dim = take_dim(c, "dim", 0, x->rank);
    const Sym *size = build_dim(c->b, x, (int)dim);
    if (!build_ok(c->b)) return;
    Value *moved = build_transpose(c->b, x, (int)dim, -1);
    Value *places = build_arange(c->b, build_const(c->b, 0), size, FERRY_I64);
    Value *reached = build_binary(c->b, OP_LE, build_unsqueeze(c->b, places, 0),
                                  build_unsqueeze(c->b, places, 1));
    Value *one = build_full(c->b, NULL, 0, 1, x->dtype);
    Value *factors = build_where(c->b, reached, build_unsqueeze(c->b, moved, -2), one);
    Value *products = build_reduce(c->b, OP_PROD, factors, -1, false);
    result_set(c, 0, build_transpose(c->b, products, (int)dim, -1));
}

/* ---- variances ---- */

/* Sum of squared deviations over (count - correction); `mean` is kept wide. */
static Value *variance(Call *c, Value *x, const int64_t *dims, uint32_t count, bool keepdim,
                       Value **mean) {
    double correction =
        take_has(c, "unbiased") ? take_bool(c, "unbiased", true) : take_float(c, "correction", 1);
    *mean = reduce(c, OP_MEAN, x, dims, count, true);
    Value *deviation = build_sub(c->b, x, *mean);
    Value *squares = build_mul(c->b, deviation, deviation);
    if (correction == 0) return reduce(c, OP_MEAN, squares, dims, count, keepdim);
    Value *sum = reduce(c, OP_SUM, squares, dims, count, keepdim);
    const Sym *n = count_of(c, x, dims, count);
    if (correction != floor(correction)) {
        const Arg args[] = {arg_tensor(build_scalar_tensor(c->b, n, x->dtype)),
                            arg_float(-correction)};
        return build_binary(c->b, OP_DIV, sum, build_op(c->b, OP_ADD_SCALAR, args, 2));
    }
    n = sym_sub(&c->b->program->symbols, n, build_const(c->b, (int64_t)correction));
    return build_op(c->b, OP_DIV_SCALAR, (const Arg[]){arg_tensor(sum), arg_sym(n)}, 2);
}

static void translate_variance(Call *c) {
    Value *x = operand(c), *mean;
    int64_t dims[FERRY_MAX_RANK];
    bool deviation = strncmp(c->how->target, "aten.std", 8) == 0;
    bool with_mean = strstr(c->how->target, "_mean") != NULL;
    uint32_t count = take_dims(c, x->rank, dims);
    bool keepdim = take_bool(c, "keepdim", false);
    Value *result = variance(c, x, dims, count, keepdim, &mean);
    result_set(c, 0, deviation ? build_unary(c->b, OP_SQRT, result) : result);
    if (with_mean) result_set(c, 1, reduce(c, OP_MEAN, x, dims, count, keepdim));
}

/* max + log(sum(exp(x - max))); an infinite maximum is left out. */
static void translate_logsumexp(Call *c) {
    Value *x = operand(c);
    int64_t dims[FERRY_MAX_RANK];
    uint32_t count = take_dims(c, x->rank, dims);
    bool keepdim = take_bool(c, "keepdim", false);
    Value *most = reduce(c, OP_AMAX, x, dims, count, true);
    Value *infinite = build_scalar(c->b, OP_EQ_SCALAR, build_unary(c->b, OP_ABS, most), INFINITY);
    Value *zero = build_full(c->b, NULL, 0, 0, x->dtype);
    most = build_where(c->b, infinite, zero, most);
    Value *powers = build_unary(c->b, OP_EXP, build_sub(c->b, x, most));
    Value *sum = build_unary(c->b, OP_LOG, reduce(c, OP_SUM, powers, dims, count, keepdim));
    if (!keepdim) most = reduce(c, OP_AMAX, most, dims, count, false);
    result_set(c, 0, build_add(c->b, sum, most));
}

/* ---- norms and distances ---- */

static Value *norm(Call *c, Value *x, double order, const int64_t *dims, uint32_t count,
                   bool keepdim) {
    Value *size = order == 2 ? x : build_unary(c->b, OP_ABS, x);
    if (isinf(order)) return reduce(c, order > 0 ? OP_AMAX : OP_AMIN, size, dims, count, keepdim);
    if (order == 0) {
        Value *present = promote_to(c, build_scalar(c->b, OP_NE_SCALAR, x, 0), x->dtype);
        return reduce(c, OP_SUM, present, dims, count, keepdim);
    }
    if (order == 1) return reduce(c, OP_SUM, size, dims, count, keepdim);
    if (order == 2) {
        Value *sum = reduce(c, OP_SUM, build_mul(c->b, x, x), dims, count, keepdim);
        return build_unary(c->b, OP_SQRT, sum);
    }
    const Arg power[] = {arg_tensor(size), arg_float(order)};
    Value *sum = reduce(c, OP_SUM, build_op(c->b, OP_POW_SCALAR, power, 2), dims, count, keepdim);
    const Arg root[] = {arg_tensor(sum), arg_float(1 / order)};
    return build_op(c->b, OP_POW_SCALAR, root, 2);
}

/* norm and linalg_norm over one dimension, or over all of them as one vector. */
static void translate_norm_of(Call *c) {
    Value *x = operand(c);
    int64_t dims[FERRY_MAX_RANK];
    const char *order = take_has(c, "ord") ? "ord" : "p";
    uint32_t count = take_dims(c, x->rank, dims);
    if (strstr(c->how->target, "linalg_norm") && take_has(c, "ord") && count > 1) {
        take_fail(c, FERRY_UNSUPPORTED, "the norm of a matrix");
        return;
    }
    bool keepdim = take_bool(c, "keepdim", false);
    result_set(c, 0, norm(c, x, take_float(c, order, 2), dims, count, keepdim));
}

/* The distance of every row of the first from every row of the second. */
static void translate_cdist(Call *c) {
    Value *first = build_unsqueeze(c->b, take_tensor(c, "x1"), -2);
    Value *second = build_unsqueeze(c->b, take_tensor(c, "x2"), -3);
    Value *difference = build_sub(c->b, first, second);
    result_set(c, 0, norm(c, difference, take_float(c, "p", 2), (const int64_t[]){-1}, 1, false));
}

static void translate_dot(Call *c) {
    const char *other = take_has(c, "tensor") ? "tensor" : "other";
    Value *product = build_mul(c->b, take_tensor(c, "self"), take_tensor(c, other));
    result_set(c, 0, build_reduce(c->b, OP_SUM, product, -1, false));
}

/* a x b = a' b'' - a'' b', where the primes turn (0, 1, 2) to (1, 2, 0) and (2, 0, 1). */
static void translate_cross(Call *c) {
    static const int64_t turns[2][3] = {{1, 2, 0}, {2, 0, 1}};
    Value *sides[2] = {take_tensor(c, "self"), take_tensor(c, "other")}, *turned[2][2];
    ferry_dtype dtype = result_dtype(c);
    const int64_t shape = 3;
    uint32_t dim = take_dim(c, "dim", -1, sides[0]->rank);
    for (int i = 0; i < 2; i++) {
        Value *index = build_constant(c->b, VALUE_CONSTANT, "turn", FERRY_I64, 1, &shape, turns[i]);
        for (int side = 0; side < 2; side++) {
            const Arg args[] = {arg_tensor(promote_to(c, sides[side], dtype)), arg_int(c->b, dim),
                                arg_tensor(index)};
            turned[side][i] = build_op(c->b, OP_INDEX_SELECT, args, 3);
        }
    }
    Value *first = build_mul(c->b, turned[0][0], turned[1][1]);
    result_set(c, 0, build_sub(c->b, first, build_mul(c->b, turned[0][1], turned[1][0])));
}

/* ---- routed products ---- */

static void translate_grouped_mm(Call *c) {
    bool fallback = strncmp(c->how->target, "transformers.", 13) == 0;
    Value *self = take_tensor(c, fallback ? "input" : "self");
    Value *matrices = take_tensor(c, fallback ? "weight" : "mat2");
    Value *offsets = take_optional_tensor(c, "offs");
    if (!build_ok(c->b)) return;
    if (!offsets || self->rank != 2 || matrices->rank != 3 || take_has(c, "bias")) {
        take_fail(c, FERRY_UNSUPPORTED, "only [rows, k] by [groups, k, n] is supported");
        return;
    }
    const Arg args[] = {arg_tensor(self), arg_tensor(matrices), arg_tensor(offsets)};
    Value *product = build_op(c->b, OP_GROUPED_MM, args, 3);
    result_set(c, 0, promote_to(c, product, result_dtype(c)));
}

static void refuse_random(Call *c) {
    take_fail(c, FERRY_UNSUPPORTED,
              "random numbers: the program gives other results at every run; export the model "
              "without sampling");
}

#define SIMPLE(target, function)                                                                   \
    { target, function, OP_COUNT, ALIAS_NEVER, NULL }

const Translation translate_stats[] = {
    SIMPLE("aten.prod.default", translate_prod),
    SIMPLE("aten.prod.dim_int", translate_prod),
    SIMPLE("aten.cumprod.default", translate_cumprod),
    SIMPLE("aten.std.default", translate_variance),
    SIMPLE("aten.std.dim", translate_variance),
    SIMPLE("aten.std.correction", translate_variance),
    SIMPLE("aten.var.default", translate_variance),
    SIMPLE("aten.var.dim", translate_variance),
    SIMPLE("aten.var.correction", translate_variance),
    SIMPLE("aten.var_mean.default", translate_variance),
    SIMPLE("aten.var_mean.dim", translate_variance),
    SIMPLE("aten.var_mean.correction", translate_variance),
    SIMPLE("aten.std_mean.default", translate_variance),
    SIMPLE("aten.std_mean.dim", translate_variance),
    SIMPLE("aten.std_mean.correction", translate_variance),
    SIMPLE("aten.logsumexp.default", translate_logsumexp),
    SIMPLE("aten.linalg_vector_norm.default", translate_norm_of),
    SIMPLE("aten.linalg_norm.default", translate_norm_of),
    SIMPLE("aten.norm.ScalarOpt_dim", translate_norm_of),
    SIMPLE("aten.norm.Scalar", translate_norm_of),
    SIMPLE("aten.norm.ScalarOpt_dim_dtype", translate_norm_of),
    SIMPLE("aten.cdist.default", translate_cdist),
    SIMPLE("aten._cdist_forward.default", translate_cdist),
    SIMPLE("aten.dot.default", translate_dot),
    SIMPLE("aten.vdot.default", translate_dot),
    SIMPLE("aten.linalg_cross.default", translate_cross),
    SIMPLE("aten.cross.default", translate_cross),
    SIMPLE("aten._grouped_mm.default", translate_grouped_mm),
    SIMPLE("transformers.grouped_mm_fallback.default", translate_grouped_mm),
    SIMPLE("aten.randn.default", refuse_random),
    SIMPLE("aten.randn_like.default", refuse_random),
    SIMPLE("aten.rand.default", refuse_random),
    SIMPLE("aten.rand_like.default", refuse_random),
    SIMPLE("aten.randint.low", refuse_random),
    SIMPLE("aten.bernoulli.default", refuse_random),
    SIMPLE("aten.multinomial.default", refuse_random),
    {0},
};
