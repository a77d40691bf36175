/* Building an ONNX GraphProto: nodes, initializers and value_info go to buffers of their own, which
 * are joined at the end. Every value that is written has its type recorded. */
#ifndef TARGET_ONNX_EMIT_H
#define TARGET_ONNX_EMIT_H

#include "base/buffer.h"
#include "base/map.h"
#include "format/onnx.h"
#include "target/onnx/onnx.h"
#include "target/signature.h"

typedef struct OnnxDomain {
    const char *name;
    int version;
} OnnxDomain;

struct ferry_onnx {
    Program *program;
    const OnnxOptions *options;
    const OnnxLowering *lowerings[OP_COUNT]; /* as registered; NULL: none */
    Arena arena;                             /* names */
    Buffer nodes, initializers, value_info;
    Map constants;                 /* bytes and type of an inline constant -> its name */
    Map sizes;                     /* Sym -> name of its int64[1] value */
    Map pairs;                     /* of lower_rotary.c */
    VEC(OnnxDomain) domains;       /* of operators, besides ONNX's own */
    const MappedFile *linked_file; /* that the last linked weight is in, */
    const char *linked_path;       /* and its path from the model */
    const char **names;            /* by value id */
    const Node *node;              /* being lowered */
    uint32_t counter;              /* of helper values of this node */
    uint32_t node_count, initializer_count;
    const Dimension *dimensions; /* by symbol */
    ferry_status status;
    ferry_error *error;
};

typedef enum AttrKind { ATTR_INT, ATTR_FLOAT, ATTR_STRING, ATTR_INTS } AttrKind;

typedef struct Attr {
    const char *name;
    AttrKind kind;
    int64_t integer;
    double number;
    const char *string;
    const int64_t *integers;
    size_t count;
} Attr;

#define ATTR_I(key, value) ((Attr){.name = (key), .kind = ATTR_INT, .integer = (value)})
#define ATTR_F(key, value) ((Attr){.name = (key), .kind = ATTR_FLOAT, .number = (value)})
#define ATTR_S(key, value) ((Attr){.name = (key), .kind = ATTR_STRING, .string = (value)})
#define ATTR_IS(key, values, n)                                                                    \
    ((Attr){.name = (key), .kind = ATTR_INTS, .integers = (values), .count = (n)})

ferry_status onnx_fail(Onnx *o, ferry_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The name of a value of the program in the model. */
const char *onnx_name(const Onnx *o, const Value *value);

/* Import a domain of operators, unless it is imported. */
void onnx_import(Onnx *o, const char *domain, int version);

/* Append a node. NULL among the inputs: an absent optional one. An operator of another domain than
 * ONNX's own is "domain::type"; the domain must be imported. */
void onnx_node(Onnx *o, const char *op_type, const char *const *inputs, uint32_t input_count,
               const char *const *outputs, uint32_t output_count, const Attr *attrs,
               uint32_t attr_count);

/* A node with one output, which becomes output 0 of the node being lowered. */
void onnx_result(Onnx *o, const char *op_type, const char *const *inputs, uint32_t input_count,
                 const Attr *attrs, uint32_t attr_count);

/* A node whose output is a helper value of this type; returns its name. */
const char *onnx_helper(Onnx *o, const char *op_type, const char *const *inputs,
                        uint32_t input_count, const Attr *attrs, uint32_t attr_count,
                        ferry_dtype dtype, uint32_t rank, const Sym *const *shape);

/* The name of a helper value of this type, for an output of a node that has several. */
const char *onnx_declare(Onnx *o, const char *what, ferry_dtype dtype, uint32_t rank,
                         const Sym *const *shape);

/* An inline constant, shared by all users of the same one. */
const char *onnx_constant(Onnx *o, ferry_dtype dtype, uint32_t rank, const int64_t *shape,
                          const void *bytes, size_t size);
const char *onnx_ints(Onnx *o, const int64_t *values, size_t count); /* int64[count] */
const char *onnx_int(Onnx *o, int64_t value);                        /* int64[] */

/* A 0-d constant of `dtype` with the value of an int, float or bool argument. */
const char *onnx_scalar(Onnx *o, const Arg *arg, ferry_dtype dtype);
const char *onnx_number(Onnx *o, double value, ferry_dtype dtype);

/* A size as int64[1], and as int64[] (rank 0). */
const char *onnx_size(Onnx *o, const Sym *sym);
const char *onnx_size_scalar(Onnx *o, const Sym *sym);

/* A shape, or the sizes of the parts of a split, as int64[rank]. */
const char *onnx_shape(Onnx *o, const Sym *const *shape, uint32_t rank);

/* A ValueInfoProto in field `field` of `buffer`. */
void onnx_value_info(Buffer *buffer, uint32_t field, const char *name, ferry_dtype dtype,
                     uint32_t rank, const Sym *const *shape);

/* Lower one node. */
void onnx_lower(Onnx *o, const Node *node);

/* True when the node can be lowered as it is. */
bool onnx_accepts(const Onnx *o, const Node *node);

#endif
