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
    int64_t dims[FERRY_MAX_RANK];
    uint32_t rank = x->rank, count = take_has(c, "dim") ? take_ints(c, "dim", dims, rank) : 0;
    bool keepdim = take_bool(c, "keepdim", false);
    for (uint32_t d = rank; d-- > 0;) { /* from the last one on: the others keep their places */
        bool chosen = count == 0;
        for (uint32_t i = 0; i < count; i++)
            chosen |= dims[i] == (int64_t)d || dims[i] + rank == (int64_t)d;
        if (chosen) x = build_reduce(c->b, OP_ANY, x, (int)d, keepdim);
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
    result_set(c, 0, build_softmax(c->b, self, (int)take_dim(c, "dim", 0, self->rank)));
}

/* x - max - log sum exp(x - max): finite where the softmax itself would be 0. */
static void translate_log_softmax(Call *c) {
    ferry_dtype dtype = result_dtype(c);
    Value *self = promote_to(c, take_tensor(c, "self"), dtype == FERRY_F64 ? dtype : FERRY_F32);
    int dim = (int)take_dim(c, "dim", 0, self->rank);
    Value *shifted = build_sub(c->b, self, build_reduce(c->b, OP_AMAX, self, dim, true));
    Value *total = build_reduce(c->b, OP_SUM, build_unary(c->b, OP_EXP, shifted), dim, true);
    Value *result = build_sub(c->b, shifted, build_unary(c->b, OP_LOG, total));
    result_set(c, 0, promote_to(c, result, dtype));
}

/* reduction 0: none, 1: mean, 2: sum */
static void translate_mse_loss(Call *c) {
    ferry_dtype dtype = result_dtype(c);
    int64_t reduction = take_int(c, "reduction", 1);
    Value *error = build_sub(c->b, promote_to(c, take_tensor(c, "self"), dtype),
                             promote_to(c, take_tensor(c, "target"), dtype));
    Value *squares = build_mul(c->b, error, error);
    if (reduction != 0) {
        squares = build_view(c->b, squares, (const Sym *const[]){build_const(c->b, -1)}, 1);
        squares = build_reduce(c->b, reduction == 1 ? OP_MEAN : OP_SUM, squares, 0, false);
    }
    result_set(c, 0, squares);
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
    SIMPLE("aten.any.dims", translate_any),
    SIMPLE("aten.all.dims", translate_any),
    SIMPLE("aten.any.default", translate_any),
    SIMPLE("aten.all.dim", translate_any),
    SIMPLE("aten.all.default", translate_any),
    SIMPLE("aten._is_all_true.default", translate_any),
    SIMPLE("aten.argmax.default", translate_argmax),
    SIMPLE("aten.argmin.default", translate_argmax),
    SIMPLE("aten.mse_loss.default", translate_mse_loss),
    SIMPLE("aten.cumsum.default", translate_cumsum),
    SIMPLE("aten.softmax.int", translate_softmax),
    SIMPLE("aten._softmax.default", translate_softmax),
    SIMPLE("aten.log_softmax.int", translate_log_softmax),
    SIMPLE("aten._log_softmax.default", translate_log_softmax),
    {0},
};
