/* Operators that work element by element. */
#include "source/onnx/import.h"

#include <string.h>

/* ---- arithmetic ---- */

void read_unary(Import *im, const OnnxNode *node) {
    const Known *x = import_known(node, 0);
    if (node->rule->op == OP_NEG && known_is_integer(x)) {
        const Known *zero = known_one(im, x->dtype, build_const(&im->b, 0));
        const Known *negative = zero ? known_binary(im, sym_sub, zero, x) : NULL;
        if (negative) {
            import_give_known(im, node, 0, negative);
            return;
        }
    }
    import_give(im, node, 0, build_unary(&im->b, node->rule->op, import_tensor(im, node, 0)));
}

/* ONNX division of whole numbers truncates: what remains is taken away first. */
static Value *divide(Import *im, Value *x, Value *y) {
    if (!import_ok(im) || ferry_dtype_is_float(x->dtype)) {
        return build_binary(&im->b, OP_DIV, x, y);
    }
    Value *rest = build_binary(&im->b, OP_FMOD, x, y);
    return build_binary(&im->b, OP_FLOOR_DIVIDE, build_sub(&im->b, x, rest), y);
}

void read_binary(Import *im, const OnnxNode *node) {
    const Known *known = known_binary(im, known_function(node->rule->op), import_known(node, 0),
                                      import_known(node, 1));
    if (known) {
        import_give_known(im, node, 0, known);
        return;
    }
    Value *x = import_tensor(im, node, 0), *y = import_tensor(im, node, 1);
    bool division = node->rule->op == OP_DIV;
    import_give(im, node, 0,
                division ? divide(im, x, y) : build_binary(&im->b, node->rule->op, x, y));
}

/* All inputs joined by a binary operation. */
void read_variadic(Import *im, const OnnxNode *node) {
    Op op = node->rule->op;
    const Known *known = import_known(node, 0);
    for (uint32_t i = 1; i < node->input_count && known; i++) {
        known = known_binary(im, known_function(op), known, import_known(node, i));
    }
    if (known) {
        import_give_known(im, node, 0, known);
        return;
    }
    Value *result = import_tensor(im, node, 0);
    for (uint32_t i = 1; i < node->input_count && import_ok(im); i++) {
        Value *next = import_tensor(im, node, i);
        if (!next) import_bad(im, "input %u is missing", i);
        result = build_binary(&im->b, op, result, next);
    }
    import_give(im, node, 0, result);
}

/* With the sign of the dividend (fmod) or of the divisor. */
void read_mod(Import *im, const OnnxNode *node) {
    bool fmod = import_int(im, node, "fmod", 0) != 0;
    const Known *known =
        fmod ? NULL : known_binary(im, known_modulo, import_known(node, 0), import_known(node, 1));
    if (known) {
        import_give_known(im, node, 0, known);
        return;
    }
    Value *x = import_tensor(im, node, 0), *y = import_tensor(im, node, 1);
    import_give(im, node, 0, build_binary(&im->b, fmod ? OP_FMOD : OP_REMAINDER, x, y));
}

/* Constants, in the base or the exponent, become scalars. */
void read_pow(Import *im, const OnnxNode *node) {
    Value *base = import_tensor(im, node, 0), *exponent = import_tensor(im, node, 1);
    Arg scalar;
    if (!import_ok(im)) return;
    if (import_scalar(im, node, 1, &scalar) && exponent->rank <= base->rank) {
        import_give(im, node, 0, import_op(im, OP_POW_SCALAR, arg_tensor(base), scalar));
    } else if (import_scalar(im, node, 0, &scalar) && base->rank <= exponent->rank &&
               base->dtype == exponent->dtype) {
        import_give(im, node, 0, import_op(im, OP_SCALAR_POW, scalar, arg_tensor(exponent)));
    } else {
        import_give(im, node, 0,
                    build_binary(&im->b, OP_POW, base, build_to(&im->b, exponent, base->dtype)));
    }
}

/* Constant bounds are arguments of clamp, others join by maximum and minimum. */
void read_clip(Import *im, const OnnxNode *node) {
    Value *x = import_tensor(im, node, 0);
    Arg bounds[2] = {arg_none(), arg_none()};
    bool constant = true;
    for (uint32_t i = 1; i < 3; i++) {
        if (import_input(node, i)) constant &= import_scalar(im, node, i, &bounds[i - 1]);
    }
    if (constant) {
        import_give(im, node, 0, import_op(im, OP_CLAMP, arg_tensor(x), bounds[0], bounds[1]));
        return;
    }
    if (import_input(node, 1)) x = build_binary(&im->b, OP_MAXIMUM, x, import_tensor(im, node, 1));
    if (import_input(node, 2)) x = build_binary(&im->b, OP_MINIMUM, x, import_tensor(im, node, 2));
    import_give(im, node, 0, x);
}

/* ---- activations ---- */

void read_alpha(Import *im, const OnnxNode *node) {
    double otherwise = node->rule->op == OP_ELU ? 1 : 0.01;
    const OnnxAttr *attr = import_attr(im, node, "alpha", ONNX_FLOAT);
    Arg alpha = arg_float(attr ? attr->number : otherwise);
    Value *x = import_tensor(im, node, 0);
    import_give(im, node, 0, import_op(im, node->rule->op, arg_tensor(x), alpha));
}

void read_gelu(Import *im, const OnnxNode *node) {
    const char *approximate = import_string(im, node, "approximate", "none");
    bool tanh_approximation = strcmp(approximate, "tanh") == 0;
    if (!tanh_approximation && strcmp(approximate, "none") != 0) {
        import_unsupported(im, "there is no approximation \"%s\"", approximate);
    }
    import_give(im, node, 0, build_gelu(&im->b, import_tensor(im, node, 0), tanh_approximation));
}

void read_softplus(Import *im, const OnnxNode *node) {
    Value *x = import_tensor(im, node, 0);
    import_give(im, node, 0, import_op(im, OP_SOFTPLUS, arg_tensor(x)));
}

/* ---- logic ---- */

static bool require_dtype(Import *im, const Value *value, bool is_bool) {
    bool fits = is_bool ? value->dtype == FERRY_BOOL
                        : value->dtype != FERRY_BOOL && !ferry_dtype_is_float(value->dtype);
    return fits || import_bad(im, "expected %s, found %s", is_bool ? "bool" : "whole numbers",
                              ferry_dtype_name(value->dtype));
}

static void read_logic(Import *im, const OnnxNode *node, bool is_bool) {
    Value *x = import_tensor(im, node, 0), *y = import_tensor(im, node, 1);
    if (!import_ok(im) || !require_dtype(im, x, is_bool)) return;
    import_give(im, node, 0, build_binary(&im->b, node->rule->op, x, y));
}

void read_logical(Import *im, const OnnxNode *node) {
    read_logic(im, node, true);
}

void read_bitwise(Import *im, const OnnxNode *node) {
    read_logic(im, node, false);
}

static void read_negation(Import *im, const OnnxNode *node, bool is_bool) {
    Value *x = import_tensor(im, node, 0);
    if (!import_ok(im) || !require_dtype(im, x, is_bool)) return;
    import_give(im, node, 0, build_unary(&im->b, OP_NOT, x));
}

void read_not(Import *im, const OnnxNode *node) {
    read_negation(im, node, true);
}

void read_bitwise_not(Import *im, const OnnxNode *node) {
    read_negation(im, node, false);
}

void read_is_nan(Import *im, const OnnxNode *node) {
    Value *x = import_tensor(im, node, 0);
    import_give(im, node, 0, build_binary(&im->b, OP_NE, x, x));
}

/* A choice that is known between numbers that are. */
static const Known *choose(Import *im, const Known *condition, const Known *x, const Known *y) {
    if (!condition || !x || !y || x->dtype != y->dtype) return NULL;
    if (condition->dtype != FERRY_BOOL) return NULL;
    uint32_t count = condition->count;
    if ((x->count != count && x->count != 1) || (y->count != count && y->count != 1)) return NULL;
    bool is_scalar = condition->is_scalar && x->is_scalar && y->is_scalar;
    Known *result = known_make(im, x->dtype, is_scalar, count);
    for (uint32_t i = 0; result && i < count; i++) {
        const Known *chosen = sym_is_value(condition->items[i], 1) ? x : y;
        result->items[i] = chosen->items[chosen->count == 1 ? 0 : i];
    }
    return result;
}

void read_where(Import *im, const OnnxNode *node) {
    const Known *known =
        choose(im, import_known(node, 0), import_known(node, 1), import_known(node, 2));
    if (known) {
        import_give_known(im, node, 0, known);
        return;
    }
    Value *condition = import_tensor(im, node, 0), *x = import_tensor(im, node, 1);
    import_give(im, node, 0, build_where(&im->b, condition, x, import_tensor(im, node, 2)));
}

/* ---- conversion ---- */

static void cast(Import *im, const OnnxNode *node, ferry_dtype dtype) {
    if (ferry_dtype_size(dtype) == 1 && ferry_dtype_is_float(dtype)) {
        import_unsupported(im, "a conversion to %s", ferry_dtype_name(dtype));
    }
    const Known *known = import_known(node, 0);
    known = known && !ferry_dtype_is_float(known->dtype) ? known_cast(im, known, dtype) : NULL;
    if (known)
        import_give_known(im, node, 0, known);
    else
        import_give(im, node, 0, build_to(&im->b, import_tensor(im, node, 0), dtype));
}

void read_cast(Import *im, const OnnxNode *node) {
    int64_t number = import_int(im, node, "to", 0);
    ferry_dtype dtype = onnx_dtype_of(number);
    if (!dtype) {
        import_unsupported(im, "a conversion to the ONNX element type %lld", (long long)number);
        return;
    }
    cast(im, node, dtype);
}

void read_cast_like(Import *im, const OnnxNode *node) {
    const Value *like = import_tensor(im, node, 1);
    if (import_ok(im)) cast(im, node, like->dtype);
}
