/* The kernels that are understood, one row each.
 *
 * `args` tells the kernel's arguments, before the results: a digit is the place of an argument of the
 * operation; the others must have the value of which the operation has no other:
 *   n  None    f  false    y  true    i  1    m  -1    .  any
 * The dtype of an operation that has one is that of the result. */
#include "source/executorch/reader.h"

#include <stdlib.h>

typedef struct Row {
    const char *kernel; /* sorted */
    const char *args;   /* NULL: `read` knows */
    Op op;
    uint32_t results; /* tensors that the kernel writes; the operation may have fewer */
    ReadKernel *read;
} Row;

#define PRIM(name)                                                                                 \
    { "executorch_prim::" name ".Scalar", NULL, 0, 0, read_prim_kernel }

static const Row rows[] = {
    {"aten::_local_scalar_dense", NULL, 0, 0, read_item_kernel},
    {"aten::_native_batch_norm_legit_no_training.out", NULL, 0, 0, read_batch_norm_kernel},
    {"aten::_softmax.out", "01f", OP_SOFTMAX, 1, NULL},
    {"aten::_to_copy.out", "0fn", OP_TO, 1, NULL},
    {"aten::abs.out", "0", OP_ABS, 1, NULL},
    {"aten::add.Scalar_out", "01i", OP_ADD_SCALAR, 1, NULL},
    {"aten::add.out", "01i", OP_ADD, 1, NULL},
    {"aten::amax.out", "012", OP_AMAX, 1, NULL},
    {"aten::amin.out", "012", OP_AMIN, 1, NULL},
    {"aten::any.out", "012", OP_ANY, 1, NULL},
    {"aten::arange.start_out", "012", OP_ARANGE, 1, NULL},
    {"aten::argmax.out", "012", OP_ARGMAX, 1, NULL},
    {"aten::atan.out", "0", OP_ATAN, 1, NULL},
    {"aten::avg_pool2d.out", "012345n", OP_AVG_POOL, 1, NULL},
    {"aten::bitwise_and.Tensor_out", "01", OP_AND, 1, NULL},
    {"aten::bitwise_not.out", "0", OP_NOT, 1, NULL},
    {"aten::bitwise_or.Tensor_out", "01", OP_OR, 1, NULL},
    {"aten::bmm.out", "01", OP_MATMUL, 1, NULL},
    {"aten::cat.out", "01", OP_CAT, 1, NULL},
    {"aten::ceil.out", "0", OP_CEIL, 1, NULL},
    {"aten::clamp.out", "012", OP_CLAMP, 1, NULL},
    {"aten::clone.out", NULL, 0, 0, read_clone_kernel},
    {"aten::constant_pad_nd.out", NULL, 0, 0, read_constant_pad_kernel},
    {"aten::convolution.out", "012345678", OP_CONVOLUTION, 1, NULL},
    {"aten::copy_", NULL, 0, 0, read_copy_kernel},
    {"aten::cos.out", "0", OP_COS, 1, NULL},
    {"aten::cumsum.out", "01n", OP_CUMSUM, 1, NULL},
    {"aten::div.Scalar_out", "01", OP_DIV_SCALAR, 1, NULL},
    {"aten::div.out", "01", OP_DIV, 1, NULL},
    {"aten::elu.out", "01ii", OP_ELU, 1, NULL},
    {"aten::embedding.out", "01mff", OP_EMBEDDING, 1, NULL},
    {"aten::eq.Scalar_out", "01", OP_EQ_SCALAR, 1, NULL},
    {"aten::eq.Tensor_out", "01", OP_EQ, 1, NULL},
    {"aten::erf.out", "0", OP_ERF, 1, NULL},
    {"aten::exp.out", "0", OP_EXP, 1, NULL},
    {"aten::expand_copy.out", "01f", OP_EXPAND, 1, NULL},
    {"aten::floor.out", "0", OP_FLOOR, 1, NULL},
    {"aten::floor_divide.out", "01", OP_FLOOR_DIVIDE, 1, NULL},
    {"aten::fmod.Tensor_out", "01", OP_FMOD, 1, NULL},
    {"aten::full.out", "01", OP_FULL, 1, NULL},
    {"aten::gather.out", "012f", OP_GATHER, 1, NULL},
    {"aten::ge.Scalar_out", "01", OP_GE_SCALAR, 1, NULL},
    {"aten::ge.Tensor_out", "01", OP_GE, 1, NULL},
    {"aten::gelu.out", "01", OP_GELU, 1, NULL},
    {"aten::grid_sampler_2d.out", "01234", OP_GRID_SAMPLER, 1, NULL},
    {"aten::gt.Scalar_out", "01", OP_GT_SCALAR, 1, NULL},
    {"aten::gt.Tensor_out", "01", OP_GT, 1, NULL},
    {"aten::index.Tensor_out", "01", OP_INDEX, 1, NULL},
    {"aten::index_put.out", "0123", OP_INDEX_PUT, 1, NULL},
    {"aten::index_put_", NULL, 0, 0, read_index_put_kernel},
    {"aten::index_select.out", "012", OP_INDEX_SELECT, 1, NULL},
    {"aten::le.Scalar_out", "01", OP_LE_SCALAR, 1, NULL},
    {"aten::le.Tensor_out", "01", OP_LE, 1, NULL},
    {"aten::leaky_relu.out", "01", OP_LEAKY_RELU, 1, NULL},
    {"aten::linear.out", "012", OP_LINEAR, 1, NULL},
    {"aten::log.out", "0", OP_LOG, 1, NULL},
    {"aten::log1p.out", NULL, 0, 0, read_log1p_kernel},
    {"aten::lt.Scalar_out", "01", OP_LT_SCALAR, 1, NULL},
    {"aten::lt.Tensor_out", "01", OP_LT, 1, NULL},
    {"aten::max_pool2d_with_indices.out", "012345", OP_MAX_POOL, 2, NULL},
    {"aten::maximum.out", "01", OP_MAXIMUM, 1, NULL},
    {"aten::mean.out", "012n", OP_MEAN, 1, NULL},
    {"aten::minimum.out", "01", OP_MINIMUM, 1, NULL},
    {"aten::mm.out", "01", OP_MATMUL, 1, NULL},
    {"aten::mul.Scalar_out", "01", OP_MUL_SCALAR, 1, NULL},
    {"aten::mul.out", "01", OP_MUL, 1, NULL},
    {"aten::native_group_norm.out", NULL, 0, 0, read_group_norm_kernel},
    {"aten::native_layer_norm.out", "01234", OP_LAYER_NORM, 3, NULL},
    {"aten::ne.Scalar_out", "01", OP_NE_SCALAR, 1, NULL},
    {"aten::ne.Tensor_out", "01", OP_NE, 1, NULL},
    {"aten::neg.out", "0", OP_NEG, 1, NULL},
    {"aten::nonzero.out", NULL, 0, 0, read_nonzero_kernel},
    {"aten::permute_copy.out", "01", OP_PERMUTE, 1, NULL},
    {"aten::pow.Scalar_out", "01", OP_SCALAR_POW, 1, NULL},
    {"aten::pow.Tensor_Scalar_out", "01", OP_POW_SCALAR, 1, NULL},
    {"aten::pow.Tensor_Tensor_out", "01", OP_POW, 1, NULL},
    {"aten::prod.int_out", "012n", OP_PROD, 1, NULL},
    {"aten::reciprocal.out", "0", OP_RECIPROCAL, 1, NULL},
    {"aten::reflection_pad1d.out", NULL, 0, 0, read_pad_kernel},
    {"aten::reflection_pad2d.out", NULL, 0, 0, read_pad_kernel},
    {"aten::reflection_pad3d.out", NULL, 0, 0, read_pad_kernel},
    {"aten::relu.out", "0", OP_RELU, 1, NULL},
    {"aten::replication_pad1d.out", NULL, 0, 0, read_pad_kernel},
    {"aten::replication_pad2d.out", NULL, 0, 0, read_pad_kernel},
    {"aten::replication_pad3d.out", NULL, 0, 0, read_pad_kernel},
    {"aten::round.out", "0", OP_ROUND, 1, NULL},
    {"aten::rsqrt.out", "0", OP_RSQRT, 1, NULL},
    {"aten::scalar_tensor.out", "0", OP_SCALAR_TENSOR, 1, NULL},
    {"aten::scatter.src_out", "0123", OP_SCATTER, 1, NULL},
    {"aten::scatter_add.out", NULL, 0, 0, read_scatter_add_kernel},
    {"aten::select_copy.int_out", "012", OP_SELECT, 1, NULL},
    {"aten::sigmoid.out", "0", OP_SIGMOID, 1, NULL},
    {"aten::sign.out", "0", OP_SIGN, 1, NULL},
    {"aten::sin.out", "0", OP_SIN, 1, NULL},
    {"aten::slice_copy.Tensor_out", "01234", OP_SLICE, 1, NULL},
    {"aten::sqrt.out", "0", OP_SQRT, 1, NULL},
    {"aten::sub.out", "01i", OP_SUB, 1, NULL},
    {"aten::sum.IntList_out", "012n", OP_SUM, 1, NULL},
    {"aten::sym_size.int", NULL, 0, 0, read_sym_size_kernel},
    {"aten::tanh.out", "0", OP_TANH, 1, NULL},
    {"aten::topk.values", "0123y", OP_TOPK, 2, NULL},
    {"aten::upsample_bilinear2d.vec_out", NULL, 0, 0, read_upsample_kernel},
    {"aten::upsample_nearest2d.vec_out", NULL, 0, 0, read_upsample_kernel},
    {"aten::where.self_out", "012", OP_WHERE, 1, NULL},
    PRIM("add"),
    {"executorch_prim::et_view.default", NULL, 0, 0, read_view_kernel},
    PRIM("floordiv"),
    PRIM("mod"),
    PRIM("mul"),
    PRIM("sub"),
    PRIM("sym_max"),
    PRIM("sym_min"),
};

/* ---- one row ---- */

/* An argument that the operation does not have. */
static bool is_fixed(Reader *r, char wanted, uint64_t index) {
    const PteSlot *slot = pte_read_slot(r, index);
    if (!slot) return false;
    switch (wanted) {
    case 'n': return slot->kind == SLOT_NULL;
    case 'f': return slot->kind == SLOT_BOOL && !slot->boolean;
    case 'y': return slot->kind == SLOT_BOOL && slot->boolean;
    case 'i':
        return slot->kind == SLOT_INT ? sym_is_value(slot->size, 1)
                                      : slot->kind == SLOT_DOUBLE && slot->number == 1;
    case 'm': return slot->kind == SLOT_INT && sym_is_value(slot->size, -1);
    default: return true;
    }
}

static void read_row(Reader *r, const Row *row, const PteCall *call) {
    const OpSchema *schema = op_schema(row->op);
    uint32_t given = (uint32_t)strlen(row->args);
    Arg args[OP_MAX_ARGS];
    if (call->count != given + row->results + 1) {
        pte_read_bad(r, "expected %u arguments, found %u", given + row->results + 1, call->count);
        return;
    }
    for (uint32_t i = 0; i < schema->arg_count; i++) args[i] = arg_none();
    for (uint32_t i = 0; i < given && reader_ok(r); i++) {
        char place = row->args[i];
        if (place >= '0' && place <= '9')
            args[place - '0'] = pte_read_arg(r, call->args[i], &schema->args[place - '0']);
        else if (!is_fixed(r, place, call->args[i]))
            pte_read_unsupported(r, "the value of argument %u", i);
    }
    const PteSlot *result = pte_read_kind(r, call->args[given], SLOT_TENSOR);
    if (!result || !reader_ok(r)) return;
    for (uint32_t i = 0; i < schema->arg_count; i++) {
        if (schema->args[i].type == ARG_DTYPE) args[i] = arg_dtype(result->dtype);
    }
    Value *grouped = row->op == OP_CAT && args[0].kind == VALUE_TENSORS
                         ? pte_read_grouped(r, args[0].tensors.items, args[0].tensors.count)
                         : NULL;
    if (grouped) {
        pte_read_give(r, call->args[given], grouped);
        return;
    }
    const Node *node = build_node(&r->b, row->op, args, schema->arg_count);
    for (uint32_t i = 0; node && i < node->output_count && i < row->results; i++) {
        pte_read_give(r, call->args[given + i], node->outputs[i]);
    }
}

static int compare(const void *name, const void *row) {
    return strcmp(name, ((const Row *)row)->kernel);
}

void pte_read_kernel(Reader *r, const PteCall *call) {
    r->where = call->kernel;
    const Row *row = bsearch(call->kernel, rows, sizeof rows / sizeof *rows, sizeof *rows, compare);
    if (!row)
        pte_read_unsupported(r, "there is no support for the kernel");
    else if (row->read)
        row->read(r, call);
    else
        read_row(r, row, call);
    r->where = NULL;
}
