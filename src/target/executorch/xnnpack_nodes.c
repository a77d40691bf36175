/* The nodes that XNNPACK takes, one row each: what must hold, and what they become. Numbers and fields are
 * those of the delegate's schema.
 *
 * Shapes in a delegate are static but for sizes that stay as they are, or one size that follows from the
 * others. Rows whose numbers XNNPACK computes in another way than ATen are not here: the sine of large
 * angles, the tanh form of GELU (which is decomposed), averages that count padding. */
#include "target/executorch/xnnpack_rows.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { MAX_RANK = 6 };

typedef struct Row {
    bool (*takes)(const Node *node); /* NULL: whatever the types allow */
    void (*add)(Xnn *x, const Node *node);
    uint8_t type;
} Row;

static const Row rows[OP_COUNT];

uint8_t xnn_type(const Node *node) {
    return rows[node->op].type;
}

/* ---- sizes ---- */

static const Sym *last_size(const Value *value) {
    return value->shape[value->rank - 1];
}

static bool is_last(const Node *node, uint32_t arg, const Value *value) {
    return node_dim(node, arg, value->rank) + 1 == value->rank;
}

/* ---- element by element ---- */

/* Work with channels last where an input is an image that is there already; something of rank 4 that goes
 * with it is brought there. */
static bool prefers_channels_last(const Xnn *x, const Node *node) {
    const Value *self = node_tensor(node, 0);
    if (node->outputs[0]->rank != 4 || self->rank != 4) return false;
    const Value *other = op_schema(node->op)->arg_count > 1 ? node_tensor(node, 1) : NULL;
    if (other && other->rank != 4) return false;
    return xnn_has_channels_last(x, self) || (other && xnn_has_channels_last(x, other));
}

static uint32_t input(Xnn *x, const Node *node, uint32_t i, bool last) {
    const Value *value = node_tensor(node, i);
    return last ? xnn_channels_last(x, value) : xnn_input(x, value);
}

static uint32_t output(Xnn *x, const Node *node, bool last) {
    const Value *value = node->outputs[0];
    return last ? xnn_output_channels_last(x, value) : xnn_output(x, value);
}

static FlatRef table_1(Xnn *x, uint32_t from, uint32_t to) {
    return FLAT_TABLE(&x->b, FLAT_32(0, from), FLAT_32(1, to), FLAT_32(2, 0));
}

static FlatRef table_2(Xnn *x, uint32_t a, uint32_t b, uint32_t to, uint32_t flags) {
    return FLAT_TABLE(&x->b, FLAT_32(0, a), FLAT_32(1, b), FLAT_32(2, to), FLAT_32(3, flags));
}

static void add_unary(Xnn *x, const Node *node) {
    bool last = prefers_channels_last(x, node);
    uint32_t from = input(x, node, 0, last), to = output(x, node, last);
    xnn_node(x, xnn_type(node), table_1(x, from, to));
}

static void add_binary(Xnn *x, const Node *node) {
    bool last = prefers_channels_last(x, node);
    uint32_t a = input(x, node, 0, last), b = input(x, node, 1, last), to = output(x, node, last);
    xnn_node(x, xnn_type(node), table_2(x, a, b, to, 0));
}

/* XNNPACK takes numbers that are too small for a normal float for 0. */
static bool takes_scalar(const Node *node) {
    if (!xnn_is_number(&node->args[1])) return false;
    double size = fabs(node_number(node, 1));
    return size == 0 || size >= (node->outputs[0]->dtype == FERRY_F16 ? 6.2e-5 : FLT_MIN);
}

static void add_scalar(Xnn *x, const Node *node) {
    bool last = prefers_channels_last(x, node);
    uint32_t a = input(x, node, 0, last);
    uint32_t b = xnn_numbers(x, node->outputs[0]->dtype, 1, node_number(node, 1), 1);
    xnn_node(x, xnn_type(node), table_2(x, a, b, output(x, node, last), 0));
}

static void add_reciprocal(Xnn *x, const Node *node) {
    uint32_t one = xnn_numbers(x, node->outputs[0]->dtype, 1, 1, 1);
    uint32_t from = xnn_input(x, node_tensor(node, 0));
    xnn_node(x, XNN_DIV, table_2(x, one, from, xnn_output(x, node->outputs[0]), 0));
}

static bool takes_power(const Node *node) {
    return xnn_is_number(&node->args[1]) &&
           (node_number(node, 1) == 2 || node_number(node, 1) == 3);
}

static void add_power(Xnn *x, const Node *node) {
    const Value *out = node->outputs[0];
    uint32_t from = xnn_input(x, node_tensor(node, 0));
    if (node_number(node, 1) == 2) {
        xnn_node(x, XNN_SQUARE, table_1(x, from, xnn_output(x, out)));
        return;
    }
    uint32_t square = xnn_temp(x, out->dtype, out->rank, out->shape);
    xnn_node(x, XNN_SQUARE, table_1(x, from, square));
    xnn_node(x, XNN_MULTIPLY, table_2(x, square, from, xnn_output(x, out), 0));
}

static bool takes_clamp(const Node *node) {
    for (uint32_t i = 1; i < 3; i++) {
        if (node->args[i].kind != VALUE_NONE && !xnn_is_number(&node->args[i])) return false;
    }
    return true;
}

static void add_clamp(Xnn *x, const Node *node) {
    bool last = prefers_channels_last(x, node), relu = node->op == OP_RELU;
    double low = relu ? 0 : node->args[1].kind == VALUE_NONE ? -INFINITY : node_number(node, 1);
    double high = relu || node->args[2].kind == VALUE_NONE ? INFINITY : node_number(node, 2);
    uint32_t from = input(x, node, 0, last), to = output(x, node, last);
    xnn_clamped_node(x, XNN_CLAMP, table_1(x, from, to), low, high);
}

static void add_leaky_relu(Xnn *x, const Node *node) {
    uint32_t from = xnn_input(x, node_tensor(node, 0)), to = xnn_output(x, node->outputs[0]);
    xnn_node(x, XNN_LEAKY_RELU,
             FLAT_TABLE(&x->b, FLAT_FLOAT(0, (float)node_number(node, 1)), FLAT_32(1, from),
                        FLAT_32(2, to), FLAT_32(3, 0)));
}

static bool takes_gelu(const Node *node) {
    return strcmp(node->args[1].string, "none") == 0 && node->outputs[0]->dtype == FERRY_F32;
}

/* ---- products ---- */

static bool takes_linear(const Node *node) {
    const Value *bias = node_tensor(node, 2);
    return xnn_is_static(node_tensor(node, 1), 2) && (!bias || xnn_is_static(bias, 1));
}

static void fully_connected(Xnn *x, uint32_t from, uint32_t filter, uint32_t bias, uint32_t to) {
    xnn_node(x, XNN_LINEAR,
             FLAT_TABLE(&x->b, FLAT_32(0, from), FLAT_32(1, filter), FLAT_32(2, bias),
                        FLAT_32(3, to), FLAT_32(4, 0)));
}

static void add_linear(Xnn *x, const Node *node) {
    const Value *bias = node_tensor(node, 2);
    uint32_t from = xnn_input(x, node_tensor(node, 0)), filter = xnn_input(x, node_tensor(node, 1));
    uint32_t added = bias ? xnn_input(x, bias) : UINT32_MAX;
    fully_connected(x, from, filter, added, xnn_output(x, node->outputs[0]));
}

enum { TRANSPOSED = 1 }; /* the second factor */

static bool takes_matmul(const Node *node) {
    return node_tensor(node, 0)->rank >= 3 && node_tensor(node, 1)->rank >= 3;
}

static void add_matmul(Xnn *x, const Node *node) {
    const Value *factor = node_tensor(node, 1);
    bool transposed = x->partition->folded[factor->id];
    if (transposed) factor = factor->producer->args[0].tensor;
    uint32_t a = xnn_input(x, node_tensor(node, 0)), b = xnn_input(x, factor);
    uint32_t flags = transposed ? TRANSPOSED : 0;
    xnn_node(x, XNN_BATCH_MATMUL, table_2(x, a, b, xnn_output(x, node->outputs[0]), flags));
}

/* A mean or sum over the last dimension is a product with a row of equal numbers. */
static bool takes_reduce(const Node *node) {
    const Value *from = node_tensor(node, 0);
    const Arg *dims = &node->args[1];
    if (dims->integers.count != 1 || !sym_is_const(last_size(from))) return false;
    int64_t dim = dims->integers.items[0]->value;
    if ((dim < 0 ? dim + from->rank : dim) + 1 != from->rank) return false;
    return last_size(from)->value > 0 && (node->args[2].boolean || xnn_takes_reshape(node));
}

static void add_reduce(Xnn *x, const Node *node) {
    const Value *from = node_tensor(node, 0), *out = node->outputs[0];
    int64_t size = last_size(from)->value;
    double factor = node->op == OP_MEAN ? 1.0 / (double)size : 1;
    uint32_t self = xnn_input(x, from), filter = xnn_numbers(x, out->dtype, 2, factor, size);
    const Sym *sizes[FERRY_MAX_RANK];
    memcpy(sizes, from->shape, from->rank * sizeof *sizes);
    sizes[from->rank - 1] = sym_const(&x->p->program->symbols, 1);
    if (node->args[2].boolean) {
        fully_connected(x, self, filter, UINT32_MAX, xnn_output(x, out));
        return;
    }
    uint32_t kept = xnn_temp(x, out->dtype, from->rank, sizes);
    fully_connected(x, self, filter, UINT32_MAX, kept);
    xnn_reshape(x, kept, xnn_output(x, out), out->rank, out->shape);
}

static bool takes_softmax(const Node *node) {
    return is_last(node, 1, node->outputs[0]);
}

static void add_softmax(Xnn *x, const Node *node) {
    uint32_t from = xnn_input(x, node_tensor(node, 0));
    xnn_node(x, XNN_SOFTMAX, table_1(x, from, xnn_output(x, node->outputs[0])));
}

/* ---- the table ---- */

static const Row rows[OP_COUNT] = {
    [OP_ADD] = {NULL, add_binary, XNN_ADD},
    [OP_SUB] = {NULL, add_binary, XNN_SUBTRACT},
    [OP_MUL] = {NULL, add_binary, XNN_MULTIPLY},
    [OP_DIV] = {NULL, add_binary, XNN_DIV},
    [OP_MAXIMUM] = {NULL, add_binary, XNN_MAXIMUM},
    [OP_MINIMUM] = {NULL, add_binary, XNN_MINIMUM},
    [OP_ADD_SCALAR] = {takes_scalar, add_scalar, XNN_ADD},
    [OP_MUL_SCALAR] = {takes_scalar, add_scalar, XNN_MULTIPLY},
    [OP_DIV_SCALAR] = {takes_scalar, add_scalar, XNN_DIV},
    [OP_POW_SCALAR] = {takes_power, add_power, XNN_SQUARE},
    [OP_CLAMP] = {takes_clamp, add_clamp, XNN_CLAMP},
    [OP_RELU] = {NULL, add_clamp, XNN_CLAMP},
    [OP_NEG] = {NULL, add_unary, XNN_NEGATE},
    [OP_ABS] = {NULL, add_unary, XNN_ABS},
    [OP_EXP] = {NULL, add_unary, XNN_EXP},
    [OP_LOG] = {NULL, add_unary, XNN_LOG},
    [OP_SQRT] = {NULL, add_unary, XNN_SQRT},
    [OP_RSQRT] = {NULL, add_unary, XNN_RSQRT},
    [OP_RECIPROCAL] = {NULL, add_reciprocal, XNN_DIV},
    [OP_TANH] = {NULL, add_unary, XNN_TANH},
    [OP_SIGMOID] = {NULL, add_unary, XNN_SIGMOID},
    [OP_FLOOR] = {NULL, add_unary, XNN_FLOOR},
    [OP_CEIL] = {NULL, add_unary, XNN_CEIL},
    [OP_GELU] = {takes_gelu, add_unary, XNN_GELU},
    [OP_LEAKY_RELU] = {takes_scalar, add_leaky_relu, XNN_LEAKY_RELU},
    [OP_TO] = {NULL, add_unary, XNN_CONVERT},
    [OP_VIEW] = {xnn_takes_reshape, xnn_add_reshape, XNN_RESHAPE},
    [OP_UNSQUEEZE] = {xnn_takes_reshape, xnn_add_reshape, XNN_RESHAPE},
    [OP_SQUEEZE] = {xnn_takes_reshape, xnn_add_reshape, XNN_RESHAPE},
    [OP_PERMUTE] = {NULL, xnn_add_permute, 0},
    [OP_CAT] = {xnn_takes_cat, xnn_add_cat, 0},
    [OP_SLICE] = {xnn_takes_slice, xnn_add_slice, XNN_SLICE},
    [OP_SPLIT] = {xnn_takes_split, xnn_add_split, XNN_SLICE},
    [OP_SELECT] = {xnn_takes_select, xnn_add_select, XNN_SLICE},
    [OP_PAD] = {xnn_takes_pad, xnn_add_pad, XNN_PAD},
    [OP_LINEAR] = {takes_linear, add_linear, XNN_LINEAR},
    [OP_MATMUL] = {takes_matmul, add_matmul, XNN_BATCH_MATMUL},
    [OP_SUM] = {takes_reduce, add_reduce, XNN_LINEAR},
    [OP_MEAN] = {takes_reduce, add_reduce, XNN_LINEAR},
    [OP_SOFTMAX] = {takes_softmax, add_softmax, XNN_SOFTMAX},
    [OP_CONVOLUTION] = {xnn_takes_convolution, xnn_add_convolution, XNN_CONV},
    [OP_MAX_POOL] = {xnn_takes_pool, xnn_add_pool, XNN_MAX_POOL},
    [OP_AVG_POOL] = {xnn_takes_pool, xnn_add_pool, XNN_AVG_POOL},
};

/* A tensor that XNNPACK can hold: float32 or float16, at least a dimension and an element. */
static bool holds(const Value *value) {
    if (value->dtype != FERRY_F32 && value->dtype != FERRY_F16) return false;
    if (value->rank == 0 || value->rank > MAX_RANK) return false;
    for (uint32_t d = 0; d < value->rank; d++) {
        if (sym_is_value(value->shape[d], 0)) return false;
    }
    return true;
}

static void check_input(void *context, Value **use) {
    bool *held = context;
    *held = *held && holds(*use);
}

bool xnnpack_has(Op op) {
    return rows[op].add != NULL;
}

bool xnnpack_takes(const Node *node) {
    const Row *row = &rows[node->op];
    bool held = row->add != NULL;
    node_each_tensor((Node *)node, check_input, &held);
    for (uint32_t i = 0; i < node->output_count; i++) held = held && holds(node->outputs[i]);
    return held && (!row->takes || row->takes(node));
}

void xnn_add_node(Xnn *x, const Node *node) {
    rows[node->op].add(x, node);
}

bool xnnpack_decomposes(const Node *node) {
    if (node->op == OP_CONVOLUTION && node->args[1].tensor->rank == 3) return true;
    if (node->outputs[0]->dtype != FERRY_F32) return false;
    if (node->op == OP_GELU) return strcmp(node->args[1].string, "tanh") == 0;
    if (node->op == OP_LAYER_NORM) return node->args[1].integers.count == 1;
    return node->op == OP_BATCH_NORM;
}
