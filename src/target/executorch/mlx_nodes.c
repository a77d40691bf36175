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

static bool takes_float_scalars(const Node *node) {
    return is_float(node) && takes_scalars(node);
}

/* ---- the table ---- */

static const Row rows[OP_COUNT] = {
    [OP_ADD] = {MLX_ADD, "t0 t1 o"},
    [OP_SUB] = {MLX_SUBTRACT, "t0 t1 o"},
    [OP_MUL] = {MLX_MULTIPLY, "t0 t1 o"},
    [OP_DIV] = {MLX_DIVIDE, "t0 t1 o", .takes = reads_float},
    [OP_MAXIMUM] = {MLX_MAXIMUM, "t0 t1 o"},
    [OP_MINIMUM] = {MLX_MINIMUM, "t0 t1 o"},
    [OP_POW] = {MLX_POWER, "t0 t1 o", .takes = is_float},
    [OP_FLOOR_DIVIDE] = {.add = mlx_add_floor_divide},
    [OP_REMAINDER] = {MLX_REMAINDER, "t0 t1 o"},
    [OP_ADD_SCALAR] = {MLX_ADD, "t0 n1 o", .takes = takes_scalars},
    [OP_MUL_SCALAR] = {MLX_MULTIPLY, "t0 n1 o", .takes = takes_scalars},
    [OP_DIV_SCALAR] = {MLX_DIVIDE, "t0 n1 o", .takes = reads_float},
    [OP_POW_SCALAR] = {.add = mlx_add_power, .takes = is_float},
    [OP_SCALAR_POW] = {MLX_POWER, "n0 t1 o", .takes = takes_float_scalars},
    [OP_CLAMP] = {MLX_CLIP, "t0 o n1 n2", .takes = takes_scalars},
    [OP_NEG] = {MLX_NEG, "t0 o"},
    [OP_ABS] = {MLX_ABS, "t0 o"},
    [OP_EXP] = {MLX_EXP, "t0 o", .takes = reads_float},
    [OP_LOG] = {MLX_LOG, "t0 o", .takes = reads_float},
    [OP_SQRT] = {MLX_SQRT, "t0 o", .takes = reads_float},
    [OP_RSQRT] = {MLX_RSQRT, "t0 o", .takes = reads_float},
    [OP_RECIPROCAL] = {MLX_RECIPROCAL, "t0 o", .takes = reads_float},
    [OP_COS] = {MLX_COS, "t0 o", .takes = reads_float},
    [OP_SIN] = {MLX_SIN, "t0 o", .takes = reads_float},
    [OP_TANH] = {MLX_TANH, "t0 o", .takes = reads_float},
    [OP_SIGMOID] = {MLX_SIGMOID, "t0 o", .takes = reads_float},
    [OP_ERF] = {MLX_ERF, "t0 o", .takes = reads_float},
    [OP_ATAN] = {MLX_ARCTAN, "t0 o", .takes = reads_float},
    [OP_FLOOR] = {MLX_FLOOR, "t0 o", .takes = reads_float},
    [OP_CEIL] = {MLX_CEIL, "t0 o", .takes = reads_float},
    [OP_ROUND] = {MLX_ROUND, "t0 o", .takes = reads_float},
    [OP_SIGN] = {MLX_SIGN, "t0 o"},
    [OP_RELU] = {.add = mlx_add_relu},
    [OP_SILU] = {MLX_SILU, "t0 o", .takes = reads_float},
    [OP_GELU] = {MLX_GELU, "t0 o s1", .takes = reads_float},
    [OP_SOFTPLUS] = {.add = mlx_add_softplus, .takes = takes_float_scalars},
    [OP_ELU] = {.add = mlx_add_elu, .takes = takes_float_scalars},
    [OP_LEAKY_RELU] = {.add = mlx_add_leaky_relu, .takes = takes_float_scalars},
    [OP_TO] = {MLX_AS_TYPE, "t0 o y1"},
    [OP_EQ] = {MLX_EQUAL, "t0 t1 o"},
    [OP_NE] = {MLX_NOT_EQUAL, "t0 t1 o"},
    [OP_LT] = {MLX_LESS, "t0 t1 o"},
    [OP_LE] = {MLX_LESS_EQUAL, "t0 t1 o"},
    [OP_GT] = {MLX_GREATER, "t0 t1 o"},
    [OP_GE] = {MLX_GREATER_EQUAL, "t0 t1 o"},
    [OP_EQ_SCALAR] = {MLX_EQUAL, "t0 m1 o", .takes = takes_scalars},
    [OP_NE_SCALAR] = {MLX_NOT_EQUAL, "t0 m1 o", .takes = takes_scalars},
    [OP_LT_SCALAR] = {MLX_LESS, "t0 m1 o", .takes = takes_scalars},
    [OP_LE_SCALAR] = {MLX_LESS_EQUAL, "t0 m1 o", .takes = takes_scalars},
    [OP_GT_SCALAR] = {MLX_GREATER, "t0 m1 o", .takes = takes_scalars},
    [OP_GE_SCALAR] = {MLX_GREATER_EQUAL, "t0 m1 o", .takes = takes_scalars},
    [OP_AND] = {.add = mlx_add_logic},
    [OP_OR] = {.add = mlx_add_logic},
    [OP_NOT] = {.add = mlx_add_logic},
    [OP_WHERE] = {MLX_WHERE, "t0 t1 t2 o"},
    [OP_VIEW] = {MLX_RESHAPE, "t0 o S"},
    [OP_PERMUTE] = {MLX_TRANSPOSE, "t0 o a1"},
    [OP_UNSQUEEZE] = {MLX_RESHAPE, "t0 o S"},
    [OP_SQUEEZE] = {MLX_RESHAPE, "t0 o S"},
    [OP_EXPAND] = {MLX_BROADCAST_TO, "t0 o S"},
    [OP_CAT] = {MLX_CONCATENATE, "T0 o d1"},
    [OP_SLICE] = {MLX_SLICE, "t0 o i1 i2 i3 j4", .takes = mlx_takes_slice},
    [OP_SELECT] = {MLX_TAKE, "t0 o p2 d1"},
    [OP_SPLIT] = {.add = mlx_add_split},
    [OP_EMBEDDING] = {MLX_TAKE, "t0 o x1 0"},
    [OP_INDEX_SELECT] = {MLX_TAKE, "t0 o x2 d1"},
    [OP_GATHER] = {.add = mlx_add_gather},
    [OP_INDEX] = {.add = mlx_add_index, .takes = mlx_takes_index},
    [OP_INDEX_PUT] = {.add = mlx_add_index_put, .takes = mlx_takes_index_put},
    [OP_INDEX_COPY] = {.add = mlx_add_index_copy},
    [OP_SCATTER_REDUCE] = {.add = mlx_add_scatter_reduce, .takes = mlx_takes_scatter_reduce},
    [OP_TOPK] = {.add = mlx_add_topk, .takes = mlx_takes_topk},
    [OP_SUM] = {MLX_SUM, .add = mlx_add_total},
    [OP_MEAN] = {MLX_MEAN, "t0 o a1 b2", .takes = reads_float},
    [OP_AMAX] = {MLX_MAX, "t0 o a1 b2"},
    [OP_AMIN] = {MLX_MIN, "t0 o a1 b2"},
    [OP_PROD] = {MLX_PROD, .add = mlx_add_total},
    [OP_ANY] = {MLX_ANY, "t0 o a1 b2"},
    [OP_ARGMAX] = {MLX_ARGMAX, "t0 c d1 b2"},
    [OP_CUMSUM] = {MLX_CUMSUM, .add = mlx_add_total},
    [OP_SOFTMAX] = {MLX_SOFTMAX, "t0 o d1 1", .takes = reads_float},
    [OP_ARANGE] = {.add = mlx_add_arange},
    [OP_FULL] = {MLX_BROADCAST_TO, "n1 o S", .takes = takes_scalars},
    [OP_SCALAR_TENSOR] = {.add = mlx_add_scalar_tensor, .takes = takes_scalars},
    [OP_LINEAR] = {.add = mlx_add_linear, .takes = is_float},
    [OP_MATMUL] = {MLX_ADDMM, "t0 t1 o", .takes = is_float},
    [OP_GROUPED_MM] = {.add = mlx_add_grouped_mm, .takes = mlx_takes_grouped_mm},
    [OP_LAYER_NORM] = {.add = mlx_add_layer_norm, .takes = is_float},
    [OP_RMS_NORM] = {MLX_RMS_NORM, "t0 t2 o f3", .takes = mlx_takes_rms_norm},
    [OP_ATTENTION] = {.add = mlx_add_attention, .takes = mlx_takes_attention},
    [OP_CONVOLUTION] = {.add = mlx_add_convolution, .takes = mlx_takes_convolution},
    [OP_GROUP_NORM] = {.add = mlx_add_group_norm, .takes = is_float},
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

bool mlx_takes(const Node *node) {
    const Row *row = &rows[node->op];
    bool held = row->fields || row->add;
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
