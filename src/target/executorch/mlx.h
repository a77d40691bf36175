/* Giving parts of a program to MLX: a graph is a list of nodes that read and write numbered tensors, with
 * integers beside them for sizes. mlx.c builds it, mlx_write.c makes the blob, mlx_nodes.c says which nodes
 * there are for an operation, and the other mlx_*.c files those that take more than a row. */
#ifndef TARGET_EXECUTORCH_MLX_H
#define TARGET_EXECUTORCH_MLX_H

#include "format/flatbuffer.h"
#include "target/executorch/backend.h"
#include "target/executorch/lower.h"

/* A tensor: its class and its number among those of the class. */
typedef struct MlxTensor {
    enum { MLX_CONSTANT, MLX_INPUT, MLX_OUTPUT, MLX_TEMP } class;
    uint32_t number;
} MlxTensor;

/* An integer: a number, or that of a value which the graph computes. */
typedef struct MlxInt {
    bool computed;
    int64_t value;
} MlxInt;

/* A field of a node, as the schema types it. */
typedef struct MlxField {
    enum {
        FIELD_NONE, /* absent */
        FIELD_TENSOR,
        FIELD_TENSORS,
        FIELD_INT,     /* a number or a computed value */
        FIELD_INTS,    /* of such */
        FIELD_RESULT,  /* the computed value that the node makes */
        FIELD_FILL,    /* a float, or a computed value */
        FIELD_INDEX,   /* an integer, a computed value or a tensor: one of the former, */
        FIELD_INDICES, /* and a tensor */
        FIELD_I8,
        FIELD_I32,
        FIELD_I32S,
        FIELD_FLOAT,
        FIELD_BOOL,
        FIELD_TEXT,
    } kind;
    uint32_t count;
    union {
        MlxTensor tensor;
        const MlxTensor *tensors;
        MlxInt integer;
        const MlxInt *integers;
        const int32_t *numbers;
        double number;
        const char *text;
    };
} MlxField;

typedef struct MlxNode {
    uint8_t type; /* the schema's number */
    uint32_t count;
    const MlxField *fields;
} MlxNode;

/* A tensor that comes from outside, or goes there. */
typedef struct MlxPort {
    const Value *value;
    const char *key; /* of a constant: where its bytes are */
    PteValue arg;    /* of the others: in the call */
} MlxPort;

/* A graph under construction. */
typedef struct Mlx {
    Pte *p;
    const Partition *partition;
    Arena *arena;
    VEC(MlxNode) nodes;
    VEC(MlxPort) constants;
    VEC(MlxPort) inputs;
    VEC(MlxPort) outputs;
    uint32_t temps, values;    /* how many there are */
    MlxTensor *tensors;        /* by value id, */
    bool *known;               /* where it has one already */
    Map scalars, sizes, masks; /* what is made once: see mlx.c and mlx_layers.c */
} Mlx;

/* The numbers of the schema's nodes. */
enum {
    MLX_ID_COPY = 2,
    MLX_ADDMM,
    MLX_ITEM_INT,
    MLX_EXPAND_DIMS,
    MLX_TAKE_ALONG_AXIS = 7,
    MLX_TAKE,
    MLX_RMS_NORM,
    MLX_LAYER_NORM,
    MLX_SDPA = 12,
    MLX_ADD,
    MLX_ADD_INT,
    MLX_SUBTRACT_INT,
    MLX_MULTIPLY_INT,
    MLX_FLOOR_DIVIDE_INT,
    MLX_SYM_SIZE,
    MLX_MULTIPLY,
    MLX_DIVIDE,
    MLX_SUBTRACT,
    MLX_CONV_1D,
    MLX_CONV_2D,
    MLX_CONV_3D,
    MLX_GELU,
    MLX_ARANGE,
    MLX_SILU,
    MLX_SIGMOID,
    MLX_TANH,
    MLX_SPLIT = 31,
    MLX_RSQRT,
    MLX_MAXIMUM,
    MLX_MINIMUM,
    MLX_LOG,
    MLX_SOFTMAX,
    MLX_BROADCAST_TO,
    MLX_PAD,
    MLX_WHERE,
    MLX_RESHAPE,
    MLX_TRANSPOSE,
    MLX_AS_STRIDED,
    MLX_SLICE = 45,
    MLX_AS_TYPE,
    MLX_CONCATENATE,
    MLX_FULL,
    MLX_ARGMAX = 50,
    MLX_INDEX_COPY = 52,
    MLX_LESS = 54,
    MLX_LESS_EQUAL,
    MLX_GREATER,
    MLX_GREATER_EQUAL,
    MLX_EQUAL,
    MLX_NOT_EQUAL,
    MLX_LOGICAL_NOT,
    MLX_LOGICAL_AND,
    MLX_LOGICAL_OR,
    MLX_FLOOR = 66,
    MLX_CEIL,
    MLX_SQUARE,
    MLX_EXP,
    MLX_SIN,
    MLX_COS,
    MLX_ARCTAN = 75,
    MLX_ERF = 84,
    MLX_EXPM1,
    MLX_ROUND,
    MLX_RECIPROCAL,
    MLX_SQRT,
    MLX_ABS,
    MLX_NEG,
    MLX_LOG_ADD_EXP = 92,
    MLX_FLOOR_DIVIDE,
    MLX_POWER,
    MLX_SUM = 96,
    MLX_MEAN,
    MLX_PROD = 100,
    MLX_MAX,
    MLX_MIN,
    MLX_MOD_INT = 105,
    MLX_REMAINDER,
    MLX_CONV_TRANSPOSE_1D,
    MLX_CONV_TRANSPOSE_2D,
    MLX_CONV_TRANSPOSE_3D,
    MLX_CLIP,
    MLX_CUMSUM,
    MLX_SIGN = 113,
    MLX_ANY,
    MLX_ARGSORT = 118,
    MLX_SCATTER_ADD = 122,
    MLX_GATHER_MM,
    MLX_BITWISE_INVERT = 127,
    MLX_BITWISE_AND = 129,
    MLX_BITWISE_OR,
};

/* ---- fields ---- */

#define NOTHING       ((MlxField){.kind = FIELD_NONE})
#define TENSOR(t)     ((MlxField){.kind = FIELD_TENSOR, .tensor = (t)})
#define RESULT_INT(i) ((MlxField){.kind = FIELD_RESULT, .integer = (i)})
#define INT(i)        ((MlxField){.kind = FIELD_INT, .integer = (i)})
#define LITERAL(i)    ((MlxField){.kind = FIELD_INT, .integer = {false, (i)}})
#define INDEX(i)      ((MlxField){.kind = FIELD_INDEX, .integer = (i)})
#define INDICES(t)    ((MlxField){.kind = FIELD_INDICES, .tensor = (t)})
#define I8(i)         ((MlxField){.kind = FIELD_I8, .number = (i)})
#define I32(i)        ((MlxField){.kind = FIELD_I32, .number = (double)(i)})
#define BOOL(b)       ((MlxField){.kind = FIELD_BOOL, .number = (b)})
#define FLOAT(f)      ((MlxField){.kind = FIELD_FLOAT, .number = (f)})
#define TEXT(s)       ((MlxField){.kind = FIELD_TEXT, .text = (s)})

MlxField mlx_tensors(Mlx *m, const MlxTensor *tensors, uint32_t count);
MlxField mlx_numbers(Mlx *m, const int32_t *numbers, uint32_t count);
MlxField mlx_shape(Mlx *m, uint32_t rank, const Sym *const *sizes);

/* ---- the graph ---- */

/* A node; fields in the order of their ids, those at the end may be left out. */
void mlx_node(Mlx *m, uint8_t type, const MlxField *fields, size_t count);

#define NODE(m, type, ...)                                                                         \
    mlx_node(m, type, (const MlxField[]){__VA_ARGS__},                                             \
             sizeof((const MlxField[]){__VA_ARGS__}) / sizeof(MlxField))

/* Nodes with one and two inputs, into a new tensor. */
MlxTensor mlx_unary(Mlx *m, uint8_t type, MlxTensor x);
MlxTensor mlx_binary(Mlx *m, uint8_t type, MlxTensor a, MlxTensor b);

MlxTensor mlx_temp(Mlx *m);

/* An input of a node, and an output. */
MlxTensor mlx_input(Mlx *m, const Value *value);
MlxTensor mlx_output(Mlx *m, const Value *value);

static inline MlxTensor mlx_arg(Mlx *m, const Node *node, uint32_t i) {
    return mlx_input(m, node_tensor(node, i));
}

/* A weight under another recipe than its own. */
MlxTensor mlx_weight(Mlx *m, const Recipe *recipe, const char *name);

/* A size, and a 0-d tensor that has it or a number. */
MlxInt mlx_size(Mlx *m, const Sym *size);
MlxTensor mlx_size_tensor(Mlx *m, const Sym *size, ferry_dtype dtype);
MlxTensor mlx_scalar(Mlx *m, double number, ferry_dtype dtype);

/* A scalar argument as a 0-d tensor. */
MlxTensor mlx_scalar_arg(Mlx *m, const Arg *arg, ferry_dtype dtype);

MlxTensor mlx_as_type(Mlx *m, MlxTensor x, ferry_dtype dtype);
MlxTensor mlx_reshape(Mlx *m, MlxTensor x, uint32_t rank, const Sym *const *shape);
MlxTensor mlx_transpose(Mlx *m, MlxTensor x, const int32_t *dims, uint32_t rank);

/* ---- operations ---- */

/* mlx_nodes.c: does MLX compute what the node says? */
bool mlx_has(Op op);
bool mlx_takes(const Node *node);
void mlx_add_node(Mlx *m, const Node *node);

/* mlx_write.c: the blob. */
Delegate mlx_write(Mlx *m);

/* mlx_elements.c */
void mlx_add_elu(Mlx *m, const Node *node);
void mlx_add_floor_divide(Mlx *m, const Node *node);
void mlx_add_leaky_relu(Mlx *m, const Node *node);
void mlx_add_logic(Mlx *m, const Node *node);
void mlx_add_power(Mlx *m, const Node *node);
void mlx_add_relu(Mlx *m, const Node *node);
void mlx_add_softplus(Mlx *m, const Node *node);
void mlx_add_total(Mlx *m, const Node *node);

/* mlx_shape.c */
bool mlx_takes_pad(const Node *node);
bool mlx_takes_slice(const Node *node);
MlxTensor mlx_positions(Mlx *m, const Sym *count, ferry_dtype dtype); /* 0, 1, ... */
void mlx_add_arange(Mlx *m, const Node *node);
void mlx_add_pad(Mlx *m, const Node *node);
void mlx_add_scalar_tensor(Mlx *m, const Node *node);
void mlx_add_split(Mlx *m, const Node *node);

/* mlx_select.c */
bool mlx_takes_index(const Node *node);
bool mlx_takes_index_put(const Node *node);
bool mlx_takes_scatter_reduce(const Node *node);
bool mlx_takes_topk(const Node *node);
void mlx_add_gather(Mlx *m, const Node *node);
void mlx_add_index(Mlx *m, const Node *node);
void mlx_add_index_copy(Mlx *m, const Node *node);
void mlx_add_index_put(Mlx *m, const Node *node);
void mlx_add_scatter_reduce(Mlx *m, const Node *node);
void mlx_add_topk(Mlx *m, const Node *node);

/* mlx_pool.c */
bool mlx_takes_pool(const Node *node);
void mlx_add_pool(Mlx *m, const Node *node);

/* mlx_layers.c */
bool mlx_takes_attention(const Node *node);
bool mlx_takes_convolution(const Node *node);
bool mlx_takes_grouped_mm(const Node *node);
bool mlx_takes_rms_norm(const Node *node);
void mlx_add_attention(Mlx *m, const Node *node);
void mlx_add_convolution(Mlx *m, const Node *node);
void mlx_add_group_norm(Mlx *m, const Node *node);
void mlx_add_grouped_mm(Mlx *m, const Node *node);
void mlx_add_layer_norm(Mlx *m, const Node *node);
void mlx_add_linear(Mlx *m, const Node *node);

#endif
