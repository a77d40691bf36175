/* Building an OpenVINO graph: layers and edges go to buffers of their own, which are joined at the end.
 *
 * An operation is named as OpenVINO's documentation does, with the operation set that introduced it:
 * "MatMul-1", "Gather-8". Types of ports are left to the reader, which infers them; only the element
 * type of an output is written, because the format asks for it. */
#ifndef TARGET_OPENVINO_EMIT_H
#define TARGET_OPENVINO_EMIT_H

#include "base/buffer.h"
#include "base/map.h"
#include "target/openvino/openvino.h"
#include "target/signature.h"

/* An output of a layer. Layers count from 1; 0: absent. */
typedef struct IrPort {
    uint32_t layer, port;
} IrPort;

typedef struct Ir {
    Program *program;
    const OpenvinoOptions *options;
    Arena arena;
    Buffer layers, edges;
    Buffer pool;                 /* small constants, which follow the weights in the .bin */
    uint64_t pool_offset;        /* where that is */
    Map constants;               /* type and bytes -> IrPort */
    Map sizes;                   /* Sym -> IrPort of its int64[1] value */
    IrPort *ports;               /* by value id */
    IrPort *states;              /* by value id: what a state was before its order changed */
    const Recipe **stored;       /* by value id, of weights: what the .bin has, */
    uint64_t *offsets;           /* and where */
    bool *turned;                /* by value id: matrices of groups, each stored transposed */
    const MappedFile *linked;    /* the .bin, when it is one */
    const Dimension *dimensions; /* by symbol */
    const Node *node;            /* being lowered */
    const char *label;           /* of the next layer, instead of the node's own */
    uint32_t layer_count, weight_count;
    ferry_status status;
    ferry_error *error;
} Ir;

typedef enum AttrKind { ATTR_INT, ATTR_FLOAT, ATTR_BOOL, ATTR_STRING, ATTR_INTS } AttrKind;

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
#define ATTR_B(key, value) ((Attr){.name = (key), .kind = ATTR_BOOL, .integer = (value)})
#define ATTR_S(key, value) ((Attr){.name = (key), .kind = ATTR_STRING, .string = (value)})
#define ATTR_IS(key, values, n)                                                                    \
    ((Attr){.name = (key), .kind = ATTR_INTS, .integers = (values), .count = (n)})

/* Lists of inputs and attributes, for the calls below. */
#define IR_LIST(type, ...)                                                                         \
    (const type[]){__VA_ARGS__}, sizeof((const type[]){__VA_ARGS__}) / sizeof(type)
#define FROM(...) IR_LIST(IrPort, __VA_ARGS__)
#define WITH(...) IR_LIST(Attr, __VA_ARGS__)
#define PLAIN     NULL, 0

ferry_status ir_fail(Ir *ir, ferry_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A layer with one output of this element type. */
IrPort ir_layer(Ir *ir, const char *operation, ferry_dtype dtype, const IrPort *inputs,
                size_t input_count, const Attr *attrs, size_t attr_count);

/* A layer with `output_count` outputs; returns the first, the others follow. */
IrPort ir_layer_outputs(Ir *ir, const char *operation, const ferry_dtype *dtypes,
                        uint32_t output_count, const IrPort *inputs, size_t input_count,
                        const Attr *attrs, size_t attr_count);

/* The layers at the rim, where tensors have names that the user knows. */
IrPort ir_parameter(Ir *ir, const char *name, const Value *value);
void ir_result(Ir *ir, const char *name, IrPort from);

/* A Const of `size` bytes at an offset of the .bin. */
IrPort ir_const(Ir *ir, ferry_dtype dtype, uint32_t rank, const int64_t *shape, uint64_t offset,
                uint64_t size);

/* The conversion of a weight that is stored in fewer bits, which the CPU plugin keeps that way. */
IrPort ir_decompress(Ir *ir, IrPort from, ferry_dtype dtype);

/* "f32" */
const char *ir_element_type(ferry_dtype dtype);

/* "?,1..8,4"; NULL stands for any size */
const char *ir_partial_shape(Ir *ir, uint32_t rank, const Sym *const *shape);

/* The port of a value of the program; weights become layers when they are first read. */
IrPort ir_value(Ir *ir, const Value *value);

/* weights.c: the weight as a Const. */
IrPort ir_weight(Ir *ir, const Value *weight);

/* The matrix [out, in] of one group, of a weight that is `turned`. */
IrPort ir_group_weight(Ir *ir, const Value *weight, int64_t group);

/* The conversion to `dtype` of something that has the dtype of `like`. */
IrPort ir_convert(Ir *ir, IrPort from, ferry_dtype dtype);

/* ---- numbers.c: constants ---- */

/* A small constant, shared by all users of the same one. */
IrPort ir_constant(Ir *ir, ferry_dtype dtype, uint32_t rank, const int64_t *shape,
                   const void *bytes, size_t size);
IrPort ir_ints(Ir *ir, const int64_t *values, size_t count); /* int64[count] */
IrPort ir_int(Ir *ir, int64_t value);                        /* int64[] */
IrPort ir_axis(Ir *ir, int64_t value);                       /* int32[] */
IrPort ir_number(Ir *ir, double value, ferry_dtype dtype);

/* inline.c: the same made of layers, where the .bin cannot hold it. */
IrPort ir_computed_constant(Ir *ir, ferry_dtype dtype, uint32_t rank, const int64_t *shape,
                            const void *bytes, size_t size);

/* A 0-d constant of `dtype` with the value of an int, float or bool argument. */
IrPort ir_scalar(Ir *ir, const Arg *arg, ferry_dtype dtype);

/* ---- numbers.c: sizes ---- */

IrPort ir_size(Ir *ir, const Sym *sym);                          /* int64[1] */
IrPort ir_size_scalar(Ir *ir, const Sym *sym);                   /* int64[] */
IrPort ir_shape(Ir *ir, const Sym *const *shape, uint32_t rank); /* int64[rank] */

/* ---- lower.c ---- */

void ir_lower(Ir *ir, const Node *node);

#endif
