/* Translations of ordering, counting and searching. */
#include "source/pt2/reader.h"

#include <string.h>

static Node *topk(Call *c, Value *self, const Sym *count, uint32_t dim, bool largest) {
    const Arg args[] = {arg_tensor(self), arg_sym(count), arg_int(c->b, dim), arg_bool(largest)};
    return build_node(c->b, OP_TOPK, args, 4);
}

static void translate_topk(Call *c) {
    Value *self = take_self(c);
    uint32_t dim = take_dim(c, "dim", -1, self->rank);
    Node *node = topk(c, self, take_sym(c, "k", 1), dim, take_bool(c, "largest", true));
    for (uint32_t i = 0; node && i < 2; i++) result_set(c, i, node->outputs[i]);
}

/* sort and argsort: all of them, in order; of equal ones the first comes first. */
static void translate_sort(Call *c) {
    Value *self = take_self(c);
    uint32_t dim = take_dim(c, "dim", -1, self->rank);
    bool indices_only = strncmp(c->how->target, "aten.argsort", 12) == 0;
    if (!build_ok(c->b)) return;
    if (self->rank == 0) {
        Value *zero = build_full(c->b, NULL, 0, 0, FERRY_I64);
        result_set(c, 0, indices_only ? zero : self);
        if (!indices_only) result_set(c, 1, zero);
        return;
    }
    Node *node = topk(c, self, self->shape[dim], dim, take_bool(c, "descending", false));
    for (uint32_t i = indices_only; node && i < 2; i++)
        result_set(c, i - indices_only, node->outputs[i]);
}

/* ---- counting ---- */

/* [...x, count]: true where x is the column's number. */
static Value *matches(Call *c, Value *x, const Sym *count) {
    Value *numbers = build_arange(c->b, build_const(c->b, 0), count, x->dtype);
    return build_binary(c->b, OP_EQ, build_unsqueeze(c->b, x, -1), numbers);
}

/* How many numbers from 0 the elements of x reach, at least `least`: a symbol. */
static const Sym *count_numbers(Call *c, Value *x, double least) {
    Value *most = build_view(c->b, x, (const Sym *const[]){build_const(c->b, -1)}, 1);
    most = build_scalar(c->b, OP_ADD_SCALAR, build_reduce(c->b, OP_AMAX, most, 0, false), 1);
    most = build_clamp(c->b, promote_to(c, most, FERRY_I64), arg_int(c->b, (int64_t)least),
                       arg_none());
    TensorMeta meta = result_meta(c, 0);
    const Sym *declared = meta.rank ? meta.sizes[meta.rank - 1] : NULL;
    const Sym *symbol = fresh_symbol(c, declared);
    bind_symbol(c, symbol, most, -1);
    return symbol;
}

static void translate_one_hot(Call *c) {
    Value *self = take_self(c);
    const Sym *classes = take_sym(c, "num_classes", -1);
    if (sym_is_value(classes, -1)) classes = count_numbers(c, self, 0);
    result_set(c, 0, promote_to(c, matches(c, self, classes), FERRY_I64));
}

/* [n, count] of bool to [count]: how many, or the sum of their weights. */
static Value *sum_matches(Call *c, Value *found, Value *weights, ferry_dtype dtype) {
    found = promote_to(c, found, dtype);
    if (weights)
        found = build_mul(c->b, found, build_unsqueeze(c->b, promote_to(c, weights, dtype), 1));
    return build_reduce(c->b, OP_SUM, found, 0, false);
}

static void translate_bincount(Call *c) {
    Value *self = take_self(c), *weights = take_optional_tensor(c, "weights");
    TensorMeta meta = result_meta(c, 0);
    if (!build_ok(c->b)) return;
    const Sym *count = meta.sizes[0];
    if (!sym_is_const(count)) count = count_numbers(c, self, take_float(c, "minlength", 0));
    result_set(c, 0, sum_matches(c, matches(c, self, count), weights, meta.dtype));
}

/* Equal bins from min to max; what lies outside is not counted. When both are 0 they are the least and
 * the greatest element. */
static void translate_histc(Call *c) {
    Value *self = take_self(c);
    int64_t bins = take_int(c, "bins", 100);
    double low = take_float(c, "min", 0), high = take_float(c, "max", 0);
    ferry_dtype dtype = self->dtype;
    Value *x = build_view(c->b, self, (const Sym *const[]){build_const(c->b, -1)}, 1);
    if (low == high) {
        take_fail(c, FERRY_UNSUPPORTED, "histc without a range");
        return;
    }
    Value *inside = build_binary(c->b, OP_AND, build_scalar(c->b, OP_GE_SCALAR, x, low),
                                 build_scalar(c->b, OP_LE_SCALAR, x, high));
    Value *place = build_scalar(c->b, OP_ADD_SCALAR, promote_to(c, x, FERRY_F32), -low);
    place = build_scalar(c->b, OP_MUL_SCALAR, build_scalar(c->b, OP_DIV_SCALAR, place, high - low),
                         (double)bins);
    place = build_clamp(c->b, build_unary(c->b, OP_FLOOR, place), arg_none(),
                        arg_float((double)bins - 1));
    place = promote_to(c, place, FERRY_I64);
    Value *found = matches(c, place, build_const(c->b, bins));
    found = build_binary(c->b, OP_AND, found, build_unsqueeze(c->b, inside, 1));
    result_set(c, 0, sum_matches(c, found, NULL, dtype));
}

/* ---- searching ---- */

/* How many of the sorted boundaries are below each element, or not above it when `right`. */
static Value *count_below(Call *c, Value *boundaries, Value *x, bool right) {
    ferry_dtype dtype = promote_types(boundaries, x, NULL);
    Value *columns = promote_to(c, boundaries, dtype);
    if (columns->rank > 1) columns = build_unsqueeze(c->b, columns, -2);
    Value *below = build_binary(c->b, right ? OP_LE : OP_LT, columns,
                                build_unsqueeze(c->b, promote_to(c, x, dtype), -1));
    return build_reduce(c->b, OP_SUM, promote_to(c, below, FERRY_I64), -1, false);
}

static Value *take_searched(Call *c) {
    if (take_is_tensor(c, "self")) return take_self(c);
    return build_full(c->b, NULL, 0, take_float(c, "self", 0), FERRY_F32);
}

static void translate_bucketize(Call *c) {
    Value *found = count_below(c, take_tensor(c, "boundaries"), take_searched(c),
                               take_bool(c, "right", false));
    result_set(c, 0, promote_to(c, found, result_dtype(c)));
}

static void translate_searchsorted(Call *c) {
    Value *sorted = take_tensor(c, "sorted_sequence"), *sorter = take_optional_tensor(c, "sorter");
    bool right =
        take_bool(c, "right", false) || strcmp(take_string(c, "side", "left"), "right") == 0;
    if (sorter) sorted = build_gather(c->b, sorted, -1, sorter);
    Value *found = count_below(c, sorted, take_searched(c), right);
    result_set(c, 0, promote_to(c, found, result_dtype(c)));
}

#define SIMPLE(target, function)                                                                   \
    { target, function, OP_COUNT, ALIAS_NEVER, NULL }

const Translation translate_order[] = {
    SIMPLE("aten.topk.default", translate_topk),
    SIMPLE("aten.sort.default", translate_sort),
    SIMPLE("aten.sort.stable", translate_sort),
    SIMPLE("aten.argsort.default", translate_sort),
    SIMPLE("aten.argsort.stable", translate_sort),
    SIMPLE("aten.one_hot.default", translate_one_hot),
    SIMPLE("aten.bincount.default", translate_bincount),
    SIMPLE("aten.histc.default", translate_histc),
    SIMPLE("aten.bucketize.Tensor", translate_bucketize),
    SIMPLE("aten.bucketize.Scalar", translate_bucketize),
    SIMPLE("aten.searchsorted.Tensor", translate_searchsorted),
    SIMPLE("aten.searchsorted.Scalar", translate_searchsorted),
    {0},
};
