/* Translations of normalization over batches, groups and instances. */
#include "source/pt2/reader.h"

#include <string.h>

/* A weight, bias or statistic in the dtype of the input. */
static Value *take_vector(Call *c, const char *name, const Value *input) {
    Value *vector = take_optional_tensor(c, name);
    return vector ? promote_to(c, vector, input->dtype) : NULL;
}

static Value *group_norm(Call *c, Value *input, int64_t groups, Value *weight, Value *bias,
                         double eps) {
    const Arg args[] = {arg_tensor(input), arg_int(c->b, groups), arg_tensor(weight),
                        arg_tensor(bias), arg_float(eps)};
    return build_op(c->b, OP_GROUP_NORM, args, 5);
}

/* The mean and the reciprocal deviation of rows, in their declared shapes: results 1 and 2. */
static void set_statistics(Call *c, Value *input, const int64_t *dims, uint32_t count, double eps) {
    Arg args[] = {arg_tensor(input), arg_ints(c->b, dims, count), arg_bool(true)};
    Value *mean = build_op(c->b, OP_MEAN, args, 3), *difference = build_sub(c->b, input, mean);
    args[0] = arg_tensor(build_mul(c->b, difference, difference));
    Value *variance = build_op(c->b, OP_MEAN, args, 3);
    const Arg sum[] = {arg_tensor(variance), arg_float(eps)};
    Value *scale = build_unary(c->b, OP_RSQRT, build_op(c->b, OP_ADD_SCALAR, sum, 2));
    for (uint32_t i = 1; i < 3 && build_ok(c->b); i++) {
        TensorMeta meta = result_meta(c, i);
        Value *statistic = promote_to(c, i == 1 ? mean : scale, meta.dtype);
        result_set(c, i, build_view(c->b, statistic, meta.sizes, meta.rank));
    }
}

/* Statistics of the batch itself: those of every channel over all entries of the batch, as of one
 * instance whose channels are longer. */
static void batch_statistics(Call *c, Value *input, double eps) {
    SymTable *symbols = &c->b->program->symbols;
    const Sym *channels = build_dim(c->b, input, 1), *all;
    if (!sym_is_const(channels) || !build_ok(c->b)) {
        take_fail(c, FERRY_UNSUPPORTED, "a norm over a dynamic number of channels");
        return;
    }
    bool single = sym_is_value(input->shape[0], 1);
    Value *moved = single ? input : build_transpose(c->b, input, 0, 1);
    all = shape_count(symbols, input->rank, input->shape);
    const Sym *rows[] = {build_const(c->b, 1), channels, sym_floordiv(symbols, all, channels)};
    Value *x = build_view(c->b, moved, rows, 3);
    Value *normed = group_norm(c, x, channels->value, take_vector(c, "weight", input),
                               take_vector(c, "bias", input), eps);
    normed = build_view(c->b, normed, moved->shape, moved->rank);
    result_set(c, 0, single ? normed : build_transpose(c->b, normed, 0, 1));
    if (result_count(c) > 1) set_statistics(c, x, (int64_t[]){2}, 1, eps);
}

static Value *running_statistics(Call *c, Value *input, double eps) {
    const Arg args[] = {arg_tensor(input),
                        arg_tensor(take_vector(c, "weight", input)),
                        arg_tensor(take_vector(c, "bias", input)),
                        arg_tensor(promote_to(c, take_tensor(c, "running_mean"), input->dtype)),
                        arg_tensor(promote_to(c, take_tensor(c, "running_var"), input->dtype)),
                        arg_bool(false),
                        arg_float(take_float(c, "momentum", 0.1)),
                        arg_float(eps),
                        arg_bool(false)};
    return build_op(c->b, OP_BATCH_NORM, args, 9);
}

static void translate_batch_norm(Call *c) {
    Value *input = take_tensor(c, "input");
    double eps = take_float(c, "eps", 1e-5);
    bool training = take_bool(c, "training", strstr(c->how->target, "no_stats") != NULL);
    if (!build_ok(c->b)) return;
    if (!training) {
        result_set(c, 0, running_statistics(c, input, eps));
    } else if (take_has(c, "running_mean")) {
        take_fail(c, FERRY_UNSUPPORTED,
                  "a norm that updates its statistics: export the model in eval mode");
    } else {
        batch_statistics(c, input, eps);
    }
    /* What the backward pass would need is empty in eval mode. */
    for (uint32_t i = 1; !training && i < result_count(c) && build_ok(c->b); i++) {
        TensorMeta meta = result_meta(c, i);
        result_set(c, i, build_full(c->b, meta.sizes, meta.rank, 0, meta.dtype));
    }
}

static void translate_instance_norm(Call *c) {
    Value *input = take_tensor(c, "input");
    double eps = take_float(c, "eps", 1e-5);
    if (!build_ok(c->b)) return;
    if (!take_bool(c, "use_input_stats", true)) {
        result_set(c, 0, running_statistics(c, input, eps));
        return;
    }
    const Sym *channels = build_dim(c->b, input, 1);
    if (!sym_is_const(channels)) {
        take_fail(c, FERRY_UNSUPPORTED, "a norm over a dynamic number of channels");
        return;
    }
    result_set(c, 0,
               group_norm(c, input, channels->value, take_vector(c, "weight", input),
                          take_vector(c, "bias", input), eps));
}

static void translate_group_norm(Call *c) {
    Value *input = take_tensor(c, "input");
    bool native = strstr(c->how->target, "native") != NULL;
    int64_t groups = take_int(c, native ? "group" : "num_groups", 1);
    double eps = take_float(c, "eps", 1e-5);
    if (!build_ok(c->b)) return;
    result_set(c, 0,
               group_norm(c, input, groups, take_vector(c, "weight", input),
                          take_vector(c, "bias", input), eps));
    if (!native || !build_ok(c->b)) return;
    const Sym *rows[] = {input->shape[0], build_const(c->b, groups), build_const(c->b, -1)};
    set_statistics(c, build_view(c->b, input, rows, 3), (int64_t[]){2}, 1, eps);
}

static void translate_native_layer_norm(Call *c) {
    Value *input = take_tensor(c, "input");
    const Sym *shape[FERRY_MAX_RANK];
    int64_t dims[FERRY_MAX_RANK];
    uint32_t rank = take_syms(c, "normalized_shape", shape, FERRY_MAX_RANK);
    double eps = take_float(c, "eps", 1e-5);
    if (!build_ok(c->b)) return;
    const Arg args[] = {arg_tensor(input), arg_syms(c->b, shape, rank),
                        arg_tensor(take_vector(c, "weight", input)),
                        arg_tensor(take_vector(c, "bias", input)), arg_float(eps)};
    result_set(c, 0, build_op(c->b, OP_LAYER_NORM, args, 5));
    for (uint32_t d = 0; d < rank; d++) dims[d] = (int64_t)d - rank;
    set_statistics(c, input, dims, rank, eps);
}

#define SIMPLE(target, function)                                                                   \
    { target, function, OP_COUNT, ALIAS_NEVER, NULL }

const Translation translate_norm[] = {
    SIMPLE("aten.batch_norm.default", translate_batch_norm),
    SIMPLE("aten.native_batch_norm.default", translate_batch_norm),
    SIMPLE("aten._native_batch_norm_legit_no_training.default", translate_batch_norm),
    SIMPLE("aten._native_batch_norm_legit.no_stats", translate_batch_norm),
    SIMPLE("aten.instance_norm.default", translate_instance_norm),
    SIMPLE("aten.group_norm.default", translate_group_norm),
    SIMPLE("aten.native_group_norm.default", translate_group_norm),
    SIMPLE("aten.native_layer_norm.default", translate_native_layer_norm),
    {0},
};
