/* What the parts of the reader share: the state, nodes as they are in the file, and values that may be
 * known while reading.
 *
 * OpenVINO's reader tells its layers as nodes with the inputs and attributes of ONNX, where ONNX has the
 * same operator, and shares all of this. */
#ifndef SOURCE_ONNX_IMPORT_H
#define SOURCE_ONNX_IMPORT_H

#include "base/error.h"
#include "format/onnx.h"
#include "format/protobuf.h"
#include "graph/build.h"
#include "source/onnx/onnx_read.h"

enum { KNOWN_MAX_COUNT = 64 };

/* Whole numbers that are known while reading: a scalar or a vector. Those of a floating-point dtype
 * are exact in it. */
typedef struct Known {
    ferry_dtype dtype;
    bool is_scalar;
    uint32_t count;
    const Sym **items; /* NULL: INT64_MIN, which no expression can be */
} Known;

/* What a name of the model stands for: at least one of the three is there. */
typedef struct OnnxValue {
    const char *name;
    Value *value; /* made of the others when it is needed */
    const Recipe *recipe;
    const Known *known;
} OnnxValue;

typedef struct OnnxAttr {
    const char *name;
    OnnxAttrKind kind;
    int64_t integer;
    double number;
    const char *string;
    ProtoReader message;  /* the whole attribute */
    ProtoReader tensor;   /* a TensorProto */
    const uint64_t *list; /* integers, or the bits of floats */
    size_t count;
} OnnxAttr;

typedef struct OnnxName {
    const char *text;
    OnnxValue *value; /* NULL: absent, or an output that is not made yet */
} OnnxName;

typedef struct OnnxOperator OnnxOperator;

typedef struct OnnxNode {
    const char *name, *op_type, *domain;
    const OnnxOperator *rule;
    OnnxName *inputs, *outputs;
    uint32_t input_count, output_count;
    OnnxAttr *attrs;
    uint32_t attr_count;
} OnnxNode;

typedef struct Import {
    Builder b; /* its sticky status is the reader's */
    ferry_error problem;
    bool told; /* `problem` says where it is */
    const MappedFile *model;
    MappedFiles *files;
    Arena arena;
    Map values;    /* name -> OnnxValue */
    Map locations; /* of external data -> MappedFile */
    int64_t opset;
    const OnnxNode *node; /* at hand, for messages */
} Import;

struct OnnxOperator {
    const char *type;
    void (*read)(Import *im, const OnnxNode *node);
    Op op;                  /* for functions that serve several operators */
    const char *attributes; /* those that are understood, separated by blanks */
    uint32_t least, most;   /* inputs; `most` 0: any number */
    int64_t since;          /* lowest opset */
};

/* ---- failures (node.c) ---- */

static inline bool import_ok(const Import *im) {
    return build_ok(&im->b);
}

/* Fail, naming the node at hand; returns false. Later failures change nothing. */
bool import_fail(Import *im, ferry_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
bool import_memory(Import *im);

#define import_bad(im, ...)         import_fail(im, FERRY_BAD_FORMAT, __VA_ARGS__)
#define import_unsupported(im, ...) import_fail(im, FERRY_UNSUPPORTED, __VA_ARGS__)

/* Tell a failure of the builder as one of the node at hand (operators.c). */
void import_explain(Import *im);

/* ---- the file (node.c, tensor.c) ---- */

/* A string field, without zero bytes; "" after a failure. */
const char *import_text(Import *im, const ProtoField *field);

/* All numbers of the repeated field `number` whose elements have this wire type, packed or not. */
bool import_numbers(Import *im, ProtoReader message, uint32_t number, uint32_t wire, uint64_t **out,
                    size_t *count);

/* A NodeProto; inputs are resolved. */
bool import_parse_node(Import *im, ProtoReader message, OnnxNode *node);

/* Bools in a file may be any byte; those that are handed on are 0 or 1. NULL when memory is exhausted. */
const Recipe *import_bools(Import *im, const Recipe *recipe);

/* A TensorProto: its name, and a value that has a recipe and, when it is small, known numbers. */
OnnxValue *import_parse_tensor(Import *im, ProtoReader message);

/* ---- attributes: `otherwise` when the node does not have it (node.c) ---- */

const OnnxAttr *import_attr(Import *im, const OnnxNode *node, const char *name, OnnxAttrKind kind);
int64_t import_int(Import *im, const OnnxNode *node, const char *name, int64_t otherwise);
double import_float(Import *im, const OnnxNode *node, const char *name, double otherwise);
const char *import_string(Import *im, const OnnxNode *node, const char *name,
                          const char *otherwise);

/* Fail unless the attribute has this value, which is also the one for an absent attribute. */
bool import_require_int(Import *im, const OnnxNode *node, const char *name, int64_t value);

/* ---- inputs and outputs (operators.c) ---- */

static inline OnnxValue *import_input(const OnnxNode *node, uint32_t i) {
    return i < node->input_count ? node->inputs[i].value : NULL;
}

/* As a tensor. The poison value after a failure; NULL when the input is absent. */
Value *import_tensor(Import *im, const OnnxNode *node, uint32_t i);

/* The numbers of an input that is known; NULL when it is absent or depends on the data. */
static inline const Known *import_known(const OnnxNode *node, uint32_t i) {
    const OnnxValue *input = import_input(node, i);
    return input ? input->known : NULL;
}

/* A new symbol, for a number that depends on the data. */
const Sym *import_symbol(Import *im, int64_t lower);

/* The whole numbers of a scalar or short vector, as symbols that get their values when the program runs;
 * NULL when it is something else. */
const Known *import_data_dependent(Import *im, OnnxValue *input);

/* Whole numbers (int64 or int32): those that are known, or symbols for those that depend on the data.
 * NULL and a failure when they are something else. */
const Known *import_sizes(Import *im, const OnnxNode *node, uint32_t i);

/* The same where they must be plain numbers, at most FERRY_MAX_RANK of them. */
bool import_constants(Import *im, const OnnxNode *node, uint32_t i, int64_t *out, uint32_t *count);

/* A constant of one element as an argument; false (and no failure) when it is none. */
bool import_scalar(Import *im, const OnnxNode *node, uint32_t i, Arg *out);

/* A dimension of a tensor of `rank` dimensions, counted from the front. */
bool import_axis(Import *im, int64_t axis, uint32_t rank, uint32_t *out);

/* A set of dimensions, bit by bit, from input `i` or the attribute "axes"; `*given` says whether
 * there is any. */
bool import_axes(Import *im, const OnnxNode *node, uint32_t i, uint32_t rank, unsigned *out,
                 bool *given);

void import_give(Import *im, const OnnxNode *node, uint32_t i, Value *value);
void import_give_known(Import *im, const OnnxNode *node, uint32_t i, const Known *known);

/* Output 0 is the same as a value that exists. */
void import_give_same(const OnnxNode *node, OnnxValue *value);

/* Read one node. */
void import_node(Import *im, ProtoReader message);

/* Make the outputs of a node whose rule is found: `im->node`, whose attributes are checked. */
void import_apply(Import *im);

/* ---- the signature (onnx_read.c) ---- */

/* A size by the name or expression in `text`; any other text is the name of a size. */
const Sym *import_size(Import *im, const char *text);

/* The names of the ports, when all of them are there: "input.X" and "output.X" become X, and two outputs
 * of one name are refused. */
void import_name_ports(Import *im);

/* A new node of the program. */
#define import_op(im, op, ...)                                                                     \
    build_op(&(im)->b, op, (const Arg[]){__VA_ARGS__},                                             \
             sizeof((const Arg[]){__VA_ARGS__}) / sizeof(Arg))

/* ---- known numbers (known.c) ---- */

/* A function of two sizes; NULL when the result is not known. */
typedef const Sym *(*KnownFunction)(SymTable *symbols, const Sym *a, const Sym *b);

/* The function of an operation on sizes, or NULL. */
KnownFunction known_function(Op op);
const Sym *known_modulo(SymTable *symbols, const Sym *a, const Sym *b);

/* Items are NULL; NULL when memory is exhausted. */
Known *known_make(Import *im, ferry_dtype dtype, bool is_scalar, uint32_t count);

/* A scalar. */
const Known *known_one(Import *im, ferry_dtype dtype, const Sym *item);

/* The same numbers, as a scalar or a vector. */
const Known *known_like(Import *im, const Known *known, bool is_scalar);

/* A vector of one number. */
const Known *known_repeat(Import *im, const Known *known, uint32_t count);

/* The numbers of a small constant; NULL when it has none. */
const Known *known_of_recipe(Import *im, const Recipe *recipe);

/* The sizes [start, end) of a shape. */
const Known *known_of_shape(Import *im, const Value *value, uint32_t start, uint32_t end);

/* Items [start, start + count) at distance 1, as a vector. */
const Known *known_slice(Import *im, const Known *known, uint32_t start, uint32_t count);

/* The items of two vectors; NULL when there are too many. */
const Known *known_join(Import *im, const Known *a, const Known *b);

/* Item by item; one item meets all of the other. NULL when that is not known. */
const Known *known_binary(Import *im, KnownFunction function, const Known *a, const Known *b);

/* In another dtype; NULL when the numbers may not be exact in it. */
const Known *known_cast(Import *im, const Known *known, ferry_dtype dtype);

/* All items as plain numbers; false when one is an expression. */
bool known_constants(const Known *known, int64_t *out);

static inline bool known_is_integer(const Known *known) {
    return known && (known->dtype == FERRY_I64 || known->dtype == FERRY_I32);
}

/* The tensor of a value, made when it is not there. */
Value *known_tensor(Import *im, OnnxValue *value);

/* ---- operators, by file; the table is in operators.c ---- */

/* read_elementwise.c */
void read_alpha(Import *im, const OnnxNode *node);
void read_binary(Import *im, const OnnxNode *node);
void read_bitwise(Import *im, const OnnxNode *node);
void read_bitwise_not(Import *im, const OnnxNode *node);
void read_cast(Import *im, const OnnxNode *node);
void read_cast_like(Import *im, const OnnxNode *node);
void read_clip(Import *im, const OnnxNode *node);
void read_gelu(Import *im, const OnnxNode *node);
void read_is_nan(Import *im, const OnnxNode *node);
void read_logical(Import *im, const OnnxNode *node);
void read_mod(Import *im, const OnnxNode *node);
void read_not(Import *im, const OnnxNode *node);
void read_pow(Import *im, const OnnxNode *node);
void read_softplus(Import *im, const OnnxNode *node);
void read_unary(Import *im, const OnnxNode *node);
void read_variadic(Import *im, const OnnxNode *node);
void read_where(Import *im, const OnnxNode *node);
/* read_shape.c */
void read_concat(Import *im, const OnnxNode *node);
void read_expand(Import *im, const OnnxNode *node);
void read_flatten(Import *im, const OnnxNode *node);
void read_reshape(Import *im, const OnnxNode *node);
void read_shape(Import *im, const OnnxNode *node);
void read_size(Import *im, const OnnxNode *node);
void read_squeeze(Import *im, const OnnxNode *node);
void read_tile(Import *im, const OnnxNode *node);
void read_transpose(Import *im, const OnnxNode *node);
void read_unsqueeze(Import *im, const OnnxNode *node);
/* read_select.c */
void read_gather(Import *im, const OnnxNode *node);
void read_gather_elements(Import *im, const OnnxNode *node);
void read_gather_nd(Import *im, const OnnxNode *node);
void read_nonzero(Import *im, const OnnxNode *node);
void read_scatter_elements(Import *im, const OnnxNode *node);
void read_scatter_nd(Import *im, const OnnxNode *node);
void read_topk(Import *im, const OnnxNode *node);
/* read_slice.c */
void read_slice(Import *im, const OnnxNode *node);
void read_split(Import *im, const OnnxNode *node);
/* read_create.c */
void read_constant(Import *im, const OnnxNode *node);
void read_constant_of_shape(Import *im, const OnnxNode *node);
void read_identity(Import *im, const OnnxNode *node);
void read_range(Import *im, const OnnxNode *node);
void read_trilu(Import *im, const OnnxNode *node);
/* read_layer.c */
void read_argmax(Import *im, const OnnxNode *node);
void read_cumsum(Import *im, const OnnxNode *node);
void read_gemm(Import *im, const OnnxNode *node);
void read_matmul(Import *im, const OnnxNode *node);
void read_norm(Import *im, const OnnxNode *node);
void read_product(Import *im, const OnnxNode *node);
void read_reduce(Import *im, const OnnxNode *node);
void read_rotary(Import *im, const OnnxNode *node);
void read_softmax(Import *im, const OnnxNode *node);
/* read_vision.c */
void read_batch_norm(Import *im, const OnnxNode *node);
void read_convolution(Import *im, const OnnxNode *node);
void read_grid_sample(Import *im, const OnnxNode *node);
void read_instance_norm(Import *im, const OnnxNode *node);
void read_pad(Import *im, const OnnxNode *node);
void read_pool(Import *im, const OnnxNode *node);
/* read_resize.c */
void read_resize(Import *im, const OnnxNode *node);

/* The interpolation `op` of input 0 by the factors of input 2 or to the sizes of input 3; `sizes` receives
 * the height and width. */
void import_resize(Import *im, const OnnxNode *node, Op op, const Sym **sizes, bool corners);

#endif
