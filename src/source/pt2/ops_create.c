/* Translations of operations that make tensors from sizes and numbers. */
#include "source/pt2/reader.h"

#include <math.h>
#include <string.h>

/* full, zeros, ones, new_*, *_like: the file's type of the result has the shape and dtype. */
static void fill_with(Call *c, Arg value) {
    TensorMeta meta = result_meta(c, 0);
    if (value.kind == VALUE_BOOL) value = arg_int(c->b, value.boolean);
    const Arg args[] = {arg_syms(c->b, meta.sizes, meta.rank), value, arg_dtype(meta.dtype)};
    bool is_size = meta.rank == 0 && value.kind == VALUE_INT && !sym_is_const(value.integer);
    if (!meta.dtype) take_fail(c, FERRY_UNSUPPORTED, "the result has an unsupported dtype");
    result_set(c, 0,
               is_size ? build_scalar_tensor(c->b, value.integer, meta.dtype)
                       : build_op(c->b, OP_FULL, args, 3));
}

static void translate_zeros(Call *c) {
    fill_with(c, arg_int(c->b, 0));
}

static void translate_ones(Call *c) {
    fill_with(c, arg_int(c->b, 1));
}

/* A number, or a float that is computed from sizes. */
static void fill_with_argument(Call *c, const char *name) {
    TensorMeta meta = result_meta(c, 0);
    if (!take_is_tensor(c, name)) {
        fill_with(c, take_scalar(c, name));
        return;
    }
    Value *value = promote_to(c, take_tensor(c, name), meta.dtype);
    result_set(c, 0, meta.rank ? build_expand(c->b, value, meta.sizes, meta.rank) : value);
}

static void translate_full(Call *c) {
    fill_with_argument(c, "fill_value");
}

static void translate_scalar_tensor(Call *c) {
    fill_with_argument(c, "s");
}

/* A bound of arange as an integer expression, when it is one. */
static bool whole(const Arg *bound, Call *c, const Sym **out) {
    if (bound->kind == VALUE_INT)
        *out = bound->integer;
    else if (bound->kind == VALUE_FLOAT && bound->number == floor(bound->number) &&
             fabs(bound->number) < 1e15)
        *out = build_const(c->b, (int64_t)bound->number);
    else
        return false;
    return true;
}

/* Is the end a fraction that the program computes? */
static bool ends_anywhere(Call *c) {
    return doc_get(doc_get(take_arg(c, "end"), "as_sym_float"), "as_name") != NULL;
}

/* arange over whole numbers; with a fractional start, step or end it is an affine function of one, as long as
 * its result. */
static void translate_arange(Call *c) {
    TensorMeta meta = result_meta(c, 0);
    Arg start = take_has(c, "start") ? take_scalar(c, "start") : arg_int(c->b, 0);
    Arg step = take_has(c, "step") ? take_scalar(c, "step") : arg_int(c->b, 1);
    Arg end = ends_anywhere(c) ? arg_none() : take_scalar(c, "end");
    const Sym *first, *last, *stride;
    if (whole(&start, c, &first)) start = arg_sym(first);
    if (whole(&step, c, &stride)) step = arg_sym(stride);
    bool ascends = step.kind == VALUE_INT && sym_is_const(stride) && stride->value > 0;
    if (ascends && start.kind == VALUE_INT && whole(&end, c, &last)) {
        const Arg args[] = {arg_sym(first), arg_sym(last), arg_sym(stride), arg_dtype(meta.dtype)};
        result_set(c, 0, build_op(c->b, OP_ARANGE, args, 4));
        return;
    }
    if (meta.rank != 1 || !build_ok(c->b)) return;
    Value *steps = build_arange(c->b, build_const(c->b, 0), meta.sizes[0], meta.dtype);
    const Arg product[] = {arg_tensor(steps), step};
    const Arg sum[] = {arg_tensor(build_op(c->b, OP_MUL_SCALAR, product, 2)), start};
    result_set(c, 0, build_op(c->b, OP_ADD_SCALAR, sum, 2));
}

#define SIMPLE(target, function)                                                                   \
    { target, function, OP_COUNT, ALIAS_NEVER, NULL }

const Translation translate_create[] = {
    SIMPLE("aten.zeros.default", translate_zeros),
    SIMPLE("aten.new_zeros.default", translate_zeros),
    SIMPLE("aten.zeros_like.default", translate_zeros),
    SIMPLE("aten.empty.memory_format", translate_zeros),
    SIMPLE("aten.empty_permuted.default", translate_zeros),
    SIMPLE("aten.empty_strided.default", translate_zeros),
    SIMPLE("aten.new_empty_strided.default", translate_zeros),
    SIMPLE("aten.empty_like.default", translate_zeros),
    SIMPLE("aten.new_empty.default", translate_zeros),
    SIMPLE("aten.ones.default", translate_ones),
    SIMPLE("aten.new_ones.default", translate_ones),
    SIMPLE("aten.ones_like.default", translate_ones),
    SIMPLE("aten.full.default", translate_full),
    SIMPLE("aten.new_full.default", translate_full),
    SIMPLE("aten.full_like.default", translate_full),
    SIMPLE("aten.scalar_tensor.default", translate_scalar_tensor),
    SIMPLE("aten.arange.default", translate_arange),
    SIMPLE("aten.arange.start", translate_arange),
    SIMPLE("aten.arange.start_step", translate_arange),
    {0},
};
