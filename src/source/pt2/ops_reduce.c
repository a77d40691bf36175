/* Translations of selections and reductions. */
#include "source/pt2/reader.h"

#include <string.h>

static void translate_embedding(Call *c) {
    result_set(c, 0, build_embedding(c->b, take_tensor(c, "weight"), take_tensor(c, "indices")));
}

static void translate_index_select(Call *c) {
    Value *self = take_tensor(c, "self");
    const Arg args[] = {arg_tensor(self), arg_int(c->b, take_dim(c, "dim", 0, self->rank)),
                        arg_tensor(take_tensor(c, "index"))};
    result_set(c, 0, build_op(c->b, OP_INDEX_SELECT, args, 3));
}

static void translate_gather(Call *c) {
    Value *self = take_tensor(c, "self");
    uint32_t dim = take_dim(c, "dim", 0, self->rank);
    result_set(c, 0, build_gather(c->b, self, (int)dim, take_tensor(c, "index")));
}

/* sum, mean, amax, amin over a list of dimensions; none means all of them. */
static void translate_reduction(Call *c) {
    Value *self = take_tensor(c, "self");
    int64_t dims[FERRY_MAX_RANK];
    ferry_dtype dtype = result_dtype(c);
    uint32_t count = take_has(c, "dim") ? take_ints(c, "dim", dims, FERRY_MAX_RANK) : 0;
    if (!build_ok(c->b)) return;
    if (count == 0) {
        for (count = 0; count < self->rank; count++) dims[count] = count;
    }
    if (self->rank == 0) {
        result_set(c, 0, promote_to(c, self, dtype));
        return;
    }
    const Arg args[] = {arg_tensor(promote_to(c, self, dtype)), arg_ints(c->b, dims, count),
                        arg_bool(take_bool(c, "keepdim", false))};
    result_set(c, 0, promote_to(c, build_op(c->b, c->how->op, args, 3), dtype));
}

static void translate_any(Call *c) {
    Value *x = promote_to(c, take_tensor(c, "self"), FERRY_BOOL);
    bool all =
        strncmp(c->how->target, "aten.all", 8) == 0 || strstr(c->how->target, "_is_all_true");
    if (all) x = build_unary(c->b, OP_NOT, x);
    if (take_has(c, "dim")) {
        uint32_t dim = take_dim(c, "dim", 0, x->rank);
        x = build_reduce(c->b, OP_ANY, x, (int)dim, take_bool(c, "keepdim", false));
    } else {
        while (build_ok(c->b) && x->rank > 0) x = build_reduce(c->b, OP_ANY, x, -1, false);
    }
    result_set(c, 0, all ? build_unary(c->b, OP_NOT, x) : x);
}

static void translate_argmax(Call *c) {
    Value *self = take_tensor(c, "self");
    bool keepdim = take_bool(c, "keepdim", false);
    if (!take_has(c, "dim")) {
        self = build_view(c->b, self, (const Sym *const[]){build_const(c->b, -1)}, 1);
        keepdim = false;
    }
    if (strncmp(c->how->target, "aten.argmin", 11) == 0) self = build_unary(c->b, OP_NEG, self);
    uint32_t dim = take_dim(c, "dim", 0, self->rank);
    result_set(c, 0, build_reduce(c->b, OP_ARGMAX, self, (int)dim, keepdim));
}

/* max and min over one dimension give values and where they are. */
static void translate_extremum_dim(Call *c) {
    Value *self = take_tensor(c, "self");
    uint32_t dim = take_dim(c, "dim", 0, self->rank);
    bool keepdim = take_bool(c, "keepdim", false), minimum = c->how->op == OP_AMIN;
    result_set(c, 0, build_reduce(c->b, c->how->op, self, (int)dim, keepdim));
    if (minimum) self = build_unary(c->b, OP_NEG, self);
    result_set(c, 1, build_reduce(c->b, OP_ARGMAX, self, (int)dim, keepdim));
}

/* Sums of integers are int64, whatever the integers are. */
static void translate_cumsum(Call *c) {
    Value *self = take_tensor(c, "self");
    if (ferry_dtype_is_float(self->dtype) || ferry_dtype_is_float(result_dtype(c)))
        self = promote_to(c, self, result_dtype(c));
    Value *sums = build_cumsum(c->b, self, (int)take_dim(c, "dim", 0, self->rank));
    result_set(c, 0, promote_to(c, sums, result_dtype(c)));
}

static void translate_softmax(Call *c) {
    Value *self = promote_to(c, take_tensor(c, "self"), result_dtype(c));
    Value *result = build_softmax(c->b, self, (int)take_dim(c, "dim", 0, self->rank));
    bool logarithm = strstr(c->how->target, "log_softmax") != NULL;
    result_set(c, 0, logarithm ? build_unary(c->b, OP_LOG, result) : result);
}

#define SIMPLE(target, function)                                                                   \
    { target, function, OP_COUNT, ALIAS_NEVER, NULL }
#define REDUCTION(target, op)                                                                      \
    { target, translate_reduction, op, ALIAS_NEVER, NULL }

const Translation translate_reduce[] = {
    SIMPLE("aten.embedding.default", translate_embedding),
    SIMPLE("aten.index_select.default", translate_index_select),
    SIMPLE("aten.gather.default", translate_gather),
    REDUCTION("aten.sum.default", OP_SUM),
    REDUCTION("aten.sum.dim_IntList", OP_SUM),
    REDUCTION("aten.mean.default", OP_MEAN),
    REDUCTION("aten.mean.dim", OP_MEAN),
    REDUCTION("aten.amax.default", OP_AMAX),
    REDUCTION("aten.amin.default", OP_AMIN),
    REDUCTION("aten.max.default", OP_AMAX),
    REDUCTION("aten.min.default", OP_AMIN),
    {"aten.max.dim", translate_extremum_dim, OP_AMAX, ALIAS_NEVER, NULL},
    {"aten.min.dim", translate_extremum_dim, OP_AMIN, ALIAS_NEVER, NULL},
    SIMPLE("aten.any.dim", translate_any),
    SIMPLE("aten.any.default", translate_any),
    SIMPLE("aten.all.dim", translate_any),
    SIMPLE("aten.all.default", translate_any),
    SIMPLE("aten._is_all_true.default", translate_any),
    SIMPLE("aten.argmax.default", translate_argmax),
    SIMPLE("aten.argmin.default", translate_argmax),
    SIMPLE("aten.cumsum.default", translate_cumsum),
    SIMPLE("aten.softmax.int", translate_softmax),
    SIMPLE("aten._softmax.default", translate_softmax),
    SIMPLE("aten.log_softmax.int", translate_softmax),
    SIMPLE("aten._log_softmax.default", translate_softmax),
    {0},
};
