/* Lowerings: what each operation of a program becomes in ONNX, one table row each.
 *
 * Most operations are one node of the same shape; those rows name the ONNX operator and a shared
 * function. The rest have functions of their own. Operators whose meaning depends on the opset say in
 * `since` from which one the row holds; below it, or without a row, the operation is decomposed. */
#include "base/error.h"
#include "target/onnx/emit.h"

#include <string.h>

typedef struct Lowering {
    void (*lower)(Onnx *o, const Node *node);
    const char *op_type; /* for the shared functions */
    int since;           /* lowest opset; 0: every supported one */
} Lowering;

static const Lowering lowerings[OP_COUNT];

static const Value *tensor_arg(const Node *node, uint32_t i) {
    return node->args[i].kind == VALUE_TENSOR ? node->args[i].tensor : NULL;
}

/* The name of a tensor argument; NULL when it is absent. */
static const char *input(const Onnx *o, const Node *node, uint32_t i) {
    const Value *value = tensor_arg(node, i);
    return value ? onnx_name(o, value) : NULL;
}

static int64_t int_arg(const Node *node, uint32_t i) {
    return node->args[i].integer->value;
}

/* A dimension argument counted from the front. */
static int64_t dim_arg(const Node *node, uint32_t i, uint32_t rank) {
    int64_t dim = int_arg(node, i);
    return dim < 0 ? dim + rank : dim;
}

static const char *op_type(const Node *node) {
    return lowerings[node->op].op_type;
}

#define RESULT(o, type, inputs, attrs)                                                             \
    onnx_result(o, type, inputs, sizeof(inputs) / sizeof *(inputs), attrs,                         \
                sizeof(attrs) / sizeof *(attrs))
#define RESULT_PLAIN(o, type, inputs)                                                              \
    onnx_result(o, type, inputs, sizeof(inputs) / sizeof *(inputs), NULL, 0)

/* ---- element by element ---- */

static void lower_unary(Onnx *o, const Node *node) {
    const char *inputs[] = {input(o, node, 0)};
    RESULT_PLAIN(o, op_type(node), inputs);
}

static void lower_binary(Onnx *o, const Node *node) {
    const char *inputs[] = {input(o, node, 0), input(o, node, 1)};
    RESULT_PLAIN(o, op_type(node), inputs);
}

static void lower_scalar(Onnx *o, const Node *node) {
    ferry_dtype dtype = tensor_arg(node, 0)->dtype;
    const char *inputs[] = {input(o, node, 0), onnx_scalar(o, &node->args[1], dtype)};
    RESULT_PLAIN(o, op_type(node), inputs);
}

static void lower_scalar_pow(Onnx *o, const Node *node) {
    ferry_dtype dtype = tensor_arg(node, 1)->dtype;
    const char *inputs[] = {onnx_scalar(o, &node->args[0], dtype), input(o, node, 1)};
    RESULT_PLAIN(o, "Pow", inputs);
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

static void lower_ne(Onnx *o, const Node *node) {
    not_of(o, node, "Equal", input(o, node, 0), input(o, node, 1));
}

static void lower_ne_scalar(Onnx *o, const Node *node) {
    const char *scalar = onnx_scalar(o, &node->args[1], tensor_arg(node, 0)->dtype);
    not_of(o, node, "Equal", input(o, node, 0), scalar);
}

static void lower_logic(Onnx *o, const Node *node) {
    const char *inputs[] = {input(o, node, 0), input(o, node, 1)};
    bool logical = tensor_arg(node, 0)->dtype == FERRY_BOOL;
    const char *bitwise = node->op == OP_AND ? "BitwiseAnd" : "BitwiseOr";
    RESULT_PLAIN(o, logical ? op_type(node) : bitwise, inputs);
}

static void lower_not(Onnx *o, const Node *node) {
    const char *inputs[] = {input(o, node, 0)};
    RESULT_PLAIN(o, tensor_arg(node, 0)->dtype == FERRY_BOOL ? "Not" : "BitwiseNot", inputs);
}

/* ONNX Runtime has no Where on bool branches: (c and x) or (not c and y). */
static void lower_where(Onnx *o, const Node *node) {
    const char *inputs[] = {input(o, node, 0), input(o, node, 1), input(o, node, 2)};
    const Value *condition = tensor_arg(node, 0), *out = node->outputs[0];
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

static void lower_to(Onnx *o, const Node *node) {
    const char *inputs[] = {input(o, node, 0)};
    const Attr attrs[] = {ATTR_I("to", onnx_dtype(node->args[1].dtype))};
    RESULT(o, "Cast", inputs, attrs);
}

static void lower_clamp(Onnx *o, const Node *node) {
    ferry_dtype dtype = tensor_arg(node, 0)->dtype;
    const char *inputs[3] = {input(o, node, 0), NULL, NULL};
    for (uint32_t i = 1; i < 3; i++) {
        if (node->args[i].kind != VALUE_NONE) inputs[i] = onnx_scalar(o, &node->args[i], dtype);
    }
    onnx_result(o, "Clip", inputs, inputs[2] ? 3 : 2, NULL, 0);
}

static double number_arg(const Node *node, uint32_t i) {
    const Arg *arg = &node->args[i];
    return arg->kind == VALUE_FLOAT ? arg->number : (double)arg->integer->value;
}

static void lower_alpha(Onnx *o, const Node *node) {
    const char *inputs[] = {input(o, node, 0)};
    const Attr attrs[] = {ATTR_F("alpha", number_arg(node, 1))};
    RESULT(o, op_type(node), inputs, attrs);
}

/* Softplus(beta x) / beta; beyond the threshold both forms agree to the last bit of float32. */
static void lower_softplus(Onnx *o, const Node *node) {
    const Value *x = tensor_arg(node, 0);
    double beta = number_arg(node, 1);
    const char *inputs[] = {input(o, node, 0)};
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

static void lower_gelu(Onnx *o, const Node *node) {
    const char *inputs[] = {input(o, node, 0)};
    const Attr attrs[] = {ATTR_S("approximate", node->args[1].string)};
    RESULT(o, "Gelu", inputs, attrs);
}

/* ---- shape ---- */

/* A constant target for Reshape, when the sizes allow one: 0 copies the input's size at the same
 * place, and one -1 is worked out. */
static bool reshape_target(const Value *from, const Value *to, int64_t *target) {
    uint32_t unknown = 0;
    for (uint32_t d = 0; d < to->rank; d++) {
        if (sym_is_const(to->shape[d])) {
            target[d] = to->shape[d]->value;
            if (target[d] == 0) return false;
        } else if (d < from->rank && from->shape[d] == to->shape[d]) {
            target[d] = 0;
        } else {
            target[d] = -1;
            unknown++;
        }
    }
    return unknown <= 1;
}

static void lower_view(Onnx *o, const Node *node) {
    const Value *from = tensor_arg(node, 0), *to = node->outputs[0];
    int64_t target[FERRY_MAX_RANK];
    bool constant = reshape_target(from, to, target);
    const char *inputs[] = {input(o, node, 0), constant ? onnx_ints(o, target, to->rank)
                                                        : onnx_shape(o, to->shape, to->rank)};
    const Attr attrs[] = {ATTR_I("allowzero", !constant)};
    RESULT(o, "Reshape", inputs, attrs);
}

static void lower_permute(Onnx *o, const Node *node) {
    int64_t dims[FERRY_MAX_RANK];
    const Arg *arg = &node->args[1];
    for (uint32_t d = 0; d < arg->integers.count; d++) dims[d] = arg->integers.items[d]->value;
    const char *inputs[] = {input(o, node, 0)};
    const Attr attrs[] = {ATTR_IS("perm", dims, arg->integers.count)};
    RESULT(o, "Transpose", inputs, attrs);
}

static void lower_axis_input(Onnx *o, const Node *node) {
    uint32_t rank = node->op == OP_UNSQUEEZE ? node->outputs[0]->rank : tensor_arg(node, 0)->rank;
    const int64_t axis = dim_arg(node, 1, rank);
    const char *inputs[] = {input(o, node, 0), onnx_ints(o, &axis, 1)};
    RESULT_PLAIN(o, op_type(node), inputs);
}

static void lower_expand(Onnx *o, const Node *node) {
    const Value *out = node->outputs[0];
    const char *inputs[] = {input(o, node, 0), onnx_shape(o, out->shape, out->rank)};
    RESULT_PLAIN(o, "Expand", inputs);
}

static void lower_cat(Onnx *o, const Node *node) {
    const Arg *parts = &node->args[0];
    const Attr axis = ATTR_I("axis", dim_arg(node, 1, node->outputs[0]->rank));
    const char **inputs = ARENA_ARRAY(&o->arena, const char *, parts->tensors.count);
    if (!inputs) return;
    for (uint32_t i = 0; i < parts->tensors.count; i++) {
        inputs[i] = onnx_name(o, parts->tensors.items[i]);
    }
    onnx_result(o, "Concat", inputs, parts->tensors.count, &axis, 1);
}

static void lower_slice(Onnx *o, const Node *node) {
    const int64_t axis = dim_arg(node, 1, tensor_arg(node, 0)->rank);
    const char *inputs[] = {input(o, node, 0), onnx_size(o, node->args[2].integer),
                            onnx_size(o, node->args[3].integer), onnx_ints(o, &axis, 1),
                            onnx_size(o, node->args[4].integer)};
    onnx_result(o, "Slice", inputs, sym_is_value(node->args[4].integer, 1) ? 4 : 5, NULL, 0);
}

static void lower_select(Onnx *o, const Node *node) {
    const Attr attrs[] = {ATTR_I("axis", dim_arg(node, 1, tensor_arg(node, 0)->rank))};
    const char *inputs[] = {input(o, node, 0), onnx_size_scalar(o, node->args[2].integer)};
    RESULT(o, "Gather", inputs, attrs);
}

static void lower_split(Onnx *o, const Node *node) {
    const Arg *sizes = &node->args[1];
    const char *outputs[64];
    const Attr axis = ATTR_I("axis", dim_arg(node, 2, tensor_arg(node, 0)->rank));
    const char *inputs[] = {input(o, node, 0),
                            onnx_shape(o, sizes->integers.items, sizes->integers.count)};
    for (uint32_t i = 0; i < node->output_count; i++) outputs[i] = onnx_name(o, node->outputs[i]);
    onnx_node(o, "Split", inputs, 2, outputs, node->output_count, &axis, 1);
}

/* ---- selection ---- */

static void lower_embedding(Onnx *o, const Node *node) {
    const char *inputs[] = {input(o, node, 0), input(o, node, 1)};
    const Attr attrs[] = {ATTR_I("axis", 0)};
    RESULT(o, "Gather", inputs, attrs);
}

static void lower_gather(Onnx *o, const Node *node) {
    const char *inputs[] = {input(o, node, 0), input(o, node, 2)};
    const Attr attrs[] = {ATTR_I("axis", dim_arg(node, 1, tensor_arg(node, 0)->rank))};
    RESULT(o, op_type(node), inputs, attrs);
}

/* ---- reduction ---- */

static void lower_reduce(Onnx *o, const Node *node) {
    const Value *x = tensor_arg(node, 0), *out = node->outputs[0];
    int64_t dims[FERRY_MAX_RANK];
    const Arg *arg = &node->args[1];
    for (uint32_t d = 0; d < arg->integers.count; d++) dims[d] = arg->integers.items[d]->value;
    const char *name = input(o, node, 0);
    if (x->dtype != out->dtype) {
        const Attr to = ATTR_I("to", onnx_dtype(out->dtype));
        name = onnx_helper(o, "Cast", &name, 1, &to, 1, out->dtype, x->rank, x->shape);
    }
    const char *inputs[] = {name, onnx_ints(o, dims, arg->integers.count)};
    const Attr keepdims = ATTR_I("keepdims", node->args[2].boolean);
    onnx_result(o, op_type(node), inputs, arg->integers.count ? 2 : 1, &keepdims, 1);
}

/* any: the maximum as integers. */
static void lower_any(Onnx *o, const Node *node) {
    const Value *x = tensor_arg(node, 0), *out = node->outputs[0];
    const int64_t axis = dim_arg(node, 1, x->rank);
    const char *name = input(o, node, 0);
    const Attr to_int = ATTR_I("to", onnx_dtype(FERRY_I32)),
               to_bool = ATTR_I("to", onnx_dtype(FERRY_BOOL));
    const Attr keepdims = ATTR_I("keepdims", node->args[2].boolean);
    name = onnx_helper(o, "Cast", &name, 1, &to_int, 1, FERRY_I32, x->rank, x->shape);
    const char *inputs[] = {name, onnx_ints(o, &axis, 1)};
    name = onnx_helper(o, "ReduceMax", inputs, 2, &keepdims, 1, FERRY_I32, out->rank, out->shape);
    onnx_result(o, "Cast", &name, 1, &to_bool, 1);
}

static void lower_argmax(Onnx *o, const Node *node) {
    const char *inputs[] = {input(o, node, 0)};
    const Attr attrs[] = {ATTR_I("axis", dim_arg(node, 1, tensor_arg(node, 0)->rank)),
                          ATTR_I("keepdims", node->args[2].boolean)};
    RESULT(o, "ArgMax", inputs, attrs);
}

static void lower_cumsum(Onnx *o, const Node *node) {
    const Value *x = tensor_arg(node, 0), *out = node->outputs[0];
    const char *name = input(o, node, 0);
    if (x->dtype != out->dtype) {
        const Attr to = ATTR_I("to", onnx_dtype(out->dtype));
        name = onnx_helper(o, "Cast", &name, 1, &to, 1, out->dtype, x->rank, x->shape);
    }
    const char *inputs[] = {name, onnx_int(o, dim_arg(node, 1, x->rank))};
    RESULT_PLAIN(o, "CumSum", inputs);
}

static void lower_softmax(Onnx *o, const Node *node) {
    const char *inputs[] = {input(o, node, 0)};
    const Attr attrs[] = {ATTR_I("axis", dim_arg(node, 1, tensor_arg(node, 0)->rank))};
    RESULT(o, "Softmax", inputs, attrs);
}

/* ---- creation ---- */

static void lower_arange(Onnx *o, const Node *node) {
    ferry_dtype dtype = node->args[3].dtype;
    const char *inputs[3];
    for (uint32_t i = 0; i < 3; i++) inputs[i] = onnx_scalar(o, &node->args[i], dtype);
    RESULT_PLAIN(o, "Range", inputs);
}

static void lower_full(Onnx *o, const Node *node) {
    const Value *out = node->outputs[0];
    const char *inputs[] = {onnx_scalar(o, &node->args[1], out->dtype), NULL};
    if (out->rank == 0) {
        onnx_result(o, "Identity", inputs, 1, NULL, 0);
        return;
    }
    inputs[1] = onnx_shape(o, out->shape, out->rank);
    RESULT_PLAIN(o, "Expand", inputs);
}

static void lower_scalar_tensor(Onnx *o, const Node *node) {
    const char *inputs[] = {onnx_scalar(o, &node->args[0], node->args[1].dtype)};
    RESULT_PLAIN(o, "Identity", inputs);
}

/* ---- layers ---- */

/* A constant of ones, for a norm without weight. */
static const char *ones(Onnx *o, ferry_dtype dtype, const Arg *shape) {
    const char *inputs[] = {onnx_number(o, 1, dtype),
                            onnx_shape(o, shape->integers.items, shape->integers.count)};
    return onnx_helper(o, "Expand", inputs, 2, NULL, 0, dtype, shape->integers.count,
                       shape->integers.items);
}

static void lower_norm(Onnx *o, const Node *node) {
    const Arg *shape = &node->args[1];
    bool layer = node->op == OP_LAYER_NORM;
    const char *inputs[] = {input(o, node, 0), input(o, node, 2), layer ? input(o, node, 3) : NULL};
    const Attr attrs[] = {ATTR_I("axis", -(int64_t)shape->integers.count),
                          ATTR_F("epsilon", node->args[layer ? 4 : 3].number)};
    if (!inputs[1]) inputs[1] = ones(o, tensor_arg(node, 0)->dtype, shape);
    onnx_result(o, op_type(node), inputs, inputs[2] ? 3 : 2, attrs, 2);
}

static const Lowering lowerings[OP_COUNT] = {
    [OP_ADD] = {lower_binary, "Add", 0},
    [OP_SUB] = {lower_binary, "Sub", 0},
    [OP_MUL] = {lower_binary, "Mul", 0},
    [OP_DIV] = {lower_binary, "Div", 0},
    [OP_MAXIMUM] = {lower_binary, "Max", 0},
    [OP_MINIMUM] = {lower_binary, "Min", 0},
    [OP_ADD_SCALAR] = {lower_scalar, "Add", 0},
    [OP_MUL_SCALAR] = {lower_scalar, "Mul", 0},
    [OP_DIV_SCALAR] = {lower_scalar, "Div", 0},
    [OP_POW_SCALAR] = {lower_scalar, "Pow", 0},
    [OP_SCALAR_POW] = {lower_scalar_pow, "Pow", 0},
    [OP_CLAMP] = {lower_clamp, "Clip", 0},
    [OP_NEG] = {lower_unary, "Neg", 0},
    [OP_ABS] = {lower_unary, "Abs", 0},
    [OP_EXP] = {lower_unary, "Exp", 0},
    [OP_LOG] = {lower_unary, "Log", 0},
    [OP_SQRT] = {lower_unary, "Sqrt", 0},
    [OP_RECIPROCAL] = {lower_unary, "Reciprocal", 0},
    [OP_COS] = {lower_unary, "Cos", 0},
    [OP_SIN] = {lower_unary, "Sin", 0},
    [OP_TANH] = {lower_unary, "Tanh", 0},
    [OP_SIGMOID] = {lower_unary, "Sigmoid", 0},
    [OP_ERF] = {lower_unary, "Erf", 0},
    [OP_RELU] = {lower_unary, "Relu", 0},
    [OP_GELU] = {lower_gelu, "Gelu", 20},
    [OP_SOFTPLUS] = {lower_softplus, "Softplus", 0},
    [OP_ELU] = {lower_alpha, "Elu", 0},
    [OP_LEAKY_RELU] = {lower_alpha, "LeakyRelu", 0},
    [OP_TO] = {lower_to, "Cast", 0},
    [OP_EQ] = {lower_binary, "Equal", 0},
    [OP_NE] = {lower_ne, "Equal", 0},
    [OP_LT] = {lower_binary, "Less", 0},
    [OP_LE] = {lower_binary, "LessOrEqual", 0},
    [OP_GT] = {lower_binary, "Greater", 0},
    [OP_GE] = {lower_binary, "GreaterOrEqual", 0},
    [OP_EQ_SCALAR] = {lower_scalar, "Equal", 0},
    [OP_NE_SCALAR] = {lower_ne_scalar, "Equal", 0},
    [OP_LT_SCALAR] = {lower_scalar, "Less", 0},
    [OP_LE_SCALAR] = {lower_scalar, "LessOrEqual", 0},
    [OP_GT_SCALAR] = {lower_scalar, "Greater", 0},
    [OP_GE_SCALAR] = {lower_scalar, "GreaterOrEqual", 0},
    [OP_AND] = {lower_logic, "And", 0},
    [OP_OR] = {lower_logic, "Or", 0},
    [OP_NOT] = {lower_not, "Not", 0},
    [OP_WHERE] = {lower_where, "Where", 0},
    [OP_VIEW] = {lower_view, "Reshape", 0},
    [OP_PERMUTE] = {lower_permute, "Transpose", 0},
    [OP_UNSQUEEZE] = {lower_axis_input, "Unsqueeze", 0},
    [OP_SQUEEZE] = {lower_axis_input, "Squeeze", 0},
    [OP_EXPAND] = {lower_expand, "Expand", 0},
    [OP_CAT] = {lower_cat, "Concat", 0},
    [OP_SLICE] = {lower_slice, "Slice", 0},
    [OP_SELECT] = {lower_select, "Gather", 0},
    [OP_SPLIT] = {lower_split, "Split", 0},
    [OP_EMBEDDING] = {lower_embedding, "Gather", 0},
    [OP_INDEX_SELECT] = {lower_gather, "Gather", 0},
    [OP_GATHER] = {lower_gather, "GatherElements", 0},
    [OP_SUM] = {lower_reduce, "ReduceSum", 0},
    [OP_MEAN] = {lower_reduce, "ReduceMean", 0},
    [OP_AMAX] = {lower_reduce, "ReduceMax", 0},
    [OP_AMIN] = {lower_reduce, "ReduceMin", 0},
    [OP_ANY] = {lower_any, "ReduceMax", 0},
    [OP_ARGMAX] = {lower_argmax, "ArgMax", 0},
    [OP_CUMSUM] = {lower_cumsum, "CumSum", 0},
    [OP_SOFTMAX] = {lower_softmax, "Softmax", 0},
    [OP_ARANGE] = {lower_arange, "Range", 0},
    [OP_FULL] = {lower_full, "Expand", 0},
    [OP_SCALAR_TENSOR] = {lower_scalar_tensor, "Identity", 0},
    [OP_MATMUL] = {lower_binary, "MatMul", 0},
    [OP_LAYER_NORM] = {lower_norm, "LayerNormalization", 0},
    [OP_RMS_NORM] = {lower_norm, "RMSNormalization", 23},
};

bool onnx_accepts(const Onnx *o, const Node *node) {
    const Lowering *lowering = &lowerings[node->op];
    return lowering->lower && o->options->opset >= lowering->since;
}

bool onnx_supports(Op op) {
    return lowerings[op].lower != NULL;
}

void onnx_lower(Onnx *o, const Node *node) {
    o->node = node;
    o->counter = 0;
    if (!onnx_accepts(o, node)) {
        onnx_fail(o, FERRY_INTERNAL, "%s was not legalized for ONNX", op_name(node->op));
        return;
    }
    lowerings[node->op].lower(o, node);
}
