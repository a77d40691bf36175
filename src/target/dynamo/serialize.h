/* What the files of the writer share: names, strides, and the JSON of a program. */
#ifndef TARGET_DYNAMO_SERIALIZE_H
#define TARGET_DYNAMO_SERIALIZE_H

#include "base/buffer.h"
#include "base/map.h"
#include "target/dynamo/dynamo.h"

typedef struct Serializer {
    Program *program;
    Arena arena;
    Buffer nodes, tensors, sizes; /* contents of "nodes", "tensor_values", "sym_int_values" */
    const char **names;           /* by value id: the name in the graph */
    const Sym *const **strides;   /* by value id */
    Map taken;                    /* names in use */
    Map size_names;               /* Sym -> name of the node that computes it */
    const Value **symbol_value;   /* by symbol: a value that has it as a size */
    int *symbol_dim;              /* which; -1: the value itself */
    uint32_t node_count;
    ferry_status status;
    ferry_error *error;
} Serializer;

/* ---- json text ---- */

void json_text(Buffer *out, const char *text); /* a string literal */
void json_sym(Buffer *out, const Sym *sym);    /* {"as_int": 4} or {"as_expr": {...}} */
void json_tensor_meta(Serializer *s, Buffer *out, ferry_dtype dtype, uint32_t rank,
                      const Sym *const *sizes, const Sym *const *strides, bool requires_grad);

/* ---- strides.c ---- */

/* Strides of what the node makes, as torch would have them; inputs' are known. */
void strides_infer(Serializer *s, const Node *node);
const Sym *const *strides_contiguous(Serializer *s, uint32_t rank, const Sym *const *shape);

/* ---- nodes.c ---- */

/* An identifier made from `stem` that nothing else has. */
const char *serialize_name(Serializer *s, const char *stem);
void serialize_node(Serializer *s, const Node *node);
ferry_status serialize_fail(Serializer *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Declare a tensor in tensor_values. */
void serialize_tensor(Serializer *s, const Value *value, bool requires_grad);

/* ---- document.c ---- */

/* models/model.json and the two payload configurations; `records[i]` is the record of weight i. */
void document_program(Serializer *s, Buffer *out);
void document_weights(Serializer *s, const uint32_t *records, bool constants, Buffer *out);

#endif
