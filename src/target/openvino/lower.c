/* The table of lowerings: what each operation of a program becomes in OpenVINO, one row each. Without
 * a row the operation is decomposed: RMS normalization and rotary embedding are, into the very shapes
 * that the CPU plugin fuses. */
#include "target/openvino/lower.h"

static const Lowering lowerings[OP_COUNT] = {
    [OP_ADD] = {ir_lower_binary, "Add-1"},
    [OP_SUB] = {ir_lower_binary, "Subtract-1"},
    [OP_MUL] = {ir_lower_binary, "Multiply-1"},
    [OP_DIV] = {ir_lower_binary, "Divide-1"},
    [OP_MAXIMUM] = {ir_lower_binary, "Maximum-1"},
    [OP_MINIMUM] = {ir_lower_binary, "Minimum-1"},
    [OP_POW] = {ir_lower_binary, "Power-1"},
    [OP_FLOOR_DIVIDE] = {ir_lower_floor_divide, "Divide-1"},
    [OP_REMAINDER] = {ir_lower_binary, "FloorMod-1"},
    [OP_FMOD] = {ir_lower_binary, "Mod-1"},
    [OP_ADD_SCALAR] = {ir_lower_scalar, "Add-1"},
    [OP_MUL_SCALAR] = {ir_lower_scalar, "Multiply-1"},
    [OP_DIV_SCALAR] = {ir_lower_scalar, "Divide-1"},
    [OP_POW_SCALAR] = {ir_lower_scalar, "Power-1"},
    [OP_SCALAR_POW] = {ir_lower_scalar_pow, "Power-1"},
    [OP_CLAMP] = {ir_lower_clamp, "Clamp-1"},
    [OP_NEG] = {ir_lower_unary, "Negative-1"},
    [OP_ABS] = {ir_lower_unary, "Abs-1"},
    [OP_EXP] = {ir_lower_unary, "Exp-1"},
    [OP_LOG] = {ir_lower_unary, "Log-1"},
    [OP_SQRT] = {ir_lower_unary, "Sqrt-1"},
    [OP_RSQRT] = {ir_lower_rsqrt, "Power-1"},
    [OP_RECIPROCAL] = {ir_lower_reciprocal, "Divide-1"},
    [OP_COS] = {ir_lower_unary, "Cos-1"},
    [OP_SIN] = {ir_lower_unary, "Sin-1"},
    [OP_TANH] = {ir_lower_unary, "Tanh-1"},
    [OP_SIGMOID] = {ir_lower_unary, "Sigmoid-1"},
    [OP_ERF] = {ir_lower_unary, "Erf-1"},
    [OP_ATAN] = {ir_lower_unary, "Atan-1"},
    [OP_FLOOR] = {ir_lower_unary, "Floor-1"},
    [OP_CEIL] = {ir_lower_unary, "Ceiling-1"},
    [OP_ROUND] = {ir_lower_round, "Round-5"},
    [OP_SIGN] = {ir_lower_unary, "Sign-1"},
    [OP_RELU] = {ir_lower_unary, "ReLU-1"},
    [OP_SILU] = {ir_lower_unary, "Swish-4"},
    [OP_GELU] = {ir_lower_gelu, "Gelu-7"},
    [OP_SOFTPLUS] = {ir_lower_softplus, "SoftPlus-4"},
    [OP_ELU] = {ir_lower_elu, "Elu-1"},
    [OP_LEAKY_RELU] = {ir_lower_leaky_relu, "PReLU-1"},
    [OP_TO] = {ir_lower_to, "Convert-1"},
    [OP_EQ] = {ir_lower_binary, "Equal-1"},
    [OP_NE] = {ir_lower_binary, "NotEqual-1"},
    [OP_LT] = {ir_lower_binary, "Less-1"},
    [OP_LE] = {ir_lower_binary, "LessEqual-1"},
    [OP_GT] = {ir_lower_binary, "Greater-1"},
    [OP_GE] = {ir_lower_binary, "GreaterEqual-1"},
    [OP_EQ_SCALAR] = {ir_lower_scalar, "Equal-1"},
    [OP_NE_SCALAR] = {ir_lower_scalar, "NotEqual-1"},
    [OP_LT_SCALAR] = {ir_lower_scalar, "Less-1"},
    [OP_LE_SCALAR] = {ir_lower_scalar, "LessEqual-1"},
    [OP_GT_SCALAR] = {ir_lower_scalar, "Greater-1"},
    [OP_GE_SCALAR] = {ir_lower_scalar, "GreaterEqual-1"},
    [OP_AND] = {ir_lower_logic, "LogicalAnd-1"},
    [OP_OR] = {ir_lower_logic, "LogicalOr-1"},
    [OP_NOT] = {ir_lower_not, "LogicalNot-1"},
    [OP_WHERE] = {ir_lower_where, "Select-1"},
    [OP_VIEW] = {ir_lower_view, "Reshape-1"},
    [OP_PERMUTE] = {ir_lower_permute, "Transpose-1"},
    [OP_UNSQUEEZE] = {ir_lower_axis_input, "Unsqueeze-1"},
    [OP_SQUEEZE] = {ir_lower_axis_input, "Squeeze-1"},
    [OP_EXPAND] = {ir_lower_expand, "Broadcast-3"},
    [OP_CAT] = {ir_lower_cat, "Concat-1"},
    [OP_SLICE] = {ir_lower_slice, "Slice-8"},
    [OP_SELECT] = {ir_lower_select, "Gather-8"},
    [OP_SPLIT] = {ir_lower_split, "VariadicSplit-1"},
    [OP_EMBEDDING] = {ir_lower_embedding, "Gather-8"},
    [OP_INDEX_SELECT] = {ir_lower_index_select, "Gather-8"},
    [OP_GATHER] = {ir_lower_gather, "GatherElements-6"},
    [OP_INDEX] = {ir_lower_index, "GatherND-8"},
    [OP_INDEX_PUT] = {ir_lower_index_put, "ScatterNDUpdate-15"},
    [OP_INDEX_COPY] = {ir_lower_index_copy, "ScatterUpdate-3"},
    [OP_SCATTER] = {ir_lower_scatter, "ScatterElementsUpdate-12"},
    [OP_SCATTER_REDUCE] = {ir_lower_scatter, "ScatterElementsUpdate-12"},
    [OP_NONZERO] = {ir_lower_nonzero, "NonZero-3"},
    [OP_TOPK] = {ir_lower_topk, "TopK-11"},
    [OP_SUM] = {ir_lower_reduce, "ReduceSum-1"},
    [OP_MEAN] = {ir_lower_reduce, "ReduceMean-1"},
    [OP_AMAX] = {ir_lower_reduce, "ReduceMax-1"},
    [OP_AMIN] = {ir_lower_reduce, "ReduceMin-1"},
    [OP_PROD] = {ir_lower_reduce_axis, "ReduceProd-1"},
    [OP_ANY] = {ir_lower_reduce_axis, "ReduceLogicalOr-1"},
    [OP_ARGMAX] = {ir_lower_argmax, "TopK-11"},
    [OP_CUMSUM] = {ir_lower_cumsum, "CumSum-3"},
    [OP_SOFTMAX] = {ir_lower_softmax, "SoftMax-8"},
    [OP_ARANGE] = {ir_lower_arange, "Range-4"},
    [OP_FULL] = {ir_lower_full, "Broadcast-3"},
    [OP_SCALAR_TENSOR] = {ir_lower_scalar_tensor, "Const-1"},
    [OP_LINEAR] = {ir_lower_linear, "MatMul-1"},
    [OP_MATMUL] = {ir_lower_matmul, "MatMul-1"},
    [OP_GROUPED_MM] = {ir_lower_grouped_mm, "MatMul-1"},
    [OP_LAYER_NORM] = {ir_lower_layer_norm, "MVN-6"},
    [OP_ATTENTION] = {ir_lower_attention, "ScaledDotProductAttention-13"},
    [OP_CONVOLUTION] = {ir_lower_convolution, "Convolution-1"},
    [OP_MAX_POOL] = {ir_lower_pool, "MaxPool-14"},
    [OP_AVG_POOL] = {ir_lower_pool, "AvgPool-14"},
    [OP_BATCH_NORM] = {ir_lower_batch_norm, "BatchNormInference-5"},
    [OP_GROUP_NORM] = {ir_lower_group_norm, "GroupNormalization-12"},
    [OP_PAD] = {ir_lower_pad, "Pad-12"},
    [OP_UPSAMPLE_NEAREST] = {ir_lower_upsample, "nearest"},
    [OP_UPSAMPLE_NEAREST_EXACT] = {ir_lower_upsample, "nearest"},
    [OP_UPSAMPLE_BILINEAR] = {ir_lower_upsample, "linear_onnx"},
    [OP_UPSAMPLE_BICUBIC] = {ir_lower_upsample, "cubic"},
    [OP_UPSAMPLE_BILINEAR_AA] = {ir_lower_upsample, "bilinear_pillow"},
    [OP_UPSAMPLE_BICUBIC_AA] = {ir_lower_upsample, "bicubic_pillow"},
    [OP_GRID_SAMPLER] = {ir_lower_grid_sampler, "GridSample-9"},
};

const Lowering *ir_lowering(Op op) {
    return &lowerings[op];
}

bool openvino_supports(Op op) {
    return lowerings[op].lower != NULL;
}

void ir_lower(Ir *ir, const Node *node) {
    ir->node = node;
    if (!lowerings[node->op].lower) {
        ir_fail(ir, FERRY_INTERNAL, "%s was not legalized for OpenVINO", op_name(node->op));
        return;
    }
    ir->ports[node->outputs[0]->id] = lowerings[node->op].lower(ir, node);
}

uint32_t node_list(const Node *node, uint32_t i, int64_t *out) {
    const Arg *list = &node->args[i];
    for (uint32_t k = 0; k < list->integers.count; k++) out[k] = list->integers.items[k]->value;
    return list->integers.count;
}

IrPort ir_input_as(Ir *ir, const Node *node, uint32_t i, ferry_dtype dtype) {
    const Value *value = node_tensor(node, i);
    IrPort port = ir_value(ir, value);
    return value->dtype == dtype ? port : ir_convert(ir, port, dtype);
}

IrPort ir_two(Ir *ir, const char *operation, ferry_dtype dtype, IrPort a, IrPort b) {
    return ir_layer(ir, operation, dtype, FROM(a, b), PLAIN);
}

IrPort ir_transposed(Ir *ir, IrPort from, ferry_dtype dtype, const int64_t *dims, uint32_t rank) {
    bool moved = false;
    for (uint32_t d = 0; d < rank; d++) moved |= dims[d] != d;
    if (!moved) return from;
    return ir_two(ir, "Transpose-1", dtype, from, ir_ints(ir, dims, rank));
}
