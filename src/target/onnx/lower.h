/* What the files of lowerings share: arguments, short forms for emitting. */
#ifndef TARGET_ONNX_LOWER_H
#define TARGET_ONNX_LOWER_H

#include "base/error.h"
#include "target/onnx/emit.h"

/* The ONNX operator in the built-in row of the node's operation. */
const char *lower_op_type(const Node *node);

/* A tensor argument; NULL when an optional one is absent. */
static inline const Value *lower_tensor(const Node *node, uint32_t i) {
    return node->args[i].kind == VALUE_TENSOR ? node->args[i].tensor : NULL;
}

/* The name of a tensor argument; NULL when it is absent. */
static inline const char *lower_input(const Onnx *o, const Node *node, uint32_t i) {
    const Value *value = lower_tensor(node, i);
    return value ? onnx_name(o, value) : NULL;
}

static inline int64_t lower_int(const Node *node, uint32_t i) {
    return node->args[i].integer->value;
}

/* A dimension argument counted from the front. */
static inline int64_t lower_dim(const Node *node, uint32_t i, uint32_t rank) {
    int64_t dim = lower_int(node, i);
    return dim < 0 ? dim + rank : dim;
}

/* A scalar argument as a number. */
static inline double lower_number(const Node *node, uint32_t i) {
    const Arg *arg = &node->args[i];
    return arg->kind == VALUE_FLOAT ? arg->number : (double)arg->integer->value;
}

/* A conversion to `dtype`, as a helper value of the shape of `like`; the name itself when `like` has
 * the dtype already. */
const char *lower_cast(Onnx *o, const char *name, const Value *like, ferry_dtype dtype);

/* The node's result from an array of inputs, with and without attributes. */
#define RESULT(o, type, inputs, attrs)                                                             \
    onnx_result(o, type, inputs, sizeof(inputs) / sizeof *(inputs), attrs,                         \
                sizeof(attrs) / sizeof *(attrs))
#define RESULT_PLAIN(o, type, inputs)                                                              \
    onnx_result(o, type, inputs, sizeof(inputs) / sizeof *(inputs), NULL, 0)

/* ---- the lowerings: lower_elementwise.c, lower_shape.c, lower_select.c, lower_layer.c ---- */

void lower_alpha(Onnx *o, const Node *node);
void lower_any(Onnx *o, const Node *node);
void lower_arange(Onnx *o, const Node *node);
void lower_argmax(Onnx *o, const Node *node);
void lower_axis_input(Onnx *o, const Node *node);
void lower_binary(Onnx *o, const Node *node);
void lower_cat(Onnx *o, const Node *node);
void lower_clamp(Onnx *o, const Node *node);
void lower_cumsum(Onnx *o, const Node *node);
void lower_embedding(Onnx *o, const Node *node);
void lower_expand(Onnx *o, const Node *node);
void lower_floor_divide(Onnx *o, const Node *node);
void lower_fmod(Onnx *o, const Node *node);
void lower_full(Onnx *o, const Node *node);
void lower_gather(Onnx *o, const Node *node);
void lower_gelu(Onnx *o, const Node *node);
void lower_grouped_mm(Onnx *o, const Node *node);
void lower_index(Onnx *o, const Node *node);
void lower_index_copy(Onnx *o, const Node *node);
void lower_index_put(Onnx *o, const Node *node);
void lower_logic(Onnx *o, const Node *node);
void lower_ne(Onnx *o, const Node *node);
void lower_ne_scalar(Onnx *o, const Node *node);
void lower_norm(Onnx *o, const Node *node);
void lower_nonzero(Onnx *o, const Node *node);
void lower_not(Onnx *o, const Node *node);
void lower_permute(Onnx *o, const Node *node);
void lower_prod(Onnx *o, const Node *node);
void lower_reduce(Onnx *o, const Node *node);
void lower_remainder(Onnx *o, const Node *node);
void lower_scalar(Onnx *o, const Node *node);
void lower_scalar_pow(Onnx *o, const Node *node);
void lower_scalar_tensor(Onnx *o, const Node *node);
void lower_scatter(Onnx *o, const Node *node);
void lower_select(Onnx *o, const Node *node);
void lower_slice(Onnx *o, const Node *node);
void lower_softmax(Onnx *o, const Node *node);
void lower_softplus(Onnx *o, const Node *node);
void lower_split(Onnx *o, const Node *node);
void lower_to(Onnx *o, const Node *node);
void lower_topk(Onnx *o, const Node *node);
void lower_unary(Onnx *o, const Node *node);
void lower_view(Onnx *o, const Node *node);
void lower_where(Onnx *o, const Node *node);

/* lower_rotary.c; whether those of a pair of features are the same is read off their making, which folding may
 * hide later. */
bool takes_rotary(const Node *node);
void lower_rotary(Onnx *o, const Node *node);

/* lower_vision.c */
void lower_batch_norm(Onnx *o, const Node *node);
void lower_convolution(Onnx *o, const Node *node);
void lower_grid_sampler(Onnx *o, const Node *node);
void lower_group_norm(Onnx *o, const Node *node);
void lower_pad(Onnx *o, const Node *node);
void lower_pool(Onnx *o, const Node *node);
void lower_upsample(Onnx *o, const Node *node);

#endif
