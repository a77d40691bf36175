/* What the files of rows share: the numbers of nodes in the delegate's schema, and what a row consists of. */
#ifndef TARGET_EXECUTORCH_XNNPACK_ROWS_H
#define TARGET_EXECUTORCH_XNNPACK_ROWS_H

#include "target/executorch/lower.h"
#include "target/executorch/xnnpack.h"

enum {
    XNN_ADD = 1,
    XNN_LINEAR,
    XNN_SOFTMAX,
    XNN_SIGMOID,
    XNN_CLAMP = 6,
    XNN_CONV,
    XNN_DIV,
    XNN_PAD = 10,
    XNN_AVG_POOL,
    XNN_MINIMUM,
    XNN_DEPTHWISE,
    XNN_MAX_POOL,
    XNN_MULTIPLY,
    XNN_SUBTRACT,
    XNN_FLOOR,
    XNN_CONVERT,
    XNN_RESHAPE = 20,
    XNN_SQRT = 22,
    XNN_CEIL,
    XNN_LEAKY_RELU = 25,
    XNN_MAXIMUM,
    XNN_NEGATE,
    XNN_SQUARE,
    XNN_ABS = 30,
    XNN_CAT2 = 32,
    XNN_CAT3,
    XNN_CAT4,
    XNN_SLICE,
    XNN_BATCH_MATMUL = 37,
    XNN_CAT5,
    XNN_RSQRT = 40,
    XNN_LOG,
    XNN_GELU,
    XNN_TANH,
    XNN_EXP,
};

/* An argument that is a number, known now. */
static inline bool xnn_is_number(const Arg *arg) {
    return arg->kind == VALUE_FLOAT || (arg->kind == VALUE_INT && sym_is_const(arg->integer));
}

/* A weight of this rank. */
static inline bool xnn_is_static(const Value *value, uint32_t rank) {
    return value && value_fixed(value) && value->rank == rank;
}

/* The number of the node that the row of an operation names. */
uint8_t xnn_type(const Node *node);

/* A reshape where one size at most is unknown. */
void xnn_reshape(Xnn *x, uint32_t from, uint32_t to, uint32_t rank, const Sym *const *shape);

/* xnnpack_shape.c */
bool xnn_takes_reshape(const Node *node);
void xnn_add_reshape(Xnn *x, const Node *node);
void xnn_add_permute(Xnn *x, const Node *node);
bool xnn_takes_cat(const Node *node);
void xnn_add_cat(Xnn *x, const Node *node);
bool xnn_takes_slice(const Node *node);
void xnn_add_slice(Xnn *x, const Node *node);
bool xnn_takes_split(const Node *node);
void xnn_add_split(Xnn *x, const Node *node);
bool xnn_takes_select(const Node *node);
void xnn_add_select(Xnn *x, const Node *node);
bool xnn_takes_pad(const Node *node);
void xnn_add_pad(Xnn *x, const Node *node);

/* xnnpack_image.c */
bool xnn_takes_convolution(const Node *node);
void xnn_add_convolution(Xnn *x, const Node *node);
bool xnn_takes_pool(const Node *node);
void xnn_add_pool(Xnn *x, const Node *node);

#endif
