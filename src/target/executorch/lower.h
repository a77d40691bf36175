/* What the files of lowerings share: a row of the table, arguments, short forms for emitting. */
#ifndef TARGET_EXECUTORCH_LOWER_H
#define TARGET_EXECUTORCH_LOWER_H

#include "target/executorch/emit.h"

typedef struct Lowering {
    void (*lower)(Pte *p, const Node *node);
    const char *kernel; /* for functions that serve several */
} Lowering;

/* The row of an operation; its `lower` is NULL when there is none. */
const Lowering *pte_lowering(Op op);

/* A tensor argument; NULL when an optional one is absent. */
static inline const Value *node_tensor(const Node *node, uint32_t i) {
    return node->args[i].kind == VALUE_TENSOR ? node->args[i].tensor : NULL;
}

static inline int64_t node_int(const Node *node, uint32_t i) {
    return node->args[i].integer->value;
}

/* A dimension argument counted from the front. */
static inline int64_t node_dim(const Node *node, uint32_t i, uint32_t rank) {
    int64_t dim = node_int(node, i);
    return dim < 0 ? dim + rank : dim;
}

static inline const char *node_kernel(const Node *node) {
    return pte_lowering(node->op)->kernel;
}

/* A scalar argument as a number. */
static inline double node_number(const Node *node, uint32_t i) {
    const Arg *arg = &node->args[i];
    return arg->kind == VALUE_FLOAT  ? arg->number
           : arg->kind == VALUE_BOOL ? (double)arg->boolean
                                     : (double)arg->integer->value;
}

/* An argument of any kind but a list of tensors. */
static inline PteValue pte_node_arg(Pte *p, const Node *node, uint32_t i) {
    return pte_arg(p, &node->args[i]);
}

/* The node's only output from a kernel with these arguments. */
#define RESULT(p, node, kernel, ...)                                                               \
    pte_result(p, kernel, pte_output(p, (node)->outputs[0]), ARGS(__VA_ARGS__))

/* A temporary with the type of `like`. */
static inline PteValue pte_like(Pte *p, const Value *like) {
    return pte_temp(p, like->dtype, like->rank, like->shape);
}

/* A shape in the program's arena. */
const Sym *const *pte_shape(Pte *p, const Sym *const *sizes, uint32_t rank);

/* ---- the lowerings ---- */

/* lower_elementwise.c */
void pte_lower_add(Pte *p, const Node *node);
void pte_lower_args(Pte *p, const Node *node);
void pte_lower_elu(Pte *p, const Node *node);
void pte_lower_gelu(Pte *p, const Node *node);
void pte_lower_remainder(Pte *p, const Node *node);
void pte_lower_softplus(Pte *p, const Node *node);
void pte_lower_to(Pte *p, const Node *node);

/* lower_shape.c */
void pte_lower_arange(Pte *p, const Node *node);
void pte_lower_cat(Pte *p, const Node *node);
void pte_lower_expand(Pte *p, const Node *node);
void pte_lower_full(Pte *p, const Node *node);
void pte_lower_scalar_tensor(Pte *p, const Node *node);
void pte_lower_slice(Pte *p, const Node *node);
void pte_lower_split(Pte *p, const Node *node);
void pte_lower_view(Pte *p, const Node *node);

/* lower_select.c */
void pte_lower_argmax(Pte *p, const Node *node);
void pte_lower_cumsum(Pte *p, const Node *node);
void pte_lower_embedding(Pte *p, const Node *node);
void pte_lower_gather(Pte *p, const Node *node);
void pte_lower_index(Pte *p, const Node *node);
void pte_lower_index_copy(Pte *p, const Node *node);
void pte_lower_index_put(Pte *p, const Node *node);
void pte_lower_reduce(Pte *p, const Node *node);
void pte_lower_scatter_reduce(Pte *p, const Node *node);
void pte_lower_softmax(Pte *p, const Node *node);
void pte_lower_nonzero(Pte *p, const Node *node);
void pte_lower_topk(Pte *p, const Node *node);

/* lower_layer.c */
void pte_lower_grouped_mm(Pte *p, const Node *node);
void pte_lower_layer_norm(Pte *p, const Node *node);
void pte_lower_linear(Pte *p, const Node *node);
void pte_lower_matmul(Pte *p, const Node *node);

/* lower_vision.c */
void pte_lower_avg_pool(Pte *p, const Node *node);
void pte_lower_batch_norm(Pte *p, const Node *node);
void pte_lower_convolution(Pte *p, const Node *node);
void pte_lower_grid_sampler(Pte *p, const Node *node);
void pte_lower_group_norm(Pte *p, const Node *node);
void pte_lower_max_pool(Pte *p, const Node *node);
void pte_lower_pad(Pte *p, const Node *node);
void pte_lower_upsample(Pte *p, const Node *node);

#endif
