/* The table of lowerings: the kernel of each operation, one row each. Without a row the operation is
 * decomposed. */
#include "target/executorch/lower.h"

static const Lowering lowerings[OP_COUNT] = {
    [OP_ADD] = {pte_lower_add, "aten::add.out"},
    [OP_SUB] = {pte_lower_add, "aten::sub.out"},
    [OP_MUL] = {pte_lower_args, "aten::mul.out"},
    [OP_DIV] = {pte_lower_args, "aten::div.out"},
    [OP_MAXIMUM] = {pte_lower_args, "aten::maximum.out"},
    [OP_MINIMUM] = {pte_lower_args, "aten::minimum.out"},
    [OP_POW] = {pte_lower_args, "aten::pow.Tensor_Tensor_out"},
    [OP_FLOOR_DIVIDE] = {pte_lower_args, "aten::floor_divide.out"},
    [OP_REMAINDER] = {pte_lower_remainder, "aten::fmod.Tensor_out"},
    [OP_FMOD] = {pte_lower_args, "aten::fmod.Tensor_out"},
    [OP_ADD_SCALAR] = {pte_lower_add, "aten::add.Scalar_out"},
    [OP_MUL_SCALAR] = {pte_lower_args, "aten::mul.Scalar_out"},
    [OP_DIV_SCALAR] = {pte_lower_args, "aten::div.Scalar_out"},
    [OP_POW_SCALAR] = {pte_lower_args, "aten::pow.Tensor_Scalar_out"},
    [OP_SCALAR_POW] = {pte_lower_args, "aten::pow.Scalar_out"},
    [OP_CLAMP] = {pte_lower_args, "aten::clamp.out"},
    [OP_NEG] = {pte_lower_args, "aten::neg.out"},
    [OP_ABS] = {pte_lower_args, "aten::abs.out"},
    [OP_EXP] = {pte_lower_args, "aten::exp.out"},
    [OP_LOG] = {pte_lower_args, "aten::log.out"},
    [OP_SQRT] = {pte_lower_args, "aten::sqrt.out"},
    [OP_RSQRT] = {pte_lower_args, "aten::rsqrt.out"},
    [OP_RECIPROCAL] = {pte_lower_args, "aten::reciprocal.out"},
    [OP_COS] = {pte_lower_args, "aten::cos.out"},
    [OP_SIN] = {pte_lower_args, "aten::sin.out"},
    [OP_TANH] = {pte_lower_args, "aten::tanh.out"},
    [OP_SIGMOID] = {pte_lower_args, "aten::sigmoid.out"},
    [OP_ERF] = {pte_lower_args, "aten::erf.out"},
    [OP_ATAN] = {pte_lower_args, "aten::atan.out"},
    [OP_FLOOR] = {pte_lower_args, "aten::floor.out"},
    [OP_CEIL] = {pte_lower_args, "aten::ceil.out"},
    [OP_ROUND] = {pte_lower_args, "aten::round.out"},
    [OP_SIGN] = {pte_lower_args, "aten::sign.out"},
    [OP_RELU] = {pte_lower_args, "aten::relu.out"},
    [OP_GELU] = {pte_lower_gelu, "aten::gelu.out"},
    [OP_SOFTPLUS] = {pte_lower_softplus, "aten::log1p.out"},
    [OP_ELU] = {pte_lower_elu, "aten::elu.out"},
    [OP_LEAKY_RELU] = {pte_lower_args, "aten::leaky_relu.out"},
    [OP_TO] = {pte_lower_to, "aten::_to_copy.out"},
    [OP_EQ] = {pte_lower_args, "aten::eq.Tensor_out"},
    [OP_NE] = {pte_lower_args, "aten::ne.Tensor_out"},
    [OP_LT] = {pte_lower_args, "aten::lt.Tensor_out"},
    [OP_LE] = {pte_lower_args, "aten::le.Tensor_out"},
    [OP_GT] = {pte_lower_args, "aten::gt.Tensor_out"},
    [OP_GE] = {pte_lower_args, "aten::ge.Tensor_out"},
    [OP_EQ_SCALAR] = {pte_lower_args, "aten::eq.Scalar_out"},
    [OP_NE_SCALAR] = {pte_lower_args, "aten::ne.Scalar_out"},
    [OP_LT_SCALAR] = {pte_lower_args, "aten::lt.Scalar_out"},
    [OP_LE_SCALAR] = {pte_lower_args, "aten::le.Scalar_out"},
    [OP_GT_SCALAR] = {pte_lower_args, "aten::gt.Scalar_out"},
    [OP_GE_SCALAR] = {pte_lower_args, "aten::ge.Scalar_out"},
    [OP_AND] = {pte_lower_args, "aten::bitwise_and.Tensor_out"},
    [OP_OR] = {pte_lower_args, "aten::bitwise_or.Tensor_out"},
    [OP_NOT] = {pte_lower_args, "aten::bitwise_not.out"},
    [OP_WHERE] = {pte_lower_args, "aten::where.self_out"},
    [OP_VIEW] = {pte_lower_view, NULL},
    [OP_PERMUTE] = {pte_lower_args, "aten::permute_copy.out"},
    [OP_UNSQUEEZE] = {pte_lower_view, NULL},
    [OP_SQUEEZE] = {pte_lower_view, NULL},
    [OP_EXPAND] = {pte_lower_expand, "aten::expand_copy.out"},
    [OP_CAT] = {pte_lower_cat, "aten::cat.out"},
    [OP_SLICE] = {pte_lower_slice, "aten::slice_copy.Tensor_out"},
    [OP_SELECT] = {pte_lower_args, "aten::select_copy.int_out"},
    [OP_SPLIT] = {pte_lower_split, "aten::slice_copy.Tensor_out"},
    [OP_EMBEDDING] = {pte_lower_embedding, "aten::embedding.out"},
    [OP_INDEX_SELECT] = {pte_lower_args, "aten::index_select.out"},
    [OP_GATHER] = {pte_lower_gather, "aten::gather.out"},
    [OP_INDEX] = {pte_lower_index, "aten::index.Tensor_out"},
    [OP_INDEX_PUT] = {pte_lower_index_put, "aten::index_put.out"},
    [OP_INDEX_COPY] = {pte_lower_index_copy, "aten::index_put.out"},
    [OP_SCATTER] = {pte_lower_args, "aten::scatter.src_out"},
    [OP_SCATTER_REDUCE] = {pte_lower_scatter_reduce, "aten::scatter_add.out"},
    [OP_NONZERO] = {pte_lower_nonzero, "aten::nonzero.out"},
    [OP_TOPK] = {pte_lower_topk, "aten::topk.values"},
    [OP_SUM] = {pte_lower_reduce, "aten::sum.IntList_out"},
    [OP_MEAN] = {pte_lower_reduce, "aten::mean.out"},
    [OP_AMAX] = {pte_lower_args, "aten::amax.out"},
    [OP_AMIN] = {pte_lower_args, "aten::amin.out"},
    [OP_PROD] = {pte_lower_reduce, "aten::prod.int_out"},
    [OP_ANY] = {pte_lower_args, "aten::any.out"},
    [OP_ARGMAX] = {pte_lower_args, "aten::argmax.out"},
    [OP_CUMSUM] = {pte_lower_cumsum, "aten::cumsum.out"},
    [OP_SOFTMAX] = {pte_lower_softmax, "aten::_softmax.out"},
    [OP_ARANGE] = {pte_lower_arange, "aten::arange.start_out"},
    [OP_FULL] = {pte_lower_full, "aten::full.out"},
    [OP_SCALAR_TENSOR] = {pte_lower_scalar_tensor, "aten::scalar_tensor.out"},
    [OP_LINEAR] = {pte_lower_linear, "aten::linear.out"},
    [OP_MATMUL] = {pte_lower_matmul, "aten::bmm.out"},
    [OP_GROUPED_MM] = {pte_lower_grouped_mm, "aten::mm.out"},
    [OP_LAYER_NORM] = {pte_lower_layer_norm, "aten::native_layer_norm.out"},
    [OP_CONVOLUTION] = {pte_lower_args, "aten::convolution.out"},
    [OP_MAX_POOL] = {pte_lower_max_pool, "aten::max_pool2d_with_indices.out"},
    [OP_AVG_POOL] = {pte_lower_avg_pool, "aten::avg_pool2d.out"},
    [OP_BATCH_NORM] = {pte_lower_batch_norm, "aten::_native_batch_norm_legit_no_training.out"},
    [OP_GROUP_NORM] = {pte_lower_group_norm, "aten::native_group_norm.out"},
    [OP_PAD] = {pte_lower_pad, "aten::constant_pad_nd.out"},
    [OP_UPSAMPLE_NEAREST] = {pte_lower_upsample, "aten::upsample_nearest2d.vec_out"},
    [OP_UPSAMPLE_BILINEAR] = {pte_lower_upsample, "aten::upsample_bilinear2d.vec_out"},
    [OP_GRID_SAMPLER] = {pte_lower_args, "aten::grid_sampler_2d.out"},
};

const Lowering *pte_lowering(Op op) {
    return &lowerings[op];
}

bool executorch_supports(Op op) {
    return lowerings[op].lower != NULL;
}

void pte_lower(Pte *p, const Node *node) {
    p->node = node;
    if (!lowerings[node->op].lower) {
        pte_fail(p, FERRY_INTERNAL, "%s was not legalized for ExecuTorch", op_name(node->op));
        return;
    }
    lowerings[node->op].lower(p, node);
}

const Sym *const *pte_shape(Pte *p, const Sym *const *sizes, uint32_t rank) {
    return arena_copy(&p->arena, sizes, rank * sizeof *sizes);
}
