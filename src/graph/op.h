/* The operators: names and schemas, from ops.def. */
#ifndef GRAPH_OP_H
#define GRAPH_OP_H

#include <ferry/dtype.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum Op {
#define OP(name, overload, schema) OP_##name,
#include "graph/ops.def"
#undef OP
    OP_COUNT
} Op;

typedef enum ArgType {
    ARG_TENSOR,
    ARG_TENSORS,
    ARG_OPTIONAL_TENSORS, /* entries may be absent */
    ARG_INT,              /* a symbolic integer */
    ARG_INTS,
    ARG_FLOAT,
    ARG_BOOL,
    ARG_SCALAR, /* a symbolic integer, a float or a bool */
    ARG_STRING,
    ARG_DTYPE,
} ArgType;

enum { OP_MAX_ARGS = 9 };

typedef struct OpArg {
    char name[24];
    ArgType type;
    bool optional; /* "?" in the schema: may be none */
    bool keyword;  /* after "*": given by name */
    bool has_default;
    /* the default, by type: none when optional and no other is given */
    bool default_none;
    double default_number;
    char default_string[16];
} OpArg;

typedef struct OpSchema {
    OpArg args[OP_MAX_ARGS];
    uint32_t arg_count;
    bool returns_list;
} OpSchema;

/* "aten::add.Tensor". */
const char *op_name(Op op);

/* "add": the name without namespace and overload, for naming values. Written to `out`. */
void op_short_name(Op op, char *out, unsigned long size);

/* The schema as written in ops.def. */
const char *op_schema_text(Op op);

/* The parsed schema. */
const OpSchema *op_schema(Op op);

/* The op with this overload name; false when there is none. */
bool op_lookup(const char *name, Op *out);

#endif
