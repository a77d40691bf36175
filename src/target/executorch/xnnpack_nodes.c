/* The nodes that XNNPACK takes, one row each: what must hold, and what they become. Numbers and fields are
 * those of the delegate's schema.
 *
 * Shapes in a delegate are static but for sizes that stay as they are, or one size that follows from the
 * others. Rows whose numbers XNNPACK computes in another way than ATen are not here: the sine of large
 * angles, the tanh form of GELU (which is decomposed), averages that count padding. */
#include "target/executorch/lower.h"
#include "target/executorch/xnnpack.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { MAX_RANK = 6, MAX_CAT = 5 };
enum { TRANSPOSE_B = 1 }; /* a flag of the product of batches */

enum {
    XNN_ADD = 1, XNN_LINEAR, XNN_SOFTMAX, XNN_SIGMOID, XNN_CLAMP = 6, XNN_CONV, XNN_DIV,
    XNN_PAD = 10, XNN_AVG_POOL, XNN_MINIMUM, XNN_DEPTHWISE, XNN_MAX_POOL, XNN_MULTIPLY,
    XNN_SUBTRACT, XNN_FLOOR, XNN_CONVERT, XNN_RESHAPE = 20, XNN_SQRT = 22, XNN_CEIL,
    XNN_LEAKY_RELU = 25, XNN_MAXIMUM, XNN_NEGATE, XNN_SQUARE, XNN_ABS = 30, XNN_CAT2 = 32,
    XNN_CAT3, XNN_CAT4, XNN_SLICE, XNN_BATCH_MATMUL = 37, XNN_CAT5, XNN_RSQRT = 40, XNN_LOG,
    XNN_GELU, XNN_TANH, XNN_EXP,
};

typedef struct Row {
    bool (*takes)(const Node *node); /* NULL: whatever the types allow */
    void (*add)(Xnn *x, const Node *node);
    uint8_t type;
} Row;

static const Row rows[OP_COUNT];

static uint8_t type_of(const Node *node) {
    return rows[node->op].type;
}

/* ---- sizes ---- */

static uint32_t count_dynamic(const Value *value) {
    uint32_t count = 0;
    for (uint32_t d = 0; d < value->rank; d++) count += !sym_is_const(value->shape[d]);
    return count;
}

static const Sym *last_size(const Value *value) {
    return value->shape[value->rank - 1];
}

static bool is_number(const Arg *arg) {
    if (arg->kind == VALUE_INT) return sym_is_const(arg->integer);
    return arg->kind == VALUE_FLOAT;
}

static bool is_last(const Node *node, uint32_t arg, const Value *value) {
    return node_dim(node, arg, value->rank) + 1 == value->rank;
}

/* ---- element by element ---- */

/* Work with channels last where every image among the inputs is there already. */
static bool prefers_channels_last(const Xnn *x, const Node *node) {
    const Value *self = node_tensor(node, 0);
    if (node->outputs[0]->rank != 4 || !xnn_has_channels_last(x, self)) return false;
    const Value *other = op_schema(node->op)->arg_count > 1 ? node_tensor(node, 1) : NULL;
    return !other || (xnn_has_channels_last(x, other) &&
                      shape_equal(4, self->shape, node->outputs[0]->shape));
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
    xnn_node(x, type_of(node), table_1(x, from, to));
}

static void add_binary(Xnn *x, const Node *node) {
    bool last = prefers_channels_last(x, node);
    uint32_t a = input(x, node, 0, last), b = input(x, node, 1, last), to = output(x, node, last);
    xnn_node(x, type_of(node), table_2(x, a, b, to, 0));
}

/* XNNPACK takes numbers that are too small for a normal float for 0. */
static bool takes_scalar(const Node *node) {
    if (!is_number(&node->args[1])) return false;
    double size = fabs(node_number(node, 1));
    return size == 0 || size >= (node->outputs[0]->dtype == FERRY_F16 ? 6.2e-5 : FLT_MIN);
}

static void add_scalar(Xnn *x, const Node *node) {
    bool last = prefers_channels_last(x, node);
    uint32_t a = input(x, node, 0, last);
    uint32_t b = xnn_numbers(x, node->outputs[0]->dtype, 1, node_number(node, 1), 1);
    xnn_node(x, type_of(node), table_2(x, a, b, output(x, node, last), 0));
}

static void add_reciprocal(Xnn *x, const Node *node) {
    uint32_t one = xnn_numbers(x, node->outputs[0]->dtype, 1, 1, 1);
    uint32_t from = xnn_input(x, node_tensor(node, 0));
    xnn_node(x, XNN_DIV, table_2(x, one, from, xnn_output(x, node->outputs[0]), 0));
}

static bool takes_power(const Node *node) {
    return is_number(&node->args[1]) && (node_number(node, 1) == 2 || node_number(node, 1) == 3);
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
        if (node->args[i].kind != VALUE_NONE && !is_number(&node->args[i])) return false;
    }
    return true;
}

static void add_clamp(Xnn *x, const Node *node) {
    bool last = prefers_channels_last(x, node), relu = node->op == OP_RELU;
    double low = relu                                 ? 0
                 : node->args[1].kind == VALUE_NONE ? -INFINITY
                                                    : node_number(node, 1);
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

/* ---- shape ---- */

static bool takes_reshape(const Node *node) {
    const Value *out = node->outputs[0];
    for (uint32_t d = 0; d < out->rank; d++) {
        if (sym_is_value(out->shape[d], 0)) return false;
    }
    return count_dynamic(out) <= 1;
}

/* 0 stands for the size that follows from the others. */
static void reshape(Xnn *x, uint32_t from, uint32_t to, uint32_t rank, const Sym *const *shape) {
    uint32_t sizes[FERRY_MAX_RANK];
    for (uint32_t d = 0; d < rank; d++) {
        sizes[d] = sym_is_const(shape[d]) ? (uint32_t)shape[d]->value : 0;
    }
    FlatRef list = flat_vector(&x->b, sizes, sizeof *sizes, rank);
    xnn_node(x, XNN_RESHAPE,
             FLAT_TABLE(&x->b, FLAT_32(0, rank), FLAT_REF(1, list), FLAT_32(2, from),
                        FLAT_32(3, to), FLAT_32(4, 0)));
}

static void add_reshape(Xnn *x, const Node *node) {
    const Value *out = node->outputs[0];
    uint32_t from = xnn_input(x, node_tensor(node, 0));
    reshape(x, from, xnn_output(x, out), out->rank, out->shape);
}

static void add_permute(Xnn *x, const Node *node) {
    const Arg *list = &node->args[1];
    int64_t dims[FERRY_MAX_RANK];
    for (uint32_t d = 0; d < list->integers.count; d++) dims[d] = list->integers.items[d]->value;
    uint32_t from = xnn_input(x, node_tensor(node, 0));
    xnn_transpose(x, from, xnn_output(x, node->outputs[0]), dims, list->integers.count);
}

static bool takes_cat(const Node *node) {
    uint32_t count = node->args[0].tensors.count;
    return count >= 2 && count <= MAX_CAT;
}

static void add_cat(Xnn *x, const Node *node) {
    static const uint8_t types[] = {XNN_CAT2, XNN_CAT3, XNN_CAT4, XNN_CAT5};
    const Arg *parts = &node->args[0];
    uint32_t ids[MAX_CAT], count = parts->tensors.count;
    for (uint32_t i = 0; i < MAX_CAT; i++) {
        ids[i] = i < count ? xnn_input(x, parts->tensors.items[i]) : UINT32_MAX;
    }
    uint32_t to = xnn_output(x, node->outputs[0]);
    xnn_node(x, types[count - 2],
             FLAT_TABLE(&x->b, FLAT_32(0, node_dim(node, 1, node->outputs[0]->rank)),
                        FLAT_32(1, ids[0]), FLAT_32(2, ids[1]), FLAT_32(3, ids[2]),
                        FLAT_32(4, ids[3]), FLAT_32(5, to), FLAT_32(6, 0), FLAT_32(7, ids[4])));
}

/* `size` elements of a static dimension; the others stay whatever they are (offset 0, size 0). */
static void slice(Xnn *x, uint32_t from, uint32_t to, uint32_t rank, uint32_t dim, int64_t start,
                  int64_t size) {
    uint32_t offsets[FERRY_MAX_RANK] = {0}, sizes[FERRY_MAX_RANK] = {0};
    offsets[dim] = (uint32_t)start;
    sizes[dim] = (uint32_t)size;
    FlatRef starts = flat_vector(&x->b, offsets, sizeof *offsets, rank);
    FlatRef lengths = flat_vector(&x->b, sizes, sizeof *sizes, rank);
    xnn_node(x, XNN_SLICE,
             FLAT_TABLE(&x->b, FLAT_32(0, rank), FLAT_REF(1, starts), FLAT_REF(2, lengths),
                        FLAT_32(3, from), FLAT_32(4, to), FLAT_32(5, 0)));
}

static bool takes_slice(const Node *node) {
    const Value *from = node_tensor(node, 0), *to = node->outputs[0];
    uint32_t dim = (uint32_t)node_dim(node, 1, from->rank);
    if (!sym_is_const(from->shape[dim]) || !sym_is_const(to->shape[dim])) return false;
    return sym_is_const(node->args[2].integer) && node_int(node, 2) >= 0 &&
           sym_is_value(node->args[4].integer, 1) && to->shape[dim]->value > 0;
}

static void add_slice(Xnn *x, const Node *node) {
    const Value *to = node->outputs[0];
    uint32_t dim = (uint32_t)node_dim(node, 1, to->rank), from = xnn_input(x, node_tensor(node, 0));
    slice(x, from, xnn_output(x, to), to->rank, dim, node_int(node, 2), to->shape[dim]->value);
}

static bool takes_split(const Node *node) {
    const Arg *sizes = &node->args[1];
    for (uint32_t i = 0; i < sizes->integers.count; i++) {
        const Sym *size = sizes->integers.items[i];
        if (!sym_is_const(size) || size->value == 0) return false;
    }
    return true;
}

static void add_split(Xnn *x, const Node *node) {
    const Value *whole = node_tensor(node, 0);
    uint32_t dim = (uint32_t)node_dim(node, 2, whole->rank), from = xnn_input(x, whole);
    int64_t start = 0;
    for (uint32_t i = 0; i < node->output_count; i++) {
        const Value *part = node->outputs[i];
        int64_t size = part->shape[dim]->value;
        slice(x, from, xnn_output(x, part), part->rank, dim, start, size);
        start += size;
    }
}

/* A slice of one, without its dimension. */
static bool takes_select(const Node *node) {
    const Value *from = node_tensor(node, 0);
    const Sym *size = from->shape[node_dim(node, 1, from->rank)], *index = node->args[2].integer;
    return sym_is_const(size) && sym_is_const(index) && takes_reshape(node);
}

static void add_select(Xnn *x, const Node *node) {
    const Value *from = node_tensor(node, 0), *out = node->outputs[0];
    uint32_t dim = (uint32_t)node_dim(node, 1, from->rank), whole = xnn_input(x, from);
    int64_t index = node_int(node, 2);
    const Sym *sizes[FERRY_MAX_RANK];
    if (index < 0) index += from->shape[dim]->value;
    memcpy(sizes, from->shape, from->rank * sizeof *sizes);
    sizes[dim] = sym_const(&x->p->program->symbols, 1);
    uint32_t part = xnn_temp(x, out->dtype, from->rank, sizes);
    slice(x, whole, part, from->rank, dim, index, 1);
    reshape(x, part, xnn_output(x, out), out->rank, out->shape);
}

static bool takes_pad(const Node *node) {
    const Arg *pads = &node->args[1];
    if (strcmp(node->args[2].string, "constant") != 0 || !is_number(&node->args[3])) return false;
    for (uint32_t i = 0; i < pads->integers.count; i++) {
        const Sym *pad = pads->integers.items[i];
        if (!sym_is_const(pad) || pad->value < 0) return false;
    }
    return true;
}

static void add_pad(Xnn *x, const Node *node) {
    const Arg *pads = &node->args[1];
    uint32_t before[FERRY_MAX_RANK] = {0}, after[FERRY_MAX_RANK] = {0};
    uint32_t rank = node->outputs[0]->rank;
    for (uint32_t i = 0; i < pads->integers.count; i += 2) {
        before[rank - 1 - i / 2] = (uint32_t)pads->integers.items[i]->value;
        after[rank - 1 - i / 2] = (uint32_t)pads->integers.items[i + 1]->value;
    }
    uint32_t from = xnn_input(x, node_tensor(node, 0)), to = xnn_output(x, node->outputs[0]);
    FlatRef first = flat_vector(&x->b, before, sizeof *before, rank);
    FlatRef behind = flat_vector(&x->b, after, sizeof *after, rank);
    xnn_node(x, XNN_PAD,
             FLAT_TABLE(&x->b, FLAT_REF(0, first), FLAT_REF(1, behind),
                        FLAT_FLOAT(2, (float)node_number(node, 3)), FLAT_32(3, from),
                        FLAT_32(4, to), FLAT_32(5, 0)));
}

/* ---- products ---- */

static bool is_static(const Value *value, uint32_t rank) {
    return value && value->recipe && value->rank == rank;
}

static bool takes_linear(const Node *node) {
    const Value *bias = node_tensor(node, 2);
    return is_static(node_tensor(node, 1), 2) && (!bias || is_static(bias, 1));
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

static bool takes_matmul(const Node *node) {
    return node_tensor(node, 0)->rank >= 3 && node_tensor(node, 1)->rank >= 3;
}

static void add_matmul(Xnn *x, const Node *node) {
    uint32_t a = xnn_input(x, node_tensor(node, 0)), b = xnn_input(x, node_tensor(node, 1));
    xnn_node(x, XNN_BATCH_MATMUL, table_2(x, a, b, xnn_output(x, node->outputs[0]), 0));
}

/* A mean or sum over the last dimension is a product with a row of equal numbers. */
static bool takes_reduce(const Node *node) {
    const Value *from = node_tensor(node, 0);
    const Arg *dims = &node->args[1];
    if (dims->integers.count != 1 || !sym_is_const(last_size(from))) return false;
    int64_t dim = dims->integers.items[0]->value;
    if ((dim < 0 ? dim + from->rank : dim) + 1 != from->rank) return false;
    return last_size(from)->value > 0 && (node->args[2].boolean || takes_reshape(node));
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
    reshape(x, kept, xnn_output(x, out), out->rank, out->shape);
}

static bool takes_softmax(const Node *node) {
    return is_last(node, 1, node->outputs[0]);
}

/* ---- images ---- */

static uint32_t entry(const Node *node, uint32_t arg, uint32_t i) {
    return (uint32_t)node->args[arg].integers.items[i]->value;
}

static bool is_depthwise(const Node *node) {
    const Value *weight = node_tensor(node, 1);
    return node_int(node, 8) > 1 && sym_is_value(weight->shape[1], 1);
}

static bool takes_convolution(const Node *node) {
    const Value *weight = node_tensor(node, 1), *bias = node_tensor(node, 2);
    return is_static(weight, 4) && (!bias || is_static(bias, 1)) && !node->args[6].boolean &&
           node_tensor(node, 0)->rank == 4;
}

/* Filters are [out, height, width, in]; of a depthwise convolution [1, height, width, out]. The bias is
 * float32. */
static void add_convolution(Xnn *x, const Node *node) {
    static const int64_t dense[] = {0, 2, 3, 1}, wise[] = {1, 2, 3, 0};
    const Value *weight = node_tensor(node, 1), *bias = node_tensor(node, 2);
    Arena *arena = &x->p->program->arena;
    bool depthwise = is_depthwise(node);
    const Recipe *filter = recipe_permute(arena, weight->recipe, depthwise ? wise : dense);
    if (!filter || (bias && !recipe_cast(arena, bias->recipe, FERRY_F32))) {
        pte_fail(x->p, FERRY_OUT_OF_MEMORY, "out of memory");
        return;
    }
    uint32_t groups = (uint32_t)node_int(node, 8), out = (uint32_t)weight->shape[0]->value;
    uint32_t from = xnn_channels_last(x, node_tensor(node, 0));
    uint32_t id = xnn_weight(x, filter, weight->name);
    const Recipe *wide = bias ? recipe_cast(arena, bias->recipe, FERRY_F32) : NULL;
    uint32_t added = wide ? xnn_weight(x, wide, bias->name) : UINT32_MAX;
    uint32_t to = xnn_output_channels_last(x, node->outputs[0]);
    uint32_t pad[] = {entry(node, 4, 0), entry(node, 4, 1)};
    xnn_node(x, depthwise ? XNN_DEPTHWISE : XNN_CONV,
             FLAT_TABLE(&x->b, FLAT_32(0, pad[0]), FLAT_32(1, pad[1]), FLAT_32(2, pad[0]),
                        FLAT_32(3, pad[1]), FLAT_32(4, weight->shape[2]->value),
                        FLAT_32(5, weight->shape[3]->value), FLAT_32(6, entry(node, 3, 0)),
                        FLAT_32(7, entry(node, 3, 1)), FLAT_32(8, entry(node, 5, 0)),
                        FLAT_32(9, entry(node, 5, 1)), FLAT_32(10, weight->shape[1]->value),
                        FLAT_32(11, out / groups), FLAT_32(12, groups), FLAT_32(13, 0),
                        FLAT_32(14, 0), FLAT_32(15, from), FLAT_32(16, id), FLAT_32(17, added),
                        FLAT_32(18, to), FLAT_32(19, 0)));
}

/* XNNPACK's average leaves padding out, and its windows overlap or touch. */
static bool takes_pool(const Node *node) {
    bool average = node->op == OP_AVG_POOL;
    const Arg *ceil_mode = &node->args[average ? 4 : 5];
    if (ceil_mode->boolean || node_tensor(node, 0)->rank != 4) return false;
    for (uint32_t i = 0; i < 2; i++) {
        if (entry(node, 2, i) > entry(node, 1, i)) return false;
        if (average && entry(node, 3, i) != 0) return false;
    }
    return entry(node, 1, 0) * entry(node, 1, 1) > 1;
}

static void add_pool(Xnn *x, const Node *node) {
    bool average = node->op == OP_AVG_POOL;
    uint32_t from = xnn_channels_last(x, node_tensor(node, 0));
    uint32_t to = xnn_output_channels_last(x, node->outputs[0]);
    uint32_t pad[] = {entry(node, 3, 0), entry(node, 3, 1)};
    uint32_t dilation[] = {average ? 1 : entry(node, 4, 0), average ? 1 : entry(node, 4, 1)};
    xnn_node(x, type_of(node),
             FLAT_TABLE(&x->b, FLAT_32(0, pad[0]), FLAT_32(1, pad[1]), FLAT_32(2, pad[0]),
                        FLAT_32(3, pad[1]), FLAT_32(4, entry(node, 1, 0)),
                        FLAT_32(5, entry(node, 1, 1)), FLAT_32(6, entry(node, 2, 0)),
                        FLAT_32(7, entry(node, 2, 1)), FLAT_32(8, dilation[0]),
                        FLAT_32(9, dilation[1]), FLAT_32(10, from), FLAT_32(11, to),
                        FLAT_32(12, 0)));
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
    [OP_VIEW] = {takes_reshape, add_reshape, XNN_RESHAPE},
    [OP_UNSQUEEZE] = {takes_reshape, add_reshape, XNN_RESHAPE},
    [OP_SQUEEZE] = {takes_reshape, add_reshape, XNN_RESHAPE},
    [OP_PERMUTE] = {NULL, add_permute, 0},
    [OP_CAT] = {takes_cat, add_cat, 0},
    [OP_SLICE] = {takes_slice, add_slice, XNN_SLICE},
    [OP_SPLIT] = {takes_split, add_split, XNN_SLICE},
    [OP_SELECT] = {takes_select, add_select, XNN_SLICE},
    [OP_PAD] = {takes_pad, add_pad, XNN_PAD},
    [OP_LINEAR] = {takes_linear, add_linear, XNN_LINEAR},
    [OP_MATMUL] = {takes_matmul, add_matmul, XNN_BATCH_MATMUL},
    [OP_SUM] = {takes_reduce, add_reduce, XNN_LINEAR},
    [OP_MEAN] = {takes_reduce, add_reduce, XNN_LINEAR},
    [OP_SOFTMAX] = {takes_softmax, add_unary, XNN_SOFTMAX},
    [OP_CONVOLUTION] = {takes_convolution, add_convolution, XNN_CONV},
    [OP_MAX_POOL] = {takes_pool, add_pool, XNN_MAX_POOL},
    [OP_AVG_POOL] = {takes_pool, add_pool, XNN_AVG_POOL},
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
    if (node->outputs[0]->dtype != FERRY_F32) return false;
    if (node->op == OP_GELU) return strcmp(node->args[1].string, "tanh") == 0;
    if (node->op == OP_LAYER_NORM) return node->args[1].integers.count == 1;
    return node->op == OP_BATCH_NORM;
}
