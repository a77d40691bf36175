/* What the parts of the reader share: the state, nodes as they are in the file, and values that may be
 * known while reading. */
#ifndef SOURCE_ONNX_READER_H
#define SOURCE_ONNX_READER_H

#include "base/error.h"
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

/* AttributeProto.AttributeType, as far as attributes are read. */
typedef enum OnnxAttrKind {
    ONNX_FLOAT = 1,
    ONNX_INT = 2,
    ONNX_STRING = 3,
    ONNX_TENSOR = 4,
    ONNX_FLOATS = 6,
    ONNX_INTS = 7,
} OnnxAttrKind;

typedef struct OnnxAttr {
    const char *name;
    OnnxAttrKind kind;
    int64_t integer;
    float number;
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

typedef struct Reader {
    Builder b; /* its sticky status is the reader's */
    ferry_error problem;
    const MappedFile *model;
    MappedFiles *files;
    Arena arena;
    Map values;    /* name -> OnnxValue */
    Map locations; /* of external data -> MappedFile */
    int64_t opset;
    const OnnxNode *node; /* at hand, for messages */
} Reader;

struct OnnxOperator {
    const char *type;
    void (*read)(Reader *r, const OnnxNode *node);
    Op op;                  /* for functions that serve several operators */
    const char *attributes; /* those that are understood, separated by blanks */
    uint32_t least, most;   /* inputs; `most` 0: any number */
    int64_t since;          /* lowest opset */
};

/* ---- failures (node.c) ---- */

static inline bool reader_ok(const Reader *r) {
    return build_ok(&r->b);
}

/* Fail, naming the node at hand; returns false. Later failures change nothing. */
bool reader_fail(Reader *r, ferry_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
bool reader_memory(Reader *r);

#define reader_bad(r, ...)         reader_fail(r, FERRY_BAD_FORMAT, __VA_ARGS__)
#define reader_unsupported(r, ...) reader_fail(r, FERRY_UNSUPPORTED, __VA_ARGS__)

/* ---- the file (node.c, tensor.c) ---- */

/* A string field, without zero bytes; "" after a failure. */
const char *reader_text(Reader *r, const ProtoField *field);

/* All numbers of the repeated field `number` whose elements have this wire type, packed or not. */
bool reader_numbers(Reader *r, ProtoReader message, uint32_t number, uint32_t wire, uint64_t **out,
                    size_t *count);

/* A NodeProto; inputs are resolved. */
bool reader_parse_node(Reader *r, ProtoReader message, OnnxNode *node);

/* TensorProto.DataType to ours; NONE when there is none. */
ferry_dtype reader_dtype(int64_t number);

/* A TensorProto: its name, and a value that has a recipe and, when it is small, known numbers. */
OnnxValue *reader_parse_tensor(Reader *r, ProtoReader message);

/* ---- attributes: `otherwise` when the node does not have it (node.c) ---- */

const OnnxAttr *reader_attr(Reader *r, const OnnxNode *node, const char *name, OnnxAttrKind kind);
int64_t reader_int(Reader *r, const OnnxNode *node, const char *name, int64_t otherwise);
float reader_float(Reader *r, const OnnxNode *node, const char *name, float otherwise);
const char *reader_string(Reader *r, const OnnxNode *node, const char *name, const char *otherwise);

/* Fail unless the attribute has this value, which is also the one for an absent attribute. */
bool reader_require_int(Reader *r, const OnnxNode *node, const char *name, int64_t value);

/* ---- inputs and outputs (operators.c) ---- */

static inline OnnxValue *reader_input(const OnnxNode *node, uint32_t i) {
    return i < node->input_count ? node->inputs[i].value : NULL;
}

/* As a tensor. The poison value after a failure; NULL when the input is absent. */
Value *reader_tensor(Reader *r, const OnnxNode *node, uint32_t i);

/* The numbers of an input that is known; NULL when it is absent or depends on the data. */
static inline const Known *reader_known(const OnnxNode *node, uint32_t i) {
    const OnnxValue *input = reader_input(node, i);
    return input ? input->known : NULL;
}

/* Whole numbers (int64 or int32) that must be known; NULL and a failure otherwise. */
const Known *reader_sizes(Reader *r, const OnnxNode *node, uint32_t i);

/* The same where they must be plain numbers, at most FERRY_MAX_RANK of them. */
bool reader_constants(Reader *r, const OnnxNode *node, uint32_t i, int64_t *out, uint32_t *count);

/* A constant of one element as an argument; false (and no failure) when it is none. */
bool reader_scalar(Reader *r, const OnnxNode *node, uint32_t i, Arg *out);

/* A dimension of a tensor of `rank` dimensions, counted from the front. */
bool reader_axis(Reader *r, int64_t axis, uint32_t rank, uint32_t *out);

/* A set of dimensions, bit by bit, from input `i` or the attribute "axes"; `*given` says whether
 * there is any. */
bool reader_axes(Reader *r, const OnnxNode *node, uint32_t i, uint32_t rank, unsigned *out,
                 bool *given);

void reader_give(Reader *r, const OnnxNode *node, uint32_t i, Value *value);
void reader_give_known(Reader *r, const OnnxNode *node, uint32_t i, const Known *known);

/* Output 0 is the same as a value that exists. */
void reader_give_same(const OnnxNode *node, OnnxValue *value);

/* Read one node. */
void reader_node(Reader *r, ProtoReader message);

/* ---- known numbers (known.c) ---- */

/* A function of two sizes; NULL when the result is not known. */
typedef const Sym *(*KnownFunction)(SymTable *symbols, const Sym *a, const Sym *b);

/* The function of an operation on sizes, or NULL. */
KnownFunction known_function(Op op);
const Sym *known_modulo(SymTable *symbols, const Sym *a, const Sym *b);

/* Items are NULL; NULL when memory is exhausted. */
Known *known_make(Reader *r, ferry_dtype dtype, bool is_scalar, uint32_t count);

/* The numbers of a small constant; NULL when it has none. */
const Known *known_of_recipe(Reader *r, const Recipe *recipe);

/* The sizes [start, end) of a shape. */
const Known *known_of_shape(Reader *r, const Value *value, uint32_t start, uint32_t end);

/* Items [start, start + count) at distance 1, as a vector. */
const Known *known_slice(Reader *r, const Known *known, uint32_t start, uint32_t count);

/* Item by item; one item meets all of the other. NULL when that is not known. */
const Known *known_binary(Reader *r, KnownFunction function, const Known *a, const Known *b);

/* In another dtype; NULL when the numbers may not be exact in it. */
const Known *known_cast(Reader *r, const Known *known, ferry_dtype dtype);

/* All items as plain numbers; false when one is an expression. */
bool known_constants(const Known *known, int64_t *out);

static inline bool known_is_integer(const Known *known) {
    return known && (known->dtype == FERRY_I64 || known->dtype == FERRY_I32);
}

/* The tensor of a value, made when it is not there. */
Value *known_tensor(Reader *r, OnnxValue *value);

/* ---- operators, by file; the table is in operators.c ---- */

/* read_elementwise.c */
void read_alpha(Reader *r, const OnnxNode *node);
void read_binary(Reader *r, const OnnxNode *node);
void read_bitwise(Reader *r, const OnnxNode *node);
void read_bitwise_not(Reader *r, const OnnxNode *node);
void read_cast(Reader *r, const OnnxNode *node);
void read_cast_like(Reader *r, const OnnxNode *node);
void read_clip(Reader *r, const OnnxNode *node);
void read_gelu(Reader *r, const OnnxNode *node);
void read_is_nan(Reader *r, const OnnxNode *node);
void read_logical(Reader *r, const OnnxNode *node);
void read_mod(Reader *r, const OnnxNode *node);
void read_not(Reader *r, const OnnxNode *node);
void read_pow(Reader *r, const OnnxNode *node);
void read_softplus(Reader *r, const OnnxNode *node);
void read_unary(Reader *r, const OnnxNode *node);
void read_variadic(Reader *r, const OnnxNode *node);
void read_where(Reader *r, const OnnxNode *node);
/* read_shape.c */
void read_concat(Reader *r, const OnnxNode *node);
void read_expand(Reader *r, const OnnxNode *node);
void read_flatten(Reader *r, const OnnxNode *node);
void read_reshape(Reader *r, const OnnxNode *node);
void read_shape(Reader *r, const OnnxNode *node);
void read_size(Reader *r, const OnnxNode *node);
void read_squeeze(Reader *r, const OnnxNode *node);
void read_transpose(Reader *r, const OnnxNode *node);
void read_unsqueeze(Reader *r, const OnnxNode *node);
/* read_select.c */
void read_gather(Reader *r, const OnnxNode *node);
void read_gather_elements(Reader *r, const OnnxNode *node);
void read_gather_nd(Reader *r, const OnnxNode *node);
void read_slice(Reader *r, const OnnxNode *node);
void read_split(Reader *r, const OnnxNode *node);
/* read_create.c */
void read_constant(Reader *r, const OnnxNode *node);
void read_constant_of_shape(Reader *r, const OnnxNode *node);
void read_identity(Reader *r, const OnnxNode *node);
void read_range(Reader *r, const OnnxNode *node);
void read_trilu(Reader *r, const OnnxNode *node);
/* read_layer.c */
void read_argmax(Reader *r, const OnnxNode *node);
void read_cumsum(Reader *r, const OnnxNode *node);
void read_gemm(Reader *r, const OnnxNode *node);
void read_matmul(Reader *r, const OnnxNode *node);
void read_norm(Reader *r, const OnnxNode *node);
void read_reduce(Reader *r, const OnnxNode *node);
void read_reduce_product(Reader *r, const OnnxNode *node);
void read_softmax(Reader *r, const OnnxNode *node);

#endif
