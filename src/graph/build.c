/* One function per operation, on top of build_node.c. */
#include "base/dtype.h"
#include "graph/build.h"

#include <math.h>

/* A value that cannot be had because memory is exhausted. */
static Value *or_poison(Builder *b, Value *value) {
    return value ? value : build_fail(b, FERRY_OUT_OF_MEMORY, "out of memory");
}

#define OPERATION(b, op, ...)                                                                      \
    build_op(b, op, (const Arg[]){__VA_ARGS__}, sizeof((const Arg[]){__VA_ARGS__}) / sizeof(Arg))

/* ---- arguments and sizes ---- */

Arg arg_int(Builder *b, int64_t value) {
    return arg_sym(build_const(b, value));
}

Arg arg_syms(Builder *b, const Sym *const *items, uint32_t count) {
    Arg arg = {.kind = VALUE_INTS};
    arg.integers.items = arena_copy(&b->program->arena, items, count * sizeof *items);
    arg.integers.count = arg.integers.items ? count : 0;
    return arg;
}

Arg arg_ints(Builder *b, const int64_t *items, uint32_t count) {
    const Sym **syms = ARENA_ARRAY(&b->program->arena, const Sym *, count);
    for (uint32_t i = 0; syms && i < count; i++) syms[i] = build_const(b, items[i]);
    return (Arg){.kind = VALUE_INTS, .integers = {syms, syms ? count : 0}};
}

Arg arg_tensors(Builder *b, Value *const *items, uint32_t count) {
    Arg arg = {.kind = VALUE_TENSORS};
    arg.tensors.items = arena_copy(&b->program->arena, items, count * sizeof *items);
    arg.tensors.count = arg.tensors.items ? count : 0;
    return arg;
}

const Sym *build_const(Builder *b, int64_t value) {
    return sym_const(&b->program->symbols, value);
}

/* `dim` counted from the front; false (and a failure) when it is out of range. */
static bool wrap_dim(Builder *b, const Value *value, int dim, uint32_t *out) {
    int wrapped = dim < 0 ? dim + (int)value->rank : dim;
    if (!build_ok(b)) return false;
    if (wrapped < 0 || wrapped >= (int)value->rank) {
        build_fail(b, FERRY_INVALID_ARGUMENT, "dimension %d is outside a tensor of rank %u", dim,
                   value->rank);
        return false;
    }
    *out = (uint32_t)wrapped;
    return true;
}

const Sym *build_dim(Builder *b, const Value *value, int dim) {
    uint32_t d;
    return wrap_dim(b, value, dim, &d) ? value->shape[d] : build_const(b, 1);
}

/* ---- constants ---- */

Value *build_constant(Builder *b, ValueKind kind, const char *name, ferry_dtype dtype,
                      uint32_t rank, const int64_t *shape, const void *bytes) {
    if (!build_ok(b)) return &b->poison;
    Arena *arena = &b->program->arena;
    uint64_t size;
    if (rank > FERRY_MAX_RANK || !dtype_bytes(dtype, rank, shape, &size)) {
        return build_fail(b, FERRY_INVALID_ARGUMENT, "constant %s: unsuitable dtype or shape",
                          name);
    }
    const void *copy = arena_copy(arena, bytes, size);
    const Recipe *recipe = copy ? recipe_bytes(arena, copy, dtype, rank, shape) : NULL;
    return or_poison(b, program_weight(b->program, kind, name, recipe));
}

static Arg scalar_arg(Builder *b, double value) {
    bool whole = value == floor(value) && fabs(value) < 9007199254740992.0;
    return whole ? arg_int(b, (int64_t)value) : arg_float(value);
}

Value *build_full(Builder *b, const Sym *const *size, uint32_t rank, double value,
                  ferry_dtype dtype) {
    return OPERATION(b, OP_FULL, arg_syms(b, size, rank), scalar_arg(b, value), arg_dtype(dtype));
}

Value *build_arange(Builder *b, const Sym *start, const Sym *end, ferry_dtype dtype) {
    return OPERATION(b, OP_ARANGE, arg_sym(start), arg_sym(end), arg_int(b, 1), arg_dtype(dtype));
}

Value *build_scalar_tensor(Builder *b, const Sym *value, ferry_dtype dtype) {
    return OPERATION(b, OP_SCALAR_TENSOR, arg_sym(value), arg_dtype(dtype));
}

/* ---- element by element ---- */

Value *build_unary(Builder *b, Op op, Value *x) {
    return OPERATION(b, op, arg_tensor(x));
}

Value *build_binary(Builder *b, Op op, Value *x, Value *y) {
    return OPERATION(b, op, arg_tensor(x), arg_tensor(y));
}

Value *build_scalar(Builder *b, Op op, Value *x, double scalar) {
    return OPERATION(b, op, arg_tensor(x), scalar_arg(b, scalar));
}

Value *build_add(Builder *b, Value *x, Value *y) {
    return build_binary(b, OP_ADD, x, y);
}

Value *build_sub(Builder *b, Value *x, Value *y) {
    return build_binary(b, OP_SUB, x, y);
}

Value *build_mul(Builder *b, Value *x, Value *y) {
    return build_binary(b, OP_MUL, x, y);
}

Value *build_clamp(Builder *b, Value *x, Arg low, Arg high) {
    return OPERATION(b, OP_CLAMP, arg_tensor(x), low, high);
}

Value *build_gelu(Builder *b, Value *x, bool tanh_approximation) {
    return OPERATION(b, OP_GELU, arg_tensor(x), arg_string(tanh_approximation ? "tanh" : "none"));
}

Value *build_to(Builder *b, Value *x, ferry_dtype dtype) {
    if (!build_ok(b) || x->dtype == dtype) return x;
    return OPERATION(b, OP_TO, arg_tensor(x), arg_dtype(dtype));
}

Value *build_where(Builder *b, Value *condition, Value *x, Value *y) {
    return OPERATION(b, OP_WHERE, arg_tensor(condition), arg_tensor(x), arg_tensor(y));
}

/* ---- shape ---- */

Value *build_view(Builder *b, Value *x, const Sym *const *size, uint32_t rank) {
    const Sym *sizes[FERRY_MAX_RANK];
    const Sym *known = build_const(b, 1);
    uint32_t unknown = rank;
    if (!build_ok(b)) return &b->poison;
    if (rank > FERRY_MAX_RANK) return build_fail(b, FERRY_UNSUPPORTED, "the rank is above 8");
    for (uint32_t d = 0; d < rank; d++) {
        sizes[d] = size[d];
        if (sym_is_value(size[d], -1)) unknown = d;
    }
    for (uint32_t d = 0; d < rank && unknown < rank; d++) {
        if (d != unknown) known = sym_mul(&b->program->symbols, known, size[d]);
    }
    if (unknown < rank) {
        const Sym *count = shape_count(&b->program->symbols, x->rank, x->shape);
        sizes[unknown] = sym_floordiv(&b->program->symbols, count, known);
    }
    return OPERATION(b, OP_VIEW, arg_tensor(x), arg_syms(b, sizes, rank));
}

Value *build_permute(Builder *b, Value *x, const int64_t *dims) {
    return OPERATION(b, OP_PERMUTE, arg_tensor(x), arg_ints(b, dims, x->rank));
}

Value *build_transpose(Builder *b, Value *x, int dim0, int dim1) {
    int64_t dims[FERRY_MAX_RANK];
    uint32_t first, second;
    if (!wrap_dim(b, x, dim0, &first) || !wrap_dim(b, x, dim1, &second)) return &b->poison;
    for (uint32_t d = 0; d < x->rank; d++) dims[d] = d;
    dims[first] = second;
    dims[second] = first;
    return build_permute(b, x, dims);
}

Value *build_unsqueeze(Builder *b, Value *x, int dim) {
    int wrapped = dim < 0 ? dim + (int)x->rank + 1 : dim;
    return OPERATION(b, OP_UNSQUEEZE, arg_tensor(x), arg_int(b, wrapped));
}

Value *build_squeeze(Builder *b, Value *x, int dim) {
    uint32_t d;
    if (!wrap_dim(b, x, dim, &d)) return &b->poison;
    return OPERATION(b, OP_SQUEEZE, arg_tensor(x), arg_int(b, d));
}

Value *build_expand(Builder *b, Value *x, const Sym *const *size, uint32_t rank) {
    return OPERATION(b, OP_EXPAND, arg_tensor(x), arg_syms(b, size, rank));
}

Value *build_cat(Builder *b, Value *const *parts, uint32_t count, int dim) {
    uint32_t d;
    if (!wrap_dim(b, parts[0], dim, &d)) return &b->poison;
    return OPERATION(b, OP_CAT, arg_tensors(b, parts, count), arg_int(b, d));
}

Value *build_slice(Builder *b, Value *x, int dim, const Sym *start, const Sym *end) {
    uint32_t d;
    if (!wrap_dim(b, x, dim, &d)) return &b->poison;
    return OPERATION(b, OP_SLICE, arg_tensor(x), arg_int(b, d), arg_sym(start), arg_sym(end));
}

Value *build_slice_const(Builder *b, Value *x, int dim, int64_t start, int64_t end) {
    return build_slice(b, x, dim, build_const(b, start), build_const(b, end));
}

Value *build_select(Builder *b, Value *x, int dim, int64_t index) {
    uint32_t d;
    if (!wrap_dim(b, x, dim, &d)) return &b->poison;
    return OPERATION(b, OP_SELECT, arg_tensor(x), arg_int(b, d), arg_int(b, index));
}

void build_split(Builder *b, Value *x, const int64_t *sizes, uint32_t count, int dim,
                 Value **parts) {
    uint32_t d;
    Node *node = NULL;
    if (wrap_dim(b, x, dim, &d)) {
        const Arg args[] = {arg_tensor(x), arg_ints(b, sizes, count), arg_int(b, d)};
        node = build_node(b, OP_SPLIT, args, 3);
    }
    for (uint32_t i = 0; i < count; i++) parts[i] = node ? node->outputs[i] : &b->poison;
}

/* ---- selection and reduction ---- */

Value *build_embedding(Builder *b, Value *weight, Value *indices) {
    return OPERATION(b, OP_EMBEDDING, arg_tensor(weight), arg_tensor(indices));
}

Value *build_gather(Builder *b, Value *x, int dim, Value *index) {
    uint32_t d;
    if (!wrap_dim(b, x, dim, &d)) return &b->poison;
    return OPERATION(b, OP_GATHER, arg_tensor(x), arg_int(b, d), arg_tensor(index));
}

Value *build_reduce(Builder *b, Op op, Value *x, int dim, bool keepdim) {
    uint32_t d;
    if (!wrap_dim(b, x, dim, &d)) return &b->poison;
    bool takes_list = op_schema(op)->args[1].type == ARG_INTS;
    Arg dims = takes_list ? arg_ints(b, &(int64_t){d}, 1) : arg_int(b, d);
    return OPERATION(b, op, arg_tensor(x), dims, arg_bool(keepdim));
}

Value *build_cumsum(Builder *b, Value *x, int dim) {
    uint32_t d;
    if (!wrap_dim(b, x, dim, &d)) return &b->poison;
    return OPERATION(b, OP_CUMSUM, arg_tensor(x), arg_int(b, d));
}

Value *build_softmax(Builder *b, Value *x, int dim) {
    uint32_t d;
    if (!wrap_dim(b, x, dim, &d)) return &b->poison;
    return OPERATION(b, OP_SOFTMAX, arg_tensor(x), arg_int(b, d));
}

/* ---- layers ---- */

Value *build_linear(Builder *b, Value *x, Value *weight, Value *bias) {
    return OPERATION(b, OP_LINEAR, arg_tensor(x), arg_tensor(weight), arg_tensor(bias));
}

Value *build_convolution(Builder *b, Value *x, Value *weight, Value *bias, const int64_t *stride,
                         const int64_t *padding) {
    static const int64_t zeros[FERRY_MAX_RANK] = {0};
    int64_t ones[FERRY_MAX_RANK];
    uint32_t sizes = x->rank > 2 ? x->rank - 2 : 0;
    for (uint32_t d = 0; d < sizes; d++) ones[d] = 1;
    return OPERATION(b, OP_CONVOLUTION, arg_tensor(x), arg_tensor(weight), arg_tensor(bias),
                     arg_ints(b, stride, sizes), arg_ints(b, padding, sizes),
                     arg_ints(b, ones, sizes), arg_bool(false), arg_ints(b, zeros, sizes),
                     arg_int(b, 1));
}

Value *build_matmul(Builder *b, Value *x, Value *y) {
    return build_binary(b, OP_MATMUL, x, y);
}

Value *build_layer_norm(Builder *b, Value *x, Value *weight, Value *bias, double eps) {
    const Sym *size = build_dim(b, x, -1);
    return OPERATION(b, OP_LAYER_NORM, arg_tensor(x), arg_syms(b, &size, 1), arg_tensor(weight),
                     arg_tensor(bias), arg_float(eps));
}

Value *build_rms_norm(Builder *b, Value *x, Value *weight, double eps) {
    const Sym *size = build_dim(b, x, -1);
    return OPERATION(b, OP_RMS_NORM, arg_tensor(x), arg_syms(b, &size, 1), arg_tensor(weight),
                     arg_float(eps));
}

Value *build_attention(Builder *b, Value *query, Value *key, Value *value, Value *mask,
                       bool is_causal, double scale) {
    bool grouped = build_dim(b, query, 1) != build_dim(b, key, 1);
    return OPERATION(b, OP_ATTENTION, arg_tensor(query), arg_tensor(key), arg_tensor(value),
                     arg_tensor(mask), arg_bool(is_causal), arg_float(scale), arg_bool(grouped));
}

Value *build_rotary(Builder *b, Value *x, Value *cos, Value *sin, bool interleaved) {
    return OPERATION(b, OP_ROTARY_EMBEDDING, arg_tensor(x), arg_tensor(cos), arg_tensor(sin),
                     arg_bool(interleaved));
}

Value *build_spread(Builder *b, Value *x, bool interleaved) {
    if (!interleaved) return build_cat(b, (Value *const[]){x, x}, 2, -1);
    const Sym *size[FERRY_MAX_RANK];
    uint32_t last;
    if (!wrap_dim(b, x, -1, &last)) return &b->poison;
    for (uint32_t d = 0; d < last; d++) size[d] = x->shape[d];
    size[last] = build_const(b, -1);
    Value *column = build_unsqueeze(b, x, -1);
    return build_view(b, build_cat(b, (Value *const[]){column, column}, 2, -1), size, x->rank);
}

/* ---- signature ---- */

Value *build_input(Builder *b, const char *name, ferry_dtype dtype, uint32_t rank,
                   const Sym *const *shape) {
    if (!build_ok(b)) return &b->poison;
    if (rank > FERRY_MAX_RANK) {
        return build_fail(b, FERRY_UNSUPPORTED,
                          "input %s: expected at most %d dimensions, found %u", name,
                          FERRY_MAX_RANK, rank);
    }
    Value *value = program_value(b->program, VALUE_INPUT, name, dtype, rank, shape);
    if (!value) return or_poison(b, NULL);
    VEC_PUSH(&b->program->inputs,
             (Port){.name = arena_string(&b->program->arena, name), .value = value});
    return value;
}

void build_write(Builder *b, const char *name, Value *value, Value *writes) {
    if (!build_ok(b)) return;
    const char *copy = arena_string(&b->program->arena, name);
    VEC_PUSH(&b->program->outputs, (Port){.name = copy, .value = value, .writes = writes});
}

void build_output(Builder *b, const char *name, Value *value) {
    build_write(b, name, value, NULL);
}
