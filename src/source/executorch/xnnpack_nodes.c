/* The nodes of XNNPACK graphs that are understood, one row each, by their number in the schema. Images have
 * their channels last there. */
#include "source/executorch/xnnpack.h"

#include <math.h>

typedef struct Row Row;
struct Row {
    const char *name;
    void (*read)(XnnGraph *x, const Row *row, const FlatTable *node);
    Op op;
};

static const int64_t to_last[] = {0, 2, 3, 1}, to_plain[] = {0, 3, 1, 2};

/* ---- fields ---- */

static uint32_t field(const FlatTable *node, uint32_t slot) {
    return (uint32_t)flat_get(node, slot, 4, 0);
}

static Value *operand(XnnGraph *x, const FlatTable *node, uint32_t slot) {
    return xnn_read(x, field(node, slot));
}

/* Lists of numbers, as many as the tensor has dimensions. */
static bool read_list(XnnGraph *x, const FlatTable *node, uint32_t slot, uint32_t rank,
                      int64_t *out) {
    FlatVector list = flat_get_vector(node, slot, 4);
    if (!reader_ok(x->r)) return false;
    if (list.count != rank || rank > FERRY_MAX_RANK) {
        return pte_read_bad(x->r, "expected a list of %u numbers, found %u", rank, list.count);
    }
    for (size_t i = 0; i < list.count; i++) out[i] = (int64_t)flat_item(&list, i);
    return true;
}

static Value *apply(XnnGraph *x, Op op, const Arg *args, uint32_t count) {
    return build_op(&x->r->b, op, args, count);
}

#define APPLY(x, op, ...)                                                                          \
    apply(x, op, (const Arg[]){__VA_ARGS__}, sizeof((const Arg[]){__VA_ARGS__}) / sizeof(Arg))

/* ---- element by element ---- */

static void read_unary(XnnGraph *x, const Row *row, const FlatTable *node) {
    xnn_give(x, field(node, 1), APPLY(x, row->op, arg_tensor(operand(x, node, 0))));
}

static void read_copy(XnnGraph *x, const Row *row, const FlatTable *node) {
    (void)row;
    xnn_give(x, field(node, 1), operand(x, node, 0));
}

static void read_convert(XnnGraph *x, const Row *row, const FlatTable *node) {
    uint32_t to = field(node, 1);
    (void)row;
    if (to >= x->count) pte_read_bad(x->r, "the value %u is not in the graph", to);
    Value *from = operand(x, node, 0);
    if (reader_ok(x->r)) xnn_give(x, to, build_to(&x->r->b, from, x->table[to].dtype));
}

static void read_square(XnnGraph *x, const Row *row, const FlatTable *node) {
    Value *value = operand(x, node, 0);
    (void)row;
    xnn_give(x, field(node, 1), build_mul(&x->r->b, value, value));
}

static void read_softmax(XnnGraph *x, const Row *row, const FlatTable *node) {
    (void)row;
    xnn_give(x, field(node, 1), build_softmax(&x->r->b, operand(x, node, 0), -1));
}

static void read_binary(XnnGraph *x, const Row *row, const FlatTable *node) {
    Value *a = operand(x, node, 0), *b = operand(x, node, 1);
    xnn_give(x, field(node, 2), build_binary(&x->r->b, row->op, a, b));
}

static void read_leaky_relu(XnnGraph *x, const Row *row, const FlatTable *node) {
    Arg slope = arg_float((double)flat_get_float(node, 0));
    xnn_give(x, field(node, 2), APPLY(x, row->op, arg_tensor(operand(x, node, 1)), slope));
}

/* ---- shape ---- */

static void read_transpose(XnnGraph *x, const Row *row, const FlatTable *node) {
    Value *value = operand(x, node, 2);
    int64_t dims[FERRY_MAX_RANK];
    if (!read_list(x, node, 1, value->rank, dims)) return;
    xnn_give(x, field(node, 3),
             APPLY(x, row->op, arg_tensor(value), arg_ints(&x->r->b, dims, value->rank)));
}

/* 0 stands for the size that follows from the others. */
static void read_reshape(XnnGraph *x, const Row *row, const FlatTable *node) {
    uint32_t rank = field(node, 0);
    int64_t sizes[FERRY_MAX_RANK];
    const Sym *shape[FERRY_MAX_RANK];
    (void)row;
    if (!read_list(x, node, 1, rank, sizes)) return;
    for (uint32_t d = 0; d < rank; d++) shape[d] = build_const(&x->r->b, sizes[d] ? sizes[d] : -1);
    xnn_give(x, field(node, 3), build_view(&x->r->b, operand(x, node, 2), shape, rank));
}

static void read_cat(XnnGraph *x, const Row *row, const FlatTable *node) {
    static const uint32_t slots[] = {1, 2, 3, 4, 7};
    Value *parts[5];
    uint32_t count = 0;
    (void)row;
    while (count < 5 && (count < 2 || flat_get(node, slots[count], 4, UINT32_MAX) != UINT32_MAX)) {
        parts[count] = operand(x, node, slots[count]);
        count++;
    }
    xnn_give(x, field(node, 5), build_cat(&x->r->b, parts, count, (int)field(node, 0)));
}

/* Size 0: what is there from the offset on. */
static void read_slice(XnnGraph *x, const Row *row, const FlatTable *node) {
    Builder *b = &x->r->b;
    Value *value = operand(x, node, 3);
    int64_t offsets[FERRY_MAX_RANK], sizes[FERRY_MAX_RANK];
    uint32_t rank = value->rank;
    (void)row;
    if (!read_list(x, node, 1, rank, offsets) || !read_list(x, node, 2, rank, sizes)) return;
    for (uint32_t d = 0; d < rank; d++) {
        const Sym *end = sizes[d] ? build_const(b, offsets[d] + sizes[d]) : value->shape[d];
        if (offsets[d] == 0 && end == value->shape[d]) continue;
        value = build_slice(b, value, (int)d, build_const(b, offsets[d]), end);
        if (!build_ok(b)) return;
    }
    xnn_give(x, field(node, 4), value);
}

static void read_pad(XnnGraph *x, const Row *row, const FlatTable *node) {
    Value *value = operand(x, node, 3);
    int64_t before[FERRY_MAX_RANK], after[FERRY_MAX_RANK], pads[2 * FERRY_MAX_RANK];
    uint32_t rank = value->rank;
    if (!read_list(x, node, 0, rank, before) || !read_list(x, node, 1, rank, after)) return;
    for (uint32_t d = 0; d < rank; d++) {
        pads[2 * (rank - 1 - d)] = before[d];
        pads[2 * (rank - 1 - d) + 1] = after[d];
    }
    Arg list = arg_ints(&x->r->b, pads, 2 * rank),
        fill = arg_float((double)flat_get_float(node, 2));
    xnn_give(x, field(node, 4),
             APPLY(x, row->op, arg_tensor(value), list, arg_string("constant"), fill));
}

/* ---- products ---- */

static void read_linear(XnnGraph *x, const Row *row, const FlatTable *node) {
    Value *from = operand(x, node, 0), *filter = operand(x, node, 1);
    uint64_t bias = flat_get(node, 2, 4, UINT32_MAX);
    (void)row;
    if (field(node, 4)) pte_read_unsupported(x->r, "flags of a FullyConnected");
    Value *added = bias == UINT32_MAX ? NULL : xnn_read(x, bias);
    xnn_give(x, field(node, 3), build_linear(&x->r->b, from, filter, added));
}

static void read_matmul(XnnGraph *x, const Row *row, const FlatTable *node) {
    Value *a = operand(x, node, 0), *b = operand(x, node, 1);
    (void)row;
    if (field(node, 3) & 1) b = build_transpose(&x->r->b, b, -2, -1);
    xnn_give(x, field(node, 2), build_matmul(&x->r->b, a, b));
}

/* ---- images ---- */

static Arg pair(XnnGraph *x, const FlatTable *node, uint32_t first) {
    const int64_t items[] = {field(node, first), field(node, first + 1)};
    return arg_ints(&x->r->b, items, 2);
}

/* The same padding on both sides. */
static Arg padding(XnnGraph *x, const FlatTable *node) {
    if (field(node, 0) != field(node, 2) || field(node, 1) != field(node, 3)) {
        pte_read_unsupported(x->r, "other padding before than behind");
    }
    const int64_t items[] = {field(node, 0), field(node, 3)};
    return arg_ints(&x->r->b, items, 2);
}

static Value *image(XnnGraph *x, const FlatTable *node, uint32_t slot) {
    Value *value = operand(x, node, slot);
    if (reader_ok(x->r) && value->rank != 4) pte_read_bad(x->r, "expected an image, of rank 4");
    return build_permute(&x->r->b, value, to_plain);
}

static void give_image(XnnGraph *x, uint64_t id, Value *value) {
    xnn_give(x, id, build_permute(&x->r->b, value, to_last));
}

/* The filter as the operation has it: [out, in, height, width]. */
static Value *filter(XnnGraph *x, const FlatTable *node, bool depthwise) {
    static const int64_t from_dense[] = {0, 3, 1, 2}, from_wise[] = {3, 0, 1, 2};
    const int64_t *dims = depthwise ? from_wise : from_dense;
    Program *program = x->r->b.program;
    Value *value = operand(x, node, 16);
    if (!reader_ok(x->r)) return value;
    if (value->rank != 4) pte_read_bad(x->r, "expected a filter of rank 4");
    if (value->rank != 4 || !value->recipe) return build_permute(&x->r->b, value, dims);
    const Recipe *recipe = recipe_permute(&program->arena, value->recipe, dims);
    Value *plain = recipe ? program_weight(program, value->kind, value->name, recipe) : NULL;
    if (!plain) pte_read_memory(x->r);
    return plain ? plain : &x->r->b.poison;
}

static void read_convolution(XnnGraph *x, const Row *row, const FlatTable *node) {
    const int64_t zero[] = {0, 0};
    Builder *b = &x->r->b;
    Value *from = image(x, node, 15),
          *weight = filter(x, node, strcmp(row->name, "DepthwiseConv2d") == 0);
    uint64_t id = flat_get(node, 17, 4, UINT32_MAX);
    Value *bias = id == UINT32_MAX ? NULL : xnn_read(x, id);
    if (bias && reader_ok(x->r)) bias = build_to(b, bias, from->dtype);
    Arg pads = padding(x, node);
    give_image(x, field(node, 18),
               APPLY(x, row->op, arg_tensor(from), arg_tensor(weight), arg_tensor(bias),
                     pair(x, node, 6), pads, pair(x, node, 8), arg_bool(false),
                     arg_ints(b, zero, 2), arg_int(b, field(node, 12))));
}

static void read_pool(XnnGraph *x, const Row *row, const FlatTable *node) {
    Value *from = image(x, node, 10);
    bool average = row->op == OP_AVG_POOL;
    Arg pads = padding(x, node), size = pair(x, node, 4), stride = pair(x, node, 6);
    if (average && (field(node, 0) || field(node, 1)))
        pte_read_unsupported(x->r, "padding of averages");
    Value *result = average ? APPLY(x, row->op, arg_tensor(from), size, stride, pads,
                                    arg_bool(false), arg_bool(true))
                            : APPLY(x, row->op, arg_tensor(from), size, stride, pads,
                                    pair(x, node, 8), arg_bool(false));
    give_image(x, field(node, 11), result);
}

/* ---- the table ---- */

static const Row rows[] = {
    [1] = {"Add", read_binary, OP_ADD},
    [2] = {"FullyConnected", read_linear, OP_LINEAR},
    [3] = {"Softmax", read_softmax, OP_SOFTMAX},
    [4] = {"Sigmoid", read_unary, OP_SIGMOID},
    [5] = {"StaticTranspose", read_transpose, OP_PERMUTE},
    [6] = {"Clamp", read_copy, OP_CLAMP}, /* its range is applied to every node */
    [7] = {"Conv2d", read_convolution, OP_CONVOLUTION},
    [8] = {"Div", read_binary, OP_DIV},
    [10] = {"StaticConstantPad", read_pad, OP_PAD},
    [11] = {"AvgPooling2d", read_pool, OP_AVG_POOL},
    [12] = {"Minimum", read_binary, OP_MINIMUM},
    [13] = {"DepthwiseConv2d", read_convolution, OP_CONVOLUTION},
    [14] = {"MaxPooling2d", read_pool, OP_MAX_POOL},
    [15] = {"Multiply", read_binary, OP_MUL},
    [16] = {"Subtract", read_binary, OP_SUB},
    [17] = {"Floor", read_unary, OP_FLOOR},
    [18] = {"Convert", read_convert, OP_TO},
    [20] = {"StaticReshape", read_reshape, OP_VIEW},
    [22] = {"SquareRoot", read_unary, OP_SQRT},
    [23] = {"Ceiling", read_unary, OP_CEIL},
    [25] = {"LeakyReLU", read_leaky_relu, OP_LEAKY_RELU},
    [26] = {"Maximum", read_binary, OP_MAXIMUM},
    [27] = {"Negate", read_unary, OP_NEG},
    [28] = {"Square", read_square, OP_MUL},
    [30] = {"Abs", read_unary, OP_ABS},
    [32] = {"Concatenate2", read_cat, OP_CAT},
    [33] = {"Concatenate3", read_cat, OP_CAT},
    [34] = {"Concatenate4", read_cat, OP_CAT},
    [35] = {"StaticSlice", read_slice, OP_SLICE},
    [37] = {"BatchMatrixMultiply", read_matmul, OP_MATMUL},
    [38] = {"Concatenate5", read_cat, OP_CAT},
    [40] = {"ReciprocalSquareRoot", read_unary, OP_RSQRT},
    [41] = {"Log", read_unary, OP_LOG},
    [42] = {"Gelu", read_unary, OP_GELU},
    [43] = {"Tanh", read_unary, OP_TANH},
    [44] = {"Exp", read_unary, OP_EXP},
    [45] = {"Sin", read_unary, OP_SIN},
    [46] = {"Copy", read_copy, OP_TO},
    [47] = {"Cos", read_unary, OP_COS},
};

void xnn_read_node(XnnGraph *x, uint32_t type, const FlatTable *node, const FlatTable *range) {
    const Row *row = type < sizeof rows / sizeof *rows && rows[type].read ? &rows[type] : NULL;
    if (!row) {
        pte_read_unsupported(x->r, "there is no support for the node %u of XNNPACK's schema", type);
        return;
    }
    x->r->where = row->name;
    x->clamped = range->reader != NULL;
    x->low = (double)flat_get_float(range, 0);
    x->high = (double)flat_get_float(range, 1);
    row->read(x, row, node);
    x->r->where = "XnnpackBackend";
}
