/* The table of lowerings: what each operation of a program becomes in ONNX, one row each.
 *
 * Most operations are one node of the same shape; those rows name the ONNX operator and a shared
 * function. The rest have functions of their own. A row holds from the opset `since` on; below it, or
 * without a row, the operation is decomposed. The rows go into the registry, where a plug-in's may
 * take their place. */
#include "target/onnx/lower.h"

#include <stdio.h>

static const OnnxLowering lowerings[OP_COUNT] = {
    [OP_ADD] = {lower_binary, "Add", 0},
    [OP_SUB] = {lower_binary, "Sub", 0},
    [OP_MUL] = {lower_binary, "Mul", 0},
    [OP_DIV] = {lower_binary, "Div", 0},
    [OP_MAXIMUM] = {lower_binary, "Max", 0},
    [OP_MINIMUM] = {lower_binary, "Min", 0},
    [OP_POW] = {lower_binary, "Pow", 0},
    [OP_FLOOR_DIVIDE] = {lower_floor_divide, "Floor", 0},
    [OP_REMAINDER] = {lower_remainder, "Mod", 0},
    [OP_FMOD] = {lower_fmod, "Mod", 0},
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
    [OP_ATAN] = {lower_unary, "Atan", 0},
    [OP_FLOOR] = {lower_unary, "Floor", 0},
    [OP_CEIL] = {lower_unary, "Ceil", 0},
    [OP_ROUND] = {lower_unary, "Round", 0},
    [OP_SIGN] = {lower_unary, "Sign", 0},
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
    [OP_INDEX] = {lower_index, "GatherND", 0},
    [OP_INDEX_PUT] = {lower_index_put, "ScatterND", 0},
    [OP_INDEX_COPY] = {lower_index_copy, "ScatterElements", 0},
    [OP_SCATTER] = {lower_scatter, "ScatterElements", 0},
    [OP_SCATTER_REDUCE] = {lower_scatter, "ScatterElements", 0},
    [OP_NONZERO] = {lower_nonzero, "NonZero", 0},
    [OP_TOPK] = {lower_topk, "TopK", 0},
    [OP_SUM] = {lower_reduce, "ReduceSum", 0},
    [OP_MEAN] = {lower_reduce, "ReduceMean", 0},
    [OP_AMAX] = {lower_reduce, "ReduceMax", 0},
    [OP_AMIN] = {lower_reduce, "ReduceMin", 0},
    [OP_PROD] = {lower_prod, "ReduceProd", 0},
    [OP_ANY] = {lower_any, "ReduceMax", 0},
    [OP_ARGMAX] = {lower_argmax, "ArgMax", 0},
    [OP_CUMSUM] = {lower_cumsum, "CumSum", 0},
    [OP_SOFTMAX] = {lower_softmax, "Softmax", 0},
    [OP_ARANGE] = {lower_arange, "Range", 0},
    [OP_FULL] = {lower_full, "Expand", 0},
    [OP_SCALAR_TENSOR] = {lower_scalar_tensor, "Identity", 0},
    [OP_MATMUL] = {lower_binary, "MatMul", 0},
    [OP_GROUPED_MM] = {lower_grouped_mm, "MatMul", 0},
    [OP_LAYER_NORM] = {lower_norm, "LayerNormalization", 0},
    [OP_RMS_NORM] = {lower_norm, "RMSNormalization", 23},
    [OP_ROTARY_EMBEDDING] = {lower_rotary, "RotaryEmbedding", 23},
    [OP_CONVOLUTION] = {lower_convolution, "Conv", 0},
    [OP_MAX_POOL] = {lower_pool, "MaxPool", 0},
    [OP_AVG_POOL] = {lower_pool, "AveragePool", 0},
    [OP_BATCH_NORM] = {lower_batch_norm, "BatchNormalization", 0},
    [OP_GROUP_NORM] = {lower_group_norm, "InstanceNormalization", 0},
    [OP_PAD] = {lower_pad, "Pad", 0},
    [OP_UPSAMPLE_NEAREST] = {lower_upsample, "nearest", 0},
    [OP_UPSAMPLE_NEAREST_EXACT] = {lower_upsample, "nearest", 0},
    [OP_UPSAMPLE_BILINEAR] = {lower_upsample, "linear", 0},
    [OP_UPSAMPLE_BICUBIC] = {lower_upsample, "cubic", 0},
    [OP_UPSAMPLE_BICUBIC_AA] = {lower_upsample, "cubic", 0},
    [OP_GRID_SAMPLER] = {lower_grid_sampler, "GridSample", 0},
};

/* What a row takes, where that is not every node; the others are decomposed. */
static bool (*const conditions[OP_COUNT])(const Node *node) = {
    [OP_ROTARY_EMBEDDING] = takes_rotary,
};

void onnx_register(Registry *registry) {
    for (int op = 0; op < OP_COUNT; op++) {
        if (!lowerings[op].lower) continue;
        const char *name = arena_format(&registry->arena, "onnx/%s", op_name((Op)op));
        registry_add(registry, EXTENSION_LOWERING, name, &lowerings[op]);
    }
}

const OnnxLowering *onnx_lowering(const Registry *registry, Op op) {
    char name[128];
    snprintf(name, sizeof name, "onnx/%s", op_name(op));
    return registry_find(registry, EXTENSION_LOWERING, name);
}

const char *lower_op_type(const Node *node) {
    return lowerings[node->op].op_type;
}

const char *lower_cast(Onnx *o, const char *name, const Value *like, ferry_dtype dtype) {
    if (like->dtype == dtype) return name;
    const Attr to = ATTR_I("to", onnx_dtype(dtype));
    return onnx_helper(o, "Cast", &name, 1, &to, 1, dtype, like->rank, like->shape);
}

static bool is_known(const Onnx *o, const Node *node) {
    const OnnxLowering *lowering = o->lowerings[node->op];
    return lowering && o->options->opset >= lowering->since;
}

bool onnx_accepts(const Onnx *o, const Node *node) {
    bool built_in = o->lowerings[node->op] == &lowerings[node->op];
    return is_known(o, node) && !(built_in && conditions[node->op] && !conditions[node->op](node));
}

void onnx_lower(Onnx *o, const Node *node) {
    o->node = node;
    o->counter = 0;
    if (!is_known(o, node)) {
        onnx_fail(o, FERRY_INTERNAL, "%s was not legalized for ONNX", op_name(node->op));
        return;
    }
    o->lowerings[node->op]->lower(o, node);
}
