/* Building programs: one function per operation, used by model families, passes and readers alike.
 *
 * A builder has a sticky error: after the first failure every call does nothing and returns a poison
 * value, so code that builds stays free of error handling and checks build_finish() once. Functions
 * never return NULL. Dimension arguments may be negative and count from the end then. */
#ifndef GRAPH_BUILD_H
#define GRAPH_BUILD_H

#include "graph/program.h"

typedef struct ferry_builder {
    Program *program;
    ferry_error *error; /* where the first failure goes; may be NULL */
    ferry_status status;
    Node *before;      /* new nodes go before this one; NULL: at the end */
    const char *scope; /* given to new nodes */
    Value poison;
} Builder;

/* A builder that appends to `program`. */
Builder build_start(Program *program, ferry_error *error);

/* The first failure, the program's health, or FERRY_OK. */
ferry_status build_finish(Builder *b);

static inline bool build_ok(const Builder *b) {
    return b->status == FERRY_OK;
}

/* Fail, unless the builder has failed before. Returns the poison value. */
Value *build_fail(Builder *b, ferry_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Set the scope of new nodes from a format; returns the old one, to be restored by assignment. */
const char *build_scope(Builder *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Any operation: `args` in schema order, the missing ones filled with defaults. Returns NULL after a
 * failure. */
Node *build_node(Builder *b, Op op, const Arg *args, uint32_t count);
Value *build_op(Builder *b, Op op, const Arg *args, uint32_t count);

/* ---- arguments ---- */

static inline Arg arg_none(void) {
    return (Arg){.kind = VALUE_NONE};
}
static inline Arg arg_tensor(Value *value) { /* NULL: none */
    return value ? (Arg){.kind = VALUE_TENSOR, .tensor = value} : arg_none();
}
static inline Arg arg_sym(const Sym *sym) {
    return (Arg){.kind = VALUE_INT, .integer = sym};
}
static inline Arg arg_float(double number) {
    return (Arg){.kind = VALUE_FLOAT, .number = number};
}
static inline Arg arg_bool(bool boolean) {
    return (Arg){.kind = VALUE_BOOL, .boolean = boolean};
}
static inline Arg arg_string(const char *string) {
    return (Arg){.kind = VALUE_STRING, .string = string};
}
static inline Arg arg_dtype(ferry_dtype dtype) {
    return (Arg){.kind = VALUE_DTYPE, .dtype = dtype};
}
Arg arg_int(Builder *b, int64_t value);
/* These copy the list. */
Arg arg_syms(Builder *b, const Sym *const *items, uint32_t count);
Arg arg_ints(Builder *b, const int64_t *items, uint32_t count);
Arg arg_tensors(Builder *b, Value *const *items, uint32_t count);

/* ---- sizes ---- */

const Sym *build_const(Builder *b, int64_t value);

/* Size of dimension `dim` of a value. */
const Sym *build_dim(Builder *b, const Value *value, int dim);

/* ---- constants ---- */

/* A constant tensor whose bytes are copied. */
Value *build_constant(Builder *b, ValueKind kind, const char *name, ferry_dtype dtype,
                      uint32_t rank, const int64_t *shape, const void *bytes);
Value *build_full(Builder *b, const Sym *const *size, uint32_t rank, double value,
                  ferry_dtype dtype);
Value *build_arange(Builder *b, const Sym *start, const Sym *end, ferry_dtype dtype);
/* A 0-d tensor that holds a size. */
Value *build_scalar_tensor(Builder *b, const Sym *value, ferry_dtype dtype);

/* ---- element by element ---- */

Value *build_unary(Builder *b, Op op, Value *x);
Value *build_binary(Builder *b, Op op, Value *x, Value *y);
/* A whole number becomes an integer scalar, anything else a float. */
Value *build_scalar(Builder *b, Op op, Value *x, double scalar);
Value *build_add(Builder *b, Value *x, Value *y);
Value *build_sub(Builder *b, Value *x, Value *y);
Value *build_mul(Builder *b, Value *x, Value *y);
/* Between `low` and `high`, numbers or sizes; arg_none() for no bound. */
Value *build_clamp(Builder *b, Value *x, Arg low, Arg high);
Value *build_gelu(Builder *b, Value *x, bool tanh_approximation);
/* Returns `x` itself when it has the dtype already. */
Value *build_to(Builder *b, Value *x, ferry_dtype dtype);
Value *build_where(Builder *b, Value *condition, Value *x, Value *y);

/* ---- shape ---- */

/* One size may be -1: it is worked out from the others. */
Value *build_view(Builder *b, Value *x, const Sym *const *size, uint32_t rank);
Value *build_permute(Builder *b, Value *x, const int64_t *dims);
Value *build_transpose(Builder *b, Value *x, int dim0, int dim1);
Value *build_unsqueeze(Builder *b, Value *x, int dim);
Value *build_squeeze(Builder *b, Value *x, int dim);
Value *build_expand(Builder *b, Value *x, const Sym *const *size, uint32_t rank);
Value *build_cat(Builder *b, Value *const *parts, uint32_t count, int dim);
Value *build_slice(Builder *b, Value *x, int dim, const Sym *start, const Sym *end);
Value *build_slice_const(Builder *b, Value *x, int dim, int64_t start, int64_t end);
Value *build_select(Builder *b, Value *x, int dim, int64_t index);
/* Fills parts[0..count). */
void build_split(Builder *b, Value *x, const int64_t *sizes, uint32_t count, int dim,
                 Value **parts);

/* ---- selection and reduction ---- */

Value *build_embedding(Builder *b, Value *weight, Value *indices);
Value *build_gather(Builder *b, Value *x, int dim, Value *index);
Value *build_reduce(Builder *b, Op op, Value *x, int dim, bool keepdim);
Value *build_cumsum(Builder *b, Value *x, int dim);
Value *build_softmax(Builder *b, Value *x, int dim);

/* ---- layers ---- */

Value *build_linear(Builder *b, Value *x, Value *weight, Value *bias);
Value *build_matmul(Builder *b, Value *x, Value *y);
/* x [batch, channels, sizes], weight [out, channels, kernel]; `stride` and `padding` have one number per
 * size; `bias` may be NULL. */
Value *build_convolution(Builder *b, Value *x, Value *weight, Value *bias, const int64_t *stride,
                         const int64_t *padding);
/* Over the last dimension; `weight` and `bias` may be NULL. */
Value *build_layer_norm(Builder *b, Value *x, Value *weight, Value *bias, double eps);
Value *build_rms_norm(Builder *b, Value *x, Value *weight, double eps);
/* [batch, heads, length, size]; fewer key than query heads are repeated; `mask` (NULL: none) is
 * bool (true: attend) or additive. A row that may attend to nothing gives zeros. */
Value *build_attention(Builder *b, Value *query, Value *key, Value *value, Value *mask,
                       bool is_causal, double scale);
/* x [batch, heads, length, size]; cos and sin broadcast to [batch, heads, length, r], r <= size; the
 * first r features are rotated: by halves (x1, x2) -> (x1 cos - x2 sin, x2 cos + x1 sin), or by
 * neighbouring pairs when `interleaved`. */
Value *build_rotary(Builder *b, Value *x, Value *cos, Value *sin, bool interleaved);
/* [.., n] -> [.., 2n], from a number for each pair of features to one for each feature: the list twice, or every
 * number twice when `interleaved`. */
Value *build_spread(Builder *b, Value *x, bool interleaved);

/* ---- signature ---- */

Value *build_input(Builder *b, const char *name, ferry_dtype dtype, uint32_t rank,
                   const Sym *const *shape);
void build_output(Builder *b, const char *name, Value *value);
/* The same, of what the input or state `writes` (may be NULL) holds after the call. */
void build_write(Builder *b, const char *name, Value *value, Value *writes);

#endif
