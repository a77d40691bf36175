/* Layers that work element by element and that ONNX has in another form. */
#include "source/openvino/reader.h"

#include <math.h>
#include <string.h>

/* The whole number or float as a scalar argument. */
static Arg scalar(Import *im, double value) {
    bool whole = value == floor(value) && fabs(value) < 9007199254740992.0;
    return whole ? arg_int(&im->b, (int64_t)value) : arg_float(value);
}

void net_read_convert(Import *im, const OnnxNode *node) {
    Retold retold;
    ferry_dtype dtype = (ferry_dtype)import_int(im, node, "destination_type", 0);
    reader_retell(node, "0", &retold);
    reader_set_int(&retold, "to", onnx_dtype(dtype));
    read_cast(im, &retold.node);
}

/* ---- division ---- */

/* The x of which `a` is x - x mod b; NULL when it is no such difference. */
static const Sym *without_rest(SymTable *symbols, const Sym *a, const Sym *b) {
    if (a->kind != SYM_SUM) return NULL;
    for (uint32_t i = 0; i < a->count; i++) {
        const Sym *part = a->operands[i];
        if (part->kind == SYM_PRODUCT && part->count == 1) part = part->operands[0];
        if (part->kind != SYM_MOD || part->operands[1] != b) continue;
        const Sym *x = part->operands[0];
        if (sym_sub(symbols, x, part) == a) return x;
    }
    return NULL;
}

/* Sizes are divided by others that are positive; (x - x mod b) / b is x / b. */
static const Sym *floor_division(SymTable *symbols, const Sym *a, const Sym *b) {
    if (b->lower < 0 || sym_is_value(b, 0)) return NULL;
    const Sym *x = without_rest(symbols, a, b);
    return sym_floordiv(symbols, x ? x : a, b);
}

void net_read_divide(Import *im, const OnnxNode *node) {
    const Known *known =
        known_binary(im, floor_division, import_known(node, 0), import_known(node, 1));
    bool floors = import_int(im, node, "m_pythondiv", 1) != 0;
    if (known && floors) {
        import_give_known(im, node, 0, known);
        return;
    }
    const Value *x = import_tensor(im, node, 0);
    if (!import_ok(im)) return;
    if (!floors || ferry_dtype_is_float(x->dtype)) {
        read_binary(im, node);
        return;
    }
    import_give(im, node, 0,
                build_binary(&im->b, OP_FLOOR_DIVIDE, import_tensor(im, node, 0),
                             import_tensor(im, node, 1)));
}

/* ---- activations ---- */

void net_read_clamp(Import *im, const OnnxNode *node) {
    Value *x = import_tensor(im, node, 0);
    Arg low = scalar(im, import_float(im, node, "min", -INFINITY));
    Arg high = scalar(im, import_float(im, node, "max", INFINITY));
    import_give(im, node, 0, build_clamp(&im->b, x, low, high));
}

void net_read_gelu(Import *im, const OnnxNode *node) {
    const char *mode = import_string(im, node, "approximation_mode", "ERF");
    bool tanh_approximation = strcmp(mode, "TANH") == 0 || strcmp(mode, "tanh") == 0;
    if (!tanh_approximation && strcmp(mode, "ERF") != 0 && strcmp(mode, "erf") != 0) {
        import_unsupported(im, "there is no approximation \"%s\"", mode);
    }
    import_give(im, node, 0, build_gelu(&im->b, import_tensor(im, node, 0), tanh_approximation));
}

/* x sigmoid(beta x), with a beta of 1 when it is not given. */
void net_read_swish(Import *im, const OnnxNode *node) {
    Builder *b = &im->b;
    Value *x = import_tensor(im, node, 0), *beta = import_tensor(im, node, 1);
    if (beta) {
        Value *gate = build_unary(b, OP_SIGMOID, build_mul(b, x, beta));
        import_give(im, node, 0, build_mul(b, x, gate));
    } else {
        import_give(im, node, 0, build_unary(b, OP_SILU, x));
    }
}

/* min(max(x + 3, 0), 6) / 6, times x for HSwish. */
void net_read_hsigmoid(Import *im, const OnnxNode *node) {
    Builder *b = &im->b;
    Value *x = import_tensor(im, node, 0);
    Value *ramp =
        build_clamp(b, build_scalar(b, OP_ADD_SCALAR, x, 3), arg_int(b, 0), arg_int(b, 6));
    Value *gate = build_scalar(b, OP_DIV_SCALAR, ramp, 6);
    import_give(im, node, 0, node->rule->op == OP_MUL ? build_mul(b, x, gate) : gate);
}

void net_read_prelu(Import *im, const OnnxNode *node) {
    Value *x = import_tensor(im, node, 0);
    Arg slope;
    if (!import_scalar(im, node, 1, &slope)) {
        import_unsupported(im, "the slope must be one constant number");
        return;
    }
    import_give(im, node, 0, import_op(im, OP_LEAKY_RELU, arg_tensor(x), slope));
}
