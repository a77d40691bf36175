/* What the files of lowerings share: a row of the table, arguments, short forms for emitting. */
#ifndef TARGET_OPENVINO_LOWER_H
#define TARGET_OPENVINO_LOWER_H

#include "target/openvino/emit.h"

typedef struct Lowering {
    IrPort (*lower)(Ir *ir, const Node *node); /* returns the first output; sets the others */
    const char *operation;                     /* for functions that serve several */
} Lowering;

/* The row of an operation; its `lower` is NULL when there is none. */
const Lowering *ir_lowering(Op op);

/* A tensor argument; NULL when an optional one is absent. */
static inline const Value *node_tensor(const Node *node, uint32_t i) {
    return node->args[i].kind == VALUE_TENSOR ? node->args[i].tensor : NULL;
}

/* The port of a tensor argument. */
static inline IrPort ir_input(Ir *ir, const Node *node, uint32_t i) {
    return ir_value(ir, node->args[i].tensor);
}

static inline int64_t node_int(const Node *node, uint32_t i) {
    return node->args[i].integer->value;
}

/* A dimension argument counted from the front. */
static inline int64_t node_dim(const Node *node, uint32_t i, uint32_t rank) {
    int64_t dim = node_int(node, i);
    return dim < 0 ? dim + rank : dim;
}

/* A scalar argument as a number. */
static inline double node_number(const Node *node, uint32_t i) {
    const Arg *arg = &node->args[i];
    return arg->kind == VALUE_FLOAT ? arg->number : (double)arg->integer->value;
}

static inline const char *node_operation(const Node *node) {
    return ir_lowering(node->op)->operation;
}

/* A list argument of constants; returns how many. */
uint32_t node_list(const Node *node, uint32_t i, int64_t *out);

/* A tensor argument, converted to `dtype` where it has another. */
IrPort ir_input_as(Ir *ir, const Node *node, uint32_t i, ferry_dtype dtype);

/* The node's result from these inputs, with and without attributes. */
#define RESULT(ir, node, operation, inputs, attrs)                                                 \
    ir_layer(ir, operation, (node)->outputs[0]->dtype, inputs, attrs)

/* Short for the two-operand operations of helper values. */
IrPort ir_two(Ir *ir, const char *operation, ferry_dtype dtype, IrPort a, IrPort b);

/* Dimensions in another order; the value itself when they are not. */
IrPort ir_transposed(Ir *ir, IrPort from, ferry_dtype dtype, const int64_t *dims, uint32_t rank);

/* ---- the lowerings ---- */

/* lower_elementwise.c */
IrPort ir_lower_binary(Ir *ir, const Node *node);
IrPort ir_lower_clamp(Ir *ir, const Node *node);
IrPort ir_lower_elu(Ir *ir, const Node *node);
IrPort ir_lower_floor_divide(Ir *ir, const Node *node);
IrPort ir_lower_gelu(Ir *ir, const Node *node);
IrPort ir_lower_leaky_relu(Ir *ir, const Node *node);
IrPort ir_lower_logic(Ir *ir, const Node *node);
IrPort ir_lower_not(Ir *ir, const Node *node);
IrPort ir_lower_reciprocal(Ir *ir, const Node *node);
IrPort ir_lower_round(Ir *ir, const Node *node);
IrPort ir_lower_rsqrt(Ir *ir, const Node *node);
IrPort ir_lower_scalar(Ir *ir, const Node *node);
IrPort ir_lower_scalar_pow(Ir *ir, const Node *node);
IrPort ir_lower_softplus(Ir *ir, const Node *node);
IrPort ir_lower_to(Ir *ir, const Node *node);
IrPort ir_lower_unary(Ir *ir, const Node *node);
IrPort ir_lower_where(Ir *ir, const Node *node);

/* lower_shape.c */
IrPort ir_lower_arange(Ir *ir, const Node *node);
IrPort ir_lower_axis_input(Ir *ir, const Node *node);
IrPort ir_lower_cat(Ir *ir, const Node *node);
IrPort ir_lower_expand(Ir *ir, const Node *node);
IrPort ir_lower_full(Ir *ir, const Node *node);
IrPort ir_lower_permute(Ir *ir, const Node *node);
IrPort ir_lower_scalar_tensor(Ir *ir, const Node *node);
IrPort ir_lower_select(Ir *ir, const Node *node);
IrPort ir_lower_slice(Ir *ir, const Node *node);
IrPort ir_lower_split(Ir *ir, const Node *node);
IrPort ir_lower_view(Ir *ir, const Node *node);

/* lower_select.c */
IrPort ir_lower_argmax(Ir *ir, const Node *node);
IrPort ir_lower_cumsum(Ir *ir, const Node *node);
IrPort ir_lower_embedding(Ir *ir, const Node *node);
IrPort ir_lower_gather(Ir *ir, const Node *node);
IrPort ir_lower_index_select(Ir *ir, const Node *node);
IrPort ir_lower_reduce(Ir *ir, const Node *node);
IrPort ir_lower_reduce_axis(Ir *ir, const Node *node);
IrPort ir_lower_softmax(Ir *ir, const Node *node);
IrPort ir_lower_topk(Ir *ir, const Node *node);

/* lower_index.c */
IrPort ir_lower_index(Ir *ir, const Node *node);
IrPort ir_lower_index_copy(Ir *ir, const Node *node);
IrPort ir_lower_index_put(Ir *ir, const Node *node);
IrPort ir_lower_nonzero(Ir *ir, const Node *node);
IrPort ir_lower_scatter(Ir *ir, const Node *node);

/* lower_layer.c */
IrPort ir_lower_attention(Ir *ir, const Node *node);
IrPort ir_lower_grouped_mm(Ir *ir, const Node *node);
IrPort ir_lower_layer_norm(Ir *ir, const Node *node);
IrPort ir_lower_linear(Ir *ir, const Node *node);
IrPort ir_lower_matmul(Ir *ir, const Node *node);

/* lower_vision.c */
IrPort ir_lower_batch_norm(Ir *ir, const Node *node);
IrPort ir_lower_convolution(Ir *ir, const Node *node);
IrPort ir_lower_grid_sampler(Ir *ir, const Node *node);
IrPort ir_lower_group_norm(Ir *ir, const Node *node);
IrPort ir_lower_pad(Ir *ir, const Node *node);
IrPort ir_lower_pool(Ir *ir, const Node *node);
IrPort ir_lower_upsample(Ir *ir, const Node *node);

#endif
