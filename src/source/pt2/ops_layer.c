/* Translations of layers: products, norms, attention. */
#include "source/pt2/reader.h"

#include <math.h>
#include <string.h>

/* A weight of one dimension gives one feature, which has no dimension then. */
static void translate_linear(Call *c) {
    Value *input = take_tensor(c, "input"), *weight = take_tensor(c, "weight");
    Value *bias = take_optional_tensor(c, "bias");
    if (!build_ok(c->b)) return;
    if (weight->rank != 1) {
        result_set(c, 0, build_linear(c->b, input, weight, bias));
        return;
    }
    Value *product = build_linear(c->b, input, build_unsqueeze(c->b, weight, 0), NULL);
    product = build_squeeze(c->b, product, -1);
    result_set(c, 0, bias ? build_add(c->b, product, bias) : product);
}

/* matmul of any ranks: a vector is a row or a column for the time. */
static void translate_matmul(Call *c) {
    Value *a = take_tensor(c, "self");
    Value *b = take_is_tensor(c, "other") ? take_tensor(c, "other") : take_tensor(c, "mat2");
    if (!build_ok(c->b)) return;
    bool row = a->rank == 1, column = b->rank == 1;
    if (row) a = build_unsqueeze(c->b, a, 0);
    if (column) b = build_unsqueeze(c->b, b, 1);
    Value *product = build_matmul(c->b, a, b);
    if (column) product = build_squeeze(c->b, product, -1);
    if (row) product = build_squeeze(c->b, product, column ? -1 : -2);
    result_set(c, 0, product);
}

/* beta * self + alpha * (a @ b) */
static void translate_addmm(Call *c) {
    bool batched = strcmp(c->how->target, "aten.baddbmm.default") == 0;
    Value *product = build_matmul(c->b, take_tensor(c, batched ? "batch1" : "mat1"),
                                  take_tensor(c, batched ? "batch2" : "mat2"));
    Value *self = take_tensor(c, "self");
    double alpha = take_float(c, "alpha", 1), beta = take_float(c, "beta", 1);
    if (alpha != 1) {
        product =
            build_op(c->b, OP_MUL_SCALAR, (const Arg[]){arg_tensor(product), arg_float(alpha)}, 2);
    }
    if (beta == 0) {
        result_set(c, 0, product);
        return;
    }
    if (beta != 1)
        self = build_op(c->b, OP_MUL_SCALAR, (const Arg[]){arg_tensor(self), arg_float(beta)}, 2);
    result_set(c, 0, build_add(c->b, product, self));
}

static void translate_outer(Call *c) {
    Value *column = build_unsqueeze(c->b, take_tensor(c, "self"), 1);
    Value *row = build_unsqueeze(c->b, take_tensor(c, "vec2"), 0);
    result_set(c, 0, build_mul(c->b, column, row));
}

static void translate_layer_norm(Call *c) {
    const Sym *shape[FERRY_MAX_RANK];
    uint32_t rank = take_syms(c, "normalized_shape", shape, FERRY_MAX_RANK);
    const Arg args[] = {arg_tensor(take_tensor(c, "input")), arg_syms(c->b, shape, rank),
                        arg_tensor(take_optional_tensor(c, "weight")),
                        arg_tensor(take_optional_tensor(c, "bias")),
                        arg_float(take_float(c, "eps", 1e-5))};
    result_set(c, 0, build_op(c->b, OP_LAYER_NORM, args, 5));
}

static void translate_rms_norm(Call *c) {
    const Sym *shape[FERRY_MAX_RANK];
    uint32_t rank = take_syms(c, "normalized_shape", shape, FERRY_MAX_RANK);
    Value *input = take_tensor(c, "input");
    double eps = take_float(
        c, "eps", input->dtype == FERRY_F64 ? 2.220446049250313e-16 : 1.1920928955078125e-07);
    const Arg args[] = {arg_tensor(input), arg_syms(c->b, shape, rank),
                        arg_tensor(take_optional_tensor(c, "weight")), arg_float(eps)};
    result_set(c, 0, build_op(c->b, OP_RMS_NORM, args, 4));
}

/* The two leading dimensions as [batch, heads], for tensors of another rank than 4. */
static Value *as_rank4(Call *c, Value *x) {
    const Sym *shape[4] = {build_const(c->b, 1), build_const(c->b, 1), NULL, NULL};
    if (x->rank == 4 || x->rank < 2) return x;
    shape[2] = x->shape[x->rank - 2];
    shape[3] = x->shape[x->rank - 1];
    for (uint32_t d = 0; d + 3 < x->rank; d++)
        shape[0] = sym_mul(&c->b->program->symbols, shape[0], x->shape[d]);
    if (x->rank > 2) shape[1] = x->shape[x->rank - 3];
    return build_view(c->b, x, shape, 4);
}

static void translate_attention(Call *c) {
    Value *query = take_tensor(c, "query"), *key = take_tensor(c, "key"),
          *value = take_tensor(c, "value");
    Value *mask = take_optional_tensor(c, "attn_mask");
    if (!build_ok(c->b)) return;
    if (take_float(c, "dropout_p", 0) != 0) {
        take_fail(c, FERRY_UNSUPPORTED, "attention with dropout: export the model in eval mode");
        return;
    }
    if (query->rank > 5 || (mask && mask->rank > 4)) {
        take_fail(c, FERRY_UNSUPPORTED, "attention on tensors of rank above 4");
        return;
    }
    const Sym *size = build_dim(c->b, query, -1);
    double scale = take_float(c, "scale", 0);
    if (!take_has(c, "scale")) {
        if (!sym_is_const(size)) {
            take_fail(c, FERRY_UNSUPPORTED, "attention with heads of dynamic size");
            return;
        }
        scale = 1 / sqrt((double)size->value);
    }
    TensorMeta meta = result_meta(c, 0);
    Value *q = as_rank4(c, query), *k = as_rank4(c, key), *v = as_rank4(c, value);
    bool grouped =
        take_bool(c, "enable_gqa", false) && build_dim(c->b, q, 1) != build_dim(c->b, k, 1);
    const Arg args[] = {arg_tensor(q),
                        arg_tensor(k),
                        arg_tensor(v),
                        arg_tensor(mask),
                        arg_bool(take_bool(c, "is_causal", false)),
                        arg_float(scale),
                        arg_bool(grouped)};
    Value *context = build_op(c->b, OP_ATTENTION, args, 7);
    result_set(c, 0, query->rank == 4 ? context : build_view(c->b, context, meta.sizes, meta.rank));
}

#define SIMPLE(target, function)                                                                   \
    { target, function, OP_COUNT, ALIAS_NEVER, NULL }

const Translation translate_layer[] = {
    SIMPLE("aten.linear.default", translate_linear),
    SIMPLE("aten.matmul.default", translate_matmul),
    SIMPLE("aten.mm.default", translate_matmul),
    SIMPLE("aten.bmm.default", translate_matmul),
    SIMPLE("aten.mv.default", translate_matmul),
    SIMPLE("aten.addmm.default", translate_addmm),
    SIMPLE("aten.baddbmm.default", translate_addmm),
    SIMPLE("aten.outer.default", translate_outer),
    SIMPLE("aten.layer_norm.default", translate_layer_norm),
    SIMPLE("aten.rms_norm.default", translate_rms_norm),
    SIMPLE("aten.scaled_dot_product_attention.default", translate_attention),
    {0},
};
