/* What MLX computes: a row for each operation, with the node and where its fields come from.
 *
 * The fields are words in the order of the schema's ids; a word is a letter and the number of an argument:
 *
 *   o    the output                       tN  a tensor, absent where it is optional
 *   c    the same, converted from what    TN  tensors
 *        the node makes of it             nN  a scalar, as a 0-d tensor of the output's dtype
 *   S    the output's shape               mN  the same in the dtype of the first tensor
 *   dN   a dimension                      xN  a tensor of indices
 *   aN   dimensions; none: all of them    fN, bN, sN, yN  a float, bool, string, dtype
 *   0, 1 that number or bool              iN, jN, pN  an integer: computed, a number, an index
 *
 * What MLX makes in another dtype than ATen is converted: sums of bools are counted in int32, positions of
 * the largest are uint32. */
#include "target/executorch/mlx.h"

#include <math.h>
#include <string.h>

enum { MAX_FIELDS = 8 };

typedef struct Row {
    uint8_t type;
    const char *fields;
    void (*add)(Mlx *m, const Node *node); /* instead of the fields */
    bool (*takes)(const Node *node);       /* NULL: whatever the types allow */
} Row;

static const Row rows[OP_COUNT];

/* ---- conditions ---- */

static bool is_float(const Node *node) {
    return ferry_dtype_is_float(node->outputs[0]->dtype);
}

static bool reads_float(const Node *node) {
    return ferry_dtype_is_float(node_tensor(node, 0)->dtype);
}

static const Value *first_tensor(const Node *node) {
    for (uint32_t i = 0; i < op_schema(node->op)->arg_count; i++) {
        if (node->args[i].kind == VALUE_TENSOR) return node->args[i].tensor;
        if (node->args[i].kind == VALUE_TENSORS) return node->args[i].tensors.items[0];
    }
    return node->outputs[0];
}

/* Fractions are no scalars of integers. */
static bool takes_scalars(const Node *node) {
    if (ferry_dtype_is_float(first_tensor(node)->dtype)) return true;
    for (uint32_t i = 0; i < op_schema(node->op)->arg_count; i++) {
        const Arg *arg = &node->args[i];
        if (arg->kind == VALUE_FLOAT && arg->number != rint(arg->number)) return false;
    }
    return true;
}

/* A number has no dimension to go along. */
static bool has_dimensions(const Node *node) {
    return node_tensor(node, 0)->rank > 0;
}

static bool takes_softmax(const Node *node) {
    return is_float(node) && has_dimensions(node);
}

static bool takes_float_scalars(const Node *node) {
    return is_float(node) && takes_scalars(node);
}

/* ---- the table ---- */

static const Row rows[OP_COUNT] = {
    [OP_ADD] = {.type = MLX_ADD, .fields = "t0 t1 o"},
    [OP_SUB] = {.type = MLX_SUBTRACT, .fields = "t0 t1 o"},
    [OP_MUL] = {.type = MLX_MULTIPLY, .fields = "t0 t1 o"},
    [OP_DIV] = {.type = MLX_DIVIDE, .fields = "t0 t1 o", .takes = reads_float},
    [OP_MAXIMUM] = {.type = MLX_MAXIMUM, .fields = "t0 t1 o"},
    [OP_MINIMUM] = {.type = MLX_MINIMUM, .fields = "t0 t1 o"},
    [OP_POW] = {.type = MLX_POWER, .fields = "t0 t1 o", .takes = is_float},
    [OP_FLOOR_DIVIDE] = {.add = mlx_add_floor_divide},
    [OP_REMAINDER] = {.type = MLX_REMAINDER, .fields = "t0 t1 o"},
    [OP_ADD_SCALAR] = {.type = MLX_ADD, .fields = "t0 n1 o", .takes = takes_scalars},
    [OP_MUL_SCALAR] = {.type = MLX_MULTIPLY, .fields = "t0 n1 o", .takes = takes_scalars},
    [OP_DIV_SCALAR] = {.type = MLX_DIVIDE, .fields = "t0 n1 o", .takes = reads_float},
    [OP_POW_SCALAR] = {.add = mlx_add_power, .takes = is_float},
    [OP_SCALAR_POW] = {.type = MLX_POWER, .fields = "n0 t1 o", .takes = takes_float_scalars},
    [OP_CLAMP] = {.type = MLX_CLIP, .fields = "t0 o n1 n2", .takes = takes_scalars},
    [OP_NEG] = {.type = MLX_NEG, .fields = "t0 o"},
    [OP_ABS] = {.type = MLX_ABS, .fields = "t0 o"},
    [OP_EXP] = {.type = MLX_EXP, .fields = "t0 o", .takes = reads_float},
    [OP_LOG] = {.type = MLX_LOG, .fields = "t0 o", .takes = reads_float},
    [OP_SQRT] = {.type = MLX_SQRT, .fields = "t0 o", .takes = reads_float},
    [OP_RSQRT] = {.type = MLX_RSQRT, .fields = "t0 o", .takes = reads_float},
    [OP_RECIPROCAL] = {.type = MLX_RECIPROCAL, .fields = "t0 o", .takes = reads_float},
    [OP_COS] = {.type = MLX_COS, .fields = "t0 o", .takes = reads_float},
    [OP_SIN] = {.type = MLX_SIN, .fields = "t0 o", .takes = reads_float},
    [OP_TANH] = {.type = MLX_TANH, .fields = "t0 o", .takes = reads_float},
    [OP_SIGMOID] = {.type = MLX_SIGMOID, .fields = "t0 o", .takes = reads_float},
    [OP_ERF] = {.type = MLX_ERF, .fields = "t0 o", .takes = reads_float},
    [OP_ATAN] = {.type = MLX_ARCTAN, .fields = "t0 o", .takes = reads_float},
    [OP_FLOOR] = {.type = MLX_FLOOR, .fields = "t0 o", .takes = reads_float},
    [OP_CEIL] = {.type = MLX_CEIL, .fields = "t0 o", .takes = reads_float},
    [OP_ROUND] = {.type = MLX_ROUND, .fields = "t0 o", .takes = reads_float},
    [OP_SIGN] = {.type = MLX_SIGN, .fields = "t0 o"},
    [OP_RELU] = {.add = mlx_add_relu},
    [OP_SILU] = {.type = MLX_SILU, .fields = "t0 o", .takes = reads_float},
    [OP_GELU] = {.type = MLX_GELU, .fields = "t0 o s1", .takes = reads_float},
    [OP_SOFTPLUS] = {.add = mlx_add_softplus, .takes = takes_float_scalars},
    [OP_ELU] = {.add = mlx_add_elu, .takes = takes_float_scalars},
    [OP_LEAKY_RELU] = {.add = mlx_add_leaky_relu, .takes = takes_float_scalars},
    [OP_TO] = {.type = MLX_AS_TYPE, .fields = "t0 o y1"},
    [OP_EQ] = {.type = MLX_EQUAL, .fields = "t0 t1 o"},
    [OP_NE] = {.type = MLX_NOT_EQUAL, .fields = "t0 t1 o"},
    [OP_LT] = {.type = MLX_LESS, .fields = "t0 t1 o"},
    [OP_LE] = {.type = MLX_LESS_EQUAL, .fields = "t0 t1 o"},
    [OP_GT] = {.type = MLX_GREATER, .fields = "t0 t1 o"},
    [OP_GE] = {.type = MLX_GREATER_EQUAL, .fields = "t0 t1 o"},
    [OP_EQ_SCALAR] = {.type = MLX_EQUAL, .fields = "t0 m1 o", .takes = takes_scalars},
    [OP_NE_SCALAR] = {.type = MLX_NOT_EQUAL, .fields = "t0 m1 o", .takes = takes_scalars},
    [OP_LT_SCALAR] = {.type = MLX_LESS, .fields = "t0 m1 o", .takes = takes_scalars},
    [OP_LE_SCALAR] = {.type = MLX_LESS_EQUAL, .fields = "t0 m1 o", .takes = takes_scalars},
    [OP_GT_SCALAR] = {.type = MLX_GREATER, .fields = "t0 m1 o", .takes = takes_scalars},
    [OP_GE_SCALAR] = {.type = MLX_GREATER_EQUAL, .fields = "t0 m1 o", .takes = takes_scalars},
    [OP_AND] = {.add = mlx_add_logic},
    [OP_OR] = {.add = mlx_add_logic},
    [OP_NOT] = {.add = mlx_add_logic},
    [OP_WHERE] = {.type = MLX_WHERE, .fields = "t0 t1 t2 o"},
    [OP_VIEW] = {.type = MLX_RESHAPE, .fields = "t0 o S"},
    [OP_PERMUTE] = {.type = MLX_TRANSPOSE, .fields = "t0 o a1"},
    [OP_UNSQUEEZE] = {.type = MLX_RESHAPE, .fields = "t0 o S"},
    [OP_SQUEEZE] = {.type = MLX_RESHAPE, .fields = "t0 o S"},
    [OP_EXPAND] = {.type = MLX_BROADCAST_TO, .fields = "t0 o S"},
    [OP_CAT] = {.type = MLX_CONCATENATE, .fields = "T0 o d1"},
    [OP_SLICE] = {.type = MLX_SLICE, .fields = "t0 o i1 i2 i3 j4", .takes = mlx_takes_slice},
    [OP_SELECT] = {.type = MLX_TAKE, .fields = "t0 o p2 d1"},
    [OP_SPLIT] = {.add = mlx_add_split},
    [OP_EMBEDDING] = {.type = MLX_TAKE, .fields = "t0 o x1 0"},
    [OP_INDEX_SELECT] = {.type = MLX_TAKE, .fields = "t0 o x2 d1", .takes = has_dimensions},
    [OP_GATHER] = {.add = mlx_add_gather, .takes = has_dimensions},
    [OP_INDEX] = {.add = mlx_add_index, .takes = mlx_takes_index},
    [OP_INDEX_PUT] = {.add = mlx_add_index_put, .takes = mlx_takes_index_put},
    [OP_INDEX_COPY] = {.add = mlx_add_index_copy, .takes = has_dimensions},
    [OP_SCATTER_REDUCE] = {.add = mlx_add_scatter_reduce, .takes = mlx_takes_scatter_reduce},
    [OP_TOPK] = {.add = mlx_add_topk, .takes = mlx_takes_topk},
    [OP_SUM] = {.add = mlx_add_total},
    [OP_MEAN] = {.type = MLX_MEAN, .fields = "t0 o a1 b2", .takes = reads_float},
    [OP_AMAX] = {.type = MLX_MAX, .fields = "t0 o a1 b2"},
    [OP_AMIN] = {.type = MLX_MIN, .fields = "t0 o a1 b2"},
    [OP_PROD] = {.add = mlx_add_total, .takes = has_dimensions},
    [OP_ANY] = {.type = MLX_ANY, .fields = "t0 o a1 b2", .takes = has_dimensions},
    [OP_ARGMAX] = {.type = MLX_ARGMAX, .fields = "t0 c d1 b2", .takes = has_dimensions},
    [OP_CUMSUM] = {.add = mlx_add_total, .takes = has_dimensions},
    [OP_SOFTMAX] = {.type = MLX_SOFTMAX, .fields = "t0 o d1 1", .takes = takes_softmax},
    [OP_ARANGE] = {.add = mlx_add_arange},
    [OP_FULL] = {.type = MLX_BROADCAST_TO, .fields = "n1 o S", .takes = takes_scalars},
    [OP_SCALAR_TENSOR] = {.add = mlx_add_scalar_tensor, .takes = takes_scalars},
    [OP_LINEAR] = {.add = mlx_add_linear, .takes = is_float},
    [OP_MATMUL] = {.type = MLX_ADDMM, .fields = "t0 t1 o", .takes = is_float},
    [OP_GROUPED_MM] = {.add = mlx_add_grouped_mm, .takes = mlx_takes_grouped_mm},
    [OP_LAYER_NORM] = {.add = mlx_add_layer_norm, .takes = is_float},
    [OP_RMS_NORM] = {.type = MLX_RMS_NORM, .fields = "t0 t2 o f3", .takes = mlx_takes_rms_norm},
    [OP_ATTENTION] = {.add = mlx_add_attention, .takes = mlx_takes_attention},
    [OP_CONVOLUTION] = {.add = mlx_add_convolution, .takes = mlx_takes_convolution},
    [OP_GROUP_NORM] = {.add = mlx_add_group_norm, .takes = is_float},
    [OP_MAX_POOL] = {.add = mlx_add_pool, .takes = mlx_takes_pool},
    [OP_AVG_POOL] = {.add = mlx_add_pool, .takes = mlx_takes_pool},
    [OP_PAD] = {.add = mlx_add_pad, .takes = mlx_takes_pad},
};

/* ---- what MLX takes ---- */

/* No float64 or float8, and no constant size of 0: a tensor of nothing cannot be filled. */
static bool holds(const Value *value) {
    if (value->dtype == FERRY_F64 || ferry_dtype_size(value->dtype) == 0) return false;
    if (value->dtype == FERRY_F8_E4M3 || value->dtype == FERRY_F8_E5M2) return false;
    for (uint32_t d = 0; d < value->rank; d++) {
        if (sym_is_value(value->shape[d], 0)) return false;
    }
    return true;
}

static void check_input(void *context, Value **use) {
    bool *held = context;
    *held = *held && holds(*use);
}

bool mlx_has(Op op) {
    return rows[op].fields || rows[op].add;
}

bool mlx_takes(const Node *node) {
    const Row *row = &rows[node->op];
    bool held = mlx_has(node->op);
    node_each_tensor((Node *)node, check_input, &held);
    for (uint32_t i = 0; i < node->output_count; i++) held = held && holds(node->outputs[i]);
    return held && (!row->takes || row->takes(node));
}

/* ---- fields ---- */

static MlxField dimensions(Mlx *m, const Node *node, uint32_t arg, uint32_t rank) {
    const Arg *dims = &node->args[arg];
    int32_t numbers[FERRY_MAX_RANK];
    if (dims->kind == VALUE_INT) {
        numbers[0] = (int32_t)node_dim(node, arg, rank);
        return mlx_numbers(m, numbers, 1);
    }
    uint32_t count = dims->integers.count;
    for (uint32_t i = 0; i < count; i++) {
        int64_t dim = dims->integers.items[i]->value;
        numbers[i] = (int32_t)(dim < 0 ? dim + rank : dim);
    }
    for (uint32_t d = 0; count == 0 && d < rank; d++) numbers[d] = (int32_t)d;
    return mlx_numbers(m, numbers, count ? count : rank);
}

static MlxField tensors(Mlx *m, const Arg *list) {
    MlxTensor *items = ARENA_ARRAY(m->arena, MlxTensor, list->tensors.count);
    if (!items) return NOTHING;
    for (uint32_t i = 0; i < list->tensors.count; i++) {
        items[i] = mlx_input(m, list->tensors.items[i]);
    }
    return mlx_tensors(m, items, list->tensors.count);
}

static MlxField scalar(Mlx *m, const Arg *arg, ferry_dtype dtype) {
    return arg->kind == VALUE_NONE ? NOTHING : TENSOR(mlx_scalar_arg(m, arg, dtype));
}

static MlxField field(Mlx *m, const Node *node, const char *word) {
    uint32_t i = word[0] && word[1] != ' ' && word[1] ? (uint32_t)(word[1] - '0') : 0;
    const Value *out = node->outputs[0], *first = first_tensor(node);
    const Arg *arg = &node->args[i];
    switch (word[0]) {
    case 'o': return TENSOR(mlx_output(m, out));
    case 'S': return mlx_shape(m, out->rank, out->shape);
    case 't': return arg->kind == VALUE_NONE ? NOTHING : TENSOR(mlx_arg(m, node, i));
    case 'T': return tensors(m, arg);
    case 'x': return INDICES(mlx_arg(m, node, i));
    case 'p': return INDEX(mlx_size(m, arg->integer));
    case 'n': return scalar(m, arg, out->dtype);
    case 'm': return scalar(m, arg, first->dtype);
    case 'd': return I32(node_dim(node, i, first->rank));
    case 'a': return dimensions(m, node, i, first->rank);
    case 'i': return INT(mlx_size(m, arg->integer));
    case 'j': return I32(node_int(node, i));
    case 'f': return FLOAT(node_number(node, i));
    case 'b': return BOOL(arg->boolean);
    case 's': return TEXT(arg->string);
    case 'y': return I8(pte_dtype(arg->dtype));
    case '0': return I32(0);
    case '1': return BOOL(true);
    default: return NOTHING;
    }
}

static void add_row(Mlx *m, const Node *node, const Row *row) {
    MlxField fields[MAX_FIELDS];
    MlxTensor raw = {0};
    size_t count = 0;
    bool converts = false;
    for (const char *word = row->fields; *word; word += strcspn(word, " "), word += *word == ' ') {
        if (*word == 'c') {
            raw = mlx_temp(m);
            converts = true;
        }
        fields[count++] = *word == 'c' ? TENSOR(raw) : field(m, node, word);
    }
    mlx_node(m, row->type, fields, count);
    if (!converts) return;
    const Value *out = node->outputs[0];
    NODE(m, MLX_AS_TYPE, TENSOR(raw), TENSOR(mlx_output(m, out)), I8(pte_dtype(out->dtype)));
}

void mlx_add_node(Mlx *m, const Node *node) {
    const Row *row = &rows[node->op];
    if (row->add)
        row->add(m, node);
    else
        add_row(m, node, row);
}
