/* Lowerings of operations that work element by element. */
#include "target/onnx/lower.h"

void lower_unary(Onnx *o, const Node *node) {
    const char *inputs[] = {lower_input(o, node, 0)};
    RESULT_PLAIN(o, lower_op_type(node), inputs);
}

void lower_binary(Onnx *o, const Node *node) {
    const char *inputs[] = {lower_input(o, node, 0), lower_input(o, node, 1)};
    RESULT_PLAIN(o, lower_op_type(node), inputs);
}

void lower_scalar(Onnx *o, const Node *node) {
    ferry_dtype dtype = lower_tensor(node, 0)->dtype;
    const char *inputs[] = {lower_input(o, node, 0), onnx_scalar(o, &node->args[1], dtype)};
    RESULT_PLAIN(o, lower_op_type(node), inputs);
}

void lower_scalar_pow(Onnx *o, const Node *node) {
    ferry_dtype dtype = lower_tensor(node, 1)->dtype;
    const char *inputs[] = {onnx_scalar(o, &node->args[0], dtype), lower_input(o, node, 1)};
    RESULT_PLAIN(o, "Pow", inputs);
}

/* Mod with the sign of the dividend. */
static const char *fmod_of(Onnx *o, const char *left, const char *right, const Value *out) {
    const char *inputs[] = {left, right};
    const Attr fmod = ATTR_I("fmod", 1);
    return onnx_helper(o, "Mod", inputs, 2, &fmod, 1, out->dtype, out->rank, out->shape);
}

void lower_fmod(Onnx *o, const Node *node) {
    const char *inputs[] = {lower_input(o, node, 0), lower_input(o, node, 1)};
    const Attr attrs[] = {ATTR_I("fmod", 1)};
    RESULT(o, "Mod", inputs, attrs);
}

/* With the sign of the divisor; of floats by two steps, as ONNX has this form for integers only. */
void lower_remainder(Onnx *o, const Node *node) {
    const Value *out = node->outputs[0];
    const char *inputs[] = {lower_input(o, node, 0), lower_input(o, node, 1)};
    const Attr plain[] = {ATTR_I("fmod", 0)}, attrs[] = {ATTR_I("fmod", 1)};
    if (!ferry_dtype_is_float(out->dtype)) {
        RESULT(o, "Mod", inputs, plain);
        return;
    }
    const char *pair[] = {fmod_of(o, inputs[0], inputs[1], out), inputs[1]};
    inputs[0] = onnx_helper(o, "Add", pair, 2, NULL, 0, out->dtype, out->rank, out->shape);
    RESULT(o, "Mod", inputs, attrs);
}

/* ONNX division of integers truncates: what remains is taken away first. */
void lower_floor_divide(Onnx *o, const Node *node) {
    const Value *out = node->outputs[0];
    const char *inputs[] = {lower_input(o, node, 0), lower_input(o, node, 1)};
    bool whole = !ferry_dtype_is_float(out->dtype);
    if (whole) {
        const Attr plain = ATTR_I("fmod", 0);
        const char *pair[] = {inputs[0], onnx_helper(o, "Mod", inputs, 2, &plain, 1, out->dtype,
                                                     out->rank, out->shape)};
        inputs[0] = onnx_helper(o, "Sub", pair, 2, NULL, 0, out->dtype, out->rank, out->shape);
        RESULT_PLAIN(o, "Div", inputs);
        return;
    }
    const char *quotient =
        onnx_helper(o, "Div", inputs, 2, NULL, 0, out->dtype, out->rank, out->shape);
    onnx_result(o, "Floor", &quotient, 1, NULL, 0);
}

/* The negation of a comparison that ONNX lacks. */
static void not_of(Onnx *o, const Node *node, const char *type, const char *left,
                   const char *right) {
    const Value *out = node->outputs[0];
    const char *inputs[] = {left, right};
    const char *equal[] = {
        onnx_helper(o, type, inputs, 2, NULL, 0, FERRY_BOOL, out->rank, out->shape)};
    RESULT_PLAIN(o, "Not", equal);
}

void lower_ne(Onnx *o, const Node *node) {
    not_of(o, node, "Equal", lower_input(o, node, 0), lower_input(o, node, 1));
}

void lower_ne_scalar(Onnx *o, const Node *node) {
    const char *scalar = onnx_scalar(o, &node->args[1], lower_tensor(node, 0)->dtype);
    not_of(o, node, "Equal", lower_input(o, node, 0), scalar);
}

void lower_logic(Onnx *o, const Node *node) {
    const char *inputs[] = {lower_input(o, node, 0), lower_input(o, node, 1)};
    bool logical = lower_tensor(node, 0)->dtype == FERRY_BOOL;
    const char *bitwise = node->op == OP_AND ? "BitwiseAnd" : "BitwiseOr";
    RESULT_PLAIN(o, logical ? lower_op_type(node) : bitwise, inputs);
}

void lower_not(Onnx *o, const Node *node) {
    const char *inputs[] = {lower_input(o, node, 0)};
    RESULT_PLAIN(o, lower_tensor(node, 0)->dtype == FERRY_BOOL ? "Not" : "BitwiseNot", inputs);
}

/* ONNX Runtime has no Where on bool branches: (c and x) or (not c and y). */
void lower_where(Onnx *o, const Node *node) {
    const char *inputs[] = {lower_input(o, node, 0), lower_input(o, node, 1),
                            lower_input(o, node, 2)};
    const Value *condition = lower_tensor(node, 0), *out = node->outputs[0];
    if (out->dtype != FERRY_BOOL) {
        RESULT_PLAIN(o, "Where", inputs);
        return;
    }
    const char *refused =
        onnx_helper(o, "Not", inputs, 1, NULL, 0, FERRY_BOOL, condition->rank, condition->shape);
    const char *sides[2];
    for (int i = 0; i < 2; i++) {
        const char *pair[] = {i ? refused : inputs[0], inputs[1 + i]};
        sides[i] = onnx_helper(o, "And", pair, 2, NULL, 0, FERRY_BOOL, out->rank, out->shape);
    }
    RESULT_PLAIN(o, "Or", sides);
}

void lower_to(Onnx *o, const Node *node) {
    const char *inputs[] = {lower_input(o, node, 0)};
    const Attr attrs[] = {ATTR_I("to", onnx_dtype(node->args[1].dtype))};
    RESULT(o, "Cast", inputs, attrs);
}

void lower_clamp(Onnx *o, const Node *node) {
    ferry_dtype dtype = lower_tensor(node, 0)->dtype;
    const char *inputs[3] = {lower_input(o, node, 0), NULL, NULL};
    for (uint32_t i = 1; i < 3; i++) {
        if (node->args[i].kind != VALUE_NONE) inputs[i] = onnx_scalar(o, &node->args[i], dtype);
    }
    onnx_result(o, "Clip", inputs, inputs[2] ? 3 : 2, NULL, 0);
}

void lower_alpha(Onnx *o, const Node *node) {
    const char *inputs[] = {lower_input(o, node, 0)};
    const Attr attrs[] = {ATTR_F("alpha", lower_number(node, 1))};
    RESULT(o, lower_op_type(node), inputs, attrs);
}

/* Softplus(beta x) / beta; beyond the threshold both forms agree to the last bit of float32. */
void lower_softplus(Onnx *o, const Node *node) {
    const Value *x = lower_tensor(node, 0);
    double beta = lower_number(node, 1);
    const char *inputs[] = {lower_input(o, node, 0)};
    if (beta == 1) {
        RESULT_PLAIN(o, "Softplus", inputs);
        return;
    }
    const char *factor = onnx_number(o, beta, x->dtype);
    const char *pair[] = {inputs[0], factor};
    const char *scaled = onnx_helper(o, "Mul", pair, 2, NULL, 0, x->dtype, x->rank, x->shape);
    const char *soft = onnx_helper(o, "Softplus", &scaled, 1, NULL, 0, x->dtype, x->rank, x->shape);
    const char *quotient[] = {soft, factor};
    RESULT_PLAIN(o, "Div", quotient);
}

void lower_gelu(Onnx *o, const Node *node) {
    const char *inputs[] = {lower_input(o, node, 0)};
    const Attr attrs[] = {ATTR_S("approximate", node->args[1].string)};
    RESULT(o, "Gelu", inputs, attrs);
}
