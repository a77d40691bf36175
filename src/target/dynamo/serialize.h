/* What the files of the writer share: names, strides, and the JSON of a program. */
#ifndef TARGET_DYNAMO_SERIALIZE_H
#define TARGET_DYNAMO_SERIALIZE_H

#include "base/buffer.h"
#include "base/map.h"
#include "target/dynamo/dynamo.h"

typedef struct Serializer {
    Program *program;
    Arena arena;
    Buffer nodes, tensors, sizes, bools; /* "nodes", "tensor_values", "sym_int_values", ... */
    const char **names;                  /* by value id: the name in the graph */
    const Sym *const **strides;          /* by value id */
    Map taken;                  /* name in use -> the number of the last that was made of it */
    Map size_names;             /* Sym -> name of the node that computes it */
    const char **symbol_names;  /* by symbol: its name for torch */
    const Value **symbol_value; /* by symbol: a value that has it as a size */
    int *symbol_dim;            /* which; -1: the value itself */
    int64_t *samples;           /* by symbol: a size that it may well have */
    uint32_t *uses;             /* by value id */
    const char **left;          /* by output: the tensor that is left in what it writes, or NULL */
    const char **results;       /* by output: it as an argument, in JSON */
    uint32_t node_count;
    ferry_status status;
    ferry_error *error;
} Serializer;

ferry_status serialize_fail(Serializer *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- json.c ---- */

void json_number(Buffer *out, double number);              /* as Python writes a float */
void json_sym(Serializer *s, Buffer *out, const Sym *sym); /* {"as_int": 4} or {"as_expr": {...}} */
void json_tensor_meta(Serializer *s, Buffer *out, const Value *value, bool requires_grad);

/* ---- symbols.c ---- */

/* Name every symbol of the program as torch allows, and choose its sample size. */
void symbols_name(Serializer *s);

/* Remember where the symbols among the sizes of an input come from. */
void symbols_note(Serializer *s, const Value *value);

/* What a size or stride is when every symbol has its sample size. */
int64_t symbols_sample(const Serializer *s, const Sym *sym);

/* ---- sizes.c ---- */

/* {"as_name": ...} or {"as_int": ...}; appends the nodes that compute the size. */
void json_size(Serializer *s, Buffer *out, const Sym *sym);

/* Nodes that check the bounds of every symbol that has some. */
void sizes_assert_bounds(Serializer *s);

/* ---- strides.c, strides_view.c ---- */

/* Strides of what the node makes, as torch would have them; inputs' are known. */
void strides_infer(Serializer *s, const Node *node);
const Sym *const *strides_contiguous(Serializer *s, uint32_t rank, const Sym *const *shape);

/* Whether the node's results may share the memory of its first argument. */
bool strides_shares(const Node *node);

/* The strides of a view of `self`, or NULL when the operation makes a new tensor. */
const Sym *const *strides_view(Serializer *s, const Node *node, const Value *self,
                               const Value *out);

/* ---- nodes.c ---- */

/* An identifier made from `stem` that nothing else has. */
const char *serialize_name(Serializer *s, const char *stem);

/* Begin a node in s->nodes: everything before its inputs. */
void serialize_start(Serializer *s, const char *target);
void serialize_node(Serializer *s, const Node *node);

/* Declare a tensor in tensor_values. */
void serialize_tensor(Serializer *s, const Value *value, bool requires_grad);

/* ---- results.c ---- */

/* A node that nothing needs but results that are numbers: they are sizes, not tensors. */
bool results_skip(Serializer *s, const Node *node);

/* Fill s->left and s->results; may append nodes. */
void results_prepare(Serializer *s);

/* ---- document.c ---- */

/* Whether a weight is in the state_dict. */
bool in_state(const Value *weight);

/* models/model.json and the two payload configurations; `records[i]` is the record of weight i. */
void document_program(Serializer *s, Buffer *out);
void document_weights(Serializer *s, const uint32_t *records, bool constants, Buffer *out);

#endif
